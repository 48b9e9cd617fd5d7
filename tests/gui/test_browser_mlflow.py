"""MLflow's own pages, opened in a browser: they are full, and their averages are ours."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import expect
from run_folders import make_run

from rallebench.core.files import write_text
from rallebench.core.waterfall import QuestionStage, Waterfall
from rallebench.engine.store import SCORES
from rallebench.tracking.runs import log_run
from rallebench.tracking.server import start_ui

pytestmark = pytest.mark.slow

QUESTIONS, FAILED = 20, (2, 5)


def log_scored(workspace: Path, title: str, wrong: int) -> str:
    """Log a run of which every third question is wrong, and two failed; return its id in MLflow."""
    folder = make_run(workspace / "runs", title.replace(" · ", " "), QUESTIONS, FAILED)
    answered = [i for i in range(QUESTIONS) if i not in FAILED]
    right = {i: float((i + wrong) % 3 > 0) for i in answered}
    lines = [{"qid": f"q{i}", "metric": "em", "value": right.get(i)} for i in range(QUESTIONS)]
    write_text(folder.path / SCORES, "".join(json.dumps(line) + "\n" for line in lines))
    stages = {i: "right" if value else "not_retrieved" for i, value in right.items()}
    placed = tuple(QuestionStage(f"q{i}", stages.get(i, "failed")) for i in range(QUESTIONS))
    return log_run(folder.path, workspace=workspace, title=title, waterfall=Waterfall(placed, True))


@pytest.fixture(scope="module")
def mlflow_page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, list[str]]]:
    """(address of MLflow's page, ids of two runs)."""
    workspace = tmp_path_factory.mktemp("mlflow")
    ids = [log_scored(workspace, title, n) for n, title in enumerate(("rag", "rag · k 2"), 1)]
    server = start_ui(workspace)
    while not server.ready():
        time.sleep(0.5)
    yield server.url, ids
    server.stop()


@pytest.fixture
def visitor(browser: Any) -> Iterator[Any]:
    """A visitor of MLflow's page with a wide window, in which all default columns fit."""
    page = browser.new_context(viewport={"width": 3400, "height": 1000}).new_page()
    page.set_default_timeout(90_000)  # the first page compiles its scripts
    yield page
    page.context.close()


def test_evaluation_runs_have_our_names_and_two_are_compared_question_by_question(
    mlflow_page: tuple[str, list[str]], visitor: Any, tmp_path: Path
) -> None:
    visitor.goto(f"{mlflow_page[0]}/#/experiments/1/evaluation-runs")
    for text in ("rag · k 2", "em", "recall_at_5"):
        expect(visitor.get_by_text(text, exact=True).first).to_be_visible()
    boxes = visitor.get_by_role("checkbox")
    expect(boxes).to_have_count(2)
    for box in boxes.all():
        box.click()
    visitor.get_by_role("button", name="Actions").first.click()
    visitor.get_by_role("menuitem", name="Compare").click()
    table = visitor.locator("body")
    for text in ("Comparing", "Expected output", "Ada Lovelace", "Overall", "20 of 20"):
        expect(table).to_contain_text(text)
    # 11 and 14 of 18 scored questions; runs of the same second come in either order.
    expect(table).to_contain_text(re.compile(r"AVG\s*0\.(61|78)"))
    expect(table).to_contain_text("17%")
    expect(table).not_to_contain_text("NaN")
    visitor.screenshot(path=tmp_path / "comparison.png")


def test_a_run_shows_its_questions_with_gold_and_scores_and_the_table_of_all_figures(
    mlflow_page: tuple[str, list[str]], visitor: Any, tmp_path: Path
) -> None:
    url, (first, _) = mlflow_page
    visitor.goto(f"{url}/#/experiments/1/runs/{first}/traces")
    body = visitor.locator("body")
    for text in ("Who is number 19?", "Expected output", "Overall", "Pass", "Fail"):
        expect(body).to_contain_text(text)
    visitor.screenshot(path=tmp_path / "questions.png")
    visitor.goto(f"{url}/#/experiments/1/runs/{first}/artifacts/metrics.json")
    for text in ("recall@5", "waterfall_right", "score"):
        expect(body).to_contain_text(text)
    visitor.screenshot(path=tmp_path / "figures.png")
