"""Select the questions that a part of the corpus can answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rallebench.core.errors import BadFileError, UsageError
from rallebench.datasets.reading import pick_up


def question(qid: str, *evidence: tuple[str, ...]) -> dict[str, Any]:
    """A record with one output element for each tuple of page ids, plus fields that must survive."""
    output = [
        {"answer": "a", "provenance": [{"wikipedia_id": page, "title": "t"} for page in e]}
        for e in evidence
    ]
    return {"id": qid, "input": f"Question {qid}?", "output": output, "meta": {"left": "as it is"}}


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    records = [
        question("only-outside", ("7",)),
        question("only-inside", ("1",)),
        question("second-element", ("7", "8"), ("8", "2")),
        {"id": "no-provenance", "input": "q", "output": [{"answer": "a"}]},
        {"id": "no-gold", "input": "q"},
        question("part-of-the-id", ("12",)),
        question("both-pages", ("1", "2")),
    ]
    path = tmp_path / "questions.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def picked(dataset: Path, pages: set[str], number: int | None = None) -> tuple[list[str], int]:
    records, read = pick_up(dataset, pages, number)
    return [record["id"] for record in records], read


@pytest.mark.parametrize(
    ("pages", "number", "ids", "read"),
    [
        ({"1", "2"}, None, ["only-inside", "second-element", "both-pages"], 7),
        ({"1", "2"}, 2, ["only-inside", "second-element"], 3),
        ({"2"}, 100, ["second-element", "both-pages"], 7),
        ({"99"}, None, [], 7),
    ],
)
def test_the_first_n_questions_with_a_page_of_any_evidence_in_the_corpus_are_kept(
    dataset: Path, pages: set[str], number: int | None, ids: list[str], read: int
):
    assert picked(dataset, pages, number) == (ids, read)


def test_records_come_back_unchanged_and_pages_are_compared_as_text(dataset: Path, tmp_path: Path):
    assert pick_up(dataset, {"1"}, 1)[0] == [question("only-inside", ("1",))]
    record = {"id": 5, "input": "q", "output": [{"provenance": [{"wikipedia_id": 12}]}]}
    path = tmp_path / "numbers.jsonl"
    path.write_text(json.dumps(record), encoding="utf-8")
    assert pick_up(path, {"12"}) == ([record], 1)


@pytest.mark.parametrize(
    ("pages", "number", "message"),
    [
        ({"1"}, 0, "ask for at least 1"),
        ({"1"}, -1, "ask for at least 1"),
        ((), 1, "has no page ids"),
    ],
)
def test_what_would_keep_none_is_refused(dataset: Path, pages: set[str], number: int, message: str):
    with pytest.raises(UsageError, match=message):
        pick_up(dataset, frozenset(pages), number)


def test_a_bad_row_is_named_with_its_line(dataset: Path):
    with open(dataset, "a", encoding="utf-8") as handle:
        handle.write("{\n")
    with pytest.raises(BadFileError, match="line 8 is not valid JSON"):
        pick_up(dataset, {"1"})
