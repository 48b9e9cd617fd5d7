"""One JSON object of columns is read row by row, whatever its size; a damaged one is a sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rallebench.core.errors import BadFileError
from rallebench.core.json_columns import MOST_COLUMNS, column_rows
from rallebench.core.sources import Problems, Source


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_the_rows_of_columns_are_joined_by_their_keys(tmp_path: Path) -> None:
    columns = {"query": {"7": "Who?", "9": None}, "answers": {"7": ["A\nda"], "9": []}}
    for indent in (None, 2):
        source = Source(write(tmp_path / "q.json", json.dumps(columns, indent=indent)))
        rows = list(column_rows(source))
        assert [row["query"] for _, row in rows] == ["Who?", None]
        assert [row["answers"] for _, row in rows] == [["A\nda"], []]
        assert source.done == source.total and source.unit == "record"


def test_a_cell_that_is_not_utf8_spoils_its_row_only(tmp_path: Path) -> None:
    content = b'{"q": {"0": "\xff", "1": "b"}, "a": {"0": 1, "1": 2}}'
    source = Source(write(tmp_path / "q.json", content), Problems(skip=True), encoding="utf-8")
    assert [row for _, row in column_rows(source)] == [{"q": "b", "a": 2}]
    assert "record 1 is not UTF-8" in source.problems.first[0].message


DAMAGED = {
    '{"q": {"0": 1}, "a": {"1": 1}}': "record 1: the columns q, a have different rows",
    '{"q": {"0": 1}, "a": {"0": 1, "1": 1}}': "record 2: the columns q, a have different rows",
    '{"q": {"0": 1}, "a": {"0": ': "is cut off",
    '{"q": {"0": 1}, "a"': "is cut off",
    '{"q": {"0": 1}, "a": [1]}': "is not a JSON object",
    '{"q": {"0": 1} "a": {}}': "',' or '}' is missing",
    '{"q": {"0": 1}} {}': "has text behind the end of its object",
    '{"q": {"0": truth, "1": 22222222}}': "is not valid JSON",
    "[1]": "is not a JSON object",
    "": "is cut off",
}


@pytest.mark.parametrize("text", DAMAGED)
def test_damaged_columns_are_one_sentence(text: str, tmp_path: Path) -> None:
    with pytest.raises(BadFileError) as caught:
        list(column_rows(Source(write(tmp_path / "q.json", text))))
    assert f"{tmp_path / 'q.json'}" in str(caught.value) and DAMAGED[text] in str(caught.value)


def test_more_columns_than_files_may_be_open_are_refused(tmp_path: Path) -> None:
    columns = {f"c{n}": {"0": n} for n in range(MOST_COLUMNS + 1)}
    with pytest.raises(BadFileError, match="more than 100 columns"):
        list(column_rows(Source(write(tmp_path / "q.json", json.dumps(columns)))))
