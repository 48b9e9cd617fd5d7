"""A person develops a chain and benchmarks it, in a real browser."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from browsing import PATIENCE, choose, expect, field, fill, holds, open_tab, says, there_are

pytestmark = pytest.mark.browser

ANSWERS = re.compile(re.escape("{response[0]}"))
"""The shipped template of the second action."""


@pytest.fixture
def develop(page: Any) -> Any:
    """Develop, with the word index and the echoing model, which need no weights."""
    open_tab(page, "Develop")
    page.wait_for_selector("#develop-execute-chain")
    choose(page, "develop-retriever-1", "starter-bm25")
    choose(page, "develop-llm-2", "echo")
    return page


@pytest.mark.slow
def test_executing_the_chain_shows_every_prompt_and_marks_the_gold(develop: Any) -> None:
    develop.click("#develop-execute-chain")
    says(develop, "develop-status", "Done: 2 actions")
    there_are(develop, "#develop-response-1 .rb-hit", 5)
    expect(develop.locator("#develop-response-1 .rb-hit.gold").first).to_be_visible()
    says(develop, "develop-response-1", "first gold page at rank")
    expect(develop.locator("#develop-prompt-2 mark.rb-answer").first).to_be_visible()
    assert develop.inner_text("#develop-prompt-2").count("Answer:") == 1
    develop.uncheck("#develop-mark input")
    there_are(develop, "#develop-response-1 mark", 0)


@pytest.mark.slow
def test_a_template_that_is_wrong_is_one_sentence_where_it_stands(develop: Any) -> None:
    develop.fill("#develop-template-2 textarea", "{respons[0]}")
    develop.click("#develop-interpret-2")
    develop.wait_for_selector("#develop-prompt-2 .rb-error", timeout=PATIENCE)
    said = develop.inner_text("#develop-prompt-2")
    assert "respons" in said and "response" in said
    assert "Traceback" not in said


@pytest.mark.slow
def test_actions_are_added_moved_and_removed_without_losing_their_text(develop: Any) -> None:
    develop.click("#develop-add-action")
    develop.wait_for_selector("#develop-template-3 textarea", state="visible", timeout=PATIENCE)
    develop.fill("#develop-template-3 textarea", "third: {question}")
    develop.click("#develop-up-3")
    holds(develop, "develop-template-2", "third: {question}")
    expect(field(develop, "develop-template-3")).to_have_value(ANSWERS)
    develop.click("#develop-remove-2")
    develop.wait_for_selector("#develop-template-3 textarea", state="hidden", timeout=PATIENCE)
    expect(field(develop, "develop-template-2")).to_have_value(ANSWERS)


@pytest.mark.slow
def test_a_wrong_field_is_a_message_in_the_corner_and_hides_nothing(develop: Any) -> None:
    develop.fill("#develop-k-1 input", "0")
    develop.click("#develop-execute-1")
    develop.wait_for_selector("text=Action 1: k is 0; it must be a whole number", timeout=PATIENCE)
    develop.click("#develop-add-action")
    develop.wait_for_selector("text=Action 1: k is 0", timeout=PATIENCE)
    open_tab(develop, "Benchmark")
    develop.click("#benchmark-run")
    covers = develop.locator("[data-testid='status-tracker'] > .error")
    expect(covers.first).to_be_attached(timeout=PATIENCE)
    develop.wait_for_timeout(1000)
    assert not any(cover.is_visible() for cover in covers.all())
    expect(develop.locator("#benchmark-progress")).not_to_be_empty()
    open_tab(develop, "Develop")
    develop.fill("#develop-k-1 input", "2")
    develop.click("#develop-execute-1")
    says(develop, "develop-response-1", "2 of k = 2")


@pytest.mark.slow
def test_an_edited_chain_is_there_after_the_page_was_loaded_anew(develop: Any) -> None:
    fill(develop, "develop-template-1", "find: {question}")
    develop.click("#develop-add-action")
    develop.wait_for_selector("#develop-template-3 textarea", state="visible", timeout=PATIENCE)
    develop.wait_for_timeout(1500)  # the browser is told
    develop.reload()
    open_tab(develop, "Develop")
    holds(develop, "develop-template-1", "find: {question}")
    holds(develop, "develop-llm-2", "echo")
    develop.wait_for_selector("#develop-template-3 textarea", state="visible", timeout=PATIENCE)
    says(develop, "develop-status", "before the page was loaded anew")
    develop.click("#develop-load-chain")
    holds(develop, "develop-template-1", "{question}")
    assert develop.input_value("#develop-template-1 textarea") == "{question}"


@pytest.mark.slow
def test_two_visitors_never_see_each_others_chain(
    develop: Any, browser: Any, served: tuple[str, Path]
) -> None:
    develop.fill("#develop-template-1 textarea", "my secret query")
    context = browser.new_context()
    other = context.new_page()
    other.goto(served[0])
    open_tab(other, "Develop")
    holds(other, "develop-template-1", "{question}")
    assert other.input_value("#develop-template-1 textarea") == "{question}"
    context.close()


@pytest.mark.slow
def test_a_benchmark_runs_survives_a_reload_and_opens_a_question_in_develop(
    develop: Any, served: tuple[str, Path]
) -> None:
    open_tab(develop, "Benchmark")
    fill(develop, "benchmark-limit", "12")
    fill(develop, "benchmark-name", "browser-run")
    develop.uncheck("#benchmark-track input")
    develop.click("#benchmark-run")
    says(develop, "benchmark-report", "12 of 12 questions answered")
    report = json.loads((served[1] / "runs" / "browser-run" / "report.json").read_text())
    shown = develop.inner_text("#benchmark-report")
    assert f"{report['metrics']['Rprec']['value']:.4f}" in shown
    assert "R-precision" in shown and "share of an evidence set" in shown
    cell = develop.locator("#benchmark-questions [data-testid='cell-1-1']")
    cell.wait_for(timeout=PATIENCE)
    question = cell.inner_text().strip()
    cell.click()
    says(develop, "develop-replaced", "would replace the one that you edited")
    develop.click("#develop-replace")
    says(develop, "develop-status", "Opened from the run browser-run")
    holds(develop, "develop-question", " ".join(question.split()))
    there_are(develop, "#develop-response-1 .rb-hit", 5)


@pytest.mark.slow
def test_a_name_that_is_taken_is_refused_on_the_page(
    develop: Any, served: tuple[str, Path]
) -> None:
    folder = served[1] / "runs" / "taken"
    folder.mkdir(parents=True, exist_ok=True)
    open_tab(develop, "Benchmark")
    fill(develop, "benchmark-name", "taken")
    develop.click("#benchmark-run")
    develop.wait_for_selector("text=The run 'taken' exists already", timeout=PATIENCE)
    develop.wait_for_timeout(1500)  # the page looks at the runs once a second
    assert "taken" not in develop.inner_text("#benchmark-report")
    assert list(folder.iterdir()) == [], "what has the name is left as it was"


def paste(page: Any, control: str, text: str) -> None:
    """All of a text at once, in place of what the box holds."""
    page.click(f"#{control} input, #{control} textarea")
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(text)


@pytest.mark.slow
def test_words_that_are_pasted_are_looked_for_at_once(develop: Any) -> None:
    for words, said in (
        ("antarctic", "(2 found;"),
        ("zzzz", "(0 found;"),
        ("expedition", "(1 found;"),
    ):
        paste(develop, "develop-find", words)
        says(develop, "develop-question", said)
    develop.click("#develop-question input")
    there_are(develop, "ul[role=listbox] li", 1)
    assert "expedition" in develop.locator("ul[role=listbox] li").inner_text().lower()


@pytest.mark.slow
def test_a_filter_that_is_pasted_leaves_the_runs_that_fit(
    develop: Any, served: tuple[str, Path]
) -> None:
    open_tab(develop, "Benchmark")
    fill(develop, "benchmark-limit", "2")
    fill(develop, "benchmark-name", "to-be-found")
    develop.uncheck("#benchmark-track input")
    develop.click("#benchmark-run")
    says(develop, "benchmark-report", "2 of 2 questions answered")
    open_tab(develop, "Runs")
    paste(develop, "runs-filter", "nothing-of-it")
    says(develop, "runs-counted", "fits the filter")
    paste(develop, "runs-filter", "to-be-found")
    says(develop, "runs-counted", "the newest first")
    expect(develop.locator("#runs-table [data-testid='cell-0-0']")).to_have_text(
        "to-be-found", timeout=PATIENCE
    )
    there_are(develop, "#runs-table [data-testid='cell-1-0']", 0)


def test_the_page_asks_nobody_but_its_own_server(browser: Any, served: tuple[str, Path]) -> None:
    context = browser.new_context()
    visitor = context.new_page()
    asked: list[str] = []
    visitor.on("request", lambda request: asked.append(request.url))
    visitor.goto(served[0])
    visitor.wait_for_selector("#tabs")
    visitor.wait_for_timeout(1000)
    context.close()
    foreign = [url for url in asked if not url.startswith((served[0], "data:", "blob:"))]
    assert asked and not foreign


@pytest.mark.slow
def test_a_tab_that_is_not_open_asks_nothing_and_one_that_is_opened_again_goes_on(
    page: Any,
) -> None:
    asked: list[str] = []
    page.on(
        "request",
        lambda request: asked.append(request.url) if "/queue/join" in request.url else None,
    )
    open_tab(page, "Benchmark")
    says(page, "benchmark-progress", "")
    open_tab(page, "Config")
    page.wait_for_selector("#config-download-json:not([disabled])", timeout=PATIENCE)
    page.wait_for_timeout(1500)  # what was under way ends
    before = len(asked)
    page.wait_for_timeout(3000)
    assert len(asked) == before, "nobody looks at what changes"
    open_tab(page, "Benchmark")
    page.wait_for_timeout(3500)
    assert len(asked) >= before + 2, "the tab's own clock runs again"
