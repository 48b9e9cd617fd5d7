"""The import panel, in three steps: choose, preview, build."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from markupsafe import Markup

from rallebench.core.errors import RalleError, UsageError
from rallebench.core.events import map_events
from rallebench.core.hub_names import is_hub_name
from rallebench.gui import html
from rallebench.gui.events import Event
from rallebench.gui.frame import Answer, Page
from rallebench.gui.patches import Patch
from rallebench.gui.places._data_build import form_chunking
from rallebench.gui.places._data_columns import missing_role, read_columns
from rallebench.gui.places._data_imported import building, fetching
from rallebench.gui.places._data_interrupted import interrupted_parts
from rallebench.gui.places._data_trial import open_trial
from rallebench.gui.places._import_chunks import chunk_preview
from rallebench.gui.places._import_panel import (
    detected_form,
    drop_area,
    finished_parts,
    is_surely_corpus,
    partial_look,
    preview_parts,
    progress,
    reading_parts,
)
from rallebench.gui.places._import_questions import PREFIX, asked_part, start_button
from rallebench.gui.places._import_state import (
    ImportState,
    OwnQuestions,
    answer_places,
    look,
    survey_sample,
    watch_source,
)
from rallebench.services import hub_sources, import_previews, import_tables, imports, uploads
from rallebench.services.chunk_surveys import survey_chunks
from rallebench.services.hub_sources import HubSource
from rallebench.services.import_previews import FirstRows
from rallebench.services.imports import ImportRequest, ImportResult, QuestionFile
from rallebench.services.index_builds import BUILD, continue_build
from rallebench.services.job_records import JobRecord

STEPS = ("choose", "preview", "build")
FORMS = "TSV, JSONL, CSV, TREC, BEIR, an archive, or a folder of PDF, Word, EPUB, Excel, HTML, Markdown and text. Corpus or dataset is recognised."
FIRST = 0.3
"""Seconds that an action waits for the first news of its job."""


def register(page: Page) -> None:
    page.actions(
        "import",
        preview,
        read,
        rechunk,
        ask,
        count,
        again,
        show,
        start,
        try_,
        complete,
        complete_build,
    )


# the panel


def panel(page: Page, event: Event) -> Markup:
    """Draw the panel at this window's step."""
    state = event.session.state(ImportState)
    if state.step == "fetch" and not take_download(page, state):
        job = page.workbench.jobs.get(hub_sources.KIND, state.download)
        return head("choose") + (fetching(job) if job else choose())
    job = page.workbench.jobs.get("import", state.name)
    if state.step == "build" and job is not None:
        return head("build") + building(page, job)
    if state.step == "preview":
        later = Markup("<span data-lazy{}></span>").format(html.attributes(do="import.read"))
        if state.looked is None:
            return head("preview") + reading_parts(state) + later
        with suppress(RalleError):
            drawn = head("preview") + preview_parts(page, look(page, state), state)
            return drawn if state.survey else drawn + later
    notices = Markup('<div id="data-interrupted">{}</div>').format(interrupted_parts(page))
    return notices + head("choose") + choose()


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
        '<input name="path" aria-label="A path on this machine, or a name of the Hugging Face hub" '
        'placeholder="or a path, or hf:OWNER/NAME?split=…"{}>\n'
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


# actions


def preview(page: Page, event: Event) -> Answer:
    """Preview a dropped, typed or changed source."""
    before, files = event.session.state(ImportState), event.files()
    page_map, goes_on = event.text("as") == "pages", before.step == "preview"
    state = replace(before) if goes_on and (page_map or not files) else ImportState()
    if files:
        sent = [(file.path, file.name) for file in files]
        place = uploads.lay_out(page.workspace, sent)
        state = replace(state, pages=place) if page_map else replace(state, source=place)
    elif is_hub_name(name := event.text("path")):
        return download(page, event, name)
    elif path := event.path("path"):
        state.source = path
    if state.source is None:
        raise UsageError("No file is given; drop one, or type the path of a file or folder.")
    state.source = uploads.unpack_upload(page.workspace, state.source)
    if goes_on and not files:
        keep(state, event)
    state.step = "preview"
    return read_source(page, event, state, before)


def read_source(
    page: Page, event: Event, state: ImportState, before: ImportState
) -> Iterator[Patch]:
    """Show the first rows as soon as they are read, then the whole, and then the counts of the chunks."""
    is_new, early = state.source != before.source, False

    def show_first(first: FirstRows) -> Patch:
        nonlocal early
        if not is_new:
            return Patch({"import-progress": progress(first)})
        if not is_surely_corpus(state):
            return Patch({"data-import": head("preview") + reading_parts(state, first)})
        seen = partial_look(state, first)
        if early and seen.corpus:
            parts = {"import-progress": progress(first)}
            return Patch({**parts, "import-chunks": chunk_preview(seen.corpus, state)})
        early = True
        return Patch({"data-import": head("preview") + preview_parts(page, seen, state, first)})

    if is_new:
        event.session.put(state)
        yield Patch({"data-import": head("preview") + reading_parts(state)})
    try:
        seen = yield from map_events(watch_source(page, state), show_first)
    except RalleError:
        event.session.put(before)
        yield Patch({"data-import": panel(page, event)})
        raise
    event.session.put(state)
    if early and seen.kind == "corpus" and seen.corpus and seen.corpus.rows:
        yield Patch(finished_parts(page, seen, state))
    else:
        yield Patch({"data-import": head("preview") + preview_parts(page, seen, state)})
    yield from count_chunks(page, state)


def read(page: Page, event: Event) -> Iterator[Patch]:
    """Go on with the preview after the page was opened again."""
    state = event.session.state(ImportState)
    yield from read_source(page, event, state, state)


def count_chunks(page: Page, state: ImportState) -> Iterator[Patch]:
    """Cut the documents, and show the counts as they grow."""
    seen = state.looked
    if seen is None or seen.corpus is None or not seen.corpus.rows:
        return
    corpus, documents = seen.corpus, survey_sample(state).documents
    yield Patch({"import-chunks": chunk_preview(corpus, state)})
    answers = answer_places(page, state)
    for survey in survey_chunks(documents, state.chunking, state.encoder, answers):
        state.survey = survey
        yield Patch({"import-chunks": chunk_preview(corpus, state)})


def download(page: Page, event: Event, name: str) -> Patch:
    """Fetch a name of the hub as a job; its preview follows."""
    job = hub_sources.start_fetch(page.workspace, page.workbench.jobs, name)
    event.session.put(ImportState(step="fetch", download=job.name))
    job.wait(FIRST)
    return Patch({"data-import": panel(page, event)})


def take_download(page: Page, state: ImportState) -> bool:
    """Go on to the preview of a complete download; return whether it is complete."""
    job = page.workbench.jobs.get(hub_sources.KIND, state.download)
    source = job.result_as(HubSource) if job and job.done else None
    if source is None:
        return False
    state.step, state.source, state.hub = "preview", source.path, source
    state.name = source.label
    return True


def keep(state: ImportState, event: Event) -> None:
    """Save the form. A different kind of import has its own formats and columns, so these are detected again."""
    seen = state.looked
    detected = seen.kind if seen else ""
    kind, form = event.text("kind"), event.text("form")
    is_same = kind == (state.kind or detected)
    if not is_same:
        state.kind, state.form = kind, ""
    elif seen and form != (state.form or detected_form(seen, kind)):
        state.form = form
    state.columns = None
    if is_same and state.source and import_tables.has_roles(kind, form):
        table = import_tables.read_columns(state.source, kind, form, state.encoding)
        state.columns = read_columns(table, event)
    state.pages, state.name = event.path("pages"), event.text("name")
    state.encoding = event.text("encoding")
    keep_targets(state, event)


def keep_targets(state: ImportState, event: Event) -> None:
    """Save the indexes to build and their encoder."""
    state.indexes, state.encoder = event.many("indexes"), event.text("encoder", "minilm")


def rechunk(page: Page, event: Event) -> Iterator[Patch]:
    """Preview the chunks with the settings in the form."""
    state = event.session.state(ImportState)
    state.encoder = event.text("encoder", "minilm")
    state.chunking, state.has_chunking = form_chunking(event, state.encoder), True
    look(page, state)
    state.survey = None
    yield Patch(sound=True)
    yield from count_chunks(page, state)


def ask(page: Page, event: Event) -> Iterator[Patch]:
    """Choose the questions about the corpus: a dataset, a file, its columns, or none."""
    state = event.session.state(ImportState)
    if files := event.files():
        place = uploads.lay_out(page.workspace, [(file.path, file.name) for file in files])
        chosen = OwnQuestions(source=uploads.unpack_upload(page.workspace, place))
    elif event.text("without") or not state.questions.source:
        chosen = OwnQuestions(dataset=event.text("asked"))
    else:
        chosen = replace(state.questions)
    if chosen.source:
        if not files:
            table = chosen.looked.table if chosen.looked else None
            chosen.columns = read_columns(table, event, PREFIX)
        chosen.looked = import_previews.look(
            chosen.source, kind="dataset", columns=chosen.columns, corpora=page.workspace.corpora
        )
    state.questions = chosen
    keep_targets(state, event)
    state.forget_answers()
    yield Patch({"import-asked": asked_part(page, state)}) | count(page, event)
    yield from count_chunks(page, state)


def count(page: Page, event: Event) -> Patch:
    """Say on the button what the chosen indexes lead to."""
    state = event.session.state(ImportState)
    keep_targets(state, event)
    back = html.button("Back", "import.again")
    return Patch({"import-go": back + start_button(page, state)})


def start(page: Page, event: Event) -> Patch:
    """Import the data and build the indexes as one job."""
    state = event.session.state(ImportState)
    if state.source is None:
        raise UsageError("Choose what to import first.")
    keep(state, event)
    seen, own = look(page, state), state.questions
    if own.source and own.looked and missing_role(own.looked, own.columns):
        raise UsageError(
            f"Choose the column of {own.source.name} that holds the questions, or remove the file."
        )
    for part in (seen, own.looked):
        if part is not None and (unread := part.problem):
            raise UsageError(uploads.as_sent(page.workspace, str(unread)), hint=unread.hint)
    chunking = form_chunking(event, state.encoder) if seen.corpus else None
    request = ImportRequest(
        event.text("name") or seen.name,
        seen.source,
        seen.kind,
        state.form,
        state.columns,
        page_map=event.path("pages"),
        skip_bad=event.flag("skip_bad"),
        encoding=state.encoding,
        chunking=chunking,
        indexes=tuple(event.many("indexes")) if seen.corpus else (),
        encoder=state.encoder,
        hub=state.hub.fetched if state.hub else None,
        questions=QuestionFile(own.source, columns=own.columns)
        if seen.kind == "corpus" and own.source
        else None,
    )
    job = imports.start(page.workspace, page.workbench.data, page.workbench.jobs, request)
    state.step, state.name, state.opens = "build", request.name, bool(request.indexes)
    state.chunking = chunking
    job.wait(FIRST)
    return progress_patch(page, event)


def complete(page: Page, event: Event) -> Patch:
    """Make the missing parts of an interrupted import."""
    record = find_record(page, imports.KIND, event.text("id"))
    request, workbench = imports.read_record(record), page.workbench
    job = imports.start(page.workspace, workbench.data, workbench.jobs, request, completes=True)
    event.session.put(ImportState(step="build", name=job.name))
    job.wait(FIRST)
    return progress_patch(page, event)


def complete_build(page: Page, event: Event) -> Patch:
    """Build the index of an interrupted job."""
    record = find_record(page, BUILD, event.text("id"))
    job = continue_build(page.workspace, page.workbench.jobs, record)
    patch = Patch({"data-interrupted": interrupted_parts(page)})
    return patch | Patch(say=f"Building {job.name}. It continues if you leave this page.")


def find_record(page: Page, kind: str, name: str) -> JobRecord:
    """Return the record of an interrupted job. Raises UsageError."""
    for record in page.workbench.jobs.list_interrupted():
        if (record.kind, record.name) == (kind, name):
            return record
    raise UsageError(f"The {kind} of {name} was continued or dismissed meanwhile.")


def progress_patch(page: Page, event: Event) -> Patch:
    """Draw the panel while a job goes on; at the end of an import, open what can be tried."""
    state = event.session.state(ImportState)
    patch = Patch({"data-import": panel(page, event)})
    job = page.workbench.jobs.get("import", state.name)
    if state.step == "build" and state.opens and job and job.done:
        state.opens = False
        if result := job.result_as(ImportResult):
            patch |= open_trial(page, event, state.name, result, state.questions.dataset)
    return patch


def try_(page: Page, event: Event) -> Patch:
    """Open what was imported in Build."""
    state = event.session.state(ImportState)
    job = page.workbench.jobs.get("import", event.text("id"))
    result = job.result_as(ImportResult) if job else None
    if result is None:
        raise UsageError("This import is no longer known; open its indexes from the lists.")
    return open_trial(page, event, event.text("id"), result, state.questions.dataset)


def again(page: Page, event: Event) -> Patch:
    event.session.drop(ImportState)
    return Patch({"data-import": panel(page, event)})


def show(page: Page, event: Event) -> Patch:
    if event.text("step"):
        event.session.state(ImportState).step = event.choice("step", STEPS)
    return Patch({"data-import": panel(page, event)})
