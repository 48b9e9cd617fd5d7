"""Learned sparse retrieval: an inverted index of the term weights that a SPLADE model gives, searched exactly.

Formal, Piwowarski and Clinchant 2021, arXiv:2107.05720. The weights of each term stand together, with the rows of their
passages, in arrays that are memory-mapped; a query reads only the lists of its own terms.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rallebench.core.arrays import load_array
from rallebench.core.errors import BackendError
from rallebench.core.settings import dataclass_form
from rallebench.core.types import Hit, Json
from rallebench.corpora.store import PassageStore
from rallebench.retrievers import INDEX_KINDS, Passages
from rallebench.retrievers._parts import Indexed
from rallebench.retrievers._sentence_models import (
    MODEL,
    PassageModelSettings,
    check_dimension,
    check_model,
    damaged_array,
    read_model_settings,
)
from rallebench.retrievers._sparse_encoder import SparseEncoder, sparse_encoder
from rallebench.vector_indexes.stored_vectors import rank

FOLDER = "splade"
PIECE = 256
"""Passages encoded at once."""

ENTRIES = 4_000_000
"""Weights sorted at once while the index is inverted."""


@dataclass(frozen=True, slots=True)
class TermLists:
    """The list of each term: ``starts`` int64 (terms + 1), ``rows`` int32 of its passages, their ``weights`` float32."""

    starts: NDArray[np.int64]
    rows: NDArray[np.int32]
    weights: NDArray[np.float32]


class Splade(Indexed):
    """A loaded index. ``scale``: scores of the same model can be merged."""

    titled = True
    prefix_stable = True
    no_match = 0.0
    """Score of a passage that shares no term with the query."""

    def __init__(
        self, name: str, folder: Path, fingerprint: str, encoder: SparseEncoder, lists: TermLists
    ) -> None:
        super().__init__(name, fingerprint, PassageStore(folder))
        self.scale = f"sparse {encoder.fingerprint}"
        self._encoder, self._lists = encoder, lists

    def search(self, queries: Sequence[str], k: int) -> list[tuple[Hit, ...]]:
        """Return hits best first; ties go to the earlier passage. A query without any weight has no hits; for any other,
        passages without a common term come last with score 0, so that k beyond the corpus returns all.
        """
        filled = [number for number, query in enumerate(queries) if query.strip()]
        results: list[tuple[Hit, ...]] = [()] * len(queries)
        encoded = self._encoder.encode([queries[number] for number in filled], role="query")
        for place, number in enumerate(filled):
            terms, weights = encoded.row(place)
            if len(terms):
                results[number] = ranked_hits(self.passages, self._all_scores(terms, weights), k)
        return results

    def _all_scores(self, terms: NDArray[Any], weights: NDArray[Any]) -> NDArray[np.float32]:
        """Return float32 (passages,): inner products, added in the order of the terms."""
        total = np.zeros(len(self.passages), dtype=np.float32)
        lists = self._lists
        for term, weight in zip(terms.tolist(), weights):
            some = slice(int(lists.starts[term]), int(lists.starts[term + 1]))
            # a passage stands once in a term's list
            total[lists.rows[some]] += weight * lists.weights[some]
        return total


def ranked_hits(passages: PassageStore, scores: NDArray[np.float32], k: int) -> tuple[Hit, ...]:
    """Return the k best of all passages by their scores, best first; ties go to the earlier passage."""
    k = min(k, len(scores))
    if not k:
        return ()
    # all ties with the k-th are candidates, so that ties are cut in corpus order
    rows = np.flatnonzero(scores >= np.partition(scores, -k)[-k])
    best, best_rows = rank(scores[rows][None], rows[None], k)
    return tuple(
        Hit(passages[row], score) for row, score in zip(best_rows[0].tolist(), best[0].tolist())
    )


def _open(folder: Path, passages: int) -> TermLists:
    """Return the lists of an index, memory-mapped. Raises BadFileError for damaged ones."""
    starts = load_array(folder / "starts.npy", np.int64, 1)
    rows = load_array(folder / "rows.npy", np.int32, 1)
    weights = load_array(folder / "weights.npy", np.float32, 1)
    counted = load_array(folder / "passages.npy", np.int64, 1)
    if not (
        len(starts) and starts[-1] == len(rows) == len(weights) and counted.tolist() == [passages]
    ):
        raise damaged_array(folder)
    return TermLists(starts, rows, weights)


class SpladeKind:
    """Passages by the term weights of a model."""

    def build(
        self, folder: Path, passages: Passages, vectors: Any, settings: Json
    ) -> Generator[tuple[int, int], None, dict[str, Any]]:
        """Encode ``"{title}, {text}"`` of the passages into ``folder``; return the parameters."""
        encoder = sparse_encoder(folder.name, PassageModelSettings(**settings))
        inverted = folder / FOLDER
        inverted.mkdir()
        counts = np.zeros(encoder.dim, dtype=np.int64)
        lengths: list[NDArray[np.int64]] = []
        with open(inverted / "terms.part", "wb") as terms, open(inverted / "own.part", "wb") as own:
            for start in range(0, len(passages), PIECE):
                yield start, len(passages)
                some = [passages[row] for row in range(start, min(start + PIECE, len(passages)))]
                texts = [f"{passage.title}, {passage.text}" for passage in some]
                piece = encoder.encode(texts, role="passage")
                counts += np.bincount(piece.terms, minlength=encoder.dim)
                lengths.append(np.diff(piece.starts))
                terms.write(piece.terms.astype("<i4").tobytes())
                own.write(piece.weights.astype("<f4").tobytes())
        if not counts.any():
            raise BackendError(
                f"The model {encoder.name} gave no passage any weight, so nothing could be found; choose another model."
            )
        invert(inverted, np.concatenate(lengths), counts)
        yield len(passages), len(passages)
        return {**settings, MODEL: encoder.fingerprint}

    def open(self, name: str, folder: Path, manifest: Any, encoder: Any = None) -> Splade:
        """Open the index with the model it was built with. Raises MismatchError for another one."""
        model = sparse_encoder(name, read_model_settings(manifest.parameters))
        lists = _open(folder / FOLDER, manifest.passages)
        check_dimension(name, "terms", len(lists.starts) - 1, model.name, model.dim)
        check_model(name, model.name, model.fingerprint, manifest.parameters)
        return Splade(name, folder, manifest.fingerprint, model, lists)


def invert(folder: Path, lengths: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
    """Turn the weights by passage in ``folder`` into lists by term, piece by piece, and remove the former.

    ``lengths``: number of weights of each passage; ``counts``: number of passages of each term.
    """
    starts = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=starts[1:])
    total = int(starts[-1])
    terms = np.memmap(folder / "terms.part", dtype="<i4", mode="r", shape=(total,))
    own = np.memmap(folder / "own.part", dtype="<f4", mode="r", shape=(total,))
    rows = _new_array(folder / "rows.npy", "<i4", total)
    weights = _new_array(folder / "weights.npy", "<f4", total)
    passage_starts = np.concatenate([[0], np.cumsum(lengths)])
    free = starts[:-1].copy()
    for start in range(0, total, ENTRIES):
        stop = min(start + ENTRIES, total)
        piece = np.asarray(terms[start:stop])
        order = np.argsort(piece, kind="stable")
        ordered = piece[order]
        first = np.searchsorted(ordered, ordered, side="left")
        places = free[ordered] + np.arange(len(ordered)) - first
        rows[places] = np.searchsorted(passage_starts, start + order, side="right") - 1
        weights[places] = own[start:stop][order]
        free += np.bincount(piece, minlength=len(counts))
    rows.flush()
    weights.flush()
    np.save(folder / "starts.npy", starts)
    np.save(folder / "passages.npy", np.array([len(lengths)], dtype=np.int64))
    del terms, own
    (folder / "terms.part").unlink()
    (folder / "own.part").unlink()


def _new_array(path: Path, dtype: str, count: int) -> Any:
    return np.lib.format.open_memmap(  # type: ignore[no-untyped-call]
        path, mode="w+", dtype=np.dtype(dtype), shape=(count,)
    )


INDEX_KINDS.register(
    "splade",
    about="term weights of a SPLADE model in an inverted index, exact",
    form=dataclass_form(PassageModelSettings),
    needs_encoder=False,
    needs_model=True,
    packages=("sentence-transformers", "numpy"),
    memory_factors=(1.0, 1.0),
    fixed_files=("starts.npy", "passages.npy"),
)(SpladeKind())
