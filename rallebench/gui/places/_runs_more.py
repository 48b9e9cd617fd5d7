"""What can be done with a run beside reading it: export, report, MLflow, further metrics, imported predictions, agents."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from rallebench.core.errors import RalleError, UsageError
from rallebench.gui.form import labelled, select
from rallebench.gui.frame import Event, Page, Patch
from rallebench.gui.html import button, defs, dialog, e, fold, table, warning
from rallebench.render import svg
from rallebench.render.report import page as report_pages
from rallebench.services import catalog
from rallebench.services.comparing import analyse_agents
from rallebench.services.exchange import exported, import_predictions, track
from rallebench.services.reports import report_of
from rallebench.services.run_views import is_agents, judge_lines, metric_choices

ENDINGS = {
    "csv": ".csv",
    "jsonl": ".jsonl",
    "trec": ".trec",
    "qrels": ".qrels",
    "kilt": ".jsonl",
    "r-eval": ".json",
}
LABELS = {
    "csv": "CSV, a line a question",
    "jsonl": "JSON lines, all steps",
    "trec": "TREC run",
    "qrels": "TREC judgements (qrels)",
    "kilt": "KILT predictions",
    "r-eval": "R-Eval log",
}
ASPECTS = {
    "performance": "Scores by task",
    "matching": "Matching",
    "errors": "Errors",
    "deployment": "Deployment",
}


def register(page: Page) -> None:
    """Add the actions."""
    for name, handler in (
        ("export", ask_form),
        ("download", download),
        ("report", report),
        ("mlflow", mlflow),
        ("track", log),
        ("rescore", ask_metrics),
        ("rescore-by", rescore),
        ("import", ask_predictions),
        ("import-file", take_file),
    ):
        page.action(f"runs.{name}", handler)


def ask_form(page: Page, event: Event) -> Patch:
    """In which form the run is taken away."""
    name = event.text("run")
    rows = "".join(
        f"<tr><td>{e(LABELS.get(form, form))}</td><td class='n'>{button('Download', 'runs.download', run=name, shape=form)}</td></tr>"
        for form in catalog.names("export formats")
    )
    rows = f"<tr><td>HTML report, one file that opens offline</td><td class='n'>{button('Download', 'runs.report', run=name)}</td></tr>{rows}<tr><td>MLflow, its newest scores</td><td class='n'>{button('Log the run', 'runs.track', run=name)}</td></tr>"
    return {
        "drawer": f'<div class="dh"><h2>Export</h2>{button("Close", "", kind="quiet", close="1")}</div><table class="t"><tbody>{rows}</tbody></table>'
    }


def download(page: Page, event: Event) -> Patch:
    """The run in a form of other tools."""
    name, form = event.text("run"), event.text("shape")
    lines, caveat = exported(page.workbench.runs.open(name), form)
    text = "".join(lines).encode("utf-8", "backslashreplace").decode()
    return {
        "download": {"name": f"{name}{ENDINGS.get(form, '.txt')}", "text": text},
        **({"say": caveat} if caveat else {}),
    }


def report(page: Page, event: Event) -> Patch:
    """The run, or a comparison, as one HTML file."""
    names = event.text("run").split(",")
    title, sections = report_of(
        [page.workbench.runs.open(name) for name in names], page.workbench.workspace
    )
    text = "".join(report_pages(title, sections, time.strftime("%Y-%m-%d %H:%M")))
    return {"download": {"name": f"{names[0]}.html", "text": text, "type": "text/html"}}


def mlflow(page: Page, event: Event) -> Iterator[Patch]:
    """Start MLflow's own page and link to the run there, else to all runs."""
    name, address = event.text("run"), ""
    run = page.workbench.runs.open(name) if name else None
    for address in page.workbench.tracking.start_mlflow(run):
        if not address.startswith("http"):
            yield {
                "dialog": f'<h2>MLflow</h2><p role="status">{e(address)}</p><progress></progress>'
            }
    label = "Open the run in MLflow" if name else "Open the runs in MLflow"
    yield {
        "dialog": f'<h2>MLflow</h2><p>MLflow is running at {e(address.partition("/#")[0])}.</p><div class="buttons">{button("Close", "", close="1")}<a class="button primary" href="{e(address)}" target="_blank" rel="noopener">{label}</a></div>'
    }


def log(page: Page, event: Event) -> Iterator[Patch]:
    """Send a run to MLflow."""
    yield {"say": "Logging the run …"}
    value = track(page.workbench, event.text("run"), "run")
    yield {"say": f"The run is in MLflow as {value['mlflow_run_id']}."}


def metric_fields(page: Page, usual: str = "") -> str:
    """The metrics to score by, each a box, and a judge with its model. ``usual``: what is used where none is ticked."""
    models = list(page.workbench.workspace.llms())
    boxes = "".join(
        f'<label class="check"><input type="checkbox" name="metric" value="{e(name)}"> {e(name)}</label>'
        for name in metric_choices()
    )
    lines = judge_lines()
    judge = labelled("Judge", select("judge", [name for name, _ in lines], "", blank="none"))
    model = labelled("Judging model", select("judge_model", models, models[0] if models else ""))
    return f'<div class="fields">{judge}{model}</div>{fold("What the judges give", defs(lines))}{fold("Metrics", f"<div class=checks>{boxes}</div>", gist=usual, id="score-metrics")}'


def chosen_metrics(event: Event) -> list[str]:
    """The metrics of ``metric_fields``, the judge as ``name:model``."""
    judge = event.text("judge")
    return event.many("metric") + ([f"{judge}:{event.text('judge_model')}"] if judge else [])


def ask_metrics(page: Page, event: Event) -> Patch:
    """By which metrics a run is scored, too."""
    note = '<p class="note">No answer is asked again. A judge asks its model once for each answer; a resumed pass continues.</p>'
    score = button("Score", "runs.rescore-by", kind="primary", run=event.text("run"))
    return {"dialog": dialog("Score by more metrics", metric_fields(page) + note, score)}


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
    fields = labelled("Name of the run", '<input name="as">') + labelled(
        "Dataset", select("dataset", datasets, datasets[0])
    )
    system = labelled(
        "System, of an R-Eval log only", '<input name="system" placeholder="react:gpt-4">'
    )
    return {
        "dialog": dialog(
            "Import predictions",
            f'<div class="fields">{fields}{system}</div><div class="drop" data-upload="runs.import-file"><label class="link" tabindex="0">Choose a file<input type="file" hidden></label><small>KILT predictions, JSON lines, CSV, or a log of R-Eval; or drop it here</small></div>',
        )
    }


def take_file(page: Page, event: Event) -> Patch:
    """The file of predictions."""
    file = event.data["files"][0]
    name = event.text("as") or Path(file["name"]).stem
    system = event.text("system")
    value, caveat = import_predictions(
        page.workbench,
        name,
        Path(file["path"]),
        "" if system else event.text("dataset"),
        system=system,
    )
    return {
        "dialog": "",
        "go": f"#/runs/run?id={value['name']}",
        "say": caveat or f"{value['rows']:,} predictions are imported.",
    }


def agents(page: Page, names: Sequence[str]) -> str:
    """The analysis of agents' runs as folds, "" for other runs."""
    if not all(is_agents(page.workbench.runs.open(name)) for name in names):
        return ""
    parts = ""
    for aspect, label in ASPECTS.items():
        try:
            result = analyse_agents(page.workbench, names, aspect)
        except RalleError as error:
            parts += fold(label, f'<p class="note">{e(error)}</p>', id=f"agents-{aspect}")
            continue
        notes = "".join(warning(text) for text in result.notes)
        drawn = "".join(svg.figure(figure) for figure in result.figures.values())
        parts += fold(
            label, "".join(map(table, result.tables)) + drawn + notes, id=f"agents-{aspect}"
        )
    return f'<h3 class="sub">The agent</h3>{parts}'
