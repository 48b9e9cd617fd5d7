"""Support of 1,000 answers of one sentence by the five passages of their prompts: the embedded head, and a cross-encoder of
MiniLM's size.

The passages are the starter's (97 words), five drawn for each answer; the answer is a shortened sentence of one of them and
cites two. The head also computes citation precision and recall, from 1,000 and more sets of two passages. The cross-encoder
has the layers of MiniLM-L6 with random weights for its labels, in the numeric type that it chooses by itself; transformers
alone scores the same pairs one by one in float32, for the first few answers. The second figure is the same answers scored
again, from the cache of pairs.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import _report
from _report import Fact, Measure, Report

ANSWERS, PASSAGES, QUICK, COMPARED, MOST = 1_000, 5, 20, 20, 60.0
NAMES = ("support", "citation_precision", "citation_recall")
HEAD = "the embedded head"


def made_up(count: int, seed: int = _report.SEED) -> list[Any]:
    """Answers with five passages in their prompts."""
    from rallebench.core.scoring import Pair
    from rallebench.core.text import sentences
    from rallebench.core.types import (
        Episode,
        Example,
        Generate,
        Gold,
        Hit,
        Message,
        Outcome,
        Passage,
        Question,
        Reply,
        Retrieve,
        Step,
    )

    drawn = random.Random(seed)
    file = _report.PROJECT / "rallebench" / "starter" / "corpus.tsv"
    rows = [line.split("\t") for line in file.read_text(encoding="utf-8").splitlines()[1:]]
    passages = [Passage(number, text, title) for number, text, title, *_ in rows]
    pairs = []
    for number in range(count):
        few = drawn.sample(passages, PASSAGES)
        sentence = drawn.choice(sentences(few[0].text)).strip().rstrip(".")
        answer = f"{sentence.split(', ')[0]} [1][{drawn.randint(2, PASSAGES)}]."
        prompt = "\n".join(passage.text for passage in few)
        steps = (
            Step(Retrieve("index", "?"), Reply("", tuple(Hit(p, 1.0) for p in few))),
            Step(Generate("llm", (Message("user", prompt),)), Reply(answer)),
        )
        example = Example(Question(str(number), "What is known?"), Gold())
        pairs.append(Pair(example, Episode(str(number), "chain", steps, Outcome(answer))))
    return pairs


def save_cross_encoder(folder: Path) -> Path:
    """Write MiniLM with random labels."""
    import torch
    from transformers import AutoModelForSequenceClassification

    from rallebench.encoders.minilm import model_folder

    base = model_folder()
    torch.manual_seed(0)
    AutoModelForSequenceClassification.from_pretrained(base, num_labels=3).save_pretrained(folder)
    for file in base.iterdir():
        if file.name.startswith(("tokenizer", "vocab", "special")):
            shutil.copy(file, folder / file.name)
    config = json.loads((folder / "config.json").read_text())
    labels = {"0": "contradiction", "1": "entailment", "2": "neutral"}
    (folder / "config.json").write_text(json.dumps({**config, "id2label": labels}))
    return folder


def plain(folder: Path, pairs: list[Any]) -> list[list[float]]:
    """The scores of each passage by transformers alone, pair by pair."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    from rallebench.core.citing import marked_sentences, prompt_passages
    from rallebench.metrics.support.formats import passage_text

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    rows = []
    for _, episode in pairs:
        (sentence,) = marked_sentences(episode.answer)
        row = []
        for passage in prompt_passages(episode):
            encoded = tokenizer(
                passage_text(passage), sentence.text, return_tensors="pt", truncation="only_first"
            )
            with torch.inference_mode():
                row.append(float(model(**encoded).logits.softmax(-1)[0, 1]))
        rows.append(row)
    return rows


def measure(pairs: list[Any], folder: Path, rounds: int, most: float | None) -> Report:
    """Ours over all answers, transformers alone over a few."""
    from rallebench.engine.score import score_metrics
    from rallebench.metrics.support.scorer import open_checker

    models = {HEAD: "", "a cross-encoder": str(folder)}
    figures = []
    apart = 0.0
    for label, option in models.items():
        names = [f"support:{option}"] if option else [*NAMES]
        seconds, again, singly = [], [], []
        for _ in range(rounds):
            open_checker("" if option else str(folder))  # the cache of the round before is dropped
            score_metrics(names[:1], pairs[:1])
            took, series = _report.timed(partial(score_metrics, names, pairs))
            seconds.append(took.processor)
            took, _ = _report.timed(partial(score_metrics, names[:1], pairs))
            again.append(took.processor)
            if option:
                few = pairs[: min(COMPARED, len(pairs))]
                took, expected = _report.timed(partial(plain, folder, few))
                singly.append(took.processor / len(few) * len(pairs))
                stored = series[names[0]].support
                rows = ([s.scores for s in answer.sentences] for answer in stored)
                apart = max(
                    abs(a - b) for (row,), other in zip(rows, expected) for a, b in zip(row, other)
                )
        bare = "transformers, pair by pair in float32" if singly else ""
        figures += [
            Measure(
                f"{label}, processor", "s", seconds, singly, bare, most=None if option else most
            ),
            Measure(f"{label}, the same answers again", "s", again),
        ]
    described = {"answers": len(pairs), "passages each": PASSAGES, "compared": COMPARED}
    return Report(
        "support",
        described,
        figures,
        [Fact("scores that differ from transformers' by more than 0.02", apart > 0.02, False)],
    )


def main(arguments: list[str] | None = None) -> int:
    """See the module's docstring."""
    flags = _report.parser(__doc__, rounds=1)
    flags.add_argument(
        "--count", type=int, default=ANSWERS, metavar="N", help=f"answers, default {ANSWERS}"
    )
    args: argparse.Namespace = flags.parse_args(arguments)
    count = QUICK if args.quick else args.count
    full = not args.quick and args.count == ANSWERS
    with tempfile.TemporaryDirectory() as folder:
        model = save_cross_encoder(Path(folder) / "model")
        return measure(made_up(count), model, args.rounds, MOST if full else None).tell(args)


if __name__ == "__main__":
    sys.exit(main())
