"""Experiments: cards, three steps and a plan; running experiments; and finished ones as groups of runs with winners."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from markupsafe import Markup

from rallebench.core.errors import UsageError
from rallebench.core.runs import DEFAULT_OPTIONS, RunOptions
from rallebench.gui import figures, form, html, jobs, lists, panels
from rallebench.gui.addresses import ExperimentAddress, ExperimentsAddress
from rallebench.gui.events import Event
from rallebench.gui.frame import PLACES, Page
from rallebench.gui.html import escape
from rallebench.gui.jobs import progress_words
from rallebench.gui.lists import ListState, ListView
from rallebench.gui.patches import Patch
from rallebench.gui.places import _experiment, _published
from rallebench.gui.places._design import (
    KINDS,
    cards,
    design_request,
    read,
    steps,
    varied_chain,
    window_design,
)
from rallebench.gui.places._plan import estimating, plan
from rallebench.render.numbers import moment
from rallebench.services import experiment_jobs
from rallebench.services.experiments import WorkspaceRequest
from rallebench.views import designs, experiment_design
from rallebench.views import experiment_groups as groups
from rallebench.views.experiment_design import Design
from rallebench.views.experiment_groups import ExperimentRow


@PLACES.register("experiments", label="Experiments", order=3)
def experiments(page: Page) -> None:
    """Prove which setting is better."""
    page.view("experiments/list", open_list)
    page.actions("experiments", change, show_plan, add_field, drop_field, reads=True)
    page.actions("experiments", ask_prompt, add_prompt, choose_paper, again, news, reads=True)
    page.actions("experiments", run, estimate, resume)
    DONE.register(page)
    for part in (_experiment, _published):
        part.register(page)


@dataclass(frozen=True)
class Drawn:
    """The parts that a window shows. ``shape``: the fields of the steps; ``ended``: the finished experiments."""

    shape: str = ""
    ended: str = ""


def open_list(page: Page, event: Event) -> Iterator[Patch]:
    """Open the page with its steps, then the plan once it is computed."""
    design, query = window_design(page, event), event.read(ExperimentsAddress)
    if query.kind:
        design.kind = query.kind if query.kind in KINDS else "sweep"
    if query.paper:
        design.suite = designs.first_suite(query.paper)
    if query.run:
        design.kind, design.run = "baselines", query.run
    if not design.llm and design.kind == "suite":
        design.llm = page.workbench.model_lines.first_model()
    head = Markup('<div class="row"><h1>Experiments</h1><span class="gap"></span>{}</div>').format(
        html.link("Papers", "#/experiments/published", "button")
    )
    parts = (
        head,
        Markup('<div id="x-cards">{}</div>').format(cards(design.kind)),
        new_experiment(steps(page, event, design)),
        Markup('<div id="x-running"{}>{}</div>').format(
            html.attributes(follow="*", do="experiments.news", on="none"), running(page)
        ),
        Markup(
            '<div>{}<div id="experiments-toolbar">{}</div><div id="x-done">{}</div></div>'
        ).format(
            html.heading("Done"),
            lists.toolbar(DONE, page, DONE.state(event)),
            finished_groups(page, event),
        ),
    )
    yield panels.view("experiments/list", "Experiments", *parts, kind="wide")
    event.session.put(Drawn(design.shape, _ended_note(page)))
    yield Patch({"x-plan": plan(page, event, design)})


def new_experiment(fields: Markup) -> Markup:
    """Draw the steps next to their plan."""
    return Markup(
        '<div class="x-new"><div id="x-form" data-form data-run{}>{}</div><aside class="box x-plan" aria-label="Plan" data-problems>'
        '<div id="x-plan"><h2 class="part">Plan</h2>{}</div></aside></div>'
    ).format(form.on_edit("experiments.change"), fields, html.note("Counting …"))


# the design


def change(page: Page, event: Event) -> Iterator[Patch]:
    """Redraw the steps whose fields changed, and the plan."""
    yield from redrawn(page, event, read(page, event))


def redrawn(page: Page, event: Event, design: Design) -> Iterator[Patch]:
    """Redraw the steps if their fields changed, then the plan."""
    if (drawn := event.session.state(Drawn)).shape != design.shape:
        event.session.put(replace(drawn, shape=design.shape))
        yield Patch({"x-form": steps(page, event, design)})
    yield Patch({"x-counting": "counting …"})
    yield Patch({"x-plan": plan(page, event, design)})


def show_plan(page: Page, event: Event) -> Patch:
    """Follow a cost estimate: its progress, then the plan."""
    pilot = page.workbench.jobs.get(experiment_jobs.PILOT, event.text("name"))
    if pilot is not None and not pilot.done:
        return Patch({"x-estimate": estimating(pilot)})
    return Patch({"x-plan": plan(page, event, window_design(page, event))})


def add_field(page: Page, event: Event) -> Iterator[Patch]:
    """Add a varied field. Its first values are the chain's own and the next one."""
    design = read(page, event)
    known = designs.variables(page.workspace, varied_chain(page, event, design))
    variable = known.get(event.text("field"))
    if variable is not None and variable.name not in design.vary:
        values = [variable.current, *(value for value, _ in variable.choices)]
        design.vary[variable.name] = list(dict.fromkeys(filter(None, values)))[:2]
    yield from redrawn(page, event, design)


def drop_field(page: Page, event: Event) -> Iterator[Patch]:
    design = read(page, event)
    design.vary.pop(event.text("field"), None)
    yield from redrawn(page, event, design)


def ask_prompt(page: Page, event: Event) -> Patch:
    """Open a dialog for a new prompt, starting from the chain's prompt."""
    design, name = window_design(page, event), event.text("field")
    number, actions = name.partition(".")[0], varied_chain(page, event, design).actions
    if number not in map(str, range(1, len(actions) + 1)):
        raise UsageError("The chain has no such action any more; reload the page.")
    template = actions[int(number) - 1].template
    fields = form.text(
        "title", "Name", f"prompt {len(design.prompts) + 2}", more=Markup(' maxlength="40"')
    )
    fields += form.area("template", "Prompt", template, 10, Markup(' class="mono"'))
    do = "experiments.add_prompt"
    return panels.ask("Write a prompt", fields, "Add the prompt", do, field=name)


def add_prompt(page: Page, event: Event) -> Iterator[Patch]:
    design, name, title = window_design(page, event), event.text("field"), event.text("title")
    if not title or title in design.prompts:
        raise UsageError("Give the prompt a name that no other prompt has.")
    if not event.text("template"):
        raise UsageError("The prompt is empty; write one.")
    design.prompts[title] = event.raw_text("template")
    design.vary.setdefault(name, []).append(title)
    event.session.put(replace(event.session.state(Drawn), shape=""))
    yield Patch(dialog="")
    yield from redrawn(page, event, design)


def choose_paper(page: Page, event: Event) -> Iterator[Patch]:
    """Choose another paper, with its first benchmark."""
    design = read(page, event)
    design.suite = designs.first_suite(event.text("paper"))
    yield from redrawn(page, event, design)


# running


def run(page: Page, event: Event) -> Patch:
    """Start the experiment, which continues if the page is closed."""
    design = read(page, event)
    request = design_request(page, event, design)
    budget = form.read_spending_limit(event)
    logged = design.track and request.kind != "tradeoff"
    _start(page, request, RunOptions(track=logged, budget=budget, repeats=design.repeat_options))
    design.auto = Design().auto
    say = f"{request.name} is running. It continues if you leave this page."
    return Patch({"x-running": running(page)}, say=say)


def _start(
    page: Page,
    request: WorkspaceRequest,
    options: RunOptions = DEFAULT_OPTIONS,
) -> None:
    planned = page.workbench.forecasts.plan(request, options.repeats.number)
    page.workbench.experiments.start(request, options, planned)


def estimate(page: Page, event: Event) -> Patch:
    design = read(page, event)
    request = design_request(page, event, design)
    experiment_jobs.estimate(
        page.workbench.experiments,
        page.workbench.jobs,
        request,
        page.workbench.forecasts.plan(request, design.repeat_options.number),
    )
    return Patch({"x-plan": plan(page, event, design)})


def resume(page: Page, event: Event) -> Patch:
    """Resume a stopped experiment; answered questions are not asked again."""
    workbench = page.workbench
    request = designs.stored_request(
        workbench.workspace, event.text("id"), allow_python=workbench.allow_python
    )
    _start(page, request, RunOptions(track=request.kind != "tradeoff"))
    return Patch(
        {"x-running": running(page), "x-done": finished_groups(page, event)},
        go="#/experiments/list",
    )


def again(page: Page, event: Event) -> Patch:
    """Copy an earlier experiment's settings into the steps."""
    design = window_design(page, event)
    experiment_design.take(page.workspace, design, event.text("id"))
    return Patch(go=f"#/experiments/list?kind={design.kind}")


def running(page: Page) -> Markup:
    """Draw the running experiments with their runs."""
    titles = {g.name: g.title for g in groups.groups(page.workspace) if g.automatic}
    drawn = Markup()
    for job in experiment_jobs.active(page.workbench.jobs):
        title = titles.get(job.name, job.name)
        link, words = (
            html.link(title, ExperimentAddress(job.name).href, "nm"),
            progress_words(job) or job.message,
        )
        drawn += jobs.running(job, link, words, name=title) + _experiment.run_rows(job)
    return html.heading("Running") + drawn if drawn else Markup()


def news(page: Page, event: Event) -> Patch:
    """Follow running experiments; redraw the finished ones only when an experiment ends."""
    patch = Patch({"x-running": running(page)})
    ended = _ended_note(page)
    if (drawn := event.session.state(Drawn)).ended != ended:
        event.session.put(replace(drawn, ended=ended))
        patch |= Patch(
            {
                "x-done": finished_groups(page, event),
                "x-plan": plan(page, event, window_design(page, event)),
            }
        )
    return patch


def _ended_note(page: Page) -> str:
    return " ".join(
        f"{job.id} {job.ended}" for job in experiment_jobs.ended_jobs(page.workbench.jobs)
    )


# finished experiments


def finished_groups(page: Page, event: Event) -> Markup:
    """Draw the experiments that have ended or stopped; a running one is above."""
    if not finished_rows(page):
        return html.empty(
            "Nothing yet. Choose what to vary above and start it: the result is a line here."
        )
    return _table(page, DONE.state(event))


def _table(page: Page, state: ListState) -> Markup:
    heads = (
        ("name", ""),
        ("winner", ""),
        ("result", ""),
        ("", ""),
        ("difference", "Compared with"),
        ("changed", ""),
    )
    ends = figures.needs_ends(group.mean for group in finished_rows(page) if group.share)
    return lists.table(
        DONE,
        page,
        state,
        heads,
        partial(_line, page, ends),
        kind="x-done",
        address=lambda group: ExperimentAddress(group.name).href,
    )


def finished_rows(page: Page) -> list[ExperimentRow]:
    going = {job.name for job in experiment_jobs.active(page.workbench.jobs)}
    return [group for group in groups.groups(page.workspace) if group.name not in going]


def _line(page: Page, ends: bool, group: ExperimentRow) -> list[str]:
    title, about = group.title, group.about
    if group.problem:
        return [
            Markup('<b class="nm">{}</b>').format(title),
            Markup('<span class="bad">{}</span>').format(group.problem),
            *[""] * 4,
        ]
    if not group.automatic:
        title, about = group.name, html.join_facts(group.title, group.about)
    name = Markup("{}<small>{}</small>").format(
        html.link(title, ExperimentAddress(group.name).href, "nm"), about
    )
    when = Markup("<small>{}</small>").format(moment(datetime.fromtimestamp(group.changed)))
    if group.ended:
        mean = bar = Markup()
        if group.mean:
            label = Markup("<small>{}</small>").format(groups.metric_label(group.metric))
            mean = figures.percent(group.mean, share=group.share, ends=ends) + label
            bar = figures.interval_bar(group.mean) if group.share else Markup()
        winner = (
            Markup("No winner<small>{}</small>").format(group.open)
            if group.open
            else escape(group.winner or "–")
        )
        return [name, winner, mean, bar, beside(group), when]
    job = experiment_jobs.newest(page.workbench.jobs, group.name)
    why, more = "not ended", html.button("Continue", "experiments.resume", id=group.name)
    if job is not None and job.status == "failed":
        why = Markup('<span class="bad">{}</span>').format(job.error)
    return [name, more, "", "", why, when]


def beside(group: ExperimentRow) -> Markup:
    """Draw the comparison of the best run, with the difference."""
    if group.difference is None:
        return escape(group.beside)
    words = "no difference"
    if abs(group.difference) >= 5e-4:
        words = figures.gap_words(group.difference, "fraction" if group.share else "")
        if not group.sure:
            words += ", too few questions" if group.sure is None else ", not shown"
    return Markup("{}<small>{}</small>").format(group.beside, words)


DONE: ListView[ExperimentRow] = ListView(
    "experiments",
    "experiments/list",
    finished_rows,
    lambda page: groups.COLUMNS,
    lambda page, event, state: {"x-done": _table(page, state)},
    hint="Filter, as in result>50 kind:sweep",
)
