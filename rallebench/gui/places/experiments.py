"""Experiments: cards, three steps and a plan; what runs, and what is done as groups of runs with their winners."""

from __future__ import annotations

import time
from collections.abc import Iterator

from rallebench.core.errors import UsageError
from rallebench.core.runs import RunOptions
from rallebench.gui.form import labelled
from rallebench.gui.frame import PLACES, Event, Page, Patch
from rallebench.gui.html import button, e, empty, interval_bar, percent, points, rows
from rallebench.gui.jobs import left, progress_of, share_of
from rallebench.gui.places import _experiment, _published
from rallebench.gui.places._design import (
    cards,
    chain_of,
    design_of,
    read,
    request_of,
    steps,
)
from rallebench.gui.places._plan import estimate as estimating
from rallebench.gui.places._plan import plan
from rallebench.gui.wording import on_page
from rallebench.render.numbers import text
from rallebench.services import designs, experiment_groups, experiment_jobs, forecasts
from rallebench.services.experiment_design import Design
from rallebench.services.experiment_groups import ExperimentRow
from rallebench.services.jobs import Job


@PLACES.register("experiments", label="Experiments", order=3)
def experiments(page: Page) -> None:
    """Prove which setting is better."""
    page.view("experiments/list", open_list)
    for name, handler in (
        ("set", change),
        ("plan", show_plan),
        ("vary", add_field),
        ("drop", drop_field),
        ("prompt", ask_prompt),
        ("prompt-add", add_prompt),
        ("paper", choose_paper),
        ("run", run),
        ("estimate", estimate),
        ("continue", resume),
        ("again", again),
        ("news", news),
    ):
        page.action(f"experiments.{name}", handler)
    _experiment.register(page)
    _published.register(page)


def open_list(page: Page, event: Event) -> Iterator[Patch]:
    """The page with its steps; the plan follows when it is counted."""
    design = design_of(page, event)
    if event.query.get("kind"):
        design.kind = event.query["kind"] if event.query["kind"] in _kinds() else "sweep"
    if event.query.get("paper"):
        design.suite = designs.first_suite(event.query["paper"])
    if event.query.get("run"):
        design.kind, design.run = "baselines", event.query["run"]
    if not design.llm and design.kind == "suite":
        design.llm = designs.first_model(page.workbench)
    yield {
        "#v-experiments-list": (
            f'<div class="wrap-page wide x-page"><h1>Experiments</h1><div id="x-cards">{cards(design.kind)}</div>'
            f'<div class="x-new"><div id="x-form" data-form data-do="experiments.set" data-on="change">{steps(page, event, design)}</div>'
            '<aside class="box x-plan" data-problems><div id="x-plan"><h3>Plan</h3><p class="note">Counting …</p></div></aside></div>'
            f'<div id="x-running" data-follow="*" data-do="experiments.news" data-on="none">{running(page)}</div>'
            f'<div><h3 class="sub">Done</h3><div id="x-done">{done(page)}</div></div></div>'
        ),
        "title": "Experiments",
    }
    event.session["design-shape"] = design.shape
    event.session["experiments-ended"] = _ended(page)
    yield {"#x-plan": plan(page, event, design)}


def _kinds() -> tuple[str, ...]:
    return ("sweep", "suite", "tradeoff", "baselines", "batch")


# the design


def change(page: Page, event: Event) -> Iterator[Patch]:
    """A field has changed: the steps where they have other fields now, and the plan."""
    design = design_of(page, event)
    read(page, event, design)
    yield from redrawn(page, event, design)


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
    design = design_of(page, event)
    read(page, event, design)
    variable = designs.variables(page.workbench, chain_of(page, event, design)).get(
        event.text("field")
    )
    if variable is not None and variable.name not in design.vary:
        own = [variable.current] if variable.current else []
        design.vary[variable.name] = (
            own + [v for v, _ in variable.choices if v not in own][: 2 - len(own)]
        )
    yield from redrawn(page, event, design)


def drop_field(page: Page, event: Event) -> Iterator[Patch]:
    """Vary a field no more."""
    design = design_of(page, event)
    read(page, event, design)
    design.vary.pop(event.text("field"), None)
    yield from redrawn(page, event, design)


def ask_prompt(page: Page, event: Event) -> Patch:
    """A dialog for a prompt of one's own; it begins with the chain's."""
    design, name = design_of(page, event), event.text("field")
    action = int(name.partition(".")[0])
    template = chain_of(page, event, design).actions[action - 1].template
    fields = labelled(
        "Name", f'<input name="title" value="prompt {len(design.prompts) + 2}" maxlength="40">'
    )
    fields += labelled(
        "Prompt", f'<textarea name="template" class="mono" rows="10">{e(template)}</textarea>'
    )
    buttons = button("Cancel", "", close="1") + button(
        "Add the prompt", "experiments.prompt-add", kind="primary", field=name
    )
    return {
        "dialog": f'<h2>Write a prompt</h2><div data-form class="stack">{fields}<div class="buttons">{buttons}</div></div>'
    }


def add_prompt(page: Page, event: Event) -> Iterator[Patch]:
    """Add the prompt to those that are compared."""
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
    design = design_of(page, event)
    read(page, event, design)
    design.suite = designs.first_suite(event.text("paper"))
    yield from redrawn(page, event, design)


# running


def run(page: Page, event: Event) -> Patch:
    """Begin the experiment; it goes on without the page."""
    design = design_of(page, event)
    read(page, event, design)
    request = request_of(page, event, design)
    planned = forecasts.planned(page.workbench, request)
    options = RunOptions(track=design.track and design.kind != "tradeoff")
    page.workbench.experiments.start(request, options, planned)
    design.auto = Design().auto
    return {
        "#x-running": running(page),
        "say": f"{request.name} runs. It goes on if you leave this page.",
    }


def estimate(page: Page, event: Event) -> Patch:
    """Ask three questions of each run, to know what all will cost."""
    design = design_of(page, event)
    read(page, event, design)
    request = request_of(page, event, design)
    experiment_jobs.estimate(page.workbench, request, forecasts.planned(page.workbench, request))
    return {"#x-plan": plan(page, event, design)}


def resume(page: Page, event: Event) -> Patch:
    """Continue an experiment that was stopped: what was answered is not asked again."""
    request = designs.stored_request(page.workbench, event.text("id"))
    planned = forecasts.planned(page.workbench, request)
    options = RunOptions(track=request.kind != "tradeoff")
    page.workbench.experiments.start(request, options, planned)
    return {"#x-running": running(page), "#x-done": done(page), "go": "#/experiments/list"}


def again(page: Page, event: Event) -> Patch:
    """Put an earlier experiment's settings into the steps, to be run with a change."""
    design, stored = (
        design_of(page, event),
        designs.stored_request(page.workbench, event.text("id")),
    )
    settings = stored.settings
    design.kind = "suite" if designs.is_suite(stored.kind) else stored.kind
    design.limit = "" if stored.limit is None else str(stored.limit)
    design.seed, design.llm, design.name = str(stored.seed), stored.llm, ""
    design.dataset = str(settings.get("dataset") or design.dataset)
    if design.kind == "sweep":
        _again_sweep(page, event, design, settings)
    elif design.kind == "suite":
        design.suite = stored.kind
        design.settings[stored.kind] = designs.written(stored.kind, settings)
    elif design.kind == "tradeoff":
        design.indexes, design.k = list(settings["indexes"]), str(settings["k"])
        design.knobs = {key: [str(v) for v in values] for key, values in settings["sweep"].items()}
    elif design.kind == "baselines":
        design.run = str(settings["run"])
    return {"go": f"#/experiments/list?kind={design.kind}"}


def _again_sweep(page: Page, event: Event, design: Design, settings: dict[str, object]) -> None:
    varied = designs.stored_variation(settings)
    design.vary, design.prompts = (
        {n: list(values) for n, values in varied.values.items()},
        dict(varied.prompts),
    )
    design.own = {
        name: list(values) for name, values in design.vary.items() if not name.endswith("template")
    }
    design.strategy, design.metric = str(settings["strategy"]), str(settings["metric"])
    names = page.workbench.workspace.chain_paths()
    design.chain = varied.chain.name if varied.chain.name in names else ""


def running(page: Page) -> str:
    """What runs now, with its parts."""
    titles = {g.name: g.title for g in experiment_groups.groups(page.workbench) if g.automatic}
    jobs = experiment_jobs.active(page.workbench)
    drawn = "".join(_going(job, titles.get(job.name, job.name)) for job in jobs)
    return f'<h3 class="sub">Running</h3>{drawn}' if drawn else ""


def _going(job: Job, title: str) -> str:
    share, newest = share_of(job), progress_of(job)
    counts = f"{newest.done:,} of {newest.total:,}" if newest and newest.total else ""
    words = " · ".join(
        filter(None, [counts, left(job, share) if share else "", "" if counts else job.message])
    )
    stop = "<small>stopping</small>" if job.stopping else button("Stop", "jobs.stop", id=job.id)
    value = f' value="{100 * share:.0f}"' if share is not None else ""
    lines = "".join(f"<li>{_part(part)}</li>" for part in experiment_jobs.parts(job))
    return (
        f'<div class="x-run"><div class="row"><a class="nm" href="{e(address(job.name))}">{e(title)}</a><span class="num">{e(words)}</span><span class="gap"></span>{stop}</div>'
        f'<progress max="100"{value} aria-label="Progress of {e(title)}"></progress><ul class="x-parts">{lines}</ul></div>'
    )


def _part(part: experiment_jobs.PartState) -> str:
    """A run of an experiment that goes on: where it is and its mean so far."""
    states = {"done": "good", "failed": "bad"}
    best = experiment_jobs.headline(part)
    name = experiment_groups.plain_label(part.label)
    mean = ""
    if best:
        score = f"{100 * best[1]:.1f} %" if experiment_groups.is_share(best[0]) else text(best[1])
        mean = f"{experiment_groups.label_of(best[0])} {score}"
    where = f"{part.done:,} of {part.total:,}" if part.state == "running" and part.total else ""
    words = " · ".join(
        filter(None, [where, mean, on_page(part.message) if part.state != "done" else ""])
    )
    return f'<span class="state {states.get(part.state, "busy")}">{e(name)}</span><small class="num">{e(words)}</small>'


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
    """A line an experiment."""
    listed = experiment_groups.groups(page.workbench)
    if not listed:
        return empty(
            "Nothing yet. Choose what to vary above and press Run: the result is a line here."
        )
    active = {job.name for job in experiment_jobs.active(page.workbench)}
    ended = {job.name: job for job in experiment_jobs.ended(page.workbench)}
    heads = ("Experiment", "Winner", ">Result", "", "Beside", "When")
    lines = [_line(group, group.name in active, ended.get(group.name)) for group in listed]
    return rows(heads, lines, kind="x-done", addresses=[address(group.name) for group in listed])


def address(name: str) -> str:
    """The address of an experiment."""
    return _experiment.address(name)


def _line(group: ExperimentRow, active: bool, ended: Job | None) -> list[str]:
    title, about = group.title, group.about
    if not group.automatic:
        title, about = group.name, f"{group.title} · {group.about}"
    name = f'<a class="nm" href="{e(address(group.name))}">{e(title)}</a><small>{e(about)}</small>'
    when = f"<small>{e(ago(group.changed))}</small>"
    if not group.ended:
        more = (
            '<span class="state busy">running</span>'
            if active
            else button("Continue", "experiments.continue", id=group.name)
        )
        failed = ended.error if ended is not None and ended.status == "failed" else None
        why = f'<span class="x-failed">{e(on_page(failed))}</span>' if failed else "not ended"
        return [name, more, "", "", "" if active else why, when]
    mean = percent(group.mean, share=group.share) if group.mean else ""
    bar = interval_bar(group.mean) if group.mean and group.share else ""
    label = f"<small>{e(experiment_groups.label_of(group.metric))}</small>" if group.mean else ""
    return [name, e(group.winner), mean + label, bar, beside(group), when]


def beside(group: ExperimentRow) -> str:
    """What the winner is compared with."""
    if group.difference is None:
        return e(group.beside)
    gap = (
        "no difference"
        if abs(group.difference) < 5e-4
        else f"{points(abs(group.difference) if group.share else group.difference)}"
    )
    sure = (
        "" if group.sure is None or gap == "no difference" else "" if group.sure else ", not shown"
    )
    few = ", too few questions" if group.sure is None and gap != "no difference" else ""
    return f"{e(gap)}{sure}{few}<small>beside {e(group.beside)}</small>"


def ago(seconds: float) -> str:
    """A time as "today 11:20", "yesterday", "18 Nov"."""
    then, now = time.localtime(seconds), time.localtime()
    days = (
        int(time.mktime((*now[:3], 12, 0, 0, 0, 0, -1)))
        - int(time.mktime((*then[:3], 12, 0, 0, 0, 0, -1)))
    ) // 86400
    if days <= 1:
        return f"{'yesterday' if days else 'today'} {time.strftime('%H:%M', then)}"
    return time.strftime("%-d %b" if then[0] == now[0] else "%-d %b %Y", then)
