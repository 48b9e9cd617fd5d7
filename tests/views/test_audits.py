"""Audits of the graders of a run."""

from __future__ import annotations

import numpy as np
import pytest
from labelled_runs import PERSON, QIDS, kinds_of_answers, label, make_quiz_run

from rallebench.core.errors import NotFoundError, UsageError
from rallebench.core.labels import WORTH
from rallebench.engine.store import RunFolder
from rallebench.services.workbench import Workbench
from rallebench.views.audits import audit_grader, audit_table, compare_graders

KINDS = kinds_of_answers(1, 0.5)
TRUTH = np.array([WORTH[PERSON[kind]] for kind in KINDS])
EXACT = np.array([float(kind == "exact") for kind in KINDS])


@pytest.fixture
def quiz(bench: Workbench) -> Workbench:
    make_quiz_run(bench.workspace.path, "first", KINDS)
    return bench


def run(bench: Workbench) -> RunFolder:
    return bench.runs.open("first")


def test_a_grader_is_audited_by_labels(quiz: Workbench) -> None:
    label(quiz.workspace.path, "first", KINDS, QIDS[:100])
    found = audit_grader(quiz.workspace, run(quiz), "f1", "labels")
    (part,) = found.parts
    assert part.calibration.right.value == pytest.approx(TRUTH[:100].mean())
    assert part.calibration.right.n == 100 and found.truth == "labels"
    assert audit_table(found).rows[0][:2] == ("all answers", 100)


def test_rows_of_one_table_use_the_same_number_of_bins(
    quiz: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = (len(QIDS), 110, 30)
    parts = [(str(n), list(QIDS[:n])) for n in sizes]
    monkeypatch.setattr("rallebench.views.audits._parts", lambda *_: parts)
    sure = dict(zip(QIDS, np.linspace(0, 1, len(QIDS))))
    right = dict(zip(QIDS, EXACT))
    grades = lambda _, by: sure if by.name == "f1" else right  # noqa: E731
    monkeypatch.setattr("rallebench.views.audits.read_grades", grades)
    found = audit_grader(quiz.workspace, run(quiz), "f1", "em")
    every, some, few = (part.calibration for part in found.parts)
    assert len(every.bins) == len(some.bins) == 5 and few.error.value is None
    assert audit_table(found).rows[2][5:7] == ("–", None)


def test_a_grader_is_audited_by_the_metric_that_decides(quiz: Workbench) -> None:
    found = audit_grader(quiz.workspace, run(quiz), "f1")
    assert found.truth == "em"
    assert found.parts[0].calibration.right.value == pytest.approx(EXACT.mean())


def test_two_graders_are_compared_by_their_distances_from_the_labels(quiz: Workbench) -> None:
    label(quiz.workspace.path, "first", KINDS, QIDS[:120])
    found = compare_graders(run(quiz), "em", "f1")
    em = (EXACT - TRUTH)[:120] ** 2
    assert found.distances[0].value == pytest.approx(em.mean()) and found.labels == 120
    assert found.difference.value == pytest.approx(
        (found.distances[1].value or 0) - (found.distances[0].value or 0)
    )
    turned = compare_graders(run(quiz), "f1", "em")
    assert turned.difference.value == pytest.approx(-(found.difference.value or 0))
    assert turned.better == found.better and turned.p == found.p


def test_what_cannot_be_audited_is_one_sentence(quiz: Workbench) -> None:
    space = quiz.workspace
    with pytest.raises(UsageError, match="gives no confidence; choose the column of a judge"):
        audit_grader(space, run(quiz), "confidence")
    with pytest.raises(UsageError, match="'em' cannot be its own truth"):
        audit_grader(space, run(quiz), "em", "em")
    with pytest.raises(NotFoundError, match="There is no metric 'nope'"):
        audit_grader(space, run(quiz), "nope")
    with pytest.raises(UsageError, match="no known lowest and highest"):
        audit_grader(space, run(quiz), "seconds")
    with pytest.raises(UsageError, match="label some first"):
        audit_grader(space, run(quiz), "f1", "labels")
    with pytest.raises(UsageError, match="'em' is named twice; name two graders"):
        compare_graders(run(quiz), "em", "em")
    label(space.path, "first", KINDS, QIDS[:1])
    with pytest.raises(UsageError, match="Only one answer of 'first'"):
        compare_graders(run(quiz), "em", "f1")


def test_labels_that_are_all_equal_are_said(quiz: Workbench) -> None:
    right = [qid for qid, kind in zip(QIDS, KINDS) if kind == "exact"][:30]
    label(quiz.workspace.path, "first", KINDS, right)
    found = audit_grader(quiz.workspace, run(quiz), "f1", "labels")
    assert found.sentences[0] == "All answers are right, so the confidences cannot be audited."
    constant = compare_graders(run(quiz), "em", "accuracy")
    assert constant.better == "" and "No difference is shown" in constant.sentences[0]
    assert constant.kappas[0].note == "all labels are equal"


def test_labels_of_another_dataset_are_said(quiz: Workbench) -> None:
    from rallebench.core.labels import AnswerLabel
    from rallebench.datasets.label_file import append_labels, label_file

    append_labels(
        label_file(quiz.workspace.path, "quiz"),
        [AnswerLabel(1.0, "ann", "q", "0" * 16, "titan", "right")],
    )
    with pytest.raises(UsageError, match="they are of another dataset"):
        audit_grader(quiz.workspace, run(quiz), "f1", "labels")
