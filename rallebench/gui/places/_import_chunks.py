"""The live preview of a chunking in the import panel: counts, an answer that is cut, and the first chunks."""

from __future__ import annotations

from markupsafe import Markup

from rallebench.core.chunking import Chunking
from rallebench.core.numbers import plural
from rallebench.gui import html
from rallebench.gui.html import escape
from rallebench.gui.places._import_state import ImportState
from rallebench.services import import_previews
from rallebench.services.chunk_surveys import ChunkSurvey, CutAnswer, DocumentSample, long_sentence
from rallebench.services.import_previews import Preview

CHARACTERS = 280


def chunk_preview(preview: Preview, state: ImportState) -> Markup:
    """Draw the counts of the chunks, and the first of them."""
    drawn = Markup('<div class="chunk-facts">{}</div>').format(facts(state))
    if survey := state.survey:
        if survey.answers and state.chunking:
            drawn += cut_answer(survey)
        if state.sample and survey.documents == len(state.sample.documents):
            more = not (preview.ended and state.sample.is_whole)
            drawn += html.warning(long_sentence(survey, state.chunking, state.encoder, more=more))
    noun = "chunk" if state.chunking else "passage"
    return drawn + first_rows(noun, preview, first_chunks(preview, state.chunking))


def facts(state: ImportState) -> Markup:
    """Draw the four counts, with a line about the documents that they are of."""
    survey, sample = state.survey or ChunkSurvey(), state.sample
    count = f"{survey.chunks:,}"
    if sample and not sample.is_whole and survey.documents == len(sample.documents):
        count = f"about {survey.chunks / sample.share:,.0f}"
    unit = "Words" if state.survey and not survey.window else "Tokens"
    share = "–"
    if survey.window and survey.chunks:
        share = f"{100 * survey.longer / survey.chunks:.0f} %"
    parts = [
        ("Chunks" if state.chunking else "Passages", count),
        (f"{unit} in the longest", f"{survey.longest:,}"),
        ("Longer than the encoder reads", share),
    ]
    if state.chunking:
        known = f"{survey.cut:,} of {survey.answers:,}" if survey.answers else "–"
        parts.append(("Answers cut in two", known))
    if state.survey is None:
        parts = [(label, "…") for label, _ in parts]
    tiles = Markup().join(
        Markup("<div><b>{}</b><small>{}</small></div>").format(value, label)
        for label, value in parts
    )
    return Markup("<div>{}</div>{}").format(tiles, html.note(about_sample(survey, sample)))


def about_sample(survey: ChunkSurvey, sample: DocumentSample | None) -> str:
    """Say which documents the counts are of."""
    if sample is None:
        return "Counting …"
    if survey.documents < len(sample.documents):
        part = f"{len(sample.documents):,}"
        if not sample.is_whole:
            part = f"a sample of {part} of {plural(sample.total, 'document')}"
        return f"Cutting document {survey.documents + 1:,} of {part} …"
    if sample.is_whole:
        return f"Counted in {plural(sample.total, 'document')}."
    return (
        f"Counted in a sample of {len(sample.documents):,} of {plural(sample.total, 'document')}."
    )


def cut_answer(survey: ChunkSurvey) -> Markup:
    """Draw an answer that no chunk holds whole, or say that there is none."""
    if (example := survey.example) is None:
        whole = plural(survey.answers, "answer")
        line = f"Each of the {whole} in these documents is whole in a chunk."
        if survey.answers == 1:
            line = "The answer in these documents is whole in a chunk."
        return Markup('<div class="cut-answer">{}</div>').format(html.note(line))
    return Markup(
        '<div class="cut-answer"><p class="note" dir="auto">{}</p><p dir="auto">{}</p></div>'
    ).format(example.question, cut_text(example))


def cut_text(example: CutAnswer) -> Markup:
    """Draw the text around the border of two chunks."""
    border = Markup('<i class="border" role="img" aria-label="end of the chunk">│</i>')
    return Markup("…{}{}{}…").format(example.before, border, example.after)


def first_chunks(preview: Preview, chunking: Chunking | None) -> Markup:
    return Markup().join(
        row(
            Markup('{}<span class="n">{}</span>').format(p.title or p.doc_id, p.doc_id),
            escape(short(p.text)),
        )
        for p, _ in import_previews.first_chunks(preview.rows, chunking)
    )


def count_read(preview: Preview) -> str:
    """Say how many rows or documents were read."""
    noun = "document" if preview.form == "folder" else "row"
    return f"{plural(preview.read, noun)} read{'' if preview.ended else ', there are more'}"


def first_rows(noun: str, preview: Preview, items: Markup) -> Markup:
    """Draw the first rows below their heading."""
    items = items or html.note(f"No {noun} can be read here. Choose another kind or format.")
    heading = html.heading(f"First {noun}s", count_read(preview))
    return Markup('{}<div class="firsts" id="import-firsts">{}</div>').format(heading, items)


def row(title: str, text: str) -> Markup:
    """Draw one row: its title above its text, both HTML."""
    return Markup(
        '<article class="bit"><h3 dir="auto">{}</h3><p dir="auto">{}</p></article>'
    ).format(title, text)


def short(text: str) -> str:
    """Return the beginning of a text."""
    flat = " ".join(text.split())
    return flat if len(flat) <= CHARACTERS else flat[: CHARACTERS - 1] + "…"
