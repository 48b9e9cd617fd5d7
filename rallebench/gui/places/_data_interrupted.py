"""Imports, builds and downloads that ended with an earlier program, each with the button that completes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

from markupsafe import Markup

from rallebench.core.errors import BadFileError
from rallebench.core.numbers import plural
from rallebench.gui import html
from rallebench.gui.frame import Page
from rallebench.gui.jobs import dismiss_button
from rallebench.render.numbers import moment
from rallebench.services import hub_sources, imports
from rallebench.services.imports import MissingParts
from rallebench.services.index_builds import BUILD
from rallebench.services.interrupted import interrupted_jobs
from rallebench.services.job_records import JobRecord

MOST = 3
"""Notices drawn at once; the list of jobs has all."""


def interrupted_parts(page: Page) -> Markup:
    """Draw the interrupted work of this place, the newest first; '' if there is none."""
    workbench = page.workbench
    drawn = [
        DRAWN[record.kind](page, record)
        for record in reversed(
            interrupted_jobs(page.workspace, workbench.jobs, workbench.experiments.store)
        )
        if record.kind in DRAWN
    ]
    return Markup().join(drawn[:MOST])


def _notice(record: JobRecord, words: str, mend: str = "") -> Markup:
    began = moment(datetime.fromtimestamp(record.started))
    sentence = f"began {began} and ended with the program. {words}"
    return Markup(
        '<div class="warn" role="status"><b>The {} of {}</b> {}<div class="buttons">{}{}</div></div>'
    ).format(record.kind, record.name, sentence, dismiss_button(record), mend)


def _import(page: Page, record: JobRecord) -> Markup:
    try:
        missing = imports.find_missing(page.workspace, imports.read_record(record))
    except BadFileError:
        return _notice(record, "Import it again.")
    words = missing_words(missing)
    if missing.sources:
        return _notice(record, f"{words} Its files are no longer there; choose them again.")
    label = "Import it again" if missing.corpus or missing.dataset else build_label(missing.indexes)
    mend = html.button(label, "import.complete", kind="primary", id=record.name)
    return _notice(record, words, mend)


def missing_words(missing: MissingParts) -> str:
    """Say which parts of an import are there, and which are missing."""
    if missing.corpus:
        return "Its files were not read to the end."
    if missing.dataset:
        return "Its questions are missing."
    names = ", ".join(missing.indexes)
    are = "index is" if len(missing.indexes) == 1 else "indexes are"
    return f"The corpus is complete; its {are} missing: {names}."


def build_label(indexes: tuple[str, ...]) -> str:
    """Return the label of the button that builds missing indexes."""
    count = len(indexes)
    return (
        "Build the missing index" if count == 1 else f"Build the {plural(count, 'missing index')}"
    )


def _build(page: Page, record: JobRecord) -> Markup:
    mend = html.button("Build it", "import.complete_build", kind="primary", id=record.name)
    return _notice(record, "Passages that were encoded are used again.", mend)


def _download(page: Page, record: JobRecord) -> Markup:
    mend = html.button("Download it again", "import.preview", kind="primary", path=record.name)
    return _notice(record, "Files that arrived are kept.", mend)


DRAWN: Mapping[str, Callable[[Page, JobRecord], Markup]] = {
    imports.KIND: _import,
    BUILD: _build,
    hub_sources.KIND: _download,
}
