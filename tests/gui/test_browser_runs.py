"""Runs in a browser: the list and its ticks, one run, comparing, the bin."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import serving, watch
from small_workspace import make_workspace

from rallebench.core.events import complete
from rallebench.services.benchmarks import BenchmarkOptions, of_chain
from rallebench.services.workbench import Workbench

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """A page over three finished runs: ``first``, ``second`` with k 1, ``third`` by an echo."""
    workspace = make_workspace(tmp_path_factory.mktemp("runs"))
    bench = Workbench(workspace)
    for name, changes in (
        ("first", {}),
        ("second", {"settings": ("k=1",)}),
        ("third", {"llm": "echo"}),
    ):
        options = BenchmarkOptions(dataset="tiny-qa", track=False, **changes)
        complete(bench.runs.run(of_chain(bench, "read", options, run=name)))
    bench.close()
    with serving(workspace) as url:
        yield url, workspace


def go(page: Any, address: str, text: str) -> None:
    page.evaluate("address => rb.go(address)", address)
    page.wait_for_selector(f"text={text}")


def test_ticked_runs_stay_ticked_and_are_compared(page: Any) -> None:
    go(page, "#/runs/list", "third")
    for name in ("first", "third"):
        page.get_by_label(f"Choose {name} to compare").check()
    page.evaluate("document.querySelector('#list-runs').redraw()")
    page.wait_for_function("document.querySelectorAll('#list-runs :checked').length === 2")
    page.get_by_role("button", name="Compare 2").click()
    page.wait_for_url("**/#/runs/compare?a=first&b=third")
    page.wait_for_selector("text=Questions that flipped")
    page.go_back()
    page.wait_for_url("**/#/runs/list")


def test_three_runs_are_ranked_in_percent(page: Any) -> None:
    go(page, "#/runs/list", "third")
    for name in ("first", "second", "third"):
        page.get_by_label(f"Choose {name} to compare").check()
    page.get_by_role("button", name="Compare 3").click()
    page.wait_for_selector("text=To the base")
    page.get_by_text("Every metric").click()
    words = page.inner_text("#v-runs-compare")
    assert "12.5%" in words.replace("\n", "") and "0.1250" not in words


def test_the_list_of_runs_works_by_keyboard(page: Any) -> None:
    go(page, "#/runs/list", "third")
    page.wait_for_selector("#list-runs .r")
    page.locator("#list-runs").focus()
    page.keyboard.press("j")
    page.keyboard.press(" ")
    page.wait_for_function("document.querySelectorAll('#list-runs :checked').length === 1")
    page.keyboard.press("Enter")
    page.wait_for_url("**/#/runs/run?id=third")


def test_a_filter_and_a_question_survive_reload_and_back(page: Any) -> None:
    go(page, "#/runs/run?id=first", "Time a question")
    page.get_by_role("button", name="Wrong").click()
    page.wait_for_url("**only=wrong")
    page.locator("#list-run-questions .r").nth(1).click()
    page.wait_for_url("**q=*")
    question = page.inner_text("#run-question h3")
    page.reload()
    page.wait_for_selector("#run-question h3")
    assert page.inner_text("#run-question h3") == question
    assert page.locator("#run-chips .on").inner_text().startswith("Wrong")
    go(page, "#/runs/list", "third")
    page.go_back()
    page.wait_for_selector("#run-question h3")
    assert page.inner_text("#run-question h3") == question


def test_a_run_is_renamed_deleted_and_brought_back(page: Any) -> None:
    go(page, "#/runs/list", "second")
    page.get_by_label("More for second").click()
    page.get_by_role("button", name="Rename").click()
    page.get_by_label("Name").fill("读者 · قارئ")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=读者 · قارئ")
    page.get_by_label("More for 读者").click()
    page.locator("#list-runs").get_by_role("button", name="Delete").click()
    page.locator("#confirm").get_by_role("button", name="Delete").click()
    page.get_by_role("button", name="Bin (1)").click()
    page.get_by_role("button", name="Bring back").click()
    page.wait_for_selector("#list-runs >> text=读者 · قارئ")


def test_a_new_run_is_chosen_and_watched(page: Any, served: tuple[str, Path]) -> None:
    go(page, "#/runs/list?new=1", "gold pages")
    other = page.context.new_page()
    complaints = watch(other, served[0])
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Chain").select_option("read")
    dialog.get_by_label("Dataset").select_option("tiny-qa")
    page.wait_for_selector("#new-plan >> text=8 questions")
    dialog.get_by_role("button", name="Run", exact=True).click()
    page.wait_for_selector("text=1 of 8 right")
    other.goto(f"{served[0]}/#/runs/list")
    other.wait_for_selector("#list-runs .r >> nth=3")
    assert complaints == []
