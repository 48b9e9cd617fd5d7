"""Published tables: the figures that five papers print, to be read, sorted out and taken away."""

from __future__ import annotations

from rallebench.core.table_files import csv_table, latex
from rallebench.gui.frame import Event, Page, Patch
from rallebench.gui.html import button, crumb, e, link, rows
from rallebench.services import published

FIRST = "ralle:2"
SUITES = {"ralle": "kilt", "rgb": "rgb", "crud": "crud", "barag": "barag", "reval": "reval"}


def register(page: Page) -> None:
    """Add this view."""
    page.view("experiments/published", open_table)
    page.action("experiments.table", save)


def open_table(page: Page, event: Event) -> Patch:
    """A table beside the list of all. Raises NotFoundError."""
    chosen = event.query.get("table") or FIRST
    value = published.opened(chosen)
    paper = chosen.partition(":")[0]
    table = published.as_table(value)
    numeric = [all(_is_figure(str(row[i])) for row in table.rows) for i in range(len(table.labels))]
    heads = [f"{'>' if right else ''}{label}" for right, label in zip(numeric, table.labels)]
    lines = [[e(str(cell)) or "–" for cell in row] for row in table.rows]
    doubts = "".join(f"<li>{e(doubt)}</li>" for doubt in value.doubts)
    doubted = (
        f'<h3 class="sub">What does not agree with the rest of the paper</h3><ul class="x-list">{doubts}</ul>'
        if doubts
        else ""
    )
    units = ", ".join(dict.fromkeys(filter(None, (column.help for column in table.heads))))
    save_as = button("CSV", "experiments.table", table=chosen, suffix="csv") + button(
        "LaTeX", "experiments.table", table=chosen, suffix="tex"
    )
    title = f"{published.PAPERS[paper]}, {_number(chosen)}"
    return {
        "#v-experiments-published": (
            f'<div class="wrap-page wide">{crumb("Experiments", "#/experiments/list", title, value.source, buttons=save_as)}'
            f'<div class="x-published"><nav aria-label="Published tables">{_list(chosen)}</nav><div><p>{e(value.about[:1].upper() + value.about[1:])}.'
            f" <small>{e(units)}</small> {link('Run this benchmark', f'#/experiments/list?kind=suite&paper={SUITES[paper]}', 'link')}</p>"
            f'<div class="wide">{rows(heads, lines, kind="x-paper")}</div>{doubted}</div></div></div>'
        ),
        "title": title,
    }


def _is_figure(cell: str) -> bool:
    return not cell or cell[0].isdigit() or cell[0] in "-−."


def _number(reference: str) -> str:
    number = reference.partition(":")[2]
    return f"table {number}" if number != published.TEXT else "figures in the text"


def _list(chosen: str) -> str:
    drawn = ""
    for paper, tables in published.listed().items():
        items = "".join(
            f'<a href="#/experiments/published?table={e(name)}" class="{"on" if name == chosen else ""}"{" aria-current=true" if name == chosen else ""}><b>{e(_number(name).capitalize())}</b><small>{e(about)}</small></a>'
            for name, about in tables
        )
        opened = " open" if chosen.startswith(f"{paper}:") else ""
        drawn += f'<details class="fold" id="x-paper-{paper}"{opened}><summary>{e(published.PAPERS.get(paper, paper))}<em>{len(tables)} tables</em></summary><div>{items}</div></details>'
    return drawn


def save(page: Page, event: Event) -> Patch:
    """The table as a file."""
    name, form = event.text("table"), event.text("suffix")
    table = published.as_table(published.opened(name))
    text = latex(table) if form == "tex" else csv_table(table)
    return {"download": {"name": f"{name.replace(':', '-')}.{form}", "text": text}}
