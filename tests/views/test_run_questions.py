"""The questions of a run: verdict, gold and answer of each, and one question with its steps."""

from __future__ import annotations

import pytest
from page_views import run_of

from rallebench.core.errors import UsageError
from rallebench.services.workbench import Workbench
from rallebench.views.run_questions import open_question, questions, read_stages


def test_a_question_of_a_run_is_listed_with_its_verdict_and_the_first_gold_answer(
    bench: Workbench,
) -> None:
    run_of(bench, "first")
    run = bench.runs.open("first")
    right, wrong = questions(bench.workspace, run)[:2]
    assert (right.qid, right.gold, right.answer, right.kind) == ("q1", "Titan", "Titan", "right")
    assert (wrong.qid, wrong.gold, wrong.answer, wrong.kind) == ("q2", "Triton", "Titan", "wrong")
    assert (wrong.stage, right.stage) == ("", ""), "the steps were not read yet"
    read_stages(bench.workspace, run)
    assert all(row.stage for row in questions(bench.workspace, run))


def test_a_question_is_opened_with_all_its_gold_and_its_steps(bench: Workbench) -> None:
    run_of(bench, "first")
    example, episode = open_question(bench.workspace, bench.runs.open("first"), "q1")
    assert example.gold.answers == ("Titan",) and example.gold.pages == {"p1"}
    assert episode is not None and len(episode.steps) == 2


def test_a_question_that_a_run_does_not_have_is_refused(bench: Workbench) -> None:
    run_of(bench, "first")
    with pytest.raises(UsageError, match="The run 'first' has no question 'q99'; choose one"):
        open_question(bench.workspace, bench.runs.open("first"), "q99")
