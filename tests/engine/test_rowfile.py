"""A stage's file may be edited: a person's rows stay, and rows from changed sources are made again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from small_workspace import read_lines, write_lines

from rallebench.core.errors import BadFileError
from rallebench.engine.rowfile import RowFile


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "1-articles.jsonl"


def add(file: Path, source: str, of: str, *rows: dict[str, object]) -> None:
    there = RowFile(file)
    there.add(source, of, rows)
    there.close()


def test_a_row_holds_for_what_it_was_made_of_and_for_nothing_else(file: Path) -> None:
    add(file, "a", "1111", {"id": "a", "keep": True})
    assert (
        RowFile(file).has("a", "1111")
        and not RowFile(file).has("a", "2222")
        and not RowFile(file).has("b", "1111")
    )


def test_of_rows_made_again_the_new_ones_count_and_the_old_ones_are_kept(file: Path) -> None:
    add(file, "a", "1111", {"id": "a-q1", "n": 1}, {"id": "a-q2", "n": 1})
    add(file, "a", "2222", {"id": "a-q1", "n": 2})
    rows = RowFile(file)
    rows.settle([("a", "2222")])
    assert [(row["id"], row["n"]) for row in rows] == [("a-q1", 2)]
    assert len(read_lines(file)) == 3


def test_a_row_that_a_person_changed_is_never_made_again(file: Path) -> None:
    add(file, "a", "1111", {"id": "a", "keep": False})
    (row,) = read_lines(file)
    write_lines(file, [{**row, "keep": True}])
    rows = RowFile(file)
    assert rows.has("a", "9999")
    rows.settle([("a", "9999")])
    assert [(r["keep"], r["edited"]) for r in rows] == [(True, True)]


def test_a_row_that_a_person_wrote_joins_the_others(file: Path) -> None:
    add(file, "a", "1111", {"id": "a"})
    with open(file, "a") as handle:
        handle.write(
            '{"id": "mine", "question": "Who?"}'
        )  # an editor may leave the last line without an end
    rows = RowFile(file)
    rows.settle([("a", "1111")])
    assert [row["id"] for row in rows] == ["a", "mine"]
    rows.add("b", "1", [{"id": "b"}])
    rows.close()
    assert [row["id"] for row in read_lines(file)] == ["a", "mine", "b"]


def test_a_line_that_was_torn_when_its_process_was_killed_is_forgiven(file: Path) -> None:
    add(file, "a", "1111", {"id": "a"})
    with open(file, "a") as handle:
        handle.write('{"id": "b", "ke')
    assert not RowFile(file).has("b", "1111")
    add(file, "b", "1111", {"id": "b"})
    assert [row["id"] for row in read_lines(file)] == ["a", "b"]


def test_a_row_that_failed_is_tried_again(file: Path) -> None:
    add(file, "a", "1111", {"id": "a", "error": "The server is away."})
    assert not RowFile(file).has("a", "1111")


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("{broken", "line 2 is not valid JSON"),
        ('{"title": "x"}', "line 2 is not a row"),
        ('{"id": "b", "keep": "yes"}', "line 2: 'keep' must be"),
    ],
)
def test_a_line_that_was_edited_to_nonsense_is_named(file: Path, line: str, sentence: str) -> None:
    file.write_text(json.dumps({"id": "a"}) + f"\n{line}\n")
    with pytest.raises(BadFileError, match=sentence):
        RowFile(file)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"text": 5}, "'text' is a number, but a text in other rows"),
        ({"text": None}, "'text' is null, but a text in other rows"),
        ({"answers": "Titan"}, "'answers' is a text, but a list \\(a text each\\) in other rows"),
        ({"answers": ["Titan", None]}, "'answers' is a list of several types"),
        ({"asked": [1]}, "'asked' is a list \\(a number each\\), but an object in other rows"),
    ],
)
def test_a_persons_row_with_values_of_other_types_is_named_with_its_line(
    file: Path, changed: dict[str, object], words: str
) -> None:
    row = {"text": "moon", "answers": ["Titan"], "asked": {"calls": 1}}
    add(file, "a", "1", {"id": "a", **row})
    add(file, "b", "1", {"id": "b", **row})
    first, second = read_lines(file)
    write_lines(file, [first, {**second, **changed}])
    with pytest.raises(BadFileError, match=f"line 2: {words}.*; mend the line or remove it"):
        RowFile(file)


def test_a_persons_row_may_lack_fields_have_more_of_them_and_hold_empty_lists(file: Path) -> None:
    add(file, "a", "1", {"id": "a", "answers": ["Titan"], "why": None, "n": 1})
    write_lines(
        file, [*read_lines(file), {"id": "b", "answers": [], "why": "mine", "n": 1.5, "new": {}}]
    )
    rows = RowFile(file)
    rows.settle_all()
    assert [row["edited"] for row in rows] == [False, True]


def test_text_that_utf_8_cannot_hold_survives(file: Path) -> None:
    add(file, "a", "1", {"id": "a", "text": "half a pair \ud800"})
    add(file, "b", "1", {"id": "b"})
    rows = RowFile(file)
    rows.settle([("a", "1"), ("b", "1")])
    assert [(row["id"], row["edited"]) for row in rows] == [("a", False), ("b", False)]
    assert rows.row("a")["text"] == "half a pair \ud800"
