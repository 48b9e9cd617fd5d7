"""What a benchmark's user should know beside its numbers."""

from __future__ import annotations

from collections.abc import Mapping

from rallebench.engine.perform import Backends
from rallebench.services.benchmark.planning import Plan, retrievers_of
from rallebench.workspace.coverage import coverage, missing_pages
from rallebench.workspace.paths import Workspace


def unknown_before(workspace: Workspace, plan: Plan, backends: Backends) -> tuple[str, ...]:
    """One sentence per loaded retriever that lacks gold pages and whose pages could not be read before it was loaded."""
    known = coverage(workspace, retrievers_of(plan.chain), plan.examples)
    others = {
        name: backends.retrievers[name] for name in retrievers_of(plan.chain) if name not in known
    }
    told = (
        missing_pages(n, r.page_ids(), plan.examples)
        for n, r in others.items()
        if hasattr(r, "page_ids")
    )
    return tuple(filter(None, told))


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
            found.append(
                f"{unread} of {asked} judgements of {name!r} could not be read; the order stayed as it was."
            )
    return tuple(found)
