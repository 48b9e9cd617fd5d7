"""Data: lists of corpora, indexes and datasets next to the import panel, with the build caches below."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from markupsafe import Markup

from rallebench.core.errors import RalleError, UsageError
from rallebench.core.numbers import plural
from rallebench.gui import figures, html, panels
from rallebench.gui.addresses import (
    AnyQuery,
    BuilderAddress,
    CorpusAddress,
    DatasetAddress,
    IndexAddress,
    QuestionAddress,
)
from rallebench.gui.events import Event
from rallebench.gui.frame import PLACES, Page
from rallebench.gui.html import escape
from rallebench.gui.patches import Patch
from rallebench.gui.places import _data_build, _data_builders, _data_import, _data_read
from rallebench.gui.places import _data_search as search
from rallebench.gui.places._bench import window_bench
from rallebench.gui.places._data_import import ImportState
from rallebench.gui.places._data_search import KINDS, badge, delete_button
from rallebench.render.numbers import text
from rallebench.views import gold_coverage, library
from rallebench.views.gold_coverage import Coverage
from rallebench.views.library import CorpusLine, DatasetLine, RetrieverLine

COLUMNS = 4
"""Maximum corpora with a coverage column; the page of a dataset lists all of them."""

NOTHING_KEPT = "Nothing is kept yet. Dense builds keep their vectors here, so that no passage is encoded twice."


@PLACES.register("data", label="Data", order=4)
def data(page: Page) -> None:
    page.view("data/list", open_list)
    page.actions("data", refresh, ask_delete, delete, verify, use)
    for part in (_data_import, _data_build, search, _data_read, _data_builders):
        part.register(page)


# the view


def open_list(page: Page, event: Event) -> Patch:
    """Open the lists first, then compute the coverage, which reads every dataset."""
    lists = Markup().join(
        Markup('<div id="data-{}">{}</div>').format(part, draw)
        for part, draw in list_html(page, quick=True).items()
    )
    buttons = (
        html.link("Search an index", IndexAddress().href, "button quiet")
        + html.button("New hybrid", "data.combine_form")
        + html.link("Build dataset", BuilderAddress().href, "button")
    )
    panel = _data_import.panel(page, event)
    parts = (
        Markup(
            '<div class="crumb"><h1>Data<span data-lazy data-do="data.refresh"></span></h1><span class="gap"></span>{}</div>'
        ).format(buttons),
        Markup(
            '<div class="data-cols">{}<aside class="box wiz" id="data-import" data-form data-problems>{}</aside></div>'
        ).format(lists, panel),
        Markup('<div id="data-more">{}</div>{}').format(more(page), html.follow("data.refresh")),
    )
    return panels.view("data/list", "Data", *parts, kind="wide")


def list_html(page: Page, *, quick: bool = False) -> dict[str, str]:
    """Return the three lists by element id."""
    failure = Markup()
    try:
        retrievers = library.retrievers(page.workspace, page.workbench.data.states())
    except RalleError as error:
        retrievers, failure = [], html.problem(error)
    return {
        "corpora": corpora_table(library.corpora(page.workspace)),
        "indexes": failure + index_table(retrievers),
        "datasets": dataset_table(page, library.datasets(page.workspace), quick),
    }


def refresh(page: Page, event: Event) -> Patch:
    """Redraw the lists and the progress of an import."""
    patch = Patch({f"data-{part}": draw for part, draw in list_html(page).items()})
    if event.session.state(ImportState).step == "build":
        patch |= Patch({"data-import": _data_import.panel(page, event)})
    return patch


def table(
    title: str, heads: Sequence[str], rows: Sequence[Sequence[str]], about: str = "", kind: str = ""
) -> Markup:
    """Draw a list below its heading and number of rows."""
    head = html.heading(title, html.join_facts(f"{len(rows)}", about), first=True)
    return head + html.rows(heads, rows, kind=f"roomy {kind}".strip())


def name_links(name: str, view: type[AnyQuery], about: str = "", title: str = "") -> Markup:
    link = html.name_link(name, view.read({"id": name}))
    if about:
        return Markup("{}<small>{}</small>").format(link, about)
    return Markup('<span class="nowrap" title="{}">{}</span>').format(title, link)


def corpora_table(lines: list[CorpusLine]) -> Markup:
    rows = []
    for line in lines:
        if line.problem:
            name = Markup('<b class="nm">{}</b><small class="bad">{}</small>').format(
                line.name, line.problem
            )
            menu = html.menu(
                delete_button("corpus", line.name, line.own), label=f"Actions for {line.name}"
            )
            rows.append([name, html.state("damaged"), "", "", menu])
            continue
        menu = html.menu(
            html.link("Read passages", CorpusAddress(id=line.name).href, ""),
            html.button("Build an index…", "data.build_form", id=line.name),
            html.link("Build dataset from it", BuilderAddress(articles=line.name).href, ""),
            delete_button("corpus", line.name, line.own),
            label=f"Actions for {line.name}",
        )
        pages, size = text(line.pages, "count"), figures.amount(line.bytes)
        name = name_links(line.name, CorpusAddress, line.about)
        rows.append([name, f"{line.passages:,}", pages, size, menu])
    return table("Corpora", ["Name", ">Passages", ">Pages", ">Size", ""], rows)


def index_table(lines: list[RetrieverLine]) -> Markup:
    rows = []
    for line in lines:
        about = f"{line.kind}: {line.about or ' + '.join(line.parts)}"
        kind = KINDS.get(line.kind, line.kind) or "–"
        size = "–" if line.bytes is None else figures.amount(line.bytes)
        cells: list[str] = [Markup('<span title="{}">{}</span>').format(about, kind)]
        cells += [
            Markup('<span class="nowrap">{}</span>').format(line.corpus or "–"),
            size,
            search.state(line),
        ]
        search_link = html.link("Search", IndexAddress(id=line.name).href, "")
        label = f"Actions for {line.name}"
        menu = html.menu(search_link, search.index_buttons(line), label=label)
        rows.append([name_links(line.name, IndexAddress), *cells, menu])
    return table("Indexes", ["Name", "Kind", "Corpus", ">Size", "State", ""], rows)


def dataset_table(page: Page, lines: list[DatasetLine], quick: bool) -> Markup:
    """Draw the datasets with their coverage by the corpora; ``quick``: leave out the coverage."""
    corpora = list(gold_coverage.indexed_corpora(page.workspace))[:COLUMNS]
    warnings, rows = [], []
    for line in lines:
        shares = {
            corpus: None if quick else gold_coverage.coverage(page.workspace, line.name, corpus)
            for corpus in corpora
        }
        if line.own:
            warnings.append(coverage_warning(line.name, shares))
        count = text(line.questions, "count")
        about = "" if line.own else library.SHIPPED if library.is_shipped(line.path) else "a file"
        kind = escape(line.kind)
        if line.problem:
            kind = Markup('<span title="{}">cannot be read</span>').format(line.problem)
        badges = [badge(share, loading=quick) for share in shares.values()]
        menu = html.menu(
            html.link("Read records", DatasetAddress(id=line.name).href, ""),
            html.link("Use in Build", QuestionAddress(set=line.name).href, ""),
            delete_button("dataset", line.name, line.own),
            label=f"Actions for {line.name}",
        )
        rows.append(
            [name_links(line.name, DatasetAddress, title=about), count, kind, *badges, menu]
        )
    about = "share of their gold pages that each corpus holds"
    drawn = table("Datasets", ["Name", ">Questions", "Kind", *corpora, ""], rows, about, "covs")
    return drawn + Markup().join(list(filter(None, warnings))[:3])


def coverage_warning(dataset: str, shares: Mapping[str, Coverage | None]) -> Markup:
    """Warn about corpora that have none of a dataset's gold pages; '' if there are none."""
    none = [name for name, share in shares.items() if share and share.share == 0]
    if not none:
        return Markup()
    mend = "Import the corpus that these questions are about, or its page map."
    if best := gold_coverage.best_corpus(dict(shares)):
        mend = f"Use an index of {best}."
    return Markup(
        '<div class="warn"><b>{} cannot be scored on {}.</b> None of its gold pages is in that corpus. {}</div>'
    ).format(dataset, none[0], mend)


# caches of builds


def more(page: Page) -> Markup:
    """Draw the vectors, passages and texts kept by builds, each with a delete button."""
    files = []
    for vectors in page.workbench.data.vectors():
        if vectors.problem:
            files.append((vectors.problem, 0, vectors.bytes, "vectors", vectors.key))
            continue
        part = "" if vectors.complete else f", {vectors.passages_done:,} encoded so far"
        about = f"vectors, {vectors.encoder}, {vectors.dim} dimensions{part}"
        files.append((about, vectors.passages, vectors.bytes, "vectors", vectors.key))
    for stored in page.workbench.data.kept_files():
        cut = stored.chunking
        words = library.cut_words(cut.to_json()) if cut else "whole documents"
        about = f"{stored.kind} of {stored.corpus or 'an unknown corpus'}, {words}"
        files.append((about, stored.passages, stored.bytes, "stored", stored.key))
    rows = []
    for about, passages, size, what, key in files:
        delete = html.button("Delete", "data.ask_delete", kind="quiet", what=what, id=key)
        rows.append([escape(about), f"{passages:,}", figures.amount(size), delete])
    gist, inside = "none", html.note(NOTHING_KEPT)
    if rows:
        gist = f"{plural(len(rows), 'file')}, {figures.amount(sum(file[2] for file in files))}"
        inside = html.rows(["What", ">Passages", ">Size", ""], rows)
    return html.fold("Kept for further builds", inside, gist=gist, id="data-kept")


# row menus


def ask_delete(page: Page, event: Event) -> Patch:
    """State the consequences of a deletion and ask for confirmation."""
    what, name = event.text("what"), event.text("id")
    label = {"vectors": "these vectors", "stored": "these files"}.get(what)
    sentence = "Indexes are not affected; the next build makes it again."
    if label is None:
        label = f"the {what} {name}"
        sentence = library.lost_with(page.workspace, what, name) or "Nothing else uses it."
    return panels.ask_delete(label, sentence, "data.delete", what=what, id=name)


def delete(page: Page, event: Event) -> Patch:
    workbench, name = page.workbench, event.text("id")
    verbs: dict[str, Callable[[str], str]] = {
        "corpus": workbench.data.delete_corpus,
        "dataset": workbench.data.delete_dataset,
        "index": workbench.data.delete_index,
        "combination": workbench.data.delete_combination,
        "vectors": workbench.data.delete_vectors,
        "stored": workbench.data.delete_kept_file,
    }
    if event.text("what") not in verbs:
        raise UsageError("Nothing is chosen, so there is nothing to delete.")
    sentence = verbs[event.text("what")](name)
    patch = refresh(page, event) | Patch({"data-more": more(page)}, dialog="", say=sentence)
    return patch | Patch(go="#/data/list" if event.read(IndexAddress).id else "")


def verify(page: Page, event: Event) -> Patch:
    page.workbench.data.verify_index(event.text("id"))
    return refresh(page, event) | Patch(say=f"Verifying {event.text('id')}.")


def use(page: Page, event: Event) -> Patch:
    """Use a retriever in the first retrieve action of the chain in Build. Undo there reverts it."""
    bench = window_bench(page, event)
    kinds = [action.kind for action in bench.chain.actions]
    if "retrieve" not in kinds:
        raise UsageError("The chain in Build has no Retrieve action; add one there first.")
    bench.edit(bench.chain.replace_action(kinds.index("retrieve"), target=event.text("id")))
    return Patch(go="#/build/one", say=f"The chain retrieves from {event.text('id')} now.")
