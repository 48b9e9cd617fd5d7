"""Agent: an episode of a workflow in an environment, shown live. It can be edited, continued, and saved as a run."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from markupsafe import Markup

from rallebench.core.errors import UsageError
from rallebench.core.numbers import plural
from rallebench.core.runs import FlowSpec
from rallebench.gui import figures, form, html, panels
from rallebench.gui.addresses import AgentAddress, RunAddress
from rallebench.gui.events import Event
from rallebench.gui.frame import Page
from rallebench.gui.patches import Patch
from rallebench.gui.places._bench import PAUSE, window_bench
from rallebench.gui.places._one import columns, status
from rallebench.gui.places._steps import (
    TITLES,
    folds,
    numbers_box,
    price,
    question_html,
    verdict_box,
)
from rallebench.services import episodes
from rallebench.services.episodes import EpisodeRequest, EpisodeState
from rallebench.views import agents, catalog
from rallebench.views.transcript import Piece, actions, before, beginning, edit_text, pieces

CANNOT_ACT = (
    "{llm} only copies words from a prompt, so it cannot act as an agent. Choose a model that writes, or add one in Models, such "
    "as the small preset smollm2-135m-gguf."
)


@dataclass(frozen=True)
class AgentForm:
    """The fields of the form. ``settings``: of the workflow and its environment; ``episode``: the name of the latest
    episode.
    """

    llm: str
    workflow: str = "react"
    env: str = "wikipedia"
    question: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    episode: str = ""

    @property
    def agent(self) -> tuple[str, str, str, Mapping[str, Any]]:
        """The workflow, environment, model and settings."""
        env = self.env if agents.needs_environment(self.workflow) else ""
        return self.workflow, env, self.llm, self.settings


def register(page: Page) -> None:
    """Register this mode's views and actions."""
    page.view("build/agent", open_agent)
    page.actions("agent", choose, reads=True)
    page.actions("agent", run, stop, edit, continue_, keep, benchmark)


def window_episode(page: Page, event: Event) -> EpisodeState | None:
    """Return the episode of this window, or the stored episode named by ``run`` and ``q`` in the address."""
    of_run = event.read(AgentAddress)
    if of_run.run and of_run.q:
        return episodes.open_episode(page.workspace, of_run.run, of_run.q)
    return page.workbench.asking.episode(window_form(page, event).episode)


def window_form(page: Page, event: Event) -> AgentForm:
    """Return the form of this window; a new form has a model that can act: that of the chain in Build, else the first."""

    def new_form() -> AgentForm:
        llms = [*window_bench(page, event).chain.llms[-1:], *page.workspace.llms()]
        can_act = (name for name in llms if not page.workbench.asking.copies(name))
        return AgentForm(next(can_act, llms[0]))

    return event.session.state(AgentForm, new_form)


def open_agent(page: Page, event: Event) -> Iterator[Patch]:
    """Open the form and the episode; follow the episode while it runs."""
    state = window_episode(page, event)
    body = columns(
        Markup('{}<span id="agent-buttons" class="row">{}</span>').format(
            status("agent"), buttons(state is not None and state.going, able(page, event))
        ),
        Markup(
            '<div class="start" role="region" aria-label="Agent and task" data-form id="agent-form" data-problems>{}</div>'
        ).format(draw(page, event)),
        Markup(
            '<div class="mid" role="region" aria-label="Episode" id="agent-episode">{}</div>'
        ).format(episode_html(page, state)),
        Markup(
            '<div class="side" role="region" aria-label="Outcome" id="agent-side" data-problems>{}</div>'
        ).format(outcome(page, state)),
        "Agent",
    )
    yield Patch({"v-build-agent": body}, title="Agent")
    if state is not None and state.going:
        yield from watch(page, state.name)


def able(page: Page, event: Event) -> bool:
    """Return whether the chosen model can act."""
    return not page.workbench.asking.copies(window_form(page, event).llm)


def parts(page: Page, state: EpisodeState | None, acts: bool = True) -> Patch:
    """Return the parts that change during an episode; ``acts``: True if the chosen model can act."""
    going = state is not None and state.going
    return Patch(
        {
            "agent-episode": episode_html(page, state),
            "agent-side": outcome(page, state),
            "agent-buttons": buttons(going, acts),
            "agent-status": so_far(state) if state is not None and going else "",
        }
    )


def so_far(state: EpisodeState) -> str:
    """Describe the number of steps so far and their time."""
    return html.join_facts(plural(len(state.steps), "step"), figures.duration(state.seconds))


def buttons(going: bool, acts: bool) -> Markup:
    """Draw the Run button, or Stop during an episode."""
    if going:
        return html.button("Stop", "agent.stop")
    sent = "#agent-form"
    dataset = html.button("Run on a dataset", "agent.benchmark", disabled=not acts, with_=sent)
    return dataset + html.button("Run", "agent.run", kind="primary", disabled=not acts, with_=sent)


def draw(page: Page, event: Event) -> Markup:
    """Draw the workflow, environment, model, question and all settings."""
    bench, chosen = window_bench(page, event), window_form(page, event)
    workflow, env, llm = chosen.workflow, chosen.env, chosen.llm
    change, about = form.on_change("agent.choose"), agents.workflows()
    parts = form.chooser(
        "Workflow", "workflow", list(about), workflow, about[workflow], more=change
    )
    if agents.needs_environment(workflow):
        parts += form.chooser(
            "Environment", "env", agents.environments(page.workspace), env, more=change
        )
    parts += form.chooser("Model", "llm", list(page.workspace.llms()), llm, more=change)
    if page.workbench.asking.copies(llm):
        parts += html.warning(CANNOT_ACT.format(llm=llm)) + html.link(
            "Open Models", "#/models/list"
        )
    examples = page.workspace.questions(bench.dataset)[:500]
    title, typed = f"Question of {bench.dataset}, or your own", chosen.question
    question = typed or bench.question
    known = next((x.question.text for x in examples if x.question.qid == question), "")
    offered = [(x.question.qid, x.question.text[:120]) for x in examples]
    parts += form.text("question", title, question, "", known, change, offered)
    if agents.needs_python(workflow) and not page.workbench.allow_python:
        parts += html.warning(
            "This workflow runs programs that the model writes. Start rallebench with --allow-python to permit it."
        )
    settings = agents.forms(workflow, env)
    offers = catalog.choices(page.workspace, settings)
    groups = {"Environment settings": "", "Workflow settings": ""}
    for name, setting in settings.items():
        value, prefix = chosen.settings.get(name, setting.default), name.rpartition("env.")[1]
        group, title = list(groups)[not prefix], name.removeprefix(prefix)
        groups[group] += form.control(title, setting, value, offers.get(name), prefix)
    folds = Markup().join(
        html.fold(
            title, Markup('<div class="stack">{}</div>').format(fields), id=f"agent-{title[:3]}"
        )
        for title, fields in groups.items()
        if fields
    )
    return Markup('<div class="stack">{}</div>{}').format(parts, folds)


def remember(page: Page, event: Event) -> AgentForm:
    """Store the fields in the session. Raises UsageError."""
    before = window_form(page, event)
    workflow, env = event.text("workflow", before.workflow), event.text("env", before.env)
    settings = form.changed_settings(agents.forms(workflow, env), event)
    chosen = replace(
        before,
        llm=event.text("llm", before.llm),
        workflow=workflow,
        env=env,
        question=event.text("question", before.question),
        settings=settings,  # unknown values were refused above
    )
    event.session.put(chosen)
    return chosen


def choose(page: Page, event: Event) -> Patch:
    """Change workflow, environment, model or question."""
    remember(page, event)
    state = window_episode(page, event)
    going = state is not None and state.going
    return Patch(
        {"agent-form": draw(page, event), "agent-buttons": buttons(going, able(page, event))}
    )


def run(page: Page, event: Event) -> Iterator[Patch]:
    """Start an episode and follow it."""
    chosen, dataset = remember(page, event), window_bench(page, event).dataset
    question = episodes.chosen_example(page.workspace, dataset, chosen.question)
    yield from start(page, event, EpisodeRequest(*chosen.agent, *question))


def start(page: Page, event: Event, request: EpisodeRequest) -> Iterator[Patch]:
    """Load the backends, start the episode as a job, and follow it."""
    agent = page.workbench.asking.agent(
        request.workflow, request.env, request.llm, request.settings, seed=0
    )
    with page.workbench.models.lease(f"an episode of the agent {request.workflow!r}") as lease:
        for news in lease.load_for(agent.flow.llms, agent.flow.retrievers):
            yield Patch({"agent-status": Markup("{} …").format(news.message)})
        state = page.workbench.asking.start_episode(request)
    event.session.put(replace(window_form(page, event), episode=state.name))
    yield Patch(address="#/build/agent", drawer="")
    yield from watch(page, state.name)


def watch(page: Page, name: str) -> Iterator[Patch]:
    """Stream an episode as it runs."""
    seen = ""
    while (state := page.workbench.asking.episode(name)) is not None:
        if state.mark != seen:
            seen = state.mark
            yield parts(page, state)
        if not state.going:
            return
        time.sleep(PAUSE)


def stop(page: Page, event: Event) -> Patch:
    """Stop the episode immediately."""
    page.workbench.asking.stop_episode(window_form(page, event).episode)
    return Patch()


# drawing


def episode_html(page: Page, state: EpisodeState | None) -> Markup:
    """Draw the question; the thoughts, actions and observations in order; and the tree of a search."""
    if state is None:
        return html.empty(
            "Choose a workflow, a model and a question, then press Run. Every thought, action and observation appears here as it happens."
        )
    request = state.episode_request
    where = f" in {request.env}" if request.env else ""
    about = Markup("<small>{}</small>").format(f"{request.workflow}{where} · {request.llm}")
    body = question_html(request.example.question.text, about)
    if nodes := _branch(agents.search_tree(state.steps), 0):
        body += html.fold("The tree of the search", nodes, id="agent-tree", opened=True)
    body += _pieces(state)
    if state.steps and not state.going:
        steps = folds(state.steps, request.example.gold)
        count = plural(len(state.steps), "step")
        body += html.fold("Every request and reply", steps, gist=count, id="agent-requests")
    return body


def _pieces(state: EpisodeState) -> Markup:
    workflow = state.episode_request.workflow
    known, rows = actions(state.steps, workflow), Markup()
    for piece in pieces(state.steps, workflow):
        change = Markup()
        if piece.at in known and piece.kind in ("action", "program") and not state.going:
            change = html.button("Edit", "agent.edit", kind="quiet", at=piece.at)
        rows += _piece(piece, "", change)
    if state.request is not None:
        for piece in beginning(state.request, state.writing, workflow):
            rows += _piece(piece, " …")
    return rows


def _piece(piece: Piece, end: str, more: str = "") -> Markup:
    text = Markup('<span class="text" dir="auto">{}</span> {}').format(piece.text, more)
    return Markup('<div class="piece {}"><small>{}{}</small><div>{}</div></div>').format(
        piece.kind, piece.label, end, text
    )


def _branch(nodes: Sequence[Any], parent: int) -> Markup:
    """Draw the tree of a search workflow below a node; "" for other workflows."""
    rows = Markup()
    for node in nodes:
        if node.parent == parent:
            words = f"{node.move or node.thought}"[:300]
            observed = (
                Markup("<small>{}</small>").format(node.observation[:200])
                if node.observation
                else Markup()
            )
            state = Markup('<em class="tag">{}</em>').format(node.state.replace("_", " "))
            rows += Markup("<li>{} {} {}{}</li>").format(
                words, state, observed, _branch(nodes, node.number)
            )
    return Markup('<ul class="tree">{}</ul>').format(rows) if rows else Markup()


def outcome(page: Page, state: EpisodeState | None) -> Markup:
    """Draw the state or result of the episode: its answer next to the gold, its cost, and the next steps."""
    if state is None:
        return html.empty("The answer appears here.")
    if state.going:
        return Markup('<section class="verdict none"><h2>Running</h2>{}</section>').format(
            html.note(so_far(state))
        )
    episode, kind = state.episode, "failed"
    reason = episode.outcome.stop_reason if episode and episode.outcome else state.state
    if not state.error:
        kind = {True: "right", False: "wrong", None: "none"}[
            agents.is_right(state.episode, state.episode_request.example)
        ]
    title = TITLES[kind]
    if kind == "none":
        title = "Ended" if state.state == "ended" else "Stopped"
    facts = numbers_box(
        (f"{len(state.steps)}", "steps"),
        (figures.duration(state.seconds), "time"),
        (price(state.steps, page.workbench.models.prices_of_use()), "price"),
    )
    keeping = html.button("Keep as a run", "agent.keep", disabled=episode is None)
    if state.run:
        keeping = html.link(f"Run {state.run}", RunAddress(id=state.run).href)
    meaning = agents.meaning(reason)
    why = html.note(f"{meaning[:1].upper()}{meaning[1:]}.")
    answer = episode.answer if episode else ""
    gold = state.episode_request.example.gold
    box = verdict_box(kind, title, gold, answer, state.error, why, facts)
    return Markup('{}<div class="row">{}</div>').format(box, keeping)


def known_state(page: Page, event: Event) -> EpisodeState:
    """Return the episode of the window. Raises UsageError if it no longer exists."""
    state = window_episode(page, event)
    if state is None:
        raise UsageError("The episode is not known any more; run it again.")
    return state


def edit(page: Page, event: Event) -> Patch:
    """Open a drawer for editing an action of the episode."""
    state = known_state(page, event)
    at = event.position("at", len(state.steps))
    text = edit_text(state.steps[at].reply, state.episode_request.workflow)
    about = "The episode continues from here with your action; its later steps are dropped."
    go = html.button("Continue from here", "agent.continue", kind="primary", at=at)
    fields = form.area("text", "Action", text, 4, Markup(' class="mono"')) + html.note(about)
    return panels.form_drawer(f"Edit the action of step {at + 1}", fields, go)


def continue_(page: Page, event: Event) -> Iterator[Patch]:
    """Continue the episode from the edited action."""
    state = known_state(page, event)
    request, at = state.episode_request, event.position("at", len(state.steps))
    steps = before(state.steps, at, event.text("text"), request.workflow)
    yield from start(page, event, replace(request, before=steps))


def keep(page: Page, event: Event) -> Patch:
    """Save the episode as a run for comparisons."""
    name = episodes.save_episode(
        page.workspace, page.workbench.models.backends, window_episode(page, event)
    ).name
    return Patch(say=f"Kept as the run {name}.", go=RunAddress(id=name).href)


def benchmark(page: Page, event: Event) -> Patch:
    """Run the agent on a dataset: open the dialog for a new run on top of Agent."""
    remember(page, event)
    return page.call("runs.new", {"agent": "on"}, window=event.session.window)


def chosen_flow(page: Page, event: Event) -> FlowSpec:
    """Return the flow of the agent in this window's form. Raises UsageError."""
    return page.workbench.asking.agent(*window_form(page, event).agent).flow
