"""Common parts of retrievers over an index, and of combinations: lists of hits, equality of items, names."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence

from rallebench.core.backends import Retriever
from rallebench.core.types import Hit, Json, Passage, digest
from rallebench.corpora.store import PassageStore

MAX_DEPTH = 10_000
"""Maximum number of passages that a saved chain may request."""

Identity = Callable[[Passage], Hashable]

IDENTITIES: Mapping[str, Identity] = {
    "passage": lambda passage: (passage.doc_id, passage.text),
    "text": lambda passage: passage.text,
}
"""Criteria for equal passages: same id and text (two indexes over one corpus), or the exact text (CRUD-RAG)."""


class Indexed:
    """A retriever over one index. ``passages``: by row."""

    def __init__(self, name: str, fingerprint: str, store: PassageStore) -> None:
        self.name, self.fingerprint, self.passages = name, fingerprint, store
        self._pages: frozenset[str] | None = None

    def page_ids(self) -> frozenset[str]:
        """Return every page id of the corpus; reads the store once."""
        if self._pages is None:
            self._pages = self.passages.page_ids()
        return self._pages

    def close(self) -> None:
        self.passages.close()


class Combined:
    """A retriever over other retrievers.

    ``titled``: True if any part's passages come with titles. ``fingerprint``: the parts' fingerprints in
    order, the kind of combination and its settings.
    """

    def __init__(self, name: str, kind: str, parts: Sequence[Retriever], settings: Json) -> None:
        self.name = name
        self.parts = tuple(parts)
        self.titled = any(part.titled for part in parts)
        self.fingerprint = digest([kind, dict(settings), [part.fingerprint for part in parts]])[:12]

    def embedding_tokens(self, queries: Sequence[str]) -> list[int | None]:
        """Return the tokens of all parts together; None if one does not count them."""
        none = [0] * len(queries)
        counters = (getattr(part, "embedding_tokens", lambda queries: none) for part in self.parts)
        counts = zip(*(counter(queries) for counter in counters))
        return [None if None in each else sum(tokens or 0 for tokens in each) for each in counts]

    @property
    def judgements(self) -> tuple[int, int]:
        """Return the number of judgements requested from language models, and of unreadable ones, over all parts."""
        pairs = [getattr(part, "judgements", (0, 0)) for part in self.parts]
        return sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs)

    @property
    def reads_texts(self) -> bool:
        """Return whether a language model without log-probabilities had to choose by its text."""
        return any(getattr(part, "reads_texts", False) for part in self.parts)

    @property
    def rewrites(self) -> tuple[int, int]:
        """Return the number of queries that language models wrote anew, and of replies without a query, over all parts."""
        pairs = [getattr(part, "rewrites", (0, 0)) for part in self.parts]
        return sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs)

    @property
    def refuses(self) -> tuple[str, ...]:
        """Return the request fields that servers of its language models refuse."""
        fields = (getattr(part, "refuses", ()) for part in self.parts)
        return tuple(sorted({field for names in fields for field in names}))

    def page_ids(self) -> frozenset[str]:
        """Return every page id of the parts' corpora."""
        return frozenset[str]().union(*(part.page_ids() for part in self.parts))  # type: ignore[attr-defined]


def search_parts(
    parts: Sequence[Retriever], queries: Sequence[str], depth: int
) -> list[list[tuple[Hit, ...]]]:
    """Search each part once, for all queries; return one list of hits per query and part.

    A part that pads its results with passages that do not match (BM25, after the last that shares a word) declares
    their score as ``no_match``; they are left out, because their ranks are meaningless.
    """
    lists_by_part = []
    for part in parts:
        floor = getattr(part, "no_match", None)
        lists = part.search(queries, depth)
        if floor is not None:
            lists = [tuple(hit for hit in hits if hit.score > floor) for hits in lists]
        lists_by_part.append(lists)
    return [[lists[i] for lists in lists_by_part] for i in range(len(queries))]
