"""The import panel in three steps: choose, preview, build."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from rallebench.core.errors import RalleError, UsageError
from rallebench.core.events import Progress
from rallebench.core.types import Example, Passage
from rallebench.gui import html
from rallebench.gui.form import labelled, select
from rallebench.gui.frame import Event, Page, Patch
from rallebench.gui.html import e
from rallebench.gui.places._data_chunks import chunk_fields, chunking_of, words_of
from rallebench.gui.wording import on_page
from rallebench.render.numbers import plural
from rallebench.services import catalog, imports, uploads
from rallebench.services.imports import ImportRequest, ImportResult, Looked, Preview
from rallebench.services.jobs import Job

STEPS = (("choose", "Choose"), ("preview", "Preview"), ("build", "Build"))
KINDS = (("corpus", "Corpus"), ("dataset", "Dataset"), ("both", "Corpus and dataset"))
INDEXES = (("bm25", "Words (BM25)"), ("dense", "Dense"), ("hybrid", "Hybrid"))
FORMS = "TSV, JSONL, CSV, TREC, BEIR, an archive, or a folder of PDF, HTML, Markdown and text. Corpus or dataset is recognised."
CHARACTERS = 280


def register(page: Page) -> None:
    """The actions of the panel."""
    page.actions(
        "data",
        preview=preview,
        rechunk=rechunk,
        import_again=again,
        import_open=open_panel,
        **{"import": start},
    )


def whole_path(text: str) -> str:
    """A path without the quotes that file managers put around it."""
    return text.strip().strip("\"'").strip()


# the panel


def panel(page: Page, event: Event) -> str:
    """The panel at the step where this window is."""
    state = event.session.get("import", {})
    job = page.workbench.jobs.get("import", state.get("name", ""))
    if state.get("step") == "build" and job is not None:
        return head("build") + building(job)
    with suppress(RalleError):
        if state.get("step") == "preview":
            return head("preview") + previewed(look(page, state), state)
    return head("choose") + choose()


def head(step: str) -> str:
    """The heading, and where one is."""
    number = [name for name, _ in STEPS].index(step) + 1
    steps = "".join(
        f'<li class="{"on" if name == step else ""}"{" aria-current=step" if name == step else ""}>{label}</li>'
        for name, label in STEPS
    )
    return f'<h3 class="sub first">Import <small>step {number} of 3</small></h3><ol class="wizs">{steps}</ol>'


def choose() -> str:
    """The drop zone and the path."""
    return f"""<label class="drop" data-upload="data.preview"><span aria-hidden="true">⇪</span><span>Drop files or a folder, or click</span>
<input type="file" multiple class="sr" aria-label="Files to import"></label>
<label class="drop small" data-upload="data.preview"><span>or choose a whole folder</span><input type="file" webkitdirectory class="sr" aria-label="Folder to import"></label>
<input name="path" aria-label="A path on this machine" placeholder="or a path on this machine" data-on="enter" data-do="data.preview">
<p class="note">{e(FORMS)}</p>
{html.button("Preview", "data.preview", kind="primary")}"""


def previewed(seen: Looked, state: dict[str, Any]) -> str:
    """What was recognised, how it begins, and what is to be built."""
    kind = state.get("kind") or seen.kind
    recognised = dict(KINDS)[kind].lower()
    parts = [f'<p><b>{e(seen.source.name)}</b> <span class="note">is a {e(recognised)}</span></p>']
    names = [*catalog.names("corpora"), *catalog.names("datasets")]
    form = (seen.dataset if kind == "dataset" else seen.corpus or seen.dataset).form  # type: ignore[union-attr]
    parts.append(
        '<div class="pair">'
        + labelled("It is a", select("kind", [(k, w) for k, w in KINDS], kind, more=ON_LOOK))
        + labelled(
            "Format",
            select(
                "form", sorted({*names} - {"imported"}), state.get("form") or form, more=ON_LOOK
            ),
        )
        + "</div>"
    )
    if seen.dataset:
        parts.append(questions(seen.dataset))
    if seen.corpus:
        chunking = state_chunking(state, seen.corpus)
        parts += [
            f'<div id="import-chunks">{chunks(seen.corpus, chunking)}</div>',
            settings(state, chunking),
        ]
    parts.append(
        labelled(
            "Name", f'<input name="name" value="{e(state.get("name") or seen.name)}" required>'
        )
    )
    if seen.corpus:
        parts.append(indexes(state))
    begin = "Import and build" if seen.corpus else "Import"
    parts.append(
        f'<div class="buttons">{html.button("Back", "data.import_again")}{html.button(begin, "data.import", kind="primary")}</div>'
    )
    return "".join(parts)


ON_LOOK = ' data-on="change" data-do="data.preview"'


def state_chunking(state: dict[str, Any], corpus: Preview) -> Any:
    """The cutting that the form asks for; at first the one that suits the documents."""
    if "chunking" not in state:
        state["chunking"] = imports.suggested_chunking(corpus.rows)
    return state["chunking"]


def chunks(corpus: Preview, chunking: Any) -> str:
    """The first passages as an index would hold them, and the bad rows."""
    rows: Sequence[Passage] = corpus.rows
    first = imports.first_chunks(rows, chunking)
    more = f"{plural(corpus.read, 'row')} read" + ("" if corpus.ended else ", there are more")
    items = "".join(
        f'<article class="bit"><h4>{e(p.title or p.doc_id)}<span class="n">{e(p.doc_id)}</span></h4>'
        f"<p>{e(short(p.text))}</p></article>"
        for p, _ in first
    )
    title = "First chunks" if chunking else "First passages"
    head = f'<h3 class="sub">{title} <small>{e(more)}</small></h3>'
    body = items or '<p class="note">No passage can be read here. Choose another format.</p>'
    return head + f'<div class="firsts">{body}</div>' + problems(corpus)


def short(text: str) -> str:
    """The beginning of a text."""
    flat = " ".join(text.split())
    return flat if len(flat) <= CHARACTERS else flat[: CHARACTERS - 1] + "…"


def questions(preview: Preview) -> str:
    """The first questions with their gold."""
    rows: Sequence[Example] = preview.rows
    items = "".join(
        f'<article class="bit"><h4>{e(short(x.question.text))}</h4><p>{e(" · ".join(x.gold.answers[:3]) or "no answer")}'
        f'<span class="note"> {len(x.gold.pages)} gold page{"s" * (len(x.gold.pages) != 1)}</span></p></article>'
        for x in rows[:5]
    )
    more = f"{plural(preview.read, 'row')} read" + ("" if preview.ended else ", there are more")
    head = f'<h3 class="sub">First questions <small>{e(more)}</small></h3>'
    body = items or '<p class="note">No question can be read here. Choose another format.</p>'
    return head + f'<div class="firsts">{body}</div>' + problems(preview)


def problems(preview: Preview) -> str:
    """The bad rows, and what is to happen to them."""
    if not preview.bad:
        return ""
    lines = "".join(f"<li>{e(on_page(problem.message))}</li>" for problem in preview.problems[:5])
    return (
        f'<div class="warn"><b>{plural(preview.bad, "bad row")}.</b><ul>{lines}</ul>'
        '<label class="check"><input type="checkbox" name="skip_bad"> Leave bad rows out</label></div>'
    )


def settings(state: dict[str, Any], chunking: Any) -> str:
    """The cutting and the page map, folded."""
    cut = html.fold(
        "Chunking",
        chunk_fields(chunking, 'data-on="change" data-do="data.rechunk"'),
        gist=words_of(chunking),
        id="import-chunking",
    )
    pages = labelled(
        "File",
        f'<input name="pages" value="{e(state.get("pages", ""))}" placeholder="path of a JSON, TSV or JSONL file"{ON_LOOK}>',
        "Passage id → page id, where the corpus does not name its pages.",
    )
    upload = '<label class="drop small" data-upload="data.preview" data-as="pages"><span>Drop a page map, or click</span><input type="file" class="sr" aria-label="Page map"></label>'
    gist = Path(state["pages"]).name if state.get("pages") else "none"
    return cut + html.fold("Page map", pages + upload, gist=gist, id="import-pages")


def indexes(state: dict[str, Any]) -> str:
    """What is built when the import is done."""
    ticked = state.get("indexes", [name for name, _ in INDEXES])
    boxes = "".join(
        f'<label class="check"><input type="checkbox" name="indexes" value="{name}"{" checked" if name in ticked else ""}> {label}</label>'
        for name, label in INDEXES
    )
    encoder = labelled(
        "Encoder", select("encoder", list(catalog.encoders()), state.get("encoder", "minilm"))
    )
    return f'<fieldset class="plain"><legend class="note">Build when done</legend><div class="checks">{boxes}</div></fieldset>{encoder}'


def building(job: Job) -> str:
    """How far the import is, or what came of it."""
    lines = ""
    tasks = [(name, x) for name, x in job.tasks.items() if isinstance(x, Progress)]
    for name, news in tasks[:-1]:
        lines += f'<div class="doing"><span><span class="good">✓</span> {e(news.message if name == "corpus" else name)}</span></div>'
    for name, news in tasks[-1:]:
        share = news.done / news.total if news.total else None
        lines += html.doing(news.message or name, share=share)
    if not job.done:
        stop = html.button("Stop", "jobs.stop", id=job.id)
        return f'{lines or "<p>Starting…</p>"}<p class="note">It goes on if you leave this page.</p><div class="buttons">{stop}</div>'
    other = html.button("Import another", "data.import_again")
    if job.error is not None:
        back = html.button("Back", "data.import_open", step="preview")
        return f'{html.problem(job.error)}<div class="buttons">{back}{other}</div>'
    return done(job, job.result) + f'<div class="buttons">{other}</div>'


def done(job: Job, result: ImportResult) -> str:
    """What an import has brought, and what can be done with it."""
    parts, links = [], []
    if result.corpus:
        left_out = f", {result.corpus.skipped:,} bad rows left out" if result.corpus.skipped else ""
        parts.append(f"{result.corpus.passages:,} passages{left_out}")
        links.append(html.link("Read passages", html.address("data/corpus", id=job.name), "button"))
        lost = result.corpus.passages_without_page if result.corpus.has_pages else 0
        if lost:
            parts.append(f"{lost:,} of them without a page, which can never count as gold pages")
    if result.dataset:
        skipped = (
            f", {result.dataset.skipped:,} bad rows left out" if result.dataset.skipped else ""
        )
        parts.append(f"{result.dataset.questions:,} questions{skipped}")
        links.append(html.link("Use in Build", html.address("build/one", set=job.name), "button"))
    if result.indexes:
        last = result.indexes[-1]
        links.append(html.link(f"Search {last}", html.address("data/index", id=last), "button"))
        links.append(html.button(f"Use {last} in Build", "data.use", id=last))
        parts.append(f"indexes {', '.join(result.indexes)}")
    return (
        f'<p class="good"><b>Imported {e(job.name)}.</b></p><p>{e("; ".join(parts))}.</p>'
        f'<div class="row">{"".join(links)}</div>'
    )


# actions


def look(page: Page, state: dict[str, Any]) -> Looked:
    """The source of this window's import, looked at."""
    pages = whole_path(state.get("pages", ""))
    return imports.look(
        Path(state["source"]),
        kind=state.get("kind", ""),
        form=state.get("form", ""),
        page_map=Path(pages).expanduser() if pages else None,
    )


def preview(page: Page, event: Event) -> Patch:
    """Take what was dropped, typed or changed, and show how it begins."""
    before = event.session.get("import", {})
    files = event.data.get("files") or []
    page_map = event.text("as") == "pages"
    state = dict(before) if before.get("step") == "preview" and (page_map or not files) else {}
    if page_map and files:
        state["pages"] = str(uploads.lay_out(page.workbench.workspace, sent(files)))
    elif files:
        state["source"] = str(uploads.lay_out(page.workbench.workspace, sent(files)))
    elif event.text("path"):
        state["source"] = whole_path(event.text("path"))
    if not state.get("source"):
        raise UsageError("No file is given; drop one, or type the path of a file or folder.")
    source = Path(state["source"]).expanduser()
    state["source"] = str(uploads.unpacked(page.workbench.workspace, source))
    if before.get("step") == "preview" and not files:
        keep(state, event)
    state["step"] = "preview"
    body = previewed(look(page, state), state)
    event.session["import"] = state
    return {"#data-import": head("preview") + body}


def sent(files: Any) -> list[tuple[Path, str]]:
    """The uploaded files as (where each is, its name or relative path)."""
    rows = files if isinstance(files, list) else []
    return [(Path(str(row["path"])), str(row.get("name", ""))) for row in rows if "path" in row]


def keep(state: dict[str, Any], event: Event) -> None:
    """Remember what the form holds; another kind has formats of its own, and recognises one."""
    kind = event.text("kind")
    state["form"] = event.text("form") if kind == (state.get("kind") or kind) else ""
    state |= {"kind": kind, "pages": event.text("pages"), "name": event.text("name")}
    state |= {"indexes": event.many("indexes"), "encoder": event.text("encoder", "minilm")}


def rechunk(page: Page, event: Event) -> Patch:
    """Cut the first documents as the form says."""
    state = event.session.get("import", {})
    state["chunking"] = chunking_of(event)
    corpus = look(page, state).corpus
    return {"#import-chunks": chunks(corpus, state["chunking"])} if corpus else {}


def start(page: Page, event: Event) -> Patch:
    """Import it and build its indexes, as one job."""
    state = event.session.get("import", {})
    if not state.get("source"):
        raise UsageError("Choose what to import first.")
    keep(state, event)
    seen = look(page, state)
    pages = whole_path(event.text("pages"))
    request = ImportRequest(
        event.text("name") or seen.name,
        seen.source,
        seen.kind,
        state["form"],
        Path(pages).expanduser() if pages else None,
        event.flag("skip_bad"),
        chunking_of(event) if seen.corpus else None,
        tuple(event.many("indexes")) if seen.corpus else (),
        event.text("encoder", "minilm"),
    )
    job = imports.start(page.workbench, request)
    event.session["import"] = {**state, "step": "build", "name": request.name}
    job.wait(0.3)
    return {"#data-import": panel(page, event)}


def again(page: Page, event: Event) -> Patch:
    """Begin with the first step."""
    event.session.pop("import", None)
    return {"#data-import": panel(page, event)}


def open_panel(page: Page, event: Event) -> Patch:
    """The panel as it is, or at another step."""
    if event.text("step"):
        event.session["import"]["step"] = event.text("step")
    return {"#data-import": panel(page, event)}
