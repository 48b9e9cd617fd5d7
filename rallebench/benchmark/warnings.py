"""What a benchmark's user should know beside its numbers."""

from __future__ import annotations

from collections.abc import Mapping

from rallebench.bench.perform import Backends
from rallebench.benchmark.planning import Plan
from rallebench.loading import check_pages


def warnings_of(plan: Plan, backends: Backends) -> tuple[str, ...]:
    """What a user should know before believing the run's numbers, one sentence each: gold pages that no index holds."""
    found = []
    for action in plan.chain.actions:
        if (
            action.kind == "retrieve"
            and action.template
            and hasattr(backends.retrievers[action.target], "page_ids")
        ):
            gold = (page for example in plan.examples for page in example.gold.provenance)
            found.append(check_pages(backends.retrievers[action.target].page_ids(), gold))
    return tuple(dict.fromkeys(filter(None, found)))


def judgements(plan: Plan, backends: Backends) -> dict[str, tuple[int, int]]:
    """Retriever → (judgements asked, those that could not be read) until now, where a language model re-ranks."""
    named = {action.target for action in plan.chain.actions if action.template}
    judges = {n: r for n, r in backends.retrievers.items() if n in named and hasattr(r, "unread")}
    return {name: (judge.asked, judge.unread) for name, judge in judges.items()}


def unread(
    before: Mapping[str, tuple[int, int]], after: Mapping[str, tuple[int, int]]
) -> tuple[str, ...]:
    """One sentence per re-ranker whose judgements could not all be read in between; both map to (asked, unread)."""
    found = []
    for name, (asked, unread) in after.items():
        asked, unread = asked - before[name][0], unread - before[name][1]
        if unread:
            found.append(f"{unread} of {asked} judgements of {name!r} could not be read; the order stayed as it was.")
    return tuple(found)
