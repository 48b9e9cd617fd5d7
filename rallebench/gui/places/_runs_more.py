"""What can be done with a run beside reading it: export, report, MLflow, further metrics, imported predictions, agents."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from rallebench.core.errors import RalleError, UsageError
from rallebench.gui import figures, form, html
from rallebench.gui.frame import Event, Page, Patch
from rallebench.gui.html import e
from rallebench.render import report as reports
from rallebench.render import svg
from rallebench.services import catalog, exchange, run_views
from rallebench.services.comparing import analyse_agents
from rallebench.services.reports import report_of

FORMS = {
    "csv": ("CSV, a line a question", ".csv"),
    "jsonl": ("JSON lines, all steps", ".jsonl"),
    "trec": ("TREC run", ".trec"),
    "qrels": ("TREC judgements (qrels)", ".qrels"),
    "kilt": ("KILT predictions", ".jsonl"),
    "r-eval": ("R-Eval log", ".json"),
}
"""Form of an export → its name, the end of its file's name."""
ASPECTS = {
    "performance": "Scores by task",
    "matching": "Matching",
    "errors": "Errors",
    "deployment": "Deployment",
}


def register(page: Page) -> None:
    """Add the actions."""
    page.actions("runs", ask_form, download, report, mlflow, track, ask_metrics, rescore)
    page.actions("runs", ask_predictions, import_file)


def ask_form(page: Page, event: Event) -> Patch:
    """In which form the run is taken away."""
    name = event.text("run")
    report = html.button("Download", "runs.report", run=name)
    lines = [["HTML report, one file that opens offline", report]]
    for shape in catalog.names("export formats"):
        take = html.button("Download", "runs.download", run=name, shape=shape)
        lines.append([e(FORMS.get(shape, (shape,))[0]), take])
    lines.append(["MLflow, its newest scores", html.button("Log the run", "runs.track", run=name)])
    return {"drawer": html.drawer("Export", html.rows(["Form", ">"], lines))}


def download(page: Page, event: Event) -> Patch:
    """The run in a form of other tools."""
    name, shape = event.text("run"), event.text("shape")
    lines, caveat = exchange.exported(page.workbench.runs.open(name), shape)
    text = "".join(lines).encode("utf-8", "backslashreplace").decode()
    file = {"name": f"{name}{FORMS.get(shape, ('', '.txt'))[1]}", "text": text}
    return {"download": file, "say": caveat} if caveat else {"download": file}


def report(page: Page, event: Event) -> Patch:
    """The run, or a comparison, as one HTML file."""
    names = event.text("run").split(",")
    runs = [page.workbench.runs.open(name) for name in names]
    title, sections = report_of(runs, page.workbench.workspace)
    text = "".join(reports.page(title, sections, time.strftime("%Y-%m-%d %H:%M")))
    return {"download": {"name": f"{names[0]}.html", "text": text, "type": "text/html"}}


def mlflow(page: Page, event: Event) -> Iterator[Patch]:
    """Start MLflow's own page and link to the run there, else to all runs."""
    name, address = event.text("run"), ""
    run = page.workbench.runs.open(name) if name else None
    for address in page.workbench.tracking.start_mlflow(run):
        if not address.startswith("http"):
            wait = f'<p role="status">{e(address)}</p><progress></progress>'
            yield {"dialog": html.dialog("MLflow", wait)}
    label = "Open the run in MLflow" if name else "Open the runs in MLflow"
    body = f"<p>MLflow is running at {e(address.partition('/#')[0])}.</p>"
    link = (
        f'<a class="button primary" href="{e(address)}" target="_blank" rel="noopener">{label}</a>'
    )
    yield {"dialog": html.dialog("MLflow", body, link, keep="Close")}


def track(page: Page, event: Event) -> Iterator[Patch]:
    """Send a run to MLflow."""
    yield {"say": "Logging the run …"}
    value = exchange.track(page.workbench, event.text("run"), "run")
    yield {"say": f"The run is in MLflow as {value['mlflow_run_id']}."}


def metric_fields(page: Page, usual: str = "") -> str:
    """The metrics to score by, each a box, and a judge with its model. ``usual``: what is used where none is ticked."""
    models, lines = list(page.workbench.workspace.llms()), run_views.judge_lines()
    judges = [name for name, _ in lines]
    fields = form.fields(
        form.chooser("Judge", "judge", judges, "", blank="none"),
        form.chooser("Judging model", "judge_model", models, models[0] if models else ""),
    )
    boxes = form.checks("metric", run_views.metric_choices())
    metrics = html.fold("Metrics", boxes, gist=usual, id="score-metrics")
    return f"{fields}{html.fold('What the judges give', html.defs(lines))}{metrics}"


def chosen_metrics(event: Event) -> list[str]:
    """The metrics of ``metric_fields``, the judge as ``name:model``."""
    judge = event.text("judge")
    return event.many("metric") + ([f"{judge}:{event.text('judge_model')}"] if judge else [])


def ask_metrics(page: Page, event: Event) -> Patch:
    """By which metrics a run is scored, too."""
    note = "No answer is asked again. A judge asks its model once for each answer; a resumed pass continues."
    score = html.button("Score", "runs.rescore", kind="primary", run=event.text("run"))
    body = metric_fields(page) + html.note(note)
    return {"dialog": html.dialog("Score by more metrics", body, score)}


def rescore(page: Page, event: Event) -> Patch:
    """Score the run as a job."""
    name, metrics = event.text("run"), chosen_metrics(event)
    if not metrics:
        raise UsageError("No metric is chosen; tick one, or choose a judge.")
    page.workbench.jobs.submit(
        "scoring", name, tuple(metrics), lambda job: page.workbench.runs.rescore(name, metrics)
    )
    return {"dialog": "", "say": "Scoring has started; the jobs show how far it is."}


def ask_predictions(page: Page, event: Event) -> Patch:
    """Import another program's predictions as a run."""
    datasets = list(page.workbench.workspace.dataset_paths())
    about = "KILT predictions, JSON lines, CSV, or a log of R-Eval; or drop it here"
    fields = form.fields(
        form.text("as", "Name of the run"),
        form.chooser("Dataset", "dataset", datasets, datasets[0]),
        form.text("system", "System, of an R-Eval log only", hint="react:gpt-4"),
    )
    body = fields + form.drop("runs.import_file", about)
    return {"dialog": html.dialog("Import predictions", body)}


def import_file(page: Page, event: Event) -> Patch:
    """The file of predictions."""
    file, system = event.data["files"][0], event.text("system")
    name = event.text("as") or Path(file["name"]).stem
    dataset = "" if system else event.text("dataset")
    value, caveat = exchange.import_predictions(
        page.workbench, name, Path(file["path"]), dataset, system=system
    )
    say = caveat or f"{value['rows']:,} predictions are imported."
    return {"dialog": "", "go": html.address("runs/run", id=value["name"]), "say": say}


def agents(page: Page, names: Sequence[str]) -> str:
    """The analysis of agents' runs as folds, "" for other runs."""
    if not all(run_views.is_agents(page.workbench.runs.open(name)) for name in names):
        return ""
    parts = ""
    for aspect, label in ASPECTS.items():
        try:
            result = analyse_agents(page.workbench, names, aspect)
            inside = "".join(map(figures.table, result.tables))
            inside += "".join(map(svg.figure, result.figures.values()))
            inside += "".join(map(html.warning, result.notes))
        except RalleError as error:
            inside = html.note(error)
        parts += html.fold(label, inside, id=f"agents-{aspect}")
    return html.heading("The agent") + parts
