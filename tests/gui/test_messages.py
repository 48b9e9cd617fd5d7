"""Any message of a script to the page is answered with one sentence or a patch, never with an unexpected error."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from page_views import opened_page

from rallebench.gui.frame import Page
from rallebench.gui.patches import Patch

LONG = "x" * 5000
WRONG: dict[str, Any] = {
    "a list": [],
    "a text": "act",
    "nothing": None,
    "no action": {"window": "w"},
    "an unknown field": {"action": "runs.refresh", "other": 1},
    "an action that is a number": {"action": 3},
    "an action of 5,000 characters": {"action": LONG},
    "a window of 5,000 characters": {"action": "runs.refresh", "window": LONG},
    "a window that is a list": {"action": "runs.refresh", "window": ["w"]},
    "a number that is a text": {"action": "runs.refresh", "number": "1"},
    "a number that is not a number": {"action": "runs.refresh", "number": math.nan},
    "a number that is too large": {"action": "runs.refresh", "number": 10**400},
    "data that is a list": {"action": "runs.refresh", "data": [1]},
    "data that is a text": {"action": "runs.refresh", "data": "x"},
    "a field that is not a number": {"action": "runs.refresh", "data": {"k": math.nan}},
    "a field that is infinite": {"action": "runs.refresh", "data": {"k": -math.inf}},
    "a nested field": {"action": "runs.refresh", "data": {"k": {"a": {"b": 1}}}},
    "a nested list": {"action": "runs.refresh", "data": {"k": [[1]]}},
    "a field of 5,000 characters as its name": {"action": "runs.refresh", "data": {LONG: "1"}},
    "a query that is a list": {"action": "open", "query": ["a"]},
    "a query with a number": {"action": "open", "query": {"a": 1}},
    "files that are texts of a kind": {"action": "code.upload", "data": {"files": [{"path": 1}]}},
}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with opened_page(tmp_path_factory.mktemp("messages") / "workspace") as page:
        yield page


@pytest.mark.parametrize("message", WRONG.values(), ids=WRONG.keys())
def test_a_message_that_fits_no_schema_is_named_in_one_sentence(page: Page, message: Any) -> None:
    for function in (page.act, page.more, page.stop, page.list_rows):
        answer = function(message)
        assert answer.problem.startswith("The page sent a message that is wrong at ")
        assert "\n" not in answer.problem and len(answer.problem) < 300


def test_an_unknown_action_view_list_or_stream_is_told(page: Page) -> None:
    assert "older than the program" in page.act({"action": "gone"}).problem
    rows = {"list": "gone", "key": {}, "start": 0, "count": 1}
    assert "older than the program" in page.list_rows(rows).problem
    assert page.act({"action": "open", "data": {"view": "no/where"}}).go == "#/build/one"
    assert page.more({"stream": "gone"}) == Patch(over=True)


def test_an_unknown_workflow_is_refused_and_not_kept(page: Page) -> None:
    before = page.call("agent.choose", {"workflow": "react"}, window="agent").html["agent-form"]
    answer = page.act({"action": "agent.choose", "data": {"workflow": "nope"}, "window": "agent"})
    assert "There is no workflow 'nope'" in answer.problem
    assert page.call("agent.choose", {}, window="agent").html["agent-form"] == before


QUIET = {"runs.mlflow", "models.find", "agent.run", "experiments.run", "models.load", "data.build"}
"""Actions that start servers or jobs, or contact other servers."""
FIELDS = [
    "id",
    "name",
    "run",
    "index",
    "at",
    "by",
    "as",
    "view",
    "dataset",
    "chain",
    "text",
    "words",
    "k",
    "row",
    "stage",
    "file",
    "limit",
    "kind",
    "form",
    "path",
    "template",
]
VALUES = st.one_of(
    st.sampled_from(
        [
            "",
            "0",
            "-1",
            "1",
            "999",
            "nan",
            "1e9",
            "x",
            "../x",
            "\0",
            LONG,
            "tiny-qa",
            "read",
            "tiny",
        ]
    ),
    st.text(max_size=8),
    st.booleans(),
    st.integers(-3, 3),
    st.floats(allow_nan=False, allow_infinity=False),
    st.none(),
    st.lists(st.text(max_size=3), max_size=2),
)


@settings(
    max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=6))
def test_no_field_makes_any_action_fail_unexpectedly(page: Page, data: dict[str, Any]) -> None:
    unexpected = []
    for action in sorted(set(page._actions) - QUIET):
        answer = page.act({"action": action, "data": data, "window": "fuzz"})
        stream = answer.stream
        while stream and not answer.over:
            answer = page.more({"stream": stream, "window": "fuzz"})
        if answer.is_bug:
            unexpected.append((action, answer.problem))
    assert unexpected == []
