"""Delete a thing of the workspace: choose it, press Delete, then confirm by a second button that names it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import gradio as gr

from rallebench.core.errors import RalleError, UsageError
from rallebench.gui import views
from rallebench.gui.session import guard
from rallebench.gui.wording import on_page
from rallebench.services.workbench import Workbench
from rallebench.workspace.indexes.cache import delete_stored


def deleter(workbench: Workbench, what: str) -> Callable[[str], str]:
    """The verb that deletes a thing of this sort and says so."""
    verbs: dict[str, Callable[[str], str]] = {
        "corpus": workbench.data.delete_corpus,
        "question set": workbench.data.delete_question_set,
        "index": workbench.data.delete_index,
        "combination": workbench.data.delete_combination,
        "cached vectors": workbench.data.delete_vectors,
        "kept passages or texts": partial(delete_stored, workbench.workspace),
    }
    return verbs[what]


def draw_delete(workbench: Workbench, what: str, part: str, label: str) -> gr.Dropdown:
    """A chooser with its two buttons; returns the chooser, which a refresh fills."""
    asked = gr.State("")
    with gr.Row(equal_height=True, elem_classes="rb-tools"):
        chosen = gr.Dropdown([], label=label, elem_id=f"{part}-chosen", scale=5, min_width=200)
        ask = gr.Button("Delete …", elem_id=f"{part}-delete", scale=1, min_width=110)
        sure = gr.Button(
            "", variant="stop", visible=False, elem_id=f"{part}-delete-sure", scale=3, min_width=200
        )
        keep = gr.Button(
            "Keep it", visible=False, elem_id=f"{part}-delete-keep", scale=1, min_width=110
        )
    said = gr.HTML(elem_id=f"{part}-delete-status", elem_classes="rb-flush")
    shown = [asked, sure, keep, said]
    ask.click(partial(guard, on_ask, workbench, what), [chosen], shown, show_progress="hidden")
    sure.click(partial(guard, on_delete, workbench, what), [asked], shown, show_progress="minimal")
    gr.on([keep.click, chosen.input], on_keep, None, shown, show_progress="hidden")
    return chosen


def on_ask(workbench: Workbench, what: str, chosen: str | None) -> list[Any]:
    """Ask again before anything is deleted, and tell what goes with it."""
    if not chosen:
        raise UsageError(f"No {what} is chosen, so there is nothing to delete.")
    lost = workbench.data.lost_with_questions(chosen) if what == "question set" else ""
    sure = gr.update(visible=True, value=f"Yes, delete {chosen}")
    return [chosen, sure, gr.update(visible=True), views.note(lost)]


def on_keep() -> list[Any]:
    """Nothing is deleted."""
    return ["", gr.update(visible=False), gr.update(visible=False), ""]


def on_delete(workbench: Workbench, what: str, asked: str) -> list[Any]:
    """Delete what was asked about, and nothing else."""
    try:
        said = views.note(deleter(workbench, what)(asked), "good")
    except RalleError as error:
        said = views.error(on_page(error))
    return ["", gr.update(visible=False), gr.update(visible=False), said]
