"""Bring a corpus or a question set into the workspace: look at its first rows, then import it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import gradio as gr

from rallebench.core.errors import RalleError, UsageError
from rallebench.corpora import CORPORA
from rallebench.datasets import DATASETS
from rallebench.gui import views, views_data
from rallebench.gui.session import guard
from rallebench.gui.tabs._data_delete import draw_delete
from rallebench.gui.tabs._data_paths import draw_path, on_upload, whole_path
from rallebench.gui.works import imports_of
from rallebench.services.workbench import Workbench

CORPUS, QUESTIONS = "a corpus", "a question set"
RECOGNISED, STOP, SKIP = "recognised", "stop", "leave out"
NO_PREVIEW = (
    "Drop a file, or type a path, and press Preview: its first rows and its bad rows come here."
)


def forms(what: str) -> list[str]:
    """The formats that can be chosen."""
    names = CORPORA.names() if what == CORPUS else DATASETS.names()
    return [RECOGNISED, *(name for name in names if name != "imported")]


def draw_corpora(workbench: Workbench) -> dict[str, Any]:
    """The section; returns the components that a refresh fills."""
    with gr.Row(equal_height=True):
        with gr.Column(scale=3, min_width=280):
            what = gr.Radio(
                [CORPUS, QUESTIONS], value=CORPUS, label="Import", elem_id="data-import-what"
            )
            drop = gr.File(
                label="A file",
                show_label=False,
                type="filepath",
                height=150,
                elem_id="data-import-drop",
            )
        with gr.Column(scale=7, min_width=320):
            path = gr.Textbox(
                label="File or folder",
                info="a path on this machine; a dropped file fills it in",
                max_lines=1,
                elem_id="data-import-path",
            )
            with gr.Row(equal_height=True):
                name = gr.Textbox(
                    label="Name",
                    placeholder="made of the file's name",
                    max_lines=1,
                    elem_id="data-import-name",
                    min_width=160,
                )
                form = gr.Dropdown(
                    forms(CORPUS),
                    value=RECOGNISED,
                    label="Format",
                    elem_id="data-import-format",
                    min_width=130,
                )
                bad = gr.Radio(
                    [STOP, SKIP],
                    value=STOP,
                    label="At a bad row",
                    elem_id="data-import-bad",
                    min_width=230,
                )
            with gr.Column() as paged:
                pages = draw_path(
                    "Page map", "passage id → page id; may stay empty", "data-import-pages"
                )
    with gr.Row(elem_classes="rb-tools"):
        preview = gr.Button("Preview", elem_id="data-import-preview", scale=2)
        start = gr.Button("Import", variant="primary", elem_id="data-import-start", scale=3)
        stop = gr.Button("Stop", elem_id="data-import-stop", scale=1, min_width=90)
    said = gr.HTML(elem_id="data-import-status", elem_classes="rb-flush")
    panel = gr.HTML(elem_id="data-import-progress", elem_classes="rb-flush")
    rows = gr.HTML(views.empty(NO_PREVIEW), elem_id="data-import-rows", elem_classes="rb-flush")
    listed = draw_listed(workbench)
    source = [what, path, form, pages]
    look = partial(guard, on_preview, workbench)
    what.change(on_what, [what], [form, paged], show_progress="hidden")
    drop.upload(on_upload, [drop], [path], show_progress="hidden").then(
        look, source, [rows], show_progress="hidden"
    )
    gr.on([preview.click, path.submit], look, source, [rows], show_progress="minimal")
    gr.on(
        [preview.click, path.submit], on_another, None, [said], show_progress="hidden"
    )  # it was about another file
    start.click(
        partial(guard, on_import, workbench),
        [*source, name, bad],
        [said, panel, rows],
        show_progress="minimal",
    )
    stop.click(partial(guard, on_stop, workbench), None, [said], show_progress="hidden")
    return {"imports": panel, **listed}


def draw_listed(workbench: Workbench) -> dict[str, Any]:
    """What is imported already."""
    gr.Markdown("### Imported corpora")
    table = gr.HTML(elem_id="data-corpora", elem_classes="rb-flush")
    chosen = draw_delete(workbench, "corpus", "data-corpus", "Delete a corpus")
    gr.Markdown("### Question sets")
    sets = gr.HTML(elem_id="data-questions", elem_classes="rb-flush")
    own = draw_delete(workbench, "question set", "data-questions", "Delete a question set")
    return {"corpora_table": table, "corpora": chosen, "question_table": sets, "own_sets": own}


def on_what(what: str) -> list[Any]:
    """Corpora and question sets have formats of their own; pages belong to a corpus."""
    return [gr.update(choices=forms(what), value=RECOGNISED), gr.update(visible=what == CORPUS)]


def source_of(path: str, form: str) -> tuple[Path, str]:
    """(place, format or '') that the form asks for. Raises UsageError."""
    text = whole_path(path)
    if not text:
        raise UsageError("No file is given; drop one, or type the path of a file or folder.")
    return Path(text).expanduser(), "" if form == RECOGNISED else form


def map_of(what: str, pages: str) -> Path | None:
    """The page map of a corpus, if one is given."""
    text = whole_path(pages)
    return Path(text).expanduser() if text and what == CORPUS else None


def on_another() -> str:
    """Nothing is said of a file that is looked at anew."""
    return ""


def on_preview(workbench: Workbench, what: str, path: str, form: str, pages: str) -> str:
    """Show the first rows, and what is wrong with some."""
    try:
        source, named = source_of(path, form)
        if what == CORPUS:
            return views_data.passages(
                workbench.data.preview_corpus(source, form=named, page_map=map_of(what, pages))
            )
        return views_data.questions(workbench.data.preview_questions(source, form=named))
    except RalleError as error:
        return views.error(str(error))


def on_import(
    workbench: Workbench, what: str, path: str, form: str, pages: str, name: str, bad: str
) -> list[Any]:
    """Import in the background; the panel follows it, and the preview makes room."""
    try:
        source, named = source_of(path, form)
        name = (name or "").strip() or source.name.split(".")[0]
        if what == QUESTIONS:
            made = workbench.data.import_dataset(name, source, form=named, skip_bad=bad == SKIP)
            return [views_data.question_set(made), gr.skip(), ""]
        start(
            workbench, name, source, form=named, page_map=map_of(what, pages), skip_bad=bad == SKIP
        )
    except RalleError as error:
        return [views.error(str(error)), gr.skip(), gr.skip()]
    return ["", importing(workbench), ""]


def start(workbench: Workbench, name: str, source: Path, **settings: Any) -> None:
    """Begin an import, or join it; what is wrong at once is raised and not told again."""
    try:
        next(iter(workbench.data.import_corpus(name, source, **settings)), None)
    except RalleError:
        imports_of(workbench).forget(name)
        raise


def importing(workbench: Workbench) -> str:
    """The imports that go on, and how the last ones ended."""
    return views_data.works(imports_of(workbench), views_data.importing)


def on_stop(workbench: Workbench) -> str:
    """Stop the imports that go on; nothing is left of them."""
    if not imports_of(workbench).going_on():
        return views.note("No import goes on, so there is nothing to stop.")
    imports_of(workbench).stop()
    return ""
