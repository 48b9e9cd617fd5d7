"""A scorer is any object of the protocol: it is planned, called, scored and resumed like a metric or a judge of the
package."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from small_suites import examples
from small_workspace import CommandLine, add_llm

from rallebench.core.experiments import Experiment, ExperimentRequest, Report
from rallebench.core.registry import Entry
from rallebench.core.runs import DatasetRef, FlowSpec, RunRequest
from rallebench.core.scoring import AnswerScorer, Pair, ScoreColumn, Scorer, ScoreRow
from rallebench.core.types import (
    Episode,
    Example,
    Flow,
    Generate,
    Gold,
    Message,
    Outcome,
    Question,
)
from rallebench.engine.score import own_scores, score_metrics, score_pairs
from rallebench.experiments import EXPERIMENTS
from rallebench.metrics.judges import judge_named
from rallebench.metrics.scorers import metric_scorers


@dataclass(frozen=True)
class Grader:
    """A grader that uses a model for every answer except empty ones; one of its columns compares with the whole run."""

    llms: tuple[str, ...]
    name: str = "grader"
    columns: tuple[ScoreColumn, ...] = (
        ScoreColumn("grade", "The model's grade.", (0, 9)),
        ScoreColumn("above", "1 if the grade is above the mean of the run, else 0."),
    )
    needs: frozenset[str] = frozenset()
    settings: Mapping[str, Any] = field(default_factory=lambda: {"scale": 9})

    def text(self, episode: Episode) -> str | None:
        return episode.answer or None

    def flow(self, pair: Pair) -> Flow | None:
        return self._ask(pair) if pair.example.gold.answers else None

    def _ask(self, pair: Pair) -> Flow:
        reply = yield Generate(self.llms[0], (Message("user", f"Grade {pair.episode.answer}"),))
        return Outcome(reply.text)

    def values(self, pairs: Sequence[Pair], judgements: Sequence[Episode | None]) -> list[ScoreRow]:
        grades = [float(j.answer) if j and j.answer else None for j in judgements]
        known = [grade for grade in grades if grade is not None]
        mean = sum(known) / len(known) if known else 0.0
        return [
            ScoreRow({} if grade is None else {"grade": grade, "above": float(grade > mean)})
            for grade in grades
        ]

    def corpus_level(self, pairs: Sequence[Pair]) -> Mapping[str, float]:
        return {"grade": float(len(pairs))}


def pair(qid: str, answer: str, *golds: str, error: str = "") -> Pair:
    outcome = None if error else Outcome(answer)
    example = Example(
        Question(qid, "Which moon?"), Gold(golds), {"id": qid, "input": "Which moon?"}
    )
    return Pair(example, Episode(qid, "chain", (), outcome, error))


PAIRS = [pair("a", "Titan", "Titan"), pair("b", "Io", "Rhea"), pair("c", "", error="far is down")]
OWN = AnswerScorer(
    (ScoreColumn("right", "1 if the answer is accepted, else 0."),),
    lambda example, episode: {"right": float(episode.answer in example.gold.answers)},
)
SCORERS: list[Scorer] = [
    OWN,
    Grader(("picky",)),
    judge_named("rgb-errors:picky", lambda name: name),
    *metric_scorers(["em", "f1", "bleu", "length"]),
]


@pytest.mark.parametrize("scorer", SCORERS, ids=lambda scorer: scorer.name)
def test_a_scorer_gives_a_row_of_its_columns_for_each_answer(scorer: Scorer) -> None:
    answered = PAIRS[:2]
    rows = scorer.values(answered, [None, None])
    names = {column.name for column in scorer.columns}
    assert len(rows) == 2 and all(set(row.values) | set(row.notes) <= names for row in rows)
    assert set(scorer.corpus_level(answered)) <= names
    assert (scorer.flow(PAIRS[0]) is not None) == bool(scorer.llms)


def test_metrics_of_one_answer_share_a_scorer_and_keep_the_order_of_their_names() -> None:
    assert [scorer.name for scorer in metric_scorers(["bleu", "em", "f1"])] == ["em,f1", "bleu"]
    assert list(score_metrics(["f1", "bleu", "em"], PAIRS)) == ["f1", "bleu", "em"]


def test_a_metric_needs_gold_and_a_group_only_the_gold_that_all_its_metrics_need() -> None:
    needs = [
        scorer.needs
        for names in (["KILT-em"], ["em", "length"])
        for scorer in metric_scorers(names)
    ]
    assert needs == [{"answers", "provenance"}, set()]


def test_a_failed_question_has_no_score_and_its_error_as_note() -> None:
    series = score_pairs([OWN], PAIRS)["right"]
    assert series.values == (1.0, 0.0, None) and series.notes == ("", "", "far is down")


def test_a_judge_without_judgements_has_no_columns_and_a_missing_judgement_no_score() -> None:
    grader, judged = Grader(("picky",)), {"a": Episode("a", "judge", (), Outcome("7"))}
    assert score_pairs([grader], PAIRS) == {}
    series = score_pairs([grader], PAIRS, {"grader": judged})
    assert series["grade"].values == (7.0, None, None)
    assert series["grade"].corpus_level == 1.0, "only the answers with a score"
    assert series["above"].corpus_level is None


def test_of_two_columns_with_one_name_the_later_counts_in_the_place_of_the_first() -> None:
    half = AnswerScorer(OWN.columns, lambda example, episode: {"right": 0.5}, "half")
    length = AnswerScorer((ScoreColumn("n", "Length.", (0, None)),), lambda e, a: {"n": 1.0}, "n")
    own = own_scores((OWN, length, half), [p.example for p in PAIRS], {"a": PAIRS[0].episode})
    assert {name: dict(values) for name, values in own.values.items()} == {
        "right": {"a": 0.5},
        "n": {"a": 1.0},
    }
    assert list(own.means) == ["right", "n"]


def ask(question: Question, llm: str) -> Flow:
    reply = yield Generate(llm, (Message("user", question.text),), seed=0)
    return Outcome(reply.text)


def grade_answers(request: ExperimentRequest) -> Experiment:
    """Questions whose answers are scored by an invented grader."""
    flow = FlowSpec(
        "graded", {}, lambda backends: lambda q: ask(q, request.llm), llms=(request.llm,)
    )
    result = yield RunRequest(
        flow, DatasetRef("tiny-qa"), examples(3), ("em",), (Grader(("picky",)), OWN), label="all"
    )
    means = {name: mean.value for name, mean in result.means.items()}
    return Report({"own": means, "columns": [column.name for column in result.columns]})


@pytest.fixture
def suite(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    add_llm(cli.workspace, "picky", replies={"Titan": "9"}, default="3")
    EXPERIMENTS.names()
    entry = Entry("graded", grade_answers, str(grade_answers.__doc__), {"place": "suites"}, {})
    monkeypatch.setitem(EXPERIMENTS._entries, "graded", entry)
    return ("suite", "graded", "--llm", "titan", "--no-mlflow")


def test_an_invented_grader_is_planned_asked_and_scored_beside_own_scores(
    cli: CommandLine, suite: tuple[str, ...]
) -> None:
    (planned,) = cli.json(*suite, "--plan")["plan"]
    assert planned["llms"] == ["titan", "picky"] and planned["generations"] == {"low": 3, "high": 6}
    report = cli.json(*suite, "--name", "s")
    assert report["columns"] == ["grade", "above", "right"]
    assert report["own"]["grade"] in (3.0, 5.0, 7.0, 9.0)
    folder = next((cli.workspace / "runs").glob("*/report.json")).parent
    (judged,) = json.loads((folder / "report.json").read_text())["judges"].values()
    assert judged["judged"] == 3 and (folder / judged["run"] / "episodes.jsonl").exists()
    spec = json.loads((folder / "run.json").read_text())
    assert spec["metrics"] == ["em", "grader"]


def test_a_resumed_suite_asks_the_grader_nothing_twice(
    cli: CommandLine, suite: tuple[str, ...]
) -> None:
    first = cli.json(*suite, "--name", "s")
    (log,) = (cli.workspace / "runs").glob("*/judges/*/episodes.jsonl")
    lines = log.read_bytes()
    (cli.workspace / "cache" / "memo.sqlite").unlink()
    assert cli.json(*suite, "--name", "s")["own"] == first["own"]
    assert log.read_bytes() == lines
