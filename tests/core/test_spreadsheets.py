"""Cells of CSV exports that begin like a formula: shown as text by a spreadsheet, and read back unchanged."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rallebench.core.sources import Source
from rallebench.core.spreadsheets import quote_cell, unquote_cell
from rallebench.core.table_files import csv_lines, csv_table
from rallebench.core.tables import Table
from rallebench.core.terminal import visible

FORMULAS = ("=1+1", "+cmd", "-cmd", "@SUM(A1)", "\t=1", "\r=1", "＝1+1", "-2+3+cmd|' /C calc'!A0")


@pytest.mark.parametrize("text", FORMULAS)
def test_a_text_that_begins_like_a_formula_is_quoted(text: str) -> None:
    ((cell, number),) = csv.reader(io.StringIO(csv_lines([[text, -0.5]]), newline=""))
    assert cell == f"'{text}" and number == "-0.5"
    table = Table(f"t {text}", (text, "EM"), ((text, 0.5),))
    cells = [cell for row in csv.reader(io.StringIO(csv_table(table), newline="")) for cell in row]
    shown = quote_cell(visible(text))
    assert cells == [shown, "EM", shown, "0.5"]
    ((joined,),) = csv.reader(io.StringIO(csv_lines([[[text, "b"]]]), newline=""))
    assert joined == f"'{text} | b"


@pytest.mark.parametrize(
    "text", ["-0.5", "+3", "-1e-5", "-12 %".replace(" ", ""), ".5", "", "moon", "a=b", "'tis"]
)
def test_numbers_and_other_texts_stay(text: str) -> None:
    assert quote_cell(text) == text


@given(st.text() | st.text(alphabet="'=+-@\t1x"))
def test_what_is_quoted_is_read_back(text: str) -> None:
    assert unquote_cell(quote_cell(text)) == text or quote_cell(text) == text == "'" + unquote_cell(
        text
    )
    if quote_cell(text) != text:
        assert unquote_cell(quote_cell(text)) == text


@pytest.mark.parametrize("text", [*(t for t in FORMULAS if "\r" not in t), "''=x", "'=x", "-0.5"])
def test_our_own_csv_is_read_as_it_was_written(tmp_path: Path, text: str) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(csv_lines([["id", "text"], ["1", text], ["2", "plain"]]), encoding="utf-8")
    (_, first), (_, row), _ = Source(path).table()
    assert first == ["id", "text"] and row == ["1", text]
