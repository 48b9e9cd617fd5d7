"""Inverted file with 8-bit codes, small in memory; the best are re-ranked by the exact vectors on disk.

Inverted file: Jégou et al. 2011, doi:10.1109/TPAMI.2010.57; codes and search: Faiss (arXiv:2401.08281);
lists much farther than the nearest are skipped, as in SPANN (Chen et al. 2021, arXiv:2111.08566).
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rallebench.core.settings import Setting
from rallebench.vector_indexes import VECTOR_INDEXES, Build, Neighbours, Vectors
from rallebench.vector_indexes.faiss_index import PACKAGES, THREADS, adding, faiss, read, write
from rallebench.vector_indexes.faiss_index import threads as threads_of
from rallebench.vector_indexes.stored_vectors import (
    StoredRows,
    add_in_pieces,
    damaged_file,
    keep,
    pieces,
    sample,
)

FILE = "ivf-sq8.faiss"
NPROBE, REACH, RERANK = 64, 0.4, 2
AT_ONCE = 250
"""Queries per batch; their distances to all centres take memory."""
MARGIN = 6.0
"""Rounding errors, in standard deviations, within which a candidate may still be among the best."""
SEED, ITERATIONS = 1234, 10
PER_LIST, TRAINED_ON = 39, 64
"""Minimum vectors per list (Faiss asks for 39), and vectors per list on which the centres are trained."""

SETTINGS = {
    "nlist": Setting(
        int,
        0,
        0,
        10_000_000,
        about="number of lists; 0 = 4 √n, but at least 39 vectors per list",
    ),
    "threads": THREADS,
}
KNOBS = {
    "nprobe": Setting(
        int,
        NPROBE,
        1,
        10_000_000,
        about="maximum lists searched per query",
        sweep=(2, 8, 32, 128),
    ),
    "reach": Setting(
        float,
        REACH,
        0.0,
        1000.0,
        about="skip lists whose centre is farther than 1 + this times the nearest (squared distances)",
    ),
    "rerank": Setting(
        int, RERANK, 1, 1000, about="candidates scored exactly, per requested passage"
    ),
}


def lists_for(count: int) -> int:
    """Return the default number of lists for ``count`` vectors.

    >>> [lists_for(n) for n in (1, 40, 1000, 200_000)]
    [1, 1, 25, 1788]
    """
    return max(1, min(int(4 * count**0.5), count // PER_LIST))


@VECTOR_INDEXES.register(
    "ivf-sq8",
    form=SETTINGS,
    search_form=KNOBS,
    memory_factors=(2.5, 1.0),
    vector_bytes=1,
    packages=PACKAGES,
)
class IvfSq8:
    """Faiss IVF with 8-bit codes, re-ranked exactly: a quarter of flat's memory, faster than HNSW."""

    exact = False

    @staticmethod
    def build(folder: Path, vectors: Any, *, nlist: int = 0, threads: int = 0) -> Build:
        """Write ``ivf-sq8.faiss`` and ``vectors.npy``. The centres are trained on a sample with a fixed seed."""
        package, (count, dim) = faiss(), vectors.shape
        nlist = min(nlist or lists_for(count), count)
        quantizer = package.IndexFlatIP(int(dim))
        form = (package.ScalarQuantizer.QT_8bit, package.METRIC_INNER_PRODUCT)
        index = package.IndexIVFScalarQuantizer(quantizer, int(dim), nlist, *form)
        index.cp.seed, index.cp.niter = SEED, ITERATIONS
        index.cp.min_points_per_centroid = 1
        yield 0, count
        learnt_from = sample(vectors, max(TRAINED_ON * nlist, 10_000), SEED)
        for _ in pieces(learnt_from):  # raises for values that are not numbers
            pass
        with threads_of(threads):
            index.train(learnt_from)
        yield from add_in_pieces(vectors, adding(index, threads))
        write(index, folder / FILE)
        keep(folder, vectors)
        return {"nlist": nlist, "threads": threads}

    @classmethod
    def load(cls, folder: Path) -> IvfSq8:
        index, rows = read(folder / FILE), StoredRows(folder)
        if rows.shape != (index.ntotal, index.d):
            rows.close()
            reason = f"it has {index.ntotal} vectors, but the file beside it {rows.shape[0]}"
            raise damaged_file(folder / FILE, reason)
        return cls(index, rows)

    def __init__(self, index: Any, rows: StoredRows) -> None:
        self._index, self._rows = index, rows
        self._quantizer = faiss().downcast_index(index.quantizer)
        codes = faiss().vector_to_array(self._quantizer.codes)
        centres = codes.view(np.float32).reshape(index.nlist, index.d)
        self._norms = np.einsum("cd,cd->c", centres, centres)
        # Faiss stores the minimum and the range of every dimension; a code rounds by up to half a step.
        steps = faiss().vector_to_array(index.sq.trained)[index.d :] / 255
        self._rounding = (steps * steps / 12).astype(np.float32)
        self._turn = threading.Lock()

    def search(
        self,
        vectors: Vectors,
        k: int,
        *,
        nprobe: int = NPROBE,
        reach: float = REACH,
        rerank: int = RERANK,
    ) -> Neighbours:
        """Return scores (q, k) best first and rows (q, k), −1 = none; the scores are exact."""
        total = self._index.ntotal
        most = min(k * rerank, total)
        near = np.empty((len(vectors), most), dtype=np.int64)
        about = np.empty((len(vectors), most), dtype=np.float32)
        for start in range(0, len(vectors), AT_ONCE):
            some = slice(start, start + AT_ONCE)
            about[some], near[some] = self._probe(vectors[some], most, nprobe, reach)
        for lists in (
            nprobe,
            self._index.nlist if k >= total else 0,
        ):  # k covers all vectors: search every list
            short = np.flatnonzero(near[:, min(k, most) - 1] < 0)
            if lists and len(short):
                about[short], near[short] = self._probe(vectors[short], most, lists, np.inf)
        near[self._hopeless(vectors, about, k)] = -1
        return self._rows.best(vectors, near, k)

    def _probe(self, vectors: Vectors, most: int, nprobe: int, reach: float) -> Neighbours:
        """Return the best by their codes, from the lists within reach."""
        nprobe = min(nprobe, self._index.nlist)
        products, lists = self._quantizer.search(vectors, nprobe)
        lengths = np.einsum("qd,qd->q", vectors, vectors)
        distances = np.maximum(lengths[:, None] + self._norms[lists] - 2 * products, 0)
        lists[distances > (1 + reach) * distances.min(axis=1, keepdims=True)] = -1
        with self._turn:  # Faiss reads the number of lists from the index here
            self._index.nprobe = nprobe
            best: Neighbours = self._index.search_preassigned(vectors, most, lists, products)
        return best

    def _hopeless(self, vectors: Vectors, about: Vectors, k: int) -> NDArray[np.bool_]:
        """Return the candidates that are too far behind the k-th to be explained by rounding of the codes.

        The rounding error of a dimension is uniform, so a score's has the variance Σ q² step² / 12.
        """
        deviation = np.sqrt((vectors * vectors) @ self._rounding)
        last = about[:, min(k, about.shape[1]) - 1]
        worst: NDArray[np.bool_] = about < (last - MARGIN * deviation)[:, None]
        return worst

    def close(self) -> None:
        self._index = None
        self._rows.close()
