"""Experiments."""

from __future__ import annotations

from rallebench.gui.frame import PLACES, Event, Page, Patch


@PLACES.register("experiments", label="Experiments", order=3)
def experiments(page: Page) -> None:
    """Experiments."""
    page.view("experiments/list", open_list)


def open_list(page: Page, event: Event) -> Patch:
    """The list."""
    return {
        "#v-experiments-list": '<div class="wrap-page"><h1>Experiments</h1></div>',
        "title": "Experiments",
    }
