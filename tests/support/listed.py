"""Retrievers with lists given in the test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rallebench.core.entries import Combination
from rallebench.core.types import Hit, Passage
from rallebench.retrievers import COMBINATIONS
from rallebench.retrievers.composites import check_settings


def passage(doc_id: str, text: str = "", page: str = "") -> Passage:
    """A passage with its id as text, unless a text is given."""
    return Passage(doc_id, text or f"text {doc_id}", f"title {doc_id}", page or f"page {doc_id}")


class Listed:
    """Answers every query with the same list: (id or passage, score), best first."""

    titled = False
    prefix_stable = True

    def __init__(
        self, *hits: tuple[str | Passage, float], name: str = "listed", **more: Any
    ) -> None:
        self.name = self.fingerprint = name
        self.hits = tuple(
            Hit(p if isinstance(p, Passage) else passage(p), score) for p, score in hits
        )
        self.depths: list[int] = []
        self.asked: list[tuple[str, ...]] = []
        self.__dict__.update(more)

    def search(self, queries: Sequence[str], k: int) -> list[tuple[Hit, ...]]:
        """The list cut at k; none for a blank query."""
        self.depths.append(k)
        self.asked.append(tuple(queries))
        return [self.hits[:k] if query.strip() else () for query in queries]

    def page_ids(self) -> frozenset[str]:
        """The page ids of the list."""
        return frozenset(hit.passage.page_id for hit in self.hits)


def combined(kind: str, *parts: Any, **settings: Any) -> Any:
    """A combination as made by the workspace, with checked settings."""
    entry = Combination(kind=kind, of=[part.name for part in parts], settings=settings)
    return COMBINATIONS[kind]("combined", parts, check_settings("combined", entry))


def ids(hits: Sequence[Hit]) -> list[str]:
    """The passage ids, in order."""
    return [hit.passage.doc_id for hit in hits]


def scores(hits: Sequence[Hit]) -> Mapping[str, float]:
    """Passage id → score."""
    return {hit.passage.doc_id: hit.score for hit in hits}
