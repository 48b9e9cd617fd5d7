"""Runs: every run of the workspace, what it was asked and what it was worth; and the way to MLflow."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from html import escape
from typing import Any, TypeVar

import gradio as gr

from rallebench.analysis.baselines import compare_baselines
from rallebench.analysis.runs import waterfall_of
from rallebench.chains.saved import chain_from_json
from rallebench.core.errors import RalleError, UsageError
from rallebench.core.types import Action
from rallebench.engine.store import RunFolder
from rallebench.experiments.baselines import stored_baselines
from rallebench.gui import views, views_fall, views_runs, views_suites
from rallebench.gui.form import KINDS
from rallebench.gui.session import Session, guard, guard_stream
from rallebench.gui.tabs import TABS
from rallebench.services.workbench import Workbench
from rallebench.tracking import server
from rallebench.tracking.connection import tracking_uri_of, without_credentials
from rallebench.tracking.runs import read_link
from rallebench.workspace.coverage import MOST_PASSAGES
from rallebench.workspace.paths import Workspace

T = TypeVar("T")

NO_RUNS = (
    "No run yet. Open Develop and look at the chain there, then open Benchmark and press Run benchmark: "
    "the run appears here. On the command line: python -m rallebench run --chain starter."
)
NOTHING_CHOSEN = "Click a run to see its report, its chain and its warnings."
WIDTHS = [
    "17%",
    "7%",
    "7.4%",
    "4.9%",
    "5%",
    "5%",
    "5.2%",
    "7.3%",
    "7%",
    "6.8%",
    "6.8%",
    "6.2%",
    "7.9%",
    "6.5%",
]
TO_DETAILS = """() => {
    const hidden = document.getElementById("runs-details").getBoundingClientRect().top - window.innerHeight + 300;
    if (hidden > 0) window.scrollBy({ top: hidden, behavior: "smooth" });
}"""
"""Whoever clicks a run sees that something came of it, and still the table."""
CONTINUE = {
    "stopped": "It was stopped; open it in Benchmark and press Resume to go on.",
    "interrupted": "It was interrupted; open it in Benchmark and press Resume to go on.",
}


@TABS.register("runs", order=4, label="Runs")
def build(workbench: Workbench, session: Session, tab: gr.Tab, page: gr.Blocks) -> None:
    """Find a run, read it, open it in Benchmark or MLflow."""
    chosen = gr.State("")
    with gr.Row(equal_height=True, elem_classes="rb-tools"):
        words = gr.Textbox(
            label="Filter",
            placeholder="words of a run's name, question set or state",
            max_lines=1,
            elem_id="runs-filter",
            scale=6,
        )
        refresh = gr.Button("Refresh", elem_id="runs-refresh", scale=1, min_width=110)
    counted = gr.HTML(views.empty(NO_RUNS), elem_id="runs-counted", elem_classes="rb-flush")
    table = gr.Dataframe(
        headers=list(views_runs.RUN_COLUMNS),
        interactive=False,
        wrap=True,
        show_label=False,
        max_height=420,
        column_widths=WIDTHS,
        visible=False,
        elem_id="runs-table",
    )
    with gr.Row():
        benchmark = gr.Button(
            "Open in Benchmark", variant="primary", interactive=False, elem_id="runs-open-benchmark"
        )
        send = gr.Button("Send to MLflow", interactive=False, elem_id="runs-send-mlflow")
        start = gr.Button("Start MLflow's page", elem_id="runs-start-mlflow")
    status = gr.HTML(elem_id="runs-status", elem_classes="rb-flush")
    mlflow = gr.HTML(elem_id="runs-mlflow", elem_classes="rb-flush")
    details = gr.HTML(views.empty(NOTHING_CHOSEN), elem_id="runs-details", elem_classes="rb-flush")

    listed, read = [counted, table], [details, benchmark, send]
    gr.on(
        [refresh.click, tab.select],
        partial(guard, on_refresh, workbench),
        [words, chosen],
        [*listed, *read, mlflow],
        show_progress="hidden",
    )
    words.change(  # at ``input`` the value is still the old one if all of it came at once
        partial(guard, on_filter, workbench),
        [words],
        listed,
        show_progress="hidden",
        trigger_mode="always_last",
    )
    clicked = table.select(on_select, None, [chosen, status], show_progress="hidden")
    told = clicked.then(
        partial(guard, on_chosen, workbench), [chosen], read, show_progress="hidden"
    )
    told.then(None, None, None, js=TO_DETAILS)
    benchmark.click(
        partial(guard, on_open_benchmark, workbench), [chosen], [session.tabs, session.followed]
    )
    send.click(
        partial(guard_stream, on_send, workbench),
        [chosen],
        [status, details],
        show_progress="hidden",
    )
    start.click(
        partial(guard_stream, on_start_mlflow, workbench), None, [mlflow], show_progress="hidden"
    )


# the list


def on_refresh(workbench: Workbench, words: str, chosen: str) -> list[Any]:
    """Read the workspace again: the list, the chosen run, MLflow."""
    return [*listing(workbench, words), *reading(workbench, chosen), mlflow_line(workbench)]


def on_filter(workbench: Workbench, words: str) -> list[Any]:
    """Show the runs that fit."""
    return listing(workbench, words)


def listing(workbench: Workbench, words: str) -> list[Any]:
    """What stands above the table, and the table."""
    rows, damaged = rows_of(workbench.runs.list())
    fitting = [row for row in rows if fits(row, words)]
    said = counted(len(fitting), len(rows)) + "".join(map(views.error, damaged))
    return [said, gr.update(value=fitting, visible=bool(fitting))]


def rows_of(runs: Sequence[RunFolder]) -> tuple[list[list[Any]], list[str]]:
    """A row per run, and a sentence per damaged one, which has a row too."""
    rows, damaged = [], []
    for run in runs:
        try:
            rows.append(whole(run, row_of))
        except UsageError as error:
            rows.append([run.name, "damaged", *[""] * (len(views_runs.RUN_COLUMNS) - 2)])
            damaged.append(str(error))
    return rows, damaged


def row_of(run: RunFolder) -> list[Any]:
    """One line of the table."""
    return views_runs.run_rows([run])[0]


def whole(run: RunFolder, read: Callable[[RunFolder], T]) -> T:
    """What ``read`` finds in a run folder; UsageError with a sentence if the folder is damaged."""
    try:
        return read(run)
    except RalleError as error:
        reason = str(error)
    except KeyError as error:
        reason = f"A file in it lacks {error}."
    except (TypeError, ValueError, AttributeError, IndexError, OSError) as error:
        reason = f"A file in it is not what it should be ({error})."
    raise UsageError(
        f"The run {run.name!r} is damaged. {reason} Put the file back from a copy, or move {run.path} away."
    )


def fits(row: Sequence[Any], words: str) -> bool:
    """Whether a row holds every word.

    >>> fits(["Night-run", "done"], "night DONE"), fits(["Night-run", "done"], "failed")
    (True, False)
    """
    text = " ".join(str(cell) for cell in row).lower()
    return all(word in text for word in (words or "").lower().split())


def counted(shown: int, total: int) -> str:
    """How many runs there are, and what a click does."""
    if not total:
        return views.empty(NO_RUNS)
    if not shown:
        return views.note(f"None of the {total} runs fits the filter; take words out of it.")
    runs = f"{total} run{'s' * (total != 1)}" if shown == total else f"{shown} of {total} runs"
    return f'<div class="rb-label">{runs}, the newest first. {NOTHING_CHOSEN}</div>'


# one run


def on_select(event: gr.SelectData) -> list[str]:
    """Another run was clicked; what was said of the old one goes. Gradio gives no event to a partial."""
    return [str(event.row_value[0]), ""]


def on_chosen(workbench: Workbench, chosen: str) -> list[Any]:
    """Show the chosen run."""
    return reading(workbench, chosen)


def reading(workbench: Workbench, chosen: str) -> list[Any]:
    """The chosen run, and whether it can be opened and sent."""
    if not chosen:
        return [views.empty(NOTHING_CHOSEN), *[gr.update(interactive=False)] * 2]
    try:
        shown, usable = (
            whole(workbench.runs.open(chosen), partial(run_view, workbench.workspace)),
            True,
        )
    except RalleError as error:
        shown, usable = views.error(str(error)), False
    return [shown, *[gr.update(interactive=usable)] * 2]


def run_view(workspace: Workspace, run: RunFolder) -> str:
    """Everything about a run: facts, warnings, chain, report, where it lost its questions."""
    made, state = run.spec(), run.state()
    return (
        facts(run, made, state)
        + warnings(state)
        + chain(made["spec"])
        + report(workspace, run)
        + lost(workspace, run)
    )


def facts(run: RunFolder, made: Mapping[str, Any], state: Mapping[str, Any]) -> str:
    """Name, state and settings of a run, where it lies, and whether MLflow has it."""
    known = [("batch size", made.get("batch_size")), ("seed", made["spec"].get("seed"))]
    known += [("limit", made["spec"].get("limit")), ("made", made.get("created"))]
    known += [
        ("fingerprint", made["fingerprint"]),
        ("rallebench", made.get("versions", {}).get("rallebench")),
    ]
    badges = "".join(views.badge(f"{name} {value}") for name, value in known if value is not None)
    tracked = read_link(run.path).get("tracking_uri")
    badges += (
        views.badge(f"in MLflow: {tracked}", "page") if tracked else views.badge("not in MLflow")
    )
    return (
        f'<div class="rb-label"><b>{escape(run.name)}</b>{views_runs.state_badge(str(state["state"]))}'
        f"{badges}<span>{escape(str(run.path))}</span></div>"
    )


def warnings(state: Mapping[str, Any]) -> str:
    """What the run warned of, why it failed, and how to go on."""
    said = str(state.get("message") or "")
    shown = (views.error(said) if state["state"] == "failed" else views.note(said)) if said else ""
    return shown + views.note(CONTINUE.get(str(state["state"]), ""))


def report(workspace: Workspace, run: RunFolder) -> str:
    """All metrics, those of the baselines, the cost, and the errors of questions that failed."""
    lines = stored_baselines(workspace, run)
    own = (run.report() or {}).get("suite")
    return (views_suites.own_numbers(own) if own else "") + views_runs.whole_report(
        run, compare_baselines(run, lines) if lines else None
    )


def lost(workspace: Workspace, run: RunFolder) -> str:
    """The waterfall of a run that was scored; its questions are listed in Benchmark."""
    if not run.report():
        return ""
    fall = waterfall_of(run, workspace, at_most=MOST_PASSAGES)
    return views_fall.lost(
        run.name, fall, "Open the run in Benchmark to list the questions of a stage."
    )


def chain(spec: Mapping[str, Any]) -> str:
    """What was run, action by action, templates as they were typed."""
    made = spec["settings"].get("chain")
    if made is None:
        text = json.dumps(spec["settings"], ensure_ascii=False, indent=2)
        return views.text_box(f"Workflow {spec['workflow']}", escape(text))
    actions = chain_from_json(made).actions
    return "".join(action_view(number, action) for number, action in enumerate(actions, 1))


def action_view(number: int, action: Action) -> str:
    """One action: who was asked, how, and with which template."""
    kind = {value: label for label, value in KINDS}[action.kind]
    told = [action.target, f"k = {action.k}" if action.kind == "retrieve" else "", action.dialect]
    told += [f"{name}: {value}" for name, value in action.generation.items()]
    body = (
        escape(action.template)
        or '<span class="rb-empty">empty template: the chain ends here</span>'
    )
    return views.text_box(
        f"Action {number}: {kind}", body, "".join(views.badge(text) for text in told if text)
    )


def on_open_benchmark(workbench: Workbench, chosen: str) -> list[Any]:
    """Follow the run in Benchmark: its questions, Resume."""
    return [gr.Tabs(selected="benchmark"), opened(workbench, chosen).name]


def opened(workbench: Workbench, chosen: str) -> RunFolder:
    """The chosen run, whole. Raises UsageError."""
    if not chosen:
        raise UsageError("No run is chosen; click one in the table.")
    run = workbench.runs.open(chosen)
    whole(run, partial(run_view, workbench.workspace))
    return run


# MLflow


def on_send(workbench: Workbench, chosen: str) -> Iterator[list[Any]]:
    """Log the run to MLflow, again if it is there already."""
    run = opened(workbench, chosen)
    yield [views.note(f"Sending {run.name} to MLflow …"), gr.skip()]
    problem = workbench.tracking.track_run(run)
    said = views.error(problem) if problem else views.note(f"{run.name} is in MLflow now.", "good")
    yield [said, reading(workbench, chosen)[0]]


def on_start_mlflow(workbench: Workbench) -> Iterator[str]:
    """Start MLflow's page, then link to it."""
    try:
        for said in workbench.tracking.start_mlflow():
            told = link(workbench, said) if said.startswith("http") else views.note(said)
            yield told + by_hand(workbench)
    except RalleError as error:
        yield views.error(str(error)) + by_hand(workbench)


def mlflow_line(workbench: Workbench) -> str:
    """Where MLflow's page is now, or how to start it."""
    try:
        url = server.page_address(workbench.workspace.path, tracking_uri=workbench.tracking_uri)
        return (link(workbench, url) if url else "") + by_hand(workbench)
    except RalleError as error:
        return views.error(str(error))


def link(workbench: Workbench, url: str) -> str:
    """A link to MLflow's page: to the table of runs, where one of the workspace is known to be there."""
    target, shown = escape(runs_page(workbench, url), quote=True), escape(url)
    where = " (for a browser on the machine that runs rallebench)" if "://127.0.0.1" in url else ""
    return (
        f'<div class="rb-good">MLflow\'s page: <a href="{target}" target="_blank" rel="noopener">{shown}</a>'
        f"{where}</div>"
    )


def runs_page(workbench: Workbench, url: str) -> str:
    """Where MLflow's page at ``url`` lists the workspace's runs; ``url`` itself if none is known there."""
    uri = without_credentials(tracking_uri_of(workbench.workspace.path, workbench.tracking_uri))
    logged = (read_link(run.path) for run in workbench.runs.list())
    known = (entry.get("experiment_id") for entry in logged if entry.get("tracking_uri") == uri)
    experiment = next(filter(None, known), "")
    return f"{url}/#/experiments/{experiment}/runs" if experiment else url


def by_hand(workbench: Workbench) -> str:
    """The command that opens MLflow's page without rallebench."""
    command = server.open_command(workbench.workspace.path, workbench.tracking_uri)
    return (
        f'<div class="rb-label"><span>MLflow by hand:</span> <code>{escape(command)}</code></div>'
    )
