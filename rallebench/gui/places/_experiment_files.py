"""The files of an experiment: read, labelled, and its results in forms of other tools."""

from __future__ import annotations

import base64
import mimetypes
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rallebench.core.numbers import mean_of
from rallebench.core.table_files import csv_table, latex
from rallebench.core.tables import Figure, Section, Table
from rallebench.gui import form, html
from rallebench.gui.frame import Event, Page, Patch
from rallebench.gui.html import e
from rallebench.gui.wording import on_page
from rallebench.render import experiments, report
from rallebench.services import experiment_results
from rallebench.services.experiments import StoredExperiment

MOST_FILES = 100


def register(page: Page) -> None:
    """Add the actions."""
    page.actions("experiments", save_file, edit_file, save_labels, export, to_mlflow)


def draw(page: Page, stored: StoredExperiment) -> str:
    """The files with labels to fill in, then all files."""
    names, drawn, lines = experiment_results.files(page.workbench, stored.name), "", []
    for number, name in enumerate(names):
        data = {"id": stored.name, "file": name}
        if "label" in name:
            button = html.button("Label the errors", "experiments.edit_file", **data)
            drawn += f'<div class="row"><span>{e(name)}</span>{button}</div>'
        if number < MOST_FILES:
            save = html.button("Save", "experiments.save_file", kind="quiet", **data)
            lines.append([save, e(name)])
    if drawn:
        hint = "Give each error a category, then run again: your counts stand beside the paper's."
        drawn = html.heading("Errors") + html.note(hint) + drawn
    if not lines:
        return drawn
    table, gist = html.rows(("", "File"), lines, kind="x-files"), f"{len(names)} files"
    return drawn + html.fold("Files", table, gist=gist, id="x-files")


def save_file(page: Page, event: Event) -> Patch:
    """A file of the experiment."""
    path = experiment_results.file_path(page.workbench, event.text("id"), event.text("file"))
    kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    content = base64.b64encode(path.read_bytes()).decode()
    return {"download": {"name": path.name, "base64": content, "type": kind}}


def edit_file(page: Page, event: Event) -> Patch:
    """A drawer with a file of labels: a row an error, its category a field."""
    name, file = event.text("id"), event.text("file")
    _, lines = experiment_results.label_rows(page.workbench, name, file)
    fields = ""
    for i, row in enumerate(lines):
        field = form.text(f"c:{i}", "Category", row["category"], more=' list="x-categories"')
        fields += f'<div class="x-label"><b>{e(row["question"])}</b><small>needed {e(row["required"])}</small><p>{e(row["prediction"][:600])}</p>{field}</div>'
    data = {"id": name, "file": file}
    save = html.button("Save the labels", "experiments.save_labels", kind="primary", **data)
    note = html.note(f"{len(lines)} answers that are not right.")
    offered = experiment_results.categories(page.workbench, name)
    body = f'<div data-form>{fields}<div class="buttons">{save}</div></div>'
    parts = (note, form.suggestions("x-categories", offered), body)
    return {"drawer": html.drawer("Errors to label", *parts)}


def save_labels(page: Page, event: Event) -> Patch:
    """Write the categories into the file; the benchmark reads them when it is run again."""
    name, file = event.text("id"), event.text("file")
    chosen = {int(key[2:]): event.text(key) for key in event.data if key.startswith("c:")}
    path = experiment_results.write_labels(page.workbench, name, file, chosen)
    if (design := event.session.get("design")) is not None:
        stored = page.workbench.experiments.store.open(name)
        design.settings.setdefault(stored.kind, {})["labels"] = str(path)
    return {"drawer": "", "say": "Saved. Run again with changes counts your categories."}


# exports


def tables_of(document: Mapping[str, Any]) -> list[Table]:
    """The tables of a report."""
    return [Table.from_json(value) for value in document.get("tables", ())]


def _tables(page: Page, stored: StoredExperiment) -> tuple[list[Table], list[Figure], str]:
    """(tables, figures, verdict) of an experiment for files."""
    document, results = stored.report or {}, experiment_results
    if stored.kind in ("sweep", "batch"):
        value = results.ranking(page.workbench, stored)
        return [results.ranking_table(value)], results.figures(value), results.verdict(value)
    if stored.kind == "tradeoff":
        points = page.workbench.experiments.open_tradeoff(stored.name).points
        figure = results.tradeoff_figure(points, "single_ms", "recall")
        return [results.tradeoff_table(points)], [figure], ""
    if stored.kind == "baselines":
        return [results.baseline_table(document)], [], ""
    tables = tables_of(document)
    tables += experiments.parts(document) if document.get("parts") else []
    figures = [Figure(**value) for value in document.get("plots", ())]
    return tables, figures, " ".join(document.get("notes", ()))


def _means(value: Table) -> Table:
    """The table with bare means, for LaTeX; shares as percentages."""
    rows = tuple(
        tuple(c["value"] if (c := mean_of(cell)) else cell for cell in row) for row in value.rows
    )
    heads = tuple(replace(c, format="percent") if c.format == "score" else c for c in value.heads)
    return Table(value.title, heads, rows, True)


def export(page: Page, event: Event) -> Patch:
    """The experiment as a file."""
    name, suffix = event.text("id"), event.text("suffix")
    stored = page.workbench.experiments.store.open(name)
    tables, figures, verdict = _tables(page, stored)
    if suffix == "csv":
        content = "\n".join(csv_table(value) for value in tables)
    elif suffix == "tex":
        content = "\n".join(latex(_means(value)) for value in tables)
    elif suffix == "json":
        content = experiment_results.report_text(page.workbench, name)
    else:
        sections = [Section("", (verdict, *tables)), *(Section(f.title, (f,)) for f in figures)]
        content = "".join(report.page(name, sections))
    return {"download": {"name": f"{name}.{suffix}", "text": content}}


def to_mlflow(page: Page, event: Event) -> Patch:
    """Put the experiment's runs below one parent in MLflow."""
    stored = page.workbench.experiments.store.open(event.text("id"))
    problem = page.workbench.tracking.track_experiment(stored.report or {}, stored.kind)
    return {"say": on_page(problem) if problem else f"{stored.name} is in MLflow."}
