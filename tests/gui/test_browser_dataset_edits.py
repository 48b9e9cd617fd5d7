"""Editing a dataset in a real browser: fields, keys, gold pages by a search, two windows, history, questions of a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from browsing import expect, go, hold_the_first, let_go, press, says, visiting
from small_workspace import RECORDS, write_lines

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture
def dataset(page_server: tuple[str, Path]) -> Path:
    """A fresh dataset ``mine`` of eight questions."""
    folder = page_server[1] / "datasets"
    folder.mkdir(exist_ok=True)
    (folder / "history" / "mine.jsonl").unlink(missing_ok=True)
    write_lines(folder / "mine.jsonl", RECORDS)
    return folder / "mine.jsonl"


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_question_is_edited_by_keyboard_and_moving_on_loses_nothing(
    tab: Any, dataset: Path
) -> None:
    go(tab, "#/data/dataset?id=mine&q=q1")
    expect(tab.locator("#edit-form [name=text]")).to_have_value(RECORDS[0]["input"])
    tab.fill("#edit-form [name=answers]", "Titan\nSaturn VI")
    tab.locator("#edit-form [name=answers]").blur()
    says(tab, "#edit-state", "Unsaved changes")
    tab.keyboard.press("j")
    expect(tab.locator("#edit-form [name=text]")).to_have_value(RECORDS[1]["input"])
    tab.keyboard.press("k")
    expect(tab.locator("#edit-form [name=answers]")).to_have_value("Titan\nSaturn VI")
    says(tab, "#edit-state", "Unsaved changes")
    assert lines(dataset) == [*RECORDS], "nothing is written yet"
    press(tab, "Discard changes")
    expect(tab.locator("#edit-form [name=answers]")).to_have_value("Titan")
    tab.fill("#edit-form [name=answers]", "Titan\nSaturn VI")
    mark = tab.locator("#edit-form [name=mark]")
    before = mark.input_value()
    tab.keyboard.press("Control+s")
    expect(mark).not_to_have_value(before)
    expect(tab.locator("#edit-state [data-unsaved]")).to_have_count(0)
    answers = [element["answer"] for element in lines(dataset)[0]["output"]]
    assert answers == ["Titan", "Saturn VI"]
    tab.fill("#edit-form [name=text]", "Which moon of Saturn has thick air?")
    tab.keyboard.press("Control+Enter")
    says(tab, "#dataset-list", "Which moon of Saturn has thick air?")
    press(tab, "History")
    says(tab, "#drawer", "1 question changed")
    expect(tab.locator("#drawer section.version")).to_have_count(2)
    press(tab, "Return to the first version")
    says(tab, "#dataset-list", RECORDS[0]["input"])
    assert lines(dataset) == [*RECORDS]


def test_what_is_typed_while_a_question_is_saved_stays(tab: Any, dataset: Path) -> None:
    go(tab, "#/data/dataset?id=mine&q=q2")
    answers = tab.locator("#edit-form [name=answers]")
    before = tab.locator("#edit-form [name=mark]").input_value()
    held = hold_the_first(tab, "edit.save")
    answers.fill("Neptune I")
    tab.keyboard.press("Control+s")
    answers.press_sequentially(", a moon")
    let_go(tab, held)
    expect(tab.locator("#edit-form [name=mark]")).not_to_have_value(before)
    expect(answers).to_have_value("Neptune I, a moon")
    says(tab, "#edit-state", "Unsaved changes")
    assert lines(dataset)[1]["output"][0]["answer"] == "Neptune I"
    tab.keyboard.press("Control+s")
    expect(tab.locator("#edit-state [data-unsaved]")).to_have_count(0)
    assert lines(dataset)[1]["output"][0]["answer"] == "Neptune I, a moon"


def test_a_gold_page_is_found_by_a_search_and_taken_with_one_click(tab: Any, dataset: Path) -> None:
    go(tab, "#/data/dataset?id=mine&new=1")
    tab.fill("#edit-form [name=text]", "Who discovered the moon Titan?")
    tab.fill("#edit-form [name=answers]", "Christiaan Huygens")
    tab.locator("#edit-find summary").click()
    tab.select_option("#edit-find [name=index]", "starter-bm25")
    tab.locator("#edit-find").get_by_role("button", name="Search", exact=True).click()
    expect(tab.locator("#edit-hits article").first).to_be_visible()
    tab.locator("#edit-hits").get_by_role("button", name="Take as gold").first.click()
    expect(tab.locator("#edit-gold .goldpage")).to_have_count(1)
    press(tab, "Add the question")
    says(tab, "#dataset-list", "9 questions")
    expect(tab.locator("#edit-form [name=text]")).to_have_value("Who discovered the moon Titan?")
    added = lines(dataset)[-1]
    assert added["id"] == "own-9" and added["output"][0]["provenance"][0]["wikipedia_id"]
    tab.locator("#edit-form").get_by_role("button", name="Delete", exact=True).click()
    says(tab, "#dataset-list", "8 questions")
    tab.get_by_role("button", name="Bring back").click()
    says(tab, "#dataset-list", "9 questions")
    go(tab, "#/data/dataset?id=mine&new=1")
    press(tab, "Add the question")
    says(tab, "#edit-form", "There is no question to save; type one.")


def test_the_second_of_two_windows_is_asked(
    tab: Any, browser: Any, page_server: tuple[str, Path], dataset: Path
) -> None:
    go(tab, "#/data/dataset?id=mine&q=q3")
    with visiting(browser, page_server[0]) as other:
        other.wait_for_selector("body.ready")
        go(other, "#/data/dataset?id=mine&q=q3")
        tab.fill("#edit-form [name=answers]", "Texas, USA")
        press(tab, "Save")
        expect(tab.locator("#edit-state [data-unsaved]")).to_have_count(0)
        expect(tab.locator("#edit-form [name=answers]")).to_have_value("Texas, USA")
        other.fill("#edit-form [name=answers]", "State of Texas")
        press(other, "Save")
        says(other, "#dialog", "q3 was changed in another window")
        says(other, "#dialog", "Texas, USA")
        assert lines(dataset)[2]["output"][0]["answer"] == "Texas, USA"
        press(other, "Save over it")
        expect(other.locator("#dialog[open]")).to_have_count(0)
        expect(other.locator("#edit-state [data-unsaved]")).to_have_count(0)
    assert lines(dataset)[2]["output"][0]["answer"] == "State of Texas"


def test_a_starter_is_copied_first(tab: Any, page_server: tuple[str, Path]) -> None:
    go(tab, "#/data/dataset?id=starter-qa&q=qa-002")
    expect(tab.locator("#edit-form")).to_have_count(0)
    press(tab, "Edit a copy")
    expect(tab.locator("dialog [name=as]")).to_have_value("my-starter-qa")
    press(tab, "Copy and edit")
    expect(tab.locator("#v-data-dataset h1")).to_have_text("my-starter-qa")
    expect(tab.locator("#edit-form [name=qid]")).to_have_value("qa-002")
