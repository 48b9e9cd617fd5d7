"""Accuracy, refusals and speed of the built-in reader.

On questions of articles that were never trained on: XQuAD's English ones and real search questions (QED's
Natural Questions). The split by article is the training program's own, and the weights name the articles they
learned from: none of those is asked about. Each question is asked with its paragraph alone, with four others
that MiniLM finds nearest, with MiniLM's own top five, and, for declining, with five paragraphs of which none
holds an answer. A declined question counts as wrong.

``--data`` is a folder in KILT's format with ``xquad_en_corpus.tsv``, ``xquad_en_kilt.jsonl``, the same of
``qed_nq`` and, if at hand, ``nqopen_dev_kilt.jsonl``; without it the starter's questions are asked. Targets:
exact match of at least 60 and F1 of 70 with the paragraph alone, 55 among five, 41 for search questions among
five, AUROC 0.84; 0.16 s a prompt of the starter in float32 and 0.08 s in bfloat16.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import _report
from _reader_sets import SEARCH, TESTED, QuestionSet, prompts_of, sets_of
from _report import Fact, Measure, Report

from rallebench.analysis.paired import compare
from rallebench.reader import ReaderAnswer, Task
from rallebench.reader.spans import WEIGHTS, SpanReader, load
from tools.reader import prompts
from tools.reader.prompts import ParagraphQuestion
from tools.reader.sources import SOURCES, read_source

LATENCY_THREADS = 2
LATENCY_PROMPTS = 60


def read_all(reader: SpanReader, tasks: Sequence[Task]) -> list[ReaderAnswer]:
    """Yield the reader's answers, one task after another."""
    return [answer for task in tasks for answer in reader.read([task])]


def row(
    name: str, answers: Sequence[ReaderAnswer], questions: QuestionSet
) -> tuple[str, float, float]:
    """(a line for the table, exact match in %, F1 in %)."""
    scores = [
        prompts.score(answer, question.answers)
        for answer, question in zip(answers, questions.questions)
    ]
    columns = [[100 * s[i] for s in scores] for i in (0, 1)]
    means = [statistics.fmean(c) for c in columns]
    errors = [statistics.stdev(c) / len(c) ** 0.5 if len(c) > 1 else 0.0 for c in columns]
    figures = " | ".join(f"{m:.1f} ± {e:.1f}" for m, e in zip(means, errors))
    return f"{name} | {len(scores)} | {figures}", means[0], means[1]


def measure_quality(
    reader: SpanReader, sets: Sequence[QuestionSet], report: Report
) -> dict[str, list[ReaderAnswer]]:
    """Exact match and F1 of every form; set → what was found with the paragraph among five."""
    targets = {
        (TESTED, "gold"): (60.0, 70.0),
        (TESTED, "five"): (55.0, None),
        (SEARCH, "five"): (41.0, None),
    }
    forms = {"gold": "its paragraph", "five": "1 + 4 nearest", "nearest": "MiniLM's top 5"}
    among_five = {}
    for questions in sets:
        for form, label in forms.items():
            answers = read_all(reader, prompts_of(questions, form))
            if form == "five":
                among_five[questions.name] = answers
            line, exact, f1 = row(f"{questions.name}, {label}", answers, questions)
            report.notes.append(line)
            least = targets.get((questions.name, form), (None, None))
            for metric, value, bound in zip(("exact match", "F1"), (exact, f1), least):
                report.measures.append(
                    Measure(f"{questions.name}, {label}: {metric}", "%", [value], least=bound)
                )
    return among_five


def measure_declining(
    reader: SpanReader, questions: QuestionSet, present: Sequence[ReaderAnswer], report: Report
) -> None:
    """The confidence with the paragraph among five (``present``) against five that hold no answer."""
    absent = read_all(reader, prompts_of(questions, "absent"))
    area = prompts.auroc([f.confidence for f in present], [f.confidence for f in absent])
    # Hanley and McNeil 1982, equation 2.
    q1, q2 = area / (2 - area), 2 * area**2 / (1 + area)
    n, m = len(present), len(absent)
    error = (
        (area * (1 - area) + (n - 1) * (q1 - area**2) + (m - 1) * (q2 - area**2)) / (n * m)
    ) ** 0.5
    least = 0.84 if questions.name == TESTED else None
    report.measures.append(
        Measure(f"{questions.name}: AUROC of declining", "", [area], least=least)
    )
    answered = sum(bool(f.text) for f in present) / n
    declined = sum(not f.text for f in absent) / m
    report.notes.append(
        f"{questions.name}: AUROC {area:.3f} ± {error:.3f} (n = {n} + {m}); {answered:.0%} answered with the "
        f"paragraph among five, {declined:.0%} declined without it"
    )


def measure_latency(
    reader: SpanReader,
    dtype: str,
    name: str,
    tasks: Sequence[Task],
    rounds: int,
    most: float | None,
    report: Report,
) -> None:
    """Seconds for one five-passage prompt of a set, median over prompts, for each round.

    Bare is the network alone on the same windows: what is above it goes to words, spans and confidence.
    """
    import torch

    torch.set_num_threads(LATENCY_THREADS)
    reader.read(tasks[:3])
    windows = [reader.windows(task) for task in tasks]
    medians, alone, own = [], [], []
    for _ in range(rounds):
        pairs = [
            (
                _report.timed(partial(reader.read, [task]))[0],
                _report.timed(partial(reader.scores, some))[0],
            )
            for task, some in zip(tasks, windows)
        ]
        medians.append(statistics.median(whole.wall for whole, _ in pairs))
        own.append(statistics.median(whole.processor for whole, _ in pairs))
        alone.append(statistics.median(bare.wall for _, bare in pairs))
    words = statistics.fmean(sum(len(p.text.split()) for p in task.passages) for task in tasks)
    report.measures.append(
        Measure(
            f"a five-passage prompt of {name} in {dtype}",
            "s",
            medians,
            alone,
            "the network alone",
            most=most,
        )
    )
    report.notes.append(
        f"time, {name}, {dtype}: {len(tasks)} prompts of {words:.0f} words on average, {LATENCY_THREADS} threads; "
        f"processor time {statistics.median(own):.3f} s in all threads"
    )


def measure_nq_open(reader: SpanReader, questions: QuestionSet, path: Path, report: Report) -> None:
    """The search questions that NQ-open took over, those with an answer of at most five tokens (Lee et al. 2019,
    arXiv:1906.00300), with the answers of its annotators, too."""
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    known = {_plain(r["input"]): tuple(o["answer"] for o in r["output"]) for r in records}
    rows = [i for i, a in enumerate(questions.questions) if _plain(a.question) in known]
    gold_questions = [questions.questions[i] for i in rows]
    gold_questions = [
        ParagraphQuestion(a.question, (*a.answers, *known[_plain(a.question)]), a.gold)
        for a in gold_questions
    ]
    name = f"{questions.name}, those of NQ-open"
    rankings = [questions.rankings[i] for i in rows]
    measure_forms(
        reader,
        QuestionSet(name, gold_questions, questions.titles, questions.paragraphs, rankings),
        report,
    )


def measure_beside(
    reader: SpanReader, other: SpanReader, sets: Sequence[QuestionSet], report: Report
) -> None:
    """The same prompts read by ``other`` weights: paired differences in points, with intervals that count articles."""
    for questions in sets:
        articles = {
            str(i): questions.titles[question.gold]
            for i, question in enumerate(questions.questions)
        }
        for form, label in (("gold", "its paragraph"), ("five", "1 + 4 nearest")):
            tasks = prompts_of(questions, form)
            both = [
                [
                    prompts.score(answer, question.answers)
                    for answer, question in zip(read_all(r, tasks), questions.questions)
                ]
                for r in (other, reader)
            ]
            for column, name in enumerate(("em", "f1")):
                before, after = (
                    {str(i): score[column] for i, score in enumerate(scores)} for scores in both
                )
                pair = compare(name, before, after, clusters=articles)
                low, high = (100 * (side or 0.0) for side in (pair.low, pair.high))
                report.notes.append(
                    f"beside the other weights, {questions.name}, {label}: {name} {100 * (pair.a or 0):.1f} → "
                    f"{100 * (pair.b or 0):.1f}, difference {100 * (pair.difference or 0):+.1f} ({low:+.1f} to {high:+.1f}), n = {pair.n}"
                )


def _plain(question: str) -> str:
    return question.strip().lower().rstrip("?")


def measure_forms(reader: SpanReader, questions: QuestionSet, report: Report) -> None:
    """Exact match and F1 with the paragraph alone and among five, as notes."""
    for form, label in (("gold", "its paragraph"), ("five", "1 + 4 nearest")):
        report.notes.append(
            row(
                f"{questions.name}, {label}",
                read_all(reader, prompts_of(questions, form)),
                questions,
            )[0]
        )


def measure_annotators(
    reader: SpanReader, questions: QuestionSet, folder: Path, report: Report
) -> None:
    """XQuAD's questions scored against the answers of all annotators of SQuAD: XQuAD itself keeps one."""
    known = {
        q.text: tuple(text for text, _ in q.answers)
        for context in read_source(folder, SOURCES[0])
        for q in context.questions
        if q.answers
    }
    gold_questions = [
        ParagraphQuestion(a.question, (*a.answers, *known.get(a.question.strip(), ())), a.gold)
        for a in questions.questions
    ]
    name = f"{questions.name}, any annotator's answer"
    measure_forms(
        reader,
        QuestionSet(
            name, gold_questions, questions.titles, questions.paragraphs, questions.rankings
        ),
        report,
    )


def measure_facts(reader: SpanReader, tasks: Sequence[Task], size: int, report: Report) -> None:
    """Facts that hold on every machine: answers are reproducible, alone and in a batch; the weights are small."""
    alone = read_all(reader, tasks)
    report.facts.append(
        Fact(
            "prompts read together and in another order are answered alike",
            reader.read(tasks[::-1])[::-1] == alone,
            True,
        )
    )
    report.facts.append(
        Fact(f"the weights ({size / 1e6:.2f} MB) take at most 8 MB", size <= 8e6, True)
    )


def main() -> int:
    """Run everything; the exit code."""
    flags = _report.parser(__doc__, rounds=3)
    flags.add_argument(
        "--data", type=Path, metavar="FOLDER", help="sets in KILT's format (default: the starter)"
    )
    flags.add_argument(
        "--limit", type=int, default=400, metavar="N", help="questions of a set at most (400)"
    )
    flags.add_argument(
        "--annotators",
        type=Path,
        metavar="FOLDER",
        help="squad_dev.jsonl.gz: accept any annotator's answer, too",
    )
    flags.add_argument(
        "--dtype", default="float32", choices=("float32", "bfloat16"), help="for the quality"
    )
    flags.add_argument(
        "--weights", type=Path, default=WEIGHTS, metavar="FILE", help="others than the shipped ones"
    )
    flags.add_argument(
        "--beside", type=Path, metavar="FILE", help="other weights, for paired differences"
    )
    flags.add_argument("--no-latency", action="store_true", help="leave the times out")
    arguments = flags.parse_args()
    if arguments.data is not None:
        names = [
            f"{stem}_{end}"
            for stem in ("xquad_en", "qed_nq")
            for end in ("corpus.tsv", "kilt.jsonl")
        ]
        missing = [name for name in names if not (arguments.data / name).is_file()]
        if missing:
            print(
                f"{arguments.data} lacks {', '.join(missing)}; give another folder.",
                file=sys.stderr,
            )
            return 2
    return _measured(arguments, 20 if arguments.quick else arguments.limit).tell(arguments)


def _measured(arguments: argparse.Namespace, limit: int) -> Report:
    report = Report(
        "reader", {"questions of a set at most": limit, "numeric type": arguments.dtype}
    )
    reader = load(arguments.dtype, arguments.weights)
    sets = sets_of(arguments.data, limit, reader)
    among_five = measure_quality(reader, sets, report)
    for questions in sets:
        measure_declining(reader, questions, among_five[questions.name], report)
    if arguments.beside is not None:
        measure_beside(reader, load(arguments.dtype, arguments.beside), sets, report)
    if arguments.annotators is not None:
        measure_annotators(reader, sets[0], arguments.annotators, report)
    if arguments.data is not None and (short := arguments.data / "nqopen_dev_kilt.jsonl").is_file():
        measure_nq_open(reader, sets[-1], short, report)
    tasks = prompts_of(sets[0], "five")[: 5 if arguments.quick else LATENCY_PROMPTS]
    measure_facts(reader, tasks[:20], arguments.weights.stat().st_size, report)
    if not arguments.no_latency:
        # The starter's passages are as long as KILT's, about 100 words; the bounds are for those.
        timed = {"the starter": prompts_of(sets_of(None, len(tasks), reader)[0], "five")}
        if arguments.data is not None:
            timed[sets[0].name] = tasks
        for name, some in timed.items():
            for dtype, most in (("float32", 0.16), ("bfloat16", 0.08)):
                bound = most if name == "the starter" else None
                measure_latency(
                    load(dtype, arguments.weights),
                    dtype,
                    name,
                    some,
                    arguments.rounds,
                    bound,
                    report,
                )
    return report


if __name__ == "__main__":
    sys.exit(main())
