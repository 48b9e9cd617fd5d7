"""A killed run (SIGKILL) loses no finished answer, and ends with the same report.

The real command line runs in its own process. The model is a server that records every prompt and kills the command in the
middle, after 40 % of the questions.
"""

from __future__ import annotations

import importlib
from collections import Counter
from typing import Any

import pytest
from project import PROJECT

BENCHMARKS = PROJECT / "benchmarks"
QUESTIONS = 120

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        script = importlib.import_module("kill_and_resume")
        return script.kill_and_resume(tmp_path_factory.mktemp("killed"), QUESTIONS)


@pytest.fixture(scope="module")
def refused(outcome: Any) -> set[str]:
    """Ids of the questions refused by the server."""
    texts = importlib.import_module("kill_and_resume").refused_of(outcome.records)
    return {record["id"] for record in outcome.records if record["input"] in texts}


def test_the_command_was_killed_in_full_flow(outcome: Any) -> None:
    assert outcome.exit_code != 0
    assert 0 < len(outcome.finished_before) < QUESTIONS
    assert outcome.asked_before >= QUESTIONS * 2 // 5


def test_no_finished_question_is_asked_again(outcome: Any) -> None:
    assert outcome.asked_again() == set()


def test_every_question_is_answered_and_written_down_once(outcome: Any, refused: set[str]) -> None:
    expected = {record["id"] for record in outcome.records} - refused
    assert outcome.undisturbed.answered == outcome.resumed.answered == Counter(expected)


def test_failed_questions_are_tried_again_and_counted_once(outcome: Any, refused: set[str]) -> None:
    assert refused
    for run in (outcome.undisturbed, outcome.resumed):
        assert run.printed["n"] == QUESTIONS
        assert run.printed["n_errors"] == run.report["n_errors"] == len(refused)
    asked = Counter(outcome.resumed.requests)
    before = Counter(outcome.resumed.requests[: outcome.asked_before])
    texts = {record["input"] for record in outcome.records if record["id"] in refused}
    assert all(asked[text] > before[text] for text in texts)


def test_the_report_equals_that_of_a_run_that_nobody_disturbed(outcome: Any) -> None:
    assert outcome.resumed.result() == outcome.undisturbed.result()
    assert outcome.resumed.result()["complete"]
    assert outcome.resumed.report["metrics"]["Rprec"]["value"] > 0


def test_the_output_files_equal_those_of_a_run_that_nobody_disturbed(outcome: Any) -> None:
    assert outcome.resumed.outputs == outcome.undisturbed.outputs
    assert outcome.resumed.outputs["output.jsonl"].count("\n") == QUESTIONS
