"""The plan of a new experiment: what it will run, take and cost, and the only button that starts it."""

from __future__ import annotations

from rallebench.core.errors import RalleError
from rallebench.core.events import Progress
from rallebench.gui import html
from rallebench.gui.frame import Event, Page
from rallebench.gui.html import attributes, e, warning
from rallebench.gui.jobs import stop_button
from rallebench.gui.places._design import request_of
from rallebench.render.experiments import span
from rallebench.render.numbers import plural, text
from rallebench.services.experiment_design import Design, command
from rallebench.services.experiment_jobs import PILOT
from rallebench.services.forecasts import CHANGING, Forecast, forecast
from rallebench.services.jobs import Job

NOUNS = {"sweep": "variant", "tradeoff": "measurement", "batch": "chain", "baselines": "baseline"}
MOST_NOTES = 4
FORM = {"with": "#x-form"}
"""Buttons of the plan send the steps."""


def plan(page: Page, event: Event, design: Design) -> str:
    """The plan, or the sentence about what is missing for one."""
    try:
        request = request_of(page, event, design)
        value = forecast(page.workbench, request)
    except RalleError as error:
        run = html.button("Run", "experiments.run", kind="primary", disabled=True)
        return f'<h3>Plan</h3><p class="x-lacks" role="status">{e(error)}</p>{run}'
    pilot = page.workbench.jobs.get(PILOT, request.name)
    words = command(request)
    shell = f'<p class="pre">{e(words)}</p>'
    shell = html.fold("The same on the command line", shell, id="x-command") if words else ""
    return _drawn(design, value, request.name, pilot) + shell


def _drawn(design: Design, value: Forecast, name: str, pilot: Job | None) -> str:
    noun = NOUNS.get(design.kind, "run")
    verb = "Start" if noun == "run" else "Run"
    if 0 < value.left < value.questions:
        verb = "Continue"
    notes, runs = list(map(warning, value.notes)), value.plan.runs
    warned, more = "".join(notes[:MOST_NOTES]), notes[MOST_NOTES:]
    if more:
        warned += html.fold(f"{len(more)} more notes", "".join(more))
    listing = ""
    for run in runs:
        left = f", {run.left:,} left" if run.left != run.questions else ""
        listing += f"<li>{e(run.label)}<small>{run.questions:,} questions{left}</small></li>"
    if listing:
        listing = f'<ul class="x-list">{listing}</ul>'
        listing = html.fold(plural(len(runs), "run"), listing, id="x-runs")
    label = f"{verb} {plural(value.runs, noun)}" if value.runs else "Run"
    run_button = html.button(label, "experiments.run", kind="primary", **FORM)
    measured = value.basis.endswith("asked")
    measure = estimating(pilot, measured=measured) if value.left and runs else ""
    follow = attributes(follow=f"{PILOT} {name}", do="experiments.show_plan", name=name)
    return (
        f'<h3 data-on="none"{follow}>Plan <small id="x-counting" role="status"></small></h3><div class="x-big">{_big(value, noun)}</div>'
        f'{html.bullets(facts(value), "x-list")}{warned}{listing}<div id="x-estimate">{measure}</div>{run_button}'
    )


def _big(value: Forecast, noun: str) -> str:
    duration, about = "–", "time not known yet"
    if value.questions and not value.left:
        duration, about = "0 s", "all answered"
    elif value.cached and value.cached == value.generations[1]:
        duration, about = "a few s", "from the cache"
    elif value.seconds is not None:
        expected, low, high = value.seconds
        duration = f"{expected / 60:.0f} min" if expected >= 90 else f"{max(expected, 0):.0f} s"
        half = (high - low) / 2 if low is not None and high is not None else 0.0
        about = f"± {half / 60:.0f}, {value.basis}" if half >= 60 else value.basis
    price, of = "none", "local model"
    if value.usd is None:
        price, of = "unknown", "price is not set"
    elif value.usd:
        price, of = text(value.usd, "usd"), "price"
    left = "questions"
    if value.left != value.questions:
        left = f"of {value.questions:,} questions left"
    runs = f"{noun}{'s' * (value.runs != 1)}"
    cells = [(f"{value.runs:,}", runs), (f"{value.left:,}", left), (duration, about), (price, of)]
    if not value.questions:  # what counts no questions says nothing of them
        cells.pop(1)
    return "".join(
        f"<div><b>{e(figure)}</b><span>{e(words)}</span></div>" for figure, words in cells
    )


def facts(value: Forecast) -> list[str]:
    """Calls, the cache, indexes, and what the questions can show, in sentences."""
    lines = []
    if value.questions and not value.left:
        lines.append("Every question is answered already, so this costs nothing.")
    if value.generations[0] or value.generations[1]:
        (low, high), (least, most) = value.generations, value.retrievals
        calls = f"{span({'low': low, 'high': high})} call{'s' * ((high or low) != 1)} to models"
        if value.cached:
            known = "all" if value.cached == high else f"{value.cached:,} of them"
            calls += f", {known} from the cache,"
        searches = f"{span({'low': least, 'high': most})} search{'es' * ((most or least) != 1)}"
        lines.append(f"{calls} and {searches}.")
    if value.smallest and value.smallest < 1:
        each = max(run.questions for run in value.plan.runs)
        shown = f"{each:,} questions show a difference of about {100 * value.smallest:.1f} points or more"
        lines.append(f"{shown}, if {100 * CHANGING:.0f} % of the answers change.")
    return lines


def estimating(pilot: Job | None, *, measured: bool = False) -> str:
    """The button that measures, or how far that is."""
    if pilot is not None and not pilot.done:
        newest, words = pilot.newest, "beginning"
        if isinstance(newest, Progress):
            words = f"{newest.task}: {newest.message or newest.done}"
        words = f"Asking 3 questions of each run · {words}"
        return f'<p class="note" role="status">{e(words)} {stop_button(pilot)}</p>'
    failed = ""
    if pilot is not None and pilot.error is not None:
        failed = f'<p class="x-failed">{e(pilot.error)}</p>'
    label = "Estimate again" if measured else "Estimate the cost"
    title = "Asks 3 questions of each run; their answers are kept"
    return failed + html.button(label, "experiments.estimate", title=title, **FORM)
