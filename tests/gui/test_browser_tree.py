"""The tree that a screen reader reads, over every view: headings, landmarks, names of controls, and the way of the focus."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest
from browsing import expect, go, serving
from screens import SCREENS, make_views, show

pytestmark = [pytest.mark.browser, pytest.mark.slow]

TREE = """() => {
    const seen = el => el.checkVisibility({visibilityProperty: true});
    const own = document.querySelector('dialog[open]') || document.body;
    const name = el => el.getAttribute('aria-label') || el.textContent.trim() || el.title;
    const aim = el => el.getAttribute('href') || JSON.stringify(el.dataset) + (el.closest('[id]')?.id || '');
    const all = css => [...own.querySelectorAll(css)].filter(seen);
    return {
        headings: all('h1, h2, h3, h4, h5, h6').map(el => [+el.tagName[1], el.textContent.trim()]),
        mains: all('main, [role=main]').length,
        regions: all('[role=region], aside').map(el => el.getAttribute('aria-label')),
        controls: all('button, a[href], summary').map(el => [el.tagName, name(el).replace(/\\s+/g, ' '), aim(el)]),
    };
}"""

FOCUSED = "() => [document.activeElement.tagName, document.activeElement.textContent.trim()]"


@pytest.fixture(scope="module")
def window(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One window for all views."""
    workspace = tmp_path_factory.mktemp("tree") / "workspace"
    make_views(workspace)
    with serving(workspace) as url:
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        tab = context.new_page()
        tab.goto(url)
        tab.wait_for_selector("body.ready")
        yield tab
        context.close()


def test_every_view_has_one_title_no_jump_one_main_and_names_that_tell_controls_apart(
    window: Any,
) -> None:
    faults = []
    for view, screen in SCREENS.items():
        show(window, screen)
        tree = window.evaluate(TREE)
        levels = [level for level, _ in tree["headings"]]
        if view != "new run":  # a dialog hides the title of its view
            assert tree["mains"] == 1
            faults += [f"{view}: titles {levels}"] * (levels.count(1) != 1 or levels[0] != 1)
        jumps = [pair for pair in zip(levels, levels[1:]) if pair[1] > pair[0] + 1]
        faults += [f"{view}: jump {jump} in {tree['headings']}" for jump in jumps]
        faults += [f"{view}: a region has no name"] * (None in tree["regions"])
        aims = defaultdict(set)
        for kind, name, aim in tree["controls"]:
            aims[kind, name].add(aim)
        faults += [
            f"{view}: {name} does {len(to)} things" for name, to in aims.items() if len(to) > 1
        ]
        faults += [f"{view}: a control has no name"] * any(not name for _, name in aims)
    assert faults == []


def test_the_first_stop_of_the_tab_key_skips_to_the_content(window: Any) -> None:
    window.reload()
    window.wait_for_selector("body.ready")
    go(window, "#/runs/list")
    window.locator("#v-runs-list h1").wait_for()
    window.evaluate("() => document.activeElement.blur()")
    window.keyboard.press("Tab")
    assert window.evaluate(FOCUSED) == ["A", "Skip to the content"]
    expect(window.locator(".skip")).to_be_in_viewport()
    window.keyboard.press("Enter")
    assert window.evaluate(FOCUSED) == ["H1", "Runs"]
    assert window.url.endswith("#/runs/list")


def test_headings_of_an_answer_are_none_of_the_page() -> None:
    from rallebench.gui.markdown import safe_markdown

    assert safe_markdown("# Titan\n\n### A moon") == (
        '<p class="title">Titan</p>\n<p class="title">A moon</p>'
    )


def test_a_closed_dialog_gives_the_focus_back_to_its_button(window: Any) -> None:
    go(window, "#/models/list")
    show(window, SCREENS["one question"])
    window.get_by_role("button", name="Run on a dataset").focus()
    window.keyboard.press("Enter")
    window.locator("#dialog[open]").wait_for()
    window.keyboard.press("Escape")
    expect(window.get_by_role("button", name="Run on a dataset")).to_be_focused()


def test_the_focus_goes_to_the_next_row_when_one_is_deleted(window: Any) -> None:
    show(window, SCREENS["runs"])
    menus = window.locator("#v-runs-list .runrow details.menu > summary")
    name = window.locator("#v-runs-list .runrow a.nm").first.inner_text()
    menus.first.focus()
    window.keyboard.press("Enter")
    window.locator("#v-runs-list details.menu[open] button.danger").first.focus()
    window.keyboard.press("Enter")
    if window.locator("#confirm[open]").count():
        window.keyboard.press("Enter")
    expect(window.locator("#v-runs-list .runrow").filter(has_text=name)).to_have_count(0)
    expect(window.locator("#v-runs-list :focus")).to_have_count(1)


def test_the_focus_is_in_the_view_of_a_started_run(window: Any) -> None:
    show(window, SCREENS["new run"])
    window.locator("#dialog[open] button.primary").focus()
    window.keyboard.press("Enter")
    window.locator("#v-runs-run:not([hidden]) h1, #v-runs-list:not([hidden]) h1").wait_for()
    expect(window.locator(".view:not([hidden]) :focus")).to_have_count(1)
