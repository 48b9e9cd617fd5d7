"""Two drawers: an index is built over a corpus, and retrievers are combined or reranked under a name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rallebench.core.errors import RalleError, UsageError
from rallebench.core.memory import size
from rallebench.gui import form, html
from rallebench.gui.frame import Event, Page, Patch
from rallebench.gui.html import e
from rallebench.gui.places._data_chunks import chunk_fields, chunking_of, encoder_options
from rallebench.gui.places._data_import import whole_path
from rallebench.gui.wording import on_page
from rallebench.render.numbers import text
from rallebench.services import catalog, gold_coverage
from rallebench.services.jobs import Job

FIRST_KIND, FIRST_WAY = "bm25", "rrf"
FOREIGN = "Vectors or index of another program"
PAGES = "path of a JSON, TSV or JSONL file"
AT_ONCE = 0.4
"""Seconds that a form waits for a job to say what is wrong with it."""


def register(page: Page) -> None:
    """The actions of both drawers."""
    page.actions(
        "data",
        build_form=build_form,
        build_kind=build_kind,
        estimate=estimate,
        build=build,
        combine_form=combine_form,
        combine_way=combine_way,
        combine=combine,
    )


def options(registry: str) -> list[tuple[str, str]]:
    """The things of a registry, with a line about each."""
    return [(name, f"{name}: {catalog.entry(registry, name).about}") for name in names_of(registry)]


def names_of(registry: str) -> tuple[str, ...]:
    """The names of a registry in the order of their use."""
    return catalog.names("index kinds" if registry == "index_kinds" else registry)


# an index


def build_form(page: Page, event: Event) -> Patch:
    """The drawer that builds an index over a corpus."""
    corpus = event.text("id")
    corpora = list(gold_coverage.indexed_corpora(page.workbench))
    follow = ' data-on="change" data-do="data.build_kind"'
    kinds = form.select("kind", options("index_kinds"), FIRST_KIND, more=follow)
    choice = form.select("corpus", corpora, corpus or corpora[0])
    body = (
        f"<h2>Build an index</h2><div data-form data-problems class='stack'>"
        f"{form.labelled('Corpus', choice)}"
        f"{form.text('path', '… or a path', hint='a file or folder that is not imported')}"
        f"{form.labelled('Kind', kinds)}<div id='build-settings' class='stack'>{settings_of_kind(FIRST_KIND, corpus)}</div>"
        f"{html.fold('Chunking', chunk_fields(None), gist='rows stay whole', id='build-chunking')}"
        f"{html.fold('Page map', form.text('pages', 'File', hint=PAGES, about='Passage id → page id.'), gist='for a corpus that is not imported', id='build-pages')}"
        "<div id='build-estimate'></div>"
        f"<div class='buttons'>{html.button('Estimate', 'data.estimate')}{html.button('Build', 'data.build', kind='primary')}</div></div>"
    )
    return {"drawer": body}


def settings_of_kind(kind: str, corpus: str) -> str:
    """The fields that a kind has: its own, its encoder, the vectors of another program, and a name."""
    item = catalog.entry("index_kinds", kind)
    name = f"{corpus}-{kind}" if corpus else ""
    parts = [form.text("name", "Name", name, "made of corpus and kind")]
    if catalog.needs_encoder(kind):
        parts.append(form.labelled("Encoder", form.select("encoder", encoder_options(), "minilm")))
        inside = form.text(
            "encoder_other", "Encoder, written out", "", "sentence_transformers:/models/mine"
        ) + form.text(
            "source",
            FOREIGN,
            "",
            ".npy, .npmmap, a Faiss file or a DiskANN folder",
            "Rows in the order of the corpus.",
        )
        parts.append(html.fold("Another encoder, or foreign vectors", inside, id="build-foreign"))
    if item.form:
        parts.append(form.draw(item.form, {}, {}, prefix="set-"))
    return "".join(parts)


def build_kind(page: Page, event: Event) -> Patch:
    """Show the fields of the chosen kind."""
    return {"#build-settings": settings_of_kind(event.text("kind"), event.text("corpus"))}


def chosen(page: Page, event: Event) -> tuple[str, str, dict[str, Any]]:
    """(corpus, kind, settings) of the form. Raises UsageError."""
    kind = event.text("kind")
    path = whole_path(event.text("path"))
    corpus = path or gold_coverage.place_of(page.workbench, event.text("corpus"))
    values = form.read(
        catalog.entry("index_kinds", kind).form, event, prefix="set-", owner=f"index kind {kind!r}"
    )
    settings: dict[str, Any] = {"chunking": chunking_of(event), "parameters": values}
    if catalog.needs_encoder(kind):
        settings["encoder"] = event.text("encoder_other") or event.text("encoder", "minilm")
    return corpus, kind, settings


def estimate(page: Page, event: Event) -> Iterator[Patch]:
    """Measure on a sample what the build would take."""
    corpus, kind, settings = chosen(page, event)
    for piece in page.workbench.data.estimate_build(corpus, kind, **settings):
        if isinstance(piece, str):
            yield {"#build-estimate": f'<p class="note">Estimating: {e(piece)} …</p>'}
        else:
            yield {"#build-estimate": estimated(piece)}


def estimated(piece: Any) -> str:
    """What a build will take."""
    about = "" if piece.counted else "about "
    dim = f" × {piece.dim} dimensions" if piece.dim else ""
    facts = (
        ("Passages", f"{about}{piece.passages:,}{dim}"),
        ("Memory while building", f"{size(piece.ram_build)} of {size(piece.free_ram)} free"),
        ("Memory while searching", size(piece.ram_search)),
        ("Disk", f"{size(piece.disk)} of {size(piece.free_disk)} free"),
        (
            "Time",
            f"about {text(piece.seconds, 'duration')}" if piece.seconds >= 1 else "less than 1 s",
        ),
    )
    warnings = "".join(html.warning(sentence) for sentence in piece.warnings)
    basis = "".join(f"<li>{e(line)}</li>" for line in piece.basis)
    return f"{html.defs(facts)}{warnings}{html.fold('How this was measured', f'<ul class=note>{basis}</ul>')}"


def build(page: Page, event: Event) -> Patch:
    """Build it as a job; what is wrong at once is said in the form."""
    workbench = page.workbench
    corpus, kind, settings = chosen(page, event)
    pages, foreign = whole_path(event.text("pages")), whole_path(event.text("source"))
    if corpus == str(gold_coverage.STARTER_CORPUS) and not pages:
        pages = str(gold_coverage.STARTER_PAGES)
    stem = event.text("corpus") if not event.text("path") else Path(corpus).name.split(".")[0]
    name = event.text("name") or f"{stem}-{kind}"
    if name in workbench.workspace.llms():
        raise UsageError(f"{name!r} is a language model of this workspace; choose another name.")
    workbench.data.build_index(
        name,
        corpus,
        kind,
        page_map=Path(pages).expanduser() if pages else None,
        source=Path(foreign).expanduser() if foreign else None,
        **settings,
    )
    raise_at_once(page, workbench.jobs.get("build", name))
    return {"drawer": "", "say": f"Building {name}. It goes on if you leave this page."}


def raise_at_once(page: Page, job: Job | None) -> None:
    """Raise what a job that has just begun failed with; it is then not told again."""
    if job is not None and job.wait(AT_ONCE) and isinstance(job.error, UsageError):
        page.workbench.jobs.forget(job.id)
        raise job.error


# a combination


def combine_form(page: Page, event: Event) -> Patch:
    """The drawer that gives a hybrid or a reranked retriever a name."""
    follow = ' data-on="change" data-do="data.combine_way"'
    way = event.text("way", FIRST_WAY)
    try:
        names = list(page.workbench.workspace.retrievers())
    except RalleError:
        names = []
    boxes = "".join(
        f'<label class="check"><input type="checkbox" name="parts" value="{e(name)}"{" checked" if name in event.many("parts") else ""}> {e(name)}</label>'
        for name in names
    )
    body = (
        "<h2>New hybrid or reranker</h2><div data-form data-problems class='stack'>"
        f"{form.labelled('Way', form.select('way', options('composites'), way, more=follow))}"
        f"<fieldset class='plain'><legend class='note'>Made of, in this order</legend><div class='checks'>{boxes}</div></fieldset>"
        f"<div id='combine-settings'>{settings_of_way(page, way)}</div>"
        f"{form.text('name', 'Name', hint='what chains call it')}"
        f"<div class='buttons'>{html.button('Save', 'data.combine', kind='primary')}</div></div>"
    )
    return {"drawer": body}


def settings_of_way(page: Page, way: str) -> str:
    """The settings of a way of combining."""
    item = catalog.entry("composites", way)
    choices: dict[str, Any] = {}
    if "llm" in item.form:
        choices["llm"] = list(page.workbench.workspace.llms())
    if "questions" in item.form:
        choices["questions"] = list(page.workbench.workspace.dataset_paths())
    return form.draw(item.form, {}, choices, prefix="set-") if item.form else ""


def combine_way(page: Page, event: Event) -> Patch:
    """Show the settings of the chosen way."""
    return {"#combine-settings": settings_of_way(page, event.text("way"))}


def combine(page: Page, event: Event) -> Patch:
    """Save the combination; only settings that differ from the defaults are written."""
    way, known = event.text("way"), catalog.entry("composites", event.text("way")).form
    values = form.read(known, event, prefix="set-", owner=f"way {way!r}")
    own = {name: value for name, value in values.items() if value != known[name].default}
    if not event.many("parts"):
        raise UsageError("No retriever is chosen; tick at least one.")
    name = event.text("name")
    page.workbench.data.combine(name, way, event.many("parts"), own)
    go = html.address("data/index", id=name)
    return {"drawer": "", "say": f"Saved {on_page(name)}.", "go": go}
