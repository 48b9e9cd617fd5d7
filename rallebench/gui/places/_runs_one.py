"""One run: tiles, stages at which questions were lost, questions with their steps; then metrics, cost and settings."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from markupsafe import Markup

from rallebench.core.errors import NotFoundError, RalleError, UsageError
from rallebench.core.failures import is_slice
from rallebench.core.run_results import RunSummary
from rallebench.gui import form, html, panels
from rallebench.gui.addresses import (
    ComparisonAddress,
    Door,
    ExperimentsAddress,
    Query,
    QuestionAddress,
    RunAddress,
)
from rallebench.gui.events import Event, Rows, RowWindow, TraceList
from rallebench.gui.frame import Page
from rallebench.gui.html import attributes
from rallebench.gui.patches import PageEvent, Patch
from rallebench.gui.places import _runs_list
from rallebench.gui.places._label_bar import (
    BLIND,
    OPEN,
    bar,
    begin_labelling,
    blind_view,
    row_label,
)
from rallebench.gui.places._questions import answer_gists, list_row, position, verdict_chips
from rallebench.gui.places._runs_cells import STATES, lost_bar, lost_stages, question_count
from rallebench.gui.places._runs_figures import cost, metrics, tiles
from rallebench.gui.places._runs_graders import audit
from rallebench.gui.places._runs_list import reading, running
from rallebench.gui.places._runs_marks import star_button, tag_marks
from rallebench.gui.places._runs_why import slice_chip, slice_rows, why, why_fold
from rallebench.gui.places._trace import build_link, trace_html
from rallebench.render import numbers
from rallebench.views import dataset_changes, run_list, run_questions
from rallebench.views import labels as labels_view
from rallebench.views.run_questions import QuestionRow
from rallebench.views.run_views import OpenRun
from rallebench.views.traces import run_trace

PARTS = (("questions", "Questions"), ("metrics", "Metrics"), ("cost", "Cost"), ("config", "Config"))


@dataclass(frozen=True)
class RunQuestions(Query):
    """The filtered questions of a run. ``mark``: changes when the answers or labels change, so that the list is reloaded."""

    run: str = ""
    only: str = ""
    words: str = ""
    mark: str = ""
    label: str = ""


def register(page: Page) -> None:
    page.view("runs/run", open_run)
    page.rows("run-questions", question_rows)
    page.trace_list("runs/run", list_traces)
    page.actions("runs", question, choose, stages, live, use, why, audit, reads=True)
    page.actions("runs", bring_back, resume)


def folder(page: Page, event: Event) -> OpenRun:
    """Return the run of the event or the address. Raises UsageError."""
    name = event.text("run") or event.read(RunAddress).id
    if not name:
        raise UsageError("The address names no run; choose one of the list.")
    run_list.run_row(page.workspace, name)
    return OpenRun(page.workbench.runs.open(name))


def open_run(page: Page, event: Event) -> Patch:
    """Open the run at the section, filter and question in the address."""
    query, unknown = event.read(RunAddress), ""
    name, part = query.id, query.part or "questions"
    job = page.workbench.jobs.get("run", name)
    if job is not None and not job.done and page.workbench.runs.job_folder(job) is None:
        title = run_list.titles(page.workspace, [(job.name, job.identity)])[name]
        # prepare its index and models
        head = html.crumb("Runs", "#/runs/list", title, "starting")
        follow = attributes(follow="*", do="open", view="runs/run")
        return panels.view("runs/run", title, head, running(page, job), kind="wide", more=follow)
    try:
        run = folder(page, event)
    except run_list.InBinError as error:
        back = html.button("Bring it back", "runs.bring_back", id=name)
        head = html.crumb("Runs", "#/runs/list", "Run")
        return panels.view("runs/run", "Run", head, html.empty(str(error), back), kind="wide")
    try:
        fitting(page, run, query.only, query.words)
    except NotFoundError as error:  # a group that these questions do not have
        query, unknown = replace(query, only=""), str(error)
    row = run_list.run_row(page.workspace, run.name)
    if part == "config":
        body = html.copyable(
            html.pre(json.dumps(run.record, ensure_ascii=False, indent=2), "pre code")
        )
    elif part in ("metrics", "cost"):
        body = {"metrics": metrics, "cost": cost}[part](page, run)
    else:
        body = questions_part(page, event, run, query)
    head = Markup('<div id="run-head">{}</div>').format(heading(page, row, part))
    return panels.view(
        "runs/run", row.title, head, body, kind="wide", more=Markup(" data-problems")
    ) | Patch(say=unknown)


def heading(page: Page, row: RunSummary, part: str) -> Markup:
    when, state = numbers.moment(row.created), STATES.get(row.state, row.state)
    counted = row.decided or f"{question_count(row).removesuffix(' questions')} questions"
    about = html.join_facts(f"on {row.dataset}", counted, when, state)
    done, buttons = row.state == "done", Markup()
    if row.state not in ("done", "running", "scoring") and not row.problem:
        buttons += html.button("Resume", "runs.resume", run=row.name)
    if row.chain and done:
        baselines = ExperimentsAddress(run=row.name).href
        buttons += html.link("Baselines", baselines, "button")
    buttons += compare_menu(page, row)
    if row.chain:
        buttons += html.button("Open in Build", "runs.use", kind="primary", run=row.name)
    buttons += _runs_list.run_menu(row)
    places = {key: RunAddress(row.name, "" if key == "questions" else key).href for key, _ in PARTS}
    tabs = [(places[key], label) for key, label in PARTS]
    switch = html.segments(tabs, places.get(part, ""), "Parts of the run")
    crumb = html.crumb("Runs", "#/runs/list", row.title, about, buttons=buttons)
    words = Markup('<span class="run-note">{}</span>').format(row.note) if row.note else Markup()
    edit = html.button("Tags and note", "runs.ask_marks", kind="quiet", id=row.name)
    marks = Markup('<div class="run-marks">{}{}{}{}</div>').format(
        star_button(row), tag_marks(row), words, edit
    )
    return Markup('{}<div class="row">{}<span class="gap"></span>{}</div>').format(
        crumb, switch, marks
    )


def compare_menu(page: Page, row: RunSummary) -> Markup:
    """Draw a menu of the other runs on the same dataset; "" if there are none."""
    question_list = run_list.rows(page.workspace)
    others = [r for r in question_list if r.name != row.name and r.dataset == row.dataset]
    others.sort(key=lambda other: not other.is_reference)
    links = Markup()
    for other in others[:30]:
        star = "★ reference run" if other.is_reference else ""
        title = html.join_facts(other.title, star, numbers.moment(other.created))
        pair = (row.name, other.name) if row.is_reference else (other.name, row.name)
        links += html.link(title, ComparisonAddress(*pair).href, "")
    summary = Markup('<summary class="button">Compare with …</summary>')
    return (
        Markup('<details class="menu wide-menu">{}<div>{}</div></details>').format(summary, links)
        if links
        else Markup()
    )


def questions_part(page: Page, event: Event, run: OpenRun, query: RunAddress) -> Markup:
    """Draw the tiles, the bar, and the list next to one question."""
    job, live_part = page.workbench.jobs.get("run", run.name), Markup()
    query = in_label_mode(page, event, run, query)
    if job:
        follow = attributes(follow=f"run {run.name}", do="runs.live", run=run.name)
        inside = Markup() if job.done else running(page, job)
        live_part = Markup('<div id="run-live"{}>{}</div>').format(follow, inside)
    return Markup(
        '{}<div id="run-top">{}</div><div class="cols two">'
        '<div class="leftlist" id="run-list" data-form>{}</div>'
        '<div class="detail" id="run-question" data-problems>{}</div></div>'
    ).format(
        live_part,
        top(page, run, query),
        question_list(page, run, query),
        detail(page, event, run, replace(query, q=opened_first(page, run, query))),
    )


def top(page: Page, run: OpenRun, query: RunAddress) -> Markup:
    """Draw why the run ended early, the tiles and the bar of lost questions, which is computed once its legend is visible."""
    if query.label == BLIND:
        return html.note("Gold, verdicts and scores are hidden while you label blind.")
    report, going = run.report, run.is_going
    legend = Markup().join(
        Markup("<span>{}</span>").format(text) for _, text, _ in lost_stages(page, run.name)
    )
    answers = run_questions.questions(page.workspace, run.folder)
    if answers and not going and not run_questions.stages_known(page.workspace, run.folder):
        legend += reading("runs.stages", run=run.name)
    bar = Markup('{}<div class="legend">{}</div>').format(
        lost_bar(page, run.name, tall=True), legend
    )
    if report is None or going:
        return html.note("The scores appear when the run ends.") + bar
    changed = html.warning(changes_sentence(page, run))
    return (
        html.warning(run.stop_reason)
        + changed
        + tiles(page, run, report)
        + bar
        + why_fold(run, is_slice(query.only))
    )


def changes_sentence(page: Page, run: OpenRun) -> str:
    """Say what was edited in the dataset since the run; "" if nothing."""
    words = dataset_changes.dataset_changes(page.workspace, run.folder).words
    if not words:
        return ""
    resumed = " A resumed run asks them as it began." if run.folder.state().state != "done" else ""
    return (
        f"{run.dataset} was edited since: {words}. The scores are of the questions as they were; a comparison leaves changed ones out."
        + resumed
    )


def question_list(page: Page, run: OpenRun, query: RunAddress) -> Markup:
    only, hint = query.only, "Filter by words"
    data = {"run": run.name, "only": only}
    field = form.filter_field("run-words", query.words, "runs.choose", hint, **data)
    return Markup(
        '{}<div id="run-chips">{}</div>{}<div id="run-rows">{}</div><div class="foot">{}</div>'
    ).format(
        label_switch(query),
        chips(page, run, query),
        field,
        listing(page, run, query),
        Markup() if query.label else save_button(page, run, query),
    )


def label_switch(query: RunAddress) -> Markup:
    """Draw the way into label mode, or its modes and the way out."""
    modes = (("", "Read", None), (OPEN, "Label", None), (BLIND, "Label blind", None))
    switch = html.chips(
        modes, query.label, "labels.choose_mode", "mode", {"" if query.label else OPEN: "l"}
    )
    counts = html.button("Labels …", "labels.summary", kind="quiet", run=query.id)
    return Markup('<div class="row">{}{}</div>').format(switch, counts)


def save_button(page: Page, run: OpenRun, query: RunAddress) -> Markup:
    """Draw the button that saves the filtered questions to a dataset."""
    count = len(fitting(page, run, query.only, query.words))
    if not count or run.is_going:
        return Markup()
    label = f"Save {'this question' if count == 1 else f'these {count:,} questions'} to a dataset"
    only, words = query.only, query.words
    return html.button(label, "edits.keep_form", kind="quiet", run=run.name, only=only, words=words)


def chips(page: Page, run: OpenRun, query: RunAddress) -> Markup:
    """Draw the filters by verdict, and in label mode those by label, which tell no verdict."""
    answers = run_questions.questions(page.workspace, run.folder)
    verdicts = verdict_chips(answers, query.only, "runs.choose", run=run.name)
    verdicts += slice_chip(page, run, query.only)
    if not query.label:
        return verdicts
    counted: list[tuple[str, str, int | str | None]] = []
    for which, words in labels_view.CHIPS.items():
        left = len(labels_view.fits(page.workspace, run.folder, which))
        size = (
            labels_view.sample_size(page.workspace, run.folder)
            if which == labels_view.SAMPLE
            else 0
        )
        counted.append((which, words, f"{left:,} of {size:,} left" if size else left))
    every: list[tuple[str, str, int | str | None]] = []
    if query.label == BLIND:
        every = [("", "All", len(answers))]
    own = html.chips([*every, *counted], query.only, "runs.choose", run=run.name)
    return own if query.label == BLIND else verdicts + own


def listing(page: Page, run: OpenRun, query: RunAddress) -> Markup:
    """Draw the windowed list."""
    rows = fitting(page, run, query.only, query.words)
    count = len(run_questions.questions(page.workspace, run.folder))
    if not rows:
        return html.note("No question fits the filter.")
    known = run_questions.stages_known(page.workspace, run.folder)
    mark = f"{count} {known} {labels_view.version(run.folder) if query.label else ''}".strip()
    key = RunQuestions(run.name, query.only, query.words, mark, query.label)
    at = position(rows, opened_first(page, run, query))
    return html.window("run-questions", key, len(rows), "runs.question", at=at, row=48)


def fitting(page: Page, run: OpenRun, only: str, words: str) -> list[QuestionRow]:
    """Return the questions that pass the filter."""
    if is_slice(only):
        return slice_rows(page, run, only, words)
    every = run_questions.questions(page.workspace, run.folder)
    if only not in labels_view.CHIPS:
        return run_questions.filter_questions(every, only, words)
    chosen = labels_view.fits(page.workspace, run.folder, only)
    return [row for row in run_questions.filter_questions(every, "", words) if row.qid in chosen]


def in_label_mode(page: Page, event: Event, run: OpenRun, query: RunAddress) -> RunAddress:
    """Return the address with the question to label, if the run is labelled."""
    if not query.label:
        return query
    ids = [row.qid for row in fitting(page, run, query.only, query.words)]
    return begin_labelling(page, event.session, run, query, ids)


def opened_first(page: Page, run: OpenRun, query: RunAddress) -> str:
    """Return the question in the address, otherwise the first wrong one in the list, otherwise the first."""
    if query.q or run.is_going:
        return query.q
    rows = fitting(page, run, query.only, query.words)
    wrong = (row.qid for row in rows if row.kind in run_questions.WRONG)
    return next(wrong, rows[0].qid if rows else "")


def question_rows(page: Page, request: RowWindow) -> Rows:
    key = request.read(RunQuestions)
    run = OpenRun(page.workbench.runs.open(key.run))
    rows = fitting(page, run, key.only, key.words)[request.part]
    gists = answer_gists([row.answer for row in rows])
    labels = [
        row_label(page, request.session, run, row, key.label) if key.label else "" for row in rows
    ]
    below = Markup("<b>{}</b><s>gold</s><b>{}</b>")
    if key.label == BLIND:
        below, rows = Markup("<b>{}</b>"), [replace(row, kind="none") for row in rows]
    return Rows(
        [
            (row.qid, list_row(row, below.format(gist or "–", row.gold[:80]) + label))
            for row, gist, label in zip(rows, gists, labels)
        ]
    )


def detail(page: Page, event: Event, run: OpenRun, query: RunAddress) -> Markup:
    """Draw the open question with its steps, in label mode below its grades; a hint to choose one if there is none."""
    qid = query.q
    if not qid:
        return html.empty(
            "Choose a question: its steps appear here. J and K move through the list."
        )
    try:
        grades = bar(page, event.session, run, qid, query.label) if query.label else Markup()
        if query.label == BLIND:
            return grades + blind_view(page, run, qid)
        trace = run_trace(page.workspace, run.folder, qid)
    except RalleError as error:
        return html.problem(error)
    copy = html.button("Copy link", kind="quiet", copy="link")
    head = Markup('<div class="dh"><span class="gap"></span>{}{}</div>')
    return head.format(copy, build_link(run, qid)) + grades + trace_html(page, trace)


def list_traces(page: Page, event: Event, door: Door) -> TraceList:
    """Return the questions of the run that pass the filter in the address."""
    run, query = folder(page, event), event.read(RunAddress)
    return TraceList([row.qid for row in fitting(page, run, query.only, query.words)])


# actions


def question(page: Page, event: Event) -> Patch:
    try:
        query = replace(event.read(RunAddress), q=event.text("id"))
        return Patch({"run-question": detail(page, event, folder(page, event), query)})
    except run_list.InBinError:  # another window deleted it
        return open_run(page, event)


def bring_back(page: Page, event: Event) -> Patch:
    page.workbench.runs.restore(event.text("id"))
    return open_run(page, event)


def choose(page: Page, event: Event) -> Patch:
    """Change the filter, which is kept in the address."""
    run = folder(page, event)
    query = replace(
        event.read(RunAddress), id=run.name, only=event.text("only"), words=event.text("words")
    )
    opened = in_label_mode(page, event, run, query)
    patch = Patch({"run-list": question_list(page, run, opened)}, address=opened.href)
    if opened.q != query.q:
        patch |= Patch({"run-question": detail(page, event, run, opened)})
    return patch


def stages(page: Page, event: Event) -> Patch:
    """Analyse the lost questions; this takes a while for a large run."""
    run, query = folder(page, event), event.read(RunAddress)
    run_questions.read_stages(page.workspace, run.folder)
    return Patch({"run-top": top(page, run, query), "run-list": question_list(page, run, query)})


def live(page: Page, event: Event) -> Patch:
    """Follow a run in progress; rows appear as questions are answered."""
    run, query = folder(page, event), event.read(RunAddress)
    job = page.workbench.jobs.get("run", run.name)
    going = job is not None and not job.done
    patch = Patch(
        {
            "run-head": heading(page, run_list.run_row(page.workspace, run.name), "questions"),
            "run-live": running(page, job) if job is not None and going else Markup(),
            "run-chips": chips(page, run, query),
            "run-rows": listing(page, run, query),
            "run-top": top(page, run, query),
        },
        event=PageEvent("rb-rows", list="run-questions"),
    )
    if not going and not query.q:
        opened = replace(query, q=opened_first(page, run, query))
        patch |= Patch({"run-question": detail(page, event, run, opened)})
    return patch


def resume(page: Page, event: Event) -> Patch:
    run = folder(page, event)
    page.workbench.runs.start(page.workbench.runs.resume(run.name))
    return Patch(go=RunAddress(run.name).href, say="The run continues.")


def use(page: Page, event: Event) -> Patch:
    """Open the chain of the run in Build."""
    run = folder(page, event)
    return Patch(go=QuestionAddress(set=run.dataset, run=run.name).href)
