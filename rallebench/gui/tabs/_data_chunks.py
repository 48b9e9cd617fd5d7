"""Cut a corpus: the form that Build shares, and a document of one's own with its cuts marked."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import gradio as gr

from rallebench.core.errors import RalleError, UsageError
from rallebench.core.types import Passage
from rallebench.corpora.chunking import PRESETS, UNIT_OF, Chunking, choose
from rallebench.gui import views, views_data
from rallebench.gui.session import guard
from rallebench.gui.tabs._data_paths import corpora_choices, draw_corpus
from rallebench.services.workbench import Workbench

WHOLE, OWN = "whole", "own"
CHOICES = [
    ("rows stay whole", WHOLE),
    *((f"{name}: {c.size} {c.unit}, {c.how}", name) for name, c in PRESETS.items()),
    ("settings of my own", OWN),
]
DEEPEST = 100_000
NOTHING = "Choose a corpus, or paste a text; the cuts are drawn where they would fall."


def draw_chunking(part: str, value: str = WHOLE) -> list[Any]:
    """The fields that say how passages are cut: preset, way, size, overlap, unit."""
    own = value != WHOLE
    with gr.Row(equal_height=True):
        preset = gr.Dropdown(
            CHOICES, value=value, label="Cutting", elem_id=f"{part}-preset", scale=3, min_width=220
        )
        how = gr.Dropdown(
            ["blocks", "recursive", "sentences"],
            value="blocks",
            label="Way",
            visible=False,
            elem_id=f"{part}-how",
            scale=2,
            min_width=140,
        )
        size = gr.Number(
            100,
            label="Size",
            precision=0,
            visible=own,
            elem_id=f"{part}-size",
            scale=1,
            min_width=110,
        )
        overlap = gr.Number(
            0,
            label="Overlap",
            precision=0,
            visible=own,
            elem_id=f"{part}-overlap",
            scale=1,
            min_width=110,
        )
        unit = gr.Dropdown(
            ["words", "tokens", "characters"],
            value="words",
            label="Unit",
            visible=False,
            elem_id=f"{part}-unit",
            scale=2,
            min_width=140,
        )
    fields = [preset, how, size, overlap, unit]
    preset.change(on_preset, [preset], fields[1:], show_progress="hidden")
    how.input(on_how, [how], [unit], show_progress="hidden")
    return fields


def on_preset(preset: str) -> list[Any]:
    """Show the fields that a preset leaves open, with its values."""
    known = PRESETS.get(preset, PRESETS["kilt"])
    own, some = preset == OWN, preset != WHOLE
    return [
        gr.update(visible=own),
        gr.update(visible=some, value=known.size),
        gr.update(visible=some, value=known.overlap),
        gr.update(visible=own, value=known.unit),
    ]


def on_how(how: str) -> Any:
    """A way that counts in one unit only says which."""
    unit = UNIT_OF.get(how)
    return gr.update(value=unit or "words", interactive=unit is None)


def read_chunking(
    preset: str, how: str, size: float | None, overlap: float | None, unit: str
) -> Chunking | None:
    """The fields as a Chunking; None for whole rows. Raises UsageError."""
    if preset == WHOLE:
        return None
    if size is None:
        raise UsageError("The size of a chunk is empty; give a number.")
    if preset == OWN:
        return choose(how=how, size=int(size), overlap=int(overlap or 0), unit=unit)
    return choose(preset=preset, size=int(size), overlap=int(overlap or 0))


def draw_chunks(workbench: Workbench) -> Any:
    """The section: a document and its cuts; returns the chooser of corpora."""
    with gr.Row(equal_height=True):
        corpus = draw_corpus("Corpus", "data-chunks-corpus", corpora_choices(workbench))
        number = gr.Number(
            1,
            label="Document",
            info="its number, from 1",
            precision=0,
            minimum=1,
            elem_id="data-chunks-document",
            scale=1,
            min_width=110,
        )
    text = gr.Textbox(
        label="… or a text of your own",
        placeholder="pasted here, it is cut in place of a document",
        lines=2,
        max_lines=8,
        elem_id="data-chunks-text",
    )
    fields = draw_chunking("data-chunks", "kilt")
    show = gr.Button("Show the cuts", variant="primary", elem_id="data-chunks-show")
    shown = gr.HTML(views.empty(NOTHING), elem_id="data-chunks-shown", elem_classes="rb-flush")
    handler, asked = partial(guard, on_show, workbench), [corpus, number, text, *fields]
    gr.on([show.click, text.submit, number.submit], handler, asked, [shown], show_progress="hidden")
    for changed in fields[1:]:
        changed.change(handler, asked, [shown], show_progress="hidden", trigger_mode="always_last")
    return corpus


def on_show(
    workbench: Workbench, corpus: str | None, number: float | None, text: str, *fields: Any
) -> str:
    """Draw the cuts of a document."""
    try:
        chunking = read_chunking(*fields)
        document = document_of(workbench, corpus, number, text)
    except RalleError as error:
        return views.error(str(error))
    if document is None:
        return views.empty(NOTHING)
    return views_data.chunks(document, chunking)


def document_of(
    workbench: Workbench, corpus: str | None, number: float | None, text: str
) -> Passage | None:
    """What is cut: the pasted text, or a document of the corpus; None if neither is given. Raises UsageError."""
    if (text or "").strip():
        return Passage("pasted", text)
    if not (corpus or "").strip():
        return None
    place = int(number or 1)
    if not 1 <= place <= DEEPEST:
        raise UsageError(f"Document is {place}; it must be from 1 to {DEEPEST}.")
    found = next(itertools.islice(workbench.data.documents(str(corpus)), place - 1, None), None)
    if found is None:
        raise UsageError(f"The corpus has fewer than {place} documents; choose a smaller number.")
    return found
