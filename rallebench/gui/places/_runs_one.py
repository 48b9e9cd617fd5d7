"""One run: tiles, stages at which questions were lost, questions with their steps; then metrics, cost and settings."""

from __future__ import annotations

import json
from dataclasses import dataclass

from markupsafe import Markup

from rallebench.core.errors import RalleError, UsageError
from rallebench.core.run_results import RunSummary
from rallebench.gui import figures, form, html, panels
from rallebench.gui.addresses import (
    AgentAddress,
    ComparisonAddress,
    ExperimentsAddress,
    Query,
    QuestionAddress,
    RunAddress,
)
from rallebench.gui.events import Event, Rows, RowWindow
from rallebench.gui.frame import Page
from rallebench.gui.html import attributes
from rallebench.gui.patches import PageEvent, Patch
from rallebench.gui.places import _runs_list
from rallebench.gui.places._questions import list_row, position, verdict_chips
from rallebench.gui.places._runs_figures import cost, metrics, tiles
from rallebench.gui.places._runs_list import lost_bar, question_count, reading, running
from rallebench.gui.places._steps import answer_line, folds, mark_gold, price
from rallebench.render import numbers
from rallebench.views import run_list, run_questions, run_views
from rallebench.views.run_questions import QuestionRow
from rallebench.views.run_views import OpenRun

PARTS = (("questions", "Questions"), ("metrics", "Metrics"), ("cost", "Cost"), ("config", "Config"))


@dataclass(frozen=True)
class RunQuestions(Query):
    """The filtered questions of a run. ``mark``: changes when the answers change, so that the list is reloaded."""

    run: str = ""
    only: str = ""
    words: str = ""
    mark: str = ""


def register(page: Page) -> None:
    page.view("runs/run", open_run)
    page.rows("run-questions", question_rows)
    page.actions("runs", question, bring_back, choose, stages, live, resume, use)


def folder(page: Page, event: Event) -> OpenRun:
    """Return the run of the event or the address. Raises UsageError."""
    name = event.text("run") or event.read(RunAddress).id
    if not name:
        raise UsageError("The address names no run; choose one of the list.")
    run_list.run_row(page.workspace, name)
    return OpenRun(page.workbench.runs.open(name))


def open_run(page: Page, event: Event) -> Patch:
    """Open the run at the section, filter and question in the address."""
    query = event.read(RunAddress)
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
    row = run_list.run_row(page.workspace, run.name)
    if part == "config":
        body = html.pre(json.dumps(run.record, ensure_ascii=False, indent=2), "pre code")
    elif part in ("metrics", "cost"):
        body = {"metrics": metrics, "cost": cost}[part](page, run)
    else:
        body = questions_part(page, run, query)
    head = Markup('<div id="run-head">{}</div>').format(heading(page, row, part))
    return panels.view(
        "runs/run", row.title, head, body, kind="wide", more=Markup(" data-problems")
    )


def heading(page: Page, row: RunSummary, part: str) -> Markup:
    when, state = numbers.moment(row.created), _runs_list.STATES.get(row.state, row.state)
    counted = f"{question_count(row).removesuffix(' questions')} questions"
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
    return Markup('{}<div class="row">{}</div>').format(crumb, switch)


def compare_menu(page: Page, row: RunSummary) -> Markup:
    """Draw a menu of the other runs on the same dataset; "" if there are none."""
    question_list = run_list.rows(page.workspace)
    others = [r for r in question_list if r.name != row.name and r.dataset == row.dataset][:30]
    links = Markup()
    for other in others:
        title = html.join_facts(other.title, numbers.moment(other.created))
        links += html.link(title, ComparisonAddress(other.name, row.name).href, "")
    summary = Markup('<summary class="button">Compare with …</summary>')
    return (
        Markup('<details class="menu wide-menu">{}<div>{}</div></details>').format(summary, links)
        if links
        else Markup()
    )


def questions_part(page: Page, run: OpenRun, query: RunAddress) -> Markup:
    """Draw the tiles, the bar, and the list next to one question."""
    job, live_part = page.workbench.jobs.get("run", run.name), Markup()
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
        top(page, run),
        question_list(page, run, query),
        detail(page, run, opened_first(page, run, query)),
    )


def top(page: Page, run: OpenRun) -> Markup:
    """Draw the tiles, the bar of lost questions, and warnings. The bar is computed once its legend is visible."""
    report, going = run.report, run.is_going
    legend = Markup().join(
        Markup("<span>{}</span>").format(text)
        for _, text, _ in _runs_list.lost_stages(page, run.name)
    )
    answers = run_questions.questions(page.workspace, run.folder)
    if answers and not going and not run_questions.stages_known(page.workspace, run.folder):
        legend += reading("runs.stages", run=run.name)
    bar = Markup('{}<div class="legend">{}</div>').format(
        lost_bar(page, run.name, tall=True), legend
    )
    if report is None or going:
        return html.note("The scores appear when the run ends.") + bar
    return tiles(page, run, report) + bar


def question_list(page: Page, run: OpenRun, query: RunAddress) -> Markup:
    only, hint = query.only, "Filter by words"
    data = {"run": run.name, "only": only}
    field = form.filter_field("run-words", query.words, "runs.choose", hint, **data)
    return Markup('<div id="run-chips">{}</div>{}<div id="run-rows">{}</div>').format(
        chips(page, run, only), field, listing(page, run, query)
    )


def chips(page: Page, run: OpenRun, only: str) -> Markup:
    answers = run_questions.questions(page.workspace, run.folder)
    return verdict_chips(answers, only, "runs.choose", run=run.name)


def listing(page: Page, run: OpenRun, query: RunAddress) -> Markup:
    """Draw the windowed list."""
    rows = fitting(page, run, query.only, query.words)
    count = len(run_questions.questions(page.workspace, run.folder))
    if not rows:
        return html.note("No question fits the filter.")
    known = run_questions.stages_known(page.workspace, run.folder)
    key = RunQuestions(run.name, query.only, query.words, f"{count} {known}")
    at = position(rows, opened_first(page, run, query))
    return html.window("run-questions", key, len(rows), "runs.question", at=at, row=48)


def fitting(page: Page, run: OpenRun, only: str, words: str) -> list[QuestionRow]:
    """Return the questions that pass the filter."""
    every = run_questions.questions(page.workspace, run.folder)
    return run_questions.filter_questions(every, only, words)


def opened_first(page: Page, run: OpenRun, query: RunAddress) -> str:
    """Return the question in the address, otherwise the first wrong one in the list, otherwise the first."""
    if query.q or run.is_going:
        return query.q
    rows = fitting(page, run, query.only, query.words)
    wrong = (row.qid for row in rows if row.kind in run_questions.WRONG)
    return next(wrong, rows[0].qid if rows else "")


def question_rows(page: Page, request: RowWindow) -> Rows:
    key = request.read(RunQuestions)
    rows = fitting(page, OpenRun(page.workbench.runs.open(key.run)), key.only, key.words)[
        request.part
    ]
    below = Markup("<b>{}</b><s>gold</s><b>{}</b>")
    return Rows(
        [
            (row.qid, list_row(row, below.format(row.answer[:120] or "–", row.gold[:80])))
            for row in rows
        ]
    )


def detail(page: Page, run: OpenRun, qid: str) -> Markup:
    """Draw a question with its steps; if ``qid`` is '', a hint to choose one."""
    if not qid:
        return html.empty(
            "Choose a question: its steps appear here. J and K move through the list."
        )
    try:
        example, episode = run_questions.open_question(page.workspace, run.folder, qid)
    except RalleError as error:
        return html.problem(error)
    gold, prices, build, steps, spent = (
        example.gold,
        page.workbench.models.prices_of_use(),
        Markup(),
        Markup(),
        "",
    )
    answers = run_questions.questions(page.workspace, run.folder)
    kind = next((row.kind for row in answers if row.qid == qid), "none")
    answer = run_views.answer_text(example, episode)
    if run.has_agent:
        build = html.link("Open in Build", AgentAddress(run=run.name, q=qid).href)
    elif run.chain:
        place = QuestionAddress(set=run.dataset, q=qid, run=run.name).href
        build = html.link("Open in Build", place)
    accepted = (
        Markup("<small>gold</small> <mark>{}</mark>").format(gold.answers[0])
        if gold.answers
        else Markup()
    )
    if episode:
        took = figures.duration(sum(step.seconds for step in episode.steps))
        spent = f"{took} · price {price(episode.steps, prices)}"
        steps = folds(episode.steps, gold, answer=answer)
    record = html.fold("Record of the dataset", html.as_json(dict(example.record)), id="run-record")
    return Markup('<div class="dh"><h3 dir="auto">{}</h3>{}</div>{}{}{}{}').format(
        example.question.text,
        build,
        answer_line(kind, mark_gold(answer, gold.answers), accepted),
        html.note(html.join_facts(qid, spent)),
        steps,
        record,
    )


# actions


def question(page: Page, event: Event) -> Patch:
    try:
        return Patch({"run-question": detail(page, folder(page, event), event.text("id"))})
    except run_list.InBinError:  # another window deleted it
        return open_run(page, event)


def bring_back(page: Page, event: Event) -> Patch:
    page.workbench.runs.restore(event.text("id"))
    return open_run(page, event)


def choose(page: Page, event: Event) -> Patch:
    """Change the filter, which is kept in the address."""
    run = folder(page, event)
    opened = event.read(RunAddress).q
    query = RunAddress(run.name, "", event.text("only"), event.text("words"), opened)
    return Patch({"run-list": question_list(page, run, query)}, address=query.href)


def stages(page: Page, event: Event) -> Patch:
    """Analyse the lost questions; this takes a while for a large run."""
    run = folder(page, event)
    run_questions.read_stages(page.workspace, run.folder)
    return Patch(
        {"run-top": top(page, run), "run-list": question_list(page, run, event.read(RunAddress))}
    )


def live(page: Page, event: Event) -> Patch:
    """Follow a run in progress; rows appear as questions are answered."""
    run, query = folder(page, event), event.read(RunAddress)
    job = page.workbench.jobs.get("run", run.name)
    going = job is not None and not job.done
    patch = Patch(
        {
            "run-head": heading(page, run_list.run_row(page.workspace, run.name), "questions"),
            "run-live": running(page, job) if job is not None and going else Markup(),
            "run-chips": chips(page, run, query.only),
            "run-rows": listing(page, run, query),
            "run-top": top(page, run),
        },
        event=PageEvent("rb-rows", list="run-questions"),
    )
    if not going and not query.q:
        patch |= Patch({"run-question": detail(page, run, opened_first(page, run, query))})
    return patch


def resume(page: Page, event: Event) -> Patch:
    run = folder(page, event)
    page.workbench.runs.start(page.workbench.runs.resume(run.name))
    return Patch(go=RunAddress(run.name).href, say="The run continues.")


def use(page: Page, event: Event) -> Patch:
    """Open the chain of the run in Build."""
    run = folder(page, event)
    return Patch(go=QuestionAddress(set=run.dataset, run=run.name).href)
