"""The workbench makes an environment from its settings, and refuses unknown names before anything is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from rallebench.core.errors import UsageError
from rallebench.core.types import Note, Reply
from rallebench.environments import environment_entry, environment_names
from rallebench.workspace.environments import environment_settings, make_environment
from rallebench.workspace.paths import WorkspaceFolder


def first_paragraph(made: object) -> str:
    flow = made.make().act("Search", "Georgia (country)")  # type: ignore[attr-defined]
    assert isinstance(next(flow), Note)
    try:
        flow.send(Reply(""))
    except StopIteration as end:
        return str(end.value)
    raise AssertionError("a title asks no retriever")


def test_the_starters_pages_are_opened_without_an_index_and_are_kept(tmp_path: Path) -> None:
    space = WorkspaceFolder(tmp_path)
    made = make_environment(space, "wikipedia", {})
    assert made.retrievers == ("starter-bm25",) and not made.tools
    assert first_paragraph(made).startswith("Georgia is a country in the South Caucasus")
    again = make_environment(space, "wikipedia", {})
    assert again.fingerprint == made.fingerprint
    assert [
        path.name for path in (tmp_path / "cache" / "pages").iterdir() if path.name.startswith(".")
    ] == []


def test_a_setting_that_changes_what_is_observed_changes_the_fingerprint(tmp_path: Path) -> None:
    space = WorkspaceFolder(tmp_path)
    prints = {
        make_environment(space, "wikipedia", given).fingerprint
        for given in ({}, {"similar": 3}, {"compat": "original"})
    }
    assert len(prints) == 3


@pytest.mark.parametrize(
    ("name", "given", "why"),
    [
        ("nowhere", {}, "environment"),
        ("mcp:moons", {}, "There is no MCP server 'moons'"),
        ("mcp:moons", {"timeout": 0}, "timeout"),
        ("wikipedia", {"retriever": "nothing"}, "nothing"),
        ("wikipedia", {"corpus": "nothing"}, "nothing"),
        ("wikipedia", {"similar": 0}, "similar"),
        ("wikipedia", {"colour": "red"}, "colour"),
        ("corpus-tools", {"k": "many"}, "whole number"),
        ("scholar", {"table": "nothing"}, "nothing"),
        ("scholar", {"apis": "five"}, "one of all, four"),
    ],
)
def test_what_is_not_there_is_one_sentence_and_writes_nothing(
    tmp_path: Path, name: str, given: dict[str, object], why: str
) -> None:
    with pytest.raises(UsageError, match=why):
        make_environment(WorkspaceFolder(tmp_path), name, given)
    assert list(tmp_path.iterdir()) == []


def test_every_environment_has_defaults_for_all_its_settings() -> None:
    for name in environment_names(["moons"]):
        settings = environment_settings(name, {})
        assert settings and set(settings) == set(environment_entry(name).form)
