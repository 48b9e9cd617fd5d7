"""Every view in light and dark with axe-core, and in windows of 820 and 390 pixels."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import serving
from screens import AXE, SCREENS, SMALL, TOO_WIDE, darken, make_views, show, violations

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SIZE = {"width": 1280, "height": 900}


@pytest.fixture(scope="module")
def window(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One window for all views; it accepts scripts of the test."""
    workspace = tmp_path_factory.mktemp("screens") / "workspace"
    make_views(workspace)
    with serving(workspace) as url:
        context = browser.new_context(viewport=SIZE, bypass_csp=True)
        tab = context.new_page()
        tab.goto(url)
        tab.wait_for_selector("body.ready")
        yield tab
        context.close()


@pytest.mark.parametrize("name", SCREENS)
def test_axe_finds_nothing_serious_in_light_and_dark(window: Any, name: str) -> None:
    window.set_viewport_size(SIZE)
    show(window, SCREENS[name])
    for is_dark in (False, True):
        darken(window, is_dark)
        assert violations(window) == []
    darken(window, False)


@pytest.mark.parametrize("width", [820, 390])
@pytest.mark.parametrize("name", SCREENS)
def test_no_view_is_wider_than_a_narrow_window_and_a_finger_can_press_its_controls(
    window: Any, name: str, width: int
) -> None:
    window.set_viewport_size(SIZE)
    show(window, SCREENS[name])
    window.set_viewport_size({"width": width, "height": 844})
    assert window.evaluate(TOO_WIDE) == []
    assert window.evaluate(SMALL) == []


def test_the_verdict_comes_first_in_a_window_of_820_pixels(window: Any) -> None:
    window.set_viewport_size({"width": 820, "height": 844})
    show(window, SCREENS["one question"])
    tops = "() => ['#build-result', '#chain-form'].map(id => document.querySelector(id).getBoundingClientRect().top)"
    verdict, chain = window.evaluate(tops)
    assert 0 < verdict < 300 and verdict < chain


def test_the_buttons_of_a_heading_wrap_together_and_the_gold_choosers_are_one_row(
    window: Any,
) -> None:
    tops = "css => new Set([...document.querySelectorAll(css)].map(el => el.offsetTop + el.offsetHeight)).size"
    window.set_viewport_size({"width": 820, "height": 844})
    show(window, SCREENS["experiment"])
    assert window.evaluate(tops, "#v-experiments-one .crumb-buttons > *") == 1
    window.set_viewport_size(SIZE)
    show(window, SCREENS["gold pages"])
    assert window.evaluate(tops, "#gold-buttons > :is(select, button)") == 1


def test_the_places_are_a_bar_at_the_bottom_of_a_phone(window: Any) -> None:
    window.set_viewport_size({"width": 390, "height": 844})
    show(window, SCREENS["runs"])
    tabs = window.locator(".top nav a")
    assert tabs.count() == 5
    boxes = [tabs.nth(at).bounding_box() for at in range(5)]
    assert all(box["y"] > 780 and box["x"] + box["width"] <= 390.5 for box in boxes)
    tabs.nth(3).click()
    window.locator("#v-data-list:not([hidden]) *").first.wait_for()


def test_the_login_page_is_accessible_and_fits_a_phone(browser: Any, tmp_path: Path) -> None:
    with serving(tmp_path, "--auth", "me:secret") as url:
        for scheme in ("light", "dark"):
            context = browser.new_context(viewport=SIZE, bypass_csp=True, color_scheme=scheme)
            tab = context.new_page()
            tab.goto(url)
            tab.get_by_label("password").wait_for()
            assert tab.title() == "rallebench"
            assert violations(tab) == []
            tab.set_viewport_size({"width": 390, "height": 844})
            assert tab.evaluate("document.documentElement.scrollWidth") <= 390
            context.close()


def test_figures_have_one_width(window: Any) -> None:
    window.set_viewport_size(SIZE)
    show(window, SCREENS["runs"])
    kinds = "() => [...document.querySelectorAll('.view:not([hidden]) *')].map(e => getComputedStyle(e).fontVariantNumeric)"
    assert set(window.evaluate(kinds)) == {"tabular-nums"}
    widths = """() => {
        const words = document.createElement('span');
        document.querySelector('.view:not([hidden])').append(words);
        return ['1111', '8888'].map(text => {
            words.textContent = text;
            return words.getBoundingClientRect().width;
        });
    }"""
    narrow, wide = window.evaluate(widths)
    assert narrow == wide > 0


def test_axe_is_of_the_version_in_its_name() -> None:
    assert AXE.read_text(encoding="utf-8").startswith(f"/*! axe v{AXE.stem.rpartition('-')[2]}")
