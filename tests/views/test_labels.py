"""The labels of a run as a table, as CSV and as qrels."""

from __future__ import annotations

import csv

import pytest
from page_views import run_of

from rallebench.core.labels import AnswerLabel
from rallebench.core.types import Passage
from rallebench.engine.store import RunFolder
from rallebench.render import text
from rallebench.services.workbench import Workbench
from rallebench.views.labels import (
    LABELLED,
    SAMPLE,
    UNLABELLED,
    csv_of_labels,
    find_answer,
    fits,
    label_table,
    qrels_of_labels,
    run_answers,
    run_labels,
)


@pytest.fixture
def run(bench: Workbench) -> RunFolder:
    """A run in which two people labelled two answers, and one of them a third."""
    folder = bench.runs.open(run_of(bench, "x"))
    give = bench.labels.give
    for qid, ann, ben in (("q1", "right", "right"), ("q2", "wrong", "partly")):
        give(find_answer(bench.workspace, folder, qid), ann, who="ann")  # type: ignore[arg-type]
        give(find_answer(bench.workspace, folder, qid), ben, who="ben", note="=1+1")  # type: ignore[arg-type]
    give(find_answer(bench.workspace, folder, "q3"), "skip", who="ann")
    return folder


def test_the_counts_and_the_agreement_are_said(bench: Workbench, run: RunFolder) -> None:
    labels = run_labels(bench.workspace, run)
    assert labels.counts == {"right": 2, "partly": 1, "wrong": 1}
    # of 4 values: observed (1/1 + 1/1) / 4, expected (2*1*2 + 2*1*2 + 1*1*2) / (4 * 3)
    assert labels.agreement.nominal == pytest.approx(1 - (2 / 4) / (10 / 12))
    assert labels.sentences[0] == "2 of 8 answers labelled."
    assert labels.sentences[-1].startswith(
        "Krippendorff's alpha of ann and ben over 2 answers: 0.4"
    )
    assert labels.to_json()["labelled"] == 2


def test_a_table_has_all_labels_of_an_answer(bench: Workbench, run: RunFolder) -> None:
    lines = "\n".join(text.table(label_table(run_labels(bench.workspace, run))))
    assert "x: 2 labelled answers" in lines and "wrong (ann), partly right (ben)" in lines


def test_filters_find_what_is_labelled_and_what_the_sample_lacks(
    bench: Workbench, run: RunFolder
) -> None:
    bench.labels.plan(run_answers(bench.workspace, run), 8)
    labels, of_run = run_labels(bench.workspace, run), (bench.workspace, run)
    for which in (LABELLED, UNLABELLED, SAMPLE):
        listed = {x.answer.qid for x in labels.filter_answers(which)}
        assert listed == fits(*of_run, which)
    assert fits(*of_run, LABELLED) == {"q1", "q2"}
    assert fits(*of_run, UNLABELLED) == fits(*of_run, SAMPLE) == {f"q{n}" for n in range(3, 9)}


def test_csv_has_a_line_for_each_label_and_no_formula(bench: Workbench, run: RunFolder) -> None:
    rows = [*csv.DictReader("".join(csv_of_labels(run_labels(bench.workspace, run))).splitlines())]
    assert [(row["id"], row["label"], row["who"]) for row in rows] == [
        ("q1", "right", "ann"),
        ("q1", "right", "ben"),
        ("q2", "wrong", "ann"),
        ("q2", "partly", "ben"),
    ]
    assert rows[1]["note"] == "'=1+1" and rows[0]["gold"] == "Titan" and rows[0]["run"] == "x"


def test_qrels_have_the_gold_as_people_corrected_it(bench: Workbench, run: RunFolder) -> None:
    def passage(page: str) -> Passage:
        return Passage("0", "text", "", page)

    answer = find_answer(bench.workspace, run, "q1")
    bench.labels.give_passage(answer, passage("p5"), True, who="ann")
    bench.labels.give_passage(answer, passage("p1"), False, who="ann")
    lines = [*qrels_of_labels(run)]
    assert lines[:3] == ["q1 0 p1 0\n", "q1 0 p5 1\n", "q2 0 p2 1\n"] and len(lines) == 9


def test_a_damaged_line_is_said_with_the_others(bench: Workbench, run: RunFolder) -> None:
    path = bench.workspace.path / "labels" / "tiny-qa.jsonl"
    path.write_text(path.read_text() + "{\n")
    labels = run_labels(bench.workspace, run)
    assert "line 6" in labels.sentences[-1] and len(labels.labelled_answers) == 2
    assert all(isinstance(x, AnswerLabel) for of in labels.labelled_answers for x in of.labels)
