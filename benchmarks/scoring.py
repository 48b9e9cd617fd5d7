"""Seconds for CRUD-RAG's BLEU and ROUGE-L over 10,000 Chinese answers, beside rouge_score and nltk called directly.

The texts are made of the words of jieba's dictionary, as long as CRUD-RAG's answers and references (log-normal
around 150 characters); an answer is its reference with words left out, changed and moved. With ``--data FOLDER``
they are pieces of the ``corpus.tsv`` there. Both sides part the texts by jieba, turn by turn, with nothing kept
from the round before.
"""

from __future__ import annotations

import argparse
import random
import sys
from pathlib import Path
from typing import Any

import _report
from _report import Fact, Measure, Report

ANSWERS, QUICK, COMPARED = 10_000, 60, 500
METRICS = ("bleu-avg", "rouge-L:jieba")


def made_up(count: int, seed: int = _report.SEED) -> list[tuple[str, str]]:
    """(answer, reference), the references of common words of jieba's dictionary."""
    import jieba

    drawn = random.Random(seed)
    rows = [line.decode("utf-8").split(" ") for line in jieba.get_dict_file()]
    common = sorted(((int(freq), word) for word, freq, *_ in rows), reverse=True)[:20_000]
    words, weights = [word for _, word in common], [freq for freq, _ in common]
    references: list[str] = []
    for _ in range(count):
        characters, text = drawn.lognormvariate(5.0, 0.5), ""
        while len(text) < characters:
            text += "".join(drawn.choices(words, weights, k=drawn.randint(4, 12))) + drawn.choice(
                "，。；"
            )
        references.append(text)
    return [(altered(text, drawn), text) for text in references]


def pieces(count: int, path: Path, seed: int = _report.SEED) -> list[tuple[str, str]]:
    """(answer, reference), the references pieces of the passages of a corpus."""
    drawn = random.Random(seed)
    rows = [line.split("\t")[1] for line in path.read_text(encoding="utf-8").splitlines()[1:]]
    references: list[str] = []
    while len(references) < count:
        text, length = drawn.choice(rows), int(drawn.lognormvariate(5.0, 0.5))
        start = drawn.randint(0, max(0, len(text) - length))
        if text[start : start + length].strip():
            references.append(text[start : start + length].strip())
    return [(altered(text, drawn), text) for text in references]


def altered(text: str, drawn: random.Random) -> str:
    """A text with some stretches of four characters left out, repeated or moved."""
    parts = [text[i : i + 4] for i in range(0, len(text), 4)]
    for _ in range(len(parts) // 5):
        part = parts.pop(drawn.randrange(len(parts)))
        if drawn.random() < 0.6:
            parts.insert(drawn.randint(0, len(parts)), part)
    return "".join(parts).strip() or text  # the white space around an answer is no part of it


def ours(texts: list[tuple[str, str]]) -> dict[str, Any]:
    """Metric → its column."""
    from rallebench.core.scoring import Pair
    from rallebench.core.types import Episode, Example, Gold, Outcome, Question
    from rallebench.engine.score import score_metrics
    from rallebench.metrics.words import jieba_words

    jieba_words.cache_clear()
    pairs = [
        Pair(Example(Question("q", ""), Gold((gold,))), Episode("q", "chain", (), Outcome(answer)))
        for answer, gold in texts
    ]
    return score_metrics(METRICS, pairs)


def bare(texts: list[tuple[str, str]]) -> list[tuple[float, float]]:
    """(BLEU, ROUGE-L) of each by the packages."""
    import math

    import jieba
    from nltk.translate.bleu_score import modified_precision
    from rouge_score.rouge_scorer import RougeScorer

    class Words:
        def tokenize(self, text: str) -> list[str]:
            return list(jieba.dt.cut(text))

    scorer, scores = RougeScorer(["rougeL"], tokenizer=Words()), []
    for answer, gold in texts:
        words, gold_words = list(jieba.dt.cut(answer)), list(jieba.dt.cut(gold))
        precisions = [float(modified_precision([gold_words], words, n)) for n in range(1, 5)]
        scores.append(
            (math.prod(precisions) ** 0.25, scorer.score(gold, answer)["rougeL"].fmeasure)
        )
    return scores


def measure(texts: list[tuple[str, str]], rounds: int, most: float | None) -> Report:
    """Ours over all, the packages over the first few."""
    import jieba

    from rallebench.metrics.words import jieba_words

    jieba.setLogLevel(60)
    jieba.dt.FREQ, jieba.dt.total = jieba.dt.gen_pfdict(jieba.dt.get_dict_file())
    jieba.dt.initialized = True
    reading, _ = _report.timed(lambda: jieba_words("北京"))
    few = texts[:COMPARED]
    seconds, each, others = [], [], []
    for _ in range(rounds):
        took, series = _report.timed(lambda: ours(texts))
        alone, expected = _report.timed(lambda: bare(few))
        seconds.append(took.processor)
        each.append(took.processor / len(texts) * 1000)
        others.append(alone.processor / len(few) * 1000)
    values = [
        (series["bleu-avg"].values[i], series["rouge-L:jieba"].values[i]) for i in range(len(few))
    ]
    apart = max(abs(a - b) for pair, other in zip(values, expected) for a, b in zip(pair, other))
    mean = sum(map(len, (answer for answer, _ in texts))) / len(texts)
    return Report(
        "scoring",
        {"answers": len(texts), "characters each": round(mean), "compared": len(few)},
        [
            Measure("BLEU and ROUGE-L over all answers, processor", "s", seconds, most=most),
            Measure("BLEU and ROUGE-L, an answer", "ms", each, others, "rouge_score and nltk"),
            Measure("reading jieba's dictionary", "s", [reading.processor]),
        ],
        [Fact("values that differ from the packages' by more than 1e-12", apart > 1e-12, False)],
    )


def main(arguments: list[str] | None = None) -> int:
    """See the module's docstring."""
    flags = _report.parser(__doc__, rounds=3)
    flags.add_argument(
        "--data", type=Path, metavar="FOLDER", help="take real text from FOLDER/corpus.tsv"
    )
    flags.add_argument(
        "--count", type=int, default=ANSWERS, metavar="N", help=f"answers, default {ANSWERS}"
    )
    args: argparse.Namespace = flags.parse_args(arguments)
    count, rounds = (QUICK, 1) if args.quick else (args.count, args.rounds)
    texts = pieces(count, args.data / "corpus.tsv") if args.data else made_up(count)
    return measure(texts, rounds, None if args.quick or args.count != ANSWERS else 60.0).tell(args)


if __name__ == "__main__":
    sys.exit(main())
