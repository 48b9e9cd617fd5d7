"""Data."""

from __future__ import annotations

from rallebench.gui.frame import PLACES, Event, Page, Patch


@PLACES.register("data", label="Data", order=4)
def data(page: Page) -> None:
    """Data."""
    page.view("data/list", open_list)


def open_list(page: Page, event: Event) -> Patch:
    """The list."""
    return {"#v-data-list": '<div class="wrap-page"><h1>Data</h1></div>', "title": "Data"}
