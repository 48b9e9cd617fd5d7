"""Two drawers: build an index over a corpus, and combine or rerank retrievers. Also the fields for chunking."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from markupsafe import Markup

from rallebench.core.chunking import Chunking
from rallebench.core.errors import RalleError, UsageError
from rallebench.core.memory import size
from rallebench.core.numbers import plural
from rallebench.core.starter import STARTER_CORPUS, STARTER_PAGES
from rallebench.gui import form, html, panels
from rallebench.gui.addresses import IndexAddress
from rallebench.gui.events import Event
from rallebench.gui.frame import Page
from rallebench.gui.patches import Patch
from rallebench.render.numbers import text
from rallebench.services.jobs import Job
from rallebench.views import catalog, chunkings, gold_coverage
from rallebench.views.chunkings import BY_ENCODER, OWN, WHOLE

WAYS = (("blocks", "blocks"), ("recursive", "at blank lines"), ("sentences", "whole sentences"))
SHOWN_TEXT = 20_000
BY_DEFAULT = "documents as the encoder reads, rows whole"
PAGES = "path of a JSON, TSV or JSONL file"
FIRST_KIND, FIRST_WAY = "bm25", "rrf"
FOREIGN = "Vectors or index of another program"
AT_ONCE = 0.4
"""Seconds that a form waits for an immediate error of its job."""


def register(page: Page) -> None:
    page.actions(
        "data", build_form, build_kind, estimate, build, combine_form, combine_way, combine
    )


def options(registry: str) -> list[tuple[str, str]]:
    """Return the entries of a registry with their descriptions, most used first."""
    names = catalog.names("index kinds" if registry == "index_kinds" else registry)
    return [(name, f"{name}: {catalog.entry(registry, name).about}") for name in names]


# an index


def build_form(page: Page, event: Event) -> Patch:
    corpus = event.text("id")
    corpora = list(gold_coverage.indexed_corpora(page.workspace))
    follow = form.on_change("data.build_kind")
    pages = form.text("pages", "File", hint=PAGES, about="Passage id → page id.")
    chunking, gist = chunk_fields("default"), "for a corpus that is not imported"
    parts = (
        form.chooser("Corpus", "corpus", corpora, corpus or corpora[0]),
        form.text("path", "… or a path", hint="a file or folder that is not imported"),
        form.chooser("Kind", "kind", options("index_kinds"), FIRST_KIND, more=follow),
        Markup('<div id="build-settings" class="stack">{}</div>').format(
            settings_of_kind(FIRST_KIND, corpus)
        ),
        html.fold("Chunking", chunking, gist=BY_DEFAULT, id="build-chunking"),
        html.fold("Page map", pages, gist=gist, id="build-pages"),
        Markup('<div id="build-estimate"></div>'),
    )
    estimate = html.button("Estimate", "data.estimate")
    build = html.button("Build", "data.build", kind="primary")
    return panels.form_drawer("Build an index", Markup().join(parts), estimate, build)


def settings_of_kind(kind: str, corpus: str) -> Markup:
    """Draw the fields for a kind of index: its own settings, its encoder, imported vectors, and a name."""
    item = catalog.entry("index_kinds", kind)
    name = f"{corpus}-{kind}" if corpus else ""
    parts = form.text("name", "Name", name, "made of corpus and kind")
    if catalog.takes_encoder(kind):
        encoders = [(name, f"{name}: {about}") for name, about in catalog.encoder_lines().items()]
        parts += form.chooser("Encoder", "encoder", encoders, "minilm")
        hint = (
            ".npy, .npz, .npmmap, .fvecs, .fbin …, a Faiss file, or a folder of Pyserini or DiskANN"
        )
        inside = form.text(
            "encoder_other", "Encoder, written out", hint="sentence_transformers:/models/mine"
        )
        order = "In the order of the corpus, or with the ids of their passages."
        inside += form.text("source", FOREIGN, "", hint, order)
        inside += form.text("ids", "File of ids", "", "a line for each vector, or .npy")
        parts += html.fold("Another encoder, or foreign vectors", inside, id="build-foreign")
    return parts + form.draw(item.form, {}, {}, prefix="set-")


def build_kind(page: Page, event: Event) -> Patch:
    return Patch({"build-settings": settings_of_kind(event.text("kind"), event.text("corpus"))})


def form_documents(page: Page, event: Event, name: str) -> str:
    """Return the documents of a form: a typed path, otherwise the corpus in the field ``name``."""
    return str(event.path("path") or gold_coverage.corpus_source(page.workspace, event.text(name)))


def form_index(page: Page, event: Event) -> tuple[str, str, dict[str, Any]]:
    """Return the (corpus, kind, settings) in the form. Raises UsageError."""
    kind, corpus = event.text("kind"), form_documents(page, event, "corpus")
    known = catalog.entry("index_kinds", kind).form
    values = form.read(known, event, prefix="set-", owner=f"index kind {kind!r}")
    settings: dict[str, Any] = {"parameters": values}
    if catalog.takes_encoder(kind):
        settings["encoder"] = event.text("encoder_other") or event.text("encoder", "minilm")
    typed = event.text("size") or event.text("overlap")
    if typed or event.text("cut", BY_ENCODER) != BY_ENCODER:
        settings["chunking"] = form_chunking(event, settings.get("encoder", ""))
    return corpus, kind, settings


def estimate(page: Page, event: Event) -> Iterator[Patch]:
    """Estimate the cost of the build from a sample."""
    corpus, kind, settings = form_index(page, event)
    for piece in page.workbench.data.estimate_build(corpus, kind, **settings):
        news = isinstance(piece, str)
        words = html.note(f"Estimating: {piece} …") if news else estimate_html(piece)
        yield Patch({"build-estimate": words})


def estimate_html(piece: Any) -> Markup:
    about = "" if piece.counted else "about "
    dim = f" × {piece.dim} dimensions" if piece.dim else ""
    time = text(piece.seconds, "duration")
    facts = (
        ("Passages", f"{about}{piece.passages:,}{dim}"),
        ("Memory while building", f"{size(piece.ram_build)} of {size(piece.free_ram)} free"),
        ("Memory while searching", size(piece.ram_search)),
        ("Disk", f"{size(piece.disk)} of {size(piece.free_disk)} free"),
        ("Time", f"about {time}" if piece.seconds >= 1 else "less than 1 s"),
    )
    warnings = Markup().join(map(html.warning, piece.warnings))
    basis = html.fold("How this was measured", html.bullets(piece.basis, "note"))
    return Markup("{}{}{}").format(html.defs(facts), warnings, basis)


def build(page: Page, event: Event) -> Patch:
    """Build the index as a job; an immediate error is shown in the form."""
    workbench = page.workbench
    corpus, kind, settings = form_index(page, event)
    pages = event.path("pages")
    if corpus == str(STARTER_CORPUS) and not pages:
        pages = STARTER_PAGES
    stem = event.text("corpus") if not event.text("path") else Path(corpus).name.split(".")[0]
    name = event.text("name") or f"{stem}-{kind}"
    if name in workbench.workspace.llms():
        raise UsageError(f"{name!r} is a language model of this workspace; choose another name.")
    source, ids = event.path("source"), event.path("ids")
    workbench.data.build_index(
        name, corpus, kind, page_map=pages, source=source, ids=ids, **settings
    )
    raise_at_once(page, workbench.jobs.get("build", name))
    return Patch(drawer="", say=f"Building {name}. It continues if you leave this page.")


def raise_at_once(page: Page, job: Job | None) -> None:
    """Raise the error of a job that has just started and failed, and remove the job from the list."""
    if job is not None and job.wait(AT_ONCE) and isinstance(job.error, UsageError):
        page.workbench.jobs.forget(job.id)
        raise job.error


# a combination


def combine_form(page: Page, event: Event) -> Patch:
    way = event.text("way", FIRST_WAY)
    try:
        names = list(page.workspace.retrievers())
    except RalleError:
        names = []
    follow = form.on_change("data.combine_way")
    fields = form.chooser("Way", "way", options("composites"), way, more=follow)
    fields += form.checks("parts", names, event.many("parts"), "Made of, in this order")
    fields += Markup('<div id="combine-settings">{}</div>').format(settings_of_way(page, way))
    fields += form.text("name", "Name", hint="the name in chains")
    save = html.button("Save", "data.combine", kind="primary")
    return panels.form_drawer("New hybrid or reranker", fields, save)


def settings_of_way(page: Page, way: str) -> Markup:
    known = catalog.entry("composites", way).form
    return form.draw(known, {}, catalog.choices(page.workspace, known), prefix="set-")


def combine_way(page: Page, event: Event) -> Patch:
    return Patch({"combine-settings": settings_of_way(page, event.text("way"))})


def combine(page: Page, event: Event) -> Patch:
    """Save the combination, omitting settings that equal their defaults."""
    way, known = event.text("way"), catalog.entry("composites", event.text("way")).form
    own = form.changed_settings(known, event, prefix="set-", owner=f"way {way!r}")
    if not event.many("parts"):
        raise UsageError("No retriever is chosen; tick at least one.")
    name = event.text("name")
    page.workbench.data.combine(name, way, event.many("parts"), own)
    return Patch(drawer="", say=f"Saved {name}.", go=IndexAddress(id=name).href)


# chunks


def chunk_fields(
    chunking: Chunking | Literal["default"] | None,
    more: Markup = html.NOTHING,
    *,
    typing: Markup | None = None,
    beside: Markup = html.NOTHING,
) -> Markup:
    """Draw the fields for chunking; ``more``: attributes of each field, for following changes; ``typing``: of the fields of
    numbers, if they are others; ``beside``: a field after these.
    """
    typing = more if typing is None else typing
    if isinstance(chunking, str):
        name, chunking = BY_ENCODER, None
    else:
        name = chunkings.preset_name(chunking)
    chunking = None if name == BY_ENCODER else chunking
    options = [
        (BY_ENCODER, "between sentences, as long as the encoder reads"),
        (WHOLE, "none: a passage per row or document"),
        *((n, f"{n}: {c.size} {c.unit}, {c.how}") for n, c in chunkings.presets().items()),
        (OWN, "settings of my own"),
    ]
    size, overlap = (chunking.size, chunking.overlap) if chunking else ("", "")
    how, unit = (chunking.how, chunking.unit) if chunking else ("blocks", "words")
    units = ["words", "tokens", "characters"]
    fields = (
        form.chooser("Chunks", "cut", options, name, more=more),
        form.number("size", "Size", size, 1, "auto", more=typing),
        form.number("overlap", "Overlap", overlap, 0, "a fifth", more=typing),
        beside,
        form.chooser("Way", "how", WAYS, how, more=more),
        form.chooser("Unit", "unit", units, unit, more=more),
    )
    return Markup('<div class="chunk-fields">{}</div>').format(Markup().join(fields))


def form_chunking(event: Event, encoder: str = "") -> Chunking | None:
    """Return the chunking in the form; None for whole rows and documents. Raises UsageError."""
    choice = event.text("cut", WHOLE)
    if choice == WHOLE:
        return None
    size = event.whole("size", "The size of a chunk")
    overlap = event.whole("overlap", "The overlap")
    how, unit = event.text("how", "blocks"), event.text("unit", "words")
    return chunkings.read(choice, encoder, size, overlap, how, unit)


def mark_chunks(
    text: str, chunking: Chunking | None, document: str = "", title: str = ""
) -> Markup:
    """Mark the chunks of a text in two alternating tints, and their overlaps in a third."""
    cuts = chunkings.cuts(text, chunking, document, title)
    lengths = [len(text[start:end].split()) for start, end in cuts]
    mean = sum(lengths) / len(cuts)
    facts = f"{plural(len(cuts), 'chunk')}, {min(lengths):,} to {plural(max(lengths), 'word')}, mean {mean:,.0f}"
    seen = text[:SHOWN_TEXT]
    borders = sorted({0, len(seen), *(min(place, len(seen)) for cut in cuts for place in cut)})
    pieces, first = Markup(), 0
    for start, end in zip(borders, borders[1:]):
        while first < len(cuts) and cuts[first][1] <= start:
            first += 1
        near = range(first, min(first + 4, len(cuts)))
        holding = [n for n in near if cuts[n][0] <= start < cuts[n][1]]
        kind = "both" if len(holding) > 1 else "ab"[holding[0] % 2] if holding else ""
        pieces += Markup('<span class="chunk {}">{}</span>').format(kind, seen[start:end])
    cut = f" The first {SHOWN_TEXT:,} characters." if len(text) > SHOWN_TEXT else ""
    return Markup("{}<div>{}</div>").format(html.note(f"{facts}.{cut}"), pieces)
