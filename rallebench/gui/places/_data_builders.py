"""Dataset builders: the form, the plan, the stages of what was begun, their rows to look at and to edit."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from rallebench.core.errors import RalleError, UsageError
from rallebench.core.events import Progress
from rallebench.core.experiments import ExperimentRequest
from rallebench.gui import form, html
from rallebench.gui.frame import Event, Page, Patch
from rallebench.gui.html import e
from rallebench.gui.places._data_build import raise_at_once
from rallebench.gui.places._data_import import whole_path
from rallebench.gui.wording import on_page
from rallebench.render.numbers import text
from rallebench.services import builders as service
from rallebench.services import catalog, gold_coverage
from rallebench.services.jobs import Job

WHICH = ("all", "kept", "left out", "unknown")
STAGES = {
    "1-articles": "Articles",
    "2-dates": "Date filter",
    "3-recency": "Recency filter",
    "4-questions": "Questions",
    "5-checks": "Quality checks",
}
MOST_ROWS = 30


def register(page: Page) -> None:
    """The view and its actions."""
    page.view("data/builder", open_builder)
    page.actions(
        "data",
        builder_form=redraw,
        builder_plan=plan,
        builder_pilot=pilot,
        builder_start=start,
        builder_continue=go_on,
        builder_follow=follow,
        builder_rows=rows,
        builder_edit=edit,
        builder_save=save,
        builder_toggle=toggle,
    )


def stage_name(label: str) -> str:
    """How a stage is called.

    >>> stage_name("2-dates"), stage_name("documents")
    ('Date filter', 'Documents')
    """
    return STAGES.get(label, label.lstrip("0123456789-").replace("-", " ").capitalize())


def open_builder(page: Page, event: Event) -> Patch:
    """The form, or with an id the stages of what was begun."""
    name = event.query.get("id", "")
    if not name:
        begun = listing(page)
        crumb = html.crumb(
            "Data", "#/data/list", "Build dataset", "questions of your own articles, stage by stage"
        )
        body = f'<div class="wrap-page">{crumb}<div class="builder-cols"><div data-form data-problems id="builder-form">{draw(page, event)}</div><aside class="box">{begun}</aside></div></div>'
        return {"#v-data-builder": body, "title": "Build dataset"}
    try:
        return {"#v-data-builder": stored_view(page, event, name), "title": name}
    except RalleError as error:
        return {"go": "#/data/builder", "say": on_page(error)}


def listing(page: Page) -> str:
    """What was begun, the newest first."""
    names = service.builders_begun(page.workbench.workspace)
    rows = "".join(
        f"<li>{html.link(name, html.address('data/builder', id=name), 'nm')}</li>" for name in names
    )
    body = f"<ul>{rows}</ul>" if rows else '<p class="note">None yet.</p>'
    return f'<h3 class="sub first">Begun or built <small>{len(names)}</small></h3>{body}'


# the form


def draw(page: Page, event: Event) -> str:
    """The fields of a builder."""
    builder = event.text("maker", "barag")
    item = catalog.entry("builders", builder)
    follow = ' data-on="change" data-do="data.builder_form"'
    makers = [
        (name, f"{name}: {catalog.entry('builders', name).about}")
        for name in catalog.names("builders")
    ]
    corpora = list(gold_coverage.indexed_corpora(page.workbench))
    parts = [
        form.labelled("Builder", form.select("maker", makers, builder, more=follow)),
        f'<div class="fields">{form.text("name", "Name", event.text("name"), "of the dataset")}',
        form.labelled("Model", form.select("llm", writers(page), event.text("llm"), blank="none")),
        form.text("limit", "Articles or questions at most", event.text("limit"), "all") + "</div>",
    ]
    if item.traits.get("articles", True):
        chosen = event.text("articles") or event.query.get("articles", "")
        path = "" if chosen in corpora else chosen
        corpus = form.select(
            "articles", corpora, chosen if chosen in corpora else "", blank="choose"
        )
        parts.append(
            f'<div class="pair">{form.labelled("Articles of a corpus", corpus)}'
            f"{form.text('path', '… or a path', event.text('path') or path, 'folder, JSON lines or MediaWiki dump')}</div>"
        )
    choices: dict[str, Any] = {"judge": writers(page)}
    choices["index"] = list(page.workbench.workspace.retrievers())
    hidden = [
        name
        for name in item.form
        if name
        not in ("tasks", "questions", "after", "index", "data", "tables", "templates", "number")
    ]
    parts.append(form.draw(item.form, dict(event.data), choices, prefix="set-", folded=hidden))
    parts.append(
        '<div id="builder-plan"></div><div class="buttons">'
        + html.button("Plan", "data.builder_plan")
        + html.button(
            "Try on 3",
            "data.builder_pilot",
            title="Asks the model about three of them and tells the cost of all",
        )
        + html.button("Build dataset", "data.builder_start", kind="primary")
        + "</div>"
    )
    return f'<div class="stack">{"".join(parts)}</div>'


def writers(page: Page) -> list[str]:
    """The models that can write: the built-in reader only copies."""
    return [
        name
        for name, entry in page.workbench.workspace.llms().items()
        if entry.backend != "extractive-reader"
    ]


def redraw(page: Page, event: Event) -> Patch:
    """The fields of the chosen builder."""
    return {"#builder-form": draw(page, event)}


def request_of(page: Page, event: Event) -> ExperimentRequest:
    """The request that the form makes. Raises UsageError."""
    builder = event.text("maker")
    item = catalog.entry("builders", builder)
    settings = form.read(item.form, event, prefix="set-", owner=f"builder {builder!r}")
    if not event.text("name"):
        raise UsageError("The dataset needs a name.")
    articles = ""
    if item.traits.get("articles", True):
        path = whole_path(event.text("path"))
        articles = path or gold_coverage.place_of(page.workbench, event.text("articles"))
    return service.builder_request(
        page.workbench.workspace,
        builder,
        event.text("name"),
        service.BUILDERS.settings(builder, settings),
        articles,
        event.text("llm"),
        event.whole("limit", "The number of articles or questions"),
    )


def plan(page: Page, event: Event) -> Patch:
    """What the builder would ask, without asking."""
    planned = page.workbench.experiments.plan(request_of(page, event))
    return {"#builder-plan": plan_view(planned)}


def plan_view(planned: Any, more: str = "") -> str:
    """A plan: its runs and stages, and what to know."""
    asks = sum((run.generations.high for run in planned.runs), 0)
    facts = [f"{len(planned.runs)} runs, at most {asks:,} requests"] if planned.runs else []
    notes = "".join(f"<li>{e(on_page(note))}</li>" for note in planned.notes)
    head = f"<p>{e('; '.join(facts))}</p>" if facts else ""
    return f'<div class="box"><h3 class="sub first">Plan</h3>{head}<ul>{notes}</ul>{more}</div>'


def pilot(page: Page, event: Event) -> Iterator[Patch]:
    """Ask about a few and tell what all would cost."""
    request = request_of(page, event)
    planned = page.workbench.experiments.plan(request)
    operation = page.workbench.experiments.pilot(planned, request)
    while True:
        try:
            news = next(operation)
        except StopIteration as end:
            yield {"#builder-plan": plan_view(planned, estimate_view(end.value))}
            return
        message = getattr(news, "message", "") or "asking"
        stop = '<button type="button" data-stop="data.builder_pilot">Stop</button>'
        yield {"#builder-plan": plan_view(planned, f'<p class="note">{e(message)} … {stop}</p>')}


def estimate_view(estimate: Any) -> str:
    """What a pilot has measured."""
    seconds, dollars = estimate.total["seconds"].value, estimate.total["usd"].value
    facts = [f"about {text(seconds, 'duration')}"] if seconds is not None else []
    facts += [text(dollars, "usd")] if dollars else []
    notes = "".join(f"<li>{e(on_page(note))}</li>" for note in estimate.notes)
    return f"<p><b>{e(', '.join(facts) or 'The time cannot be foreseen.')}</b></p><ul>{notes}</ul>"


def begin(page: Page, request: ExperimentRequest) -> Job:
    """Begin or continue a builder as a job. Raises UsageError."""
    job = page.workbench.experiments.start(request, service.UNTRACKED)
    raise_at_once(page, job)
    return job


def start(page: Page, event: Event) -> Patch:
    """Build it as a job."""
    request = request_of(page, event)
    begin(page, request)
    return {"go": html.address("data/builder", id=request.name)}


def go_on(page: Page, event: Event) -> Patch:
    """Continue what was begun; its files may have been edited meanwhile."""
    begin(page, service.open_builder(page.workbench.workspace, event.text("id")).request)
    return follow(page, event)


# what was begun


def stored_view(page: Page, event: Event, name: str) -> str:
    """The stages of a dataset, and the rows of the chosen stage."""
    builder = service.BUILDERS.name_of(
        service.open_builder(page.workbench.workspace, name).request.kind
    )
    back = html.button("Continue", "data.builder_continue", kind="primary", id=name)
    job = page.workbench.jobs.get(service.NOUN, name)
    crumb = html.crumb("Build dataset", "#/data/builder", name, builder, buttons=back)
    job_id = job.id if job else f"{service.NOUN} {name}"
    return (
        f'<div class="wrap-page">{crumb}<div id="builder-stages">{stages_view(page, name)}</div>'
        f'<div id="builder-rows">{rows_view(page, name, event.query.get("stage", ""), event.query.get("which", "all"))}</div>'
        f'<span data-follow="{e(job_id)}" data-do="data.builder_follow" data-id="{e(name)}"></span></div>'
    )


def follow(page: Page, event: Event) -> Patch:
    """The stages as they are now."""
    return {"#builder-stages": stages_view(page, event.text("id"))}


def stages_view(page: Page, name: str) -> str:
    """How far it is, a row a stage, and what came out."""
    job = page.workbench.jobs.get(service.NOUN, name)
    progress = ""
    if job is not None and not job.done:
        stop = html.button("Stop", "jobs.stop", id=job.id)
        news = next((x for x in reversed(job.events()) if isinstance(x, Progress)), None)
        words = (
            f"{stage_name(news.task)}: {news.message or f'{news.done:,} of {news.total or 0:,}'}"
            if news
            else "starting"
        )
        progress = html.doing(words, stop)
    elif job is not None and job.error is not None:
        progress = html.problem(job.error)
    try:
        stored = service.open_builder(page.workbench.workspace, name)
    except RalleError as error:
        return progress or html.problem(error)
    lines = [stage_cells(name, label, counts) for label, counts in stored.stages.items()]
    heads = ["Stage", ">In", ">Kept", "Left out", "Worth a look", ">Requests", ">Tokens"]
    body = html.rows(heads, lines) if lines else '<p class="note">This builder keeps no stages.</p>'
    return (
        progress
        + f'<div class="wide">{body}</div>'
        + (ended(stored.report) if stored.report else "")
    )


def stage_cells(name: str, label: str, counts: Mapping[str, Any]) -> list[str]:
    """A row: how many came in and stayed, why others did not, what asking took."""
    left = ", ".join(f"{count:,} {reason}" for reason, count in counts.get("left_out", {}).items())
    names = {
        "unknown": "replies could not be read",
        "failed": "failed, tried again next time",
        "edited": "changed by hand",
    }
    worth = ", ".join(f"{counts[key]:,} {words}" for key, words in names.items() if counts.get(key))
    tokens = (
        f"{counts['prompt_tokens']:,} + {counts['completion_tokens']:,}"
        if counts.get("calls")
        else ""
    )
    link = html.address("data/builder", id=name, stage=label)
    return [
        f'<a class="nm" href="{e(link)}">{e(stage_name(label))}</a>',
        f"{counts.get('inputs', 0):,}",
        f"{counts.get('kept', 0):,}",
        e(left or "none"),
        e(worth),
        f"{counts['calls']:,}" if counts.get("calls") else "",
        tokens,
    ]


def ended(report: Mapping[str, Any]) -> str:
    """What came out, what to know of it, and where it is."""
    counts, name = report.get("counts", {}), report.get("name", "")
    questions = counts.get("questions", 0)
    records = ", ".join(f"{n:,} records in {file}" for file, n in counts.get("records", {}).items())
    words = (
        f"{questions:,} question{'s' * (questions != 1)}"
        if questions
        else records or "no question is left"
    )
    links = (
        html.link("Read records", html.address("data/dataset", id=name), "button")
        if questions
        else ""
    )
    notes = "".join(f"<li>{e(on_page(note))}</li>" for note in report.get("notes", ()))
    files = "".join(f"<li><code>{e(path)}</code></li>" for path in report.get("files", ()))
    fold = html.fold("Files", f"<ul>{files}</ul>", id="builder-files")
    return f'<p class="good"><b>{e(name)}: {e(words)}.</b></p><div class="row">{links}</div><ul class="note">{notes}</ul>{fold}'


# rows


def rows(page: Page, event: Event) -> Patch:
    """The first rows of a stage."""
    name, stage, which = event.text("id"), event.text("stage"), event.text("which", "all")
    return {"#builder-rows": rows_view(page, name, stage, which)}


def rows_view(page: Page, name: str, stage: str, which: str) -> str:
    """The first rows of a stage, each with what was asked and replied, and its edit."""
    if not stage:
        return '<p class="note">Choose a stage to see its rows.</p>'
    path = service.stage_file(page.workbench.workspace, name, stage)
    found = list(service.first_rows(page.workbench.workspace, name, stage, which, MOST_ROWS))
    items = [(value, value.capitalize(), None) for value in WHICH]
    chips = html.chips(items, which, "data.builder_rows", "which", id=name, stage=stage)
    note = f'<p class="note">{e(stage_name(stage))}, the first {MOST_ROWS}. Rows that you edit here, or in <code>{e(path)}</code>, stay as they are when the builder continues.</p>'
    lines = [[row_view(row), state(row), row_menu(name, stage, row)] for row in found]
    body = html.rows(["Row", "State", ""], lines) if lines else '<p class="note">No such row.</p>'
    return f'<h3 class="sub">Rows</h3>{chips}{note}{body}'


def row_menu(name: str, stage: str, row: Mapping[str, Any]) -> str:
    """Keep or leave out, and edit."""
    data = {"id": name, "stage": stage, "row": str(row["id"])}
    verb = "Leave out" if row["keep"] else "Keep"
    return html.menu(
        html.button(verb, "data.builder_toggle", **data),
        html.button("Edit…", "data.builder_edit", **data),
        label=f"Actions for {row['id']}",
    )


def state(row: Mapping[str, Any]) -> str:
    """Whether a row is kept, and why not."""
    words = "kept" if row["keep"] else str(row.get("why") or "left out")
    more = " · verdict not read" if row.get("unknown") else ""
    hand = " · by hand" if row.get("edited") else ""
    return html.state(words + more + hand, kind="good" if row["keep"] else "bad")


def row_view(row: Mapping[str, Any]) -> str:
    """What a row holds, its long texts cut."""
    known = ("title", "question", "answers", "content", "error")
    parts = [f"<b>{e(str(row.get('title') or row['id'])[:90])}</b>"]
    for key in known[1:]:
        value = row.get(key)
        if value:
            shown = " · ".join(map(str, value)) if isinstance(value, list) else str(value)
            parts.append(f"<small>{e(key)}: {e(' '.join(shown.split())[:240])}</small>")
    whole = e(json.dumps(dict(row), ensure_ascii=False, indent=1, default=str))
    return "".join(parts) + html.fold("Whole row", f'<pre class="pre">{whole}</pre>')


def edit(page: Page, event: Event) -> Patch:
    """A dialog with a row as JSON."""
    name, stage, row_id = event.text("id"), event.text("stage"), event.text("row")
    row = service.stage_row(page.workbench.workspace, name, stage, row_id)
    whole = json.dumps(row, ensure_ascii=False, indent=1)
    save = html.button(
        "Save", "data.builder_save", kind="primary", id=name, stage=stage, row=row_id
    )
    body = f'<textarea class="mono" name="json" rows="16" aria-label="The row as JSON">{e(whole)}</textarea>'
    return {"dialog": html.dialog(f"Edit a row of {stage_name(stage)}", body, save)}


def save(page: Page, event: Event) -> Patch:
    """Write an edited row."""
    name, stage = event.text("id"), event.text("stage")
    service.edit_row(page.workbench.workspace, name, stage, event.text("row"), event.text("json"))
    patch = {"dialog": "", "say": "Saved. Continue builds on from here."}
    return patch | follow(page, event) | {"#builder-rows": rows_view(page, name, stage, "all")}


def toggle(page: Page, event: Event) -> Patch:
    """Keep a row, or leave it out."""
    name, stage, row_id = event.text("id"), event.text("stage"), event.text("row")
    row = service.stage_row(page.workbench.workspace, name, stage, row_id)
    row["keep"] = not row.get("keep", True)
    service.edit_row(page.workbench.workspace, name, stage, row_id, json.dumps(row))
    return follow(page, event) | {"#builder-rows": rows_view(page, name, stage, "all")}
