"""What the browser tests do on the page. Each waits for what it speaks of, so that a slow machine is no failure."""

from __future__ import annotations

from typing import Any

PATIENCE = 60_000
"""Milliseconds after which something is not coming."""


def expect(what: Any) -> Any:
    """Playwright's waiting assertions; imported late, because without Playwright these tests skip."""
    from playwright.sync_api import expect as waiting

    waiting.set_options(timeout=PATIENCE)
    return waiting(what)


def says(page: Any, css: str, text: str) -> None:
    """An element comes to say ``text``; a failure shows what it said instead."""
    expect(page.locator(css)).to_contain_text(text, use_inner_text=True)


def go(page: Any, address: str) -> None:
    """Open an address of the page and wait for its view."""
    page.evaluate("address => { location.hash = address }", address)
    view = address.removeprefix("#/").partition("?")[0].replace("/", "-")
    page.wait_for_selector(f"#v-{view}:not([hidden]) *", timeout=PATIENCE)


def press(page: Any, words: str) -> None:
    """Press the button of the open view, dialog or drawer that has these words."""
    open_part = "dialog[open] button, .drawer:not([hidden]) button, .view:not([hidden]) button"
    page.locator(open_part).filter(has_text=words).first.click()


def assert_fits(page: Any, width: int, *addresses: str) -> None:
    """Nothing is wider than a window of ``width`` pixels."""
    page.set_viewport_size({"width": width, "height": 900})
    for address in addresses:
        go(page, address)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, address
