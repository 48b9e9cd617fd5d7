"""What the browser tests do on the page. Each waits for what it speaks of, so that a slow machine is no failure."""

from __future__ import annotations

import time
from typing import Any

PATIENCE = 60_000
"""Milliseconds after which something is not coming."""


def expect(what: Any) -> Any:
    """Playwright's waiting assertions; imported late, because without Playwright these tests skip."""
    from playwright.sync_api import expect as waiting

    return waiting(what)


def open_tab(page: Any, name: str) -> None:
    """Open a tab, or a section of one, by the name that it bears."""
    page.get_by_role("tab", name=name, exact=True).click()


def field(page: Any, control: str) -> Any:
    """The box in which a control is typed."""
    return page.locator(f"#{control}").locator("input, textarea").first


def fill(page: Any, control: str, text: str) -> None:
    """Type all of a box anew."""
    field(page, control).fill(text)


def holds(page: Any, control: str, text: str) -> None:
    """The box of a control comes to hold ``text``."""
    expect(field(page, control)).to_have_value(text, timeout=PATIENCE)


def says(page: Any, control: str, text: str) -> None:
    """A part of the page comes to say ``text``; a failure shows what it said instead."""
    expect(page.locator(f"#{control}")).to_contain_text(text, timeout=PATIENCE, use_inner_text=True)


def there_are(page: Any, css: str, number: int) -> None:
    """So many of something come to be on the page."""
    expect(page.locator(css)).to_have_count(number, timeout=PATIENCE)


def press(page: Any, control: str, shown: str, text: str) -> None:
    """Press a button, whereupon the part ``shown`` says ``text``."""
    page.click(f"#{control}")
    says(page, shown, text)


def choose(page: Any, control: str, text: str) -> None:
    """Choose what a drop-down offers, now or after the page's next look at the workspace."""
    box = page.locator(f"#{control} input")
    deadline = time.monotonic() + PATIENCE / 1000
    while True:
        box.fill(text)
        page.wait_for_timeout(200)
        exact, like = (
            page.get_by_role("option", name=text, exact=whole) for whole in (True, False)
        )
        offered = exact if exact.count() else like
        if offered.count():
            offered.first.click()
            page.wait_for_timeout(200)
            if text in box.input_value():
                return
        assert time.monotonic() < deadline, f"{text} is not offered by {control}"
        box.press("Escape")
        page.wait_for_timeout(500)
