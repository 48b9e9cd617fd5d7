"""Manual checking in a dataset builder: show each row with its articles, to accept, correct or reject."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from markupsafe import Markup

from rallebench.gui import form, html, panels
from rallebench.gui.addresses import Query
from rallebench.gui.events import Event
from rallebench.gui.frame import Page
from rallebench.gui.patches import Patch
from rallebench.services import builders as service

LINES, WIDTH = 8, 60
"""Maximum lines of a field, and approximate characters per line."""


@dataclass(frozen=True)
class RowPlace(Query):
    """A row of a ``stage`` of the dataset ``id`` being built."""

    id: str = ""
    stage: str = ""
    row: str = ""


def check_button(page: Page, name: str, stage: str) -> Markup:
    """Draw the button that starts or continues the check of a stage, with its count; "" if nothing is left to check."""
    done, rows, _ = service.check_progress(page.workspace, name, stage)
    if not rows:
        return Markup()
    words = f"Check row by row ({done:,} of {rows:,})"
    return html.button(words, "builder.check", kind="primary", id=name, stage=stage)


def check(page: Page, event: Event) -> Patch:
    """Show the next unchecked row."""
    place = event.fields(RowPlace)
    name, stage = place.id, place.stage
    done, rows, row = service.check_progress(page.workspace, name, stage)
    if row is None:
        return Patch(drawer="", say="Every row is checked. Continue builds on from here.")
    data = RowPlace(name, stage, row.id).values()
    editable, sources = service.fields_to_check(row.whole)
    fields = Markup().join(
        form.area(
            f"f:{key}", key, value, min(LINES, 1 + len(value) // WIDTH), Markup(' dir="auto"')
        )
        for key, value in editable.items()
    )
    texts = Markup().join(source(key, value) for key, value in sources.items())
    note = "Correct any mistakes; the article's text is below. Write each entry of a list on its own line."
    keep = html.button("Keep, next", "builder.checked", kind="primary", keep="yes", **data)
    reject = html.button("Leave out, next", "builder.checked", keep="", **data)
    title = f"Check {done + 1:,} of {rows:,}"
    return panels.form_drawer(
        title, Markup("{}{}{}").format(html.note(note), fields, texts), reject, keep
    )


def source(key: str, value: str) -> Markup:
    """Draw a source text of the row."""
    text = Markup('<p class="pre" dir="auto">{}</p>').format(value)
    return html.fold(key, text, opened=True)


def correction(event: Event) -> Mapping[str, str]:
    """Return the corrected fields in the drawer."""
    return event.with_prefix("f:")
