"""Passages a second through the embedded encoder, beside a plain ``model.encode`` of sentence-transformers.

Both encode the same passages of mixed length, turn by turn, with the same number of threads; the library
at its defaults, in float32. Where the processor has bfloat16 of its own, passages are encoded in it, too,
and the ten nearest passages of many questions are compared with those that float32 finds.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from functools import partial
from pathlib import Path
from typing import Any

import _report
from _report import Fact, Measure, Report, Took

FLOAT32, BFLOAT16 = "float32", "bfloat16"
QUESTIONS = 200
MOST_WORDS, LEAST_WORDS = 160, 4


def passages(count: int, files: list[Path], seed: int = _report.SEED) -> list[str]:
    """``count`` pieces of the corpus, a few words up to whole passages: log-normal around 55 words."""
    drawn = random.Random(seed)
    starter = [_report.PROJECT / "rallebench" / "starter" / "corpus.tsv"]
    lines = [
        line
        for file in files or starter
        for line in file.read_text(encoding="utf-8").splitlines()[1:]
    ]
    rows = [line.split("\t") for line in lines if line.count("\t") >= 2]
    pieces: list[str] = []
    while len(pieces) < count:
        _, text, title, *_ = drawn.choice(rows)
        words = text.split()
        length = min(len(words), MOST_WORDS, LEAST_WORDS + int(drawn.lognormvariate(4.0, 0.7)))
        start = drawn.randint(0, len(words) - length)
        pieces.append(f"{title}, {' '.join(words[start : start + length])}")
    return pieces


def encoded(encoder: Any, dtype: str, texts: list[str]) -> Any:
    """The vectors of ``texts`` as an index build gets them."""
    import numpy as np

    vectors = np.zeros((len(texts), encoder.dim), dtype=np.float32)
    encode = encoder.bulk(dtype)
    for rows, part in encode(texts):
        vectors[rows] = part
    return vectors


def measure(texts: list[str], rounds: int, threads: int) -> Report:
    """Ours and the library's, turn by turn."""
    import numpy as np
    import torch
    from sentence_transformers import SentenceTransformer

    from rallebench.encoders.minilm import MiniLM, model_folder
    from rallebench.encoders.numeric_types import top_overlap

    torch.set_num_threads(threads)
    ours = MiniLM()
    library = SentenceTransformer(str(model_folder()), device="cpu", local_files_only=True)
    types = (FLOAT32, *ours.fast_dtypes)
    took: dict[str, list[Took]] = {name: [] for name in ("library", *types)}
    vectors: dict[str, Any] = {}
    library.encode(texts[:64])
    for dtype in types:
        encoded(ours, dtype, texts[:64])
    for _ in range(rounds):
        seconds, vectors["library"] = _report.timed(lambda: library.encode(texts))
        took["library"].append(seconds)
        for dtype in types:
            seconds, vectors[dtype] = _report.timed(partial(encoded, ours, dtype, texts))
            took[dtype].append(seconds)
    questions = ours.encode([r["input"] for r in _report.starter_records(QUESTIONS)], role="query")
    bare = took["library"]
    measures = []
    for dtype, least in zip(types, (1.1, 1.5)):
        rate, plain = ([len(texts) / t.wall for t in some] for some in (took[dtype], bare))
        gain = [b.wall / t.wall for t, b in zip(took[dtype], bare)]
        work = [b.processor / t.processor for t, b in zip(took[dtype], bare)]
        measures += [
            Measure(f"{dtype}, passages a second", "", rate, plain, "model.encode"),
            Measure(f"{dtype}, speed-up", "times", gain, least=least),
            Measure(f"{dtype}, speed-up in processor time", "times", work),
        ]
    notes = []
    if BFLOAT16 in types:
        share = top_overlap(questions, vectors[FLOAT32], vectors[BFLOAT16], 10)
        measures.append(
            Measure("mean overlap of the top 10 with float32", "", [share], least=0.995)
        )
    else:
        notes = ["this processor has no bfloat16 of its own; passages are encoded in float32"]
    same = bool(np.abs(vectors[FLOAT32] - vectors["library"]).max() < 1e-5)
    unit = all(np.abs(np.linalg.norm(vectors[dtype], axis=1) - 1).max() < 1e-5 for dtype in types)
    words = sorted(len(text.split()) for text in texts)
    return Report(
        "encoding",
        {
            "passages": len(texts),
            "words": f"{words[0]}–{words[-1]}, median {words[len(words) // 2]}",
            "questions": QUESTIONS,
            "threads": threads,
        },
        measures,
        [
            Fact("float32 vectors equal the library's", same, True),
            Fact("all vectors are of unit length", unit, True),
        ],
        notes,
    )


def main() -> int:
    """Measure and print."""
    flags = _report.parser(__doc__, rounds=3)
    flags.add_argument("--passages", type=int, default=1000, metavar="N")
    flags.add_argument("--threads", type=int, default=2, metavar="N")
    flags.add_argument(
        "--corpus", type=Path, nargs="*", default=[], metavar="FILE", help="TSV: id, text, title"
    )
    arguments: argparse.Namespace = flags.parse_args()
    count, rounds, threads = arguments.passages, arguments.rounds, arguments.threads
    if arguments.quick:
        count, rounds, threads = 60, 1, 1
    assert "torch" not in sys.modules and "numpy" not in sys.modules
    _report.THREADS = threads
    os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = str(threads)
    return measure(passages(count, arguments.corpus), rounds, threads).tell(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
