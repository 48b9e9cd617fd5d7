"""Compare: runs beside each other, where they lose, whether a change helped, and on which questions."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import gradio as gr

from rallebench.analysis.changes import changes
from rallebench.analysis.many import HEADLINES, Many, compare_many
from rallebench.analysis.runs import waterfall_of
from rallebench.bench.store import RunFolder
from rallebench.errors import RalleError, UsageError
from rallebench.gui import views, views_compare
from rallebench.gui.session import Session, guard
from rallebench.gui.tabs import TABS
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
    compared = gr.State([])
    chosen, name, start = draw_choice()
    said = gr.HTML(views.empty(NOTHING), elem_id="compare-status", elem_classes="rb-flush")
    with gr.Column(visible=False) as results:
        metrics, differences = draw_tables()
        falls = section("Where questions were lost", "compare-waterfalls")
        other, changed, flipped, question, opens = draw_pair()
        across, plot = draw_plot()
    gr.on([tab.select], partial(guard, on_offer, workbench), [chosen], [chosen], show_progress="hidden")
    shown = [said, results, compared, metrics, differences, falls, other, plot]
    compare = start.click(
        partial(guard, on_compare, workbench), [chosen, name, across], shown, show_progress="hidden"
    )
    pair = [changed, flipped, question, opens]
    compare.then(partial(guard, on_pair, workbench), [compared, name, other], pair, show_progress="hidden")
    other.input(partial(guard, on_pair, workbench), [compared, name, other], pair, show_progress="hidden")
    across.input(partial(guard, on_plot, workbench), [compared, name, across], [plot], show_progress="hidden")
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


def draw_pair() -> tuple[gr.Dropdown, gr.HTML, gr.Dataframe, gr.HTML, gr.Button]:
    """What was changed between two runs, and what that did to each question."""
    gr.Markdown("### Two runs side by side", elem_classes="rb-section")
    other = gr.Dropdown([], label="The first run, and", allow_custom_value=True, elem_id="compare-other")
    changed = gr.HTML(elem_id="compare-changes", elem_classes="rb-flush")
    flipped = gr.Dataframe(
        headers=list(views_compare.FLIPPED_COLUMNS), interactive=False, wrap=True, show_label=False, max_height=360,
        column_widths=["12%", "28%", "18%", "16%", "16%", "10%"], elem_id="compare-flipped",
    )  # fmt: skip
    question = gr.HTML(views.empty(NO_QUESTION), elem_id="compare-question", elem_classes="rb-flush")
    opens = gr.Button("Open this question of the other run in Develop", interactive=False, elem_id="compare-open")
    return other, changed, flipped, question, opens


def draw_plot() -> tuple[gr.Dropdown, gr.Plot]:
    """Quality against cost."""
    gr.Markdown("### Quality against cost", elem_classes="rb-section")
    axes = [(label, key) for key, label in views_compare.COST_AXES.items()]
    across = gr.Dropdown(axes, value="seconds_per_question", label="Across", elem_id="compare-x")
    return across, gr.Plot(show_label=False, elem_id="compare-plot")


# what is chosen


def on_offer(workbench: Workbench, chosen: list[str]) -> Any:
    """The runs that have a report, the newest first."""
    names = [run.name for run in workbench.runs() if run.report()]
    return gr.update(choices=names, value=[name for name in chosen or [] if name in names])


def on_compare(workbench: Workbench, chosen: list[str], name: str, across: str) -> list[Any]:
    """Compare the chosen runs; a refusal leaves what stands there."""
    try:
        runs = [workbench.open_run(one) for one in chosen or []]
        found = compare_many(runs, (name or "").strip())
    except RalleError as error:
        return [views.error(str(error)), gr.update(visible=False), [], *[gr.skip()] * 5]
    others = [run.name for run in runs[1:]]
    qids = {example.question.qid for example in found.common}
    falls = [(run.name, waterfall_of(run, workbench.workspace).within(qids)) for run in runs]
    return [
        "", gr.update(visible=True), [run.name for run in runs], views_compare.table(found),
        views_compare.differences(found), views_compare.waterfalls(falls), gr.update(choices=others, value=others[0]), drawn(runs, found, across),
    ]  # fmt: skip


def drawn(runs: Sequence[RunFolder], found: Many, across: str) -> Any:
    """The plot of quality against cost."""
    return views_compare.deployment([(run.name, run.report() or {}) for run in runs], found.metric, across)


def on_plot(workbench: Workbench, compared: list[str], name: str, across: str) -> Any:
    """Draw the plot with another cost."""
    if not compared:
        return gr.skip()
    runs = [workbench.open_run(one) for one in compared]
    return drawn(runs, compare_many(runs, (name or "").strip()), across)


# two of them


def on_pair(workbench: Workbench, compared: list[str], name: str, other: str | None) -> list[Any]:
    """What was changed between the first run and another, and the questions that flipped."""
    if not compared or not other:
        return [gr.skip()] * 4
    first, second = workbench.open_run(compared[0]), workbench.open_run(other)
    shown = views_compare.changed(changes(first.spec()["spec"], second.spec()["spec"]), first.name, second.name)
    rows = flipped_rows(first, second, (name or "").strip())
    return [shown, gr.update(value=rows), views.empty(NO_QUESTION if rows else "No question changed its score."), gr.update(interactive=False)]  # fmt: skip


def flipped_rows(first: RunFolder, second: RunFolder, name: str) -> list[list[Any]]:
    """One row per question whose score differs, gains first, at most FLIPPED_AT_MOST."""
    found = compare_many([first, second], name)
    pair = found.against[0].paired
    by_id = {example.question.qid: example for example in found.common}
    answers = [run.episodes() for run in (first, second)]
    rows: list[list[Any]] = []
    for change, qids in (("better", pair.gained), ("worse", pair.lost)):
        for qid in qids[: FLIPPED_AT_MOST - len(rows)]:
            example = by_id[qid]
            said = [episodes[qid].answer if qid in episodes else "" for episodes in answers]
            rows.append([qid, example.question.text, " / ".join(example.gold.answers[:3]), *said, change])
    return rows


def on_select(event: gr.SelectData) -> str:
    """The id of the question that was clicked. Gradio gives no event to a partial."""
    return str(event.row_value[0])


def on_question(workbench: Workbench, compared: list[str], other: str | None, qid: str) -> list[Any]:
    """Both runs' steps for one question."""
    if not compared or not other or not qid:
        return [views.empty(NO_QUESTION), gr.update(interactive=False)]
    first, second = workbench.open_run(compared[0]), workbench.open_run(other)
    found = compare_many([first, second])
    example = next((one for one in found.common if one.question.qid == qid), None)
    if example is None:
        raise UsageError(f"The question {qid!r} is not in both runs any more; press Compare again.")
    sides = [(run.name, run.episodes().get(qid)) for run in (first, second)]
    return [views_compare.question(example, sides), gr.update(interactive=True)]


def on_open(workbench: Workbench, compared: list[str], other: str | None, qid: str) -> dict[str, Any]:
    """Open the question with the other run's chain and steps in Develop."""
    if not compared or not other or not qid:
        raise UsageError("No question is chosen; click one of the table.")
    records = [str(record["id"]) for record in workbench.open_run(other).records()]
    if qid not in records:
        raise UsageError(f"The question {qid!r} is not in the run {other!r} any more; press Compare again.")
    return {"run": other, "position": records.index(qid) + 1, "at": time.time()}
