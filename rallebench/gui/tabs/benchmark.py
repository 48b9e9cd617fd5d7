"""Benchmark: run the chain of Develop over a question set, watch it, stop and resume it, read every question."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import Any

import gradio as gr

from rallebench.analysis.baselines import BaselineComparison, compare_baselines
from rallebench.analysis.runs import waterfall_of
from rallebench.core.errors import RalleError, UsageError
from rallebench.core.events import Failed, Finished, Progress
from rallebench.core.runs import RunOptions
from rallebench.engine.store import RunFolder
from rallebench.experiments.baselines import KINDS, baseline_name, stored_baselines
from rallebench.experiments.benchmark import prepare
from rallebench.gui import form, views, views_fall, views_questions, views_runs
from rallebench.gui.session import Session, guard
from rallebench.gui.tabs import TABS
from rallebench.gui.works import baselines_of
from rallebench.metrics import METRICS
from rallebench.services.episodes import is_agents
from rallebench.services.jobs import Job
from rallebench.services.runs import phase_of
from rallebench.services.workbench import Workbench
from rallebench.workspace.coverage import MOST_PASSAGES
from rallebench.workspace.flows import chain_flow
from rallebench.workspace.paths import DEFAULT_DATASET

NOTHING = (
    "No run is followed. Press Run benchmark: it benchmarks the chain that stands in Develop. "
    "An earlier run is opened in Runs."
)
CLICK_A_STAGE = "Click a stage to list its questions below, or choose it under Questions."
CLICKED_STAGE = """
element.addEventListener("click", function (event) {
    const part = event.target.closest("[data-stage]");
    if (part) trigger("click", { stage: part.dataset.stage });
});
"""
"""A click on a stage of the waterfall tells which."""
WIDTHS = ["4%", "20%", "13%", "12%", "5.5%", "5.5%", "6.5%", "6%", "5.5%", "8%", "7.5%", "6.5%"]


@TABS.register("benchmark", order=3, label="Benchmark")
def build(workbench: Workbench, session: Session, tab: gr.Tab, page: gr.Blocks) -> None:
    """Benchmark the chain with one click."""
    followed, shown = session.followed, gr.State("")
    dataset, *settings = draw_settings(workbench)
    run, stop, resume, references, track = draw_buttons()
    progress = gr.HTML(views.empty(NOTHING), elem_id="benchmark-progress", elem_classes="rb-flush")
    which, results = draw_results()
    _, falls, questions, counted = results

    gr.Timer(1.0).tick(
        partial(guard, on_tick, workbench),
        [followed, shown, which],
        [followed, shown, progress, *results],
        show_progress="hidden",
    )
    run.click(
        partial(guard, on_run, workbench),
        [dataset, *settings, track, *session.form],
        [followed, shown, progress, *results],
        show_progress_on=[progress],
    )
    stop.click(partial(guard, on_stop, workbench), [followed], [progress], show_progress="hidden")
    resume.click(
        partial(guard, on_resume, workbench),
        [followed, track],
        [shown, progress],
        show_progress_on=[progress],
    )
    references.click(
        partial(guard, on_references, workbench),
        [followed, track],
        [progress],
        show_progress_on=[progress],
    )
    falls.click(on_stage, None, [which], show_progress="hidden")
    which.change(
        partial(guard, on_filter, workbench),
        [followed, which],
        [questions, counted],
        show_progress_on=[counted],
    )
    questions.select(on_select, [followed], [session.open_question], show_progress="hidden")
    session.dataset.change(on_developed, [session.dataset], [dataset], show_progress="hidden")
    tab.select(partial(guard, on_names, workbench), None, [dataset], show_progress="hidden")


def draw_settings(workbench: Workbench) -> list[Any]:
    """What a run is asked for: question set, number of questions, batch size, name, metrics."""
    with gr.Row(equal_height=True):
        dataset = gr.Dropdown(
            list(workbench.workspace.dataset_paths()),
            value=DEFAULT_DATASET,
            label="Question set",
            allow_custom_value=True,
            elem_id="benchmark-dataset",
            scale=3,
        )
        limit = gr.Textbox(
            label="Number of questions",
            placeholder="all",
            max_lines=1,
            elem_id="benchmark-limit",
            scale=2,
            min_width=130,
        )
        batch_size = gr.Number(
            20, label="Batch size", elem_id="benchmark-batch-size", scale=1, min_width=100
        )
        name = gr.Textbox(
            label="Run name",
            placeholder="made for you",
            elem_id="benchmark-name",
            scale=3,
            max_lines=1,
        )
        metrics = gr.Dropdown(
            list(METRICS.names()),
            multiselect=True,
            label="Metrics (none chosen = all that the gold allows)",
            allow_custom_value=True,
            elem_id="benchmark-metrics",
            scale=4,
        )
    return [dataset, limit, batch_size, name, metrics]


def draw_buttons() -> list[Any]:
    """Run, stop, resume, baselines, and whether MLflow is told."""
    with gr.Row(elem_classes="rb-tools"):
        return [
            gr.Button("Run benchmark", variant="primary", elem_id="benchmark-run", scale=2),
            gr.Button("Stop", elem_id="benchmark-stop", scale=1),
            gr.Button("Resume", elem_id="benchmark-resume", scale=1),
            gr.Button("Baselines", elem_id="benchmark-references", scale=1),
            gr.Checkbox(
                True,
                label="Log to MLflow",
                elem_id="benchmark-track",
                scale=1,
                min_width=150,
                container=False,
            ),
        ]


def draw_results() -> tuple[Any, list[Any]]:
    """The filter of questions; report, waterfall, table of questions and their number, empty as yet."""
    report = gr.HTML(elem_id="benchmark-report", elem_classes="rb-flush")
    falls = gr.HTML(
        elem_id="benchmark-waterfall", elem_classes="rb-flush", js_on_load=CLICKED_STAGE
    )
    with gr.Row(equal_height=True):
        which = gr.Dropdown(
            [*views_questions.FILTERS, *views_questions.STAGE_FILTERS],
            value="all",
            label="Questions",
            elem_id="benchmark-filter",
            scale=2,
        )
        counted = gr.HTML(elem_id="benchmark-counted")
    questions = gr.Dataframe(
        headers=list(views_questions.QUESTION_COLUMNS),
        interactive=False,
        wrap=True,
        elem_id="benchmark-questions",
        show_label=False,
        max_height=520,
        column_widths=WIDTHS,
    )
    return which, [report, falls, questions, counted]


def on_run(
    workbench: Workbench,
    dataset: str,
    limit: str,
    batch_size: float | None,
    name: str,
    metrics: list[str],
    track: bool,
    *values: Any,
) -> list[Any]:
    """Check the plan, then run it in the background."""
    chain = form.read_chain(values)
    plan = prepare(
        workbench.workspace,
        chain_flow(chain),
        dataset,
        limit=form.whole_number(limit, "The number of questions"),
        batch_size=20
        if (size := form.whole_number(batch_size, "The batch size")) is None
        else size,
        name=name.strip(),
        metrics=tuple(metrics) or None,
        track=track,
    )
    job = workbench.runs.start(plan)
    return [job.name, "", warned(job) + views_runs.live(job.name, {}, "loading"), "", "", [], ""]


def on_tick(workbench: Workbench, followed: str, shown: str, which: str) -> list[Any]:
    """Follow the run folder; a fresh page follows what is running, or what ran last while it was away.

    Results are drawn once, when a run ends, and again when one of its baselines does.
    """
    followed = followed or newest(workbench)
    nothing = [gr.skip()] * 4
    if not followed:
        return [followed, shown, gr.skip(), *nothing]
    try:
        progress, ended = now(workbench, followed)
    except RalleError as error:  # said once, not every second
        progress, ended = views.error(str(error)), "unreadable"
    mark = f"{followed} {ended}"
    if not ended:
        return [followed, mark, progress, *nothing]
    if mark == shown:
        return [
            gr.skip(),
            gr.skip(),
            progress if followed in baselines_of(workbench).going_on() else gr.skip(),
            *nothing,
        ]
    return [followed, mark, progress, *result(workbench, followed, which)]


def newest(workbench: Workbench) -> str:
    """What is running now, a run before its baselines; else what this process ran last, '' if nothing."""
    lines = baselines_of(workbench)
    runs = workbench.runs
    jobs = [job.name for job in workbench.jobs.list("run") if runs.folder_of(job) is not None]
    running = next(iter(lines.going_on()), "") or workbench.runs.running()
    return running or next(reversed([*lines.ended(), *jobs]), "")


def now(workbench: Workbench, name: str) -> tuple[str, str]:
    """(HTML of where the run and its baselines stand, its version once it has ended or '')."""
    progress, version = run_now(workbench, name)
    progress = warned(workbench.jobs.get("run", name)) + progress
    works = baselines_of(workbench)
    end = works.ended().get(name)
    if not version or (name not in works.going_on() and end is None):
        return progress, version
    if isinstance(end, RalleError):
        return progress + views.error(str(end)), f"{version} {end}"
    if end is not None:
        lines = [(f"{name} {line}", {}, "", why) for line, why in end.report.failed.items()]
        lines += [(run.run, {}, "done", "") for run in end.runs]
        return progress + views_runs.lines_live(lines), f"{version} ended"
    newest = {event.task: event for event in works.said(name) if event.task in KINDS}
    stopping = "stopping" * (name in works.stopping())
    lines = [line_now(name, line, event, stopping) for line, event in newest.items()]
    done = sum(bool(phase == "done" or failed) for _, _, phase, failed in lines)
    return progress + views_runs.lines_live(lines), f"{version} {done}"


def line_now(
    run: str, line: str, event: Any, stopping: str
) -> tuple[str, dict[str, Any], str, str]:
    """(name, state, phase, error) of a baseline whose newest event this is."""
    name = baseline_name(run, line)
    if isinstance(event, Finished):
        return name, {}, "done", ""
    if isinstance(event, Failed):
        return name, {}, "", event.error
    state = (
        {"state": "running", "done": event.done, "total": event.total or 0}
        if isinstance(event, Progress)
        else {}
    )
    return name, state, stopping, ""


def warned(job: Job | None) -> str:
    """What the user should know of a run that goes on; once it has ended its own message says it."""
    return views.note(job.warning) if job is not None and job.warning and not job.done else ""


def run_now(workbench: Workbench, name: str) -> tuple[str, str]:
    """(HTML of where the run stands, its version once it has ended or '')."""
    job = workbench.jobs.get("run", name)
    opened = job is not None and workbench.runs.folder_of(job) is not None
    if job is not None and not job.done and not opened:
        return views_runs.live(name, {}, phase_of(job), job.message), ""
    if job is not None and job.error and not opened:
        return views_runs.live(name, {}, failure=str(job.error)), "failed"
    state = workbench.runs.open(name).state()
    active = job is not None and not job.done
    phase = phase_of(job).replace("running", "") if job is not None and active else ""
    if phase == "tracking":
        return views_runs.live(
            name, state, phase, "The report is ready; it is being logged to MLflow."
        ), "tracking"
    running = active or state["state"] in ("running", "scoring")
    return views_runs.live(
        name, state, phase
    ), "" if running else f"{state['state']} {state.get('updated', '')}"


def result(workbench: Workbench, name: str, which: str) -> list[Any]:
    """Report, waterfall, question rows and their number."""
    try:
        folder = workbench.runs.open(name)
        fall = waterfall_of(folder, workbench.workspace, at_most=MOST_PASSAGES)
        rows = views_questions.question_rows(folder, which, fall)
        report = views_runs.whole_report(folder, beside_lines(workbench, folder))
        return [
            report,
            views_fall.lost(folder.name, fall, CLICK_A_STAGE),
            rows,
            counted(folder, rows),
        ]
    except RalleError:  # the progress line says what is wrong with the run
        return ["", "", [], ""]


def beside_lines(workbench: Workbench, folder: RunFolder) -> BaselineComparison | None:
    """The run and its baselines; None where it has none yet."""
    lines = stored_baselines(workbench.workspace, folder)
    return compare_baselines(folder, lines) if lines else None


def counted(folder: RunFolder, rows: list[Any]) -> str:
    """How many questions the table shows, and what a click does."""
    text = (
        f"{len(rows)} question{'s' * (len(rows) != 1)}. {opened_where(folder)}"
        if rows
        else "No question fits this filter."
    )
    return f'<div class="rb-label">{text}</div>'


def opened_where(folder: RunFolder) -> str:
    """Where a question of a run can be read: only a chain's and an agent's have a tab that takes it up."""
    if is_agents(folder):
        return "Click one to open it in Agent."
    if "chain" in folder.spec()["spec"]["settings"]:
        return "Click one to open it in Develop."
    return (
        f"No chain made them, so none can be opened in Develop; read them in {_where_read(folder)}."
    )


def on_stop(workbench: Workbench, followed: str) -> str:
    """Stop after the current batch; what is answered is kept."""
    if not followed:
        raise UsageError("No run is followed, so there is nothing to stop.")
    if followed in baselines_of(workbench).going_on():
        baselines_of(workbench).stop(followed)
        return views.note(f"Stopping the baselines of {followed} after the current batch …")
    if now(workbench, followed)[1]:
        raise UsageError(f"The run {followed!r} has ended, so there is nothing to stop.")
    workbench.runs.stop(followed)
    return views.note(f"Stopping {followed} after the current batch …")


def on_resume(workbench: Workbench, followed: str, track: bool) -> list[Any]:
    """Continue the followed run where it stopped."""
    if not followed:
        raise UsageError("No run is followed; open one in Runs, then resume it here.")
    benchmark = workbench.runs.resume(followed)
    options = replace(benchmark.options, track=track)
    workbench.runs.start(replace(benchmark, options=options))
    return ["", views_runs.live(followed, {}, "loading")]


def on_references(workbench: Workbench, followed: str, track: bool) -> str:
    """Run the missing baselines of the followed run in the background."""
    if not followed:
        raise UsageError("No run is followed; press Run benchmark, or open an earlier run in Runs.")
    if not now(workbench, followed)[1]:
        raise UsageError(f"The run {followed!r} goes on; ask for its baselines when it has ended.")
    request = workbench.experiments.baselines(followed)
    work = workbench.experiments.run(request, RunOptions(track=bool(track)))
    next(baselines_of(workbench).follow(followed, followed, lambda: work), None)
    return now(workbench, followed)[0]


def on_stage(event: gr.EventData) -> Any:
    """List the questions of the stage that was clicked. Gradio gives no event to a partial."""
    chosen = [name for name, stage in views_questions.STAGE_FILTERS.items() if stage == event.stage]
    return chosen[0] if chosen else gr.skip()


def on_filter(workbench: Workbench, followed: str, which: str) -> list[Any]:
    """Show the questions that fit."""
    if not followed:
        return [[], ""]
    folder = workbench.runs.open(followed)
    fall = (
        waterfall_of(folder, workbench.workspace, at_most=MOST_PASSAGES)
        if which in views_questions.STAGE_FILTERS
        else None
    )
    rows = views_questions.question_rows(folder, which, fall)
    return [rows, counted(folder, rows)]


def on_select(followed: str, event: gr.SelectData) -> dict[str, Any]:
    """Ask Develop, or Agent, to open the clicked question; the time makes a second click on it count."""
    return {"run": followed, "position": int(event.row_value[0]), "at": time.time()}


def on_developed(dataset: str) -> str:
    """Benchmark the question set that Develop shows; another one can still be chosen here."""
    return dataset


def on_names(workbench: Workbench) -> Any:
    """Offer the question sets that exist now."""
    return gr.update(choices=list(workbench.workspace.dataset_paths()))


def _where_read(folder: RunFolder) -> str:
    """Where the questions of a run that no chain made can be read."""
    is_imported = folder.spec()["spec"]["workflow"] == "imported"
    return "Runs or Compare" if is_imported else "Suites, under Read the answers"
