"""Published tables: the figures that five papers print, to be read, sorted out and taken away."""

from __future__ import annotations

from collections.abc import Sequence

from rallebench.core.table_files import csv_table, latex
from rallebench.gui import html
from rallebench.gui.frame import Event, Page, Patch
from rallebench.gui.html import e
from rallebench.services import published

FIRST_TABLES = {
    "kilt": "ralle:2",
    "rgb": "rgb:1",
    "crud": "crud:2",
    "barag": "barag:1",
    "reval": "reval:2",
    "beir": "beir:2",
    "mtrag": "mtrag:1",
    "browsecomp": "browsecomp:1",
}
"""Paper of a benchmark → the printed table to show beside its results."""
SUITES = {table.partition(":")[0]: suite for suite, table in FIRST_TABLES.items()}


def address(table: str) -> str:
    """The address of a table."""
    return html.address("experiments/published", table=table)


def register(page: Page) -> None:
    """Add this view."""
    page.view("experiments/published", open_table)
    page.actions("published", save)


def open_table(page: Page, event: Event) -> Patch:
    """A table beside the list of all. Raises NotFoundError."""
    chosen = event.query.get("table") or FIRST_TABLES["kilt"]
    value = published.opened(chosen)
    paper = chosen.partition(":")[0]
    table = published.as_table(value)
    shown = [i for i, _ in enumerate(table.labels) if _tells(i, table.rows)]
    numeric = [all(_is_figure(str(row[i])) for row in table.rows) for i in shown]
    labels = [_head(table.labels[i]) for i in shown]
    heads = [f"{'>' if right else ''}{label}" for right, label in zip(numeric, labels)]
    lines = [[_cell(str(row[i])) for i in shown] for row in table.rows]
    doubts = html.bullets(value.doubts, "x-list")
    if doubts:
        doubts = html.heading("What does not agree with the rest of the paper") + doubts
    units = ", ".join(dict.fromkeys(filter(None, (column.help for column in table.heads))))
    saves = "".join(
        html.button(label, "published.save", table=chosen, suffix=suffix)
        for label, suffix in (("CSV", "csv"), ("LaTeX", "tex"))
    )
    title = f"{published.PAPERS[paper]}, {_number(chosen)}"
    crumb = html.crumb("Experiments", "#/experiments/list", title, value.source, buttons=saves)
    benchmark = html.address("experiments/list", kind="suite", paper=SUITES[paper])
    about = f"{value.about[:1].upper()}{value.about[1:]}."
    body = (
        f'{crumb}<div class="x-published"><nav aria-label="Published tables">{_list(chosen)}</nav>'
        f"<div><p>{e(about)} <small>{e(units)}</small> {html.link('Run this benchmark', benchmark)}</p>"
        f'<div class="wide">{html.rows(heads, lines, kind="x-paper")}</div>{doubts}</div></div>'
    )
    return html.view("experiments/published", title, body, kind="wide")


def _tells(column: int, rows: Sequence[Sequence[object]]) -> bool:
    """Whether a column of words differs between rows; figures are always shown."""
    cells = [str(row[column]) for row in rows]
    return column == 0 or len(cells) < 2 or len(set(cells)) > 1 or _is_figure(cells[0])


def _head(label: str) -> str:
    """The name of a setting as a heading.

    >>> _head("finetuned_on_KILT"), _head("T-REx"), _head("llm")
    ('Finetuned on KILT', 'T-REx', 'LLM')
    """
    words = "LLM" if label == "llm" else label.replace("_", " ")
    return (
        words[:1].upper() + words[1:] if words.split(" ")[0].islower() and len(words) > 1 else words
    )


def _cell(text: str) -> str:
    return e({"": "–", "True": "yes", "False": "no"}.get(text, text))


def _is_figure(cell: str) -> bool:
    return not cell or cell[0].isdigit() or cell[0] in "-−."


def _number(reference: str) -> str:
    number = reference.partition(":")[2]
    return f"table {number}" if number != published.TEXT else "figures in the text"


def _list(chosen: str) -> str:
    drawn = ""
    for paper, tables in published.listed().items():
        items = ""
        for name, about in tables:
            label = _number(name).capitalize()
            items += html.choice(address(name), label, about, name == chosen)
        title, gist = (
            published.PAPERS.get(paper, paper),
            f"{len(tables)} table{'s' * (len(tables) != 1)}",
        )
        opened = chosen.startswith(f"{paper}:")
        drawn += html.fold(title, items, gist=gist, id=f"x-paper-{paper}", opened=opened)
    return drawn


def save(page: Page, event: Event) -> Patch:
    """The table as a file."""
    name, suffix = event.text("table"), event.text("suffix")
    table = published.as_table(published.opened(name))
    text = latex(table) if suffix == "tex" else csv_table(table)
    return {"download": {"name": f"{name.replace(':', '-')}.{suffix}", "text": text}}
