"""All indexes and combinations of the workspace: check, delete; and the vectors that builds share."""

from __future__ import annotations

from functools import partial
from typing import Any

import gradio as gr

from rallebench.core.errors import RalleError, UsageError
from rallebench.gui import views, views_data, views_indexes
from rallebench.gui.session import guard
from rallebench.gui.tabs._data_combine import draw_combine
from rallebench.gui.tabs._data_delete import draw_delete
from rallebench.gui.works import builds_of, checks_of
from rallebench.services.workbench import Workbench
from rallebench.workspace.paths import STARTER_INDEXES


def draw_indexes(workbench: Workbench) -> dict[str, Any]:
    """The section; returns the components that a refresh fills."""
    table = gr.HTML(elem_id="data-indexes", elem_classes="rb-flush")
    with gr.Row(equal_height=True, elem_classes="rb-tools"):
        chosen = gr.Dropdown(
            [], label="Check an index", elem_id="data-verify-chosen", scale=5, min_width=200
        )
        verify = gr.Button("Check files and search", elem_id="data-verify", scale=2, min_width=190)
        stop = gr.Button("Stop", elem_id="data-verify-stop", scale=1, min_width=110)
    said = gr.HTML(elem_id="data-verify-status", elem_classes="rb-flush")
    panel = gr.HTML(elem_id="data-verify-progress", elem_classes="rb-flush")
    index = draw_delete(workbench, "index", "data-index", "Delete an index")
    with gr.Accordion("Combine retrievers", open=False, elem_id="data-combine-panel"):
        parts = draw_combine(workbench)
        combination = draw_delete(
            workbench, "combination", "data-combination", "Delete a combination"
        )
    with gr.Accordion("Cached vectors", open=False, elem_id="data-vectors-panel"):
        vectors = gr.HTML(elem_id="data-vectors", elem_classes="rb-flush")
        key = draw_delete(workbench, "cached vectors", "data-vectors", "Delete cached vectors")
    with gr.Accordion("Kept passages and texts", open=False, elem_id="data-stored-panel"):
        stored = gr.HTML(elem_id="data-stored", elem_classes="rb-flush")
        piece = draw_delete(
            workbench, "kept passages or texts", "data-stored", "Delete kept passages or texts"
        )
    verify.click(
        partial(guard, on_verify, workbench), [chosen], [said, panel], show_progress="hidden"
    )
    stop.click(partial(guard, on_stop, workbench), None, [said], show_progress="hidden")
    return {
        "index_table": table,
        "verified": chosen,
        "checks": panel,
        "indexes": index,
        "parts": parts,
        "combinations": combination,
        "vector_table": vectors,
        "vectors": key,
        "stored_table": stored,
        "stored": piece,
    }


def on_verify(workbench: Workbench, name: str | None) -> list[Any]:
    """Compare an index with its manifest, in the background; the panel follows it."""
    if not name:
        raise UsageError("No index is chosen; build one first.")
    try:
        next(iter(workbench.data.verify_index(name)), None)
    except RalleError as error:
        checks_of(workbench).forget(name)
        return [views.error(str(error)), gr.skip()]
    return ["", checking(workbench)]


def on_stop(workbench: Workbench) -> str:
    """Stop the checks that go on."""
    if not checks_of(workbench).going_on():
        return views.note("No check goes on, so there is nothing to stop.")
    checks_of(workbench).stop()
    return ""


def checking(workbench: Workbench) -> str:
    """The checks that go on, and how the last ones ended."""
    return views_data.works(checks_of(workbench), views_data.checking)


def index_rows(workbench: Workbench) -> list[views_indexes.IndexRow]:
    """A line for each index, built or not or being built, and for each combination."""
    good, damaged = workbench.data.manifests()
    loaded = {line.name for line in workbench.models.status()}
    building = builds_of(workbench).going_on()
    rows = [
        views_indexes.IndexRow(name, m, state="loaded" if name in loaded else "")
        for name, m in good.items()
    ]
    rows += [views_indexes.IndexRow(name, problem=problem) for name, problem in damaged.items()]
    missing = [name for name in STARTER_INDEXES if name not in good and name not in damaged]
    rows += [
        views_indexes.IndexRow(
            name, about=f"{STARTER_INDEXES[name]} over the starter corpus", state="on first use"
        )
        for name in missing
        if name not in building
    ]
    rows += [
        views_indexes.IndexRow(name, about="not there yet", state="being built")
        for name in building
        if name not in good
    ]
    for name, entry in workbench.workspace.combinations().items():
        about = f"{entry.kind} of {', '.join(entry.of)}"
        rows.append(
            views_indexes.IndexRow(
                name, about=about, state="loaded" if name in loaded else "combination"
            )
        )
    return rows
