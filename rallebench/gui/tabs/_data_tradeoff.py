"""What indexes give and what they cost, side by side: measure, read as a table and a plot, take away."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import gradio as gr

from rallebench.core.errors import RalleError, UsageError
from rallebench.core.runs import RunOptions
from rallebench.experiments.tradeoff import Point, Tradeoff
from rallebench.experiments.tradeoff.running import read_swept, tradeoff_settings
from rallebench.gui import views, views_tradeoff
from rallebench.gui.saving import save_buttons
from rallebench.gui.session import guard
from rallebench.gui.works import tradeoffs_of
from rallebench.services.workbench import Workbench
from rallebench.workspace.paths import DEFAULT_DATASET

NOTHING = (
    "Tick the indexes to compare and press Measure. Each is searched in a process of its own, one after the other; "
    "measuring goes on if you leave this page."
)
NO_RESULT = "No result is open. What is measured is stored in experiments/ of the workspace and listed here."


def draw_tradeoff(workbench: Workbench) -> dict[str, Any]:
    """The section; returns the components that a refresh fills."""
    names = list(workbench.workspace.retrievers())
    indexes = gr.CheckboxGroup(
        names,
        value=[],
        label="Indexes and combinations",
        elem_id="data-tradeoff-indexes",
        elem_classes="rb-choices",
    )
    with gr.Row(equal_height=True):
        dataset = gr.Dropdown(
            list(workbench.workspace.dataset_paths()),
            value=DEFAULT_DATASET,
            label="Question set",
            info="its questions are asked",
            elem_id="data-tradeoff-dataset",
            scale=3,
            min_width=180,
        )
        k = gr.Number(
            10,
            label="k",
            info="passages",
            precision=0,
            elem_id="data-tradeoff-k",
            scale=1,
            min_width=90,
        )
        limit = gr.Number(
            200,
            label="Questions",
            info="at most",
            precision=0,
            elem_id="data-tradeoff-limit",
            scale=1,
            min_width=110,
        )
        knobs = gr.Textbox(
            label="Settings to sweep",
            info="empty = those of each kind",
            placeholder="ef_search=16,64,256 nprobe=4,16",
            max_lines=1,
            elem_id="data-tradeoff-knobs",
            scale=4,
            min_width=220,
        )
        name = gr.Textbox(
            label="Name",
            info="empty = made of the time",
            max_lines=1,
            elem_id="data-tradeoff-name",
            scale=3,
            min_width=160,
        )
    with gr.Row(elem_classes="rb-tools"):
        start = gr.Button("Measure", variant="primary", elem_id="data-tradeoff-start", scale=4)
        stop = gr.Button("Stop", elem_id="data-tradeoff-stop", scale=1, min_width=110)
    said = gr.HTML(elem_id="data-tradeoff-status", elem_classes="rb-flush")
    panel = gr.HTML(views.empty(NOTHING), elem_id="data-tradeoff-progress", elem_classes="rb-flush")
    asked = [indexes, dataset, k, limit, knobs, name]
    start.click(partial(guard, on_measure, workbench), asked, [said, panel], show_progress="hidden")
    stop.click(partial(guard, on_stop, workbench), None, [said], show_progress="hidden")
    chosen = draw_results(workbench)
    return {"compared": indexes, "tradeoff_sets": dataset, "tradeoffs": panel, "results": chosen}


def draw_results(workbench: Workbench) -> gr.Dropdown:
    """Results that are kept; returns their chooser."""
    axes = [(label, key) for key, label in views_tradeoff.AXES.items()]
    with gr.Row(equal_height=True):
        chosen = gr.Dropdown(
            [], label="Result", elem_id="data-tradeoff-result", scale=4, min_width=220
        )
        across = gr.Dropdown(
            axes, value="single_qps", label="Across", elem_id="data-tradeoff-x", scale=3
        )
        up = gr.Dropdown(axes, value="recall", label="Up", elem_id="data-tradeoff-y", scale=3)
    table = gr.HTML(views.empty(NO_RESULT), elem_id="data-tradeoff-table", elem_classes="rb-flush")
    plot = gr.Plot(visible=False, show_label=False, elem_id="data-tradeoff-plot")
    saving = save_buttons("data-tradeoff-plot", "trade-off", visible=False)
    command = gr.HTML(elem_id="data-tradeoff-command", elem_classes="rb-flush")
    chosen.change(
        partial(guard, on_open, workbench),
        [chosen, across, up],
        [table, plot, saving, command, up],
        show_progress="hidden",
    )
    gr.on(
        [across.input, up.input],
        partial(guard, on_axes, workbench),
        [chosen, across, up],
        [plot],
        show_progress="hidden",
    )
    return chosen


def on_measure(
    workbench: Workbench,
    indexes: list[str],
    dataset: str,
    k: float,
    limit: float,
    knobs: str,
    name: str,
) -> list[Any]:
    """Measure in the background; the panel follows it."""
    try:
        if not indexes:
            raise UsageError("No index is ticked; tick those to compare.")
        swept = read_swept((knobs or "").split())
        settings = tradeoff_settings(indexes, dataset, k=int(k or 0), swept=swept)
        name = (name or "").strip() or time.strftime("tradeoff-%Y%m%d-%H%M%S")
        request = workbench.experiments.request("tradeoff", name, settings, int(limit or 0))
        work = workbench.experiments.run(request, RunOptions(track=False))
        next(tradeoffs_of(workbench).follow(name, (settings, limit), lambda: work), None)
    except RalleError as error:
        if name not in tradeoffs_of(workbench).going_on():
            tradeoffs_of(workbench).forget(name)  # told here, where it was asked for
        return [views.error(str(error)), measuring(workbench)]
    return ["", measuring(workbench)]


def measuring(workbench: Workbench) -> str:
    """The measurements that go on with what they found so far, and how the last ones ended."""
    works = tradeoffs_of(workbench)
    shown = [
        views_tradeoff.measuring(name, works.said(name), name in works.stopping())
        for name in works.going_on()
    ]
    shown += [views_tradeoff.ended(name, end) for name, end in reversed(works.ended().items())][:3]
    return "".join(shown) or views.empty(NOTHING)


def on_stop(workbench: Workbench) -> str:
    """Stop measuring."""
    if not tradeoffs_of(workbench).going_on():
        return views.note("Nothing is being measured, so there is nothing to stop.")
    tradeoffs_of(workbench).stop()
    return ""


def results(workbench: Workbench) -> list[str]:
    """The names of what was measured, the newest first."""
    return workbench.experiments.list("trade-off")


def on_open(workbench: Workbench, name: str | None, across: str, up: str) -> list[Any]:
    """Show a result: its table, its plot, and how to have it again. Without recall the pages found go up."""
    if not name:
        return [views.empty(NO_RESULT), *[gr.update(visible=False)] * 2, "", gr.skip()]
    try:
        result = workbench.experiments.open_tradeoff(name)
    except RalleError as error:
        return [views.error(str(error)), *[gr.update(visible=False)] * 2, "", gr.skip()]
    up = views_tradeoff.best_axis(result.points, up)
    there = bool(drawable(result))
    plot = gr.update(value=views_tradeoff.figure(result.points, across, up), visible=there)
    return [
        views_tradeoff.whole(result),
        plot,
        gr.update(visible=there),
        views_tradeoff.command(result, str(workbench.workspace.path)),
        up,
    ]


def drawable(result: Tradeoff) -> list[Point]:
    """The points that did not fail."""
    return [point for point in result.points if not point.error]


def on_axes(workbench: Workbench, name: str | None, across: str, up: str) -> Any:
    """Draw the plot with other axes."""
    return (
        views_tradeoff.figure(workbench.experiments.open_tradeoff(name).points, across, up)
        if name
        else gr.skip()
    )
