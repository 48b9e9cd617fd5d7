"""The measures for comparing runs: a suite's own metrics if both have them, and the endings of agents."""

from __future__ import annotations

from pathlib import Path

import pytest
from run_folders import described
from small_suites import small_suites
from small_workspace import QUESTIONS, RECORDS, CommandLine

from rallebench.analysis.measures import UNDEFINED, headline, measure, own_metrics, shared_measures
from rallebench.analysis.ranking import compare_many, with_mean
from rallebench.core.errors import BadFileError, NotFoundError, UsageError
from rallebench.core.files import read_json, write_json
from rallebench.core.types import Episode, Generate, Message, Outcome, Reply, Step
from rallebench.engine.store import EPISODES, RunFolder

__all__ = ["small_suites"]

DEFINED = "whether the answer stands in the reply"


@pytest.fixture
def runs(cli: CommandLine, workspace: Path, small_suites: None) -> list[RunFolder]:
    for llm in ("titan", "echo"):
        assert cli.suite("small-alone", "times=1", llm=llm, run=llm).code == 0
    return [RunFolder.open(workspace / "runs", f"{llm} time 1") for llm in ("titan", "echo")]


def test_a_suites_runs_are_compared_by_its_metric(runs: list[RunFolder], cli: CommandLine) -> None:
    found = compare_many(runs)
    assert found.metric == "right" == headline(found.measures).name, "before what a question cost"
    assert [mean.value for mean in found.cells["right"]] == [1 / 8, 0.0]
    (pair,) = found.against.values()
    assert (pair.difference, pair.note, pair.lost) == (-1 / 8, "too few articles", ("q1",))
    value = cli.json("compare", *(run.name for run in runs))
    expected = {"metric": "right", "definition": DEFINED, "own": True, "flipped": ["q1"]}
    assert {key: value[key] for key in expected} == expected
    assert f"right: {DEFINED}" in cli("compare", *(run.name for run in runs)).out


def test_a_suites_own_metric_is_had_only_where_it_was_measured(
    runs: list[RunFolder], cli: CommandLine, workspace: Path
) -> None:
    assert cli.run("plain").code == 0
    plain = RunFolder.open(workspace / "runs", "plain")
    with pytest.raises(
        UsageError, match="right is a suite's own metric; plain has no values of it"
    ):
        measure("right", [*runs, plain])
    assert "right" not in shared_measures([runs[0], plain])
    with pytest.raises(NotFoundError, match="The suite's own: right"):
        measure("rihgt", runs)


def test_a_run_without_definitions_says_so_and_others_are_told(runs: list[RunFolder]) -> None:
    reports = [read_json(run.path / "report.json") for run in runs]
    assert reports[0]["definitions"] == {"right": DEFINED}
    write_json(
        runs[0].path / "report.json",
        {key: value for key, value in reports[0].items() if key not in ("definitions", "seal")},
    )
    assert own_metrics(runs[0]) == {"right": UNDEFINED}
    assert DEFINED in measure("right", runs).card.traps, "a reader sees both"
    assert with_mean(runs[1], "right").metrics["right"].value == 0.0


# agents


def by_agent(folder: Path, name: str, reasons: list[str]) -> RunFolder:
    spec = {
        "fingerprint": "0" * 12,
        "metrics": ["em"],
        "batch_size": 1,
        "spec": {
            "dataset": "tiny-qa",
            "workflow": "react",
            "settings": {"agent": {"workflow": "react"}},
            "limit": None,
            "seed": 0,
        },
    }
    run = RunFolder.create(folder, described(name, spec), RECORDS)
    asked = Step(
        Generate("m", (Message("user", "go"),)),
        Reply("Finish[Titan]", prompt_tokens=3, completion_tokens=2),
    )
    with run.log() as log:
        for (qid, *_), reason in zip(QUESTIONS, reasons):
            ended = Outcome("Titan" if reason == "answered" else "", reason)
            run.append(
                log,
                Episode(qid, "react", (asked,) * (2 if reason == "answered" else 3), ended),
                "1",
                0.1,
            )
    return run


def test_agents_are_compared_by_how_they_ended_their_turns_and_their_reward(tmp_path: Path) -> None:
    first = by_agent(tmp_path, "first", ["answered"] * 8)
    other = by_agent(tmp_path, "other", ["answered"] * 2 + ["step_limit"] * 5 + ["gave_up"])
    found = compare_many([first, other], "ended:step_limit")
    assert [mean.value for mean in found.cells["ended:step_limit"]] == [0.0, 5 / 8]
    assert [name for name in found.cells if name.startswith("ended")] == [
        "ended:answered",
        "ended:step_limit",
        "ended:gave_up",
    ]
    assert [mean.value for mean in found.cells["model_calls"]] == [2.0, 2.75]
    assert {"em", "f1_yes_no"} <= set(found.cells)
    assert found.against["other"].wins == 5, "on so many it ended so, and the first did not"


# reading


def test_answers_are_read_without_their_steps_and_one_question_alone(runs: list[RunFolder]) -> None:
    whole = runs[0].episodes()
    assert {qid: head.answer for qid, head in runs[0].heads().items()} == {
        qid: one.answer for qid, one in whole.items()
    }
    assert runs[0].find_episode("q3") == whole["q3"] and runs[0].find_episode("q99") is None
    places = {qid: head.at for qid, head in runs[0].heads().items()}
    assert runs[0].find_episode("q3", places["q3"]) == whole["q3"]
    assert runs[0].find_episode("q3", places["q3"] + 1) == whole["q3"], "the file was changed"


def test_an_answer_that_looks_like_steps_is_an_answer(tmp_path: Path) -> None:
    run = by_agent(tmp_path, "odd", [])
    said = 'I say "a", "steps": [1, 2'
    with run.log() as log:
        run.append(log, Episode('q"1', "react", (), Outcome(said)), "1", 0.1)
    assert run.heads()['q"1'].answer == said and run.find_episode('q"1').answer == said  # type: ignore[union-attr]


def test_a_damaged_line_is_one_sentence_and_a_torn_last_one_is_forgiven(tmp_path: Path) -> None:
    run = by_agent(tmp_path, "torn", ["answered"] * 2)
    path = run.path / EPISODES
    path.write_text(path.read_text() + '{"qid": "q3", "wor')
    assert list(run.heads()) == ["q1", "q2"]
    path.write_text("[1]\n" + path.read_text())
    with pytest.raises(BadFileError, match="line 1 is not an episode"):
        run.heads()
