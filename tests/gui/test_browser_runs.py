"""Runs in a browser: the list and its ticks, one run, comparing, the bin."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import PATIENCE, expect, go, hold_the_first, let_go, press, says, serving, watch
from page_views import opened_page, run_of

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def page_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """A page over three finished runs: ``first``, ``second`` with k 1, ``third`` by an echo."""
    workspace = tmp_path_factory.mktemp("runs") / "workspace"
    with opened_page(workspace) as page:
        run_of(page.workbench, "first")
        run_of(page.workbench, "second", settings=("k=1",))
        run_of(page.workbench, "third", llm="echo")
    with serving(workspace) as url:
        yield url, workspace


@pytest.fixture
def run_list(tab: Any) -> Any:
    go(tab, "#/runs/list")
    # Rows are drawn empty first and filled when they arrive.
    expect(tab.locator("#list-runs input[type=checkbox]")).not_to_have_count(0)
    return tab


def tick(tab: Any, *names: str) -> None:
    for name in names:
        tab.get_by_label(f"Choose {name} to compare").check()


def test_the_heads_of_two_columns_are_told_apart(run_list: Any) -> None:
    gap = """() => {
        const ends = [...document.querySelectorAll('.runrow.head span')].map(head => {
            const words = document.createRange();
            words.selectNodeContents(head);
            return words.getBoundingClientRect();
        });
        const at = [...document.querySelectorAll('.runrow.head span')]
            .findIndex(head => head.textContent.startsWith('Where'));
        return [ends[at].left - ends[at - 1].right, ends[at + 1].left - ends[at].right];
    }"""
    assert min(run_list.evaluate(gap)) >= 16


def test_ticked_runs_stay_ticked_and_are_compared(run_list: Any) -> None:
    tick(run_list, "first", "third")
    run_list.evaluate("document.querySelector('#list-runs').redraw()")
    expect(run_list.locator("#list-runs :checked")).to_have_count(2)
    press(run_list, "Compare 2")
    run_list.wait_for_url("**/#/runs/compare?a=first&b=third")
    says(run_list, "#v-runs-compare", "Questions that flipped")
    run_list.go_back()
    expect(run_list.locator("#list-runs :checked")).to_have_count(2)


def test_three_runs_are_ranked_in_percent(run_list: Any) -> None:
    tick(run_list, "first", "second", "third")
    press(run_list, "Compare 3")
    says(run_list, "#v-runs-compare", "To the base")
    run_list.click("#compare-metrics summary")
    words = run_list.inner_text("#v-runs-compare").replace("\n", "")
    assert "12.5%" in words and "0.1250" not in words


def test_the_list_of_runs_works_by_keyboard(run_list: Any) -> None:
    expect(run_list.get_by_role("button", name="Compare", exact=True)).to_be_disabled()
    run_list.keyboard.press("j")
    expect(run_list.locator("#list-runs .r").first).not_to_have_css(
        "background-color", "rgba(0, 0, 0, 0)"
    )
    run_list.keyboard.press(" ")
    expect(run_list.locator("#list-runs :checked")).to_have_count(1)
    run_list.keyboard.press("Enter")
    run_list.wait_for_url("**/#/runs/run?id=third")


def test_a_list_is_filtered_sorted_and_saved_in_the_address(run_list: Any) -> None:
    field = run_list.locator("#runs-where")
    field.fill("em>")
    says(run_list, ".listbar .problem", "'em>' at character 1 needs a number")
    expect(run_list.locator("#list-runs .r")).to_have_count(3)
    field.fill("em>5")
    expect(run_list.locator(".listbar .problem")).to_have_count(0)
    run_list.wait_for_url("**where=em%3E5**")
    field.fill("")
    run_list.wait_for_url("**/#/runs/list")
    field.fill("mod")
    offers = run_list.locator("#runs-offers option")
    expect(offers.first).to_have_attribute("value", "model:")
    field.fill("")
    head = run_list.get_by_role("columnheader").filter(has_text="Score")
    head.get_by_role("button").focus()
    run_list.keyboard.press("Enter")
    expect(head).to_have_attribute("aria-sort", "descending")
    run_list.reload()
    expect(head).to_have_attribute("aria-sort", "descending")
    press(run_list, "Score")
    press(run_list, "Score")
    expect(head).to_have_attribute("aria-sort", "none")


def test_columns_and_groups_are_chosen(run_list: Any) -> None:
    run_list.get_by_text("Columns", exact=True).click()
    run_list.locator("#runs-columns").get_by_label("Tokens", exact=True).check()
    says(run_list, ".runrow.head", "Tokens")
    run_list.keyboard.press("Escape")
    run_list.select_option(".listbar [name=group]", "dataset")
    expect(run_list.locator("#list-runs .r")).to_have_count(4)
    run_list.locator(".fold-group").click()
    expect(run_list.locator("#list-runs .r")).to_have_count(1)
    run_list.reload()
    expect(run_list.locator("#list-runs .r")).to_have_count(1)


def test_a_run_is_tagged_and_starred(run_list: Any) -> None:
    run_list.get_by_label("Make it the reference run: third").click()
    expect(run_list.get_by_label("Reference run of tiny-qa: third")).to_be_visible()
    run_list.get_by_label("More for third").click()
    run_list.locator("#list-runs details[open]").get_by_text("Tags and note").click()
    run_list.fill("#dialog [name=tags]", "night, <b>bold</b>")
    run_list.keyboard.press("Enter")
    says(run_list, "#list-runs", "<b>bold</b>")
    run_list.get_by_label("Reference run of tiny-qa: third").click()
    expect(run_list.get_by_label("Make it the reference run: third")).to_be_visible()


def test_a_link_in_what_follows_the_jobs_is_followed(run_list: Any) -> None:
    link = "<a href='#/runs/run?id=first'>Open</a>"
    run_list.evaluate("html => { document.querySelector('#runs-now').innerHTML = html; }", link)
    run_list.locator("#runs-now a").click()
    run_list.wait_for_url("**/#/runs/run?id=first")


def test_a_filter_and_a_question_survive_reload_and_back(tab: Any) -> None:
    go(tab, "#/runs/run?id=first")
    press(tab, "Wrong 7")
    tab.wait_for_url("**only=wrong")
    row = tab.locator("#list-run-questions .r").nth(1)
    question = row.locator("em").inner_text()
    row.click()
    expect(tab.locator("#run-question h2.question")).to_have_text(question)
    tab.reload()
    expect(tab.locator("#run-question h2.question")).to_have_text(question)
    says(tab, "#run-chips .on", "Wrong")
    go(tab, "#/runs/list")
    tab.go_back()
    expect(tab.locator("#run-question h2.question")).to_have_text(question)


def test_a_run_is_renamed_deleted_and_brought_back(run_list: Any) -> None:
    run_list.get_by_label("More for second").click()
    run_list.locator("#list-runs details[open]").get_by_text("Rename").click()
    run_list.fill("#dialog [name=as]", "读者 · قارئ")
    run_list.keyboard.press("Enter")
    says(run_list, "#list-runs", "读者 · قارئ")
    run_list.get_by_label("More for 读者").click()
    run_list.locator("#list-runs details[open]").get_by_text("Delete").click()
    run_list.click("#confirm .yes")
    says(run_list, "#v-runs-list", "Bin (1)")
    run_list.locator(".toast button").click()
    says(run_list, "#list-runs", "读者 · قارئ")


def test_a_new_run_is_chosen_and_seen_in_another_window(
    tab: Any, page_server: tuple[str, Path]
) -> None:
    go(tab, "#/runs/list?new=1")
    says(tab, "#new-plan", "questions")
    other = tab.context.new_page()
    complaints = watch(other, page_server[0])
    other.goto(f"{page_server[0]}/#/runs/list")
    expect(other.locator("#list-runs .r")).to_have_count(3)
    tab.select_option("#dialog [name=chain]", "starter")
    tab.select_option("#dialog [name=dataset]", "tiny-qa")
    says(tab, "#new-plan", "8 questions")
    tab.keyboard.press("Control+Enter")
    says(tab, "#run-top", "of 8 right")
    expect(other.locator("#list-runs .r")).to_have_count(4)
    assert complaints == []


def test_the_plan_of_a_new_run_follows_typing_and_enter_runs_it(tab: Any) -> None:
    go(tab, "#/runs/list?new=1")
    says(tab, "#new-start", "Run 222 questions")
    tab.focus("#dialog [name=limit]")
    tab.keyboard.type("30")
    says(tab, "#new-start", "Run 30 questions")
    says(tab, "#new-plan", "30 questions of starter-qa")
    tab.keyboard.press("Backspace")
    tab.keyboard.press("Backspace")
    tab.keyboard.type("0")
    says(tab, "#new-plan", "The number of questions is 0")
    tab.keyboard.press("Backspace")
    tab.keyboard.type("3")
    tab.keyboard.press("Enter")
    says(tab, "#run-top", "of 3 right")


def test_an_older_answer_of_a_form_does_not_replace_a_newer_one(tab: Any) -> None:
    go(tab, "#/runs/list?new=1")
    says(tab, "#new-plan", "questions")
    tab.select_option("#dialog [name=chain]", "starter")
    held = hold_the_first(tab, "runs.check")
    with tab.expect_request(lambda request: "runs.check" in (request.post_data or "")):
        tab.select_option("#dialog [name=dataset]", "starter-qa")
    tab.select_option("#dialog [name=dataset]", "tiny-qa")
    says(tab, "#new-plan", "8 questions")
    let_go(tab, held)
    says(tab, "#new-plan", "8 questions")


def test_a_place_that_is_opened_before_the_last_one_answers_stays(tab: Any) -> None:
    held = hold_the_first(tab, "runs/list")
    with tab.expect_request(lambda request: "runs/list" in (request.post_data or "")):
        tab.evaluate("location.hash = '#/runs/list'")
    go(tab, "#/experiments/list")
    says(tab, "#x-plan", "variants")
    let_go(tab, held)
    assert tab.title() == "Experiments · rallebench"
    expect(tab.locator("#v-experiments-list")).to_be_visible()


@pytest.mark.parametrize("width", [820, 1280, 1920])
def test_no_view_is_wider_than_the_window(run_list: Any, width: int) -> None:
    runs = ("runs/list", "runs/run?id=first", "runs/compare?a=first&b=third", "models/list")
    build = ("build/one", "build/few", "build/chat", "build/agent", "experiments/list?kind=sweep")
    data = ("data/list", "data/corpus?id=starter", "data/index?id=starter-bm25", "data/builder")
    last = {"build/one": ".verdict", "data/list": ".cov.full", build[-1]: "#x-plan .x-big"}
    run_list.set_viewport_size({"width": width, "height": 900})
    for address in (*build, *runs, *data):
        go(run_list, f"#/{address}")
        run_list.wait_for_selector(
            last.get(address, "main"), timeout=PATIENCE
        )  # the last part to arrive
        assert run_list.evaluate("document.documentElement.scrollWidth") <= width, address


def test_a_trace_opens_by_a_click_moves_by_keys_and_closes_by_back(tab: Any) -> None:
    compare = "#/runs/compare?a=first&b=third"
    go(tab, compare)
    tab.locator(".flips .door").first.click()
    tab.wait_for_url("**&trace=first:q1")
    says(tab, "#drawer", "Prompt as sent")
    press(tab, "third")
    tab.wait_for_url("**&trace=third:q1")
    tab.go_back()
    tab.wait_for_url(f"**/{compare}")
    expect(tab.locator("#drawer")).to_be_hidden()
    tab.go_forward()
    says(tab, "#drawer .dh h2", "third")
    tab.keyboard.press("Escape")
    tab.wait_for_url(f"**/{compare}")
    expect(tab.locator("#drawer")).to_be_hidden()


def test_a_link_opens_a_trace_in_its_view_and_leads_to_build(tab: Any) -> None:
    go(tab, "#/runs/run?id=first&only=wrong&trace=first:q2")
    says(tab, "#drawer", "1 of 7")
    tab.keyboard.press("j")
    tab.wait_for_url("**&trace=first:q3")
    says(tab, "#drawer .question", "In which state is Lamar County?")
    tab.locator("#drawer").get_by_role("link", name="Open in Build").click()
    tab.wait_for_url("**/#/build/one?set=tiny-qa&q=q3&run=first")
    expect(tab.locator("#drawer")).to_be_hidden()


def test_answers_are_labelled_by_keys_with_the_focus_anywhere_but_in_a_field(
    tab: Any, page_server: tuple[str, Path]
) -> None:
    go(tab, "#/runs/run?id=third&q=q1&label=open")
    says(tab, "#run-label", "4 The gold is wrong")
    tab.keyboard.press("1")
    tab.keyboard.press("3")  # before the second question is there: it waits for it
    says(tab, "#run-question h2.question", "Lamar County")
    tab.wait_for_url("**q=q3**")
    says(tab, "#run-chips", "Labelled 2")
    tab.keyboard.press("k")
    says(tab, "#run-question h2.question", "Neptune")
    expect(tab.locator("#run-label [aria-pressed=true]")).to_have_text("3 Wrong")
    tab.fill("#run-label [name=note]", "2 moons, 1 answer")
    file = page_server[1] / "labels" / "tiny-qa.jsonl"
    assert len(file.read_text().splitlines()) == 2, "digits in a field label nothing"
    tab.locator("#run-label [name=note]").blur()
    tab.keyboard.press("2")
    says(tab, "#run-question h2.question", "Lamar County")
    press(tab, "Label blind")
    says(tab, "#run-chips", "Unlabelled 6")
    expect(tab.locator("#run-question .verdict")).to_have_count(0)
    tab.keyboard.press("0")
    says(tab, "#run-question h2.question", "ten countries")
    tab.keyboard.press("l")
    says(tab, "#run-question h2.question", "ten countries")
    expect(tab.locator("#run-label")).to_have_count(0)
    tab.keyboard.press("l")
    says(tab, "#run-label", "4 The gold is wrong")
    tab.keyboard.press("4")
    right = tab.locator("#run-label [name=right]")
    expect(right).to_be_focused()
    opened = tab.locator("#run-question h2.question").text_content()
    right.type("4 rivers")
    tab.keyboard.press("Enter")
    expect(tab.locator("#run-question h2.question")).not_to_have_text(opened or "")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(x["qid"], x["grade"], x["note"], x["blind"]) for x in lines] == [
        ("q1", "right", "", False),
        ("q2", "wrong", "", False),
        ("q2", "partly", "2 moons, 1 answer", False),
        ("q3", "skip", "", True),
        *[(x["qid"], "gold-wrong", "", False) for x in lines[4:]],
    ]
    assert [x.get("right") for x in lines[4:]] in ([None, ["4 rivers"]], [[], ["4 rivers"]])
