"""Whole documents instead of passages, for models with a long context.

::

    pages:my-index            the whole pages of the passages found by my-index, without duplicates
    pages:(rrf:mine,other)    the same for a combination

k counts the passages searched, so there are at most k pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from rallebench.core.backends import Retriever
from rallebench.core.types import Hit, Json, Passage
from rallebench.corpora.columns import rows_with, stable_hash
from rallebench.corpora.store import PassageStore
from rallebench.retrievers import COMBINATIONS
from rallebench.retrievers._parts import Combined
from rallebench.retrievers.references import passage_stores


class StoredPages:
    """Pages of a store by id; the first search reads the store once and keeps 16 bytes per passage."""

    def __init__(self, store: Sequence[Passage] | PassageStore) -> None:
        self._store = store

    @cached_property
    def _rows(self) -> Any:
        """Return (2, n): the sorted hashes of page ids, and their rows."""
        hashes = np.fromiter(
            (stable_hash(passage.page_id) for passage in self._store), np.uint64, len(self._store)
        )
        order = np.argsort(hashes, kind="stable")
        return np.stack([hashes[order], order.astype(np.uint64)])

    def page(self, page_id: str) -> str:
        """Return the text of a page; '' if unknown."""
        hashed = (int(row) for row in rows_with(self._rows, page_id))
        rows = [row for row in hashed if self._store[row].page_id == page_id]
        if isinstance(self._store, PassageStore):
            return self._store.join(rows)
        return "\n\n".join(self._store[row].text for row in rows)


class Pages(Combined):
    """The pages of its part's hits, in order; a passage without a page is kept unchanged."""

    def __init__(self, name: str, parts: Sequence[Retriever]) -> None:
        super().__init__(name, "pages", parts, {})
        self.prefix_stable = bool(getattr(parts[0], "prefix_stable", False))
        self._stores = [StoredPages(store) for store in passage_stores(name, parts)]

    def search(self, queries: Sequence[str], k: int) -> list[tuple[Hit, ...]]:
        """See Retriever. Passages of one page become one hit, so there may be fewer than ``k``."""
        return [tuple(self._whole(hits)) for hits in self.parts[0].search(queries, k)]

    def _whole(self, hits: Sequence[Hit]) -> list[Hit]:
        pages: dict[str, Hit] = {}
        for hit in hits:
            passage = hit.passage
            if not passage.page_id:
                pages[f"\0{passage.doc_id}"] = hit
            elif passage.page_id not in pages:
                texts = (store.page(passage.page_id) for store in self._stores)
                text = next(filter(None, texts), passage.text)
                whole = Passage(passage.page_id, text, passage.title, passage.page_id)
                pages[passage.page_id] = Hit(whole, hit.score)
        return list(pages.values())


@COMBINATIONS.register("pages", parts=(1, 1), form={})
def pages(name: str, parts: Sequence[Retriever], settings: Json) -> Pages:
    """The whole pages of the passages found by a retriever: the baseline 'long context'."""
    return Pages(name, parts)
