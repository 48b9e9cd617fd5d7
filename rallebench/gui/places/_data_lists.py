"""The lists of corpora, indexes and datasets: sorted by their heads, and filtered where they are long."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from markupsafe import Markup

from rallebench.core.errors import RalleError
from rallebench.core.list_columns import ListColumn
from rallebench.gui import figures, html, lists
from rallebench.gui.addresses import (
    AnyQuery,
    BuilderAddress,
    CorpusAddress,
    DatasetAddress,
    GoldAddress,
    IndexAddress,
    QuestionAddress,
)
from rallebench.gui.events import Event
from rallebench.gui.frame import Page
from rallebench.gui.html import escape
from rallebench.gui.lists import ListState, ListView
from rallebench.gui.places import _data_search as search
from rallebench.gui.places._data_search import KINDS, badge, delete_button
from rallebench.render.numbers import text
from rallebench.views import gold_coverage, index_use, library
from rallebench.views.gold_coverage import Coverage
from rallebench.views.index_use import IndexUse
from rallebench.views.library import CorpusLine, DatasetLine, RetrieverLine

COLUMNS = 4
"""Maximum corpora with a coverage column; the page of a dataset lists all of them."""


def register(page: Page) -> None:
    for view in LISTS.values():
        view.register(page)


def list_html(page: Page, event: Event, *, quick: bool = False) -> dict[str, str]:
    """Return the three lists by element id; ``quick``: leave out the coverage."""
    return {
        part: draw_list(page, part, view.state(event), quick=quick) for part, view in LISTS.items()
    }


def draw_list(page: Page, part: str, state: ListState, *, quick: bool = False) -> Markup:
    """Draw a list below its heading and number of rows, or why it cannot be read."""
    parts = _parts(page, part, quick)
    view = LISTS[part]
    try:
        count = len(view.rows(page))
    except RalleError as error:
        return html.heading(parts.title, first=True) + html.problem(error)
    head = html.heading(parts.title, html.join_facts(f"{count}", parts.about), first=True)
    drawn = lists.table(
        view, page, state, parts.heads, parts.line, kind=f"roomy {parts.kind}".strip()
    )
    return head + drawn + (coverage_warnings(page, quick) if part == "datasets" else Markup())


@dataclass(frozen=True, slots=True)
class _Parts:
    """The heading of a list, the heads of its columns and the cells of a row."""

    title: str
    about: str
    heads: Sequence[tuple[str, str]]
    line: Callable[[Any], Sequence[str]]
    kind: str = ""


def _parts(page: Page, part: str, quick: bool) -> _Parts:
    if part == "corpora":
        heads = [("name", ""), ("passages", ""), ("pages", ""), ("size", ""), ("", "")]
        return _Parts("Corpora", "", heads, corpus_cells)
    if part == "indexes":
        names = ("name", "kind", "corpus", "memory", "query", "state", "")
        return _Parts("Indexes", "", [(name, "") for name in names], index_cells)
    corpora = list(gold_coverage.indexed_corpora(page.workspace))[:COLUMNS]
    heads = [
        ("name", ""),
        ("questions", ""),
        ("kind", ""),
        *(("", name) for name in corpora),
        ("", ""),
    ]
    about = "share of their gold pages that each corpus holds"
    line = partial(dataset_cells, page, corpora, quick)
    return _Parts("Datasets", about, heads, line, "covs")


def name_links(name: str, view: type[AnyQuery], about: str = "", title: str = "") -> Markup:
    link = html.name_link(name, view.read({"id": name}))
    if about:
        return Markup("{}<small>{}</small>").format(link, about)
    return Markup('<span class="nowrap" title="{}">{}</span>').format(title, link)


def corpus_cells(line: CorpusLine) -> Sequence[str]:
    """Draw a row of the list of corpora."""
    label, gone = f"Actions for {line.name}", delete_button("corpus", line.name, line.own)
    if line.problem:
        name = Markup('<b class="nm">{}</b><small class="bad">{}</small>').format(
            line.name, line.problem
        )
        return [name, html.state("damaged"), "", "", html.menu(gone, label=label)]
    menu = html.menu(
        html.link("Read passages", CorpusAddress(id=line.name).href, ""),
        html.button("Build an index…", "data.build_form", id=line.name),
        html.link("Build dataset from it", BuilderAddress(articles=line.name).href, ""),
        gone,
        label=label,
    )
    pages, size = text(line.pages, "count"), figures.amount(line.bytes)
    name = name_links(line.name, CorpusAddress, line.about)
    return [name, f"{line.passages:,}", pages, size, menu]


@dataclass(frozen=True, slots=True)
class IndexRow:
    """A retriever with its memory and time a query."""

    line: RetrieverLine
    use: IndexUse


def index_cells(row: IndexRow) -> Sequence[str]:
    """Draw a row of the list of indexes."""
    line = row.line
    about = f"{line.kind}: {line.about or ' + '.join(line.parts)}"
    kind = KINDS.get(line.kind, line.kind) or "–"
    size = "" if line.bytes is None else f"{figures.amount(line.bytes)} on the disk."
    search_link = html.link("Search", IndexAddress(id=line.name).href, "")
    return [
        name_links(line.name, IndexAddress),
        Markup('<span title="{}">{}</span>').format(about, kind),
        Markup('<span class="nowrap">{}</span>').format(line.corpus or "–"),
        *_use(row.use, size),
        search.state(line),
        html.menu(search_link, search.index_buttons(line), label=f"Actions for {line.name}"),
    ]


def _use(use: IndexUse, disk: str) -> tuple[Markup, Markup]:
    """Draw memory and time a query, with their source as tooltips. ``disk``: the size of its files, in words."""
    cell = Markup('<span class="nowrap" title="{}">{}</span>')
    memory = "–" if use.memory is None else figures.amount(use.memory)
    ms = "–" if use.ms is None else "< 1 ms" if use.ms < 1 else figures.duration(use.ms / 1000)
    sources = [f"Measured: {s}." if s else NOT_MEASURED for s in (use.memory_source, use.source)]
    return cell.format(f"{sources[0]} {disk}".rstrip(), memory), cell.format(sources[1], ms)


NOT_USED = IndexUse()
NOT_MEASURED = "Not measured yet: a run or a trade-off measures it."


def dataset_cells(
    page: Page, corpora: Sequence[str], quick: bool, line: DatasetLine
) -> Sequence[str]:
    """Draw a row of the list of datasets, with its coverage by the corpora."""
    shares = _shares(page, corpora, line, quick)
    about = "" if line.own else library.SHIPPED if library.is_shipped(line.path) else "a file"
    kind = escape(line.kind)
    if line.problem:
        kind = Markup('<span title="{}">cannot be read</span>').format(line.problem)
    menu = html.menu(
        html.link("Read records", DatasetAddress(id=line.name).href, ""),
        html.link("Use in Build", QuestionAddress(set=line.name).href, ""),
        html.link("Choose gold pages…", GoldAddress(line.name).href, ""),
        delete_button("dataset", line.name, line.own),
        label=f"Actions for {line.name}",
    )
    badges = [badge(share, loading=quick) for share in shares.values()]
    name = name_links(line.name, DatasetAddress, title=about)
    return [name, text(line.questions, "count"), kind, *badges, menu]


def _shares(
    page: Page, corpora: Sequence[str], line: DatasetLine, quick: bool
) -> Mapping[str, Coverage | None]:
    return {
        corpus: None if quick else gold_coverage.coverage(page.workspace, line.name, corpus)
        for corpus in corpora
    }


def coverage_warnings(page: Page, quick: bool) -> Markup:
    """Draw the warnings about the workspace's own datasets, at most three."""
    corpora = list(gold_coverage.indexed_corpora(page.workspace))[:COLUMNS]
    drawn = [
        coverage_warning(line.name, _shares(page, corpora, line, quick))
        for line in library.datasets(page.workspace)
        if line.own
    ]
    return Markup().join(list(filter(None, drawn))[:3])


def coverage_warning(dataset: str, shares: Mapping[str, Coverage | None]) -> Markup:
    """Warn about a dataset whose gold pages are in no corpus; '' if there is one, or if that is unknown."""
    known = [share.share for share in shares.values() if share and share.share is not None]
    if not known or any(known):
        return Markup()
    return Markup(
        '<div class="warn"><b>{} cannot be scored on any corpus here.</b> None has one of its gold pages. Import the corpus that '
        "these questions are about, or its page map.</div>"
    ).format(dataset)


def _retrievers(page: Page) -> Sequence[IndexRow]:
    lines = library.retrievers(page.workspace, page.workbench.data.states())
    loaded = {line.name: line.ram for line in page.workbench.models.status()}
    used = index_use.index_use(page.workspace, loaded)
    return [IndexRow(line, used.get(line.name, NOT_USED)) for line in lines]


def _view(
    part: str,
    rows: Callable[[Page], Sequence[Any]],
    columns: Sequence[ListColumn[Any]],
    hint: str,
) -> ListView[Any]:
    """Return one of the three lists, whose values in the address begin with its name."""
    return ListView(
        part,
        "data/list",
        rows,
        lambda page: columns,
        lambda page, event, state: {f"data-{part}": draw_list(page, part, state)},
        prefix=f"{part}_",
        hint=hint,
    )


CORPORA: tuple[ListColumn[CorpusLine], ...] = (
    ListColumn("name", "Name", "text", lambda line: line.name, searched=True),
    ListColumn("about", "About", "text", lambda line: line.about, searched=True),
    ListColumn("passages", "Passages", "count", lambda line: line.passages),
    ListColumn("pages", "Pages", "count", lambda line: line.pages),
    ListColumn("size", "Size", "bytes", lambda line: line.bytes),
)
INDEXES: tuple[ListColumn[IndexRow], ...] = (
    ListColumn("name", "Name", "text", lambda row: row.line.name, searched=True),
    ListColumn("kind", "Kind", "text", lambda row: row.line.kind, searched=True),
    ListColumn("corpus", "Corpus", "text", lambda row: row.line.corpus, searched=True),
    ListColumn("memory", "Memory", "bytes", lambda row: row.use.memory),
    ListColumn("query", "A query", "seconds", lambda row: row.use.ms and row.use.ms / 1000),
    ListColumn("size", "Size", "bytes", lambda row: row.line.bytes),
    ListColumn("state", "State", "text", lambda row: row.line.state),
)
DATASETS: tuple[ListColumn[DatasetLine], ...] = (
    ListColumn("name", "Name", "text", lambda line: line.name, searched=True),
    ListColumn("questions", "Questions", "count", lambda line: line.questions),
    ListColumn("kind", "Kind", "text", lambda line: line.kind, searched=True),
    ListColumn("own", "Own", "text", lambda line: "yes" if line.own else "no"),
)
LISTS: Mapping[str, ListView[Any]] = {
    "corpora": _view(
        "corpora",
        lambda page: library.corpora(page.workspace),
        CORPORA,
        "Filter, as in passages>1000",
    ),
    "indexes": _view("indexes", _retrievers, INDEXES, "Filter, as in kind:bm25"),
    "datasets": _view(
        "datasets", lambda page: library.datasets(page.workspace), DATASETS, "Filter, as in own:yes"
    ),
}
"""Element id → its list."""
