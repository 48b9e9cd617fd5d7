"""Patches are merged so that later parts win, and addresses are read as written."""

from __future__ import annotations

import pytest

from rallebench.core.errors import UsageError
from rallebench.gui import addresses
from rallebench.gui.addresses import ComparisonAddress, IndexAddress, Query, RunAddress
from rallebench.gui.events import WindowState
from rallebench.gui.frame import Page
from rallebench.gui.patches import Download, PageEvent, Patch, merge, problem


def test_the_script_reads_each_part_under_its_key_and_html_is_escaped() -> None:
    patch = Patch(
        {"list": "<b>"},
        title="Runs",
        go="#/runs/list",
        say="<i>",
        dialog="",
        store={"draft": None},
        download=Download("a.csv", "x"),
        event=PageEvent("rb-stale", index=0),
    )
    assert patch.to_json() == {
        "#list": "&lt;b&gt;",
        "title": "Runs",
        "go": "#/runs/list",
        "say": "<i>",
        "dialog": "",
        "store": {"draft": None},
        "download": {"name": "a.csv", "text": "x"},
        "event": {"name": "rb-stale", "index": 0},
    }
    assert Patch().to_json() == {} and not Patch() and Patch(dialog="")


def test_a_later_part_replaces_an_earlier_one_and_follows_the_others() -> None:
    both = Patch({"part": "old", "other": "1"}, say="a", dialog="x") | Patch(
        {"part": "new"}, dialog=""
    )
    assert list(both.html.items()) == [("other", "1"), ("part", "new")]
    assert (both.say, both.dialog) == ("a", "")


def test_events_come_after_the_elements_they_speak_of() -> None:
    keys = list((Patch(event=PageEvent("rb-rows")) | Patch({"list": "1"}, dialog="d")).to_json())
    assert keys == ["dialog", "#list", "event"]


def test_merging_drops_what_is_shown_meanwhile() -> None:
    patches = iter([Patch({"a": "1"}, meanwhile=lambda stopped: Patch()), Patch(say="done")])
    assert merge(patches) == Patch({"a": "1"}, say="done")


def test_an_error_is_shown_at_its_field_and_a_bug_is_told_from_it() -> None:
    patch = problem(UsageError("k is 0.", "k"))
    assert patch == Patch(problem="k is 0.", at_field="k") and not patch.is_bug
    assert patch.to_json() == {"problem": "k is 0.", "field": "k"}
    assert problem(KeyError("x")).is_bug


@pytest.mark.parametrize(
    ("address", "href"),
    [
        (IndexAddress("a b", q="ü"), "#/data/index?id=a%20b&q=%C3%BC"),
        (RunAddress("n"), "#/runs/run?id=n"),
        (ComparisonAddress("x", "y", metric="f1"), "#/runs/compare?a=x&b=y&metric=f1"),
        (ComparisonAddress(r=("x", "y", "z")), "#/runs/compare?r0=x&r1=y&r2=z"),
        (addresses.RunsAddress(), "#/runs/list"),
    ],
)
def test_an_address_is_read_as_it_is_written(address: Query, href: str) -> None:
    assert address.href == href
    assert type(address).read({**address.values(), "unknown": "1"}) == address


def test_every_address_leads_to_a_view(page: Page) -> None:
    kinds = [
        kind
        for kind in vars(addresses).values()
        if isinstance(kind, type) and issubclass(kind, Query)
    ]
    assert {kind.VIEW for kind in kinds if kind.VIEW} <= set(page.views)
    assert len(kinds) > 12


def test_a_window_keeps_one_value_of_each_class() -> None:
    window = WindowState("w")
    assert window.get(list) is None and window.state(list) is window.state(list)
    window.put({"a": 1})
    assert window.state(dict) == {"a": 1}
    window.drop(dict)
    assert window.get(dict) is None
