"""Names and texts of datasets, corpora, replies, runs, chains, experiments, files and models are text on the page, never
elements."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hostile_workspace import (
    NAME,
    OWN_CHAIN,
    PLANTED,
    TEXT,
    Shown,
    addresses,
    fill_hostile_workspace,
    make_hostile_workspace,
    plant_in_prompts,
)

from rallebench.core.errors import RalleError
from rallebench.gui import html
from rallebench.gui.addresses import RunAddress
from rallebench.gui.events import Rows
from rallebench.gui.frame import Page
from rallebench.gui.html import escape
from rallebench.gui.patches import Patch
from rallebench.services.workbench import Workbench

AWAY = {"runs.mlflow", "models.find", "agent.run", "experiments.run", "data.verify"}
"""Actions that start servers, contact other servers, or take long."""


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """The page over the hostile workspace, filled."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("rallebench.services.tracking.Tracking.trace", lambda *_: None)
        folder = tmp_path_factory.mktemp("hostile")
        plant_in_prompts(folder, patched)
        workbench = Workbench(make_hostile_workspace(folder / "w"))
        page = Page(workbench)
        fill_hostile_workspace(page)
        yield page
        workbench.close()


def browser_html(patch: Patch) -> Shown:
    """HTML as received by the browser."""
    sent = patch.to_json()
    panels = [sent.get(name, "") for name in ("dialog", "drawer", "chain", "undo")]
    return Shown("".join([*panels, *(part for key, part in sent.items() if key[0] == "#")]))


def test_every_view_and_what_its_buttons_open_show_planted_elements_as_text(hostile: Page) -> None:
    pressed: set[str] = set()
    planted: dict[str, int] = {}
    texts = ""
    for address in addresses(hostile):
        shown = browser_html(hostile.open(address))
        texts += shown.text
        pressable = shown.pressable
        planted[address.partition("?")[0]] = shown.text.count(PLANTED)
        assert shown.injected == [], address
        for name, key in shown.lists:
            message = {"list": name, "key": key, "start": 0, "count": 50, "window": "w"}
            rows = hostile.list_rows(message).rows
            drawn = Shown("".join(row for _, row in rows))
            assert drawn.injected == [], name
            texts, pressable = texts + drawn.text, pressable + drawn.pressable
            planted[name] = max(planted.get(name, 0), drawn.text.count(PLANTED))
        for action, data in pressable:
            if action in pressed | AWAY or not action or action.endswith(".delete"):
                continue
            pressed.add(action)
            try:
                patch = hostile.call(action, {**shown.fields, **data})
            except RalleError as error:
                assert Shown(escape(error)).injected == [], action
            else:
                opened = browser_html(patch)
                assert opened.injected == [], action
                texts += opened.text
    assert len(pressed) > 70, "the buttons of all places were pressed"
    bare = {name for name, count in planted.items() if not count}
    assert bare == set(), "every view and every list was given something to show"
    prompts = ("workflows/react.txt", "own chat")
    assert [name for name in prompts if f"({name})" not in texts] == [], "prompts were shown"
    assert OWN_CHAIN in texts


def test_the_answer_of_a_model_and_all_that_chat_shows_of_it_are_text(hostile: Page) -> None:
    hostile.call("chat.new")
    shown = [browser_html(hostile.call("chat.send", {"text": TEXT}))]
    shown += [
        browser_html(hostile.call(f"chat.{name}", {"index": "0"})) for name in ("sources", "edit")
    ]
    assert all(part.injected == [] and PLANTED in part.text for part in shown)


def test_a_part_of_a_patch_that_is_no_html_is_sent_as_text(page: Page) -> None:
    page.action("test.plain", lambda page, event: Patch({"x": NAME}, drawer=NAME, say=NAME))
    page.rows("test", lambda page, asked: Rows([("a", NAME)]))

    def stream(page: Page, event: Any) -> Iterator[Patch]:
        yield Patch({"x": NAME})

    page.action("test.stream", stream)
    patch = page.act({"action": "test.plain", "window": "w"}).to_json()
    assert patch["#x"] == patch["drawer"] == str(escape(NAME)) and patch["say"] == NAME
    rows = page.list_rows({"list": "test", "key": {}, "start": 0, "count": 1})
    assert rows.to_json() == {"rows": [("a", str(escape(NAME)))]}
    number = page.act({"action": "test.stream", "window": "w"}).stream
    assert page.more({"stream": number}).to_json()["#x"] == str(escape(NAME))


def test_what_is_planted_is_an_element_where_nothing_escapes_it() -> None:
    assert len(Shown(f"<p>{TEXT}</p>").injected) >= 3
    assert Shown(f'<p title="{NAME}">').injected
    assert not Shown(f"<p>{escape(TEXT)}</p>").injected and json.dumps(NAME)


PIECES: dict[str, Callable[[], Any]] = {
    "button": lambda: html.button(TEXT, TEXT, title=TEXT, id=TEXT),
    "link": lambda: html.link(TEXT, NAME),
    "named": lambda: html.name_link(TEXT, RunAddress(id=NAME)),
    "note": lambda: html.note(TEXT),
    "heading": lambda: html.heading(TEXT, TEXT),
    "bullets": lambda: html.bullets([TEXT]),
    "pre": lambda: html.pre(TEXT),
    "problem": lambda: html.problem(TEXT),
    "warning": lambda: html.warning(TEXT),
    "dialog": lambda: html.dialog(TEXT, TEXT, html.button(TEXT)),
    "state": lambda: html.state(TEXT, TEXT),
    "empty": lambda: html.empty(TEXT),
}


@pytest.mark.parametrize("piece", PIECES.values(), ids=PIECES.keys())
def test_every_label_of_a_piece_is_text(piece: Callable[[], Any]) -> None:
    shown = Shown(piece())
    assert shown.injected == [] and PLANTED in shown.text


@pytest.mark.parametrize("suffix", [".tsv", ".jsonl", ".md", ".json", ""])
def test_the_name_of_an_uploaded_file_is_text(hostile: Page, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"x{suffix}"
    path.write_text('{"id": 1, "text": "a"}\n')
    files = {"files": [{"path": str(path), "name": f"{NAME}{suffix}"}]}
    for action in ("import.preview", "code.upload"):
        try:
            shown = browser_html(hostile.call(action, files))
        except RalleError as error:
            shown = Shown(escape(error))
        assert shown.injected == [], action
