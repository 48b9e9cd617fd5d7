"""Further columns of the grid: assertions, metrics and judges, each with a value for every answer and its mean."""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import Markup

from rallebench.core.errors import UsageError
from rallebench.core.numbers import plural
from rallebench.gui import form, html
from rallebench.gui.events import Event
from rallebench.gui.frame import Page
from rallebench.gui.patches import Patch
from rallebench.gui.places._few import redraw, run, window_grid, window_sheet
from rallebench.views import run_views
from rallebench.views.grid_columns import (
    ASSERTIONS,
    MOST_COLUMNS,
    GridColumn,
    metric_names,
)

KINDS = (
    *((kind, assertion.label) for kind, assertion in ASSERTIONS.items()),
    ("metric", "a metric"),
    ("judge", "a judge"),
)
VALUES = {"text": "Text", "pattern": "Pattern (RE2)", "number": "Number"}
"""Kind of value of an assertion → the label of its field."""


def register(page: Page) -> None:
    """Register the actions of the columns."""
    page.actions("few", drop_column, reads=True)
    page.actions("few", ask_column, add_column)


def ask_column(page: Page, event: Event) -> Patch:
    """Open the dialog for a further column, with the fields of the chosen kind."""
    kind = event.choice("kind", [key for key, _ in KINDS], "contains")
    more = form.on_change("few.ask_column")
    fields = form.chooser("Every answer", "kind", KINDS, kind, more=more)
    label, say = "Add the column", "It costs no call of a model."
    if kind == "metric":
        names = metric_names(run_views.metric_choices())
        fields += form.chooser("Metric", "value", names, "f1")
    elif kind == "judge":
        models, judges = list(page.workspace.llms()), run_views.judge_lines()
        names = [name for name, _ in judges]
        fields += form.chooser("Judge", "judge", names, event.text("judge") or names[0], more=more)
        fields += form.chooser(
            "Judging model", "judge_model", models, event.text("judge_model") or "", more=more
        )
        about = dict(judges).get(event.text("judge") or names[0], "")
        label, say = "Add it and judge", f"{about} {judge_plan(page, event)}"
    elif needs := ASSERTIONS[kind].needs:
        fields += form.text("value", VALUES[needs], more=form.on_enter("few.add_column"))
    body = Markup("{}{}").format(form.fields(fields), html.note(say))
    return Patch(
        dialog=html.dialog(
            "Add a column", body, html.button(label, "few.add_column", kind="primary")
        )
    )


def judge_plan(page: Page, event: Event) -> str:
    """Say how many further calls a judge costs."""
    sheet = window_sheet(page, event)
    answers = plural(len(sheet.chains) * len(sheet.examples), "answer")
    return f"It judges {answers} here, each by at least one call of the judging model."


def chosen_column(event: Event) -> GridColumn:
    """Return the column in the dialog. Raises UsageError."""
    kind, value = event.text("kind", "contains"), event.text("value")
    if kind == "judge":
        value = f"{event.text('judge')}:{event.text('judge_model')}"
    column = GridColumn(kind, value)
    column.check()
    return column


def add_column(page: Page, event: Event) -> Iterator[Patch]:
    """Add a column; a judge then scores the answers."""
    grid, column = window_grid(event), chosen_column(event)
    if column in grid.columns:
        raise UsageError("The grid has this column already; choose another.")
    if len(grid.columns) >= MOST_COLUMNS:
        raise UsageError(f"A grid has at most {MOST_COLUMNS} further columns; remove one first.")
    column.scorer(page.workspace.llm_mark)  # an unknown model is refused before anything is asked
    grid.columns.append(column)
    yield Patch(dialog="") | redraw(page, event)
    if column.kind == "judge" and grid.running is None:
        yield from run(page, event)


def drop_column(page: Page, event: Event) -> Patch:
    """Remove a column; its judgements stay."""
    grid = window_grid(event)
    grid.columns = [x for x in grid.columns if x.text != event.text("column")]
    return redraw(page, event)
