"""Judgements of a re-ranker that could not be read: counted before and after a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rallebench.core.runs import Backends


def judgements(names: Iterable[str], backends: Backends) -> dict[str, tuple[int, int]]:
    """Retriever → (judgements asked, those that could not be read) until now, where a language model re-ranks."""
    judges = {
        n: r for n, r in backends.retrievers.items() if n in set(names) and hasattr(r, "unread")
    }
    return {name: (judge.asked, judge.unread) for name, judge in judges.items()}


def unread(
    before: Mapping[str, tuple[int, int]], after: Mapping[str, tuple[int, int]]
) -> tuple[str, ...]:
    """One sentence per re-ranker whose judgements could not all be read in between; both map to (asked, unread)."""
    sentences = []
    for name, counts in after.items():
        asked, unparsed = (now - then for now, then in zip(counts, before[name]))
        if unparsed:
            sentences.append(
                f"{unparsed} of {asked} judgements of {name!r} could not be read; the order stayed as it was."
            )
    return tuple(sentences)
