"""The cells of a row in the list of runs, by column."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress

from markupsafe import Markup

from rallebench.core.errors import RalleError
from rallebench.core.numbers import plural
from rallebench.core.run_results import RunSummary
from rallebench.gui import figures, html
from rallebench.gui.addresses import RunAddress
from rallebench.gui.frame import Page
from rallebench.gui.places._runs_marks import star_button, tag_marks
from rallebench.render import numbers
from rallebench.views import dataset_changes, run_columns, run_list, run_questions, run_views
from rallebench.views.run_columns import RunColumn

STATES = {
    "running": "running",
    "scoring": "being scored",
    "stopped": "stopped",
    "failed": "failed",
    "interrupted": "interrupted",
    "done": "",
}
DRAWN = {"interval": "Interval", "lost": "Where questions were lost"}
"""Columns that are only drawn: name → label."""
INITIAL = ("dataset", "score", "interval", "Rprec", "lost", "time", "price")
"""The columns that are shown until others are chosen."""
_WIDTHS = {
    "name": "minmax(190px, 2.4fr)",
    "dataset": "minmax(100px, 1fr)",
    "interval": "120px",
    "lost": "176px",
    "note": "minmax(140px, 1.5fr)",
    "tag": "minmax(90px, 1fr)",
    "created": "110px",
    "price": "70px",
    "k": "40px",
}
_SCROLL_BAR = 16
"""Pixels of the vertical scroll bar beside the rows."""
_TEXT_WIDTH, _MEAN_WIDTH, _NUMBER_WIDTH = "minmax(90px, 1fr)", "126px", "84px"


def width(name: str, column: RunColumn | None) -> str:
    """Return the width of a column for the grid."""
    if name in _WIDTHS or column is None:
        return _WIDTHS.get(name, _TEXT_WIDTH)
    if not column.is_number:
        return _TEXT_WIDTH
    return _MEAN_WIDTH if column.kind == "share" else _NUMBER_WIDTH


def least_width(widths: Iterable[str]) -> int:
    """Return the pixels below which a row with these columns is scrolled."""
    pixels = [int(match[0]) for text in widths if (match := re.search(r"\d+", text))]
    return sum(pixels) + 14 * (len(pixels) + 1) + 62 + _SCROLL_BAR


def cell(
    page: Page, row: RunSummary, name: str, column: RunColumn | None, ends: bool = False
) -> Markup:
    """Draw the cell of a run in a column. ``ends``: how its interval is written; see ``figures.needs_ends``."""
    content, title = _content(page, row, name, column, ends)
    side = "n" if column is not None and column.is_number else ""
    return Markup('<span class="{}" data-column="{}" title="{}">{}</span>').format(
        side, name, title, content
    )


def _content(
    page: Page, row: RunSummary, name: str, column: RunColumn | None, ends: bool
) -> tuple[str, str]:
    """Return the content of a cell and its tooltip."""
    if name == "score":
        return _score(row, ends), figures.doubt(row.mean)
    if name in _SPECIAL:
        return _SPECIAL[name](page, row), ""
    if column is None:
        return "", ""
    mean, value = row.metrics.get(name), column.value(row)
    if mean is not None and column.kind == "share":
        return figures.percent(mean, ends=ends), figures.doubt(mean)
    if column.is_number:
        return number_text(column, value), ""
    return Markup('<span class="cell-text">{}</span>').format(value or "–"), str(value or "")


def number_text(column: RunColumn, value: object) -> str:
    """Format a number of a column; "–" if it is unknown."""
    if not isinstance(value, (int, float)):
        return "–"
    if column.name == run_columns.REFERENCE:
        return figures.points(value)
    if column.kind == "share":
        return figures.number(100 * value, unit="%")
    if column.kind == "seconds":
        return figures.duration(value)
    if column.kind == "usd":
        return numbers.text(value, "usd") if value else "none"
    if column.kind == "count":
        return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.1f}"
    return numbers.text(float(value))


def name_cell(page: Page, row: RunSummary) -> Markup:
    """Draw the title with its star and tags, above facts and the note."""
    chain = row.chain
    depths = [f"k {a.k}" for a in chain.actions if a.kind == "retrieve"][-1:] if chain else []
    about = html.join_facts(
        *depths,
        *(chain.llms if chain else ()),
        numbers.moment(row.created),
        row.workflow if row.workflow != "chain" else "",
        STATES.get(row.state, row.state),
        f"{row.errors} failed" if row.errors else "",
        row.note.replace("\n", " ")[:120],
    )
    return Markup(
        '<span class="named"><a class="nm" href="{}" title="{}">{}</a>{}{}</span><small title="{}">{}</small>'
    ).format(
        RunAddress(row.name).href,
        row.name,
        row.title,
        star_button(row),
        tag_marks(row),
        row.note,
        about,
    )


def _dataset(page: Page, row: RunSummary) -> Markup:
    return Markup('<span class="cell-text">{}</span><small>{}</small>').format(
        row.dataset, html.join_facts(question_count(row), changed_since(page, row))
    )


def changed_since(page: Page, row: RunSummary) -> str:
    """Say how many questions of the run were changed or deleted in the dataset since; '' if none."""
    changes = dataset_changes.dataset_changes(page.workspace, page.workbench.runs.open(row.name))
    count = changes.changed + changes.deleted
    return f"{count:,} changed since" if count else ""


def question_count(row: RunSummary) -> str:
    if row.decided:
        return row.decided.partition(":")[0]
    return (
        f"{row.done:,} of {row.total:,}" if row.done != row.total else plural(row.total, "question")
    )


def _score(row: RunSummary, ends: bool) -> Markup:
    score = figures.percent(row.mean, ends=ends) if row.mean else "–"
    return Markup("{}<small>{}</small>").format(score, run_views.label(row.metric))


def _interval(page: Page, row: RunSummary) -> Markup:
    return figures.interval_bar(row.mean)


def _price(page: Page, row: RunSummary) -> str:
    llms = row.chain.llms if row.chain else ()
    return (
        "" if run_list.is_imported(row) else run_views.price_text(page.workspace, row.usd, llms)[0]
    )


def _difference(page: Page, row: RunSummary) -> str:
    if row.is_reference:
        return "reference"
    gap = run_columns.difference(row, run_list.reference(page.workspace, row.dataset))
    return "–" if gap is None else figures.points(gap)


_SPECIAL: Mapping[str, Callable[[Page, RunSummary], str]] = {
    "name": name_cell,
    "dataset": _dataset,
    "interval": _interval,
    "lost": lambda page, row: lost_bar(page, row.name),
    "price": _price,
    "created": lambda page, row: numbers.moment(row.created),
    "tag": lambda page, row: tag_marks(row) or "–",
    run_columns.REFERENCE: _difference,
}


def lost_stages(
    page: Page, name: str, qids: Collection[str] | None = None
) -> list[tuple[str, str, int]]:
    """Return the stages at which questions of a run, or of ``qids``, were lost; empty if the answers cannot be read."""
    with suppress(RalleError):
        run = page.workbench.runs.open(name)
        if qids is None:
            return list(run_questions.run_lost_parts(page.workspace, run))
        listed = run_questions.questions(page.workspace, run)
        return run_questions.lost_parts([row for row in listed if row.qid in qids])
    return []


def lost_bar(page: Page, name: str, *, tall: bool = False) -> Markup:
    """Draw the stages at which questions were lost as a bar; each part opens its questions."""
    where = lost_address(name)
    return figures.waterfall_bar(lost_stages(page, name), tall=tall, address=where, run=name)


def lost_address(name: str) -> str:
    """Return the address of the questions of a part of the bar, with ``{verdict}`` in the place of its verdict."""
    return f"{RunAddress(name).href}&only={{verdict}}"
