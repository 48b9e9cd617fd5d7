"""The hostile workspace in a real browser: none of its scripts run, and none of its elements appear."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from browsing import PATIENCE, go, serving, visiting
from hostile_workspace import (
    NAME,
    addresses,
    fill_hostile_workspace,
    make_hostile_workspace,
    plant_in_prompts,
)

from rallebench.gui.frame import Page
from rallebench.services.workbench import Workbench

pytestmark = [pytest.mark.browser, pytest.mark.slow]
INJECTED = "#frame :is(img, script, iframe, [onerror], [href^='javascript:'])"
DRAWERS = ("versions.show", "code.show", "versions.save")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, list[str]]]:
    """(address of the page over the hostile workspace, its views)."""
    folder = tmp_path_factory.mktemp("hostile")
    made = make_hostile_workspace(folder / "made")
    with pytest.MonkeyPatch.context() as patched:
        plant_in_prompts(folder, patched)
        patched.setattr("rallebench.services.tracking.Tracking.trace", lambda *_: None)
        workbench = Workbench(made)
        page = Page(workbench)
        fill_hostile_workspace(page)
        views = addresses(page)
        workbench.close()
    models = (made / "llms.json").read_text()
    with serving(made) as url:
        (made / "llms.json").write_text(models)
        yield url, views


def check(visitor: Any, at: str) -> None:
    """Fail if a text of the workspace became an element, or ran."""
    visitor.wait_for_function("rb.idle()", timeout=PATIENCE)
    assert visitor.locator(INJECTED).count() == 0, at
    assert visitor.evaluate("window.__pwned") is None, at


def test_no_view_of_a_hostile_workspace_runs_its_script(browser: Any, hostile: Any) -> None:
    url, views = hostile
    with visiting(browser, url) as visitor:
        visitor.wait_for_selector("body.ready")
        for view in views:
            go(visitor, f"#/{view}")
            check(visitor, view)
            for action in DRAWERS if view.startswith("build/one") else ():
                visitor.locator(f"[data-do='{action}']:visible").first.click()
                check(visitor, action)
                visitor.keyboard.press("Escape")
        # The last view shows the planted name as text, once its rows have come.
        shows = "name => document.body.innerText.includes(name)"
        visitor.wait_for_function(shows, arg=NAME, timeout=PATIENCE)
