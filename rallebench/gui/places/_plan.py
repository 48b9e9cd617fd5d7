"""The plan of a new experiment: what it will run, take and cost, and the only button that starts it."""

from __future__ import annotations

import re

from rallebench.core.errors import RalleError
from rallebench.core.events import Progress
from rallebench.core.experiments import ExperimentRequest
from rallebench.gui.frame import Event, Page
from rallebench.gui.html import attributes, button, e, fold, warning
from rallebench.gui.places._design import request_of
from rallebench.gui.wording import on_page
from rallebench.render.numbers import text
from rallebench.services.experiment_design import Design, command
from rallebench.services.experiment_jobs import PILOT
from rallebench.services.forecasts import CHANGING, Forecast, forecast
from rallebench.services.jobs import Job

NOUNS = {"sweep": "variant", "tradeoff": "measurement", "batch": "chain", "baselines": "baseline"}
MOST_NOTES = 4


def plan(page: Page, event: Event, design: Design) -> str:
    """The plan, or the sentence about what is missing for one."""
    try:
        request = request_of(page, event, design)
        value = forecast(page.workbench, request)
    except RalleError as error:
        run = button("Run", "experiments.run", kind="primary", disabled=True)
        return (
            f'<h3>Plan</h3><p class="x-lacks" role="status">{e(_fields(on_page(error)))}</p>{run}'
        )
    pilot = page.workbench.jobs.get(PILOT, request.name)
    return _drawn(design, value, request.name, pilot) + _command(request)


def _drawn(design: Design, value: Forecast, name: str, pilot: Job | None) -> str:
    noun = NOUNS.get(design.kind, "run")
    verb = "Continue" if 0 < value.left < value.questions else "Run"
    lines = "".join(f"<li>{e(line)}</li>" for line in facts(value) if line)
    notes = [on_page(note) for note in value.notes]
    warned = "".join(map(warning, notes[:MOST_NOTES]))
    if len(notes) > MOST_NOTES:
        more = "".join(map(warning, notes[MOST_NOTES:]))
        warned += f'<details class="fold"><summary>{len(notes) - MOST_NOTES} more notes</summary><div>{more}</div></details>'
    follow = attributes(follow=f"{PILOT} {name}", do="experiments.plan", name=name)
    names = "".join(
        f"<li>{e(run.label)}<small>{run.questions:,} questions{f', {run.left:,} left' if run.left != run.questions else ''}</small></li>"
        for run in value.plan.runs
    )
    listing = (
        f'<details class="fold" id="x-runs"><summary>{_counted(len(value.plan.runs), "run")}</summary><ul class="x-list">{names}</ul></details>'
        if names
        else ""
    )
    run = button(
        f"{verb} {_counted(value.runs, noun)}" if value.runs else "Run",
        "experiments.run",
        kind="primary",
        **{"with": "#x-form"},
    )
    return (
        f'<h3 data-on="none"{follow}>Plan <small id="x-counting" role="status"></small></h3><div class="x-big">{_big(value, noun)}</div><ul class="x-list">{lines}</ul>{warned}{listing}'
        f'<div id="x-estimate">{estimate(pilot, measured=value.basis.endswith("asked")) if value.left and value.plan.runs else ""}</div>{run}'
    )


def _command(request: ExperimentRequest) -> str:
    words = command(request)
    inside = f'<p class="pre">{e(words)}</p>'
    return fold("The same on the command line", inside, id="x-command") if words else ""


def _big(value: Forecast, noun: str) -> str:
    """Runs, questions, minutes, price."""
    if value.seconds is None:
        duration, about = "–", "time not known yet"
    else:
        expected, low, high = value.seconds
        duration = f"{expected / 60:.0f} min" if expected >= 90 else f"{max(expected, 0):.0f} s"
        half = (high - low) / 2 if low is not None and high is not None else 0.0
        margin = f"± {half / 60:.0f}, " if half >= 60 else ""
        about = f"{margin}{value.basis}"
    price = "unknown" if value.usd is None else text(value.usd, "usd") if value.usd else "none"
    of = "price is not set" if value.usd is None else "price" if value.usd else "local model"
    cells = (
        (f"{value.runs:,}", f"{noun}{'s' * (value.runs != 1)}"),
        (
            f"{value.left:,}",
            "questions"
            if value.left == value.questions
            else f"of {value.questions:,} questions left",
        ),
        (duration, about),
        (price, of),
    )
    return "".join(
        f"<div><b>{e(number)}</b><span>{e(words)}</span></div>" for number, words in cells
    )


def facts(value: Forecast) -> list[str]:
    """Calls, the cache, indexes, and what the questions can show, in sentences."""
    lines = []
    if value.generations[0] or value.generations[1]:
        lines.append(
            f"{_span(value.generations, 'call')} to models, {_span(value.retrievals, 'search', 'searches')}."
        )
    if value.cached:
        are = "is" if value.cached == 1 else "are"
        lines.append(f"{_counted(value.cached, 'answer')} {are} in the cache and cost nothing.")
    if value.smallest and value.smallest < 1:
        each = max(run.questions for run in value.plan.runs)
        lines.append(
            f"{each:,} questions show a difference of about {100 * value.smallest:.1f} points or more, if {CHANGING:.0%} of the answers change.".replace(
                "%", " %"
            )
        )
    return lines


def estimate(pilot: Job | None, *, measured: bool = False) -> str:
    """The button that measures, or how far that is."""
    if pilot is not None and not pilot.done:
        newest = pilot.newest
        words = (
            f"{newest.task}: {newest.message or newest.done}"
            if isinstance(newest, Progress)
            else "beginning"
        )
        stop = button("Stop", "jobs.stop", kind="quiet", id=pilot.id)
        return (
            f'<p class="note" role="status">Asking 3 questions of each run · {e(words)} {stop}</p>'
        )
    failed = ""
    if pilot is not None and pilot.error is not None:
        failed = f'<p class="x-failed">{e(on_page(pilot.error))}</p>'
    return failed + button(
        "Estimate again" if measured else "Estimate the cost",
        "experiments.estimate",
        title="Asks 3 questions of each run; their answers are kept",
        **{"with": "#x-form"},
    )


def _fields(sentence: str) -> str:
    """A sentence in which ``data=PATH`` is a field.

    >>> _fields("give the folder, with data=PATH.")
    'give the folder in the field Data.'
    """
    return re.sub(
        r"(,? with )?\b([a-z_]+)=(\w+)",
        lambda m: (
            f"{' in ' if m[1] else ''}the field {m[2].capitalize()}"
            f"{'' if m[3].isupper() else f' ({m[3]})'}"
        ),
        sentence,
    )


def _counted(number: int, noun: str, plural: str = "") -> str:
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def _span(span: tuple[int, int | None], noun: str, plural: str = "") -> str:
    low, high = span
    if high is None:
        return f"at least {_counted(low, noun, plural)}"
    return (
        _counted(low, noun, plural) if low == high else f"{low:,} to {_counted(high, noun, plural)}"
    )
