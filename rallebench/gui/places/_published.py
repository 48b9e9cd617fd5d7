"""Published tables: the figures that five papers print, to be read, sorted out and taken away."""

from __future__ import annotations

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
    numeric = [all(_is_figure(str(row[i])) for row in table.rows) for i in range(len(table.labels))]
    heads = [f"{'>' if right else ''}{label}" for right, label in zip(numeric, table.labels)]
    lines = [[e(str(cell)) or "–" for cell in row] for row in table.rows]
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
        f'<div class="wrap-page wide">{crumb}<div class="x-published"><nav aria-label="Published tables">{_list(chosen)}</nav>'
        f"<div><p>{e(about)} <small>{e(units)}</small> {html.link('Run this benchmark', benchmark)}</p>"
        f'<div class="wide">{html.rows(heads, lines, kind="x-paper")}</div>{doubts}</div></div></div>'
    )
    return {"#v-experiments-published": body, "title": title}


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
            on, current = ("on", " aria-current=true") if name == chosen else ("", "")
            items += f'<a href="{address(name)}" class="{on}"{current}><b>{e(_number(name).capitalize())}</b><small>{e(about)}</small></a>'
        title, gist = published.PAPERS.get(paper, paper), f"{len(tables)} tables"
        opened = chosen.startswith(f"{paper}:")
        drawn += html.fold(title, items, gist=gist, id=f"x-paper-{paper}", opened=opened)
    return drawn


def save(page: Page, event: Event) -> Patch:
    """The table as a file."""
    name, suffix = event.text("table"), event.text("suffix")
    table = published.as_table(published.opened(name))
    text = latex(table) if suffix == "tex" else csv_table(table)
    return {"download": {"name": f"{name.replace(':', '-')}.{suffix}", "text": text}}
