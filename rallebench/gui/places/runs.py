"""Runs."""

from __future__ import annotations

from rallebench.gui.frame import PLACES, Event, Page, Patch


@PLACES.register("runs", label="Runs", order=2)
def runs(page: Page) -> None:
    """Runs."""
    page.view("runs/list", open_list)


def open_list(page: Page, event: Event) -> Patch:
    """The list."""
    return {"#v-runs-list": '<div class="wrap-page"><h1>Runs</h1></div>', "title": "Runs"}
