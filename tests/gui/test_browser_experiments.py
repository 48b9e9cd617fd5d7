"""Experiments in a real browser: choosing by boxes and keys, a plan that follows, running, results, addresses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from browsing import PATIENCE, expect, go, press, says
from page_views import stored_noise

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture
def place(tab: Any) -> Any:
    go(tab, "#/experiments/list?kind=sweep")
    tab.wait_for_selector("#x-plan .x-big", timeout=PATIENCE)
    return tab


def test_a_plan_follows_numbers_while_they_are_typed(place: Any) -> None:
    place.focus("input[name=limit]")
    place.keyboard.type("7")
    says(place, "#x-plan", "21\nquestions")
    expect(place.locator("input[name=limit]")).to_be_focused()
    place.keyboard.type("0")
    says(place, "#x-plan", "210\nquestions")
    place.focus("[name='own:k']")
    place.keyboard.type("12")
    place.wait_for_timeout(500)
    expect(place.locator("[name='v:k']")).to_have_count(5)  # a value is taken when it is complete
    place.keyboard.press("Enter")
    expect(place.locator("[name='v:k'][value='12']")).to_be_checked()
    says(place, "#x-plan", "280\nquestions")


def test_a_sweep_is_chosen_planned_run_and_its_winner_used_in_build(place: Any) -> None:
    place.fill("input[name=limit]", "10")
    place.keyboard.press("Tab")
    says(place, "#x-plan", "30\nquestions")
    place.uncheck("[name='v:k'][value='10']")
    says(place, "#x-plan", "20\nquestions")
    press(place, "+ Prompt")
    expect(place.locator("legend:has-text('Prompt')")).to_be_visible()
    place.click("[aria-label='Remove Prompt']")
    expect(place.locator("legend:has-text('Prompt')")).to_have_count(0)
    press(place, "Run 2 variants")
    expect(place.locator("#x-done tbody tr")).to_have_count(1)
    says(place, "#x-done", "Sweep of k")
    says(place, "#x-done", "%")
    place.click("#x-done a.nm")
    says(place, "#v-experiments-one .judge", "EM")
    place.select_option("select[name=by]", "f1")
    says(place, "#v-experiments-one .judge", "F1")
    assert "by=f1" in place.url
    place.reload()
    says(place, "#v-experiments-one .judge", "F1")
    place.go_back()
    expect(place.locator("#x-done")).to_be_visible()
    place.go_forward()
    place.click("a.button:has-text('in Build')")
    place.wait_for_selector("#v-build-one .verdict", timeout=PATIENCE)
    says(place, "#chain", "starter")


def test_boxes_keep_the_focus_when_the_plan_and_the_steps_are_drawn_again(place: Any) -> None:
    box = "[id='x-v:k-20']"
    place.focus(box)
    place.keyboard.press("Space")
    says(place, "#x-plan", "4\nvariants")
    assert place.evaluate("document.activeElement.id") == "x-v:k-20"
    place.fill("[name='own:k']", "7")
    place.keyboard.press("Tab")
    expect(place.locator("[id='x-v:k-7']")).to_be_checked()
    says(place, "#x-plan", "5\nvariants")


def test_cards_are_addresses_and_every_kind_has_its_steps(place: Any) -> None:
    for words, kind, field in (
        ("Published benchmark", "suite", "select[name=suite]"),
        ("Index trade-off", "tradeoff", "[name=indexes]"),
        ("Baselines", "baselines", "select[name=run]"),
        ("Folder of chains", "batch", "[name=chains]"),
    ):
        place.click(f".x-cards a:has-text('{words}')")
        place.wait_for_selector(f"#x-form {field}", timeout=PATIENCE)
        assert f"kind={kind}" in place.url
        expect(place.locator("#x-plan button.primary")).to_have_count(1)
    place.go_back()
    place.wait_for_selector("#x-form select[name=run]", timeout=PATIENCE)


def test_a_problem_stands_in_the_plan(place: Any) -> None:
    for value in ("3", "5", "10"):
        place.uncheck(f"[name='v:k'][value='{value}']")
    says(place, "#x-plan", "k: choose at least one value, or remove it.")
    expect(place.locator("#x-plan button.primary")).to_be_disabled()


def test_published_tables_are_browsed_by_address(tab: Any) -> None:
    go(tab, "#/experiments/published?table=rgb:1")
    says(tab, "#v-experiments-published", "96.33")
    tab.locator("nav a:visible").filter(has_text="Table 3").click()
    says(tab, "#v-experiments-published h1", "RGB, table 3")
    assert "table=rgb:3" in tab.url
    with tab.expect_download() as download:
        press(tab, "CSV")
    assert download.value.suggested_filename == "rgb-3.csv"
    tab.locator(".crumb a").filter(has_text="Papers").click()
    says(tab, "#v-experiments-published h1", "Papers")
    tab.locator("#x-papers-words").fill("diskann memory")
    tab.locator("#x-papers tr[data-href*='ralle:4']").click()
    head = tab.locator("table.x-paper th").filter(has_text="Memory")
    figures = "table.x-paper tbody tr td:nth-child(5)"
    for order, first in (("descending", "90.4"), ("ascending", "10.9")):
        head.locator("button").click()
        assert head.get_attribute("aria-sort") == order
        cells = tab.locator(figures).all_text_contents()
        assert cells[0] == first and cells[-1] == "–", "empty cells stay last"


def test_errors_are_labelled_by_keys_and_stored_beside_the_run(
    tab: Any, page_server: tuple[str, Path]
) -> None:
    file = stored_noise(page_server[1] / "experiments") / "errors-to-label.csv"
    rows = (f",q{i},,Who {i}?,Io,Rhea" for i in range(3))
    file.write_text("\n".join(("part,qid,category,question,required,prediction", *rows)) + "\n")
    go(tab, "#/experiments/one?id=noise")
    press(tab, "Label the errors")
    says(tab, "#drawer", "1 long distance 2 evidence uncertainty")
    expect(tab.locator("#drawer .x-label").first).to_be_focused()
    tab.keyboard.type("3j2k1")  # the first, past the second, the third, back to the second
    press(tab, "Save the labels")
    expect(tab.locator("#drawer")).to_be_hidden()
    labels = [line.split(",")[2] for line in file.read_text().splitlines()[1:]]
    assert labels == ["concept confusion", "long distance", "evidence uncertainty"]
