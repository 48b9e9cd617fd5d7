"""Suites: choose a named benchmark, see what it will run and cost, run it, follow it, read and compare what came out."""

from __future__ import annotations

from functools import partial
from typing import Any

import gradio as gr

from rallebench.core.errors import RalleError
from rallebench.core.events import Progress
from rallebench.core.runs import RunOptions
from rallebench.engine import estimate, pilot, plan
from rallebench.engine.driver import ExperimentResult
from rallebench.engine.estimate import CostEstimate
from rallebench.engine.experiment_store import run_name
from rallebench.experiments import SUITES
from rallebench.gui import views, views_suites
from rallebench.gui.session import Session, guard
from rallebench.gui.tabs import TABS
from rallebench.gui.tabs import _suites_results as results
from rallebench.gui.tabs._suites_form import (
    Request,
    SuiteForm,
    about_of,
    draw_settings,
    first_suite,
    offers,
    request_of,
    shown,
)
from rallebench.gui.tabs.sweep import number_of
from rallebench.gui.wording import on_page
from rallebench.gui.works import Works
from rallebench.services.workbench import Workbench
from rallebench.workspace.paths import READER

NOTHING = "No suite runs. Press Run suite: every part becomes a run of its own, and the tables appear below."
TO_PROGRESS = "() => document.getElementById('suites-progress').scrollIntoView({ behavior: 'smooth', block: 'center' })"
"""Whoever presses Run sees what follows from it."""
NO_PLAN = "See what it would run, or have a few questions of each part answered to see what it would cost."


@TABS.register("suites", order=9, label="Suites")
def build(workbench: Workbench, session: Session, tab: gr.Tab, page: gr.Blocks) -> None:
    """Ask, plan, run, watch, read."""
    works, probes = (
        Works(workbench.jobs, "suite"),
        Works(workbench.jobs, "probe"),
    )
    first = first_suite()
    suite, llm, limit, name = draw_request(workbench, first)
    about = gr.HTML(about_of(first), elem_id="suites-about", elem_classes="rb-flush")
    form = draw_settings(workbench, first)
    plan, measure, count, start, stop, track = draw_buttons()
    said = gr.HTML(elem_id="suites-status", elem_classes="rb-flush")
    panel = gr.HTML(views.empty(NOTHING), elem_id="suites-progress", elem_classes="rb-flush")
    planned = gr.HTML(views.empty(NO_PLAN), elem_id="suites-planned", elem_classes="rb-flush")
    chosen = results.draw(workbench, session, tab, form, [suite, llm, limit, name])
    asked, seen, probed = [suite, llm, limit, name, *form.inputs], gr.State(""), gr.State("")

    suite.change(
        partial(guard, on_suite, workbench, form),
        [suite],
        [said, about, *form.inputs],
        show_progress="hidden",
    )
    plan.click(
        partial(guard, on_plan, workbench, form), asked, [said, planned], show_progress_on=[planned]
    )
    measure.click(
        partial(guard, on_measure, workbench, form, probes),
        [count, *asked],
        [said, planned],
        show_progress_on=[planned],
    )
    started = start.click(
        partial(guard, on_start, workbench, form, works),
        [track, *asked],
        [said, panel],
        show_progress_on=[panel],
    )
    started.then(None, None, None, js=TO_PROGRESS)
    stop.click(
        partial(guard, on_stop, workbench, works, probes), None, [said], show_progress="hidden"
    )
    timer = gr.Timer(1.5)
    timer.tick(
        partial(guard, on_tick, workbench, works),
        [seen, chosen],
        [seen, panel, chosen],
        show_progress="hidden",
    )
    timer.tick(
        partial(guard, on_probe_tick, probes), [probed], [probed, planned], show_progress="hidden"
    )
    tab.select(
        partial(guard, on_offers, workbench, form),
        [llm],
        [llm, *form.inputs],
        show_progress="hidden",
    )


def draw_request(workbench: Workbench, first: str | None) -> list[Any]:
    """Which suite, with which model, over how many questions, under which name."""
    with gr.Row(equal_height=True):
        return [
            gr.Dropdown(
                list(SUITES.names()),
                value=first,
                label="Suite",
                allow_custom_value=True,
                elem_id="suites-suite",
                scale=3,
            ),
            gr.Dropdown(
                list(workbench.workspace.llms()),
                value=None,
                label="Language model",
                allow_custom_value=True,
                elem_id="suites-llm",
                scale=3,
            ),
            gr.Textbox(
                label="Number of questions",
                placeholder="all",
                max_lines=1,
                elem_id="suites-limit",
                scale=2,
                min_width=130,
            ),
            gr.Textbox(
                label="Name",
                placeholder="made for you; the same name goes on",
                max_lines=1,
                elem_id="suites-name",
                scale=4,
            ),
        ]


def draw_buttons() -> list[Any]:
    """Plan, probe, run, stop, and whether MLflow is told."""
    with gr.Row(elem_classes="rb-tools"):
        return [
            gr.Button("What will it run?", elem_id="suites-plan", scale=1, min_width=160),
            gr.Button("What will it cost?", elem_id="suites-measure", scale=1, min_width=160),
            gr.Number(
                pilot.QUESTIONS,
                label="Questions to try",
                elem_id="suites-probe",
                scale=1,
                min_width=150,
            ),
            gr.Button("Run suite", variant="primary", elem_id="suites-run", scale=2),
            gr.Button("Stop", elem_id="suites-stop", scale=1, min_width=90),
            gr.Checkbox(
                True,
                label="Log to MLflow",
                elem_id="suites-track",
                scale=1,
                min_width=190,
                container=False,
            ),
        ]


# what is asked


def on_suite(workbench: Workbench, form: SuiteForm, suite: str | None) -> list[Any]:
    """Show what the suite is and its own settings; what was wrong with the one before goes."""
    return ["", about_of(suite), *shown(workbench, form, suite)]


def on_offers(workbench: Workbench, form: SuiteForm, llm: str | None) -> list[Any]:
    """The models, indexes and encoders that there are now; a model where none was chosen yet."""
    names = list(workbench.workspace.llms())
    chosen = {} if llm else {"value": first_llm(workbench)}
    return [
        gr.update(choices=names, **chosen),
        *[gr.update(**one) if one else gr.skip() for one in offers(workbench, form)],
    ]


def first_llm(workbench: Workbench) -> str | None:
    """The model that was loaded last, else the built-in reader."""
    models = workbench.workspace.llms()
    loaded = [row.name for row in workbench.models.status() if row.name in models]
    return (
        loaded[-1]
        if loaded
        else next((name for name, entry in models.items() if entry.backend == READER), None)
    )


def on_plan(
    workbench: Workbench, form: SuiteForm, suite: str, llm: str, limit: str, name: str, *values: Any
) -> list[str]:
    """What would be run."""
    try:
        request = request_of(workbench, form, suite, llm, limit, name, values)
        found = workbench.experiments.plan(request.asked)
    except RalleError as error:
        return [views.error(sentence(error)), views.empty(NO_PLAN)]
    return ["", views_suites.plan(plan.as_json(found)) + command(workbench, request)]


def on_measure(
    workbench: Workbench,
    form: SuiteForm,
    probes: Works,
    count: float | None,
    suite: str,
    llm: str,
    limit: str,
    name: str,
    *values: Any,
) -> list[str]:
    """Have some questions of every part answered in the background; the plan and what it costs appear when they are."""
    try:
        many = number_of(f"{count:g}" if count is not None else "") or pilot.QUESTIONS
        request = request_of(workbench, form, suite, llm, limit, name, values)
        found = workbench.experiments.plan(request.asked)
        work = workbench.experiments.pilot(found, request.asked, questions=many)
        next(probes.follow(request.name, (repr(request.changed), many), lambda: work), None)
    except RalleError as error:
        return [views.error(sentence(error)), views.empty(NO_PLAN)]
    return ["", probe_panel(probes) or views.empty(NO_PLAN)]


def on_start(
    workbench: Workbench,
    form: SuiteForm,
    works: Works,
    track: bool,
    suite: str,
    llm: str,
    limit: str,
    name: str,
    *values: Any,
) -> list[str]:
    """Run the suite in the background; the panel follows it."""
    request = None
    try:
        request = request_of(workbench, form, suite, llm, limit, name, values)
        work = workbench.experiments.run(request.asked, RunOptions(track=bool(track)))
        what = (request.suite, repr(request.asked.settings), request.asked.llm, request.asked.limit)
        next(works.follow(request.name, what, lambda: work), None)
    except RalleError as error:
        if request is not None and request.name not in works.going_on():
            works.forget(request.name)  # told here, where it was asked for
        return [views.error(sentence(error)), panel_of(workbench, works)]
    return ["", panel_of(workbench, works)]


def sentence(error: RalleError) -> str:
    """An error in the words of the page, which has no flags."""
    return on_page(str(error))


def command(workbench: Workbench, request: Request) -> str:
    """The command line that runs the same."""
    asked = request.asked
    return views_suites.command(
        request.suite,
        asked.llm,
        request.changed,
        asked.limit,
        request.name,
        str(workbench.workspace.path),
    )


# what goes on


def panel_of(workbench: Workbench, works: Works) -> str:
    """Suites that go on, and how the last ones ended."""
    stopping = works.stopping()
    shown_now = [
        views_suites.going_on(
            name, works.said(name), state_of(workbench, name, works.said(name)), name in stopping
        )
        for name in works.going_on()
    ]
    shown_now += [views_suites.ended(name, end) for name, end in reversed(works.ended().items())][
        :3
    ]
    return "".join(shown_now) or views.empty(NOTHING)


def state_of(workbench: Workbench, name: str, pieces: list[Any]) -> dict[str, Any]:
    """Where the run of the part that is worked on stands: done, total, rate; {} before there is one."""
    now = next(
        (piece for piece in reversed(pieces) if isinstance(piece, Progress) and piece.total), None
    )
    if now is None:
        return {}
    try:
        return workbench.runs.open(run_name(name, now.task)).state()
    except RalleError:
        return {}


def on_stop(workbench: Workbench, works: Works, probes: Works) -> str:
    """Stop after what is being answered; what was answered is kept."""
    if not works.going_on() and not probes.going_on():
        return views.note("No suite runs and no probe goes on, so there is nothing to stop.")
    for name in works.going_on():
        now = next(
            (piece for piece in reversed(works.said(name)) if isinstance(piece, Progress)), None
        )
        if now is not None:
            workbench.runs.stop(run_name(name, now.task))
    works.stop()
    probes.stop()
    return views.note(
        "Stopping after what is being answered. Run it again under its name to go on."
    )


def mark_of(works: Works) -> str:
    """Changes whenever work has ended."""
    return " ".join(f"{name} {id(end)}" for name, end in works.ended().items())


def on_tick(workbench: Workbench, works: Works, seen: str, chosen: str | None) -> list[Any]:
    """Follow what goes on, also for a page opened later; a suite that has just ended is opened."""
    mark = mark_of(works)
    if mark == seen and not works.going_on():
        return [gr.skip()] * 3
    done = [name for name, end in works.ended().items() if isinstance(end, ExperimentResult)]
    opens = gr.skip()
    if mark != seen and done:
        opens = gr.update(choices=workbench.experiments.suites(), value=done[-1])
    return [mark, panel_of(workbench, works), opens]


def on_probe_tick(probes: Works, seen: str) -> list[Any]:
    """Follow a probe; what it found is shown once."""
    mark = mark_of(probes)
    if mark == seen and not probes.going_on():
        return [gr.skip()] * 2
    return [mark, probe_panel(probes) or gr.skip()]


def probe_panel(probes: Works) -> str:
    """The probes that go on, or how the last one ended."""
    stopping = probes.stopping()
    going = "".join(
        views_suites.probing(name, said, name in stopping)
        for name, said in probes.going_on().items()
    )
    if going or not probes.ended():
        return going
    name, end = next(reversed(probes.ended().items()))
    if isinstance(end, CostEstimate):
        return views_suites.plan({**plan.as_json(end.plan), "probe": estimate.as_json(end)})
    return views_suites.probe_failed(name, end)
