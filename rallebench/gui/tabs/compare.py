"""Compare: runs beside each other, where they lose, whether a change helped, and on which questions."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import gradio as gr

from rallebench.analysis.changes import changes
from rallebench.analysis.many import HEADLINES, compare_many, scores_of, shared_by
from rallebench.analysis.paired import compare
from rallebench.analysis.radar import DATASETS, axes_of, over, over_datasets, share_nothing
from rallebench.analysis.runs import waterfall_of
from rallebench.bench.score import examples_of
from rallebench.bench.statistics import means
from rallebench.bench.store import RunFolder
from rallebench.errors import RalleError, UsageError
from rallebench.gui import views, views_compare, views_plots
from rallebench.gui.saving import save_buttons
from rallebench.gui.session import Session, guard
from rallebench.gui.tabs import TABS
from rallebench.metrics import metric
from rallebench.types import Example
from rallebench.workbench import Workbench

NOTHING = (
    "Choose two runs or more of one question set and press Compare. The first is what the others are compared with. "
    "Run a chain twice in Benchmark, with a change in between, and both are offered here."
)
NO_QUESTION = "Click a question above to see both prompts and both answers, what differs marked."
AUTOMATIC = "automatic: EM, accuracy, F1 …"
FLIPPED_AT_MOST = 500


@TABS.register("compare", order=4.5, label="Compare")
def build(workbench: Workbench, session: Session, tab: gr.Tab, page: gr.Blocks) -> None:
    """Choose runs; read the table, the differences, the waterfalls and the questions that flipped."""
    compared = gr.State({})
    chosen, name, start = draw_choice()
    said = gr.HTML(views.empty(NOTHING), elem_id="compare-status", elem_classes="rb-flush")
    with gr.Column(visible=False) as results:
        metrics, differences = draw_tables()
        falls = section("Where questions were lost", "compare-waterfalls")
        other, changed, flipped, saved, question, opens = draw_pair()
        across, plot, lacking = draw_plot()
    over, by, radar, means = draw_radar()
    gr.on([tab.select], partial(guard, on_offer, workbench), [chosen], [chosen], show_progress="hidden")
    shown = [said, results, compared, metrics, differences, falls, other, plot, lacking, over, by, radar, means]
    asked = session.compare_runs.change(
        partial(guard, on_asked, workbench), [session.compare_runs], [chosen], show_progress="hidden"
    )
    pair = [changed, flipped, saved, question, opens]
    for event in (start.click, asked.then):
        done = event(partial(guard, on_compare, workbench), [chosen, name, across], shown, show_progress="hidden")
        done.then(partial(guard, on_pair, workbench), [compared, other], pair, show_progress="hidden")
    other.input(partial(guard, on_pair, workbench), [compared, other], pair, show_progress="hidden")
    across.input(partial(guard, on_plot, workbench), [compared, across], [plot, lacking], show_progress="hidden")
    by.input(partial(guard, on_radar, workbench), [compared, by], [radar, means], show_progress="hidden")
    clicked = gr.State("")
    select = flipped.select(on_select, None, [clicked], show_progress="hidden")
    select.then(
        partial(guard, on_question, workbench), [compared, other, clicked], [question, opens], show_progress="hidden"
    )
    opens.click(
        partial(guard, on_open, workbench), [compared, other, clicked], [session.open_in_develop]
    )


def section(title: str, part: str) -> gr.HTML:
    """A heading with what stands under it."""
    gr.Markdown(f"### {title}", elem_classes="rb-section")
    return gr.HTML(elem_id=part, elem_classes="rb-flush")


def draw_choice() -> tuple[gr.Dropdown, gr.Dropdown, gr.Button]:
    """Which runs, and by which metric."""
    with gr.Row(equal_height=True, elem_classes="rb-tools"):
        chosen = gr.Dropdown(
            [], value=[], multiselect=True, label="Runs", info="the first is what the others are compared with",
            allow_custom_value=True, elem_id="compare-runs", scale=6,
        )  # fmt: skip
        name = gr.Dropdown(
            [(AUTOMATIC, ""), *HEADLINES, "recall@5", "success_rate@5", "has_answer"], value="", label="Metric of the differences",
            info="any metric's name may be typed", allow_custom_value=True, elem_id="compare-metric", scale=3,
        )  # fmt: skip
        start = gr.Button("Compare", variant="primary", elem_id="compare-start", scale=1, min_width=120)
    return chosen, name, start


def draw_tables() -> tuple[gr.HTML, gr.HTML]:
    """Every metric; the differences."""
    return section("Every metric", "compare-table"), section("Differences", "compare-differences")


def draw_pair() -> tuple[gr.Dropdown, gr.HTML, gr.Dataframe, gr.HTML, gr.HTML, gr.Button]:
    """What was changed between two runs, and what that did to each question."""
    gr.Markdown("### Two runs side by side", elem_classes="rb-section")
    other = gr.Dropdown([], label="The first run, and", allow_custom_value=True, elem_id="compare-other")
    changed = gr.HTML(elem_id="compare-changes", elem_classes="rb-flush")
    flipped = gr.Dataframe(
        headers=list(views_compare.FLIPPED_COLUMNS), interactive=False, wrap=True, show_label=False, max_height=360,
        column_widths=["12%", "28%", "18%", "16%", "16%", "10%"], elem_id="compare-flipped",
    )  # fmt: skip
    saved = gr.HTML(elem_id="compare-flipped-csv", elem_classes="rb-flush")
    question = gr.HTML(views.empty(NO_QUESTION), elem_id="compare-question", elem_classes="rb-flush")
    opens = gr.Button("Open this question of the other run in Develop", interactive=False, elem_id="compare-open")
    return other, changed, flipped, saved, question, opens


def draw_plot() -> tuple[gr.Dropdown, gr.Plot, gr.HTML]:
    """Quality against cost."""
    gr.Markdown("### Quality against cost", elem_classes="rb-section")
    axes = [(label, key) for key, label in views_plots.COST_AXES.items()]
    across = gr.Dropdown(axes, value="seconds_per_question", label="Across", elem_id="compare-x")
    plot = gr.Plot(show_label=False, elem_id="compare-plot")
    save_buttons("compare-plot", "quality-and-cost")
    return across, plot, gr.HTML(elem_id="compare-unplotted", elem_classes="rb-flush")


def draw_radar() -> tuple[gr.Column, gr.Dropdown, gr.Plot, gr.HTML]:
    """The runs over question sets or kinds of question; hidden where there are none."""
    with gr.Column(visible=False) as over:
        gr.Markdown("### Over question sets or kinds of question", elem_classes="rb-section")
        by = gr.Dropdown(
            [], label="Axes", info="question sets, or a field of the questions' records", allow_custom_value=True,
            elem_id="compare-by",
        )  # fmt: skip
        radar = gr.Plot(show_label=False, elem_id="compare-radar")
        save_buttons("compare-radar", "radar")
        means = gr.HTML(elem_id="compare-means", elem_classes="rb-flush")
    return over, by, radar, means


# what is chosen


def on_offer(workbench: Workbench, chosen: list[str]) -> Any:
    """The runs that have a report, the newest first."""
    names = [run.name for run in workbench.runs() if run.report()]
    there = [name for name in chosen or [] if name in names]
    # What another tab asks for at the same moment must not be taken back.
    return gr.update(choices=names) if there == (chosen or []) else gr.update(choices=names, value=there)


def on_asked(workbench: Workbench, asked: dict[str, Any] | None) -> Any:
    """Choose the runs that another tab wants to see compared."""
    if not asked:
        return gr.skip()
    return gr.update(choices=[run.name for run in workbench.runs() if run.report()], value=list(asked["runs"]))


def on_compare(workbench: Workbench, chosen: list[str], name: str, across: str) -> list[Any]:
    """Compare the chosen runs; a refusal leaves what stands there."""
    try:
        runs, name = [workbench.open_run(one) for one in chosen or []], (name or "").strip()
        if share_nothing(runs):
            return over_sets(runs, name)
        found = compare_many(runs, name)
    except RalleError as error:
        return [views.error(str(error)), gr.update(visible=False), {}, *[gr.skip()] * 6, gr.update(visible=False), *[gr.skip()] * 3]
    others = [run.name for run in runs[1:]]
    qids = {example.question.qid for example in found.common}
    falls = [(run.name, waterfall_of(run, workbench.workspace).within(qids)) for run in runs]
    return [
        "", gr.update(visible=True), {"runs": [run.name for run in runs], "metric": found.metric}, views_compare.table(found),
        views_compare.differences(found), views_compare.waterfalls(falls), gr.update(choices=others, value=others[0]),
        *drawn(runs, found.metric, across), *radar_of(runs, found.common, found.metric),
    ]  # fmt: skip


def over_sets(runs: Sequence[RunFolder], name: str) -> list[Any]:
    """What can be said of runs that share no question: their means over question sets. Raises UsageError."""
    found = over_datasets(runs, name)
    said = views.note("The runs share no question, so no difference between two of them can be tested; below are their means.")
    compared = {"runs": [run.name for run in runs], "metric": found.metric}
    return [said, gr.update(visible=False), compared, *[gr.skip()] * 6, *radar_of(runs, (), found.metric)]


def radar_of(runs: Sequence[RunFolder], common: Sequence[Example], name: str) -> list[Any]:
    """The radar by the first that can part these runs' questions; hidden where nothing can."""
    axes = axes_of(runs, common)
    if not axes:
        return [gr.update(visible=False), *[gr.skip()] * 3]
    found = over(runs, common, name, axes[0])
    by = gr.update(choices=axes, value=axes[0])
    return [gr.update(visible=True), by, views_plots.radar(found), views_plots.radar_table(found)]


def on_radar(workbench: Workbench, compared: dict[str, Any], by: str | None) -> list[Any]:
    """Draw the radar over other axes, by the metric that was compared by."""
    if not compared or not by:
        return [gr.skip()] * 2
    runs = [workbench.open_run(one) for one in compared["runs"]]
    common = () if by == DATASETS else shared_by([examples_of(run) for run in runs])
    found = over(runs, common, compared["metric"], by.strip())
    return [views_plots.radar(found), views_plots.radar_table(found)]


def drawn(runs: Sequence[RunFolder], name: str, across: str) -> list[Any]:
    """The plot of quality against cost, and which runs it lacks."""
    named = [(run.name, with_metric(run, name)) for run in runs]
    return [views_plots.deployment(named, name, across), views.note(views_plots.unplotted(named, name, across))]


def with_metric(run: RunFolder, name: str) -> dict[str, Any]:
    """A run's report, with a metric in it that was chosen later."""
    report = dict(run.report() or {})
    if name not in report.get("metrics", {}):
        scores = list(scores_of(run, (name,))[name].values())
        report["metrics"] = {**report.get("metrics", {}), name: asdict(means({name: scores})[name])}
    return report


def on_plot(workbench: Workbench, compared: dict[str, Any], across: str) -> list[Any]:
    """Draw the plot with another cost, by the metric that was compared by."""
    if not compared:
        return [gr.skip()] * 2
    return drawn([workbench.open_run(one) for one in compared["runs"]], compared["metric"], across)


# two of them


def on_pair(workbench: Workbench, compared: dict[str, Any], other: str | None) -> list[Any]:
    """What was changed between the first run and another, and the questions that flipped."""
    if not compared or not other or other not in compared["runs"]:
        return [gr.skip()] * 5
    first, second = workbench.open_run(compared["runs"][0]), workbench.open_run(other)
    shown = views_compare.changed(changes(first.spec()["spec"], second.spec()["spec"]), first.name, second.name)
    rows, n = flipped_rows(first, second, compared["metric"])
    saved = views_compare.flipped_below(rows, n, compared["metric"])
    return [shown, gr.update(value=rows), saved, views.empty(NO_QUESTION if rows else "No question changed its score."), gr.update(interactive=False)]  # fmt: skip


def flipped_rows(first: RunFolder, second: RunFolder, name: str) -> tuple[list[list[Any]], int]:
    """One row per question whose score differs, gains first, at most FLIPPED_AT_MOST; and how many both have scored."""
    asked = [examples_of(run) for run in (first, second)]
    by_id = {example.question.qid: example for example in shared_by(asked)}
    left, right = ({q: v for q, v in scores_of(run, (name,))[name].items() if q in by_id} for run in (first, second))
    pair = compare(name, left, right, higher_is_better=metric(name).traits.get("higher_is_better", True) is not False)
    answers = [run.episodes() for run in (first, second)]
    rows: list[list[Any]] = []
    for change, qids in (("better", pair.gained), ("worse", pair.lost)):
        for qid in qids[: FLIPPED_AT_MOST - len(rows)]:
            example = by_id[qid]
            said = [episodes[qid].answer if qid in episodes else "" for episodes in answers]
            rows.append([qid, example.question.text, " / ".join(example.gold.answers[:3]), *said, change])
    return rows, pair.n


def on_select(event: gr.SelectData) -> str:
    """The id of the question that was clicked. Gradio gives no event to a partial."""
    return str(event.row_value[0])


def on_question(workbench: Workbench, compared: dict[str, Any], other: str | None, qid: str) -> list[Any]:
    """Both runs' steps for one question."""
    if not compared or not other or not qid:
        return [views.empty(NO_QUESTION), gr.update(interactive=False)]
    first, second = workbench.open_run(compared["runs"][0]), workbench.open_run(other)
    common = shared_by([examples_of(first), examples_of(second)])
    example = next((one for one in common if one.question.qid == qid), None)
    if example is None:
        raise UsageError(f"The question {qid!r} is not in both runs any more; press Compare again.")
    sides = [(run.name, run.episodes().get(qid)) for run in (first, second)]
    return [views_compare.question(example, sides), gr.update(interactive=True)]


def on_open(workbench: Workbench, compared: dict[str, Any], other: str | None, qid: str) -> dict[str, Any]:
    """Open the question with the other run's chain and steps in Develop."""
    if not compared or not other or not qid:
        raise UsageError("No question is chosen; click one of the table.")
    records = [str(record["id"]) for record in workbench.open_run(other).records()]
    if qid not in records:
        raise UsageError(f"The question {qid!r} is not in the run {other!r} any more; press Compare again.")
    return {"run": other, "position": records.index(qid) + 1, "at": time.time()}
