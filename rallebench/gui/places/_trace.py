"""The trace of a question in the drawer of any view: verdict, scores, and every step as sent and received."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from markupsafe import Markup

from rallebench.core.errors import RalleError, UsageError
from rallebench.core.numbers import plural
from rallebench.core.scoring import ScoreRow
from rallebench.core.types import Chain, Example, Score
from rallebench.gui import html
from rallebench.gui.addresses import AgentAddress, Door, QuestionAddress
from rallebench.gui.events import Event, TraceList
from rallebench.gui.frame import Page
from rallebench.gui.html import attributes
from rallebench.gui.patches import Patch
from rallebench.gui.places._few import variant_of_door, window_sheet
from rallebench.gui.places._few_table import VARIANT, Sheet
from rallebench.gui.places._steps import TITLES, facts, folds, stations, verdict_box
from rallebench.gui.places._support import support_folds
from rallebench.render.numbers import text
from rallebench.views import run_list, run_questions, run_views
from rallebench.views.run_views import OpenRun
from rallebench.views.traces import QuestionTrace, run_trace, variant_trace


def register(page: Page) -> None:
    """Register the actions of the drawer."""
    page.actions("trace", open_, reads=True)


@dataclass(frozen=True)
class Opened:
    """A trace with the name of its run or variant, and the button that opens it in Build."""

    trace: QuestionTrace
    label: str
    build: Markup


def open_(page: Page, event: Event) -> Patch:
    """Open the drawer on the trace in the address."""
    door = event.read(Door)
    if not door.source or not door.qid:
        raise UsageError("The address names no question of a run; choose one of the list.")
    listed = trace_list(page, event, door)
    opened = open_door(page, event, door)
    return Patch(drawer=drawer(page, door, opened, listed))


def open_door(page: Page, event: Event, door: Door) -> Opened:
    """Return the trace behind a door. Raises UsageError."""
    if door.source.startswith(VARIANT):
        sheet = window_sheet(page, event)
        chain, example, answer = variant_of_door(sheet, door)
        key = door.source.removeprefix(VARIANT)
        build = html.button("Open in Build", "few.open", key=key, q=door.qid)
        if answer is None:
            return Opened(QuestionTrace(example), sheet.label(chain), build)
        trace = variant_trace(
            page.workspace,
            example,
            answer.episode,
            column_scores(sheet, chain, example),
            page.workspace.questions(sheet.dataset),
        )
        return Opened(trace, sheet.label(chain), build)
    row = run_list.run_row(page.workspace, door.source)
    run = OpenRun(page.workbench.runs.open(door.source))
    trace = run_trace(page.workspace, run.folder, door.qid)
    return Opened(trace, row.title, build_link(run, door.qid))


def column_scores(sheet: Sheet, chain: Chain, example: Example) -> list[Score]:
    """Return the scores of an answer in the further columns of the grid."""
    scored = []
    for column in sheet.grid.columns:
        row = sheet.scores(chain, example, column) or ScoreRow({})
        scored += [
            Score(example.question.qid, x.label, row.values.get(x.name), row.notes.get(x.name, ""))
            for x in column.series
        ]
    return scored


def build_link(run: OpenRun, qid: str) -> Markup:
    """Draw the link that opens a question with the chain or agent of its run; "" for imported predictions."""
    if run.has_agent:
        return html.link("Open in Build", AgentAddress(run=run.name, q=qid).href)
    if run.chain:
        place = QuestionAddress(set=run.dataset, q=qid, run=run.name).href
        return html.link("Open in Build", place)
    return Markup()


def trace_list(page: Page, event: Event, door: Door) -> TraceList:
    """Return the list of the view in which the drawer is open; elsewhere all questions of the run."""
    lister = page.trace_lists.get(event.text("view"))
    if lister is not None:
        with suppress(RalleError):  # the view itself reports its errors
            listed = lister(page, event, door)
            if door.qid in listed.qids:
                return listed
    if door.source.startswith(VARIANT):
        return TraceList([door.qid])
    run = page.workbench.runs.open(door.source)
    return TraceList([row.qid for row in run_questions.questions(page.workspace, run)])


def drawer(page: Page, door: Door, opened: Opened, listed: TraceList) -> Markup:
    """Draw the drawer: where the trace is from, the way to its neighbours, the trace."""
    head = Markup('<div class="dh"><h2>{}</h2><span class="gap"></span>{}{}{}</div>').format(
        opened.label,
        opened.build,
        html.button("Copy link", kind="quiet", copy="link"),
        html.button("Close", kind="quiet", close="1"),
    )
    others = [(Door.to(source, door.qid).trace, label) for source, label in listed.sources]
    switch = Markup()
    if len(others) > 1:
        buttons = Markup().join(trace_button(label, to, to == door.trace) for to, label in others)
        switch = Markup('<div class="seg" role="group" aria-label="Answers of">{}</div>').format(
            buttons
        )
    return Markup(
        '<div class="trace" data-trace-open>{}<div class="row">{}{}</div>{}</div>'
    ).format(head, steps_through(door, listed.qids), switch, trace_html(page, opened.trace))


def trace_button(label: str, trace: str, on: bool = False) -> Markup:
    """Draw a button that opens another trace in the drawer."""
    return Markup('<button type="button" class="{}" aria-pressed="{}"{}>{}</button>').format(
        "on" if on else "", str(on).lower(), attributes(trace=trace), label
    )


def steps_through(door: Door, qids: Sequence[str]) -> Markup:
    """Draw the place of the question in its list, between the buttons to its neighbours."""
    if len(qids) < 2:
        return Markup()
    at = qids.index(door.qid)
    ways = {}
    for letter, step, title in (("k", -1, "Previous question"), ("j", 1, "Next question")):
        exists = 0 <= at + step < len(qids)
        trace = Door.to(door.source, qids[at + step]).trace if exists else None
        ways[letter] = html.button(
            letter.upper(), title=title, disabled=not exists, trace=trace, letter=letter
        )
    where = f"{at + 1:,} of {len(qids):,}"
    return Markup('<span class="steps-through">{}<small>{}</small>{}</span>').format(
        ways["k"], where, ways["j"]
    )


def trace_html(page: Page, trace: QuestionTrace) -> Markup:
    """Draw the question, the verdict with the stage at which it was lost, the scores, and every step."""
    example, episode, judged = trace.example, trace.episode, trace.verdict
    parts = Markup('<h2 class="question" dir="auto">{}</h2>').format(example.question.text)
    if episode is None or judged is None:
        parts += verdict_box(
            "none", "Not asked yet", example.gold, "", run_views.answer_text(example, episode)
        )
    else:
        prices = page.workbench.models.prices_of_use()
        below = stations(judged), facts(episode.steps, judged, prices), scores(trace.scores)
        parts += verdict_box(
            judged.kind, TITLES[judged.kind], example.gold, episode.answer, episode.error, *below
        )
        parts += support_folds(trace.support)
        parts += folds(episode.steps, example.gold, answer=episode.answer)
    parts += html.note(example.question.qid)
    if example.record:
        parts += html.fold(
            "Record of the dataset", html.as_json(dict(example.record)), id="trace-record"
        )
    return parts


def scores(listed: Sequence[Score]) -> Markup:
    """Draw the further scores of a question in a collapsed section; the tooltip says why one is missing."""
    if not listed:
        return Markup()
    rows = html.defs(
        (
            run_views.label(score.metric),
            Markup('<span title="{}">{}</span>').format(score.note, text(score.value, "quantity")),
        )
        for score in listed
    )
    return html.fold("Scores", rows, gist=plural(len(listed), "metric"), id="trace-scores")
