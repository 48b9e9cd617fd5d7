"""Reading KILT's JSON lines: kept fields, tolerated deviations, and refusals."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from importing import imported_dataset

from rallebench.core.errors import BadFileError
from rallebench.datasets.reading import read_examples, read_questions

ROW = {
    "id": "q1",
    "input": "Which city?",
    "output": [{"answer": "Oslo", "provenance": [{"wikipedia_id": "1"}]}],
}


def write(path: Path, *rows: Any) -> Path:
    lines = (row if isinstance(row, str) else json.dumps(row, ensure_ascii=False) for row in rows)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_a_record_becomes_question_gold_and_itself(tmp_path: Path) -> None:
    row = {
        "id": 7,
        "input": "Which  city?\n",
        "output": [
            {
                "answer": " Oslo ",
                "provenance": [{"wikipedia_id": 12, "title": "Oslo"}, {"wikipedia_id": "3"}],
            },
            {"answer": "Kristiania"},
            {"answer": "Oslo"},
            {
                "provenance": [
                    {"wikipedia_id": " 12 ", "title": "ignored, named before"},
                    {"title": "no page"},
                ]
            },
        ],
        "meta": {"any": "thing"},
    }
    (example,) = read_examples(write(tmp_path / "q.jsonl", row))
    assert (example.question.qid, example.question.text) == ("7", "Which  city?\n")
    assert example.gold.answers == ("Oslo", "Kristiania")
    assert example.gold.provenance == (frozenset({"12", "3"}), frozenset({"12"}))
    assert list(example.gold.titles.items()) == [("12", "Oslo"), ("3", "")]
    assert example.record == row


def test_a_question_without_gold_is_read(tmp_path: Path) -> None:
    empty = [{"answer": None, "provenance": None}], [{"answer": " ", "provenance": []}]
    outputs = ({}, *({"output": output} for output in (None, [], [{}], *empty)))
    rows = ({"id": n, "input": "Why?", **output} for n, output in enumerate(outputs))
    examples = list(read_examples(write(tmp_path / "q.jsonl", *rows)))
    assert [(e.gold.answers, e.gold.provenance) for e in examples] == [((), ())] * 6


def test_a_gzipped_file_reads_the_same_under_any_name(tmp_path: Path) -> None:
    plain = write(tmp_path / "q.jsonl", ROW, "", {**ROW, "id": "ü"})
    for name in ("q.jsonl.gz", "renamed.jsonl"):
        packed = tmp_path / "packed" / name
        packed.parent.mkdir(exist_ok=True)
        packed.write_bytes(gzip.compress(plain.read_bytes()))
        assert list(read_examples(packed)) == list(read_examples(plain))


def test_a_file_is_read_once_and_again_when_it_has_changed(tmp_path: Path) -> None:
    file = write(tmp_path / "q.jsonl", ROW)
    assert read_questions(file) is read_questions(file)
    write(file, {**ROW, "id": "q2"}, {**ROW, "id": "q3"})
    assert [example.question.qid for example in read_questions(file)] == ["q2", "q3"]


def test_reading_streams_and_a_bad_row_stops_it_where_it_stands(tmp_path: Path) -> None:
    rows = read_examples(write(tmp_path / "q.jsonl", ROW, "{broken"))
    assert next(rows).question.qid == "q1"
    with pytest.raises(BadFileError, match=r"q\.jsonl, line 2 is not valid JSON"):
        next(rows)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"input": "x"}, "has no 'id'"),
        ({"id": True, "input": "x"}, "'id' that is true or false"),
        ({"id": 1.5, "input": "x"}, "'id' that is a number, not text"),
        ({"id": " ", "input": "x"}, "empty 'id'"),
        ({"id": "a"}, "has no 'input'"),
        ({"id": "a", "input": ["x"]}, "'input' that is a list"),
        ({"id": "a", "input": "  "}, "empty 'input'"),
        ({**ROW, "id": " q1 "}, "repeats the id 'q1' of line 1"),
        (
            {"id": "a", "input": "x", "output": {"answer": "y"}},
            "'output' should be a list of objects",
        ),
        ({"id": "a", "input": "x", "output": ["y"]}, "'output' should be a list of objects"),
        (
            {"id": "a", "input": "x", "output": [{"provenance": [{"relevance": float("nan")}]}]},
            "a 'relevance' is not finite",
        ),
        (
            {"id": "a", "input": "x", "output": [{"provenance": [{"relevance": "2"}]}]},
            "a 'relevance' is text, not a number",
        ),
        ({"id": "a", "input": "x", "output": [{"answer": 3}]}, "an 'answer' is a number, not text"),
        (
            {"id": "a", "input": "x", "output": [{"provenance": "1"}]},
            "'provenance' should be a list of objects",
        ),
        (
            {"id": "a", "input": "x", "output": [{"provenance": [{"wikipedia_id": []}]}]},
            "'wikipedia_id' is a list",
        ),
        ("[1, 2]", "not a JSON object but list"),
        ('{"id": "a", "input": ' + "9" * 5000 + "}", "line 2 is not valid JSON .*too many digits"),
    ],
)
def test_a_bad_row_is_refused_with_file_and_line(row: Any, message: str, tmp_path: Path) -> None:
    path = write(tmp_path / "q.jsonl", ROW, row)
    with pytest.raises(BadFileError, match=message) as caught:
        list(read_examples(path))
    assert "q.jsonl" in str(caught.value)
    packed = tmp_path / "q.jsonl.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    with pytest.raises(BadFileError, match=message):
        list(read_examples(packed))


def test_a_file_that_is_absent_damaged_or_holds_no_question_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(ROW).encode() * 100)[:-20])
    with pytest.raises(BadFileError, match="damaged gzip"):
        list(read_examples(path))
    with pytest.raises(BadFileError, match="does not exist"):
        read_questions(tmp_path / "absent.jsonl")
    with pytest.raises(BadFileError, match="contains no question"):
        read_questions(write(tmp_path / "blank.jsonl", "", " "))


def test_a_limit_keeps_the_first_questions_but_checks_all(tmp_path: Path) -> None:
    good = write(tmp_path / "q.jsonl", *({**ROW, "id": n} for n in range(5)))
    assert [e.question.qid for e in read_questions(good, 2)] == ["0", "1"]
    assert (
        len(read_questions(good))
        == len(read_questions(good, 99))
        == len(read_questions(good, 10**30))
        == 5
    )
    with pytest.raises(BadFileError, match="line 3"):
        read_questions(write(tmp_path / "bad.jsonl", ROW, {**ROW, "id": 2}, "{"), 1)


def test_every_published_set_loads_whole(shared_data: Path) -> None:
    paths = [
        *(shared_data / "kilt").glob("*_kilt.jsonl"),
        *(shared_data / "kilt" / "fixtures").glob("real_*.jsonl"),
    ]
    assert len(paths) >= 10
    for path in paths:
        examples = read_questions(path)
        with open(path, encoding="utf-8") as lines:
            assert len(examples) == sum(1 for line in lines if line.strip()), path
        assert all(example.gold.answers for example in examples), path


# ── questions without a right answer ─────────────────────────────────────────


def test_an_unanswerable_question_may_have_gold_pages_and_is_read_again_alike(
    tmp_path: Path,
) -> None:
    record = {"id": "n", "input": "?", "output": [{"provenance": [{"wikipedia_id": "p1"}]}]}
    path = tmp_path / "q.jsonl"
    path.write_text(json.dumps({**record, "unanswerable": True}) + "\n")
    made = imported_dataset(tmp_path / "datasets", "mine", path)
    (example,) = read_examples(made.path)
    assert example.gold.unanswerable and example.gold.pages == {"p1"}
    assert (made.form, made.unanswerable, made.answers, made.neither) == ("kilt", 1, 0, 0)
    path.write_text(json.dumps({**record, "unanswerable": False}) + "\n")
    assert not next(read_examples(path)).gold.unanswerable


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"unanswerable": "yes"}, "has an 'unanswerable' that is text, not true or false"),
        ({"unanswerable": 1}, "has an 'unanswerable' that is a number, not true or false"),
        ({"unanswerable": float("nan")}, "has an 'unanswerable' that is a number"),
        (
            {"unanswerable": True, "output": [{"answer": "Titan"}]},
            "is unanswerable, but accepts the answer 'Titan'; remove one of the two",
        ),
    ],
)
def test_a_mark_that_is_no_truth_value_or_contradicts_an_answer_is_a_bad_row(
    fields: dict[str, Any], fault: str, tmp_path: Path
) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text(json.dumps({"id": "n", "input": "?", **fields}) + "\n")
    with pytest.raises(BadFileError, match=f"line 1 {fault}"):
        list(read_examples(path))


def test_a_set_of_unanswerable_questions_only_is_told(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text(json.dumps({"id": "n", "input": "?", "unanswerable": True}) + "\n")
    made = imported_dataset(tmp_path / "datasets", "mine", path)
    assert made.notes[0] == "1 question without a right answer: an answer that declines scores 1."
    assert made.warnings[0].startswith(
        "No question has a right answer, so only declining is right."
    )
