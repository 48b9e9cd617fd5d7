"""Three suites of a few questions: independent parts, a part made from answers, an end that depends on answers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest
from small_workspace import QUESTIONS, record

from rallebench.core.errors import UsageError
from rallebench.core.experiments import Experiment, ExperimentRequest, Report
from rallebench.core.registry import Entry
from rallebench.core.runs import DatasetRef, RunRequest
from rallebench.core.settings import Setting
from rallebench.core.tables import Figure, Table
from rallebench.core.types import (
    Episode,
    Example,
    Flow,
    Generate,
    Gold,
    Message,
    Outcome,
    Question,
    Retrieve,
)
from rallebench.experiments import EXPERIMENTS
from rallebench.experiments.common import scored_run
from rallebench.metrics.judges import Judgement, judgement_outcome
from rallebench.papers.common import flow_spec

SETTINGS = {
    "words": Setting(str, "short", choices=("short", "long"), about="how answers are to be"),
    "times": Setting(int, 2, 1, 5, about="parts"),
    "search": Setting(bool, False, about="whether passages are read"),
    "note": Setting(str, "", about="any text"),
}


def examples(limit: int | None) -> tuple[Example, ...]:
    rows = [(row, record(*row)) for row in QUESTIONS][:limit]
    return tuple(
        Example(Question(qid, text), Gold((answer,)), made) for (qid, text, answer, _), made in rows
    )


def asking(question: Question, asked: ExperimentRequest, more: str) -> Flow:
    if asked.settings["search"]:
        yield Retrieve("tiny", question.text, 2)
    reply = yield Generate(
        asked.llm, (Message("user", f"{question.text} {more}"),), max_tokens=8, seed=0
    )
    return Outcome(reply.text)


def right(example: Example, episode: Episode) -> Mapping[str, float | None]:
    return {"right": float(example.gold.answers[0] in episode.answer)}


def part(asked: ExperimentRequest, number: int) -> RunRequest:
    settings = {**asked.settings, "times": number}
    retrievers = ("tiny",) if asked.settings["search"] else ()
    flow = flow_spec(
        "small", lambda q: asking(q, asked, f"{number}"), settings, (asked.llm,), retrievers
    )
    columns = {"right": "whether the answer stands in the reply"}
    ref = DatasetRef("tiny-qa")
    return scored_run(f"time {number}", flow, ref, examples(asked.limit), right, columns)


def alone(asked: ExperimentRequest) -> Experiment:
    """Asks every question as many times as requested."""
    if asked.settings["note"] == "wrong":
        raise UsageError("--set note=wrong: such a note is refused.")
    means = {}
    for number in range(1, asked.settings["times"] + 1):
        answered = yield part(asked, number)
        means[f"time {number}"] = answered.means["right"]
    rows = tuple((label, mean, None, "text <b>") for label, mean in means.items())
    table = Table(
        "Right <i>answers</i>",
        ("time", "right", "not measured", "word"),
        (*rows, ("the paper", 0.5, 3, "")),
        True,
        "A note.",
    )
    plot = Figure(
        "Over time", "time", "right", {"ours": tuple(means.items()), "paper": (("time 1", 0.5),)}
    )
    return Report(
        {"headline": "right"},
        ("Know <this>.",),
        {"raw/answers.txt": "one\n"},
        tables=(table,),
        figures=(plot,),
    )


def judging(question: Question, asked: ExperimentRequest, answer: str) -> Flow:
    reply = yield Generate(
        asked.llm, (Message("user", f"judge {answer} {question.text}"),), max_tokens=8, seed=0
    )
    found = re.search(r"\d", reply.text)
    return judgement_outcome(
        Judgement({"score": float(found[0])}, "It says so.")
        if found
        else Judgement(failure="The reply has <no> number.")
    )


def judged(asked: ExperimentRequest) -> Experiment:
    """Answers, and a judge's verdicts on them."""
    first = yield part(asked, 1)
    said = {qid: episode.answer for qid, episode in first.episodes.items()}
    again = yield scored_run(
        f"judged {len(str(said))}",
        flow_spec(
            "small-judge",
            lambda question: judging(question, asked, said[question.qid]),
            {"said": said},
            (asked.llm,),
        ),
        DatasetRef("tiny-qa"),
        tuple(e for e in first.request.examples if e.question.qid in said),
        lambda example, episode: {"score": None},
        {"score": "the judge's number"},
    )
    return Report({"judged": again.n})


def unforeseen(asked: ExperimentRequest) -> Experiment:
    """Continues only if an answer is right."""
    first = yield part(asked, 1)
    if first.mean("right") == 1:
        yield part(asked, 2)
    return Report()


@pytest.fixture
def small_suites(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register the three suites beside the others."""
    EXPERIMENTS.names()
    made: dict[str, Any] = {
        "small-alone": alone,
        "small-judged": judged,
        "small-unforeseen": unforeseen,
    }
    for name, suite in made.items():
        monkeypatch.setitem(
            EXPERIMENTS._entries,
            name,
            Entry(name, suite, str(suite.__doc__), {"place": "suites"}, SETTINGS),
        )
