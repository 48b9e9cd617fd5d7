"""A program that measures the memory and time of one index in its own process. It reads a ProbeJob and prints a Measurement
per line."""

from __future__ import annotations

import base64
import importlib
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from rallebench.core import memory
from rallebench.core.json_values import object_json
from rallebench.core.settings import fill
from rallebench.core.types import Json, Passage
from rallebench.corpora.store import PassageStore
from rallebench.datasets.reading import read_questions
from rallebench.engine.measure import run_program
from rallebench.experiments.tradeoff.measurements import Measurement, ProbeJob
from rallebench.vector_indexes import VECTOR_INDEXES
from rallebench.workspace.entries import read_manifest
from rallebench.workspace.indexes.checks import check_index
from rallebench.workspace.opening import Encoders, open_combination, open_llm, open_retriever
from rallebench.workspace.paths import WorkspaceFolder

LIBRARIES = ("numpy", "bm25s", "faiss", "hnswlib")
"""Modules to import, if installed, before memory is first measured, since code is not part of an index."""
MODULES: Mapping[str, str] = {"faiss-cpu": "faiss"}
"""Package → module, if the names differ."""

SINGLE_SECONDS = 10.0
"""The time limit for queries sent one by one, in seconds; a slow index is timed on fewer queries."""

Search = Callable[[Sequence[int]], "list[list[Passage]]"]


def search_costs(request: Json) -> Iterator[Json]:
    """Yield one line for each search setting of the ProbeJob in ``request``."""
    job = fill(ProbeJob, request)
    for library in _libraries(job):
        with suppress(ImportError):
            importlib.import_module(library)
    memory.release()
    before = memory.rss_bytes()
    count = len(job.texts)
    open_index = _vectors if job.vectors else _retriever
    with_settings = open_index(job)
    for number, knobs in enumerate(job.settings, 1):
        search = with_settings(knobs)
        hits = search(range(count))
        yield {"progress": f"measuring setting {number} of {len(job.settings)}"}
        yield object_json(
            Measurement(
                knobs,
                [[passage.doc_id for passage in passages] for passages in hits],
                [[passage.page_id for passage in passages] for passages in hits],
                _single_ms(search, count),
                min(_batch_ms(search, count, job.batch) for _ in range(job.rounds)),
                max(0, memory.rss_bytes() - before),
            )
        )


def _libraries(job: ProbeJob) -> Sequence[str]:
    """The packages used to search this index, including those of all parts of a combination."""
    if not job.vectors:
        return LIBRARIES
    kind = read_manifest(WorkspaceFolder(Path(job.workspace)).indexes / job.index).kind
    packages = VECTOR_INDEXES.entry(kind).traits["packages"]
    modules = [MODULES.get(package, package.replace("-", "_")) for package in packages]
    return ["numpy", *modules]


def _vectors(job: ProbeJob) -> Callable[[Json], Search]:
    """An index over vectors, queried by vectors to exclude the encoder."""
    import numpy as np

    folder = WorkspaceFolder(Path(job.workspace)).indexes / job.index
    manifest = read_manifest(folder)
    check_index(folder, manifest)
    index = VECTOR_INDEXES[manifest.kind].load(folder)
    store = PassageStore(folder)
    vectors = np.frombuffer(base64.b64decode(job.vectors or ""), dtype=np.float32)
    queries = vectors.reshape(len(job.texts), -1)
    k = min(job.k, len(store))

    def with_knobs(knobs: Json) -> Search:
        def search(positions: Sequence[int]) -> list[list[Passage]]:
            _, rows = index.search(queries[list(positions)], k, **knobs)
            return [[store[int(row)] for row in nearest if row >= 0] for nearest in rows]

        return search

    return with_knobs


def _retriever(job: ProbeJob) -> Callable[[Json], Search]:
    """Any other retriever, queried by texts."""
    retriever = _open(WorkspaceFolder(Path(job.workspace)), job.index, Encoders())
    texts = job.texts

    def with_knobs(knobs: Json) -> Search:
        other = retriever.with_knobs(job.index, knobs) if knobs else retriever

        def search(positions: Sequence[int]) -> list[list[Passage]]:
            rows = other.search([texts[i] for i in positions], job.k)
            return [[hit.passage for hit in hits] for hits in rows]

        return search

    return with_knobs


def _open(workspace: WorkspaceFolder, name: str, encoders: Encoders) -> Any:
    """Open an index, or a combination with all its parts."""
    entry = workspace.retriever(name)
    if entry is None:
        return list(open_retriever(workspace, name, encoders))[-1]
    parts = [_open(workspace, part, encoders) for part in entry.of]
    model, dataset = entry.settings.get("llm"), entry.settings.get("questions")
    llm = open_llm(model, workspace.llm(model), workspace.cache) if model else None
    examples = read_questions(workspace.dataset(dataset)[1]) if dataset else ()
    return open_combination(name, entry, parts, llm, examples)


def _single_ms(search: Search, count: int) -> float:
    taken: list[float] = []
    deadline = time.monotonic() + SINGLE_SECONDS
    for position in range(count):
        started = time.perf_counter()
        search([position])
        taken.append((time.perf_counter() - started) * 1000)
        if time.monotonic() > deadline:
            break
    return statistics.median(taken)


def _batch_ms(search: Search, count: int, size: int) -> float:
    started = time.perf_counter()
    for first in range(0, count, size):
        search(range(first, min(first + size, count)))
    return (time.perf_counter() - started) * 1000 / count


if __name__ == "__main__":
    raise SystemExit(run_program(search_costs))
