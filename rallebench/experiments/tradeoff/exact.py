"""A program that encodes the questions and finds their exact nearest passages, the reference for measuring indexes.

It reads an ExactJob and prints ExactNeighbours.
"""

from __future__ import annotations

import base64
import statistics
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rallebench.core.arrays import load_array
from rallebench.core.entries import Manifest
from rallebench.core.errors import RalleError
from rallebench.core.json_values import object_json
from rallebench.core.settings import fill
from rallebench.core.types import Json
from rallebench.corpora.store import PassageStore
from rallebench.encoders.references import open_encoder
from rallebench.engine.measure import run_program
from rallebench.experiments.tradeoff.measurements import ExactJob, ExactNeighbours
from rallebench.vector_indexes import VECTOR_INDEXES
from rallebench.workspace.indexes.checks import check_index
from rallebench.workspace.indexes.vectors import VECTORS, complete_vectors
from rallebench.workspace.paths import WorkspaceFolder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ENCODE_SAMPLE = 20
PIECE = 16_384
"""Number of vectors compared at once."""
TIES, TIE = 16, 1e-6
"""The most passages that may tie with the k-th nearest, and the float32 difference within which inner products tie."""
EXACT_KINDS = frozenset({"flat", "numpy-flat"})


def neighbours(request: Json) -> Iterator[Json]:
    """Run the program for the ExactJob in ``request``: yield progress, then the neighbours."""
    import numpy as np

    job = fill(ExactJob, request)
    workspace, texts = WorkspaceFolder(Path(job.workspace)), job.texts
    manifest = workspace.manifests()[job.index]
    yield {"progress": f"encoding {len(texts)} questions with {manifest.encoder_name}"}
    encoder = open_encoder(manifest.encoder_name)
    queries = np.asarray(encoder.encode(texts, role="query"), dtype=np.float32)
    seconds = []
    for text in texts[:ENCODE_SAMPLE]:
        started = time.perf_counter()
        encoder.encode([text], role="query")
        seconds.append(time.perf_counter() - started)
    yield {"progress": "exact neighbours"}
    nearest = nearest_ids(workspace, manifest, queries, job.k)
    yield object_json(
        ExactNeighbours(
            base64.b64encode(queries.tobytes()).decode(),
            statistics.median_high(seconds) * 1000,
            None if nearest is None else [sorted(ids) for ids in nearest],
        )
    )


def nearest_ids(
    workspace: WorkspaceFolder, manifest: Manifest, queries: NDArray[np.float32], k: int
) -> list[set[str]] | None:
    """The ids of the k nearest passages of each query, from an exact index over the same vectors, else from stored vectors."""
    alike = {
        name: other
        for name, other in workspace.manifests().items()
        if (other.corpus_sha256, other.encoder) == (manifest.corpus_sha256, manifest.encoder)
    }
    for name, other in alike.items():
        if other.kind in EXACT_KINDS:
            with suppress(RalleError):  # a damaged index is reported by its own measurement
                return _by_index(workspace.indexes / name, other, queries, k)
    return _by_stored_vectors(workspace, alike, queries, k)


def _by_index(
    folder: Path, manifest: Manifest, queries: NDArray[np.float32], k: int
) -> list[set[str]]:
    check_index(folder, manifest)
    with (
        closing(PassageStore(folder)) as store,
        closing(VECTOR_INDEXES[manifest.kind].load(folder)) as index,
    ):
        return _with_ties(store, *index.search(queries, min(k + TIES, len(store))), k)


def _by_stored_vectors(
    workspace: WorkspaceFolder, alike: Mapping[str, Manifest], queries: NDArray[np.float32], k: int
) -> list[set[str]] | None:

    import numpy as np

    name, manifest = next(iter(alike.items()))
    cached = complete_vectors(workspace.vectors, manifest.corpus_sha256, manifest.encoder)
    beside = [workspace.indexes / other / VECTORS for other in alike]
    path = next((path for path in [*cached, *beside] if path.is_file()), None)
    if path is None:
        return None
    with closing(PassageStore(workspace.indexes / name)) as store:
        vectors = load_array(path, np.float32, 2)
        return _with_ties(store, *nearest_rows(vectors, queries, min(k + TIES, len(store))), k)


def _with_ties(store: PassageStore, scores: Any, rows: Any, k: int) -> list[set[str]]:
    """The ids of the k nearest passages, and of all passages that tie with the last one."""
    last = scores[:, min(k, scores.shape[1]) - 1]
    return [
        {store[int(row)].doc_id for row, score in zip(nearest, values) if score >= least - TIE}
        for nearest, values, least in zip(rows, scores, last)
    ]


def nearest_rows(
    vectors: NDArray[np.float32], queries: NDArray[np.float32], k: int
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """The largest inner products with (n, dim) vectors, and their rows, both (q, k), best first. The vectors are read in
    pieces."""
    import numpy as np

    best = np.full((len(queries), 0), 0.0, dtype=np.float32)
    rows = np.zeros((len(queries), 0), dtype=np.int64)
    for start in range(0, len(vectors), PIECE):
        scores = queries @ np.asarray(vectors[start : start + PIECE]).T
        numbers = np.broadcast_to(np.arange(start, start + scores.shape[1]), scores.shape)
        best, rows = np.concatenate([best, scores], axis=1), np.concatenate([rows, numbers], axis=1)
        order = np.argsort(-best, axis=1, kind="stable")[:, :k]
        best, rows = (
            np.take_along_axis(best, order, axis=1),
            np.take_along_axis(rows, order, axis=1),
        )
    return best, rows


if __name__ == "__main__":
    raise SystemExit(run_program(neighbours))
