"""Memory used to import and serve a corpus of 2,000,000 passages.

The corpus is JSON lines from a seeded generator. Every passage has an id, a title and about 60 words, and can be made
again for a comparison. Our import and the bare loop (``json.loads`` on every line, kept in a list) alternate in fresh
processes. Each measures its own anonymous memory (``RssAnon`` in ``/proc/self/status``), which excludes mapped files.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _report
from _report import Fact, Measure, Report

TARGET_MB, TARGET_US = 300.0, 50.0
WORDS = 60
LOOK_UPS = 20_000
PIECES = 4096
"""Pieces of text that passages are put together from: drawing every word would take an hour."""


def pieces() -> list[str]:
    """Texts of a third of a passage."""
    drawn = random.Random(_report.SEED)
    words = sorted(set(_report.starter_words()))
    return [" ".join(drawn.choices(words, k=WORDS // 3)) for _ in range(PIECES)]


def record(number: int, texts: list[str]) -> dict[str, str]:
    """Passage ``number``, the same every time."""
    at = [(number * factor + 17) % PIECES for factor in (1, 31, 1009)]
    text = f"{texts[at[0]]} {number} {texts[at[1]]}, {texts[at[2]]}."
    return {"id": f"p{number}", "title": f"Title {number % 100_003}", "text": text}


def write_corpus(path: Path, count: int) -> None:
    """``count`` passages as JSON lines."""
    texts = pieces()
    with open(path, "w", encoding="utf-8") as handle:
        handle.writelines(
            json.dumps(record(number, texts), ensure_ascii=False) + "\n" for number in range(count)
        )


def anonymous_mb() -> float:
    """This process's anonymous memory in MB."""
    with open("/proc/self/status", encoding="ascii") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1024


class Watched:
    """The most anonymous memory of this process, in MB, looked at every 20 ms from another thread."""

    def __init__(self) -> None:
        self.peak = 0.0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        while not self._ended.wait(0.02):
            self.peak = max(self.peak, anonymous_mb())

    def __enter__(self) -> Watched:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self.peak = max(self.peak, anonymous_mb())


def ours(corpus: Path, folder: Path) -> dict[str, Any]:
    """Import, then serve random passages by row and by id."""
    from rallebench.core.events import complete
    from rallebench.corpora.imported import import_corpus
    from rallebench.corpora.store import PassageStore

    started = time.perf_counter()
    with Watched() as watched:
        imported = complete(import_corpus(folder, "big", corpus))
    seconds, processor = time.perf_counter() - started, time.process_time()
    store = PassageStore(folder / "big")
    rows = random.Random(1).choices(range(len(store)), k=LOOK_UPS)
    ids = [f"p{row}" for row in rows]
    by_row = _each(lambda at: store[rows[at]])
    by_id = _each(lambda at: store.find_row(ids[at]))
    texts = pieces()
    same = all(
        (p.doc_id, p.title, p.text)
        == tuple(record(row, texts)[key] for key in ("id", "title", "text"))
        for row, p in ((row, store[row]) for row in rows)
    )
    rows_match = all(store.find_row(ids[at]) == rows[at] for at in range(0, LOOK_UPS, 20))
    return {
        "seconds": seconds,
        "processor": processor,
        "peak": watched.peak,
        "serving": anonymous_mb(),
        "row": by_row,
        "id": by_id,
        "passages": len(store),
        "same": same,
        "found": rows_match,
        "disk": imported.bytes,
    }


def bare(corpus: Path) -> dict[str, Any]:
    """Every line through ``json.loads`` into a list; ids into a dict."""
    started = time.perf_counter()
    with Watched() as watched, open(corpus, encoding="utf-8") as lines:
        passages = [json.loads(line) for line in lines]
    seconds, processor = time.perf_counter() - started, time.process_time()
    rows = random.Random(1).choices(range(len(passages)), k=LOOK_UPS)
    known = {passage["id"]: number for number, passage in enumerate(passages)}
    ids = [f"p{row}" for row in rows]
    by_row, by_id = _each(lambda at: passages[rows[at]]), _each(lambda at: known[ids[at]])
    return {
        "seconds": seconds,
        "processor": processor,
        "peak": watched.peak,
        "row": by_row,
        "id": by_id,
    }


def _each(ask: Callable[[int], Any]) -> float:
    """Microseconds of processor time of one of ``LOOK_UPS`` calls, the best of three passes after one that reads the disk."""
    best = float("inf")
    for number in range(4):
        started = time.process_time()
        for at in range(LOOK_UPS):
            ask(at)
        if number:
            best = min(best, time.process_time() - started)
    return best / LOOK_UPS * 1e6


def in_a_fresh_process(*arguments: str) -> dict[str, Any]:
    """The figures of ``ours`` or ``bare``, run by a fresh Python."""
    done = subprocess.run(
        [sys.executable, __file__, "--child", *arguments],
        capture_output=True,
        text=True,
        check=True,
        env=_report.child_environment(),
    )
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def measure(folder: Path, passages: int, rounds: int) -> Report:
    """Both, turn by turn."""
    corpus = folder / "corpus.jsonl"
    write_corpus(corpus, passages)
    own, alone = [], []
    for _ in range(rounds):
        alone.append(in_a_fresh_process("bare", str(corpus)))
        own.append(in_a_fresh_process("ours", str(corpus), str(folder / "corpora")))
        shutil.rmtree(folder / "corpora")

    def both(name: str) -> tuple[list[float], list[float]]:
        return [figures[name] for figures in own], [figures[name] for figures in alone]

    loop = "a list of json.loads"
    return Report(
        "big_corpus",
        {
            "passages": passages,
            "corpus": f"{corpus.stat().st_size / 2**20:.0f} MB",
            "words a passage": WORDS,
        },
        [
            Measure("import", "s", *both("seconds"), loop),
            Measure("its processor time", "s", *both("processor"), loop),
            Measure("anonymous memory at most", "MB", *both("peak"), loop, most=TARGET_MB),
            Measure(
                "anonymous memory while serving",
                "MB",
                [figures["serving"] for figures in own],
                most=TARGET_MB,
            ),
            Measure("a passage by its row", "µs", *both("row"), loop, most=TARGET_US),
            Measure("a row by its id", "µs", *both("id"), "a dict", most=TARGET_US),
            Measure("disk", "MB", [figures["disk"] / 2**20 for figures in own]),
        ],
        [
            Fact("passages served", own[0]["passages"], passages),
            Fact(
                "random passages are those that were written",
                all(figures["same"] for figures in own),
                True,
            ),
            Fact("ids lead to their rows", all(figures["found"] for figures in own), True),
        ],
    )


def main() -> int:
    """Measure and print."""
    flags = _report.parser(__doc__, rounds=1)
    flags.add_argument(
        "--passages", type=int, default=2_000_000, metavar="N", help="default: 2000000"
    )
    flags.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    arguments = flags.parse_args()
    if arguments.child:
        which, *paths = arguments.child
        print(
            json.dumps(
                ours(Path(paths[0]), Path(paths[1])) if which == "ours" else bare(Path(paths[0]))
            )
        )
        return 0
    passages, rounds = (3000, 1) if arguments.quick else (arguments.passages, arguments.rounds)
    with tempfile.TemporaryDirectory() as folder:
        return measure(Path(folder), passages, rounds).tell(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
