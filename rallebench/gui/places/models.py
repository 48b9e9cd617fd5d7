"""Models."""

from __future__ import annotations

from rallebench.gui.frame import PLACES, Event, Page, Patch


@PLACES.register("models", label="Models", order=5)
def models(page: Page) -> None:
    """Models."""
    page.view("models/list", open_list)


def open_list(page: Page, event: Event) -> Patch:
    """The list."""
    return {"#v-models-list": '<div class="wrap-page"><h1>Models</h1></div>', "title": "Models"}
