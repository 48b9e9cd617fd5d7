"""Agent: an episode of a workflow in an environment, followed as it happens, edited and continued, kept as a run."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from rallebench.core.errors import UsageError
from rallebench.gui.form import control, labelled, select
from rallebench.gui.frame import Event, Page, Patch
from rallebench.gui.html import button, e, empty, fold, link, mark, segments, warning
from rallebench.gui.places._bench import bench_of
from rallebench.gui.places._one import MODES, header
from rallebench.gui.places._steps import output, price, seconds, tokens
from rallebench.services import agents
from rallebench.services.benchmarks import BenchmarkOptions, of_flow
from rallebench.services.episodes import (
    EpisodeRequest,
    EpisodeState,
    example_of,
    open_episode,
    save_episode,
)
from rallebench.services.transcript import actions, before, beginning, edit_text, pieces

FIRST, FIRST_ENV = "react", "wikipedia"
PAUSE = 0.2
"""Seconds between two looks at an episode."""


def register(page: Page) -> None:
    """Add this mode."""
    page.view("build/agent", open_agent)
    for name, handler in (
        ("agent-form", choose),
        ("agent-run", run),
        ("agent-stop", stop),
        ("agent-edit", edit),
        ("agent-continue", go_on),
        ("agent-keep", keep),
        ("agent-follow", follow),
        ("agent-dataset", ask_dataset),
        ("agent-benchmark", benchmark),
    ):
        page.action(f"build.{name}", handler)


def state_of(page: Page, event: Event) -> EpisodeState | None:
    """The episode that this window shows; ``run`` and ``q`` in the address name one of a run."""
    if event.query.get("run") and event.query.get("q"):
        return open_episode(page.workbench, event.query["run"], event.query["q"])
    return page.workbench.asking.episode(str(event.session.get("episode", "")))


def choices_of(event: Event) -> dict[str, Any]:
    """What the form holds."""
    chosen: dict[str, Any] = event.session.setdefault(
        "agent", {"workflow": FIRST, "env": FIRST_ENV, "llm": "", "question": "", "settings": {}}
    )
    return chosen


def open_agent(page: Page, event: Event) -> Iterator[Patch]:
    """The form and the episode; one that is running is followed."""
    yield {
        "#v-build-agent": view(page, event),
        "title": "Agent",
        **header(page, bench_of(page, event)),
    }
    state = state_of(page, event)
    if state is not None and state.going:
        yield from watch(page, event, state.name)


def view(page: Page, event: Event) -> str:
    """Form at the left, episode in the middle, outcome at the right."""
    state = state_of(page, event)
    return (
        f'<div class="bar">{segments(MODES, "#/build/agent")}<span id="agent-status" class="note status" role="status"></span><span id="agent-buttons" class="row">{buttons(state)}</span></div>'
        f'<div class="cols three build"><div class="start" style="overflow-y:auto" data-form id="agent-form" data-problems>{form(page, event)}</div>'
        f'<div class="mid" id="agent-episode">{episode_html(page, state)}</div><div class="side" id="agent-side" data-problems>{outcome(page, state)}</div></div>'
    )


def buttons(state: EpisodeState | None) -> str:
    """Run, or Stop while an episode is running."""
    if state is not None and state.going:
        return button("Stop", "build.agent-stop")
    form_of = {"with": "#agent-form"}
    dataset = button("Run on a dataset", "build.agent-dataset", **form_of)
    return dataset + button("Run", "build.agent-run", kind="primary", **form_of)


def form(page: Page, event: Event) -> str:
    """Workflow, environment, model, question and all settings."""
    bench, chosen = bench_of(page, event), choices_of(event)
    workflow, env = chosen["workflow"], chosen["env"]
    change = ' data-do="build.agent-form" data-on="change"'
    about = agents.workflows()
    parts = [
        labelled(
            "Workflow", select("workflow", list(about), workflow, more=change), about[workflow]
        )
    ]
    if agents.needs_environment(workflow):
        parts.append(
            labelled("Environment", select("env", agents.environments(), env, more=change))
        )
    llms = list(page.workbench.workspace.llms())
    parts.append(labelled("Model", select("llm", llms, chosen["llm"] or llms[0])))
    questions = page.workbench.asking.questions(bench.dataset)[:500]
    options = "".join(
        f'<option value="{e(x.question.qid)}">{e(x.question.text[:120])}</option>'
        for x in questions
    )
    field = f'<input name="question" list="agent-questions" value="{e(chosen["question"] or bench.question)}"><datalist id="agent-questions">{options}</datalist>'
    parts.append(labelled(f"Question of {bench.dataset}, or your own", field))
    if agents.needs_python(workflow) and not page.workbench.allow_python:
        parts.append(
            warning(
                "This workflow runs programs that the model writes. Start rallebench with --allow-python to permit it."
            )
        )
    offers, known = agents.choices(page.workbench), agents.forms(workflow, env)
    groups = {"Environment settings": "", "Workflow settings": ""}
    for name, setting in known.items():
        group = "Environment settings" if name.startswith("env.") else "Workflow settings"
        value = chosen["settings"].get(name, setting.default)
        title = name.removeprefix("env.")
        groups[group] += control(
            title, setting, value, offers.get(name), "env." if title != name else ""
        )
    folds = "".join(
        fold(title, f'<div class="stack">{fields}</div>', id=f"agent-{title[:3]}")
        for title, fields in groups.items()
        if fields
    )
    return f'<div class="stack">{"".join(parts)}</div>{folds}'


def remember(event: Event) -> dict[str, Any]:
    """Take the fields over into the session."""
    chosen = choices_of(event)
    for name in ("workflow", "env", "llm", "question"):
        chosen[name] = event.text(name, chosen[name])
    settings = dict(chosen["settings"])
    for name, setting in agents.forms(chosen["workflow"], chosen["env"]).items():
        if setting.kind is bool:
            settings[name] = event.flag(name)
        elif name in event.data:
            settings[name] = event.text(name)
    chosen["settings"] = settings
    return chosen


def choose(page: Page, event: Event) -> Patch:
    """Another workflow or environment."""
    remember(event)
    return {"#agent-form": form(page, event)}


def request_of(page: Page, event: Event) -> EpisodeRequest:
    """The episode that the form describes. Raises UsageError."""
    chosen = remember(event)
    workflow = chosen["workflow"]
    env = chosen["env"] if agents.needs_environment(workflow) else ""
    settings = agents.changed(agents.forms(workflow, chosen["env"]), chosen["settings"])
    dataset, example = example_of(page.workbench, bench_of(page, event).dataset, chosen["question"])
    return EpisodeRequest(workflow, env, chosen["llm"], settings, dataset, example)


def run(page: Page, event: Event) -> Iterator[Patch]:
    """Start an episode and follow it."""
    yield from start(page, event, request_of(page, event))


def start(page: Page, event: Event, request: EpisodeRequest) -> Iterator[Patch]:
    """Load what the episode needs, begin it as a job, and follow it."""
    agent = page.workbench.asking.agent(
        request.workflow, request.env, request.llm, request.settings, seed=0
    )
    with page.workbench.models.lease(f"an episode of the agent {request.workflow!r}") as lease:
        for news in lease.load_for(agent.flow.llms, agent.flow.retrievers):
            yield {"#agent-status": f"{e(news.message)} …"}
        state = page.workbench.asking.start_episode(request)
    event.session["episode"] = state.name
    yield {"address": "#/build/agent", "drawer": ""}
    yield from watch(page, event, state.name)


def watch(page: Page, event: Event, name: str) -> Iterator[Patch]:
    """Everything that the episode does, as it happens."""
    seen = ""
    while (state := page.workbench.asking.episode(name)) is not None:
        if state.mark != seen:
            seen = state.mark
            yield {
                "#agent-episode": episode_html(page, state),
                "#agent-side": outcome(page, state),
                "#agent-buttons": buttons(state),
                "#agent-status": f"{len(state.steps)} steps · {seconds(state.seconds)}"
                if state.going
                else "",
            }
        if not state.going:
            return
        time.sleep(PAUSE)


def follow(page: Page, event: Event) -> Iterator[Patch]:
    """Follow the running episode again."""
    yield from watch(page, event, str(event.session.get("episode", "")))


def stop(page: Page, event: Event) -> Patch:
    """Stop the episode at once."""
    page.workbench.asking.stop_episode(str(event.session.get("episode", "")))
    return {}


# what is shown


def episode_html(page: Page, state: EpisodeState | None) -> str:
    """The question, then thoughts, actions and observations in order, then the tree of a search."""
    if state is None:
        return empty(
            "Choose a workflow, a model and a question, then press Run. Every thought, action and observation appears here as it happens."
        )
    request = state.episode_request
    gold = request.example.gold
    known = actions(state.steps, request.workflow)
    rows = ""
    for piece in pieces(state.steps, request.workflow):
        change = (
            button("Edit", "build.agent-edit", kind="quiet", at=piece.at)
            if piece.at in known and piece.kind in ("action", "program") and not state.going
            else ""
        )
        rows += f'<div class="piece {piece.kind}"><small>{e(piece.label)}</small><div><span class="text" dir="auto">{e(piece.text)}</span> {change}</div></div>'
    if state.request is not None:
        for piece in beginning(state.request, state.writing, request.workflow):
            rows += f'<div class="piece {piece.kind}"><small>{e(piece.label)} …</small><div class="text" dir="auto">{e(piece.text)}</div></div>'
    prices = page.workbench.models.prices()
    asked = "".join(
        fold(
            f"{n} {type(step.request).__name__}",
            output(step, gold, None, prices),
            gist=" · ".join(filter(None, [seconds(step.seconds), tokens(step)])),
        )
        for n, step in enumerate(state.steps, 1)
    )
    nodes = tree(state)
    drawn = (
        fold(
            "The tree of the search", f'<ul class="tree">{nodes}</ul>', id="agent-tree", opened=True
        )
        if nodes
        else ""
    )
    requests = (
        fold(
            "Every request and reply", asked, gist=f"{len(state.steps)} steps", id="agent-requests"
        )
        if asked and not state.going
        else ""
    )
    return f'<div class="asked-question"><h1 dir="auto">{e(request.example.question.text)}</h1><p><small>{e(request.workflow)}{" in " + e(request.env) if request.env else ""} · {e(request.llm)}</small></p></div>{drawn}{rows}{requests}'


def tree(state: EpisodeState) -> str:
    """The tree of a search workflow, "" for others."""
    nodes = agents.search_tree(state.steps)

    def branch(node: Any) -> str:
        below = "".join(branch(child) for child in nodes if child.parent == node.number)
        words = f"{node.move or node.thought}"[:300]
        observed = f"<small>{e(node.observation[:200])}</small>" if node.observation else ""
        inner = f"<ul class='tree'>{below}</ul>" if below else ""
        return f"<li>{e(words)} <em class='tag'>{e(node.state.replace('_', ' '))}</em> {observed}{inner}</li>"

    return "".join(branch(node) for node in nodes if node.parent == 0)


def outcome(page: Page, state: EpisodeState | None) -> str:
    """How the episode stands or ended, its answer beside the gold, its cost, and what can be done with it."""
    if state is None:
        return empty("The answer appears here.")
    gold, prices = state.episode_request.example.gold, page.workbench.models.prices()
    if state.going:
        return f'<section class="verdict none"><h2>Running</h2><p class="note">{len(state.steps)} steps so far.</p></section>'
    parts = []
    reason = (
        state.episode.outcome.stop_reason
        if state.episode and state.episode.outcome
        else state.state
    )
    right = agents.is_right(state)
    kind = "failed" if state.error else "none" if right is None else "right" if right else "wrong"
    answer = state.episode.answer if state.episode else ""
    title = {"failed": "Failed", "right": "Right", "wrong": "Wrong"}.get(
        kind, "Ended" if state.state == "ended" else "Stopped"
    )
    parts.append(
        f'<h2>{mark(kind)}{title}</h2><dl><dt>answer</dt><dd dir="auto">{e(answer) or "<em>none</em>"}</dd>{f"<dt>gold</dt><dd class=good>{e(gold.answers[0])}</dd>" if gold.answers else ""}</dl>'
    )
    if state.error:
        parts.append(f'<p class="problem">{e(state.error)}</p>')
    parts.append(f'<p class="note">{e(agents.meaning(reason))}</p>')
    parts.append(
        f'<div class="facts"><span><b>{len(state.steps)}</b>steps</span><span><b>{seconds(state.seconds)}</b>time</span><span><b>{price(state.steps, prices)}</b>price</span></div>'
    )
    kept = (
        link(f"Run {state.run}", f"#/runs/run?id={e(state.run)}", "link")
        if state.run
        else button("Keep as a run", "build.agent-keep", disabled=state.episode is None)
    )
    return (
        f'<section class="verdict {kind}">{"".join(parts)}</section><div class="row">{kept}</div>'
    )


def edit(page: Page, event: Event) -> Patch:
    """An action of the episode in a drawer, to be changed."""
    state, at = state_of(page, event), int(event.text("at"))
    if state is None:
        raise UsageError("The episode is not known any more; run it again.")
    text = edit_text(state.steps[at].reply, state.episode_request.workflow)
    return {
        "drawer": f'<div class="dh"><h2>Edit the action of step {at + 1}</h2>{button("Close", "", kind="quiet", close="1")}</div><div data-form class="stack"><textarea class="mono" name="text" rows="4" aria-label="Action">\n{e(text)}</textarea><p class="note">The episode continues from here with your action; what came after it is dropped.</p>{button("Continue from here", "build.agent-continue", kind="primary", at=at)}</div>'
    }


def go_on(page: Page, event: Event) -> Iterator[Patch]:
    """Continue the episode with the edited action."""
    state = state_of(page, event)
    if state is None:
        raise UsageError("The episode is not known any more; run it again.")
    request = state.episode_request
    steps = before(state.steps, int(event.text("at")), event.text("text"), request.workflow)
    again = EpisodeRequest(
        request.workflow,
        request.env,
        request.llm,
        request.settings,
        request.dataset,
        request.example,
        steps,
    )
    yield from start(page, event, again)


def keep(page: Page, event: Event) -> Patch:
    """Store the episode as a run, to be compared."""
    folder = save_episode(page.workbench, state_of(page, event))
    return {"say": f"Kept as the run {folder.name}.", "go": f"#/runs/run?id={folder.name}"}


def ask_dataset(page: Page, event: Event) -> Patch:
    """On which dataset the agent is run."""
    remember(event)
    datasets = list(page.workbench.workspace.dataset_paths())
    fields = labelled("Dataset", select("dataset", datasets, bench_of(page, event).dataset))
    fields += labelled(
        "Questions at most", '<input type="number" name="limit" min="1" placeholder="all">'
    )
    fields += labelled("Name", '<input name="as" placeholder="made from workflow, model and time">')
    buttons_html = f'<div class="buttons">{button("Cancel", "", close="1")}{button("Run", "build.agent-benchmark", kind="primary")}</div>'
    return {
        "dialog": f'<h2>Run the agent on a dataset</h2><div data-form class="stack"><div class="fields">{fields}</div>{buttons_html}</div>'
    }


def benchmark(page: Page, event: Event) -> Patch:
    """Start a run of the agent as a job."""
    chosen, workbench = choices_of(event), page.workbench
    workflow = chosen["workflow"]
    env = chosen["env"] if agents.needs_environment(workflow) else ""
    settings = agents.changed(agents.forms(workflow, chosen["env"]), chosen["settings"])
    llm = chosen["llm"] or next(iter(workbench.workspace.llms()))
    flow = workbench.asking.agent(workflow, env, llm, settings).flow
    limit = event.whole("limit", "Questions at most")
    options = BenchmarkOptions(dataset=event.text("dataset"), limit=limit)
    run_of_agent = of_flow(workbench, flow, options, run=event.text("as"))
    workbench.runs.start(run_of_agent)
    return {"dialog": "", "go": f"#/runs/run?id={run_of_agent.name}"}
