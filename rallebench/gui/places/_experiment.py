"""One experiment: who wins and how sure that is, plots, tables beside the paper's, files, and what may be done next."""

from __future__ import annotations

import base64
import mimetypes
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from rallebench.core.numbers import mean_of
from rallebench.core.table_files import csv_table, latex
from rallebench.core.tables import Figure, Section, Table
from rallebench.gui.form import labelled, select
from rallebench.gui.frame import Event, Page, Patch
from rallebench.gui.html import (
    attributes,
    button,
    crumb,
    e,
    fold,
    interval_bar,
    link,
    menu,
    percent,
    points,
    rows,
    table,
    warning,
)
from rallebench.gui.wording import on_page
from rallebench.render import experiments, report, svg
from rallebench.render.numbers import text
from rallebench.services import experiment_groups, experiment_jobs, experiment_results
from rallebench.services.experiment_groups import ExperimentRow, plain_label
from rallebench.services.experiment_results import AXES, Ranking
from rallebench.services.experiments import StoredExperiment

PAPER_TABLES = {
    "rgb": "rgb:1",
    "crud": "crud:2",
    "barag": "barag:1",
    "kilt": "ralle:2",
    "reval": "reval:2",
}
MOST_FILES = 100


def register(page: Page) -> None:
    """Add this view."""
    page.view("experiments/one", open_one)
    for name, handler in (
        ("file", save_file),
        ("edit", edit_file),
        ("save", save_edited),
        ("export", export),
        ("mlflow", to_mlflow),
    ):
        page.action(f"experiments.{name}", handler)


def address(name: str) -> str:
    """The address of an experiment."""
    return f"#/experiments/one?id={quote(name, safe='')}"


def open_one(page: Page, event: Event) -> Patch:
    """Everything about it. ``by``: the metric that ranks; ``beside``: another experiment; ``x``, ``y``: axes of a trade-off."""
    name = event.query.get("id", "")
    workbench = page.workbench
    if not workbench.experiments.store.exists(name):
        return {
            "go": "#/experiments/list",
            "say": f"There is no experiment {name}; these are the experiments.",
        }
    stored, group = workbench.experiments.store.open(name), experiment_groups.group(workbench, name)
    title = group.title if group.automatic else group.name
    about = f"{group.about} · {name}" if group.automatic else f"{group.title} · {group.about}"
    body = (
        unfinished(page, stored)
        if stored.report is None
        else _BODIES.get(stored.kind, _suite)(page, event, stored)
    )
    follow = (
        attributes(follow="*", do="open", view="experiments/one") if stored.report is None else ""
    )
    return {
        "#v-experiments-one": (
            f'<div class="wrap-page wide x-one" data-on="none"{follow}>{crumb("Experiments", "#/experiments/list", title, about, buttons=_buttons(page, stored, group))}'
            f"{body}{_files(page, stored)}</div>"
        ),
        "title": title,
    }


def _buttons(page: Page, stored: StoredExperiment, group: ExperimentRow) -> str:
    name = stored.name
    if stored.report is None:
        job = next((j for j in experiment_jobs.active(page.workbench) if j.name == name), None)
        if job is not None:
            return (
                f'<span class="state busy">running</span>{button("Stop", "jobs.stop", id=job.id)}'
            )
        return button("Continue", "experiments.continue", kind="primary", id=name)
    winner = _winning_run(stored)
    use = (
        f'<a class="button primary" href="#/build/one?run={e(quote(winner, safe=""))}">Use the winner in Build</a>'
        if winner
        else ""
    )
    forms = [("CSV", "csv"), ("LaTeX", "tex"), ("HTML report", "html"), ("JSON", "json")]
    saves = [
        button(f"Save as {label}", "experiments.export", id=name, suffix=form)
        for label, form in forms
    ]
    saves.append(button("Send to MLflow", "experiments.mlflow", id=name))
    return (
        button("Run again with changes", "experiments.again", id=name)
        + use
        + menu(*saves, label="Export")
    )


def _winning_run(stored: StoredExperiment) -> str:
    variants = (stored.report or {}).get("variants")
    return str(variants[0]["run"]) if variants else ""


def unfinished(page: Page, stored: StoredExperiment) -> str:
    """What was begun."""
    jobs = [job for job in experiment_jobs.active(page.workbench) if job.name == stored.name]
    if jobs:
        lines = [
            [e(plain_label(p.label)), e(p.state), f"{p.done:,}", f"{p.total:,}" if p.total else "–"]
            for p in experiment_jobs.parts(jobs[0])
        ]
        return rows(("Run", "State", ">Done", ">Of"), lines)
    return '<p class="say">It has not ended. Continue: what was answered is kept and is not asked again.</p>'


# rankings


def _ranked(page: Page, event: Event, stored: StoredExperiment) -> str:
    value = experiment_results.ranking(page.workbench, stored, event.query.get("by", ""))
    document = value.document
    failed = "".join(
        warning(f"{plain_label(label)}: {on_page(str(why))}")
        for label, why in document["failed"].items()
    )
    warned = "".join(warning(on_page(sentence)) for sentence in document["warnings"])
    chooser = ""
    if stored.kind == "sweep" and len(value.metrics) > 1:
        options = [(name, experiment_groups.label_of(name)) for name in value.metrics]
        chosen = document["metric"] or ""
        chooser = f'<div class="row x-by"><label class="field"><span>Decided by</span>{select("by", options, chosen, more=" data-go=by")}</label></div>'
    return (
        f'<p class="say">{e(experiment_results.verdict(value))}</p>{warned}{failed}{chooser}{ranking(value)}'
        f"{plots(experiment_results.figures(value))}{_all_metrics(value)}"
    )


def ranking(value: Ranking) -> str:
    """The variants, best first, each with its paired difference to the best and Holm's p."""
    name = value.document["metric"] or next(iter(value.metrics), "")
    share = experiment_groups.is_share(name)
    heads = (
        "",
        "Variant",
        f">{experiment_groups.label_of(name)}",
        "",
        ">To the best",
        ">p, corrected",
        ">s a question",
        ">Questions",
        "",
    )
    lines = []
    variants = value.document["variants"]
    for i, row in enumerate(variants):
        mean = row["metrics"].get(name)
        run = f"#/runs/run?id={quote(row['run'], safe='')}"
        compare = (
            link(
                "compare",
                f"#/runs/compare?a={quote(variants[0]['run'], safe='')}&b={quote(row['run'], safe='')}",
                "link",
            )
            if i
            else link("use in Build", f"#/build/one?run={quote(row['run'], safe='')}", "link")
        )
        p = "–" if row["p_corrected"] is None else text(row["p_corrected"], "p")
        seconds = (value.reports[row["run"]].get("metrics", {}).get("seconds") or {}).get("value")
        lines.append(
            [
                f"<small>{i + 1}</small>",
                f'<a class="nm" href="{e(run)}">{e(plain_label(row["variant"]))}</a>',
                percent(mean, share=share) if mean else "–",
                interval_bar(mean) if mean and share else "",
                difference(row, share) if i else "best",
                p if i else "",
                "–" if seconds is None else f"{seconds:.2f}",
                f"{mean['n']:,}" if mean else "–",
                compare,
            ]
        )
    note = (
        "Differences are paired, question by question; p is corrected by Holm, the intervals hold together at 95 % (Bonferroni)."
        if len(lines) > 2
        else ""
    )
    return f'<div class="wide">{rows(heads, lines)}</div><p class="note">{note}</p>'


def difference(row: Mapping[str, Any], share: bool) -> str:
    """A paired difference with its interval."""
    if row["difference"] is None:
        return "–"
    gap = points(row["difference"]) if share else text(row["difference"], "delta")
    ends = ""
    if row["low"] is not None and row["high"] is not None and share:
        ends = f"<small>{100 * row['low']:+.1f} to {100 * row['high']:+.1f}</small>".replace(
            "-", "−"
        )
    return f'<span class="num">{"0.0 points" if gap in ("+0.0 points", "−0.0 points") else gap}{ends}</span>'


def _all_metrics(value: Ranking) -> str:
    whole = experiment_results.ranking_table(value)
    short = Table(
        "",
        (whole.columns[0], *whole.columns[1:-3]),
        tuple((plain_label(str(row[0])), *row[1:-3]) for row in whole.rows),
    )
    return fold("Every metric", table(short), gist=f"{len(value.metrics)} metrics", id="x-metrics")


def plots(figures: Sequence[Figure]) -> str:
    """Drawings two in a row, each with its links."""
    drawn = "".join(
        f'<figure class="x-plot"><figcaption>{e(figure.title)}</figcaption>{svg.saveable(figure, figure.title or "plot")}</figure>'
        for figure in figures
        if svg.figure(figure)
    )
    return f'<div class="x-plots">{drawn}</div>' if drawn else ""


# other kinds


def _tradeoff(page: Page, event: Event, stored: StoredExperiment) -> str:
    value = page.workbench.experiments.open_tradeoff(stored.name)
    across, up = event.query.get("x", "single_ms"), event.query.get("y", "")
    if up not in AXES:
        up = "recall" if any(p.recall is not None for p in value.points) else "Rprec"
    across = across if across in AXES else "single_ms"
    choosers = "".join(
        f'<label class="field"><span>{label}</span>{select(key, list(AXES.items()), chosen, more=f" data-go={key}")}</label>'
        for key, label, chosen in (("x", "Across", across), ("y", "Up", up))
    )
    failed = "".join(warning(f"{p.label}: {on_page(p.error)}") for p in value.points if p.error)
    gold = max((p.n_gold for p in value.points), default=0)
    why = (
        ""
        if all(p.recall is not None or p.error for p in value.points)
        else " Recall is told of vector indexes that have an exact index over the same passages beside them."
    )
    return (
        f'<p class="say">{e(_best_point(page, stored))}</p>{failed}<div class="wide">{table(experiment_results.tradeoff_table(value.points))}</div>'
        f'<p class="note">{value.n:,} questions of {e(value.dataset)}, {gold:,} with gold pages, k {value.k}.{why}</p>'
        f'<div class="row x-by">{choosers}</div>{plots([experiment_results.tradeoff_figure(value.points, across, up)])}'
    )


def _best_point(page: Page, stored: StoredExperiment) -> str:
    group = experiment_groups.group(page.workbench, stored.name)
    if not group.winner:
        return "No index could be ranked."
    assert group.mean is not None
    more = f"; it is {group.beside}" if group.beside else ""
    return f"{group.winner} has {experiment_groups.label_of(group.metric)} {100 * group.mean['value']:.1f} %{more}."


def _baselines(page: Page, event: Event, stored: StoredExperiment) -> str:
    document = stored.report or {}
    failed = "".join(
        warning(f"{label}: {on_page(str(why))}") for label, why in document["failed"].items()
    )
    run = link(document["run"], f"#/runs/run?id={quote(document['run'], safe='')}", "link")
    return f'<p class="say">The run {run} between its baselines.</p>{failed}{table(experiment_results.baseline_table(document))}{_runs(stored)}'


def _suite(page: Page, event: Event, stored: StoredExperiment) -> str:
    document = stored.report or {}
    tables = "".join(paper_table(Table.from_json(value)) for value in document.get("tables", ()))
    parts = "".join(map(table, experiments.parts(document))) if document.get("parts") else ""
    notes = "".join(warning(on_page(note)) for note in document.get("notes", ()))
    figures = [Figure(**value) for value in document.get("plots", ())]
    paper = PAPER_TABLES.get(stored.kind.partition("-")[0], "")
    printed = (
        link("The paper's own tables", f"#/experiments/published?table={paper}", "link")
        if paper
        else ""
    )
    notes = (
        fold(
            "Notes",
            notes,
            gist=f"{len(document.get('notes', ()))} sentences",
            id="x-notes",
            opened=len(document.get("notes", ())) < 3,
        )
        if notes
        else ""
    )
    printed = f'<p class="note">{printed}</p>' if printed else ""
    if parts:
        parts = fold("Parts", parts, gist=f"{len(document['parts'])} runs", id="x-parts")
    beside = _beside(page, event, stored)
    return f"{tables}{printed}{plots(figures)}{notes}{beside}{parts}{_runs(stored)}"


def paper_table(value: Table) -> str:
    """A table in which the paper's rows are told from ours."""
    drawn = table(value)
    for row in value.rows:
        if isinstance(row[0], str) and experiment_groups.is_printed(row[0]):
            drawn = drawn.replace(
                f'<tr><td class="">{e(row[0])}</td>',
                f'<tr class="x-printed"><td class="">{e(row[0])}</td>',
            )
    return drawn


def _beside(page: Page, event: Event, stored: StoredExperiment) -> str:
    others = experiment_results.comparable(page.workbench, stored)
    if not others or "parts" not in (stored.report or {}):
        return ""
    other = event.query.get("beside", "")
    chooser = f'<div class="row x-by"><label class="field"><span>Beside another run of this benchmark</span>{select("beside", others, other, blank="none", more=" data-go=beside")}</label></div>'
    if other not in others:
        return chooser
    differences, pairs = experiment_results.beside(page.workbench, stored.name, other)
    links = " · ".join(
        link(label, f"#/runs/compare?a={quote(a, safe='')}&b={quote(b, safe='')}", "link")
        for label, (a, b) in pairs.items()
    )
    second = page.workbench.experiments.store.open(other).report or {}
    theirs = "".join(paper_table(Table.from_json(value)) for value in second.get("tables", ()))
    return f'{chooser}{table(differences)}<p class="note">Question by question: {links}</p>{fold(f"The tables of {other}", theirs, id="x-theirs")}'


def _runs(stored: StoredExperiment) -> str:
    links = [
        [
            f'<a class="nm" href="#/runs/run?id={e(quote(run, safe=""))}">{e(plain_label(label))}</a>',
            f"<small>{e(run)}</small>",
        ]
        for label, run in experiment_results.runs_of(stored)
    ]
    return (
        fold(
            "Every answer", rows(("Run", "Name"), links), gist=f"{len(links)} runs", id="x-runs-of"
        )
        if links
        else ""
    )


_BODIES = {"sweep": _ranked, "batch": _ranked, "tradeoff": _tradeoff, "baselines": _baselines}


# files


def _files(page: Page, stored: StoredExperiment) -> str:
    names = experiment_results.files(page.workbench, stored.name)
    labels = [name for name in names if "label" in name]
    drawn = "".join(
        f'<div class="row"><span>{e(name)}</span>{button("Label the errors", "experiments.edit", id=stored.name, file=name)}</div>'
        for name in labels
    )
    hint = "Give each error a category, then run again: your counts stand beside the paper's."
    drawn = f'<h3 class="sub">Errors</h3><p class="note">{hint}</p>{drawn}' if drawn else ""
    lines = [
        [button("Save", "experiments.file", kind="quiet", id=stored.name, file=name), e(name)]
        for name in names[:MOST_FILES]
    ]
    return drawn + (
        fold(
            "Files",
            rows(("", "File"), lines, kind="x-files"),
            gist=f"{len(names)} files",
            id="x-files",
        )
        if lines
        else ""
    )


def save_file(page: Page, event: Event) -> Patch:
    """A file of the experiment."""
    path = experiment_results.file_path(page.workbench, event.text("id"), event.text("file"))
    kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return {
        "download": {
            "name": path.name,
            "base64": base64.b64encode(path.read_bytes()).decode(),
            "type": kind,
        }
    }


def edit_file(page: Page, event: Event) -> Patch:
    """A drawer with a file of labels: a row an error, its category a field."""
    name, file = event.text("id"), event.text("file")
    _, lines = experiment_results.label_rows(page.workbench, name, file)
    categories = "".join(
        f'<option value="{e(c)}">' for c in experiment_results.categories(page.workbench, name)
    )
    drawn = "".join(
        f'<div class="x-label"><b>{e(row["question"])}</b><small>needed {e(row["required"])}</small><p>{e(row["prediction"][:600])}</p>'
        f'{labelled("Category", f"""<input name="c:{i}" list="x-categories" value="{e(row["category"])}">""")}</div>'
        for i, row in enumerate(lines)
    )
    buttons = f'<div class="buttons">{button("Cancel", "", close="1")}{button("Save the labels", "experiments.save", kind="primary", id=name, file=file)}</div>'
    return {
        "drawer": f'<h2>Errors to label</h2><p class="note">{len(lines)} answers that are not right.</p><datalist id="x-categories">{categories}</datalist><div data-form>{drawn}{buttons}</div>'
    }


def save_edited(page: Page, event: Event) -> Patch:
    """Write the categories into the file; the benchmark reads them when it is run again."""
    name, file = event.text("id"), event.text("file")
    chosen = {int(key[2:]): event.text(key) for key in event.data if key.startswith("c:")}
    path = experiment_results.write_labels(page.workbench, name, file, chosen)
    design = event.session.get("design")
    if design is not None:
        stored = page.workbench.experiments.store.open(name)
        design.settings.setdefault(stored.kind, {})["labels"] = str(path)
    return {"drawer": "", "say": "Saved. Run again with changes counts your categories."}


# exports


def _tables(page: Page, stored: StoredExperiment) -> tuple[list[Table], list[Figure], str]:
    """(tables, figures, verdict) of an experiment for files."""
    document = stored.report or {}
    if stored.kind in ("sweep", "batch"):
        value = experiment_results.ranking(page.workbench, stored)
        return (
            [experiment_results.ranking_table(value)],
            experiment_results.figures(value),
            experiment_results.verdict(value),
        )
    if stored.kind == "tradeoff":
        measured = page.workbench.experiments.open_tradeoff(stored.name).points
        return (
            [experiment_results.tradeoff_table(measured)],
            [experiment_results.tradeoff_figure(measured, "single_ms", "recall")],
            "",
        )
    if stored.kind == "baselines":
        return [experiment_results.baseline_table(document)], [], ""
    tables = [Table.from_json(value) for value in document.get("tables", ())]
    tables += experiments.parts(document) if document.get("parts") else []
    return (
        tables,
        [Figure(**value) for value in document.get("plots", ())],
        " ".join(document.get("notes", ())),
    )


def _means(value: Table) -> Table:
    """The table with bare means, for LaTeX; shares as percentages."""
    rows = tuple(
        tuple(c["value"] if (c := mean_of(cell)) else cell for cell in row) for row in value.rows
    )
    heads = tuple(replace(c, format="percent") if c.format == "score" else c for c in value.heads)
    return Table(value.title, heads, rows, True)


def export(page: Page, event: Event) -> Patch:
    """The experiment as a file."""
    name, form = event.text("id"), event.text("suffix")
    stored = page.workbench.experiments.store.open(name)
    tables, figures, verdict = _tables(page, stored)
    if form == "csv":
        content = "\n".join(csv_table(value) for value in tables)
    elif form == "tex":
        content = "\n".join(latex(_means(value)) for value in tables)
    elif form == "json":
        content = experiment_results.report_text(page.workbench, name)
    else:
        sections = [Section("", (verdict, *tables)), *(Section(f.title, (f,)) for f in figures)]
        content = "".join(report.page(name, sections))
    return {"download": {"name": f"{name}.{form}", "text": content}}


def to_mlflow(page: Page, event: Event) -> Patch:
    """Put the experiment's runs below one parent in MLflow."""
    stored = page.workbench.experiments.store.open(event.text("id"))
    problem = page.workbench.tracking.track_experiment(stored.report or {}, stored.kind)
    return {"say": on_page(problem) if problem else f"{stored.name} is in MLflow."}
