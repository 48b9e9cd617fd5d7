"""Every kind of vector index: build time, size, recall@10, queries per second, memory, and what our layer adds.

Seeded unit vectors around centres: 200,000 of 384 dimensions in 2,000 clusters, or with ``--hard`` 50,000
whose clusters overlap. Every query is a vector of its own from the same clusters. "Bare" is the same work
by the library called directly, turn by turn with ours, by processor time in one thread. Memory is that of
a fresh process that opened an index and searched, less that of one that only imported the same packages.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import _report
from _report import Fact, Measure, Report
from _vectors import DIM, K, exact, recall, vectors

from rallebench.core.errors import MissingPackageError
from rallebench.core.events import complete
from rallebench.vector_indexes import VECTOR_INDEXES

KINDS = ("flat", "hnsw", "hnswlib", "ivf-sq8", "diskann", "diskann-memory")
SWEPT: Mapping[str, tuple[str, tuple[int, ...]]] = {
    "hnsw": ("ef_search", (16, 20, 24, 32, 64, 128, 256)),
    "hnswlib": ("ef_search", (16, 20, 24, 32, 64, 128, 256)),
    "ivf-sq8": ("nprobe", (4, 8, 16, 32, 64)),
    "diskann": ("complexity", (16, 32, 64, 100, 200)),
    "diskann-memory": ("complexity", (16, 32, 64, 100, 200)),
}
RECALL = {
    "flat": 0.9995,
    "hnsw": 0.99,
    "hnswlib": 0.99,
    "ivf-sq8": 0.95,
    "diskann": 0.95,
    "diskann-memory": 0.95,
}
MEMORY = {"ivf-sq8": 0.30, "diskann": 0.15}
GRAPH_BATCH, GRAPH_SINGLE = 8.0, 20.0
EXTRA_SHARE, EXTRA_MS = 0.05, 0.2
SWEEP_ROUNDS = 3


def bare(kind: str, index: Any, known: Any) -> Callable[[Any], Any]:
    """The library's own call for the answer that our index gives."""
    import numpy as np

    knobs = {
        name: knob.default
        for name, knob in VECTOR_INDEXES.entry(kind).traits["search_form"].items()
    }
    if kind == "hnswlib":
        index._index.set_ef(knobs["ef_search"])
        return lambda queries: index._index.knn_query(queries, K)
    if kind.startswith("diskann"):
        if not hasattr(index, "_graph"):  # too small for a graph
            return lambda queries: index._index.search(queries, K)
        more = {"beam_width": knobs["beam_width"]} if "beam_width" in knobs else {}
        return lambda queries: [
            index._graph[0].search(q, K, knobs["complexity"], **more) for q in queries
        ]
    import faiss

    if kind == "ivf-sq8":
        parameters = faiss.SearchParametersIVF(nprobe=knobs["nprobe"])

        def probed(queries: Any) -> Any:
            _, near = index._index.search(queries, K * knobs["rerank"], params=parameters)
            scores = np.einsum("qcd,qd->qc", known[near], queries)
            return np.take_along_axis(near, np.argsort(-scores, axis=1)[:, :K], axis=1)

        return probed
    if kind == "hnsw":
        parameters = faiss.SearchParametersHNSW(efSearch=knobs["ef_search"])
        return lambda queries: index._index.search(queries, K, params=parameters)
    return lambda queries: index._index.search(queries, K)


def compared(
    ours: Callable[[], Any], theirs: Callable[[], Any], rounds: int
) -> tuple[list[float], list[float]]:
    """Processor seconds of both, turn by turn."""
    took: tuple[list[float], list[float]] = ([], [])
    for number in range(rounds):
        for side in (0, 1) if number % 2 else (1, 0):
            took[side].append(_report.timed((ours, theirs)[side])[0].processor)
    return took


def memory(kind: str, folder: Path, queries_file: Path) -> dict[str, int]:
    """Bytes that opening and searching take beyond imports, in a fresh process: resident and anonymous."""
    command = [sys.executable, __file__, "--memory", kind, str(folder), str(queries_file)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env=_report.child_environment()
    )
    sizes: dict[str, int] = json.loads(done.stdout)
    return sizes


def memory_here(kind: str, folder: Path, queries_file: Path) -> dict[str, int]:
    """``memory`` as the fresh process measures it: a first tiny index pays for the imports."""
    import numpy as np

    queries = np.load(queries_file)
    with tempfile.TemporaryDirectory() as small:
        complete(VECTOR_INDEXES[kind].build(Path(small), queries[:5]))
        VECTOR_INDEXES[kind].load(Path(small)).search(queries[:5], 2)
    if kind.startswith("diskann"):
        __import__("diskannpy")
    before = _resident()
    index = VECTOR_INDEXES[kind].load(folder)
    for query in queries:
        index.search(query[None], K)
    index.search(queries, K)
    after = _resident()
    return {name: after[name] - before[name] for name in after}


def _resident() -> dict[str, int]:
    import psutil

    now = psutil.Process().memory_info()
    return {"resident": now.rss, "anonymous": now.rss - getattr(now, "shared", 0)}


def measure_kind(
    kind: str, folder: Path, known: Any, queries: Any, true: Any, rounds: int, singles: int
) -> tuple[dict[str, Any], list[Measure]]:
    """Build, compare, sweep: the row of the kind, and its measures."""
    place = folder / kind
    place.mkdir()
    started = time.perf_counter()
    took, _ = _report.timed(
        lambda: complete(VECTOR_INDEXES[kind].build(place, known, **_threads(kind)))
    )
    seconds = time.perf_counter() - started
    index = VECTOR_INDEXES[kind].load(place)
    share = recall(index.search(queries, K)[1], true)
    first = queries[:singles]
    batch, single, measures = against_bare(kind, index, known, queries, first, rounds)
    knob, values = SWEPT.get(kind, ("", ()))
    sweep = [
        swept(index, queries, first, true, min(rounds, SWEEP_ROUNDS), {knob: value})
        for value in values
    ]
    index.close()
    np_save(folder / "queries.npy", queries)
    row = {
        "build_seconds": seconds,
        "build_processor_seconds": took.processor,
        "bytes": sum(p.stat().st_size for p in place.iterdir()),
        "recall": share,
        "batch_qps": 1000 / batch,
        "single_qps": 1000 / single,
        **{
            f"{name}_bytes": size
            for name, size in memory(kind, place, folder / "queries.npy").items()
        },
        "sweep": sweep,
    }
    return row, [
        *measures,
        Measure(f"{kind}: recall@10", "", [share], least=RECALL[kind]),
    ]


def against_bare(
    kind: str, index: Any, known: Any, queries: Any, first: Any, rounds: int
) -> tuple[float, float, list[Measure]]:
    """Milliseconds a query in a batch and singly, and both beside the bare library."""
    direct = bare(kind, index, known)
    batch = compared(lambda: index.search(queries, K), lambda: direct(queries), rounds)
    single = compared(
        lambda: [index.search(first[i : i + 1], K) for i in range(len(first))],
        lambda: [direct(first[i : i + 1]) for i in range(len(first))],
        rounds,
    )
    per_batch, bare_batch = (1000 * min(side) / len(queries) for side in batch)
    per_single, bare_single = (1000 * min(side) / len(first) for side in single)
    measures = [
        Measure(
            f"{kind}: batch",
            "ms a query",
            [1000 * s / len(queries) for s in batch[0]],
            [1000 * s / len(queries) for s in batch[1]],
            "bare",
        ),
        Measure(
            f"{kind}: batch, best over bare's best",
            "times",
            [per_batch / bare_batch],
            most=1 + EXTRA_SHARE,
        ),
        Measure(
            f"{kind}: single",
            "ms a query",
            [1000 * s / len(first) for s in single[0]],
            [1000 * s / len(first) for s in single[1]],
            "bare",
        ),
        Measure(
            f"{kind}: single, best above bare's best",
            "ms",
            [per_single - bare_single],
            most=max(EXTRA_MS, EXTRA_SHARE * bare_single),
        ),
    ]
    return per_batch, per_single, measures


def swept(
    index: Any, queries: Any, first: Any, true: Any, rounds: int, knobs: dict[str, int]
) -> dict[str, Any]:
    """Recall and queries a second, in a batch and singly, with other search-time settings."""
    batch = [_report.timed(lambda: index.search(queries, K, **knobs)) for _ in range(rounds)]
    single = [
        _report.timed(
            lambda: [index.search(first[i : i + 1], K, **knobs) for i in range(len(first))]
        )
        for _ in range(rounds)
    ]
    return {
        **knobs,
        "recall": recall(batch[0][1][1], true),
        "batch_qps": len(queries) / min(took.processor for took, _ in batch),
        "single_qps": len(first) / min(took.processor for took, _ in single),
    }


def cheapest(row: Mapping[str, Any], least: float) -> Mapping[str, Any]:
    """The fastest setting that was swept and reaches this recall; the default where there is none."""
    fit = [point for point in row["sweep"] if point["recall"] >= least]
    return max(fit, key=lambda point: point["batch_qps"], default=row)


def np_save(path: Path, queries: Any) -> None:
    """Keep the queries for the fresh processes."""
    import numpy as np

    if not path.exists():
        np.save(path, queries)


def _threads(kind: str) -> dict[str, int]:
    return {"threads": _report.THREADS} if "threads" in VECTOR_INDEXES.entry(kind).form else {}


def against_flat(
    kind: str, row: Mapping[str, Any], flat: Mapping[str, Any], hard: bool
) -> list[Measure]:
    """The speed and memory of a kind over flat's."""
    measures = []
    if kind in ("hnsw", "hnswlib") and not hard:
        best = cheapest(row, RECALL[kind])
        measures += [
            Measure(
                f"{kind}: batch queries over flat's, recall {best['recall']:.3f}",
                "times",
                [best["batch_qps"] / flat["batch_qps"]],
                least=GRAPH_BATCH,
            ),
            Measure(
                f"{kind}: single queries over flat's, recall {best['recall']:.3f}",
                "times",
                [best["single_qps"] / flat["single_qps"]],
                least=GRAPH_SINGLE,
            ),
        ]
    if kind in MEMORY:
        share = row["resident_bytes"] / max(1, flat["resident_bytes"])
        measures.append(Measure(f"{kind}: memory over flat's", "times", [share], most=MEMORY[kind]))
    return measures


def between_kinds(rows: Mapping[str, Mapping[str, Any]], hard: bool) -> list[Measure]:
    """The kinds compared with each other: all with flat, ivf-sq8 with hnsw."""
    measures = []
    if flat := rows.get("flat"):
        for kind, row in rows.items():
            measures += against_flat(kind, row, flat, hard)
    if {"hnsw", "ivf-sq8"} <= rows.keys():
        compact, graph = (cheapest(rows[kind], RECALL["ivf-sq8"]) for kind in ("ivf-sq8", "hnsw"))
        faster = compact["batch_qps"] / graph["batch_qps"]
        measures.append(Measure("ivf-sq8: batch queries over hnsw's", "times", [faster], least=1.0))
    return measures


def lines(kind: str, row: Mapping[str, Any]) -> str:
    """A kind on one line, its sweep behind it."""
    swept = "; ".join(
        f"{name} {point[name]}: {point['recall']:.3f} at {point['batch_qps']:.0f}/s, {point['single_qps']:.0f} singly"
        for point in row["sweep"]
        for name in list(point)[:1]
    )
    return (
        f"{kind}: built in {row['build_seconds']:.1f} s ({row['build_processor_seconds']:.1f} s here), "
        f"{row['bytes'] / 2**20:.0f} MB on disk, {row['resident_bytes'] / 2**20:.0f} MB resident "
        f"({row['anonymous_bytes'] / 2**20:.0f} anonymous), recall {row['recall']:.4f}, {row['batch_qps']:.0f}/s in a batch, "
        f"{row['single_qps']:.0f}/s singly" + (f". {swept}" if swept else "")
    )


def measure(folder: Path, arguments: argparse.Namespace, query_count: int, singles: int) -> Report:
    """All kinds over the same vectors."""
    known, queries = vectors(folder / "vectors.npy", arguments.count, query_count, arguments.hard)
    true = exact(known, queries)
    rows: dict[str, Any] = {}
    measures: list[Measure] = []
    notes: list[str] = []
    for kind in arguments.kinds:
        try:
            rows[kind], more = measure_kind(
                kind, folder, known, queries, true, arguments.rounds, singles
            )
        except MissingPackageError as absent:
            notes.append(f"{kind}: left out, {absent}")
            continue
        measures += more
        notes.append(lines(kind, rows[kind]))
        print(notes[-1], file=sys.stderr, flush=True)
    measures += between_kinds(rows, arguments.hard)
    settings = {
        "vectors": arguments.count,
        "dimensions": DIM,
        "queries": query_count,
        "clusters": "overlapping" if arguments.hard else "apart",
    }
    facts = (
        [Fact("flat finds the exact ten", rows["flat"]["recall"] >= 0.9995, True)]
        if "flat" in rows
        else []
    )
    return Report("vector_search", settings, measures, facts, notes)


def main() -> int:
    """Measure and print."""
    flags = _report.parser(__doc__, rounds=5)
    flags.add_argument(
        "--count", type=int, default=0, metavar="N", help="vectors; default: 200000, hard 50000"
    )
    flags.add_argument("--hard", action="store_true", help="clusters that overlap")
    flags.add_argument(
        "--kinds", nargs="+", default=list(KINDS), choices=KINDS, help="default: all"
    )
    flags.add_argument("--memory", nargs=3, help=argparse.SUPPRESS)
    arguments = flags.parse_args()
    if arguments.memory:
        kind, folder, queries = arguments.memory
        print(json.dumps(memory_here(kind, Path(folder), Path(queries))))
        return 0
    arguments.count = arguments.count or (50_000 if arguments.hard else 200_000)
    query_count, singles = 1000, 200
    if arguments.quick:
        arguments.count, query_count, singles, arguments.rounds = 2000, 100, 20, 1
    with tempfile.TemporaryDirectory() as folder:
        return measure(Path(folder), arguments, query_count, singles).tell(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
