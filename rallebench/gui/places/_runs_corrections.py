"""The metric of a comparison, raw and corrected by people's labels, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from markupsafe import Markup

from rallebench.core.corrections import correction_table
from rallebench.gui import figures, html
from rallebench.gui.frame import Page
from rallebench.views.corrections import compared_corrections


def draw_corrections(page: Page, titles: Mapping[str, str], metric: str) -> Markup:
    """Draw the corrected means and differences of runs; "" if one of them has no label. ``titles``: run → its title."""
    value = compared_corrections([page.workbench.runs.open(name) for name in titles], metric)
    if not value:
        return Markup()
    titled = [replace(x, runs=tuple(titles[run] for run in x.runs)) for x in value.corrections]
    value = replace(value, corrections=tuple(titled))
    table = figures.table(replace(correction_table(titled), title="")) if titled else Markup()
    head = html.heading("Corrected by labels", "people's labels, scores from 0 to 1")
    return head + table + html.bullets(value.sentences)
