"""``labels/DATASET.jsonl``: appended labels are read, the last label counts, and damage loses one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rallebench.core.labels import (
    AnswerLabel,
    LabelBook,
    LabelSample,
    PassageLabel,
    SampledAnswer,
    normal_answer,
    question_digest,
)
from rallebench.datasets.label_file import append_labels, label_file, read_labels

QUESTION = question_digest("Which moon?")


def label(who: str, grade: object, time: float = 1.0, answer: str = "titan") -> AnswerLabel:
    return AnswerLabel(time, who, "q1", QUESTION, answer, grade, run="x")  # type: ignore[arg-type]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return label_file(tmp_path, "my-qa")


def test_labels_are_read_as_they_were_written_and_the_last_one_counts(path: Path) -> None:
    assert read_labels(path) == LabelBook()
    append_labels(path, [label("ann", "wrong"), label("ben", "right", 2.0)])
    passages = [
        PassageLabel(1.0, who, "q1", QUESTION, who == "ann", "p1") for who in ("ann", "ben")
    ]
    sample = LabelSample(
        1.0, "ann", "x", 7, 8, (SampledAnswer("q1", QUESTION, "titan", 0.5),), ("em",)
    )
    append_labels(path, [*passages, sample, label("ann", "partly", 3.0)])
    book = read_labels(path)
    key = label("ann", "right").key
    assert [(x.who, x.grade) for x in book.answer_labels(key)] == [
        ("ben", "right"),
        ("ann", "partly"),
    ]
    assert book.relevance(QUESTION, "p1") is True, "in doubt it is relevant"
    assert book.relevance(QUESTION, "p2") is None and book.samples == {"x": sample}
    assert len(path.read_text().splitlines()) == 6, "nothing is overwritten"
    assert not list(path.parent.glob(".*")), "no lock is left"


def test_a_skipped_answer_counts_as_not_labelled(path: Path) -> None:
    append_labels(path, [label("ann", "right"), label("ann", "skip", 2.0)])
    assert read_labels(path).answer_labels(label("ann", "right").key) == ()


def test_a_torn_last_line_is_left_out_and_the_next_label_is_whole(path: Path) -> None:
    append_labels(path, [label("ann", "right")])
    with path.open("ab") as file:
        file.write(b'{"kind": "answer", "who": "b')
    assert len(read_labels(path).answers) == 1 and read_labels(path).problem == ""
    append_labels(path, [label("ann", "wrong", answer="triton")])
    assert len(read_labels(path).answers) == 2 and read_labels(path).problem == ""


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        '{"kind": "vote"}',
        json.dumps({"kind": "answer", "who": "ann"}),
        json.dumps({"kind": "answer", "time": 1.0, "who": "a", "qid": "q", "question": "d", "answer": "a", "grade": "good"}),
        json.dumps({"kind": "sample", "time": 1.0, "who": "a", "run": "x", "seed": 0, "total": 1,
                    "answers": [{"qid": "q", "question": "d", "answer": "a", "probability": 2.0}]}),
    ],
)  # fmt: skip
def test_a_damaged_line_is_reported_and_costs_only_itself(path: Path, line: str) -> None:
    append_labels(path, [label("ann", "right")])
    path.write_text(line + "\n" + path.read_text())
    book = read_labels(path)
    assert "line 1" in book.problem and "remove that line" in book.problem
    assert len(book.answer_labels(label("ann", "right").key)) == 1


def test_any_name_of_a_dataset_gives_a_file_in_the_folder(tmp_path: Path) -> None:
    for name in ("my-qa", "../../etc", "a/b", "黑豹", "50%", ".."):
        assert label_file(tmp_path, name).resolve().parent == tmp_path / "labels"


def test_answers_are_equal_without_their_case_and_spaces_but_not_without_their_signs() -> None:
    assert normal_answer("The  Danube\n") == normal_answer("the danube")
    assert len({normal_answer(text) for text in ("5", "-5", "5.", "５", "")}) == 4
