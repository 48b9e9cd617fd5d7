"""Published tables: search, sort, draw and export them, with our runs among the rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from rallebench.core.numbers import plural
from rallebench.core.table_files import csv_table, latex
from rallebench.gui import figures, form, html, panels
from rallebench.gui.addresses import ExperimentAddress, ExperimentsAddress, PaperTableAddress
from rallebench.gui.events import Event
from rallebench.gui.frame import Page
from rallebench.gui.html import escape
from rallebench.gui.patches import Download, Patch
from rallebench.views import published

NONE_YET = (
    "None of your runs can be compared with it: run the benchmark on the paper's own questions."
)
SAVED = (("CSV", "csv"), ("LaTeX", "tex"), ("JSON", "json"))
SHORT = 24
"""Maximum characters of a cell that stays on one line."""
ABOUT = "Every table printed in the papers of the benchmarks. Your runs appear in them if set, split, metric and number of questions are the same."


@dataclass(frozen=True)
class PaperSearch:
    """The search words of a window."""

    words: str = ""


def register(page: Page) -> None:
    """Register this view."""
    page.view("experiments/published", open_view)
    page.actions("published", save, search, reads=True)


def open_view(page: Page, event: Event) -> Patch:
    """Open the table in the address, otherwise all tables with a search field. Raises NotFoundError."""
    if chosen := event.read(PaperTableAddress).table:
        return open_table(page, event, chosen)
    words = event.session.state(PaperSearch).words
    hint = "PaperSearch: a system, a set, a metric, a number"
    field = form.filter_field("x-papers-words", words, "published.search", hint)
    crumb = html.crumb("Experiments", "#/experiments/list", "Papers", ABOUT)
    drawn = Markup('<div id="x-papers">{}</div>').format(papers(page, words))
    body = Markup('<div class="x-search">{}</div>{}').format(field, drawn)
    return panels.view(
        "experiments/published", "Papers", crumb, Markup("<div data-form>{}</div>").format(body)
    )


def search(page: Page, event: Event) -> Patch:
    """Filter the tables by the words."""
    words = event.text("words")
    event.session.put(PaperSearch(words))
    return Patch({"x-papers": papers(page, words)})


def papers(page: Page, words: str) -> Markup:
    """List each paper's tables: contents, number of questions, number of our experiments in them."""
    counts, drawn = published.counts(page.workspace), Markup()
    for paper, tables in published.search_tables(words).items():
        lines, addresses = [], []
        for name, about in tables:
            value = published.open_table(name)
            title = html.link(_number(name).capitalize(), PaperTableAddress(name).href, "nm")
            ours = counts.get(name, 0)
            lines.append(
                [
                    title,
                    escape(f"{about[:1].upper()}{about[1:]}"),
                    escape(value.split),
                    f"{ours or '–'}",
                ]
            )
            addresses.append(PaperTableAddress(name).href)
        heads = ("Table", "What it has", "Questions", ">Our runs")
        drawn += html.heading(published.title(paper))
        drawn += html.rows(heads, lines, kind="x-tables", addresses=addresses)
    return drawn or html.empty("No table has these words; try fewer of them.")


def open_table(page: Page, event: Event, chosen: str) -> Patch:
    """Open a table with our runs and its drawings, and the list of all tables. Raises NotFoundError."""
    value = published.open_table(chosen)
    paper = chosen.partition(":")[0]
    own = published.own_rows(page.workspace, value)
    table = published.as_table(value, own)
    columns = [i for i, _ in enumerate(table.labels) if _tells(i, table.rows)]
    numeric = [all(_is_figure(str(row[i])) for row in table.rows) for i in columns]
    labels = [_head(table.labels[i]) for i in columns]
    heads = [f"{'>' if right else ''}{label}" for right, label in zip(numeric, labels)]
    lines = [[_cell(str(row[i])) for i in columns] for row in table.rows]
    ours = [published.is_ours(str(row[0])) for row in table.rows]
    opened = {x.name: ExperimentAddress(id=x.experiment).href for x in own}
    places = [opened.get(str(row[0]), "") for row in table.rows]
    doubts = html.bullets(value.doubts, "x-list")
    if doubts:
        doubts = html.heading("What does not agree with the rest of the paper") + doubts
    units = ", ".join(dict.fromkeys(filter(None, map(value.unit, value.columns))))
    saves = Markup().join(
        html.button(label, "published.save", table=chosen, suffix=suffix) for label, suffix in SAVED
    )
    title = f"{published.title(paper)}, {_number(chosen)}"
    crumb = html.crumb("Papers", "#/experiments/published", title, value.source, buttons=saves)
    benchmark = ExperimentsAddress(kind="suite", paper=published.benchmark_name(chosen)).href
    about = f"{value.about[:1].upper()}{value.about[1:]}."
    body = Markup(
        '{}<div class="x-published"><nav aria-label="Published tables">{}</nav><div><p>{} '
        "<small>{}</small> {}</p>{}{}{}{}</div></div>"
    ).format(
        crumb,
        _list(chosen),
        about,
        units,
        html.link("Run this benchmark", benchmark),
        html.copyable_table(
            Markup('<div class="wide">{}</div>').format(
                html.rows(heads, lines, kind="x-paper", marked=ours, addresses=places)
            )
        ),
        html.note(published.comparison(own) or NONE_YET),
        figures.plots(published.figures(value, own)),
        doubts,
    )
    return panels.view("experiments/published", title, body, kind="wide")


def _tells(column: int, rows: Sequence[Sequence[object]]) -> bool:
    """Return whether a column is informative: it has figures, or its text differs between rows."""
    cells = [str(row[column]) for row in rows]
    if not any(cells):
        return False
    return column == 0 or len(cells) < 2 or len(set(cells)) > 1 or _is_figure(cells[0])


def _head(label: str) -> str:
    """Turn the name of a setting into a heading.

    >>> _head("finetuned_on_KILT"), _head("T-REx"), _head("llm")
    ('Finetuned on KILT', 'T-REx', 'LLM')
    """
    words = "LLM" if label == "llm" else label.replace("_", " ")
    return (
        words[:1].upper() + words[1:] if words.split(" ")[0].islower() and len(words) > 1 else words
    )


def _cell(text: str) -> Markup:
    """Draw a text cell; short text does not wrap."""
    words = escape({"": "–", "True": "yes", "False": "no"}.get(text, text))
    return Markup('<span class="nowrap">{}</span>').format(words) if len(text) <= SHORT else words


def _is_figure(cell: str) -> bool:
    return not cell or cell[0].isdigit() or cell[0] in "-−."


def _number(reference: str) -> str:
    number = reference.partition(":")[2]
    return f"table {number}" if number != published.TEXT else "figures in the text"


def _list(chosen: str) -> Markup:
    drawn = Markup()
    for paper, tables in published.list_tables().items():
        items = Markup()
        for name, about in tables:
            label = _number(name).capitalize()
            items += html.choice(PaperTableAddress(name).href, label, about, name == chosen)
        title, gist = published.title(paper), plural(len(tables), "table")
        opened = chosen.startswith(f"{paper}:")
        # A collapsible section keeps its state by id; the chosen paper's has its own id, so that it opens.
        name = f"x-paper-{paper}{'-chosen' * opened}"
        drawn += html.fold(title, items, gist=gist, id=name, opened=opened)
    return drawn


def save(page: Page, event: Event) -> Patch:
    """Download the table as a file."""
    name, suffix = event.text("table"), event.text("suffix")
    value = published.open_table(name)
    own = published.own_rows(page.workspace, value)
    table = published.as_table(value, own)
    text = latex(table) if suffix == "tex" else csv_table(table)
    if suffix == "json":
        document = published.document(value, own)
        text = json.dumps(document, ensure_ascii=False, indent=2) + "\n"
    return Patch(download=Download(name=f"{name.replace(':', '-')}.{suffix}", text=text))
