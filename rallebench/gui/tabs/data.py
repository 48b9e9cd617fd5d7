"""Data: corpora, chunks, indexes, searches, and what indexes give for what they cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import gradio as gr

from rallebench.core.errors import RalleError
from rallebench.gui import views, views_data, views_indexes
from rallebench.gui.session import Session, guard
from rallebench.gui.tabs import TABS, _data_build, _data_corpora, _data_indexes, _data_tradeoff
from rallebench.gui.tabs._data_build import draw_build
from rallebench.gui.tabs._data_chunks import draw_chunks
from rallebench.gui.tabs._data_corpora import draw_corpora
from rallebench.gui.tabs._data_indexes import draw_indexes
from rallebench.gui.tabs._data_paths import corpora_choices, offered
from rallebench.gui.tabs._data_search import draw_search
from rallebench.gui.tabs._data_tradeoff import draw_tradeoff
from rallebench.gui.tabs._making import draw_making, writers
from rallebench.gui.works import builds_of, checks_of
from rallebench.services.workbench import Workbench
from rallebench.workspace.indexes.cache import stored

REFRESH_SECONDS = 1.0
SECTIONS = (
    ("corpora", "Corpora and questions"),
    ("chunks", "Chunk preview"),
    ("build", "Build an index"),
    ("indexes", "Indexes"),
    ("search", "Search"),
    ("tradeoff", "Trade-off"),
    ("make", "Make a dataset"),
)
TYPED = frozenset({"sources", "cut", "made_from", "writers"})
"""Choosers that take a path in place of a name."""

Snapshot = dict[str, Any]


@TABS.register("data", order=8, label="Data")
def build(workbench: Workbench, session: Session, tab: gr.Tab, page: gr.Blocks) -> None:
    """Import, cut, build, check, search and compare."""
    seen = gr.State(None)
    parts: dict[str, Any] = {}
    with gr.Tabs(elem_id="data-sections"):
        for name, label in SECTIONS:
            with gr.Tab(label, id=f"data-{name}", elem_id=f"data-section-{name}"):
                parts |= draw_section(workbench, name)
    choosers = {name: part for name, part in parts.items() if not isinstance(part, gr.HTML)}
    shown = [*choosers.values(), *(part for name, part in parts.items() if name not in choosers)]
    names = [*choosers, *(name for name in parts if name not in choosers)]
    refresh = partial(guard, on_refresh, workbench, names)
    for happening in (tab.select, page.load, gr.Timer(REFRESH_SECONDS).tick):
        happening(refresh, [seen, *choosers.values()], [seen, *shown], show_progress="hidden")


def draw_section(workbench: Workbench, name: str) -> dict[str, Any]:
    """The components of a section that a refresh fills, by name."""
    if name == "chunks":
        return {"cut": draw_chunks(workbench)}
    draw = {
        "corpora": draw_corpora,
        "build": draw_build,
        "indexes": draw_indexes,
        "search": draw_search,
        "tradeoff": draw_tradeoff,
        "make": draw_making,
    }
    return draw[name](workbench)


def snapshot(workbench: Workbench) -> Snapshot:
    """What there is and what goes on, now: choices as lists, the rest as HTML."""
    sets, retrievers = workbench.workspace.dataset_paths(), list(workbench.workspace.retrievers())
    good, damaged = workbench.data.manifests()
    built, corpora, vectors = [*good, *damaged], workbench.data.corpora(), workbench.data.vectors()
    sources, pieces = corpora_choices(workbench), stored(workbench.workspace)
    own = [(f"{k.key} ({k.encoder}, {k.passages:,} passages)", k.key) for k in vectors]
    return {
        "sources": sources,
        "cut": sources,
        "corpora": list(corpora),
        "indexes": built,
        "verified": built,
        "parts": retrievers,
        "searchable": retrievers,
        "compared": retrievers,
        "combinations": own_combinations(workbench),
        "vectors": own,
        "stored": [
            (f"{views_indexes.short(one.key)} ({', '.join(views_indexes.said_of(one))})", one.key)
            for one in pieces
        ],
        "own_sets": workbench.data.own_question_sets(),
        "search_sets": list(sets),
        "tradeoff_sets": list(sets),
        "results": _data_tradeoff.results(workbench),
        "building": list(builds_of(workbench).going_on()),
        "made_from": sources,
        "writers": writers(workbench),
        "corpora_table": views_data.corpora(corpora),
        "question_table": views_data.question_sets(sets),
        "vector_table": views_indexes.vectors(vectors),
        "index_table": index_table(workbench),
        "stored_table": views_indexes.stored(pieces),
        "imports": _data_corpora.importing(workbench),
        "builds": _data_build.building(workbench),
        "checks": _data_indexes.checking(workbench),
        "tradeoffs": _data_tradeoff.measuring(workbench),
    }


def own_combinations(workbench: Workbench) -> list[str]:
    """The combinations that the workspace's own file names: those can be deleted."""
    return workbench.data.own_combinations()


def index_table(workbench: Workbench) -> str:
    """All indexes and combinations, or what is wrong with the file that names them."""
    try:
        rows = _data_indexes.index_rows(workbench)
    except RalleError as error:
        return views.error(str(error))
    return views_indexes.indexes(rows, checks_of(workbench).ended())


def changes(
    seen: Snapshot | None, now: Snapshot, names: Sequence[str], chosen: Mapping[str, Any]
) -> list[Any]:
    """Updates of the components; one that has not changed is left alone, under the user's hand."""
    updates: list[Any] = []
    for name in names:
        if seen is not None and seen.get(name) == now[name]:
            updates.append(gr.skip())
        elif name not in chosen:
            updates.append(now[name])
        else:
            updates.append(
                offered(now[name], chosen[name], custom=name in TYPED) | newest(seen, now, name)
            )
    return updates


def newest(seen: Snapshot | None, now: Snapshot, name: str) -> dict[str, Any]:
    """A result that has just been measured is shown, whatever was chosen."""
    new = now[name][0] if name == "results" and now[name] else None
    return {"value": new} if new and (seen is None or new not in seen[name]) else {}


def on_refresh(
    workbench: Workbench, names: Sequence[str], seen: Snapshot | None, *chosen: Any
) -> list[Any]:
    """Show what has changed since this page was last told, by whomever."""
    now = snapshot(workbench)
    return [now, *changes(seen, now, names, dict(zip(names, chosen)))]
