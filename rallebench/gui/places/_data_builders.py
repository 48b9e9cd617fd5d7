"""Dataset builders: the form, the plan, the stages so far, and their rows for inspection and editing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

from markupsafe import Markup

from rallebench.core.errors import RalleError, UsageError
from rallebench.core.events import map_events
from rallebench.core.experiment_reports import BuilderReport, StageCounts
from rallebench.core.forecast import Forecast
from rallebench.core.numbers import plural
from rallebench.core.spending_limit import SpendingLimit
from rallebench.gui import form, html, panels
from rallebench.gui.addresses import BuilderAddress, DatasetAddress
from rallebench.gui.events import Event
from rallebench.gui.frame import Page
from rallebench.gui.html import escape
from rallebench.gui.jobs import doing_now, going
from rallebench.gui.patches import Patch
from rallebench.gui.places._data_build import form_documents, options, raise_at_once
from rallebench.gui.places._data_check import RowPlace, check, check_button, correction
from rallebench.render.numbers import text, time_range
from rallebench.services import builders as service
from rallebench.services.builders import StageRow
from rallebench.services.experiments import WorkspaceRequest
from rallebench.views import catalog, gold_coverage

WHICH = tuple((name, name.capitalize(), None) for name in ("all", "kept", "left out", "unknown"))
STAGES = {
    "1-articles": "Articles",
    "2-dates": "Date filter",
    "3-recency": "Recency filter",
    "4-questions": "Questions",
    "5-checks": "Quality checks",
}
MOST_ROWS = 30
VISIBLE_SETTINGS = ("tasks", "questions", "after", "index", "data", "tables", "templates", "number")
"""Settings shown without unfolding the rest."""
WORTH_A_LOOK = {
    "unknown": "replies could not be read",
    "failed": "failed, tried again next time",
    "edited": "changed by hand",
}


def register(page: Page) -> None:
    page.view("data/builder", open_builder, back="data/builder")
    page.actions("builder", follow, rows, reads=True)
    page.actions(
        "builder", redraw, plan, replan, pilot, start, continue_, edit, save, toggle, check
    )
    page.action("builder.checked", store_check)


def stage_name(label: str) -> str:
    """Return the title of a stage.

    >>> stage_name("2-dates"), stage_name("documents")
    ('Date filter', 'Documents')
    """
    return STAGES.get(label, label.lstrip("0123456789-").replace("-", " ").capitalize())


def open_builder(page: Page, event: Event) -> Patch:
    """Open the form, or with an id the stages of a started dataset."""
    query = event.read(BuilderAddress)
    if name := query.id:
        return panels.view("data/builder", name, stored_view(page, query))
    about = "questions of your own articles, stage by stage"
    crumb = html.crumb("Data", "#/data/list", "Build dataset", about)
    names = service.builders_begun(page.workspace)
    begun = Markup().join(
        Markup("<li>{}</li>").format(html.name_link(name, BuilderAddress(id=name)))
        for name in names
    )
    begun = Markup("<ul>{}</ul>").format(begun) if begun else html.note("None yet.")
    head = html.heading("Begun or built", str(len(names)), first=True)
    body = Markup(
        '{}<div class="builder-cols"><div data-form data-problems id="builder-form"{}>{}</div><aside class="box" aria-label="About building">{}{}</aside></div>'
    ).format(crumb, form.on_edit("builder.replan"), draw(page, event), head, begun)
    return panels.view("data/builder", "Build dataset", body)


# the form


def draw(page: Page, event: Event) -> Markup:
    builder = event.text("maker", catalog.names("builders")[0])
    llms = service.writers(page.workspace)
    item = catalog.entry("builders", builder)
    follow = form.on_change("builder.redraw")
    limit, name = event.text("limit"), event.text("name")
    parts = form.chooser("Builder", "maker", options("builders"), builder, more=follow)
    parts += form.fields(
        form.text("name", "Name", name, "of the dataset"),
        form.chooser("Model", "llm", llms, event.text("llm"), blank="none"),
        form.number("limit", "Articles or questions at most", limit, 1, "all"),
        form.spending_limit_field(event.text("max_usd")),
    )
    if item.traits.get("articles", True):
        corpora = list(gold_coverage.indexed_corpora(page.workspace))
        chosen = event.text("articles") or event.read(BuilderAddress).articles
        path, corpus = event.text("path"), chosen if chosen in corpora else ""
        path = path or ("" if corpus else chosen)
        articles = form.chooser("Articles of a corpus", "articles", corpora, corpus, blank="choose")
        articles += form.text("path", "… or a path", path, "folder, JSON lines or MediaWiki dump")
        parts += Markup('<div class="pair">{}</div>').format(articles)
    offered = catalog.choices(page.workspace, item.form)
    choices = {n: llms if item.form[n].names == "llm" else names for n, names in offered.items()}
    rare = [name for name in item.form if name not in VISIBLE_SETTINGS]
    parts += form.draw(item.form, dict(event.data), choices, prefix="set-", folded=rare)
    about = "Asks the model about three of them and estimates the cost of all"
    buttons = (
        html.button("Plan", "builder.plan"),
        html.button("Try on 3", "builder.pilot", title=about),
        html.button("Build dataset", "builder.start", kind="primary"),
    )
    return Markup(
        '<div class="stack">{}<div id="builder-plan"></div><div class="buttons">{}</div></div>'
    ).format(parts, Markup().join(buttons))


def redraw(page: Page, event: Event) -> Patch:
    return Patch({"builder-form": draw(page, event)})


def form_request(page: Page, event: Event) -> WorkspaceRequest:
    """Return the request in the form. Raises UsageError."""
    builder = event.text("maker")
    item = catalog.entry("builders", builder)
    settings = form.read(item.form, event, prefix="set-", owner=f"builder {builder!r}")
    if not event.text("name"):
        raise UsageError("The dataset needs a name.")
    articles = ""
    if item.traits.get("articles", True):
        articles = form_documents(page, event, "articles")
    return service.builder_request(
        page.workspace,
        builder,
        event.text("name"),
        settings,
        articles,
        event.text("llm"),
        event.whole("limit", "The number of articles or questions"),
    )


def plan(page: Page, event: Event) -> Patch:
    return draw_plan(page.workbench.experiments.plan(form_request(page, event)))


def replan(page: Page, event: Event) -> Patch:
    """Follow the form with a plan that is shown already."""
    return plan(page, event) if event.flag("planned") else Patch()


def draw_plan(planned: Forecast, more: str = "") -> Patch:
    """Draw a plan: its runs, stages and notes."""
    head = Markup()
    if planned.runs:
        most = planned.generations.high
        requests = "requests" if most is None else f"at most {plural(most, 'request')}"
        head = Markup("<p>{}, {}</p>").format(plural(len(planned.runs), "run"), requests)
    inside = Markup("{}{}{}{}").format(
        html.heading("Plan", first=True), head, html.bullets(planned.notes), more
    )
    mark = form.hidden_fields(planned="on")
    return Patch({"builder-plan": Markup('<div class="box">{}{}</div>').format(mark, inside)})


def pilot(page: Page, event: Event) -> Iterator[Patch]:
    """Ask questions about a small sample and extrapolate the costs."""
    request = form_request(page, event)
    planned = page.workbench.experiments.plan(request)
    stop = html.stop_stream("builder.pilot")
    waiting = Markup('<p class="note">{} … {}</p>')
    measured = yield from map_events(
        page.workbench.experiments.pilot(planned, request),
        lambda news: draw_plan(
            planned, waiting.format(getattr(news, "message", "") or "asking", stop)
        ),
    )
    total = measured.pilot.total if measured.pilot else {}
    seconds, dollars = total["seconds"], total["usd"].value
    low, high = seconds.low, seconds.high
    took = "" if low is None or high is None else time_range(low, high)
    words = html.join_facts(took, text(dollars, "usd") if dollars else "")
    words = Markup("<p><b>{}</b></p>").format(words or "The time cannot be foreseen.")
    yield draw_plan(planned, words + html.bullets(measured.notes))


def begin(page: Page, request: WorkspaceRequest, budget: SpendingLimit | None = None) -> None:
    """Start or continue a builder as a job. Raises UsageError."""
    untracked = replace(service.UNTRACKED, budget=budget)
    raise_at_once(page, page.workbench.experiments.start(request, untracked))


def start(page: Page, event: Event) -> Patch:
    request = form_request(page, event)
    begin(page, request, form.read_spending_limit(event))
    return Patch(go=BuilderAddress(id=request.name).href)


def continue_(page: Page, event: Event) -> Patch:
    begin(page, service.open_builder(page.workspace, event.text("id")).request)
    return follow(page, event)


# started datasets


def stored_view(page: Page, query: BuilderAddress) -> Markup:
    """Draw the stages of a dataset, and the rows of the chosen stage."""
    name = query.id
    about = service.open_builder(page.workspace, name).maker
    back = html.button("Continue", "builder.continue", kind="primary", id=name)
    crumb = html.crumb("Build dataset", "#/data/builder", name, about, buttons=back)
    news = html.attributes(follow=f"{service.NOUN} {name}", do="builder.follow", id=name)
    return Markup(
        '{}<div id="builder-stages">{}</div><div id="builder-rows">{}</div><span{}></span>'
    ).format(
        crumb,
        stages_view(page, name),
        rows_view(page, RowPlace(name, query.stage), query.which or "all"),
        news,
    )


def follow(page: Page, event: Event) -> Patch:
    return Patch({"builder-stages": stages_view(page, event.text("id"))})


def stages_view(page: Page, name: str) -> Markup:
    """Draw the progress: one row per stage, and the result."""
    job = page.workbench.jobs.get(service.NOUN, name)
    progress = going(job, (doing_now(job, stage_name) if job else "") or "starting")
    try:
        stored = service.open_builder(page.workspace, name)
    except RalleError as error:
        return progress or html.problem(error)
    lines = [stage_cells(name, label, counts) for label, counts in stored.stages.items()]
    heads = ["Stage", ">In", ">Kept", "Left out", "Worth a look", ">Requests", ">Tokens"]
    table = html.rows(heads, lines) if lines else html.note("This builder keeps no stages.")
    end = outcome(stored.report) if stored.report else Markup()
    return Markup('{}<div class="wide">{}</div>{}').format(progress, table, end)


def stage_cells(name: str, label: str, counts: StageCounts) -> list[str]:
    """Return a table row: inputs, kept rows, reasons for dropped rows, costs."""
    left = ", ".join(f"{count:,} {reason}" for reason, count in (counts.left_out or {}).items())
    numbers = {name: getattr(counts, name) for name in WORTH_A_LOOK}
    worth = (f"{n:,} {WORTH_A_LOOK[name]}" for name, n in numbers.items() if n)
    calls = tokens = ""
    if counts.calls:
        calls = f"{counts.calls:,}"
        tokens = f"{counts.prompt_tokens:,} + {counts.completion_tokens:,}"
    return [
        html.name_link(stage_name(label), BuilderAddress(id=name, stage=label)),
        f"{counts.inputs:,}",
        f"{counts.used:,}",
        escape(left or "none"),
        escape(", ".join(worth)),
        calls,
        tokens,
    ]


def outcome(report: BuilderReport) -> Markup:
    """Draw the result with its notes and location."""
    name, links = report.name, Markup()
    records = ", ".join(f"{plural(n, 'record')} in {file}" for file, n in report.records.items())
    words = records or "no question is left"
    if questions := report.questions:
        words = plural(questions, "question")
        links = html.link("Read records", DatasetAddress(id=name).href, "button")
    notes = html.bullets(report.notes, "note")
    files = Markup().join(Markup("<li><code>{}</code></li>").format(path) for path in report.files)
    fold = html.fold("Files", Markup("<ul>{}</ul>").format(files), id="builder-files")
    came = "good" if records or questions else "bad"
    return Markup('<p class="{}"><b>{}: {}.</b></p><div class="row">{}</div>{}{}').format(
        came, name, words, links, notes, fold
    )


# rows


def rows(page: Page, event: Event) -> Patch:
    place = event.fields(RowPlace)
    return Patch({"builder-rows": rows_view(page, place, event.text("which", "all"))})


def rows_view(page: Page, place: RowPlace, which: str = "all") -> Markup:
    name, stage = place.id, place.stage
    if not stage:
        return html.note("Choose a stage to see its rows.")
    space = page.workspace
    chips = html.chips(WHICH, which, "builder.rows", "which", id=name, stage=stage)
    note = Markup(
        '<p class="note">{}, the first {}. Rows that you edit here, or in <code>{}</code>, stay as they are when the builder continues.</p>'
    ).format(stage_name(stage), MOST_ROWS, service.stage_file(space, name, stage))
    lines = []
    for row in service.first_rows(space, name, stage, which, MOST_ROWS):
        verb, data = "Leave out" if row.is_kept else "Keep", RowPlace(name, stage, row.id).values()
        menu = html.menu(
            html.button(verb, "builder.toggle", **data),
            html.button("Edit…", "builder.edit", **data),
            label=f"Actions for {row.id}",
        )
        lines.append([row_view(row), state(row), menu])
    table = html.rows(["Row", "State", ""], lines) if lines else html.note("No such row.")
    bar = Markup('<div class="row">{}<span class="gap"></span>{}</div>').format(
        chips, check_button(page, name, stage)
    )
    return Markup("{}{}{}{}").format(html.heading("Rows"), bar, note, table)


def state(row: StageRow) -> Markup:
    words = html.join_facts(
        "kept" if row.is_kept else row.why or "left out",
        "verdict not read" if row.is_unread else "",
        "checked" if row.is_checked else "by hand" if row.is_edited else "",
    )
    return html.state(words, kind="good" if row.is_kept else "bad")


def row_view(row: StageRow) -> Markup:
    parts = Markup("<b>{}</b>").format((row.title or row.id)[:90])
    for name, words in row.texts.items():
        parts += Markup("<small>{}: {}</small>").format(name, " ".join(words.split())[:240])
    return parts + html.fold("Whole row", html.as_json(row.whole))


def edit(page: Page, event: Event) -> Patch:
    """Open a dialog with a row as JSON."""
    place = event.fields(RowPlace)
    row = service.stage_row(page.workspace, place.id, place.stage, place.row)
    whole = json.dumps(row, ensure_ascii=False, indent=1)
    field = form.area("json", "The row as JSON", whole, 16, Markup(' class="mono"'))
    title = f"Edit a row of {stage_name(place.stage)}"
    return panels.ask(title, field, "Save", "builder.save", **place.values())


def save(page: Page, event: Event) -> Patch:
    changed = write(page, event, event.text("json"))
    return Patch(dialog="", say="Saved. Continue builds on from here.") | changed


def toggle(page: Page, event: Event) -> Patch:
    """Switch a row between kept and dropped."""
    place = event.fields(RowPlace)
    row = service.stage_row(page.workspace, place.id, place.stage, place.row)
    return write(page, event, json.dumps({**row, "keep": not row.get("keep", True)}))


def store_check(page: Page, event: Event) -> Patch:
    """Save a person's verdict on a row and show the next row."""
    place, keep = event.fields(RowPlace), bool(event.text("keep"))
    service.check_row(
        page.workspace, place.id, place.stage, place.row, correction(event), keep=keep
    )
    return redraw_rows(page, event) | check(page, event)


def write(page: Page, event: Event, text: str) -> Patch:
    """Write a row to its stage's file, and redraw the stages and rows."""
    place = event.fields(RowPlace)
    service.edit_row(page.workspace, place.id, place.stage, place.row, text)
    return redraw_rows(page, event)


def redraw_rows(page: Page, event: Event) -> Patch:
    rows = Patch({"builder-rows": rows_view(page, event.fields(RowPlace))})
    return follow(page, event) | rows
