"""Runs: start a run, add metrics, import predictions, export, log to MLflow. Other modules show the runs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from markupsafe import Markup

from rallebench.core.errors import RalleError, UsageError
from rallebench.core.numbers import plural
from rallebench.core.runs import PreparedRun, RunOptions
from rallebench.gui import forecasts, form, html, panels
from rallebench.gui.addresses import RunAddress, RunsAddress
from rallebench.gui.events import Event
from rallebench.gui.frame import PLACES, Page
from rallebench.gui.html import escape
from rallebench.gui.patches import Download, Patch
from rallebench.gui.places import (
    _agent,
    _runs_change,
    _runs_compare,
    _runs_labels,
    _runs_list,
    _runs_one,
    _trace,
)
from rallebench.gui.places._bench import Bench, window_bench
from rallebench.gui.places._few import window_grid
from rallebench.gui.places._runs_list import view
from rallebench.render import report as reports
from rallebench.services import exchange
from rallebench.services.run_forecasts import forecast_run
from rallebench.views import catalog, gold_coverage, run_views
from rallebench.views.chain_versions import is_saved
from rallebench.views.reports import build_report
from rallebench.views.run_requests import BenchmarkOptions, of_chain, of_flow

PATIENCE = 0.7
"""Seconds to search the reply cache for the plan of a new run."""
FORMS = {
    "csv": ("CSV, a line a question", ".csv"),
    "jsonl": ("JSON lines, all steps", ".jsonl"),
    "trec": ("TREC run", ".trec"),
    "qrels": ("TREC judgements (qrels)", ".qrels"),
    "msmarco": ("MS MARCO run, three columns", ".tsv"),
    "run-json": ("Run as one JSON object (ranx, BEIR)", ".json"),
    "kilt": ("KILT predictions", ".jsonl"),
    "squad": ("SQuAD predictions, one JSON object", ".json"),
    "r-eval": ("R-Eval log", ".json"),
}
"""Export format → its name and file suffix."""


@PLACES.register("runs", label="Runs", order=2)
def runs(page: Page) -> None:
    """Run a chain over a dataset, read the result, compare."""
    page.view("runs/list", open_list)
    page.actions("runs", ask_form, download, report, reads=True)
    page.actions("runs", new, check, start, ask_metrics, rescore, ask_predictions, import_file)
    page.actions("runs", mlflow, track)
    for part in (_runs_list, _runs_one, _runs_labels, _runs_change, _runs_compare, _trace):
        part.register(page)


def open_list(page: Page, event: Event) -> Patch:
    """Open the list; ``new=1`` in the address opens the dialog for a new run."""
    if event.read(RunsAddress).new and not page.read_only:
        return view(page, event) | new(page, event) | Patch(address="#/runs/list")
    return view(page, event)


# a new run


def new(page: Page, event: Event) -> Patch:
    """Open the dialog for a new run of a chain, or of the ``agent`` chosen in this window."""
    bench, space = window_bench(page, event), page.workspace
    title, gist = "Run the agent on a dataset", "metrics, name"
    parts: list[str] = [form.hidden_fields(agent="on")]
    if not event.flag("agent"):
        title, gist = "New run", "model, metrics, name"
        parts = chain_fields(page, bench)
    fields = form.fields(
        parts[0],
        form.chooser("Dataset", "dataset", list(space.dataset_paths()), bench.dataset),
        form.number("limit", "Questions, the first", low=1, hint="all"),
    )
    more = form.fields(
        *parts[1:],
        form.text("name", "Name", hint="made from chain, dataset and time"),
        form.number("batch_size", "Questions at once", 20, 1),
        form.number("max_errors", "Stop after failures", low=0, hint="never"),
        form.repeats_field(),
        form.spending_limit_field(),
        form.number("seed", "Seed", 0),
        form.check("track", "Log to MLflow", True),
    )
    more = Markup('<div class="stack">{}{}</div>').format(
        more, metric_fields(page, "the usual ones of the dataset")
    )
    settings = html.fold("More settings", more, gist=gist, id="new-more")
    plan, start = plan_html(page, event)
    box = Markup('<div class="box" id="new-plan" data-problems>{}</div>').format(plan)
    button = Markup('<span id="new-start">{}</span>').format(start)
    follow = form.on_edit("runs.check")
    body = Markup('<div class="stack"{} data-run>{}</div>{}').format(follow, fields + settings, box)
    return Patch(dialog=html.dialog(title, body, button))


def chain_fields(page: Page, bench: Bench) -> list[str]:
    """Draw fields for the chain to run, and for another model and index."""
    space, as_is = page.workspace, "as in the chain"
    name, chains = bench.chain.name, [(name, name) for name in space.chain_paths()]
    if not is_saved(page.workspace, bench.chain):
        chains.insert(0, ("", f"{name}, as edited in Build"))
        name = ""
    return [
        form.chooser("Chain", "chain", chains, name),
        form.chooser("Model", "llm", list(space.llms()), "", blank=as_is),
        form.chooser("Index", "retriever", list(space.retrievers()), "", blank=as_is),
    ]


def benchmark(page: Page, event: Event) -> PreparedRun:
    """Return the benchmark in the form without loading anything. Raises UsageError."""
    bench, name, run = window_bench(page, event), event.text("chain"), event.text("name")
    options = BenchmarkOptions(
        dataset=event.text("dataset") or bench.dataset,
        limit=event.whole("limit", "Questions"),
        batch_size=event.whole("batch_size", "Questions at once"),
        metrics=tuple(chosen_metrics(event)) or None,
        seed=event.whole("seed", "Seed") or 0,
        llm=event.text("llm"),
        retriever=event.text("retriever"),
        run=RunOptions(
            max_errors=event.whole("max_errors", "Stop after failures"),
            track=event.flag("track") if event.has("dataset") else True,
            budget=form.read_spending_limit(event),
            repeats=form.read_repeats(event),
        ),
    )
    if event.flag("agent"):
        return of_flow(page.workspace, _agent.chosen_flow(page, event), options, run=run)
    chain = page.workspace.chain(name) if name else bench.chain
    return of_chain(page.workspace, chain, options, run=run)


def check(page: Page, event: Event) -> Patch:
    plan, start = plan_html(page, event)
    return Patch({"new-plan": plan, "new-start": start})


def plan_html(page: Page, event: Event) -> tuple[Markup, Markup]:
    """Draw the plan of a run (questions, models, minutes, problems), and the start button."""
    try:
        value = benchmark(page, event)
    except RalleError as error:
        run = html.button("Run", kind="primary", disabled=True)
        return html.problem(error), run
    request, count = value.request, len(value.request.examples)
    names = " → ".join([*request.flow.retrievers, *request.flow.llms])
    notes = Markup().join(map(html.warning, value.warnings))
    if not notes and (covered := gold_coverage.run_note(page.workspace, request)):
        notes = html.note(covered)
    again, flow = value.options.repeats.number, request.flow
    forecast = forecast_run(
        page.workbench.forecasts,
        flow,
        request.examples,
        taken=window_grid(event).seconds(flow.chain) if flow.chain else (),
        judged=bool(request.judges),
        repeats=again,
        patience=PATIENCE,
    )
    times = f"asked {again} times where a model samples" if again > 1 else ""
    about = html.join_facts(request.dataset.name, names, forecasts.run_words(forecast), times)
    label = f"Run {plural(count, 'question')}"
    plan = Markup("<b>{}</b> of {}{}").format(plural(count, "question"), about, notes)
    return plan, html.button(label, "runs.start", kind="primary")


def start(page: Page, event: Event) -> Patch:
    value = benchmark(page, event)
    page.workbench.runs.start(value)
    say = "The run has started; it continues when you close the page."
    return Patch(dialog="", go=RunAddress(value.name).href, say=say)


# metrics


def metric_fields(page: Page, usual: str = "") -> Markup:
    """Draw check boxes for the metrics, and a judge with its model. ``usual``: the metrics used if none is checked."""
    models, lines = list(page.workspace.llms()), run_views.judge_lines()
    fields = form.fields(
        form.chooser("Judge", "judge", [name for name, _ in lines], "", blank="none"),
        form.chooser("Judging model", "judge_model", models, models[0] if models else ""),
    )
    boxes = form.checks("metric", run_views.metric_choices())
    metrics = html.fold("Metrics", boxes, gist=usual, id="score-metrics")
    return Markup("{}{}{}").format(
        fields, html.fold("What the judges give", html.defs(lines)), metrics
    )


def chosen_metrics(event: Event) -> list[str]:
    """Return the metrics chosen in ``metric_fields``; the judge appears as ``name:model``."""
    judge = event.text("judge")
    return event.many("metric") + ([f"{judge}:{event.text('judge_model')}"] if judge else [])


def ask_metrics(page: Page, event: Event) -> Patch:
    """Open a dialog to add metrics to a run."""
    note = "No answer is asked again. A judge asks its model once for each answer; a resumed pass continues."
    body, title = metric_fields(page) + form.spending_limit_field(), "Score by more metrics"
    body += html.note(note)
    return panels.ask(title, body, "Score", "runs.rescore", run=event.text("run"))


def rescore(page: Page, event: Event) -> Patch:
    name, metrics = event.text("run"), chosen_metrics(event)
    if not metrics:
        raise UsageError("No metric is chosen; tick one, or choose a judge.")
    runs, budget = page.workbench.runs, form.read_spending_limit(event)
    page.workbench.jobs.submit(
        "scoring",
        name,
        tuple(metrics),
        lambda job: runs.rescore_or_fail(name, metrics, budget),
        record={},
    )
    return Patch(dialog="", say="Scoring has started; the jobs show how far it is.")


# predictions of another program


def ask_predictions(page: Page, event: Event) -> Patch:
    datasets = list(page.workspace.dataset_paths())
    about = "Predictions of KILT, SQuAD or FlashRAG, JSON, CSV, a run of TREC or MS MARCO, or a log of R-Eval; or drop it here"
    fields = form.fields(
        form.text("as", "Name of the run"),
        form.chooser("Dataset", "dataset", datasets, datasets[0]),
        form.text("system", "System, of an R-Eval log only", hint="react:gpt-4"),
    )
    body = fields + form.drop("runs.import_file", about)
    return Patch(dialog=html.dialog("Import predictions", body))


def import_file(page: Page, event: Event) -> Patch:
    """Import a file of predictions as a run."""
    file, system = event.file(), event.text("system")
    name = event.text("as") or Path(file.name).stem
    dataset = "" if system else event.text("dataset")
    value, caveat = exchange.import_predictions(
        page.workspace, name, file.path, dataset, system=system
    )
    say = caveat or f"Imported {plural(value.rows, 'prediction')}."
    say = " ".join([say, *(value.notes or ())])
    return Patch(dialog="", go=RunAddress(value.name).href, say=say)


# downloads


def ask_form(page: Page, event: Event) -> Patch:
    name = event.text("run")
    report = html.button("Download", "runs.report", run=name)
    lines = [["HTML report, one file that opens offline", report]]
    for shape in catalog.names("export formats"):
        take = html.button("Download", "runs.download", run=name, shape=shape)
        lines.append([escape(FORMS.get(shape, (shape,))[0]), take])
    lines.append(["MLflow, its newest scores", html.button("Log the run", "runs.track", run=name)])
    return panels.drawer("Export", html.rows(["Form", ">"], lines))


def download(page: Page, event: Event) -> Patch:
    """Download the run in another tool's format."""
    name, shape = event.text("run"), event.text("shape")
    lines, caveat = exchange.export_lines(page.workbench.runs.open(name), shape)
    text = "".join(lines).encode("utf-8", "backslashreplace").decode()
    file = Download(f"{name}{FORMS.get(shape, ('', '.txt'))[1]}", text)
    return Patch(download=file, say=caveat)


def report(page: Page, event: Event) -> Patch:
    """Download the run, or a comparison, as one HTML file."""
    names = event.text("run").split(",")
    runs = [page.workbench.runs.open(name) for name in names]
    title, sections = build_report(runs, page.workspace)
    text = "".join(reports.page(title, sections, time.strftime("%Y-%m-%d %H:%M")))
    return Patch(download=Download(name=f"{names[0]}.html", text=text, type="text/html"))


def mlflow(page: Page, event: Event) -> Iterator[Patch]:
    """Start MLflow's own page and link to the run there, or to all runs."""
    name, place = event.text("run"), ""
    run = page.workbench.runs.open(name) if name else None
    for place in page.workbench.tracking.start_mlflow(run):
        if not place.startswith("http"):
            wait = Markup('<p role="status">{}</p><progress></progress>').format(place)
            yield Patch(dialog=html.dialog("MLflow", wait))
    label = "Open the run in MLflow" if name else "Open the runs in MLflow"
    body = Markup("<p>MLflow is running at {}.</p>").format(place.partition("/#")[0])
    link = Markup(
        '<a class="button primary" href="{}" target="_blank" rel="noopener">{}</a>'
    ).format(place, label)
    yield Patch(dialog=html.dialog("MLflow", body, link, keep="Close"))


def track(page: Page, event: Event) -> Iterator[Patch]:
    yield Patch(say="Logging the run …")
    value = exchange.track(page.workspace, page.workbench.tracking, event.text("run"), "run")
    yield Patch(say=f"The run is in MLflow as {value.mlflow_run_id}.")
