"""BM25 over 200,000 passages: how long it takes to build, and how many queries a second it answers in a batch.

The corpus and the questions are those of ``bm25_build.py``. Everything after the build is measured in a
fresh process: the first batch, where a just-in-time compiler would have to compile, later batches, and the
memory that is not mapped from files. The bare figures are bm25s's own build (with its tokenizer, texts in memory) and its
``retrieve`` over the same index and tokens, numpy backend, turn by turn.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import _report
import bm25_build
from _report import Fact, Measure, Report

TARGET_SECONDS, TARGET_QPS = 180.0, 700.0
TIMES_BUILD, TIMES_QPS = 1.3, 3.5
"""The most times bare bm25s's build, the least times its throughput."""

K = 5
BUILD_MB = 400
"""The most memory of a build whose pieces take 256 MB, for 200,000 passages and any larger number up to about a million."""


def answer(indexes: Path, name: str, query_count: int, rounds: int) -> dict[str, Any]:
    """Seconds and memory of batches in this process, ours and bm25s's own."""
    import psutil

    from rallebench.core.text import tokenize
    from rallebench.workspace.opening import Encoders, open_retriever
    from rallebench.workspace.paths import WorkspaceFolder

    process = psutil.Process()
    queries = bm25_build.queries(query_count)
    retriever: Any = [*open_retriever(WorkspaceFolder(indexes.parent), name, Encoders())][-1]
    before = process.memory_info()
    took, hits = _report.timed(lambda: retriever.search(queries, K))
    after = process.memory_info()
    held = (after.rss - after.shared) - (before.rss - before.shared)
    compilers = [package for package in bm25_build.COMPILERS if package in sys.modules]

    import bm25s

    model = bm25s.BM25.load(str(indexes / name / "bm25"), mmap=True, show_progress=False)
    known = [[token for token in tokenize(query) if token in model.vocab_dict] for query in queries]
    ours, bare = [], []
    for _ in range(rounds):
        ours.append(_report.timed(lambda: retriever.search(queries, K))[0].processor)
        took, retrieved = _report.timed(
            lambda: model.retrieve(known, k=K, show_progress=False, n_threads=0)
        )
        bare.append(took.processor)
    # bm25s cuts ties as it likes: the scores are compared, not the passages.
    same = all(
        [round(hit.score, 4) for hit in mine]
        == [round(float(score), 4) for score in theirs][: len(mine)]
        for mine, theirs in zip(hits, retrieved.scores)
        if mine
    )
    first = {"first": took.wall, "first_processor": took.processor}
    return {**first, "ours": ours, "bare": bare, "held": held, "same": same, "compilers": compilers}


def held_bytes() -> int:
    """Bytes of this process that are not mapped from files; Linux only."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return 1024 * int(status.partition("RssAnon:")[2].split()[0])


def build_memory(corpus: Path, indexes: Path) -> int:
    """Most bytes, mapped files apart, by which this process grew while it built an index."""
    before, stopped = held_bytes(), threading.Event()
    most = [before]

    def watch() -> None:
        while not stopped.wait(0.05):
            most.append(max(most.pop(), held_bytes()))

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        bm25_build.ours(corpus, indexes, "held")
    finally:
        stopped.set()
        watching.join()
    return most[0] - before


def in_a_fresh_process(*words: str) -> dict[str, Any]:
    """The figures that this script prints in a process of its own."""
    command = [sys.executable, __file__, *words]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env=_report.child_environment()
    )
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def measure(folder: Path, passages: int, rounds: int, query_count: int) -> Report:
    """Build once; ask in a fresh process."""
    corpus = folder / "corpus.tsv"
    count = bm25_build.write_corpus(corpus, passages, [])
    alone, _ = _report.timed(lambda: bm25_build.bare(corpus, folder / "bare"))
    took, manifest = _report.timed(lambda: bm25_build.ours(corpus, folder / "indexes", "scale"))
    figures = in_a_fresh_process(
        "--answer", str(folder / "indexes"), "scale", str(query_count), str(rounds)
    )
    held = in_a_fresh_process("--build", str(corpus), str(folder / "held"))["held"]
    most = TARGET_SECONDS * max(1.0, count / 200_000)
    bare_qps = [query_count / seconds for seconds in figures["bare"]]
    return Report(
        "bm25_scale",
        {"passages": count, "queries": query_count, "index": f"{manifest.bytes / 2**20:.0f} MB"},
        [
            Measure("build", "s", [took.wall], most=most),
            Measure(
                "its processor time",
                "s",
                [took.processor],
                [alone.processor],
                "bare bm25s",
                most=TIMES_BUILD * alone.processor,
            ),
            Measure("its memory, mapped files apart", "MB", [held / 2**20], most=BUILD_MB),
            Measure(
                "queries a second of processor time, in a batch",
                "/s",
                [query_count / seconds for seconds in figures["ours"]],
                bare_qps,
                "bare bm25s",
                least=max(TARGET_QPS, TIMES_QPS * statistics.median(bare_qps)),
            ),
            Measure("first batch, by the clock", "s", [figures["first"]]),
            Measure(
                "first batch, processor time",
                "s",
                [figures["first_processor"]],
                figures["ours"],
                "later ones",
            ),
            Measure(
                "memory of the first batch, mapped files apart", "MB", [figures["held"] / 2**20]
            ),
        ],
        [
            Fact("passages indexed", manifest.passages, count),
            Fact("scores equal bm25s's over the same tokens", figures["same"], True),
            Fact("compilers imported for a batch", figures["compilers"], []),
        ],
    )


def main() -> int:
    """Measure and print."""
    flags = _report.parser(__doc__, rounds=5)
    flags.add_argument("--passages", type=int, default=200_000, metavar="N", help="default: 200000")
    flags.add_argument("--answer", nargs=4, help=argparse.SUPPRESS)
    flags.add_argument("--build", nargs=2, type=Path, help=argparse.SUPPRESS)
    arguments = flags.parse_args()
    if arguments.build:
        print(json.dumps({"held": build_memory(*arguments.build)}))
        return 0
    if arguments.answer:
        indexes, name, query_count, rounds = arguments.answer
        print(json.dumps(answer(Path(indexes), name, int(query_count), int(rounds))))
        return 0
    passages, rounds, query_count = arguments.passages, arguments.rounds, 1000
    if arguments.quick:
        passages, rounds, query_count = 600, 1, 50
    with tempfile.TemporaryDirectory() as folder:
        return measure(Path(folder), passages, rounds, query_count).tell(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
