"""Plots and tables are saved by the browser itself: as PNG, SVG and CSV, on the page and in a report without a network."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from browsing import PATIENCE, expect
from performing import prepared

from rallebench.cli.main import main
from rallebench.core.types import Action, Chain
from rallebench.services.workbench import Workbench

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def workspace(served: tuple[str, Path]) -> Path:
    """Two runs to compare."""
    bench = Workbench(served[1])
    for name, template in (("plain", "{question}"), ("polite", "Please: {question}")):
        chain = Chain(name, (Action("generate", template, "fstring", "echo"),))
        list(
            bench.runs.run(
                prepared(bench.workspace, chain, "starter-qa", limit=6, name=name, track=False)
            )
        )
    bench.close()
    return served[1]


def saved(page: Any, click: Callable[[], Any]) -> tuple[str, bytes]:
    with page.expect_download(timeout=PATIENCE) as waiting:
        click()
    return waiting.value.suggested_filename, Path(waiting.value.path()).read_bytes()


def test_every_plot_and_table_of_a_comparison_can_be_saved(workspace: Path, page: Any) -> None:
    page.get_by_role("tab", name="Compare").click()
    field = page.locator("#compare-runs input")
    for name in ("plain", "polite"):
        field.click()
        field.fill(name)
        page.get_by_role("option", name=name).first.click()
    page.locator("#compare-start").click()
    page.wait_for_selector("#compare-plot .js-plotly-plot .main-svg", timeout=PATIENCE)
    name, svg = saved(page, lambda: page.locator("#compare-plot-svg").click())
    assert name == "quality-and-cost.svg" and svg.startswith(b"<svg") and b"polite" in svg
    name, png = saved(page, lambda: page.locator("#compare-plot-png").click())
    assert name == "quality-and-cost.png" and png.startswith(b"\x89PNG") and len(png) > 5000
    falls = page.locator("#compare-waterfalls")
    name, svg = saved(page, lambda: falls.get_by_text("Save as SVG").click())
    assert name == "waterfall.svg" and b"plain" in svg
    name, png = saved(page, lambda: falls.get_by_text("Save as PNG").click())
    assert name == "waterfall.png" and png.startswith(b"\x89PNG") and len(png) > 3000
    for part, file in (
        ("table", "runs.csv"),
        ("differences", "differences.csv"),
        ("changes", "changes.csv"),
    ):
        name, text = saved(
            page,
            lambda part=part: page.locator(f"#compare-{part}").get_by_text("Save as CSV").click(),
        )
        assert name == file and b"polite" in text


def test_the_drawings_of_a_report_are_saved_without_a_network(
    workspace: Path, browser: Any, tmp_path: Path
) -> None:
    file = tmp_path / "report.html"
    assert (
        main(["report", "plain", "polite", "--out", str(file), "--workspace", str(workspace)]) == 0
    )
    context = browser.new_context(offline=True)
    visitor = context.new_page()
    said: list[str] = []
    visitor.on("console", lambda message: said.append(message.text))
    visitor.goto(file.as_uri())
    expect(visitor.locator("svg").first).to_be_visible()
    links = visitor.get_by_text("Save as PNG")
    for number in range(links.count()):
        name, png = saved(visitor, lambda number=number: links.nth(number).click())
        assert name.endswith(".png") and png.startswith(b"\x89PNG") and len(png) > 3000
    assert not said, said
    context.close()
