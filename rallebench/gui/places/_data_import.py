"""The import panel, in three steps: choose, preview, build."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from markupsafe import Markup

from rallebench.core.chunking import Chunking
from rallebench.core.errors import RalleError, UsageError
from rallebench.core.events import Progress
from rallebench.core.numbers import plural
from rallebench.gui import form, html
from rallebench.gui.addresses import CorpusAddress, IndexAddress, QuestionAddress
from rallebench.gui.events import Event
from rallebench.gui.frame import Page
from rallebench.gui.html import escape
from rallebench.gui.patches import Patch
from rallebench.gui.places._data_build import PAGES, chunk_fields, form_chunking
from rallebench.gui.wording import on_page
from rallebench.services import imports, uploads
from rallebench.services.imports import (
    ImportRequest,
    ImportResult,
    Looked,
    Preview,
)
from rallebench.services.jobs import Job
from rallebench.views import catalog, library

STEPS = ("choose", "preview", "build")
KINDS = {"corpus": "Corpus", "dataset": "Dataset", "both": "Corpus and dataset"}
INDEXES = (("bm25", "Words (BM25)"), ("dense", "Dense"), ("hybrid", "Hybrid"))
FORMS = "TSV, JSONL, CSV, TREC, BEIR, an archive, or a folder of PDF, HTML, Markdown and text. Corpus or dataset is recognised."
PAGE_MAP = "Passage id → page id, where the corpus does not name its pages."
CHARACTERS = 280


@dataclass
class ImportState:
    """The panel of a window. ``form``: the format; ``pages``: the page map; ``indexes``: None until chosen;
    ``has_chunking``: True if the chunking was chosen or derived from the preview.
    """

    step: str = "choose"
    source: Path | None = None
    pages: Path | None = None
    kind: str = ""
    form: str = ""
    name: str = ""
    indexes: list[str] | None = None
    encoder: str = "minilm"
    chunking: Chunking | None = None
    has_chunking: bool = False


def register(page: Page) -> None:
    page.actions("import", preview, rechunk, again, show, start)


# the panel


def panel(page: Page, event: Event) -> Markup:
    """Draw the panel at this window's step."""
    state = event.session.state(ImportState)
    job = page.workbench.jobs.get("import", state.name)
    if state.step == "build" and job is not None:
        return head("build") + building(page, job)
    with suppress(RalleError):
        if state.step == "preview":
            return head("preview") + preview_parts(page, look(page, state), state)
    return head("choose") + choose()


def head(step: str) -> Markup:
    """Draw the heading with the current step."""
    steps = Markup()
    for name in STEPS:
        current = Markup(' class="on" aria-current="step"') if name == step else Markup()
        steps += Markup("<li{}>{}</li>").format(current, name.capitalize())
    title = html.heading("Import", f"step {STEPS.index(step) + 1} of 3", first=True)
    return Markup('{}<ol class="wizs">{}</ol>').format(title, steps)


def choose() -> Markup:
    """Draw areas for dropping files or a folder, and a field for a path."""
    files = Markup('<span aria-hidden="true">⇪</span><span>Drop files or a folder, or click</span>')
    folder = Markup("<span>or choose a whole folder</span>")
    path = Markup(
        '<input name="path" aria-label="A path on this machine" '
        'placeholder="or a path on this machine"{}>\n'
    ).format(html.attributes(on="enter", do="import.preview"))
    return Markup().join(
        (
            drop_area(files, "Files to import", more=Markup(" multiple")),
            drop_area(folder, "Folder to import", "drop small", Markup(" webkitdirectory")),
            path,
            html.note(FORMS),
            html.button("Preview", "import.preview", kind="primary"),
        )
    )


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


def preview_parts(page: Page, seen: Looked, state: ImportState) -> Markup:
    """Draw the detected format, the first rows, and the indexes to build."""
    kind = state.kind or seen.kind
    formats = {*catalog.names("corpora"), *catalog.names("datasets")} - {"imported"}
    recognised = seen.dataset if kind == "dataset" else seen.corpus or seen.dataset
    shape = state.form or (recognised.form if recognised else "")
    of_files = f" of {plural(seen.files, 'file')}" if seen.files else ""
    parts = Markup(
        '<p><b>{}</b> <span class="note">is a {}{}</span></p><div class="pair">{}{}</div>'
    ).format(
        seen.source.name,
        KINDS[kind].lower(),
        of_files,
        form.chooser("It is a", "kind", list(KINDS.items()), kind, more=ON_LOOK),
        form.chooser("Format", "form", sorted(formats), shape, more=ON_LOOK),
    )
    if seen.dataset:
        parts += questions(page, seen.dataset)
    if not any(part and part.rows for part in (seen.corpus, seen.dataset)):
        empty = first_rows(page, seen.corpus, "passage", "") if seen.corpus else Markup()
        return Markup('{}{}<div class="buttons">{}</div>').format(
            parts, empty, html.button("Back", "import.again")
        )
    if seen.corpus:
        if not state.has_chunking:
            state.chunking = imports.chunking_of_preview(seen.corpus, state.encoder)
            state.has_chunking = True
        parts += Markup('<div id="import-chunks">{}</div>').format(chunks(page, seen.corpus, state))
        parts += settings(state)
    parts += form.text("name", "Name", state.name or seen.name, more=Markup(" required"))
    if seen.corpus:
        every = [name for name, _ in INDEXES]
        ticked = every if state.indexes is None else state.indexes
        parts += form.checks("indexes", INDEXES, ticked, "Build when done")
        follow = form.on_change("import.rechunk")
        encoders = list(catalog.encoder_lines())
        parts += form.chooser("Encoder", "encoder", encoders, state.encoder, more=follow)
    begin = "Import and build" if seen.corpus else "Import"
    start = html.button(begin, "import.start", kind="primary")
    return Markup('{}<div class="buttons">{}{}</div>').format(
        parts, html.button("Back", "import.again"), start
    )


ON_LOOK = form.on_change("import.preview")


def chunks(page: Page, corpus: Preview, state: ImportState) -> Markup:
    """Draw the first chunks, and the share that exceeds the encoder's input limit."""
    long = imports.long_sentence(corpus, state.chunking, state.encoder)
    items = Markup().join(
        bit(
            Markup('{}<span class="n">{}</span>').format(p.title or p.doc_id, p.doc_id),
            escape(short(p.text)),
        )
        for p, _ in imports.first_chunks(corpus.rows, state.chunking)
    )
    return first_rows(page, corpus, "chunk" if state.chunking else "passage", items) + html.warning(
        long
    )


def questions(page: Page, preview: Preview) -> Markup:
    items = Markup()
    for x in preview.rows[:5]:
        pages = Markup('<span class="note"> {}</span>').format(
            plural(len(x.gold.pages), "gold page")
        )
        answers = short(html.join_facts(*x.gold.answers[:3])) or "no answer"
        items += bit(escape(short(x.question.text)), escape(answers) + pages)
    return first_rows(page, preview, "question", items)


def bit(title: str, text: str) -> Markup:
    return Markup(
        '<article class="bit"><h4 dir="auto">{}</h4><p dir="auto">{}</p></article>'
    ).format(title, text)


def short(text: str) -> str:
    """Return the beginning of a text."""
    flat = " ".join(text.split())
    return flat if len(flat) <= CHARACTERS else flat[: CHARACTERS - 1] + "…"


def first_rows(page: Page, preview: Preview, noun: str, items: str) -> Markup:
    """Draw the first rows, then the bad rows and the choice of how to treat them."""
    more = plural(preview.read, "row") + (" read" if preview.ended else " read, there are more")
    no_rows = f"No {noun} can be read here. Choose another kind or format."
    items = items or html.note(no_rows)
    drawn = Markup('{}<div class="firsts">{}</div>').format(
        html.heading(f"First {noun}s", more), items
    )
    drawn += warning_list(preview.warnings, preview.notes)
    if not preview.bad:
        return drawn
    lines = html.bullets(
        uploads.as_sent(page.workspace, problem.message) for problem in preview.problems[:5]
    )
    box = form.check("skip_bad", "Leave bad rows out") if preview.rows else Markup()
    return Markup('{}<div class="warn"><b>{}.</b>{}{}</div>').format(
        drawn, plural(preview.bad, "bad row"), lines, box
    )


def warning_list(warnings: Iterable[str], notes: Iterable[str] = ()) -> Markup:
    """Draw warnings with notes below them."""
    return Markup().join([*map(html.warning, warnings), *map(html.note, notes)])


def settings(state: ImportState) -> Markup:
    chunking, path = state.chunking, state.pages
    fields = chunk_fields(chunking, form.on_change("import.rechunk"))
    gist = library.cut_words(asdict(chunking) if chunking else None)
    cut = html.fold("Chunking", fields, gist=gist, id="import-chunking")
    pages = form.text("pages", "File", path or "", PAGES, PAGE_MAP, more=ON_LOOK)
    words = Markup("<span>Drop a page map, or click</span>")
    pages += drop_area(words, "Page map", "drop small", takes="pages")
    gist = path.name if path else "none"
    return cut + html.fold("Page map", pages, gist=gist, id="import-pages")


def building(page: Page, job: Job) -> Markup:
    """Draw the progress of the import, or its result."""
    tasks = [(name, x) for name, x in job.tasks.items() if isinstance(x, Progress)]
    lines, going = Markup(), 0 if job.done else 1
    for name, news in tasks[: len(tasks) - (going or job.error is not None)]:
        words = escape(news.message if name in ("corpus", "dataset") else name)
        lines += Markup(
            '<div class="doing"><span><span class="good">✓</span> {}</span></div>'
        ).format(words)
    for name, news in tasks[len(tasks) - going :]:
        share = news.done / news.total if news.total else None
        lines += html.doing(news.message or name, share=share)
    other = html.button("Import another", "import.again")
    if not job.done:
        note = html.note("It continues if you leave this page.")
        lines = (lines or Markup("<p>Starting…</p>")) + note
        other = html.button("Stop", "jobs.stop", id=job.id)
    elif job.error is not None:
        lines += html.problem(uploads.as_sent(page.workspace, on_page(job.error)))
        other = html.button("Back", "import.show", step="preview") + other
    elif (result := job.result_as(ImportResult)) is not None:
        lines += import_result(job.name, result)
    return Markup('{}<div class="buttons">{}</div>').format(lines, other)


def import_result(name: str, result: ImportResult) -> Markup:
    parts, links, more = [], Markup(), Markup()
    if (corpus := result.corpus) is not None:
        cut = result.passages if result.passages != corpus.passages else 0
        noun = "document" if cut else "passage"
        parts.append(count_words(corpus.passages, noun, corpus.skipped))
        parts += [f"cut into {plural(cut, 'passage')}"] if cut else []
        more += warning_list(corpus.warnings)
        links += html.link("Read passages", CorpusAddress(id=name).href, "button")
        if corpus.has_pages and (lost := corpus.passages_without_page):
            parts.append(f"{lost:,} of them without a page, which can never count as gold pages")
    if (dataset := result.dataset) is not None:
        parts.append(count_words(dataset.questions, "question", dataset.skipped))
        parts.append(
            f"{dataset.answers:,} with answers, {dataset.pages:,} with gold pages, {dataset.neither:,} with neither"
        )
        more += warning_list(dataset.warnings, dataset.notes)
        links += html.link("Use in Build", QuestionAddress(set=name).href, "button")
    if result.indexes:
        last = result.indexes[-1]
        parts.append(f"indexes {', '.join(result.indexes)}")
        links += html.link(f"Search {last}", IndexAddress(id=last).href, "button")
        links += html.button(f"Use {last} in Build", "data.use", id=last)
    brought = Markup('<p class="good"><b>Imported {}.</b></p><p>{}.</p>{}').format(
        name, "; ".join(parts), more
    )
    brought += html.warning(result.long)
    return Markup('{}<div class="row">{}</div>').format(brought, links)


def count_words(count: int, noun: str, skipped: int) -> str:
    return plural(count, noun) + (f", {plural(skipped, 'bad row')} left out" if skipped else "")


# actions


def look(page: Page, state: ImportState) -> Looked:
    """Return this window's source as detected."""
    if state.source is None:
        raise UsageError("Nothing was chosen to import; choose a file or a folder.")
    return imports.look(
        state.source,
        kind=state.kind,
        form=state.form,
        page_map=state.pages,
        corpora=page.workspace.corpora,
    )


def preview(page: Page, event: Event) -> Patch:
    """Preview a dropped, typed or changed source."""
    before, files = event.session.state(ImportState), event.files()
    page_map, goes_on = event.text("as") == "pages", before.step == "preview"
    state = replace(before) if goes_on and (page_map or not files) else ImportState()
    if files:
        sent = [(file.path, file.name) for file in files]
        place = uploads.lay_out(page.workspace, sent)
        state = replace(state, pages=place) if page_map else replace(state, source=place)
    elif path := event.path("path"):
        state.source = path
    if state.source is None:
        raise UsageError("No file is given; drop one, or type the path of a file or folder.")
    state.source = uploads.unpack_upload(page.workspace, state.source)
    if goes_on and not files:
        keep(state, event)
    state.step = "preview"
    body = preview_parts(page, look(page, state), state)
    event.session.put(state)
    return Patch({"data-import": head("preview") + body})


def keep(state: ImportState, event: Event) -> None:
    """Save the form. A different kind of import has its own formats, so the format is detected again."""
    kind = event.text("kind")
    state.form = event.text("form") if kind == (state.kind or kind) else ""
    state.kind, state.pages, state.name = kind, event.path("pages"), event.text("name")
    state.indexes, state.encoder = event.many("indexes"), event.text("encoder", "minilm")


def rechunk(page: Page, event: Event) -> Patch:
    """Preview the chunks with the settings in the form."""
    state = event.session.state(ImportState)
    state.encoder = event.text("encoder", "minilm")
    state.chunking, state.has_chunking = form_chunking(event, state.encoder), True
    corpus = look(page, state).corpus
    return Patch({"import-chunks": chunks(page, corpus, state)}) if corpus else Patch()


def start(page: Page, event: Event) -> Patch:
    """Import the data and build the indexes as one job."""
    state = event.session.state(ImportState)
    if state.source is None:
        raise UsageError("Choose what to import first.")
    keep(state, event)
    seen = look(page, state)
    request = ImportRequest(
        event.text("name") or seen.name,
        seen.source,
        seen.kind,
        state.form,
        event.path("pages"),
        event.flag("skip_bad"),
        form_chunking(event, event.text("encoder", "minilm")) if seen.corpus else None,
        tuple(event.many("indexes")) if seen.corpus else (),
        event.text("encoder", "minilm"),
    )
    job = imports.start(page.workspace, page.workbench.data, page.workbench.jobs, request)
    state.step, state.name = "build", request.name
    job.wait(0.3)
    return Patch({"data-import": panel(page, event)})


def again(page: Page, event: Event) -> Patch:
    event.session.drop(ImportState)
    return Patch({"data-import": panel(page, event)})


def show(page: Page, event: Event) -> Patch:
    if event.text("step"):
        event.session.state(ImportState).step = event.choice("step", STEPS)
    return Patch({"data-import": panel(page, event)})
