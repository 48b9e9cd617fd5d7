"""The passages of one index, found by another that reads more, such as a context that a model wrote before each chunk.

::

    originals:my-contexts,my-index    searched in my-contexts, returned as they stand in my-index

Both hold the same passage ids. Prompts, gold and citations get the passages of the second.
"""

from __future__ import annotations

from collections.abc import Sequence

from rallebench.core.backends import Retriever
from rallebench.core.errors import MismatchError
from rallebench.core.types import Hit, Json, Passage
from rallebench.retrievers import COMBINATIONS
from rallebench.retrievers._parts import Combined
from rallebench.retrievers.references import passage_stores


class Originals(Combined):
    """The hits of the first part as passages of the second, with the first's ranks and scores."""

    def __init__(self, name: str, parts: Sequence[Retriever]) -> None:
        super().__init__(name, "originals", parts, {})
        searched, returned = parts
        self.titled = returned.titled
        self.prefix_stable = searched.prefix_stable
        self.scale = getattr(searched, "scale", "")
        if (floor := getattr(searched, "no_match", None)) is not None:
            self.no_match = floor
        self._stores = passage_stores(name, [returned])

    def search(self, queries: Sequence[str], k: int) -> list[tuple[Hit, ...]]:
        """Return at most k hits per query, best first. Raises MismatchError for a passage that the second part lacks."""
        lists = self.parts[0].search(queries, k)
        return [
            tuple(Hit(self._original(hit.passage), hit.score) for hit in hits) for hits in lists
        ]

    def page_ids(self) -> frozenset[str]:
        """Return every page id of the returned passages."""
        return frozenset[str]().union(*(store.page_ids() for store in self._stores))

    def _original(self, passage: Passage) -> Passage:
        for store in self._stores:
            row = store.find_row(passage.doc_id)
            if row is not None:
                return store[row]
        searched, returned = (part.name for part in self.parts)
        raise MismatchError(
            f"The passage {passage.doc_id!r} of {searched!r} is not in {returned!r}; {self.name!r} needs two indexes of the "
            "same chunks."
        )


@COMBINATIONS.register("originals", parts=(2, 2), form={})
def originals(name: str, parts: Sequence[Retriever], settings: Json) -> Originals:
    """Searched in the first index, returned from the second by passage id: chunks found by their contexts."""
    return Originals(name, parts)
