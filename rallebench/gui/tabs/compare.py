"""Compare: runs beside each other, where they lose, whether a change helped, and on which questions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import gradio as gr

from rallebench.analysis import deployment, radar
from rallebench.analysis.measures import Measure, measure, shared_measures
from rallebench.analysis.radar import DATASETS, Radar, axes_of, over, over_datasets, share_nothing
from rallebench.analysis.ranking import HEADLINES, compare_many, shared_by, with_mean
from rallebench.analysis.runs import waterfall_of
from rallebench.core.errors import RalleError
from rallebench.core.types import Example
from rallebench.engine.score import examples_of
from rallebench.engine.store import RunFolder
from rallebench.gui import views, views_compare, views_fall
from rallebench.gui.saving import save_buttons
from rallebench.gui.session import Session, guard
from rallebench.gui.tabs import TABS, _compare_pair
from rallebench.gui.tabs._compare_pair import draw_pair
from rallebench.render import html, plotly
from rallebench.render.html import csv_link
from rallebench.services.workbench import Workbench

NOTHING = (
    "Choose two runs or more of one question set and press Compare. The first is what the others are compared with. "
    "Run a chain twice in Benchmark, with a change in between, and both are offered here."
)
COUNTING = "Counting where the questions were lost …"
AUTOMATIC = "automatic (EM first)"


@TABS.register("compare", order=4.5, label="Compare")
def build(workbench: Workbench, session: Session, tab: gr.Tab, page: gr.Blocks) -> None:
    """Choose runs; read the table, the differences, the waterfalls and the questions that flipped."""
    compared = gr.State({})
    chosen, name, start = draw_choice()
    said = gr.HTML(views.empty(NOTHING), elem_id="compare-status", elem_classes="rb-flush")
    with gr.Column(visible=False) as results:
        metrics, differences = draw_tables()
        falls = section("Where questions were lost", "compare-waterfalls")
        other, *pair = draw_pair()
        across, plot, lacking = draw_plot()
    over, by, radar_plot, means = draw_radar()
    gr.on(
        [tab.select],
        partial(guard, on_offer, workbench),
        [chosen],
        [chosen],
        show_progress="hidden",
    )
    chosen.change(
        partial(guard, on_chosen, workbench), [chosen], [chosen, name], show_progress="hidden"
    )
    shown = [
        said,
        results,
        compared,
        metrics,
        differences,
        falls,
        other,
        plot,
        lacking,
        over,
        by,
        radar_plot,
        means,
    ]
    asked = session.compare_runs.change(
        partial(guard, on_asked, workbench),
        [session.compare_runs],
        [chosen],
        show_progress="hidden",
    )
    on_pair = partial(guard, _compare_pair.on_pair, workbench)
    for event in (start.click, asked.then):
        done = event(
            partial(guard, on_compare, workbench),
            [chosen, name, across],
            shown,
            show_progress="hidden",
        )
        then = done.then(on_pair, [compared, other], pair, show_progress="hidden")
        then.then(partial(guard, on_falls, workbench), [compared], [falls], show_progress="hidden")
    other.input(on_pair, [compared, other], pair, show_progress="hidden")
    across.input(
        partial(guard, on_plot, workbench),
        [compared, across],
        [plot, lacking],
        show_progress="hidden",
    )
    by.input(
        partial(guard, on_radar, workbench),
        [compared, by],
        [radar_plot, means],
        show_progress="hidden",
    )
    _compare_pair.connect(workbench, session, compared, other, pair)


def section(title: str, part: str) -> gr.HTML:
    """A heading with what stands under it."""
    gr.Markdown(f"### {title}", elem_classes="rb-section")
    return gr.HTML(elem_id=part, elem_classes="rb-flush")


def draw_choice() -> tuple[gr.Dropdown, gr.Dropdown, gr.Button]:
    """Which runs, and by which metric."""
    with gr.Row(equal_height=True, elem_classes="rb-tools"):
        chosen = gr.Dropdown(
            [],
            value=[],
            multiselect=True,
            label="Runs",
            info="the first is what the others are compared with",
            allow_custom_value=True,
            elem_id="compare-runs",
            scale=6,
        )
        name = gr.Dropdown(
            [(AUTOMATIC, ""), *HEADLINES],
            value="",
            label="Metric of the differences",
            info="any metric's name may be typed",
            allow_custom_value=True,
            elem_id="compare-metric",
            scale=3,
        )
        start = gr.Button(
            "Compare", variant="primary", elem_id="compare-start", scale=1, min_width=120
        )
    return chosen, name, start


def draw_tables() -> tuple[gr.HTML, gr.HTML]:
    """Every metric; the differences."""
    return section("Every metric", "compare-table"), section("Differences", "compare-differences")


def draw_plot() -> tuple[gr.Dropdown, gr.Plot, gr.HTML]:
    """Quality against cost."""
    gr.Markdown("### Quality against cost", elem_classes="rb-section")
    axes = [(label, key) for key, label in deployment.COST_AXES.items()]
    across = gr.Dropdown(axes, value="seconds_per_question", label="Across", elem_id="compare-x")
    plot = gr.Plot(show_label=False, elem_id="compare-plot")
    save_buttons("compare-plot", "quality-and-cost")
    return across, plot, gr.HTML(elem_id="compare-unplotted", elem_classes="rb-flush")


def draw_radar() -> tuple[gr.Column, gr.Dropdown, gr.Plot, gr.HTML]:
    """The runs over question sets or kinds of question; hidden where there are none."""
    with gr.Column(visible=False) as over:
        gr.Markdown("### Over question sets or kinds of question", elem_classes="rb-section")
        by = gr.Dropdown(
            [],
            label="Axes",
            info="question sets, or a field of the questions' records",
            allow_custom_value=True,
            elem_id="compare-by",
        )
        plot = gr.Plot(show_label=False, elem_id="compare-radar")
        save_buttons("compare-radar", "radar")
        means = gr.HTML(elem_id="compare-means", elem_classes="rb-flush")
    return over, by, plot, means


# what is chosen


def on_offer(workbench: Workbench, chosen: list[str]) -> Any:
    """The runs that have a report, the newest first."""
    names = [run.name for run in workbench.runs() if run.report()]
    there = [name for name in chosen or [] if name in names]
    # What another tab asks for at the same moment must not be taken back.
    return (
        gr.update(choices=names)
        if there == (chosen or [])
        else gr.update(choices=names, value=there)
    )


def on_chosen(workbench: Workbench, chosen: list[str] | None) -> list[Any]:
    """Let go of what is no run, as the half of a name that Escape or a click elsewhere leaves, and offer the metrics of the rest."""
    names = {run.name for run in workbench.runs()} if chosen else set()
    there = [one for one in chosen or () if one in names]
    return [
        gr.skip() if there == (chosen or []) else gr.update(value=there),
        on_metrics(workbench, there),
    ]


def on_metrics(workbench: Workbench, chosen: list[str] | None) -> Any:
    """Offer the metrics that the chosen runs have in common, a suite's own first."""
    try:
        found = shared_measures([workbench.open_run(one) for one in chosen or ()]) if chosen else {}
    except RalleError:  # said when Compare is pressed
        found = {}
    labels = [(str(one.about["label"]), one.name) for one in found.values()]
    return gr.update(choices=[(AUTOMATIC, ""), *(labels or [(name, name) for name in HEADLINES])])


def on_asked(workbench: Workbench, asked: dict[str, Any] | None) -> Any:
    """Choose the runs that another tab wants to see compared."""
    if not asked:
        return gr.skip()
    return gr.update(
        choices=[run.name for run in workbench.runs() if run.report()], value=list(asked["runs"])
    )


def on_compare(workbench: Workbench, chosen: list[str], name: str, across: str) -> list[Any]:
    """Compare the chosen runs; a refusal leaves what stands there."""
    try:
        chosen, said = left_out(workbench, chosen or [])
        runs, name = [workbench.open_run(one) for one in chosen], (name or "").strip()
        if share_nothing(runs):
            only, *shown = over_sets(runs, name)
            return [said + only, *shown]
        found = compare_many(runs, name)
    except RalleError as error:
        return [
            views.error(str(error)),
            gr.update(visible=False),
            {},
            *[gr.skip()] * 6,
            gr.update(visible=False),
            *[gr.skip()] * 3,
        ]
    others = [run.name for run in runs[1:]]
    return [
        said,
        gr.update(visible=True),
        {"runs": [run.name for run in runs], "metric": found.metric},
        views_compare.table(found),
        views_compare.differences(found),
        views.empty(COUNTING),
        gr.update(choices=others, value=others[0]),
        *drawn(runs, found.measure, across),
        *radar_of(runs, found.common, found.metric),
    ]


def left_out(workbench: Workbench, chosen: Sequence[str]) -> tuple[list[str], str]:
    """The names of runs among what is chosen, and a note on the others: a click on Compare with half a name typed makes that
    one of them. With fewer than two runs all is kept, so that the refusal says what is wrong."""
    names = {run.name for run in workbench.runs()}
    there, no_runs = (
        [one for one in chosen if one in names],
        [one for one in chosen if one not in names],
    )
    if not no_runs or len(there) < 2:
        return list(chosen), ""
    return there, views.note(f"Left out, because no run is called so: {', '.join(no_runs)}.")


def on_falls(workbench: Workbench, compared: dict[str, Any]) -> Any:
    """Where each run lost the questions that all share. Every step of every answer is read for it, so it comes last."""
    if not compared:
        return gr.skip()
    runs = [workbench.open_run(one) for one in compared["runs"]]
    if share_nothing(runs):
        return gr.skip()
    asked = [examples_of(run) for run in runs]
    qids = {example.question.qid for example in shared_by(asked)}
    falls = [waterfall_of(run, workbench.workspace, examples=its) for run, its in zip(runs, asked)]
    return views_fall.waterfalls([(run.name, fall.within(qids)) for run, fall in zip(runs, falls)])


def over_sets(runs: Sequence[RunFolder], name: str) -> list[Any]:
    """What can be said of runs that share no question: their means over question sets. Raises UsageError."""
    found = over_datasets(runs, name)
    said = views.note(
        "The runs share no question, so no difference between two of them can be tested; below are their means."
    )
    compared = {"runs": [run.name for run in runs], "metric": found.metric}
    return [
        said,
        gr.update(visible=False),
        compared,
        *[gr.skip()] * 6,
        *radar_of(runs, (), found.metric),
    ]


def radar_of(runs: Sequence[RunFolder], common: Sequence[Example], name: str) -> list[Any]:
    """The radar by the first that can part these runs' questions; hidden where nothing can."""
    axes = axes_of(runs, common)
    if not axes:
        return [gr.update(visible=False), *[gr.skip()] * 3]
    found = over(runs, common, name, axes[0])
    by = gr.update(choices=axes, value=axes[0])
    return [gr.update(visible=True), by, *drawn_radar(found)]


def drawn_radar(found: Radar) -> list[Any]:
    """The radar and its table."""
    return [plotly.figure(radar.figure(found)), html.table(radar.table(found))]


def on_radar(workbench: Workbench, compared: dict[str, Any], by: str | None) -> list[Any]:
    """Draw the radar over other axes, by the metric that was compared by."""
    if not compared or not by:
        return [gr.skip()] * 2
    runs = [workbench.open_run(one) for one in compared["runs"]]
    common = () if by == DATASETS else shared_by([examples_of(run) for run in runs])
    found = over(runs, common, compared["metric"], by.strip())
    return [*drawn_radar(found)]


def drawn(runs: Sequence[RunFolder], of: Measure, across: str) -> list[Any]:
    """The plot of quality against cost, what its bubbles are, and which runs it lacks."""
    named = [(run.name, with_mean(run, of.name)) for run in runs]
    below = "".join(map(views.note, deployment.notes(named, of.name, across)))
    if points := deployment.points(named, of.name, across):
        rows = [("run", across, of.name, "memory_bytes"), *points]
        below += csv_link("quality-and-cost.csv", rows)
    return [plotly.figure(deployment.figure(named, of, across)), below]


def on_plot(workbench: Workbench, compared: dict[str, Any], across: str) -> list[Any]:
    """Draw the plot with another cost, by the metric that was compared by."""
    if not compared:
        return [gr.skip()] * 2
    runs = [workbench.open_run(one) for one in compared["runs"]]
    return drawn(runs, measure(compared["metric"], runs), across)
