"""``compare``: two run folders, on the questions that they share; ``analyse``: where a run lost them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from small_workspace import CommandLine, make_workspace

RUN = ("run", "--dataset", "tiny-qa", "--no-mlflow")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return make_workspace(tmp_path / "workspace")


@pytest.fixture
def rallebench(capfd: pytest.CaptureFixture[str], workspace: Path) -> CommandLine:
    return CommandLine(capfd, workspace)


@pytest.fixture
def two_runs(rallebench: CommandLine) -> CommandLine:
    assert rallebench(*RUN, "--chain", "read", "--name", "a", "--llm", "titan").code == 0
    assert (
        rallebench(*RUN, "--chain", "read", "--name", "b", "--llm", "echo", "--limit", "5").code
        == 0
    )
    return rallebench


def test_the_difference_comes_with_its_interval_its_p_and_the_flipped_questions(
    two_runs: CommandLine,
) -> None:
    found = two_runs("compare", "a", "b", "--metric", "em", "--json").json
    assert (found["metric"], found["n"], found["runs"]) == ("em", 5, ["a", "b"])
    assert found["difference"] == pytest.approx(found["b"] - found["a"]) == -0.2
    assert (found["low"], found["p"], found["note"]) == (None, None, "too few articles")
    assert (found["wins"], found["ties"], found["losses"], found["flipped"]) == (0, 4, 1, ["q1"])


def test_runs_over_different_questions_are_compared_on_those_they_share_and_that_is_said(
    two_runs: CommandLine,
) -> None:
    ran = two_runs("compare", "a", "b")
    assert ran.code == 0
    assert (
        "the 5 that they share are compared (3 are only in the first, 0 only in the second)"
        in ran.err
    )
    assert "b wins 0, ties 4, loses 1" in ran.out


def test_a_metric_that_the_runs_did_not_keep_is_scored_from_what_is_stored(
    two_runs: CommandLine,
) -> None:
    assert two_runs("compare", "a", "b", "--metric", "recall@7", "--json").json["n"] == 5


def test_runs_without_a_common_question_cannot_be_compared(
    two_runs: CommandLine, workspace: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.jsonl"
    other.write_text(
        json.dumps({"id": "q1", "input": "Another?", "output": [{"answer": "x"}]}) + "\n"
    )
    assert (
        two_runs("run", "--dataset", other, "--no-mlflow", "--chain", "read", "--name", "c").code
        == 0
    )
    ran = two_runs("compare", "a", "c")
    assert ran.code == 2 and "share no question" in ran.last


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("a", "nobody"), "There is no run 'nobody'"),
        (("a", "b", "--metric", "emm"), "metric 'emm'"),
    ],
)
def test_a_wrong_request_is_one_sentence(
    two_runs: CommandLine, words: tuple[str, ...], sentence: str
) -> None:
    ran = two_runs("compare", *words)
    assert ran.code == 2 and sentence in ran.last


def test_a_run_says_where_it_lost_its_questions(two_runs: CommandLine) -> None:
    (found,) = two_runs("analyse", "a", "--json").json["runs"]
    assert (found["run"], found["n"], found["corpus_known"]) == ("a", 8, True)
    assert sum(found["waterfall"].values()) == 8
    assert found["questions"]["right"] == ["q1"]
    assert found["waterfall"]["not_in_answer"] == 7 - found["waterfall"]["not_retrieved"]


def test_the_corpus_of_an_index_that_is_gone_is_not_guessed(
    two_runs: CommandLine, workspace: Path
) -> None:
    shutil.rmtree(workspace / "indexes" / "tiny")
    ran = two_runs("analyse", "a")
    assert ran.code == 0 and "the corpus could not be looked at" in ran.out
