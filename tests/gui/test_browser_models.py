"""A person loads models, adds one and reads runs, in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import PATIENCE, choose, expect, fill, open_tab, says, there_are
from performing import prepared

from rallebench.core.types import Action, Chain
from rallebench.services.workbench import Workbench

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def tick(page: Any, control: str, *names: str) -> None:
    """Tick these names of a check list and no others."""
    for label in page.locator(f"#{control} label").all():
        label.locator("input").set_checked(label.inner_text().strip() in names)


def row(page: Any, name: str) -> Any:
    """The line of the status table about ``name``."""
    return page.locator("#models-table tr", has=page.get_by_role("cell", name=name, exact=True))


@pytest.fixture
def models(page: Any) -> Iterator[Any]:
    """The first page a visitor sees, with nothing loaded by an earlier test."""
    says(page, "models-table", "echo")
    yield page


def load(page: Any, retrievers: tuple[str, ...], llms: tuple[str, ...]) -> None:
    tick(page, "models-retrievers", *retrievers)
    tick(page, "models-llms", *llms)
    page.click("#models-load")
    for name in (*retrievers, *llms):
        row(page, name).locator(".rb-badge.good").wait_for(timeout=PATIENCE)


def unload(page: Any, name: str) -> None:
    choose(page, "models-loaded", name)
    page.click("#models-unload")
    row(page, name).get_by_text("not loaded").wait_for(timeout=PATIENCE)


def test_a_new_visitor_finds_the_built_in_pair_ticked(models: Any) -> None:
    says(models, "models-welcome", "Press Load first")
    there_are(models, "#models-retrievers input:checked, #models-llms input:checked", 2)
    assert (
        models.locator("#models-retrievers input:checked, #models-llms input:checked").count() == 2
    )
    expect(row(models, "extractive-reader")).to_contain_text("extractive")
    models.click("#models-open-develop")
    models.locator("#develop-execute-chain").wait_for(state="visible", timeout=PATIENCE)


def test_a_second_window_sees_what_the_first_loads_and_unloads(
    models: Any, served: tuple[str, Path]
) -> None:
    second = models.context.new_page()
    second.goto(served[0])
    load(models, ("starter-bm25",), ("echo",))
    says(models, "models-progress", "Loaded starter-bm25: ")
    row(second, "starter-bm25").locator(".rb-badge.good").wait_for(timeout=PATIENCE)
    unload(models, "starter-bm25")
    says(models, "models-progress", "given back")
    assert "given back" in models.inner_text("#models-progress")
    row(second, "starter-bm25").get_by_text("not loaded").wait_for(timeout=PATIENCE)


def test_a_tick_stays_while_the_page_refreshes_itself(models: Any) -> None:
    tick(models, "models-retrievers", "starter-bm25")
    models.wait_for_timeout(5_000)
    ticked = models.locator("#models-retrievers label", has=models.locator("input:checked"))
    expect(ticked).to_have_text(["starter-bm25"])


def test_an_added_model_can_be_loaded_and_asked_at_once(
    models: Any, served: tuple[str, Path]
) -> None:
    models.click("#models-add-panel button")
    models.locator("#models-add-backend").get_by_label("scripted").check()
    models.locator("#models-add-base-url").wait_for(state="hidden", timeout=PATIENCE)
    fill(models, "models-add-name", "oracle")
    models.fill("#models-add-settings textarea", '{"default": "<u>42</u>"')
    models.click("#models-add")
    says(models, "models-add-status", "not valid JSON")
    models.fill("#models-add-settings textarea", '{"default": "<u>42</u>"}')
    models.click("#models-add")
    says(models, "models-add-status", "Saved oracle in")
    assert '"oracle"' in (served[1] / "llms.json").read_text()
    load(models, (), ("oracle",))
    models.click("#models-ask-panel button")
    choose(models, "models-ask-llm", "oracle")
    models.click("#models-ask")
    says(models, "models-ask-answer", "<u>42</u>")


@pytest.fixture(scope="module")
def run_name(served: tuple[str, Path]) -> str:
    """A run that another process made in the served workspace, beside one that is damaged."""
    bench = Workbench(served[1])
    chain = Chain("words", (Action("retrieve", "<u>{question}</u>", "fstring", "starter-bm25", 3),))
    plan = prepared(bench.workspace, chain, "starter-qa", limit=3, name="browser-run", track=False)
    list(bench.runs.run(plan))
    half = bench.workspace.runs / "half-run"
    half.mkdir()
    (half / "run.json").write_text('{"format": "rallebench-run/1", "na')
    return "browser-run"


@pytest.fixture
def runs(page: Any, run_name: str) -> Any:
    """The Runs tab, showing these two."""
    open_tab(page, "Runs")
    says(page, "runs-counted", "the newest first")
    fill(page, "runs-filter", "-run")
    says(page, "runs-table", run_name)
    return page


def cell(page: Any, text: str) -> Any:
    """A visible cell of the table of runs."""
    return page.locator("#runs-table").get_by_text(text, exact=True).locator("visible=true").last


def test_a_run_is_found_read_and_opened_in_benchmark(runs: Any, run_name: str) -> None:
    cell(runs, run_name).click()
    says(runs, "runs-details", "3 of 3 questions answered")
    says(runs, "runs-details", "<u>{question}</u>")
    assert "<u>{question}</u>" in runs.inner_text("#runs-details")
    runs.click("#runs-open-benchmark")
    runs.locator("#benchmark-run").wait_for(state="visible", timeout=PATIENCE)
    says(runs, "benchmark-progress", run_name)
    says(runs, "benchmark-report", "3 of 3 questions answered")


def test_a_damaged_run_is_shown_with_its_sentence_and_cannot_be_opened(runs: Any) -> None:
    says(runs, "runs-counted", "The run 'half-run' is damaged")
    assert "The run 'half-run' is damaged" in runs.inner_text("#runs-counted")
    cell(runs, "damaged").click()
    says(runs, "runs-details", "is not valid JSON")
    expect(runs.locator("#runs-open-benchmark")).to_be_disabled()
    expect(runs.locator("#runs-send-mlflow")).to_be_disabled()


def test_the_table_of_runs_cannot_be_edited(runs: Any, run_name: str) -> None:
    cell(runs, run_name).dblclick()
    runs.keyboard.type("changed")
    runs.keyboard.press("Enter")
    runs.wait_for_timeout(500)
    assert "changed" not in runs.inner_text("#runs-table")


def test_the_command_for_mlflow_stands_on_the_page(runs: Any, served: tuple[str, Path]) -> None:
    says(runs, "runs-mlflow", "mlflow server --host 127.0.0.1")
    says(runs, "runs-mlflow", str(served[1].resolve()))
    assert str(served[1].resolve()) in runs.inner_text("#runs-mlflow")
