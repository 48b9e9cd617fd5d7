"""Sweep: vary fields of the chain in Develop, run every variant, see the winner and whether it is one."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import gradio as gr

from rallebench.analysis.ranking import HEADLINES
from rallebench.core.errors import RalleError, UsageError
from rallebench.core.runs import RunOptions
from rallebench.experiments.sweeps import STRATEGIES, indexing
from rallebench.experiments.sweeps.results import opened
from rallebench.experiments.sweeps.running import sweep_settings, variants_of
from rallebench.gui import form, views, views_sweep
from rallebench.gui.saving import save_buttons
from rallebench.gui.session import Session, guard, guard_stream
from rallebench.gui.tabs import TABS
from rallebench.gui.works import Works
from rallebench.services.experiments import checked_sweep_name
from rallebench.services.workbench import Workbench
from rallebench.workspace.checking import check_chain
from rallebench.workspace.indexes.vectors import Building
from rallebench.workspace.paths import DEFAULT_DATASET

NOTHING = (
    "Write what to vary, one field a line, and press Run sweep: every variant of the chain in Develop becomes a run. "
    "What variants share is asked once."
)
NO_SWEEP = "No sweep is chosen; those that were run are listed here."
EXAMPLE = "k=1,3,5,10\nretriever=starter-bm25,starter-minilm\nindex.chunk_size=16,32,whole"
HELP = (
    "k, retriever, llm, a generation setting (temperature=0,0.7), N.field of action N (2.template=a.txt,b.txt), or the index "
    "that is searched: index.chunk_size=64,128,whole, index.chunk_overlap=0%,30%, index.encoder=…, index.kind=bm25,flat, a setting "
    "of its kind (index.k1=0.9,1.2). Commas in brackets do not part: retriever=a,(rrf:a,b)"
)


@TABS.register("sweep", order=3.5, label="Sweep")
def build(workbench: Workbench, session: Session, tab: gr.Tab, page: gr.Blocks) -> None:
    """Vary, run, watch, compare."""
    works = Works(workbench.jobs, "sweep")
    vary, *settings = draw_settings(workbench)
    with gr.Row(elem_classes="rb-tools"):
        plan = gr.Button("Show the variants", elem_id="sweep-plan", scale=2)
        start = gr.Button("Run sweep", variant="primary", elem_id="sweep-start", scale=3)
        stop = gr.Button("Stop", elem_id="sweep-stop", scale=1)
        track = gr.Checkbox(
            True, label="Log to MLflow", elem_id="sweep-track", min_width=150, container=False
        )
    said = gr.HTML(elem_id="sweep-status", elem_classes="rb-flush")
    panel = gr.HTML(views.empty(NOTHING), elem_id="sweep-progress", elem_classes="rb-flush")
    with gr.Row(equal_height=True):
        chosen = gr.Dropdown(
            [], label="Sweep", allow_custom_value=True, elem_id="sweep-chosen", scale=4
        )
        by = gr.Dropdown(
            ["", *HEADLINES],
            value="",
            label="Decided by",
            info="empty = the first that all variants have",
            allow_custom_value=True,
            elem_id="sweep-metric",
            scale=3,
        )
    table = gr.HTML(views.empty(NO_SWEEP), elem_id="sweep-table", elem_classes="rb-flush")
    plot = gr.Plot(visible=False, show_label=False, elem_id="sweep-plot")
    saving = save_buttons("sweep-plot", "sweep", visible=False)
    seen = gr.State(0)

    plan.click(
        partial(guard_stream, on_plan, workbench),
        [vary, settings[0], *session.form],
        [said],
        show_progress="hidden",
    )
    start.click(
        partial(guard, on_start, workbench, works),
        [vary, *settings, track, *session.form],
        [said, panel],
        show_progress="hidden",
    )
    stop.click(partial(guard, on_stop, works), None, [said], show_progress="hidden")
    gr.Timer(1.5).tick(
        partial(guard, on_tick, workbench, works),
        [seen, chosen],
        [seen, panel, chosen],
        show_progress="hidden",
    )
    gr.on(
        [chosen.change, by.change],
        partial(guard, on_open, workbench),
        [chosen, by],
        [table, plot, saving],
        show_progress="hidden",
    )
    tab.select(
        partial(guard, on_names, workbench), [chosen], [settings[1], chosen], show_progress="hidden"
    )


def draw_settings(workbench: Workbench) -> list[Any]:
    """What to vary and on which questions; in the order in which ``on_start`` takes them."""
    with gr.Row(equal_height=True):
        vary = gr.Textbox(
            label="Vary",
            info=HELP,
            placeholder=EXAMPLE,
            lines=3,
            max_lines=12,
            elem_id="sweep-vary",
            scale=5,
        )
        way = gr.Radio(
            [("one field at a time", STRATEGIES[0]), ("all combinations", STRATEGIES[1])],
            value=STRATEGIES[0],
            label="Way",
            elem_id="sweep-way",
            scale=3,
        )
    with gr.Row(equal_height=True):
        dataset = gr.Dropdown(
            list(workbench.workspace.dataset_paths()),
            value=DEFAULT_DATASET,
            label="Question set",
            allow_custom_value=True,
            elem_id="sweep-dataset",
            scale=3,
        )
        limit = gr.Textbox(
            label="Number of questions",
            placeholder="all",
            max_lines=1,
            elem_id="sweep-limit",
            scale=2,
            min_width=130,
        )
        name = gr.Textbox(
            label="Name",
            placeholder="made for you; a stopped sweep goes on under its name",
            max_lines=1,
            elem_id="sweep-name",
            scale=4,
        )
    return [vary, way, dataset, limit, name]


def settings_of(
    vary: str, way: str, values: Sequence[Any], dataset: str = DEFAULT_DATASET
) -> dict[str, Any]:
    """The settings of a sweep of the chain in Develop. Raises UsageError."""
    lines = [line.strip() for line in (vary or "").splitlines() if line.strip()]
    return sweep_settings(form.read_chain(tuple(values)), lines, dataset, strategy=way)


def on_plan(workbench: Workbench, vary: str, way: str, *values: Any) -> Iterator[str]:
    """What would be run, what its indexes would take, and whether it could be."""
    try:
        found = variants_of(settings_of(vary, way, values))
        for cell in found:
            check_chain(workbench.workspace, cell.chain)
        costs = None
        for costs in indexing.counting(workbench.workspace, found):
            if isinstance(costs, Building):
                yield views.note(
                    f"Counting: {costs.stage} {f'{costs.done:,}' if costs.done else ''} …"
                )
        yield views_sweep.plan(found, costs)
    except RalleError as error:
        yield views.error(str(error))


def on_start(
    workbench: Workbench,
    works: Works,
    vary: str,
    way: str,
    dataset: str,
    limit: str,
    name: str,
    track: bool,
    *values: Any,
) -> list[str]:
    """Run the sweep in the background; the panel follows it."""
    try:
        settings = settings_of(vary, way, values, dataset)
        found = variants_of(settings)
        name = checked_sweep_name((name or "").strip() or time.strftime("sweep-%Y%m%d-%H%M%S"))
        request = workbench.experiments.request("sweep", name, settings, number_of(limit))
        sweep = workbench.experiments.run(request, RunOptions(track=bool(track)))
        next(works.follow(name, (settings, limit), lambda: sweep), None)
    except RalleError as error:
        if name not in works.going_on():
            works.forget(name)  # told here, where it was asked for
        return [views.error(str(error)), panel_of(works)]
    return [views_sweep.remarked(found), panel_of(works)]


def number_of(text: str) -> int | None:
    """A number of questions; None for all. Raises UsageError."""
    text = (text or "").strip()
    if not text:
        return None
    if not text.isdecimal() or not 0 < int(text) < 10**9:
        raise UsageError(
            f"The number of questions is {text!r}; it must be a whole number from 1, or empty for all."
        )
    return int(text)


def panel_of(works: Works) -> str:
    """Sweeps that go on, and how the last ones ended."""
    shown = [
        views_sweep.going_on(name, works.said(name), name in works.stopping())
        for name in works.going_on()
    ]
    shown += [views_sweep.ended(name, end) for name, end in reversed(works.ended().items())][:3]
    return "".join(shown) or views.empty(NOTHING)


def on_stop(works: Works) -> str:
    """Stop after what is being answered."""
    if not works.going_on():
        return views.note("No sweep goes on, so there is nothing to stop.")
    works.stop()
    return views.note("Stopping; start it again under its name to go on.")


def on_tick(workbench: Workbench, works: Works, seen: int, chosen: str | None) -> list[Any]:
    """Follow what goes on; a sweep that has just ended is opened."""
    ended = works.ended()
    fresh = len(ended) != seen and ended
    newest = next(reversed(ended)) if fresh else None
    opens = (
        gr.update(choices=workbench.experiments.list("sweep"), value=newest or chosen)
        if fresh
        else gr.skip()
    )
    if not works.going_on() and not fresh:
        return [seen, gr.skip(), gr.skip()]
    return [len(ended), panel_of(works), opens]


def on_names(workbench: Workbench, chosen: str | None) -> list[Any]:
    """The question sets and sweeps that there are now."""
    names = workbench.experiments.list("sweep")
    value = chosen if chosen in names else names[0] if names else None
    return [
        gr.update(choices=list(workbench.workspace.dataset_paths())),
        gr.update(choices=names, value=value),
    ]


def on_open(workbench: Workbench, name: str | None, by: str) -> list[Any]:
    """Show a sweep: its verdict, table and plot, and the buttons that save it."""
    hidden = gr.update(visible=False)
    if not name:
        return [views.empty(NO_SWEEP), hidden, hidden]
    try:
        found = opened(workbench.workspace, name, (by or "").strip())
        shown = views_sweep.whole(found)
    except RalleError as error:
        return [views.error(str(error)), hidden, hidden]
    if found.compared is None:
        return [shown, hidden, hidden]
    return [
        shown,
        gr.update(value=views_sweep.figure(found), visible=True),
        gr.update(visible=True),
    ]
