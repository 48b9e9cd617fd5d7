"""The verb ``labels``: labels, samples, files and corrected gold from the command line."""

from __future__ import annotations

import csv

import pytest
from labelled_runs import QIDS, kinds_of_answers, label, make_quiz_run
from small_workspace import CommandLine


@pytest.fixture
def labels(cli: CommandLine) -> CommandLine:
    cli.run("x")
    return cli


def test_an_answer_is_labelled_and_the_label_is_carried_to_a_later_run(labels: CommandLine) -> None:
    given = labels("labels x --label q1 --grade right --note sure --who ann --blind")
    assert given.out.splitlines()[0] == "q1: right, says ann."
    assert "1 of 8 answers labelled." in given.out
    labels.run("y")
    value = labels.json("labels y")
    assert (value["labelled"], value["grades"], value["said"]) == (1, {"right": 1}, [])
    (row,) = value["listed"]
    assert (row["id"], row["answer"], row["labels"][0]["note"]) == ("q1", "Titan", "sure")
    assert row["labels"][0]["blind"] is True and row["labels"][0]["run"] == "x"
    assert "1 of them in other runs" in labels("labels y").out


def test_a_sample_is_drawn_listed_and_worked_off(labels: CommandLine) -> None:
    drawn = labels("labels x --sample 6 --graders em,recall@5 --seed 2")
    assert "Drew 6 of 8 distinct answers, 5 of them where em and recall@5 disagree." in drawn.out
    (first, *rest) = labels.json("labels x --only sample")["listed"]
    assert len(rest) == 5 and 0 < first["probability"] <= 1
    labels("labels x", "--label", first["id"], "--grade", "wrong")
    assert labels.json("labels x")["sample"] == {"labelled": 1, "answers": 6}
    assert "Drew 8 of 8 distinct answers." in labels("labels x --sample 100").out


def test_labels_of_two_people_agree_as_far_as_alpha_says(labels: CommandLine) -> None:
    for who, grades in (("ann", ("right", "wrong")), ("ben", ("right", "right"))):
        for qid, grade in zip(("q1", "q2"), grades):
            labels("labels x", "--label", qid, "--grade", grade, "--who", who)
    # observed 2/4, expected 2*3*1 / (4*3)
    assert labels.json("labels x")["agreement"]["nominal"] == pytest.approx(0.0)
    assert "Krippendorff's alpha of ann and ben over 2 answers: 0.000" in labels("labels x").out


def test_labels_are_written_as_csv_and_qrels(labels: CommandLine) -> None:
    labels("labels x --label q1 --grade right --who ann")
    labels("labels x --label q1 --page p6 --relevant yes --who ann")
    assert "the gold lacks 1 passage called relevant" in labels("labels x").out
    file = labels.workspace / "labels.csv"
    assert labels("labels x", "--export", "csv", "--out", file).out == f"{file}: 2 lines\n"
    (row,) = csv.DictReader(file.read_text().splitlines())
    assert (row["id"], row["label"], row["who"]) == ("q1", "right", "ann")
    assert labels("labels x --export qrels").out.splitlines()[:2] == ["q1 0 p1 1", "q1 0 p6 1"]


def test_wrong_gold_gives_a_corrected_copy(labels: CommandLine) -> None:
    labels("labels x", "--label", "q2", "--grade", "gold-wrong", "--right", "Neptune's Triton")
    copied = labels("labels x --corrected-copy better")
    assert "better: 1 question of tiny-qa corrected" in copied.out
    assert "Neptune's Triton" in copied.out and "Triton" in copied.out
    assert labels.json("dataset better")["edits"][-1]["questions"] == ["q2"]


@pytest.fixture
def quiz(cli: CommandLine) -> CommandLine:
    """Two runs over a quiz, with the same 60 questions labelled in both."""
    for name, seed in (("first", 1), ("second", 2)):
        kinds = kinds_of_answers(seed, 0.4)
        make_quiz_run(cli.workspace, name, kinds)
        label(cli.workspace, name, kinds, QIDS[:60])
    return cli


def test_a_metric_is_corrected_by_labels_and_both_are_shown(quiz: CommandLine) -> None:
    value = quiz.json("labels first second --correct em")
    first, second, gap = value["corrections"]
    assert (first["labels"], first["method"], gap["runs"]) == (60, "corrected", ["first", "second"])
    assert first["raw"]["value"] < first["corrected"]["low"], "exact match is too strict"
    assert gap["raw"]["value"] == pytest.approx(second["raw"]["value"] - first["raw"]["value"])
    out = quiz("labels first second --correct em").out
    assert "em and people's labels" in out and "weighted kappa" in out
    shown = f"{first['corrected']['value']:.3f} [{first['corrected']['low']:.3f}, "
    assert shown in out and "second − first: corrected by labels; 60 labels in 60 articles" in out


def test_compared_runs_show_the_metric_raw_and_corrected(quiz: CommandLine) -> None:
    compared = quiz.json("compare first second --metric em")
    corrected = quiz.json("labels first second --correct em")
    assert compared["labels"] == corrected
    assert "em and people's labels" in quiz("compare first second --metric em").out
    third = kinds_of_answers(3, 0.4)
    make_quiz_run(quiz.workspace, "third", third)
    assert len(quiz.json("compare first second third --metric em")["labels"]["corrections"]) == 5
    quiz.run("x")
    quiz.run("y", "echo")
    assert "labels" not in quiz.json("compare x y"), "labels of another dataset"


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        ("labels x --label q1", "--label needs what to say"),
        ("labels x --label q1 --page p1", "--page needs --relevant yes or no"),
        ("labels x --label q1 --page p99 --relevant yes", "did not retrieve 'p99'"),
        ("labels x --label q99 --grade right", "has no question 'q99'"),
        ("labels x --label q1 --grade right --right Titan", "belong to the grade gold-wrong"),
        ("labels x --grade right", "--grade belongs to --label"),
        ("labels x --label q1 --grade right --sample 3", "several tasks"),
        ("labels x --sample 0", "draw at least 1"),
        ("labels x --sample 3 --graders em", "name at least two columns"),
        ("labels x --out file.csv", "--out belongs to --export"),
        ("labels x --corrected-copy better", "nothing to correct"),
        ("labels nothing", "nothing"),
        ("labels x --correct em", "No answer of 'x' that em scores is labelled"),
        ("labels x --correct nothing", "nothing"),
        ("labels x --correct completion_tokens", "no known lowest and highest"),
        ("labels x x --correct em", "named twice"),
        ("labels x x", "more than one run belongs to --correct"),
    ],
)
def test_a_wrong_call_is_refused_in_a_sentence(
    labels: CommandLine, call: str, sentence: str
) -> None:
    ran = labels(call)
    assert ran.code == 2 and sentence in ran.err.splitlines()[-1]
    assert not (labels.workspace / "labels").exists()
