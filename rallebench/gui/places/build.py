"""Build: a chain on one question, on a few, in a chat, or an agent."""

from __future__ import annotations

from rallebench.gui.frame import PLACES, Event, Page, Patch


@PLACES.register("build", label="Build", order=1)
def build(page: Page) -> None:
    """Develop a chain."""
    page.view("build/one", open_one)


def open_one(page: Page, event: Event) -> Patch:
    """One question."""
    return {"#v-build-one": '<div class="wrap-page"><h1>Build</h1></div>', "title": "Build"}
