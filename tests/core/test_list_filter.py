"""The typed filter of lists: terms and their faults, and rows compared
in the units of the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rallebench.core.errors import UsageError
from rallebench.core.list_columns import Arrangement, Cell, ListColumn, column_mean
from rallebench.core.list_filter import OPERATORS, FilterError, ListFilter, Term

Line = Mapping[str, Cell]
LINES: Sequence[Line] = (
    {"name": "night 10", "em": 0.518, "took": 0.25, "tags": ("night", "best of May"), "at": "2026-11-02T10:00:00"},
    {"name": "night 2", "em": 0.1, "took": 12.0, "tags": (), "at": "2026-10-30T23:59:59"},
    {"name": "day", "em": None, "took": None, "tags": ("Day",), "at": None},
)  # fmt: skip
COLUMNS: tuple[ListColumn[Line], ...] = (
    ListColumn("name", "Name", "text", lambda line: line["name"], searched=True),
    ListColumn("em", "EM", "share", lambda line: line["em"]),
    ListColumn("time", "Time", "seconds", lambda line: line["took"]),
    ListColumn("tags", "Tags", "tags", lambda line: line["tags"], aliases=("tag",)),
    ListColumn("created", "Created", "date", lambda line: line["at"]),
)

words = st.builds(Term, st.just(""), st.just(":"), st.text(), st.booleans())
conditions = st.builds(
    Term, st.text(min_size=1), st.sampled_from(OPERATORS), st.text(), st.booleans()
)
filters = st.lists(words | conditions).map(tuple).map(ListFilter)


@given(filters)
def test_a_filter_that_is_written_down_is_read_as_the_same(value: ListFilter) -> None:
    assert ListFilter.parse(str(value)) == value


@given(st.text(alphabet='ab -:<>="!\\ \n5'))
def test_any_text_is_a_filter_or_has_one_place_that_is_wrong(text: str) -> None:
    try:
        value = ListFilter.parse(text)
    except FilterError as error:
        assert 0 <= error.at <= len(text)
    else:
        assert ListFilter.parse(str(value)) == value


@pytest.mark.parametrize(
    ("where", "names"),
    [
        ("", ["night 10", "night 2", "day"]),
        ("night", ["night 10", "night 2"]),
        ("-night", ["day"]),
        ('"night 2"', ["night 2"]),
        ("night 2", ["night 2"]),
        ("em<50", ["night 2"]),
        ("em > 50 %".replace(" %", "%"), ["night 10"]),
        ("EM=51.8", ["night 10"]),
        ("em!=10", ["night 10"]),
        ("-em>50", ["night 2", "day"]),
        ("time<300ms", ["night 10"]),
        ("time>=0.2min", ["night 2"]),
        ("tag:night", ["night 10"]),
        ('tags="best of may"', ["night 10"]),
        ("tag=nigh", []),
        ("tag!=night", ["night 2", "day"]),
        ("created>2026-10-30", ["night 10"]),
        ("created>=2026-10", ["night 10", "night 2"]),
        ("created:2026-10-30", ["night 2"]),
        ("night em<50 time>1", ["night 2"]),
    ],
)
def test_rows_that_fit_stay(where: str, names: list[str]) -> None:
    assert [line["name"] for line in Arrangement(where).apply(LINES, COLUMNS)] == names


@pytest.mark.parametrize(
    ("where", "sentence"),
    [
        ("em<", "'em<' at character 1 needs a number after it."),
        ("night em<x", "'em<' at character 7 needs a number, such as 50."),
        ("em<5min", "'em<' at character 1 needs a number, such as 50."),
        ("tag:", "'tag:' at character 1 needs a text after it."),
        ("created>May", "'created>' at character 1 needs a date, such as 2026-11-01."),
        ("<5", "'<5' at character 1 needs a column before it, such as em<50."),
        ("-", "'-' needs a word or a condition after it."),
        ('a "b', "The quote at character 3 is not closed."),
        ("emm<5", "There is no column 'emm' (character 1). Did you mean em?"),
        ("name<5", "'name' (character 1) is a text; write name:5 in place of '<'."),
    ],
)
def test_a_fault_is_one_sentence_that_names_the_place_and_the_mend(
    where: str, sentence: str
) -> None:
    with pytest.raises(FilterError) as caught:
        Arrangement(where).apply(LINES, COLUMNS)
    assert str(caught.value) == sentence and caught.value.setting == "where"


@pytest.mark.parametrize(
    ("sort", "names"),
    [
        ("name", ["day", "night 2", "night 10"]),
        ("-name", ["night 10", "night 2", "day"]),
        ("em", ["night 2", "night 10", "day"]),
        ("-em", ["night 10", "night 2", "day"]),
        ("-created", ["night 10", "night 2", "day"]),
    ],
)
def test_rows_are_sorted_and_unknown_values_come_last(sort: str, names: list[str]) -> None:
    assert [line["name"] for line in Arrangement("", sort).apply(LINES, COLUMNS)] == names


def test_an_unknown_column_to_sort_by_is_one_sentence() -> None:
    with pytest.raises(UsageError, match="There is no column 'tme' to sort by"):
        Arrangement("", "-tme").apply(LINES, COLUMNS)


def test_a_mean_leaves_unknown_values_out() -> None:
    assert column_mean(LINES, COLUMNS[1]) == pytest.approx(0.309)
    assert column_mean([], COLUMNS[1]) is None
