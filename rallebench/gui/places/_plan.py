"""The plan of an experiment: runs, questions, calls, time and price, before anything starts."""

from __future__ import annotations

from markupsafe import Markup

from rallebench.core.errors import RalleError
from rallebench.core.forecast import CHANGING, Forecast
from rallebench.core.numbers import plural, plural_noun
from rallebench.gui import forecasts, html, jobs
from rallebench.gui.events import Event
from rallebench.gui.frame import Page
from rallebench.gui.html import attributes, warning
from rallebench.gui.jobs import doing_now
from rallebench.gui.places._design import (
    design_request,
)
from rallebench.gui.wording import on_page
from rallebench.render.experiments import span
from rallebench.render.numbers import text, time_range
from rallebench.services.experiment_jobs import PILOT
from rallebench.services.jobs import Job
from rallebench.views.experiment_design import Design, command

NOUNS = {"sweep": "variant", "tradeoff": "measurement", "batch": "chain", "baselines": "baseline"}


MOST_NOTES = 4


FORM = "#x-form"
"""The form of the steps, which the plan's buttons send."""


def plan(page: Page, event: Event, design: Design) -> Markup:
    """Draw the plan, or explain why there is none yet."""
    try:
        request = design_request(page, event, design)
        value = page.workbench.forecasts.forecast(request, design.repeat_options.number)
    except RalleError as error:
        run = html.button("Run", "experiments.run", kind="primary", disabled=True)
        return Markup('<h2 class="part">Plan</h2><p class="x-lacks" role="status">{}</p>{}').format(
            on_page(error), run
        )
    pilot = page.workbench.jobs.get(PILOT, request.name)
    words = command(request, design.max_usd, design.repeats)
    shell = Markup('<p class="pre">{}</p>').format(words)
    shell = html.fold("The same on the command line", shell, id="x-command") if words else Markup()
    return _draw_steps(design, value, request.name, pilot) + shell


def _draw_steps(design: Design, value: Forecast, name: str, pilot: Job | None) -> Markup:
    noun = NOUNS.get(design.kind, "run")
    verb = "Start" if noun == "run" else "Run"
    if 0 < value.open < value.questions:
        verb = "Continue"
    notes, runs = list(map(warning, value.notes)), value.runs
    warned, more = Markup().join(notes[:MOST_NOTES]), notes[MOST_NOTES:]
    if more:
        warned += html.fold(f"{len(more)} more notes", Markup().join(more))
    listing = Markup()
    for run in runs:
        left = f", {run.open:,} left" if run.open != run.questions else ""
        listing += Markup("<li>{}<small>{:,} questions{}</small></li>").format(
            run.label, run.questions, left
        )
    if listing:
        listing = Markup('<ul class="x-list">{}</ul>').format(listing)
        listing = html.fold(plural(len(runs), "run"), listing, id="x-runs")
    label = f"{verb} {plural(value.count, noun)}" if value.count else "Run"
    run_button = html.button(label, "experiments.run", kind="primary", with_=FORM)
    measured = value.basis.endswith("asked")
    measure = estimating(pilot, measured=measured) if value.open and runs else Markup()
    follow = attributes(follow=f"{PILOT} {name}", do="experiments.show_plan", name=name)
    return Markup(
        '<h2 class="part" data-on="none"{}>Plan <small id="x-counting" role="status"></small></h2>'
        '<div class="x-big">{}</div>{}{}{}<div id="x-estimate">{}</div>{}'
    ).format(
        follow,
        _big(value, noun),
        html.bullets(facts(value), "x-list"),
        warned,
        listing,
        measure,
        run_button,
    )


def _big(value: Forecast, noun: str) -> Markup:
    duration, about = "–", f"{forecasts.UNKNOWN}: no run of all of them yet"
    if value.questions and not value.open:
        duration, about = "0 s", "all answered"
    elif value.cached and value.cached == value.generations.high:
        duration, about = forecasts.CACHED, "from the cache"
    elif value.seconds is not None:
        duration, about = forecasts.time_words(value.seconds), value.basis
    elif value.builds:
        about = f"{forecasts.UNKNOWN} before the indexes are built"
    price, of = "none", "local model"
    if value.usd is None:
        price, of = "unknown", "not measured yet or no price is set"
    elif value.usd:
        price, of = text(value.usd, "usd"), "price"
    left = "questions"
    if value.open != value.questions:
        left = f"of {plural(value.questions, 'question')} left"
    runs = noun if value.count == 1 else plural_noun(noun)
    cells = [(f"{value.count:,}", runs), (f"{value.open:,}", left), (duration, about), (price, of)]
    if not value.questions:  # there is nothing to report without questions
        cells.pop(1)
    return Markup().join(
        Markup("<div><b>{}</b><span>{}</span></div>").format(figure, words)
        for figure, words in cells
    )


def facts(value: Forecast) -> list[str]:
    """Describe the calls, cache hits, indexes and smallest detectable difference in sentences."""
    lines = []
    if value.questions and not value.open:
        lines.append("Every question is answered already, so this costs nothing.")
    if calls_to_models := value.generations.high or value.generations.low:
        calls = "call" if calls_to_models == 1 else "calls"
        calls = f"{span(value.generations)} {calls} to models"
        if value.cached:
            known = "all" if value.cached == value.generations.high else f"{value.cached:,} of them"
            calls += f", {known} from the cache,"
        count = value.retrievals.high or value.retrievals.low
        searches = f"{span(value.retrievals)} {'search' if count == 1 else 'searches'}"
        lines.append(f"{calls} and {searches}.")
    if value.builds and (took := value.building):
        count = len(value.builds)
        each = "an index" if count == 1 else plural(count, "index")
        lines.append(f"Building {each} takes {time_range(*took[1:])}.")
    if value.smallest and value.smallest < 1:
        questions = max(run.questions for run in value.runs)
        sentence = f"{plural(questions, 'question')} show a difference of about {100 * value.smallest:.1f} points or more"
        share = f"{100 * CHANGING:.0f} % of the answers change"
        few = (
            value.smallest > CHANGING
        )  # more answers than assumed must change, all in one direction
        lines.append(f"{sentence}, if {'every change is for the better' if few else share}.")
    return lines


def estimating(pilot: Job | None, *, measured: bool = False) -> Markup:
    """Draw the button that measures costs, or the progress of the measurement."""
    if pilot is not None and not pilot.done:
        news = doing_now(pilot) or "beginning"
        return jobs.going(pilot, f"Asking 3 questions of each run · {news}")
    label = "Estimate again" if measured else "Estimate the cost"
    title = "Asks 3 questions of each run; their answers are kept"
    return jobs.going(pilot) + html.button(label, "experiments.estimate", title=title, with_=FORM)
