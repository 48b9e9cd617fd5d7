"""Vectors by text: a text encoded once serves every other corpus that contains it.

Besides the vectors of ``rallebench.workspace.indexes.vectors``, there is a *table of texts* per corpus,
``<texts>/<sha256 of the corpus>.npy``, uint64 (3, n): two halves of the sha256 of each passage's text, sorted by the
first, and the passage's row. Vectors are read from the finished shards themselves, after comparing a shard with its
sha256, so nothing is stored twice.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rallebench.core.arrays import load_array
from rallebench.core.errors import BadFileError
from rallebench.core.parts import unfinished_file
from rallebench.encoders import Batches, BulkEncoder, Encoder, Vectors
from rallebench.retrievers import Passages
from rallebench.workspace.indexes import vectors as stored
from rallebench.workspace.indexes.encoding import bulk
from rallebench.workspace.indexes.vectors import (
    PART,
    VECTORS,
    CachedVectors,
    kept_vectors,
    passage_text,
)

Table = NDArray[np.uint64]


def hashes(texts: Iterable[str]) -> Table:
    """Return uint64 (n, 2): the first 16 bytes of each text's sha256 as two numbers."""
    halves = [hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:16] for text in texts]
    return np.frombuffer(b"".join(halves), dtype="<u8").reshape(-1, 2)


def table_path(texts: Path, corpus_sha256: str) -> Path:
    """Return the path of a corpus's table."""
    return Path(texts) / f"{corpus_sha256}.npy"


def write_table(texts: Path, corpus_sha256: str, passages: Passages) -> None:
    """Write the table of a corpus unless it exists. Raises OSError."""
    path = table_path(texts, corpus_sha256)
    if path.exists():
        return
    pieces = []
    for first in range(0, len(passages), stored.SHARD):
        rows = range(first, min(first + stored.SHARD, len(passages)))
        pieces.append(hashes(passage_text(passages[row]) for row in rows))
    both = np.concatenate(pieces) if pieces else np.empty((0, 2), dtype="<u8")
    order = np.argsort(both[:, 0], kind="stable")
    with unfinished_file(path) as part:
        with open(part, "wb") as handle:
            np.save(handle, np.stack([both[order, 0], both[order, 1], order.astype(np.uint64)]))
        os.replace(part, path)


class _Source:
    """The finished vectors of one corpus."""

    def __init__(self, cached: CachedVectors, table: Path) -> None:
        self.folder = folder = cached.folder
        self._shards, self._total = cached.finished, cached.passages
        self.whole = cached.complete
        # A plain view, because reading a number through numpy's memmap class takes ten times as long.
        self._table: Table = np.asarray(load_array(table))
        file = folder / (VECTORS if (folder / VECTORS).exists() else PART)
        self._vectors: Vectors = np.asarray(load_array(file))
        shapes = (3, self._total), (self._total, cached.dim)
        if (self._table.shape, self._vectors.shape) != shapes:
            raise ValueError(f"{folder} and {table} do not belong together")
        self._sound: dict[int, bool] = {}

    def rows(self, keys: Table) -> NDArray[np.int64]:
        """Return (n,): the row of each text; -1 if it is absent or its shard is not finished."""
        rows = np.full(len(keys), -1, dtype=np.int64)
        first = np.searchsorted(self._table[0], keys[:, 0], side="left")
        for i, at in enumerate(first):
            while at < self._total and self._table[0, at] == keys[i, 0]:
                row = int(self._table[2, at])
                if self._table[1, at] == keys[i, 1] and row - row % stored.SHARD in self._shards:
                    rows[i] = row
                    break
                at += 1
        return rows

    def vector(self, row: int) -> Vectors | None:
        """Return the vector of a row; None if its shard is damaged."""
        first = row - row % stored.SHARD
        if first not in self._sound:
            piece = self._vectors[first : first + stored.SHARD].astype("<f4", copy=False).tobytes()
            self._sound[first] = hashlib.sha256(piece).hexdigest() == self._shards[first]
        return self._vectors[row] if self._sound[first] else None


def sources(
    cache: Path,
    texts: Path,
    fits: Callable[[CachedVectors], bool],
    before: Iterable[_Source] = (),
) -> Iterator[_Source]:
    """Yield the encoded texts of all corpora with a table whose cached vectors ``fits`` accepts.

    ``before``: results of an earlier call; complete ones are reused.
    """
    whole = {source.folder: source for source in before if source.whole}
    for cached in kept_vectors(cache):
        table = table_path(texts, cached.corpus_sha256)
        if cached.folder in whole:
            yield whole[cached.folder]
        elif table.exists() and fits(cached):
            # Damaged or being deleted: its texts are encoded again.
            with contextlib.suppress(BadFileError, OSError, ValueError):
                yield _Source(cached, table)


def is_encoded(cache: Path, texts: Path, encoder_name: str, keys: Table) -> NDArray[np.bool_]:
    """Return bool (n,): True for each text that the encoder of that name has encoded."""
    is_known = np.zeros(len(keys), dtype=bool)
    for source in sources(cache, texts, lambda cached: cached.encoder == encoder_name):
        is_known |= source.rows(keys) >= 0
    return is_known


class CachingEncoder:
    """An encoder that reuses the vectors in ``cache``.

    Queries are passed through. ``encoded``: number of passages it has actually encoded.
    """

    def __init__(self, encoder: Encoder, cache: Path, texts: Path) -> None:
        self._encoder, self._cache, self._texts = encoder, cache, texts
        self.name, self.dim, self.fingerprint = encoder.name, encoder.dim, encoder.fingerprint
        self.dtype = encoder.dtype if isinstance(encoder, BulkEncoder) else "float32"
        self.encoded = 0

    @property
    def fast_dtypes(self) -> tuple[str, ...]:
        return self._encoder.fast_dtypes if isinstance(self._encoder, BulkEncoder) else ()

    def encode(self, texts: Sequence[str], *, role: str) -> Vectors:
        return self._encoder.encode(texts, role="query" if role == "query" else "passage")

    def bulk(self, dtype: str) -> Callable[[Sequence[str]], Batches]:
        """Yield known texts first, in one batch; then the texts that must be encoded."""
        anew = bulk(self._encoder, dtype)
        opened: list[_Source] = []

        def fits(cached: CachedVectors) -> bool:
            return (cached.fingerprint, cached.dtype) == (self.fingerprint, dtype)

        def encode(texts: Sequence[str]) -> Batches:
            # Searched again each time, because shards of this corpus may have been finished since.
            opened[:] = sources(self._cache, self._texts, fits, tuple(opened))
            known = _read(opened, hashes(texts))
            if known:
                yield (
                    np.array(list(known), dtype=np.int64),
                    np.stack(list(known.values())),
                )
            left = np.array([row for row in range(len(texts)) if row not in known], dtype=np.int64)
            for rows, vectors in anew([texts[row] for row in left]) if len(left) else ():
                self.encoded += len(rows)
                yield left[rows], vectors

        return encode


def _read(opened: Sequence[_Source], keys: Table) -> dict[int, Vectors]:
    """Return position in ``keys`` → vector, for the texts that a source has."""
    vectors: dict[int, Vectors] = {}
    for source in opened:
        for place, row in enumerate(source.rows(keys)):
            if row >= 0 and place not in vectors:
                try:
                    vector = source.vector(int(row))
                except (OSError, ValueError):
                    break
                if vector is not None:
                    vectors[place] = vector
    return vectors
