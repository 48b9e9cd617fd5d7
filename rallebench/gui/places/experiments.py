"""Experiments: cards, three steps and a plan; what runs, and what is done as groups of runs with their winners."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from rallebench.core.errors import UsageError
from rallebench.core.experiments import ExperimentRequest
from rallebench.core.runs import RunOptions
from rallebench.gui import figures, form, html
from rallebench.gui.frame import PLACES, Event, Page, Patch
from rallebench.gui.html import e
from rallebench.gui.jobs import counted, share_of, stop_button
from rallebench.gui.places import _experiment, _published
from rallebench.gui.places._design import (
    KINDS,
    cards,
    chain_of,
    design_of,
    read,
    request_of,
    steps,
)
from rallebench.gui.places._experiment import address
from rallebench.gui.places._plan import estimating, plan
from rallebench.gui.wording import on_page
from rallebench.render.numbers import moment, text
from rallebench.services import (
    designs,
    experiment_design,
    experiment_groups,
    experiment_jobs,
    forecasts,
)
from rallebench.services.experiment_design import Design
from rallebench.services.experiment_groups import ExperimentRow


@PLACES.register("experiments", label="Experiments", order=3)
def experiments(page: Page) -> None:
    """Prove which setting is better."""
    page.view("experiments/list", open_list)
    page.actions("experiments", change, show_plan, add_field, drop_field, ask_prompt, add_prompt)
    page.actions("experiments", choose_paper, run, estimate, resume, again, news)
    for part in (_experiment, _published):
        part.register(page)


def open_list(page: Page, event: Event) -> Iterator[Patch]:
    """The page with its steps; the plan follows when it is counted."""
    design, query = design_of(page, event), event.query
    if query.get("kind"):
        design.kind = query["kind"] if query["kind"] in KINDS else "sweep"
    if query.get("paper"):
        design.suite = designs.first_suite(query["paper"])
    if query.get("run"):
        design.kind, design.run = "baselines", query["run"]
    if not design.llm and design.kind == "suite":
        design.llm = designs.first_model(page.workbench)
    body = (
        f'<div class="row"><h1>Experiments</h1><span class="gap"></span>{html.link("Papers", "#/experiments/published", "button")}</div><div id="x-cards">{cards(design.kind)}</div>'
        f'<div class="x-new"><div id="x-form" data-form{form.on_change("experiments.change")}>{steps(page, event, design)}</div>'
        f'<aside class="box x-plan" data-problems><div id="x-plan"><h3>Plan</h3>{html.note("Counting …")}</div></aside></div>'
        f'<div id="x-running" data-follow="*" data-do="experiments.news" data-on="none">{running(page)}</div>'
        f'<div>{html.heading("Done")}<div id="x-done">{done(page)}</div></div>'
    )
    yield html.view("experiments/list", "Experiments", body, kind="wide")
    event.session["design-shape"] = design.shape
    event.session["experiments-ended"] = _ended(page)
    yield {"#x-plan": plan(page, event, design)}


# the design


def change(page: Page, event: Event) -> Iterator[Patch]:
    """A field has changed: the steps where they have other fields now, and the plan."""
    yield from redrawn(page, event, read(page, event))


def redrawn(page: Page, event: Event, design: Design) -> Iterator[Patch]:
    """The steps, if they have other fields than before, then the plan."""
    if event.session.get("design-shape") != design.shape:
        event.session["design-shape"] = design.shape
        yield {"#x-form": steps(page, event, design)}
    yield {"#x-counting": "counting …"}
    yield {"#x-plan": plan(page, event, design)}


def show_plan(page: Page, event: Event) -> Patch:
    """News of an estimate: how far it is, and at its end the plan."""
    pilot = page.workbench.jobs.get(experiment_jobs.PILOT, event.text("name"))
    if pilot is not None and not pilot.done:
        return {"#x-estimate": estimating(pilot)}
    return {"#x-plan": plan(page, event, design_of(page, event))}


def add_field(page: Page, event: Event) -> Iterator[Patch]:
    """Vary one more field; its first values are the chain's own and the next one."""
    design = read(page, event)
    known = designs.variables(page.workbench, chain_of(page, event, design))
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
    """A dialog for a prompt of one's own; it begins with the chain's."""
    design, name = design_of(page, event), event.text("field")
    action = int(name.partition(".")[0])
    template = chain_of(page, event, design).actions[action - 1].template
    fields = form.text("title", "Name", f"prompt {len(design.prompts) + 2}", more=' maxlength="40"')
    fields += form.area("template", "Prompt", template, 10, ' class="mono"')
    do = "experiments.add_prompt"
    return html.ask("Write a prompt", fields, "Add the prompt", do, field=name)


def add_prompt(page: Page, event: Event) -> Iterator[Patch]:
    design, name, title = design_of(page, event), event.text("field"), event.text("title")
    if not title or title in design.prompts:
        raise UsageError("Give the prompt a name that no other prompt has.")
    if not event.text("template"):
        raise UsageError("The prompt is empty; write one.")
    design.prompts[title] = str(event.data["template"])
    design.vary.setdefault(name, []).append(title)
    event.session["design-shape"] = ""
    yield {"dialog": ""}
    yield from redrawn(page, event, design)


def choose_paper(page: Page, event: Event) -> Iterator[Patch]:
    """Another paper: its first benchmark."""
    design = read(page, event)
    design.suite = designs.first_suite(event.text("paper"))
    yield from redrawn(page, event, design)


# running


def run(page: Page, event: Event) -> Patch:
    """Begin the experiment; it goes on without the page."""
    design = read(page, event)
    request = request_of(page, event, design)
    _start(page, request, design.track)
    design.auto = Design().auto
    say = f"{request.name} runs. It goes on if you leave this page."
    return {"#x-running": running(page), "say": say}


def _start(page: Page, request: ExperimentRequest, track: bool = True) -> None:
    planned = forecasts.planned(page.workbench, request)
    options = RunOptions(track=track and request.kind != "tradeoff")
    page.workbench.experiments.start(request, options, planned)


def estimate(page: Page, event: Event) -> Patch:
    design = read(page, event)
    request = request_of(page, event, design)
    experiment_jobs.estimate(page.workbench, request, forecasts.planned(page.workbench, request))
    return {"#x-plan": plan(page, event, design)}


def resume(page: Page, event: Event) -> Patch:
    """Continue an experiment that was stopped: what was answered is not asked again."""
    _start(page, designs.stored_request(page.workbench, event.text("id")))
    return {"#x-running": running(page), "#x-done": done(page), "go": "#/experiments/list"}


def again(page: Page, event: Event) -> Patch:
    """Put an earlier experiment's settings into the steps, to be run with a change."""
    design = design_of(page, event)
    experiment_design.take(page.workbench, design, event.text("id"))
    return {"go": f"#/experiments/list?kind={design.kind}"}


def running(page: Page) -> str:
    """What runs now, with its parts."""
    titles = {g.name: g.title for g in experiment_groups.groups(page.workbench) if g.automatic}
    drawn = ""
    for job in experiment_jobs.active(page.workbench):
        title = titles.get(job.name, job.name)
        parts = "".join(map(_part, experiment_jobs.parts(job)))
        drawn += (
            f'<div class="x-run"><div class="row">{html.link(title, address(job.name), "nm")}<span class="num">{e(counted(job) or job.message)}</span>'
            f'<span class="gap"></span>{stop_button(job)}</div>{html.progress(share_of(job), title)}<ul class="x-parts">{parts}</ul></div>'
        )
    return html.heading("Running") + drawn if drawn else ""


def _part(part: experiment_jobs.PartState) -> str:
    """A run of an experiment that goes on: where it is and its mean so far."""
    kind = {"done": "good", "failed": "bad"}.get(part.state, "busy")
    where = f"{part.done:,} of {part.total:,}" if part.state == "running" and part.total else ""
    mean = ""
    if best := experiment_jobs.headline(part):
        score = f"{100 * best[1]:.1f} %" if experiment_groups.is_share(best[0]) else text(best[1])
        mean = f"{experiment_groups.label_of(best[0])} {score}"
    message = on_page(part.message) if part.state != "done" else ""
    name = html.state(experiment_groups.plain_label(part.label), kind=kind)
    return f'<li>{name}<small class="num">{e(html.dotted(where, mean, message))}</small></li>'


def news(page: Page, event: Event) -> Patch:
    """Follow what runs; the list of what is done only where something has ended."""
    patch: Patch = {"#x-running": running(page)}
    ended = _ended(page)
    if event.session.get("experiments-ended") != ended:
        event.session["experiments-ended"] = ended
        patch |= {"#x-done": done(page), "#x-plan": plan(page, event, design_of(page, event))}
    return patch


def _ended(page: Page) -> str:
    return " ".join(f"{job.id} {job.ended}" for job in experiment_jobs.ended(page.workbench))


# what is done


def done(page: Page) -> str:
    listed = experiment_groups.groups(page.workbench)
    if not listed:
        return html.empty(
            "Nothing yet. Choose what to vary above and press Run: the result is a line here."
        )
    heads = ("Experiment", "Winner", ">Result", "", "Compared with", "When")
    lines = [_line(page, group) for group in listed]
    addresses = [address(group.name) for group in listed]
    return html.rows(heads, lines, kind="x-done", addresses=addresses)


def _line(page: Page, group: ExperimentRow) -> list[str]:
    title, about = group.title, group.about
    if not group.automatic:
        title, about = group.name, html.dotted(group.title, group.about)
    name = f"{html.link(title, address(group.name), 'nm')}<small>{e(about)}</small>"
    when = f"<small>{e(moment(datetime.fromtimestamp(group.changed)))}</small>"
    if group.ended:
        mean = bar = ""
        if group.mean:
            label = f"<small>{e(experiment_groups.label_of(group.metric))}</small>"
            mean = figures.percent(group.mean, share=group.share) + label
            bar = figures.interval_bar(group.mean) if group.share else ""
        winner = f"No winner<small>{e(group.open)}</small>" if group.open else e(group.winner)
        return [name, winner, mean, bar, beside(group), when]
    job = experiment_jobs.newest(page.workbench, group.name)
    if job is not None and not job.done:
        return [name, html.state("running"), "", "", "", when]
    why, more = "not ended", html.button("Continue", "experiments.resume", id=group.name)
    if job is not None and job.status == "failed":
        why = f'<span class="x-failed">{e(job.error)}</span>'
    return [name, more, "", "", why, when]


def beside(group: ExperimentRow) -> str:
    """What the best run is compared with, and the difference."""
    if group.difference is None:
        return e(group.beside)
    words = "no difference"
    if abs(group.difference) >= 5e-4:
        words = figures.gap_words(group.difference, "fraction" if group.share else "")
        if not group.sure:
            words += ", too few questions" if group.sure is None else ", not shown"
    return f"{e(group.beside)}<small>{e(words)}</small>"
