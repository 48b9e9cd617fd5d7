"""Build time of a BM25 index over 20,000 passages, and time of its first query.

The corpus is the starter's own passages and, up to the number asked for, passages of about 100 words
from a seeded word model: the starter's words as often as they occur there, mixed with made-up words
whose frequencies follow Zipf's law, as names do. ``--corpus FILE…`` takes real TSV files instead.

The bare figure is bm25s with its own tokenizer (English stop words, as here), given the texts of the
same file in memory, saving the index. The first query is timed in a fresh process, where a
just-in-time compiler would have to compile.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import _report
from _report import Fact, Measure, Report

from rallebench.core.entries import Manifest
from rallebench.core.events import complete
from rallebench.core.text import tokenize
from rallebench.corpora.reading import read_corpus
from rallebench.retrievers.bm25 import K1, B
from rallebench.workspace.indexes.build import build_index
from rallebench.workspace.indexes.recipes import index_recipe

TARGET_SECONDS, TARGET_FIRST_MS = 15.0, 250.0
WORDS_PER_PASSAGE = 100
MADE_UP_SHARE, MADE_UP_WORDS = 0.25, 60_000
K = 5
COMPILERS = ("numba", "jax", "torch")


def generated(count: int, seed: int = _report.SEED) -> Iterator[str]:
    """``count`` texts of the word model."""
    import numpy as np

    drawn = np.random.default_rng(seed)
    known = Counter(_report.starter_words())
    words = np.array([*known, *(_made_up(number) for number in range(MADE_UP_WORDS))])
    often = np.array([*known.values()], dtype=float)
    rare = 1.0 / (np.arange(MADE_UP_WORDS) + 2.7)
    chance = np.concatenate(
        [often / often.sum() * (1 - MADE_UP_SHARE), rare / rare.sum() * MADE_UP_SHARE]
    )
    upper = np.cumsum(chance)
    for _ in range(count):
        length = int(drawn.integers(WORDS_PER_PASSAGE // 2, WORDS_PER_PASSAGE * 3 // 2))
        rows = np.searchsorted(upper, drawn.random(length) * upper[-1])
        yield " ".join(words[rows]) + "."


def _made_up(number: int) -> str:
    """A word that no text holds: one syllable for every two digits of the number, then ``qu``."""
    consonants, vowels = "bcdfghjklmnpqrstvwxz", "aeiou"
    word = ""
    while True:
        number, digit = divmod(number, 100)
        word = consonants[digit // 5] + vowels[digit % 5] + word
        if not number:
            return word + "qu"


def write_corpus(path: Path, passages: int, sources: Sequence[Path]) -> int:
    """Write a TSV of at most ``passages`` passages; return how many there are."""
    files = sources or [_report.PROJECT / "rallebench" / "starter" / "corpus.tsv"]
    rows = [(passage.text, passage.title) for file in files for passage in read_corpus(file)][
        :passages
    ]
    if not sources:
        rows += [(text, text.split(" ", 1)[0]) for text in generated(passages - len(rows))]
    lines = (f"{number}\t{text}\t{title}\n" for number, (text, title) in enumerate(rows, 1))
    path.write_text("id\ttext\ttitle\n" + "".join(lines), encoding="utf-8")
    return len(rows)


def bare(corpus: Path, folder: Path) -> Any:
    """bm25s by itself: read, tokenize, index, save."""
    import bm25s

    texts = []
    for line in corpus.read_bytes().decode().rstrip("\n").split("\n")[1:]:
        _, text, title = line.split("\t")
        texts.append(f"{title}, {text}")
    tokens = bm25s.tokenize(texts, stopwords="en", show_progress=False)
    model = bm25s.BM25(method="lucene", k1=K1, b=B, backend="numpy")
    model.index(tokens, show_progress=False)
    model.save(str(folder), show_progress=False)
    return model


def ours(corpus: Path, indexes: Path, name: str) -> Manifest:
    """The product's build, from the file to the finished folder."""
    return complete(build_index(indexes, name, index_recipe(corpus, "bm25")))


def queries(count: int) -> list[str]:
    """Questions of the starter."""
    return [record["input"] for record in _report.starter_records(count)]


def answer(indexes: Path, name: str, count: int) -> dict[str, Any]:
    """Seconds to open an index, of the first query, and of the later ones; run in a fresh process."""
    started = time.perf_counter()
    from rallebench.workspace.opening import Encoders, open_retriever
    from rallebench.workspace.paths import WorkspaceFolder

    retriever: Any = [*open_retriever(WorkspaceFolder(indexes.parent), name, Encoders())][-1]
    opened = time.perf_counter() - started
    seconds, top = [], []
    for query in queries(count):
        started = time.perf_counter()
        hits = retriever.search([query], K)[0]
        seconds.append(time.perf_counter() - started)
        top.append([hit.score for hit in hits])
    compilers = [name for name in COMPILERS if name in sys.modules]
    return {
        "opened": opened,
        "first": seconds[0],
        "later": seconds[1:],
        "top": top,
        "compilers": compilers,
    }


def in_a_fresh_process(indexes: Path, name: str, count: int) -> dict[str, Any]:
    """The figures of ``answer``, run by a fresh Python."""
    command = [sys.executable, __file__, "--answer", str(indexes), name, str(count)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env=_report.child_environment()
    )
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def bare_queries(model: Any, texts: Sequence[str]) -> list[float]:
    """Seconds of each query by bm25s by itself, tokenizing included."""
    import bm25s

    seconds = []
    for text in texts:
        started = time.perf_counter()
        model.retrieve(
            bm25s.tokenize([text], stopwords="en", show_progress=False), k=K, show_progress=False
        )
        seconds.append(time.perf_counter() - started)
    return seconds


def scores_by_bm25s(folder: Path, texts: Sequence[str]) -> list[list[float]]:
    """The best scores that bm25s itself computes over our index and our tokens."""
    import bm25s

    model = bm25s.BM25.load(str(folder / "bm25"), show_progress=False)
    best = []
    for text in texts:
        known = [token for token in tokenize(text) if token in model.vocab_dict]
        scores = (
            sorted((float(score) for score in model.get_scores(known)), reverse=True)
            if known
            else []
        )
        best.append([score for score in scores[:K] if score > 0])
    return best


def measure(
    folder: Path, passages: int, rounds: int, sources: Sequence[Path], query_count: int
) -> Report:
    """Build both ways, turn by turn; open and ask in fresh processes."""
    corpus = folder / "corpus.tsv"
    count = write_corpus(corpus, passages, sources)
    texts = queries(query_count)
    built: list[float] = []
    used: list[float] = []
    alone: list[float] = []
    answers: list[dict[str, Any]] = []
    asked_alone: list[float] = []
    ours(_small(folder), folder / "indexes", "warm-up")
    for number in range(rounds):
        took, model = _report.timed(partial(bare, corpus, folder / f"bare-{number}"))
        alone.append(took.wall)
        took, manifest = _report.timed(partial(ours, corpus, folder / "indexes", f"index-{number}"))
        built.append(took.wall)
        used.append(took.processor)
        answers.append(in_a_fresh_process(folder / "indexes", manifest.name, query_count))
        asked_alone.append(statistics.median(bare_queries(model, texts)) * 1000)
    same = answers[0]["top"] == scores_by_bm25s(folder / "indexes" / "index-0", texts)
    size = corpus.stat().st_size / 2**20
    return Report(
        "bm25_build",
        {
            "passages": count,
            "corpus": f"{size:.1f} MB",
            "source": ", ".join(p.name for p in sources) or "starter and word model",
        },
        [
            Measure(
                "build",
                "s",
                built,
                alone,
                "bare bm25s",
                most=TARGET_SECONDS * max(1.0, count / 20_000),
            ),
            Measure("its processor time", "s", used),
            Measure(
                "opening in a fresh process, import of bm25s included",
                "s",
                [f["opened"] for f in answers],
            ),
            Measure(
                "first query", "ms", [f["first"] * 1000 for f in answers], most=TARGET_FIRST_MS
            ),
            Measure(
                "later queries (their median)",
                "ms",
                [statistics.median(f["later"]) * 1000 for f in answers],
                asked_alone,
                "bare bm25s",
            ),
        ],
        [
            Fact("passages indexed", manifest.passages, count),
            Fact("scores equal bm25s's over the same tokens", same, True),
            Fact(
                "compilers imported for a query",
                sorted({c for f in answers for c in f["compilers"]}),
                [],
            ),
        ],
    )


def _small(folder: Path) -> Path:
    """A corpus that makes the first build pay for imports."""
    path = folder / "warm-up.tsv"
    path.write_text("1\tone text\ttitle\n", encoding="utf-8")
    return path


def main() -> int:
    """Measure and print."""
    flags = _report.parser(__doc__, rounds=3)
    flags.add_argument("--passages", type=int, default=20_000, metavar="N", help="default: 20000")
    flags.add_argument(
        "--corpus", type=Path, nargs="+", default=[], metavar="FILE", help="real TSV files instead"
    )
    flags.add_argument("--answer", nargs=3, help=argparse.SUPPRESS)
    arguments = flags.parse_args()
    if arguments.answer:
        indexes, name, count = arguments.answer
        print(json.dumps(answer(Path(indexes), name, int(count))))
        return 0
    passages, rounds, query_count = arguments.passages, arguments.rounds, 200
    if arguments.quick:
        passages, rounds, query_count = 600, 1, 20
    with tempfile.TemporaryDirectory() as folder:
        return measure(Path(folder), passages, rounds, arguments.corpus, query_count).tell(
            arguments
        )


if __name__ == "__main__":
    raise SystemExit(main())
