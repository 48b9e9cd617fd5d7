"""Runs: the list, one run, a new one, and comparing."""

from __future__ import annotations

from rallebench.gui.frame import PLACES, Page
from rallebench.gui.places import _runs_compare, _runs_list, _runs_more, _runs_one


@PLACES.register("runs", label="Runs", order=2)
def runs(page: Page) -> None:
    """Run a chain over a dataset, read what came, compare."""
    for part in (_runs_more, _runs_list, _runs_one, _runs_compare):
        part.register(page)
