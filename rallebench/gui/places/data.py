"""Data: lists of corpora, indexes and datasets next to the import panel, with the build caches below."""

from __future__ import annotations

from collections.abc import Callable

from markupsafe import Markup

from rallebench.core.errors import UsageError
from rallebench.core.numbers import plural
from rallebench.gui import figures, html, panels
from rallebench.gui.addresses import (
    BuilderAddress,
    IndexAddress,
)
from rallebench.gui.events import Event
from rallebench.gui.frame import PLACES, Page
from rallebench.gui.html import escape
from rallebench.gui.lists import filter_bar
from rallebench.gui.patches import Patch
from rallebench.gui.places import (
    _data_build,
    _data_builders,
    _data_edit,
    _data_gold,
    _data_history,
    _data_import,
    _data_lists,
    _data_read,
    _pages,
)
from rallebench.gui.places import _data_search as search
from rallebench.gui.places._bench import window_bench
from rallebench.gui.places._data_interrupted import interrupted_parts
from rallebench.gui.places._data_lists import LISTS, list_html
from rallebench.gui.places._import_state import ImportState
from rallebench.views import library

NOTHING_KEPT = "Nothing is kept yet. Dense builds keep their vectors here, so that no passage is encoded twice."


@PLACES.register("data", label="Data", order=4)
def data(page: Page) -> None:
    page.view("data/list", open_list)
    page.actions("data", refresh, use, reads=True)
    page.actions("data", ask_delete, delete, verify)
    for part in (
        _data_lists,
        _data_import,
        _data_build,
        search,
        _data_read,
        _data_edit,
        _data_history,
        _data_builders,
        _data_gold,
        _pages,
    ):
        part.register(page)


# the view


def open_list(page: Page, event: Event) -> Patch:
    """Open the lists first, then compute the coverage, which reads every dataset."""
    lists = Markup().join(
        Markup('<div class="data-list">{}<div id="data-{}">{}</div></div>').format(
            filter_bar(LISTS[part], page, event), part, drawn
        )
        for part, drawn in list_html(page, event, quick=True).items()
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
            '<div class="data-cols">{}<aside class="box wiz" aria-label="Import" id="data-import" data-form data-problems>{}</aside></div>'
        ).format(lists, panel),
        Markup('<div id="data-more">{}</div>{}').format(more(page), html.follow("data.refresh")),
    )
    return panels.view("data/list", "Data", *parts, kind="wide")


def refresh(page: Page, event: Event) -> Patch:
    """Redraw the lists and the progress of an import."""
    patch = Patch({f"data-{part}": draw for part, draw in list_html(page, event).items()})
    if event.session.state(ImportState).step in ("build", "fetch"):
        return patch | _data_import.progress_patch(page, event)
    return patch | Patch({"data-interrupted": interrupted_parts(page)})


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
