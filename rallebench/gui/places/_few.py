"""Placeholder."""

from __future__ import annotations

from rallebench.gui.frame import Event, Page, Patch


def register(page: Page) -> None:
    """Add this mode."""
    page.view("build/few", open_view)


def open_view(page: Page, event: Event) -> Patch:
    """The view."""
    return {"#v-build-few": "<p>soon</p>"}
