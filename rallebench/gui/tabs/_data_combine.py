"""Give a combination of retrievers a name: fused by rank or score, sampled, merged, or re-ranked."""

from __future__ import annotations

from functools import partial
from typing import Any

import gradio as gr

from rallebench.core.errors import RalleError, UsageError
from rallebench.gui import views
from rallebench.gui.session import guard
from rallebench.gui.tabs._data_settings import Known, draw_settings, given, show_group
from rallebench.retrievers import COMBINATIONS
from rallebench.services.workbench import Workbench

FIRST = "rrf"


def ways() -> Known:
    """Way → its settings."""
    return {name: COMBINATIONS.entry(name).form for name in COMBINATIONS.names()}


def draw_combine(workbench: Workbench) -> gr.Dropdown:
    """The form; returns the chooser of parts, which a refresh fills."""
    with gr.Row(equal_height=True):
        parts = gr.Dropdown(
            [],
            multiselect=True,
            label="Retrievers",
            info="in this order",
            elem_id="data-combine-parts",
            scale=5,
            min_width=260,
        )
        kind = gr.Dropdown(
            list(ways()),
            value=FIRST,
            label="Way",
            info=COMBINATIONS.entry(FIRST).about,
            elem_id="data-combine-kind",
            scale=4,
            min_width=220,
        )
        name = gr.Textbox(
            label="Name",
            info="what chains call it",
            max_lines=1,
            elem_id="data-combine-name",
            scale=3,
            min_width=180,
        )
    form = draw_settings(ways(), "data-combine", FIRST)
    save = gr.Button("Save the combination", elem_id="data-combine-save")
    said = gr.HTML(elem_id="data-combine-status", elem_classes="rb-flush")
    kind.change(on_way, [kind], [kind, *form.groups.values()], show_progress="hidden")
    save.click(
        partial(guard, on_combine, workbench, form.names),
        [parts, kind, name, *form.inputs],
        [said],
        show_progress="hidden",
    )
    return parts


def on_way(kind: str) -> list[Any]:
    """Say what a way does, show its settings."""
    return [gr.update(info=COMBINATIONS.entry(kind).about), *show_group(list(ways()), kind)]


def on_combine(
    workbench: Workbench,
    names: list[tuple[str, str]],
    parts: list[str],
    kind: str,
    name: str,
    *values: Any,
) -> str:
    """Save a combination under its name."""
    try:
        if not parts:
            raise UsageError("No retriever is chosen; choose at least one.")
        said = workbench.data.combine(
            (name or "").strip(), kind, parts, set_apart(kind, given(names, kind, values))
        )
    except RalleError as error:
        return views.error(str(error))
    return views.note(f"{said} Search it under Search, or choose it in Develop.", "good")


def set_apart(kind: str, values: dict[str, Any]) -> dict[str, Any]:
    """The settings that differ from what happens anyway: a file that people read holds no more."""
    known = ways()[kind]
    return {name: value for name, value in values.items() if value != known[name].default}
