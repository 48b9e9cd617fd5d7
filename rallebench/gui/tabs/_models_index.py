"""Build an index over a corpus of one's own, in the Models tab."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import gradio as gr

from rallebench.catalog import Manifest
from rallebench.corpora.chunking import Chunking
from rallebench.encoders import ENCODERS
from rallebench.errors import RalleError, UsageError
from rallebench.gui import views, views_models
from rallebench.gui.session import guard, guard_stream
from rallebench.gui.tabs._models_add import line, offer
from rallebench.indexing import Building, kinds
from rallebench.workbench import Workbench

ABOUT = (
    "A corpus is a TSV file with the columns `id`, `text` and `title` (a header row may name them), or JSONL "
    "with `id`, `text`, `title` and `page_id`. The page map (JSON, passage id → page id) says which page "
    "each passage belongs to; without one a passage is its own page. The build goes on if you leave "
    "this page; press Build again with the same name to follow it."
)
PACE = 0.25
"""Seconds between two redraws of a build's progress."""


def draw_index(workbench: Workbench, retrievers: gr.CheckboxGroup) -> None:
    """The form of a new index; ``retrievers`` is the list that offers it."""
    with gr.Accordion("Build an index over your own corpus", open=False, elem_id="models-index-panel"):
        gr.Markdown(ABOUT)
        corpus = draw_path("Corpus file", "a path on this machine, or upload one", "index-corpus")
        pages = draw_path(
            "Page map", "a path on this machine, or upload one; may stay empty", "index-page-map"
        )
        with gr.Row(equal_height=True):
            name = line("Name", "empty = made of file and kind", "index-name")
            kind = gr.Radio(list(kinds()), value="bm25", label="Kind", elem_id="models-index-kind")
            encoder = gr.Dropdown(
                list(ENCODERS.names()),
                value="minilm",
                label="Encoder",
                visible=False,
                elem_id="models-index-encoder",
            )
        with gr.Row(equal_height=True):
            length = _count("Chunk size", "0 = rows stay whole", "index-size")
            overlap = _count("Chunk overlap", "how much two neighbours share", "index-overlap")
            unit = gr.Radio(
                ["words", "tokens", "characters"],
                value="words",
                label="Chunk unit",
                elem_id="models-index-unit",
            )
        with gr.Row():
            start = gr.Button("Build", elem_id="models-index-build", scale=3)
            stop = gr.Button("Stop", elem_id="models-index-stop", scale=1, min_width=80)
        news = gr.HTML(elem_id="models-index-progress", elem_classes="rb-flush")
    kind.change(on_kind, [kind], [encoder], show_progress="hidden")
    asked = [retrievers, corpus, pages, name, kind, encoder, length, overlap, unit]
    handler = partial(guard_stream, on_build, workbench)
    start.click(handler, asked, [news, retrievers], show_progress="hidden")
    stop.click(partial(guard, on_stop, workbench), None, [news], show_progress="hidden")


def draw_path(label: str, info: str, part: str) -> gr.Textbox:
    """A file of this machine, or an uploaded one: the upload writes its place into the box."""
    with gr.Row(equal_height=True, elem_classes="rb-tools"):
        path = line(label, info, part, scale=8)
        upload = gr.UploadButton("Upload", elem_id=f"models-{part}-upload", scale=1, min_width=110)
    upload.upload(on_upload, [upload], [path], show_progress="hidden")
    return path


def _count(label: str, info: str, part: str) -> gr.Number:
    return gr.Number(0, label=label, info=info, precision=0, elem_id=f"models-{part}", min_width=160)


def on_kind(kind: str) -> Any:
    """BM25 needs no encoder."""
    return gr.update(visible=kind != "bm25")


def on_upload(path: str) -> str:
    """Where the uploaded file lies."""
    return path


def on_build(workbench: Workbench, ticked: list[str], *asked: Any) -> Iterator[list[Any]]:
    """Build an index with progress; the new one is offered at once."""
    try:
        for news in paced(building(workbench, *asked)):
            if isinstance(news, Manifest):
                names = list(workbench.workspace.retrievers())
                yield [views_models.built(news), offer(names, [*ticked, news.name])]
            else:
                yield [views_models.building(news), gr.skip()]
    except RalleError as error:
        yield [views.error(str(error)), gr.skip()]


def building(
    workbench: Workbench,
    corpus: str,
    page_map: str,
    name: str,
    kind: str,
    encoder: str,
    length: int | None,
    overlap: int | None,
    unit: Any,
) -> Iterator[Building | Manifest]:
    """The build that the form asks for. Raises UsageError before anything is written."""
    if not (corpus or "").strip():
        raise UsageError("No corpus is given; type the path of a corpus file, or upload one.")
    if overlap and not length:
        raise UsageError("A chunk overlap needs a chunk size; give one, or set the overlap to 0.")
    source, pages = Path(corpus.strip()).expanduser(), (page_map or "").strip()
    name = (name or "").strip() or f"{source.name.split('.')[0]}-{kind}"
    if name in workbench.workspace.llms():
        raise UsageError(f"{name!r} is a language model of this workspace; choose another name.")
    return workbench.build_index(
        name,
        source,
        kind,
        encoder=encoder,
        page_map=Path(pages).expanduser() if pages else None,
        chunking=Chunking(int(length), int(overlap or 0), unit) if length else None,
    )


def paced(build: Iterator[Building | Manifest]) -> Iterator[Building | Manifest]:
    """The news of a build, at most one in ``PACE`` seconds of the same stage; the end always."""
    stage, told = "", 0.0
    for news in build:
        if isinstance(news, Manifest):
            yield news
        elif news.stage != stage or time.monotonic() - told >= PACE:
            stage, told = news.stage, time.monotonic()
            yield news


def on_stop(workbench: Workbench) -> str:
    """Stop the builds that go on; whoever follows one is told when it ended."""
    workbench.stop_builds()
    return views.note("Stopping …")
