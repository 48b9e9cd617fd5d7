"""A person lets an agent answer: watches, stops, loads the page anew, edits an action, compares; in a real browser."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from browsing import PATIENCE, choose, fill, holds, says, there_are

from rallebench.core.entries import LLMEntry
from rallebench.workspace.paths import Workspace

pytestmark = [pytest.mark.browser, pytest.mark.slow]

LINES = (
    ("I look for the seventh planet <b>now</b>.", "Search[Uranus]"),
    ("Its page may say who suggested the name.", "Lookup[suggested]"),
    ("I am not sure.", "Finish[William Herschel]"),
)
REACT = {
    rf"{what} {n}:\Z": line
    for n, pair in enumerate(LINES, 1)
    for what, line in zip(("Thought", "Action"), pair)
}
SLOW = {**REACT, r"Action 2:\Z": "Lookup[" + " ".join(f"word{n}" for n in range(60)) + "]"}


def call(name: str, **arguments: str) -> str:
    return f"Thought: Now {name}.\nAction: {name}\nAction Input: {json.dumps(arguments)}"


SEARCHES = [
    call("Search", entity="Uranus"),
    call("Finish", return_type="give_up_and_restart"),
    call("Search", entity="Johann Elert Bode"),
    call("Finish", return_type="give_answer", final_answer="Johann Elert Bode"),
]


@pytest.fixture(scope="module")
def stocked(served: tuple[str, Path]) -> str:
    """The address of the page, whose workspace has models that follow a script."""
    address, folder = served
    models: dict[str, dict[str, Any]] = {
        "follows": {"replies": REACT},
        "hesitates": {"replies": SLOW, "delay": 7},
        "tries": {"replies": SEARCHES, "default": SEARCHES[-1]},
    }
    for name, settings in models.items():
        Workspace(folder).save_llm(name, LLMEntry(backend="scripted", settings=settings))
    return address


@pytest.fixture
def acting(stocked: str, page: Any) -> Any:
    open_tab(page)
    return page


def open_tab(page: Any) -> None:
    page.wait_for_selector("#tabs")
    page.click("#tab-agent-button")
    page.wait_for_selector("#agent-workflow input:visible")


def ask(page: Any, llm: str, workflow: str = "react") -> None:
    choose(page, "agent-workflow", workflow)
    choose(page, "agent-llm", llm)
    page.click("#agent-run")


def wait_for(page: Any, text: str, part: str = "agent-episode") -> None:
    says(page, part, text)


def test_an_episode_is_watched_stopped_found_again_edited_and_gone_on_with(acting: Any) -> None:
    ask(acting, "hesitates")
    wait_for(acting, "I look for the seventh planet <b>now</b>.")
    wait_for(acting, "Running")
    wait_for(acting, "Observation 1")
    acting.reload()
    open_tab(acting)
    wait_for(acting, "Observation 1")
    holds(acting, "agent-llm", "hesitates")
    acting.click("#agent-stop")
    wait_for(acting, "Stopped by you.")
    acting.fill("#agent-edit textarea", "Search[Johann Elert Bode]")
    acting.click("#agent-continue")
    wait_for(acting, "edited by you")
    wait_for(acting, "finished with an answer")
    wait_for(acting, "is no gold answer")
    acting.reload()
    open_tab(acting)
    wait_for(acting, "edited by you")
    assert "Stopped by you." not in acting.inner_text("#agent-episode")


def test_a_search_shows_its_tree_and_what_was_unfolded_stays_unfolded(acting: Any) -> None:
    ask(acting, "tries", "dfsdt")
    wait_for(acting, "finished with an answer")
    wait_for(acting, "gave up")
    there_are(acting, "#agent-episode .rb-tree details[open]", 2)
    acting.locator("#agent-episode .rb-tree summary").first.click()
    there_are(acting, "#agent-episode .rb-tree details[open]", 3)
    acting.click("#agent-mark input")
    acting.wait_for_timeout(1500)
    there_are(acting, "#agent-episode .rb-tree details[open]", 3)
    assert acting.locator("#agent-episode .rb-tree details[open]").count() == 3


def test_programs_are_refused_with_how_to_allow_them(acting: Any) -> None:
    choose(acting, "agent-workflow", "pal")
    wait_for(acting, "--allow-python", "agent-programs")
    choose(acting, "agent-llm", "follows")
    acting.click("#agent-run")
    wait_for(acting, "allow it by opening this page with app.py --allow-python.")
    there_are(acting, "#agent-episode .rb-tree", 0)
    assert acting.locator("#agent-episode .rb-tree").count() == 0


def test_two_episodes_of_a_question_meet_in_compare(acting: Any) -> None:
    for llm, workflow in (("follows", "react"), ("tries", "dfsdt")):
        ask(acting, llm, workflow)
        wait_for(acting, f"{workflow} · wikipedia · {llm}")
        wait_for(acting, "finished with an answer")
        acting.click("#agent-compare")
        wait_for(acting, "Kept as the run", "agent-status")
    acting.wait_for_selector("#compare-table:visible", timeout=PATIENCE)
    wait_for(acting, "dfsdt-wikipedia-tries", "compare-table")
    wait_for(acting, "react-wikipedia-follows", "compare-table")
    assert acting.locator("#compare-table tbody tr").count() >= 2


def test_a_question_of_an_agents_benchmark_opens_in_agent(acting: Any) -> None:
    choose(acting, "agent-workflow", "react")
    choose(acting, "agent-llm", "follows")
    fill(acting, "agent-limit", "2")
    acting.click("#agent-benchmark")
    wait_for(acting, "2 questions. Click one to open it in Agent.", "benchmark-counted")
    acting.locator("#benchmark-questions [data-testid='cell-1-1']").click()
    acting.wait_for_selector("#agent-episode:visible", timeout=PATIENCE)
    wait_for(acting, "I look for the seventh planet <b>now</b>.")
    there_are(acting, "#develop-question:visible", 0)
    assert acting.locator("#develop-question:visible").count() == 0
