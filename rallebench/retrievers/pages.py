"""Whole documents in place of passages, for models with a long context.

::

    pages:my-index            of the passages that my-index finds, the pages that they stand on, each once and whole
    pages:(rrf:mine,other)    the same of a combination

k counts the passages that are looked at, so there are at most so many pages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from rallebench.core.types import Hit, Passage
from rallebench.corpora.columns import rows_with, stable_hash
from rallebench.corpora.store import PassageStore
from rallebench.retrievers import COMBINATIONS, Retriever
from rallebench.retrievers._parts import Combined
from rallebench.retrievers.references import stores_of


class StoredPages:
    """The pages of a store by their ids; the store is read once, at the first search, and 16 bytes a passage are held."""

    def __init__(self, store: Sequence[Passage] | PassageStore) -> None:
        self._store = store

    @cached_property
    def _rows(self) -> Any:
        """(2, n): the sorted hashes of page ids, and their rows."""
        hashes = np.fromiter(
            (stable_hash(passage.page_id) for passage in self._store), np.uint64, len(self._store)
        )
        order = np.argsort(hashes, kind="stable")
        return np.stack([hashes[order], order.astype(np.uint64)])

    def page(self, page_id: str) -> str:
        """The text of a page, '' if it has none here."""
        hashed = (int(row) for row in rows_with(self._rows, page_id))
        rows = [row for row in hashed if self._store[row].page_id == page_id]
        if isinstance(self._store, PassageStore):
            return self._store.join(rows)
        return "\n\n".join(self._store[row].text for row in rows)


class Pages(Combined):
    """The pages of the passages that its part finds, in their order; a passage without a page stays as it is."""

    def __init__(self, name: str, parts: Sequence[Retriever]) -> None:
        super().__init__(name, "pages", parts, {})
        self.prefix_stable = bool(getattr(parts[0], "prefix_stable", False))
        self._stores = [StoredPages(store) for store in stores_of(name, parts)]

    def search(self, queries: Sequence[str], k: int) -> list[tuple[Hit, ...]]:
        """See Retriever. Passages of one page make one hit, so there may be fewer than ``k``."""
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
def pages(name: str, parts: Sequence[Retriever], settings: Mapping[str, Any]) -> Pages:
    """The whole pages of the passages that a retriever finds: the baseline 'long context'."""
    return Pages(name, parts)
