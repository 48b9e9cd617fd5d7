"""The files of an experiment: download, label, export, log to MLflow."""

from __future__ import annotations

import base64
import mimetypes
from dataclasses import replace
from typing import Any

from markupsafe import Markup

from rallebench.core.experiment_reports import BaselinesReport, SuiteReport
from rallebench.core.experiments import StoredExperiment
from rallebench.core.numbers import plural
from rallebench.core.table_files import csv_table, latex
from rallebench.core.tables import Figure, Section, Table
from rallebench.gui import form, html, panels
from rallebench.gui.events import Event
from rallebench.gui.frame import Page
from rallebench.gui.html import escape
from rallebench.gui.patches import Download, Patch
from rallebench.gui.wording import on_page
from rallebench.render import experiments, report
from rallebench.views import experiment_results
from rallebench.views.experiment_design import Design

MOST_FILES = 100


def register(page: Page) -> None:
    page.actions("experiments", save_file, export, reads=True)
    page.actions("experiments", edit_file, save_labels, to_mlflow)


def files(page: Page, stored: StoredExperiment) -> Markup:
    """Draw the files to label, then all files."""
    names, drawn, lines = (
        experiment_results.files(page.workspace, stored.name),
        Markup(),
        [],
    )
    for number, name in enumerate(names):
        data: dict[str, Any] = {"id": stored.name, "file": name}
        if "label" in name:
            button = html.button("Label the errors", "experiments.edit_file", **data)
            drawn += Markup('<div class="row"><span>{}</span>{}</div>').format(name, button)
        if number < MOST_FILES:
            save = html.button("Save", "experiments.save_file", kind="quiet", **data)
            lines.append([save, escape(name)])
    if drawn:
        hint = "Give each error a category, then run again to see your counts beside the paper's."
        drawn = html.heading("Errors") + html.note(hint) + drawn
    if not lines:
        return drawn
    table, gist = html.rows(("", "File"), lines, kind="x-files"), plural(len(names), "file")
    return drawn + html.fold("Files", table, gist=gist, id="x-files")


def save_file(page: Page, event: Event) -> Patch:
    path = experiment_results.file_path(page.workspace, event.text("id"), event.text("file"))
    kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    content = base64.b64encode(path.read_bytes()).decode()
    return Patch(download=Download(name=path.name, base64=content, type=kind))


def edit_file(page: Page, event: Event) -> Patch:
    """Open a drawer with a file of labels: one row per error, with a field for its category."""
    name, file = event.text("id"), event.text("file")
    _, lines = experiment_results.label_rows(page.workspace, name, file)
    fields = Markup()
    for i, row in enumerate(lines):
        field = form.text(
            f"c:{i}", "Category", row["category"], more=Markup(' list="x-categories"')
        )
        fields += Markup(
            '<div class="x-label" tabindex="0" data-keys="x-categories"><b>{}</b><small>needed {}</small><p>{}</p>{}</div>'
        ).format(row["question"], row["required"], row["prediction"][:600], field)
    data: dict[str, Any] = {"id": name, "file": file}
    save = html.button("Save the labels", "experiments.save_labels", kind="primary", **data)
    offered = experiment_results.categories(page.workspace, name)
    keys = Markup().join(
        Markup(" <kbd>{}</kbd> {}").format(n, word) for n, word in enumerate(offered, 1)
    )
    keys = (
        Markup("{}; <kbd>j</kbd> and <kbd>k</kbd> move forwards and back.").format(keys)
        if keys
        else Markup()
    )
    note = Markup('<p class="note">{} not right.{}</p>').format(plural(len(lines), "answer"), keys)
    fields = Markup("{}{}{}").format(note, form.suggestions("x-categories", offered), fields)
    return panels.form_drawer("Errors to label", fields, save)


def save_labels(page: Page, event: Event) -> Patch:
    """Write the categories into the file; the benchmark reads them on its next run."""
    name, file = event.text("id"), event.text("file")
    chosen = {int(key): text for key, text in event.with_prefix("c:").items()}
    path = experiment_results.write_labels(page.workspace, name, file, chosen)
    if (design := event.session.get(Design)) is not None:
        stored = page.workbench.experiments.store.open(name)
        known = design.settings.get(stored.kind, {})
        design.settings[stored.kind] = {**known, "labels": str(path)}
    return Patch(drawer="", say="Saved. Run again with changes counts your categories.")


def result_parts(page: Page, stored: StoredExperiment) -> tuple[list[Table], list[Figure], str]:
    """Return (tables, figures, verdict) of an experiment, for files."""
    results, report = experiment_results, stored.report
    if stored.kind in ("sweep", "batch"):
        value = results.ranking(page.workspace, stored)
        verdict = " ".join(results.verdict(value))
        return [results.ranking_table(value)], results.figures(value), verdict
    if stored.kind == "tradeoff":
        points = page.workbench.experiments.open_tradeoff(stored.name).points
        figure = results.tradeoff_figure(points, "single_ms", "recall")
        return [results.tradeoff_table(points)], [figure], ""
    if isinstance(report, BaselinesReport):
        return [results.baseline_table(report), report.tests], [], ""
    if not isinstance(report, SuiteReport):
        return [], [], ""
    parts = experiments.parts(report) if report.parts else ()
    return [*report.tables, *parts], list(report.plots), " ".join(report.notes)


def _in_percent(value: Table) -> Table:
    """Return the table with shares in percent, for LaTeX."""
    heads = tuple(replace(c, format="percent") if c.format == "score" else c for c in value.heads)
    return replace(value, columns=heads, percent=True)


def export(page: Page, event: Event) -> Patch:
    name, suffix = event.text("id"), event.text("suffix")
    stored = page.workbench.experiments.store.open(name)
    tables, drawings, verdict = result_parts(page, stored)
    if suffix == "csv":
        content = "\n".join(csv_table(value) for value in tables)
    elif suffix == "tex":
        content = "\n".join(latex(_in_percent(value)) for value in tables)
    elif suffix == "json":
        content = experiment_results.report_text(page.workspace, name)
    else:
        sections = [Section("", (verdict, *tables)), *(Section(f.title, (f,)) for f in drawings)]
        content = "".join(report.page(name, sections))
    return Patch(download=Download(name=f"{name}.{suffix}", text=content))


def to_mlflow(page: Page, event: Event) -> Patch:
    """Log the experiment's runs below one parent in MLflow."""
    stored = page.workbench.experiments.store.open(event.text("id"))
    problem = page.workbench.tracking.track_experiment(stored.report or SuiteReport(), stored.kind)
    return Patch(say=on_page(problem) if problem else f"{stored.name} is in MLflow.")
