"""The import panel's second step: the source as it is read, its chunks, the questions about it, and what to build."""

from __future__ import annotations

from markupsafe import Markup

from rallebench.core.encodings import NAMEABLE, label
from rallebench.core.numbers import plural
from rallebench.core.types import Passage
from rallebench.gui import form, html
from rallebench.gui.frame import Page
from rallebench.gui.html import escape
from rallebench.gui.places._data_build import PAGES, chunk_fields
from rallebench.gui.places._data_columns import columns_part, missing_role
from rallebench.gui.places._data_imported import warning_list
from rallebench.gui.places._import_chunks import chunk_preview, first_rows, row, short
from rallebench.gui.places._import_questions import asked_part, first_questions, start_button
from rallebench.gui.places._import_state import INDEXES, ImportState
from rallebench.gui.wording import on_page
from rallebench.services import import_previews, uploads
from rallebench.services.import_previews import FirstRows, Looked, Preview
from rallebench.views import catalog

KINDS = {"corpus": "Corpus", "dataset": "Dataset", "both": "Corpus and dataset"}
PAGE_MAP = "Passage id → page id, where the corpus does not name its pages."
ENCODINGS = (("", "Detected"), *((name, label(name)) for name in NAMEABLE))
ON_LOOK = form.on_change("import.preview")


def drop_area(
    words: Markup,
    label: str,
    kind: str = "drop",
    more: Markup = html.NOTHING,
    takes: str | None = None,
) -> Markup:
    """Draw an area for dropping or choosing files. ``takes``: "pages" for a page map."""
    data = html.attributes(upload="import.preview", as_=takes)
    return Markup(
        '<label class="{}"{}>{}<input type="file"{} class="sr" aria-label="{}"></label>\n'
    ).format(kind, data, words, more, label)


def reading_parts(state: ImportState, first: FirstRows | None = None) -> Markup:
    """Draw a source that is being read, with its first rows."""
    name = state.source.name if state.source else ""
    items, noun = Markup(), "row"
    for item in first.rows if first else ():
        is_passage = isinstance(item, Passage)
        noun = "passage" if is_passage else "question"
        title = item.title or item.doc_id if is_passage else item.question.text
        below = item.text if is_passage else html.join_facts(*item.gold.answers[:3])
        items += row(Markup("<span>{}</span>").format(title), escape(short(below)))
    partial = Preview("", (), (), 0, first.count if first else 0, ended=False)
    rows = first_rows(noun, partial, items) if items else Markup('<div class="firsts"></div>')
    return Markup(
        '<p id="import-source"><b class="nm">{}</b></p><div id="import-progress">{}</div>{}'
        '<div class="buttons">{}</div>'
    ).format(name, progress(first), rows, html.button("Back", "import.again"))


def progress(first: FirstRows | None) -> Markup:
    """Draw how far a source has been read."""
    if first is None:
        return html.doing("Opening it …")
    noun = "document" if first.rows and isinstance(first.rows[0], Passage) else "question"
    return html.doing(f"{plural(first.count, noun)} read …", share=first.share)


def is_surely_corpus(state: ImportState) -> bool:
    """Return whether a source can only be a corpus, so that its settings are drawn while it is read."""
    return (
        state.source is not None
        and state.source.is_dir()
        and state.kind in ("", "corpus")
        and not import_previews.names_questions(state.source)
    )


def partial_look(state: ImportState, first: FirstRows) -> Looked:
    """Return the first passages of a corpus as if they were all."""
    assert state.source is not None
    corpus = Preview(first.form, first.rows, (), 0, first.count, ended=False, seen=first.rows)
    return Looked(state.source, "corpus", corpus, None)


def source_line(seen: Looked, kind: str) -> Markup:
    """Say what the source is."""
    of_files = f" of {plural(seen.files, 'file')}" if seen.files else ""
    return Markup('<b class="nm">{}</b> <span class="note">is a {}{}</span>').format(
        seen.source.name, KINDS[kind].lower(), of_files
    )


def detected_form(seen: Looked, kind: str) -> str:
    """Return the format in which a source of this kind is read; '' if it is not recognised."""
    recognised = seen.dataset if kind == "dataset" else seen.corpus or seen.dataset
    if seen.table and not (recognised and recognised.rows):
        return seen.table.form
    return recognised.form if recognised else ""


def preview_parts(
    page: Page, seen: Looked, state: ImportState, reading: FirstRows | None = None
) -> Markup:
    """Draw the whole step. ``reading``: the rows so far, while the source is read."""
    kind = state.kind or seen.kind
    parts = Markup(
        '<p id="import-source">{}</p><div id="import-progress">{}</div><div id="import-found">{}</div>'
    ).format(
        source_line(seen, kind),
        progress(reading) if reading else Markup(),
        findings(page, seen, state),
    )
    is_empty = not any(part and part.rows for part in (seen.corpus, seen.dataset))
    if seen.corpus and not is_empty:
        parts += chunk_settings(seen.corpus, state)
        parts += Markup('<div id="import-chunks">{}</div>').format(
            chunk_preview(seen.corpus, state)
        )
        if kind != "both":
            parts += Markup('<div id="import-asked">{}</div>').format(asked_part(page, state))
    parts += source_settings(seen, state, kind)
    if not is_empty:
        parts += form.text("name", "Name", state.name or seen.name, more=Markup(" required"))
        if seen.corpus:
            ticks = form.checks("indexes", INDEXES, state.targets, "Build when done")
            parts += Markup("<div{}>{}</div>").format(form.on_change("import.count"), ticks)
    go = Markup() if is_empty else start_button(page, state)
    if reading:
        go = html.button("Reading …", disabled=True)
    return Markup('{}<div class="buttons" id="import-go">{}{}</div>').format(
        parts, html.button("Back", "import.again"), go
    )


def finished_parts(page: Page, seen: Looked, state: ImportState) -> dict[str, str]:
    """Return the parts that change when a corpus is read to its end, by element id."""
    assert seen.corpus is not None
    return {
        "import-source": source_line(seen, "corpus"),
        "import-progress": Markup(),
        "import-found": findings(page, seen, state),
        "import-chunks": chunk_preview(seen.corpus, state),
        "import-go": html.button("Back", "import.again") + start_button(page, state),
    }


def findings(page: Page, seen: Looked, state: ImportState) -> Markup:
    """Draw what a person must know or decide first: columns, problems, questions, bad rows."""
    parts = columns_part(seen, state.columns)
    if missing_role(seen, state.columns):
        return parts
    if seen.problem:
        parts += html.problem(uploads.as_sent(page.workspace, on_page(seen.problem)))
    if seen.dataset:
        parts += first_questions(seen.dataset) + about_rows(page, seen.dataset)
    if seen.corpus:
        if not seen.corpus.rows and seen.dataset is None:
            parts += first_rows("passage", seen.corpus, Markup())
        parts += about_rows(page, seen.corpus)
    return parts


def about_rows(page: Page, preview: Preview) -> Markup:
    """Draw warnings, and the bad rows with the choice of how to treat them."""
    drawn = warning_list(preview.warnings, preview.notes)
    if not preview.bad:
        return drawn
    lines = html.bullets(
        uploads.as_sent(page.workspace, problem.message) for problem in preview.problems[:5]
    )
    box = form.check("skip_bad", "Leave bad rows out") if preview.rows else Markup()
    return Markup('{}<div class="warn"><b>{}.</b>{}{}</div>').format(
        drawn, plural(preview.bad, "bad row"), lines, box
    )


def chunk_settings(corpus: Preview, state: ImportState) -> Markup:
    """Draw the chunking and the encoder; every change redraws the preview below."""
    if not state.has_chunking:
        state.chunking = import_previews.chunking_of_preview(corpus, state.encoder)
        state.has_chunking = True
    typing = html.attributes(do="import.rechunk", on="input")
    follow = form.on_change("import.rechunk")
    encoders = list(catalog.encoder_lines())
    return html.heading("Chunking") + chunk_fields(
        state.chunking,
        follow,
        typing=typing,
        beside=form.chooser("Encoder", "encoder", encoders, state.encoder, more=follow),
    )


def source_settings(seen: Looked, state: ImportState, kind: str) -> Markup:
    """Draw the kind, format and encoding of the source, and its page map."""
    formats = {*catalog.names("corpora"), *catalog.names("datasets")} - {"imported"}
    shape = state.form or detected_form(seen, kind)
    fields = Markup('<div class="pair">{}{}</div>').format(
        form.chooser("It is a", "kind", list(KINDS.items()), kind, more=ON_LOOK),
        form.chooser("Format", "form", sorted(formats), shape, more=ON_LOOK)
        + form.chooser("Encoding", "encoding", ENCODINGS, state.encoding, more=ON_LOOK),
    )
    gist = html.join_facts(KINDS[kind].lower(), shape, state.encoding)
    is_open = bool(seen.problem) or not any(p and p.rows for p in (seen.corpus, seen.dataset))
    drawn = html.fold("Kind and format", fields, gist=gist, id="import-form", opened=is_open)
    if seen.corpus:
        path = state.pages
        pages = form.text("pages", "File", path or "", PAGES, PAGE_MAP, more=ON_LOOK)
        words = Markup("<span>Drop a page map, or click</span>")
        pages += drop_area(words, "Page map", "drop small", takes="pages")
        gist = path.name if path else "none"
        drawn += html.fold("Page map", pages, gist=gist, id="import-pages")
    return drawn
