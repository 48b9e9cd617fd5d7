"""Plots in a real browser: values at the pointer and the keyboard, a click that opens the run, zoom, files, dark mode."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from browsing import PATIENCE, expect, go, press, says

from rallebench.core.tables import Figure
from rallebench.gui.figures import plots

pytestmark = [pytest.mark.browser, pytest.mark.slow]

TIP = "#plot-tip"
CLOUD = Figure(
    "Cloud", "x", "y", {"a": tuple((x, (x * 7) % 50) for x in range(60)), "b": ((3, 3),)}, "scatter"
)
"""A plot with so many points that it can be zoomed."""


@pytest.fixture
def cloud(tab: Any) -> Any:
    """A page that shows the cloud."""
    go(tab, "#/experiments/list")
    insert = "html => document.querySelector('.view:not([hidden])').insertAdjacentHTML('afterbegin', html)"
    tab.evaluate(insert, str(plots([CLOUD])))
    return tab


def test_a_point_of_a_sweep_says_its_value_and_opens_its_run(tab: Any) -> None:
    go(tab, "#/experiments/list?kind=sweep")
    tab.wait_for_selector("#x-plan .x-big", timeout=PATIENCE)
    tab.fill("input[name=limit]", "6")
    tab.uncheck("[name='v:k'][value='10']")
    says(tab, "#x-plan", "12\nquestions")
    press(tab, "Run 2 variants")
    expect(tab.locator("#x-done tbody tr").first).to_be_visible()
    tab.click("#x-done a.nm")
    marks = tab.locator(".plot").first.locator("a.mark")
    marks.nth(0).hover(force=True)
    says(tab, TIP, "6 questions")
    first = tab.locator(TIP).inner_text()
    assert first == marks.nth(0).get_attribute("aria-label") and " · EM " in first
    tab.mouse.move(0, 0)
    expect(tab.locator(TIP)).to_be_hidden()
    marks.nth(0).focus()
    tab.keyboard.press("ArrowRight")
    says(tab, TIP, marks.nth(1).get_attribute("aria-label"))
    tab.keyboard.press("Enter")
    tab.wait_for_selector("#v-runs-run:not([hidden]) .crumb", timeout=PATIENCE)
    assert "#/runs/run?id=" in tab.url


def test_a_part_of_many_points_is_enlarged_and_shown_whole_again(cloud: Any) -> None:
    area = cloud.locator(".plot .area")
    whole = area.get_attribute("viewBox")
    ticks = cloud.locator(".plot .ticks-x text").all_inner_texts()
    cloud.click("[data-plot-zoom=in]")
    assert area.get_attribute("viewBox") != whole
    assert cloud.locator(".plot .ticks-x text").all_inner_texts() != ticks
    cloud.locator(".plot .mark").first.focus()
    cloud.keyboard.press("0")
    assert area.get_attribute("viewBox") == whole
    assert cloud.locator(".plot .ticks-x text").all_inner_texts() == ticks
    box = area.bounding_box()
    cloud.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 0.3 * box["height"])
    cloud.mouse.down()
    cloud.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 0.7 * box["height"], steps=4)
    cloud.mouse.up()
    _, _, wide, _ = map(float, area.get_attribute("viewBox").split())
    assert wide < float(whole.split()[2]) / 2
    cloud.click("[data-plot-zoom=reset]")
    assert area.get_attribute("viewBox") == whole


def test_a_series_is_hidden_by_its_key_and_missing_in_the_file(cloud: Any, tmp_path: Path) -> None:
    cloud.locator(".plot .mark").first.hover(force=True)
    cloud.locator(".plot .key").nth(1).click()
    expect(cloud.locator(".plot .series").nth(1)).to_be_hidden()
    assert cloud.locator(".plot .key").nth(1).get_attribute("aria-pressed") == "false"
    for shape in ("svg", "png"):
        cloud.click(".plot .menu summary")
        with cloud.expect_download() as download:
            cloud.click(f"[data-plot-save={shape}]")
        download.value.save_as(tmp_path / f"plot.{shape}")
        assert download.value.suggested_filename == f"Cloud.{shape}"
    text = (tmp_path / "plot.svg").read_text()
    assert "var(" not in text and text.count('class="series"') == 1 and "<title>" in text
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


def test_a_plot_has_the_colours_of_dark_mode(cloud: Any) -> None:
    colour = "getComputedStyle(document.querySelector('.plot .mark .dot').parentElement).fill"
    ground = "getComputedStyle(document.querySelector('.plot svg > rect')).fill"
    before = [cloud.evaluate(colour), cloud.evaluate(ground)]
    cloud.evaluate("rb.dark()")
    after = [cloud.evaluate(colour), cloud.evaluate(ground)]
    cloud.evaluate("rb.dark()")
    assert before[1] == "rgb(255, 255, 255)" and all(a != b for a, b in zip(before, after))
