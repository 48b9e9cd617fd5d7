"""A retriever over a handful of passages, without files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from rallebench.core.text import tokenize
from rallebench.core.types import Hit, Passage, digest


class StoredList(tuple[Passage, ...]):
    """Passages with the look-ups of a store."""

    def find_row(self, doc_id: str) -> int | None:
        """The row of a passage."""
        return next((row for row, p in enumerate(self) if p.doc_id == doc_id), None)

    def page_ids(self) -> frozenset[str]:
        """Every page id."""
        return frozenset(passage.page_id for passage in self)


class InMemory:
    """Ranks by the number of shared tokens; ties keep the passages' order."""

    titled = False
    prefix_stable = True

    def __init__(self, passages: Iterable[Passage], name: str = "in-memory") -> None:
        self.name = name
        self.passages = StoredList(passages)
        self.fingerprint = digest([[p.doc_id, p.title, p.text, p.page_id] for p in self.passages])[
            :12
        ]
        self.queries = 0
        self._bags = [Counter(tokenize(f"{p.title}, {p.text}")) for p in self.passages]

    def search(self, queries: Sequence[str], k: int) -> list[tuple[Hit, ...]]:
        """At most k passages that share a token with the query, best first."""
        self.queries += len(queries)
        return [self._search(query, k) for query in queries]

    def _search(self, query: str, k: int) -> tuple[Hit, ...]:
        words = Counter(tokenize(query))
        scored = [(float(sum((words & bag).values())), i) for i, bag in enumerate(self._bags)]
        best = sorted(
            (pair for pair in scored if pair[0] > 0), key=lambda pair: (-pair[0], pair[1])
        )[:k]
        return tuple(Hit(self.passages[i], score) for score, i in best)

    def page_ids(self) -> frozenset[str]:
        """Every page id of the passages."""
        return self.passages.page_ids()
