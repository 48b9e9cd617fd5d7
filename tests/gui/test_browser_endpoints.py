"""Gradio's own page of the endpoints opens from the help of the page, and closes again."""

from __future__ import annotations

from typing import Any

import pytest
from browsing import expect, go

from rallebench.remote.calls import CALLS, Calls

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def test_the_endpoints_are_shown_with_their_descriptions(tab: Any) -> None:
    go(tab, "#/runs/list")
    tab.locator(".keys-button").click()
    tab.get_by_text("Endpoints for programs").click()
    shown = tab.locator(".api-docs")
    for name in CALLS:
        expect(shown).to_contain_text(f"/{name}")
    first_line = str(Calls.ask.__doc__).splitlines()[0]
    expect(shown.locator("h3").filter(has_text="/ask")).to_contain_text(first_line)
    expect(shown.locator("pre").filter(has_text='api_name="/ask"')).to_be_visible()
    expect(shown.get_by_text("API Recorder").first).to_be_hidden()


@pytest.mark.parametrize("is_by_key", [True, False])
def test_the_endpoints_close_and_the_address_stays(tab: Any, is_by_key: bool) -> None:
    go(tab, "#/runs/list?words=x")
    before = tab.url
    tab.locator(".keys-button").click()
    tab.get_by_text("Endpoints for programs").click()
    close = tab.locator(".api-docs").get_by_label("Close")
    expect(close).to_be_focused()
    assert tab.url == before
    tab.keyboard.press("j")  # a key of the page behind
    tab.keyboard.press("Escape") if is_by_key else close.click()
    expect(tab.locator(".api-docs")).to_have_count(0)
    expect(tab.locator(".keys-button")).to_be_focused()
    assert tab.url == before
