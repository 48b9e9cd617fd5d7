"""The marks of a run as HTML: its star, its tags and its note."""

from __future__ import annotations

from markupsafe import Markup

from rallebench.core.run_results import RunSummary
from rallebench.gui import html


def star_button(row: RunSummary) -> Markup:
    """Draw the star of a run, which a press sets or removes."""
    words = f"Reference run of {row.dataset}" if row.is_reference else "Make it the reference run"
    return Markup(
        '<button type="button" class="star{}" title="{}" aria-label="{}: {}" aria-pressed="{}"{}>{}</button>'
    ).format(
        " on" if row.is_reference else "",
        words,
        words,
        row.title,
        str(row.is_reference).lower(),
        html.attributes(do="runs.star", id=row.name, starred="" if row.is_reference else "yes"),
        "★" if row.is_reference else "☆",
    )


def tag_marks(row: RunSummary) -> Markup:
    """Draw the tags of a run."""
    return Markup().join(Markup('<span class="tag">{}</span>').format(tag) for tag in row.tags)
