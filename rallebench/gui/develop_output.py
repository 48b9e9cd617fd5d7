"""What Develop shows of an execution: the steps, a status line, and each action's prompt and response.

They stand in one flat list, ``[steps, status, prompt 1, response 1, prompt 2, …]``, as components and as updates.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import gradio as gr

from rallebench.chains.chain import prompt_of
from rallebench.chains.saved import MAX_ACTIONS
from rallebench.core.errors import RalleError
from rallebench.core.types import Chain, Episode, Example, Outcome, Step
from rallebench.engine.cost import Prices
from rallebench.engine.single import Delta, Event, StepDone, StepStarted
from rallebench.gui import keepalive as pulse
from rallebench.gui import views, views_cost
from rallebench.gui.session import warn_of_memory
from rallebench.services.workbench import Workbench

Steps = dict[int, Step]
SIZE = 2 + 2 * MAX_ACTIONS
ENDS_HERE = "The template is empty: a chain ends before such an action."


def blank() -> list[Any]:
    """As it is before anything ran."""
    return [
        {},
        "",
        *[views.empty(views.EMPTY_PROMPT), views.empty(views.EMPTY_RESPONSE)] * MAX_ACTIONS,
    ]


def unchanged() -> list[Any]:
    """Everything stays as it is."""
    return [gr.skip()] * SIZE


def place(index: int) -> slice:
    """Where prompt and response of action ``index`` stand."""
    return slice(2 + 2 * index, 4 + 2 * index)


def prefix(steps: Steps, index: int) -> list[Step]:
    """The steps of the actions before ``index`` that ran without a gap."""
    found: list[Step] = []
    while len(found) < index and len(found) in steps:
        found.append(steps[len(found)])
    return found


def show_step(workbench: Workbench, step: Step, example: Example, mark: bool) -> list[str]:
    """Prompt and response of a step as HTML."""
    rank = None
    if mark:
        try:
            rank = workbench.asking.gold_rank(step, example.gold.pages)
        except RalleError:
            rank = None
    came = views.response(step, example.gold, mark, rank, prices=workbench.models.prices())
    return [views.step_prompt(step, example.gold, mark), came]


def one_action(
    workbench: Workbench, chain: Chain, index: int, example: Example, mark: bool, steps: Steps
) -> Iterator[list[Any]]:
    """Run one action on what the earlier ones answered: updates of steps, status, its prompt and its response.

    Later steps are forgotten. MLflow is told once the answer is shown.
    """
    if not chain.actions[index].template:
        yield [gr.skip(), "", gr.skip(), views.note(ENDS_HERE)]
        return
    step, said = None, ""
    yield [gr.skip(), views.note(f"Running action {index + 1} …"), gr.skip(), views.empty("…")]
    try:
        for news in loading(workbench, replace(chain, actions=(chain.actions[index],))):
            yield [gr.skip(), news, gr.skip(), gr.skip()]
        step = workbench.asking.execute_action(chain, index, example.question, prefix(steps, index))
        warn_of_memory(workbench)
    except RalleError as error:
        said = str(error)
    if step is None:
        yield [gr.skip(), "", gr.skip(), views.error(said)]
    else:
        kept = {**{i: s for i, s in steps.items() if i < index}, index: step}
        yield [kept, "", *show_step(workbench, step, example, mark)]
    outcome = Outcome(step.reply.text) if step else None
    episode = Episode(example.question.qid, "chain", (step,) if step else (), outcome, said)
    workbench.tracking.trace(episode, example.question.text, "develop")


def whole_chain(
    workbench: Workbench, chain: Chain, example: Example, mark: bool
) -> Iterator[list[Any]]:
    """Run every action up to the last: updates as each starts, streams and ends. MLflow is told at the end."""
    yield [{}, views.note("Loading what the chain names …"), *blank()[2:]]
    watched = EpisodeState(workbench, example, mark, len(chain.actions))
    try:
        for news in loading(workbench, chain):
            yield with_status(news)
        last = time.monotonic()
        for event in pulse.pulsed(
            workbench.asking.execute_chain(chain, example.question, stream=True), "develop"
        ):
            if isinstance(event, Delta):
                watched.written += event.text
                if time.monotonic() - last < pulse.PACE:
                    continue
                last = time.monotonic()
            yield unchanged() if event is None else watched.screen(event)
            if isinstance(event, Episode):
                warn_of_memory(workbench)
                workbench.tracking.trace(event, example.question.text, "develop")
    except RalleError as error:
        yield with_status(views.error(str(error)))


def loading(workbench: Workbench, chain: Chain) -> Iterator[str]:
    """News about loading what the chain names, as HTML. Raises RalleError."""
    with workbench.models.lease(f"the chain {chain.name!r}, which is being executed") as lease:
        for event in lease.load_for(chain.llms, chain.retrievers, heavy=False):
            yield views.note(f"{event.message[:1].upper()}{event.message[1:]} …")


def with_status(html: str) -> list[Any]:
    """Only the status line changes."""
    return [gr.skip(), html, *unchanged()[2:]]


@dataclass
class EpisodeState:
    """A chain that is being executed, and what the page shows of each of its events; ``written``: the text so far of the
    answer that is being streamed."""

    workbench: Workbench
    example: Example
    mark: bool
    actions: int
    steps: Steps = field(default_factory=dict)
    written: str = ""

    def screen(self, event: Event) -> list[Any]:
        """Updates for steps, status and every prompt and response; what did not change is skipped."""
        screen, gold = unchanged(), self.example.gold
        if isinstance(event, Episode):
            return end_of_chain(event, screen, self.workbench.models.prices())
        prompt, response = range(SIZE)[place(event.index)]
        if isinstance(event, StepStarted):
            self.written = ""
            screen[1] = views.note(f"Running action {event.index + 1} of {self.actions} …")
            screen[prompt] = views.prompt(prompt_of(event.request), gold, self.mark)
            screen[response] = views.empty("…")
        elif isinstance(event, Delta):
            body = views.marked(self.written, gold.answers, self.mark)
            screen[response] = views.text_box("Response", body)
        elif isinstance(event, StepDone):
            self.steps = screen[0] = {**self.steps, event.index: event.step}
            screen[place(event.index)] = show_step(
                self.workbench, event.step, self.example, self.mark
            )
        return screen


def end_of_chain(episode: Episode, screen: list[Any], prices: Prices) -> list[Any]:
    """What the page shows when a chain ended: its cost, or its error where it happened."""
    if episode.error:
        screen[1] = views.error(episode.error)
        at = 3 + 2 * len(episode.steps)
        if at < len(screen):
            screen[at] = views.error(episode.error)
        return screen
    actions = f"{len(episode.steps)} action{'s' * (len(episode.steps) != 1)}"
    line = [
        views_cost.question_line(episode.steps, prices),
        views_cost.question_remark(episode.steps),
    ]
    screen[1] = views.note(f"Done: {actions}, {', '.join(filter(None, line))}.", "good")
    if episode.outcome and episode.outcome.stop_reason == "empty_template":
        screen[1] = views.note(
            f"Stopped before action {len(episode.steps) + 1}: its template is empty."
        )
    return screen
