"""Build an index over a corpus: its kind with its settings, the encoder, the cutting, and what it will take."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import gradio as gr

from rallebench.core.errors import RalleError, UsageError
from rallebench.encoders.references import encoders
from rallebench.gui import views, views_data
from rallebench.gui.session import guard, guard_stream
from rallebench.gui.tabs._data_chunks import draw_chunking, read_chunking
from rallebench.gui.tabs._data_paths import (
    STARTER_CORPUS,
    corpora_choices,
    draw_corpus,
    draw_path,
    whole_path,
)
from rallebench.gui.tabs._data_settings import Known, draw_settings, given, show_group
from rallebench.gui.works import builds_of
from rallebench.retrievers import INDEX_KINDS, needs_encoder
from rallebench.services.workbench import Workbench
from rallebench.workspace.indexes.build import kinds
from rallebench.workspace.paths import STARTER

NO_BUILD = "Nothing is being built. A build goes on if you leave this page; Build with the same form continues one."
ENCODER_INFO = "a name, or written out: sentence_transformers:/models/mine?query_prompt=query: "


def known_settings() -> Known:
    """Kind → what can be set when it is built."""
    return {kind: INDEX_KINDS.entry(kind).form for kind in kinds()}


def about_kind(kind: str) -> str:
    """One line about a kind."""
    return INDEX_KINDS.entry(kind).about


def draw_build(workbench: Workbench) -> dict[str, Any]:
    """The section; returns the components that a refresh fills."""
    with gr.Row(equal_height=True):
        corpus = draw_corpus("Corpus", "data-build-corpus", corpora_choices(workbench))
        name = gr.Textbox(
            label="Name of the index",
            info="empty = made of corpus and kind",
            max_lines=1,
            elem_id="data-build-name",
            scale=3,
            min_width=200,
        )
    kind = gr.Radio(
        list(kinds()),
        value=kinds()[0],
        label="Kind",
        info=about_kind(kinds()[0]),
        elem_id="data-build-kind",
    )
    form = draw_settings(known_settings(), "data-build", kinds()[0])
    encoder = gr.Dropdown(
        [(f"{name}: {about}", name) for name, about in encoders().items()],
        value="minilm",
        label="Encoder",
        info=ENCODER_INFO,
        allow_custom_value=True,
        visible=False,
        elem_id="data-build-encoder",
    )
    chunking = draw_chunking("data-build")
    with gr.Accordion(
        "Page map, for a corpus that is not imported", open=False, elem_id="data-build-pages-panel"
    ):
        pages = draw_path("Page map", "passage id → page id; may stay empty", "data-build-pages")
    with gr.Row(elem_classes="rb-tools"):
        weigh = gr.Button("Estimate", elem_id="data-build-estimate", scale=2)
        start = gr.Button("Build", variant="primary", elem_id="data-build-start", scale=3)
        going = gr.Dropdown(
            [], label="Builds going on", elem_id="data-build-going", scale=3, min_width=160
        )
        stop = gr.Button("Stop", elem_id="data-build-stop", scale=1, min_width=90)
        clear = gr.Button("Clear", elem_id="data-build-clear", scale=1, min_width=90)
    said = gr.HTML(elem_id="data-build-status", elem_classes="rb-flush")
    panel = gr.HTML(views.empty(NO_BUILD), elem_id="data-build-progress", elem_classes="rb-flush")
    kind.change(on_kind, [kind], [kind, encoder, *form.groups.values()], show_progress="hidden")
    asked = [corpus, kind, encoder, *chunking, *form.inputs]
    weigh.click(
        partial(guard_stream, on_estimate, workbench, form.names),
        asked,
        [said],
        show_progress="hidden",
    )
    start.click(
        partial(guard, on_build, workbench, form.names),
        [name, pages, *asked],
        [said, panel],
        show_progress="hidden",
    )
    stop.click(partial(guard, on_stop, workbench), [going], [said, panel], show_progress="hidden")
    clear.click(partial(guard, on_clear, workbench), None, [panel], show_progress="hidden")
    return {"builds": panel, "building": going, "sources": corpus}


def on_kind(kind: str) -> list[Any]:
    """Say what a kind is, show its settings, and the encoder where it needs one."""
    return [
        gr.update(info=about_kind(kind)),
        gr.update(visible=needs_encoder(kind)),
        *show_group(kinds(), kind),
    ]


Names = list[tuple[str, str]]


def on_estimate(
    workbench: Workbench, names: Names, corpus: str, kind: str, encoder: str, *fields: Any
) -> Iterator[str]:
    """Measure on a sample what the build would take."""
    try:
        for piece in workbench.data.estimate_build(
            source_of(corpus),
            kind,
            encoder=encoder or "",
            chunking=read_chunking(*fields[:5]),
            parameters=given(names, kind, fields[5:]),
        ):
            yield views_data.estimate(piece)
    except RalleError as error:
        yield views.error(str(error))


def on_build(
    workbench: Workbench,
    names: Names,
    name: str,
    pages: str,
    corpus: str,
    kind: str,
    encoder: str,
    *fields: Any,
) -> list[Any]:
    """Build in the background; the panel follows it."""
    try:
        source = source_of(corpus)
        start(
            workbench,
            free_name(workbench, name, source, kind),
            source,
            kind,
            encoder=encoder or "",
            page_map=map_of(pages, source),
            chunking=read_chunking(*fields[:5]),
            parameters=given(names, kind, fields[5:]),
        )
    except RalleError as error:
        return [views.error(str(error)), building(workbench)]
    return ["", building(workbench)]


def start(workbench: Workbench, name: str, corpus: str, kind: str, **settings: Any) -> None:
    """Begin a build, or join it; what is wrong at once is raised and not told again."""
    try:
        next(iter(workbench.data.build_index(name, corpus, kind, **settings)), None)
    except RalleError:
        builds_of(workbench).forget(name)
        raise


def source_of(corpus: str | None) -> str:
    """The corpus that is asked for. Raises UsageError."""
    text = whole_path(corpus)
    if not text:
        raise UsageError(
            "No corpus is given; choose an imported one, or type the path of a file or folder."
        )
    return text


def map_of(pages: str, corpus: str) -> Path | None:
    """The page map that is asked for; the shipped corpus has its own."""
    text = whole_path(pages) or (str(STARTER / "page_map.json") if corpus == STARTER_CORPUS else "")
    return Path(text).expanduser() if text else None


def free_name(workbench: Workbench, name: str, corpus: str, kind: str) -> str:
    """The index's name, or one made of corpus and kind. Raises UsageError for a model's name."""
    made = "starter" if corpus == STARTER_CORPUS else Path(corpus).name.split(".")[0]
    name = (name or "").strip() or f"{made}-{kind}"
    if name in workbench.workspace.llms():
        raise UsageError(f"{name!r} is a language model of this workspace; choose another name.")
    return name


def building(workbench: Workbench) -> str:
    """The builds that go on, and how the last ones ended."""
    return views_data.works(builds_of(workbench), views_data.building) or views.empty(NO_BUILD)


def on_stop(workbench: Workbench, name: str | None) -> list[str]:
    """Stop the chosen build; the vectors that are encoded stay for the next one."""
    if not name or name not in builds_of(workbench).going_on():
        return [views.note("No build goes on, so there is nothing to stop."), building(workbench)]
    builds_of(workbench).stop(name)
    return ["", building(workbench)]


def on_clear(workbench: Workbench) -> str:
    """Forget how builds ended."""
    for name in builds_of(workbench).ended():
        builds_of(workbench).forget(name)
    return building(workbench)
