"""One index in a process of its own: ``python -m rallebench.experiments.tradeoff.probe JOB.json`` prints one JSON line per setting.

The job: ``workspace``, ``index``, ``k``, ``texts`` and, for an index over vectors, ``vectors`` (an .npy file
of the encoded texts), ``settings`` (a list of knobs), ``batch``, ``rounds``. A line: ``knobs``, ``docs`` and
``pages`` (per query, best first), ``single_ms``, ``batch_ms``, ``ram``.
"""

from __future__ import annotations

import importlib
import json
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from rallebench.core import memory
from rallebench.core.errors import RalleError
from rallebench.core.types import Passage
from rallebench.corpora.store import PassageStore
from rallebench.services.models import Loads
from rallebench.vector_indexes import VECTOR_INDEXES
from rallebench.workspace.entries import read_manifest
from rallebench.workspace.indexes.checks import check_index
from rallebench.workspace.paths import Workspace

LIBRARIES = ("numpy", "bm25s", "faiss", "hnswlib")
"""Imported before memory is read for the first time, where they are installed: code is no index."""
MODULES: Mapping[str, str] = {"faiss-cpu": "faiss"}
"""Package → module, where the two have different names."""

SINGLE_SECONDS = 10.0
"""Time for queries asked one by one; a slow index is timed on fewer of them."""

Search = Callable[[Sequence[int]], "list[list[Passage]]"]


def main(path: str) -> int:
    """Run the job of a file. Errors are one JSON line with ``error``."""
    job = json.loads(Path(path).read_text(encoding="utf-8"))
    try:
        for line in answers(job):
            print(json.dumps(line), flush=True)
    except RalleError as error:
        print(json.dumps({"error": str(error)}), flush=True)
        return error.exit_code
    return 0


def answers(job: Mapping[str, Any]) -> Any:
    """Yield one line per setting of the job."""
    for library in _libraries(job):
        with suppress(ImportError):
            importlib.import_module(library)
    memory.release()
    before = memory.rss_bytes()
    count = len(job["texts"])
    open_index = _vectors if job.get("vectors") else _retriever
    searching = open_index(job)
    for knobs in job["settings"]:
        search = searching(knobs)
        found = search(range(count))
        yield {
            "knobs": knobs,
            "docs": [[passage.doc_id for passage in passages] for passages in found],
            "pages": [[passage.page_id for passage in passages] for passages in found],
            "single_ms": _single_ms(search, count),
            "batch_ms": min(_batch_ms(search, count, job["batch"]) for _ in range(job["rounds"])),
            "ram": max(0, memory.rss_bytes() - before),
        }


def _libraries(job: Mapping[str, Any]) -> Sequence[str]:
    """What searching this index imports: its kind's own packages, or those of any part of a combination."""
    if not job.get("vectors"):
        return LIBRARIES
    kind = read_manifest(Workspace(job["workspace"]).indexes / job["index"]).kind
    packages = VECTOR_INDEXES.entry(kind).traits["packages"]
    return [MODULES.get(package, package.replace("-", "_")) for package in packages]


def _vectors(job: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], Search]:
    """An index over vectors, asked with vectors: the encoder stays outside."""
    import numpy as np

    folder = Workspace(job["workspace"]).indexes / job["index"]
    manifest = read_manifest(folder)
    check_index(folder, manifest)
    index = VECTOR_INDEXES[manifest.kind]().load(folder)
    store, queries = PassageStore(folder), np.load(job["vectors"])
    k = min(job["k"], len(store))

    def with_knobs(knobs: Mapping[str, Any]) -> Search:
        def search(positions: Sequence[int]) -> list[list[Passage]]:
            _, rows = index.search(queries[list(positions)], k, **knobs)
            return [[store[int(row)] for row in found if row >= 0] for found in rows]

        return search

    return with_knobs


def _retriever(job: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], Search]:
    """Any other retriever, asked with texts."""
    loads = Loads(Workspace(job["workspace"]))
    for _ in loads.load(job["index"], "retriever"):
        pass
    retriever, texts = loads.backends.retrievers[job["index"]], job["texts"]

    def with_knobs(knobs: Mapping[str, Any]) -> Search:
        other = retriever.with_knobs(job["index"], knobs) if knobs else retriever

        def search(positions: Sequence[int]) -> list[list[Passage]]:
            rows = other.search([texts[i] for i in positions], job["k"])
            return [[hit.passage for hit in hits] for hits in rows]

        return search

    return with_knobs


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
    raise SystemExit(main(sys.argv[1]))
