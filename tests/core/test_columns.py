"""Columns of a table in the roles of a format."""

from __future__ import annotations

from typing import Any

import pytest

from rallebench.core.columns import ColumnMap, Role, list_columns, parse_columns
from rallebench.core.errors import BadFileError, NotFoundError, RalleError, UsageError

ROLES = {
    "question": Role("question", ("question", "query")),
    "answer": Role("answer", ("answer", "answers")),
    "page": Role("page_id", ("page_id",)),
}


@pytest.mark.parametrize(
    "columns, row, mapped",
    [
        ({"question": "q"}, {"q": "Who?", "n": 1}, {"n": 1, "question": "Who?"}),
        ({"question": "Q"}, {"q": "Who?"}, {"question": "Who?"}),
        ({"question": "q"}, {"q": "Who?", "query": "old"}, {"question": "Who?"}),
        ({"answer": "a"}, {"a": "x", "answers": ["y"], "question": "Who?"}, {"question": "Who?", "answer": "x"}),
        ({"answer": "meta.answers.text"}, {"meta": {"answers": {"text": ["x"]}}}, {"answer": ["x"]}),
        ({"page": "docs.id"}, {"docs": [{"id": 1}, {"id": 2}, "x"]}, {"page_id": [1, 2]}),
        ({"page": "a.b"}, {"a.b": 3, "a": {"b": 4}}, {"page_id": 3}),
        ({"question": "x", "answer": "x"}, {"x": "Who?"}, {"question": "Who?", "answer": "Who?"}),
        ({"answer": ""}, {"question": "Who?", "answer": "no gold"}, {"question": "Who?"}),
        ({"answer": "a.b"}, {"a": "text"}, {"answer": None}),
        ({"answer": "a"}, {}, {"answer": None}),
    ],
)  # fmt: skip
def test_a_row_has_its_columns_in_their_roles(
    columns: dict[str, str], row: dict[str, Any], mapped: dict[str, Any]
) -> None:
    assert dict(ColumnMap(columns, ROLES).apply(row)) == mapped


def test_names_in_order_are_those_that_the_format_reads() -> None:
    columns = ColumnMap({"question": "q", "answer": "a.text"}, ROLES)
    assert columns.rename(["n", "Q", "query", "answer"]) == ["n", "question", "", ""]
    assert columns.fields(["n", "a"]) == ["question", "answer", "n", "a"]
    assert columns.sources == {"q", "a.text", "a"}


@pytest.mark.parametrize(
    "text, kind, sentence",
    [
        ("question", UsageError, "'question' is not ROLE=COLUMN, as in question=q,answer=a"),
        ("=q", UsageError, "'=q' is not ROLE=COLUMN"),
        ("question=a,question=b", UsageError, "The role 'question' has two columns"),
        ("qestion=q", NotFoundError, "There is no role 'qestion'. Did you mean 'question'"),
        ("question=nope", BadFileError, r"x\.csv has no column 'nope'; it has id, q, a, a\.text"),
    ],
)
def test_wrong_columns_are_one_sentence(text: str, kind: type[RalleError], sentence: str) -> None:
    names = list_columns([{"id": 1, "q": "Who?", "a": {"text": []}}])
    with pytest.raises(kind, match=sentence):
        ColumnMap(parse_columns(text), ROLES).check(names, "x.csv")


def test_columns_are_listed_to_a_depth_and_hostile_nesting_ends() -> None:
    deep: dict[str, Any] = {"leaf": 1}
    for _ in range(900):
        deep = {"a": deep}
    assert list_columns([deep]) == ["a", "a.a", "a.a.a", "a.a.a.a"]
