"""Every vector index as a kind of index."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rallebench.core.errors import MismatchError
from rallebench.core.types import Json
from rallebench.corpora.store import PassageStore
from rallebench.retrievers import INDEX_KINDS, Passages
from rallebench.retrievers.dense import Dense
from rallebench.vector_indexes import VECTOR_INDEXES, Build, VectorIndexKind


class DenseKind:
    """A vector index as an index kind: built from the passages' vectors, searched with the query's vector."""

    def __init__(self, kind: VectorIndexKind) -> None:
        self._kind = kind

    def build(self, folder: Path, passages: Passages, vectors: Any, settings: Json) -> Build:
        return self._kind.build(folder, vectors, **settings)

    def open(self, name: str, folder: Path, manifest: Any, encoder: Any) -> Dense:
        """Open the index with the encoder it was built with. Raises MismatchError for another encoder."""
        if encoder.fingerprint != manifest.encoder:
            raise MismatchError(
                f"The index {name!r} was built with the encoder {manifest.encoder!r} ({manifest.dim} dimensions), you chose "
                f"{encoder.fingerprint!r} ({encoder.dim}); choose that encoder or build the index again."
            )
        index = self._kind.load(folder)
        return Dense(name, PassageStore(folder), index, encoder, manifest.fingerprint)


def _register_all() -> None:
    for name in VECTOR_INDEXES.names():
        index = VECTOR_INDEXES.entry(name)
        INDEX_KINDS.register(
            name, about=index.about, form=index.form, needs_encoder=True, **index.traits
        )(DenseKind(index.value))


_register_all()
