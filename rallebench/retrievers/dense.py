"""Dense retrieval: an encoder and a vector index (Karpukhin et al. 2020, arXiv:2004.04906)."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np

from rallebench.core.errors import MismatchError
from rallebench.core.types import Hit, Json, digest
from rallebench.corpora.store import PassageStore
from rallebench.encoders import Encoder, Role
from rallebench.encoders.checking import unit
from rallebench.retrievers._parts import Indexed
from rallebench.vector_indexes import VectorIndex, Vectors


class Dense(Indexed):
    """A loaded dense index with the encoder that it was built with."""

    titled = False

    def __init__(
        self, name: str, store: PassageStore, index: VectorIndex, encoder: Encoder, fingerprint: str
    ) -> None:
        super().__init__(name, fingerprint, store)
        self.scale = f"inner product, {encoder.fingerprint}"
        self.prefix_stable = index.exact
        self._index, self._encoder = index, encoder
        self._knobs: dict[str, Any] = {}

    def with_knobs(self, name: str, knobs: Json) -> Dense:
        """Return the same open index with other search settings such as ``ef_search``; the files still belong to this one."""
        other = copy.copy(self)
        other.name, other._knobs = name, {**self._knobs, **knobs}
        other.fingerprint = digest([self.fingerprint, other._knobs])[:12]
        other.close = lambda: None  # type: ignore[method-assign]
        return other

    def with_query_encoder(self, encoder: Encoder, how: str) -> Dense:
        """Return the same open index with queries encoded by a differently loaded model; ``how`` describes the
        difference.
        """
        if encoder.fingerprint != self._encoder.fingerprint:
            raise MismatchError(
                f"The index {self.name!r} was built with the encoder {self._encoder.fingerprint!r}; its queries cannot "
                f"be encoded with {encoder.fingerprint!r}."
            )
        other = self.with_knobs(self.name, {})
        other._encoder = encoder
        other.fingerprint = digest([self.fingerprint, how])[:12]
        return other

    @property
    def encoder_name(self) -> str:
        return self._encoder.name

    def search(self, queries: Sequence[str], k: int) -> list[tuple[Hit, ...]]:
        asked_rows = [i for i, query in enumerate(queries) if query.strip()]
        results: list[tuple[Hit, ...]] = [()] * len(queries)
        if not asked_rows:
            return results
        vectors = self._encoder.encode([queries[i] for i in asked_rows], role="query")
        for i, hits in zip(asked_rows, self.nearest(vectors, k)):
            results[i] = hits
        return results

    def nearest(self, vectors: Vectors, k: int) -> list[tuple[Hit, ...]]:
        """Return the hits of encoded queries, best first."""
        scores, rows = self._index.search(vectors, min(k, len(self.passages)), **self._knobs)
        return [
            tuple(
                Hit(self.passages[int(row)], float(score))
                for score, row in zip(row_scores, row_ids)
                if row >= 0
            )
            for row_scores, row_ids in zip(scores, rows)
        ]

    def search_means(
        self, groups: Sequence[Sequence[tuple[str, Role]]], k: int
    ) -> list[tuple[Hit, ...]]:
        """Return the hits of the mean vector of each group of texts, scaled to unit length; none for an empty group."""
        texts = [
            (number, text, role) for number, group in enumerate(groups) for text, role in group
        ]
        sums = np.zeros((len(groups), self._encoder.dim), dtype=np.float32)
        roles: tuple[Role, ...] = ("query", "passage")
        for role in roles:
            some = [(number, text) for number, text, own in texts if own == role]
            if some:
                vectors = self._encoder.encode([text for _, text in some], role=role)
                np.add.at(sums, [number for number, _ in some], vectors)
        filled = [number for number, group in enumerate(groups) if group]
        results: list[tuple[Hit, ...]] = [()] * len(groups)
        for number, hits in zip(filled, self.nearest(unit(sums[filled]), k) if filled else ()):
            results[number] = hits
        return results

    def embedding_tokens(self, queries: Sequence[str]) -> list[int | None]:
        """Return the number of tokens that the encoder reads per query; a blank query is not encoded."""
        count = getattr(self._encoder, "count_tokens", None)
        texts = [query for query in queries if query.strip()]
        counts = iter(count(texts) if count else [None] * len(texts))
        return [next(counts) if query.strip() else 0 for query in queries]

    def close(self) -> None:
        self._index.close()
        super().close()
