"""A conversation → the messages that a Chatbot shows. Pure: no widgets, no workbench, everything escaped.

A ``Turn`` is what one question has led to so far; ``heard`` adds an event to it. The Chatbot is drawn from
the turns and never read back, so nothing that is only shown (steps, errors, notes) can reach a prompt.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any, Literal, Union

from rallebench.chains.chain import evidence, prompt_of
from rallebench.chains.template import check, names_used
from rallebench.core.errors import TemplateError
from rallebench.core.types import (
    Action,
    Chain,
    Episode,
    Generate,
    Gold,
    Hit,
    Question,
    Request,
    Retrieve,
    Step,
)
from rallebench.engine.cost import Prices, usd_of
from rallebench.engine.single import Delta, Event, StepDone, StepStarted
from rallebench.gui import views, views_cost
from rallebench.gui.markdown import one_line, safe_markdown
from rallebench.metrics.cost import completion_tokens_of, prompt_tokens_of, speed
from rallebench.render import costs, numbers

KIND_NAMES = {"retrieve": "Retriever", "generate": "LLM", "identity": "Identity"}
LONGEST_MARK = 200
"""A longer answer is not looked for in the passages: only a span that was copied can stand there."""

EMPTY = (
    "### Ask the chain something\n\n"
    "It is answered by the chain of Develop, or by a saved one. "
    "Under each answer you can unfold its sources and what every action was asked and answered."
)


@dataclass(frozen=True, slots=True)
class Turn:
    """One question and what has come of it. ``final`` is the action (from 0) whose reply is the answer.

    ``activity`` says what is being done while ``state`` is running and ``waited`` for how many
    seconds nothing has come; ``note`` is a remark beside the answer. ``prices`` are the language models'.
    """

    question: str
    final: int = 0
    activity: str = "Reading the chain …"
    answer: str = ""
    steps: tuple[Step, ...] = ()
    error: str = ""
    note: str = ""
    prices: Prices = field(default_factory=dict)
    waited: int = 0
    state: Literal["running", "done", "stopped", "failed"] = "running"


# ── what happens → the turn ──────────────────────────────────────────────────


def final_action(chain: Chain) -> int:
    """The index of the last action that will run, -1 if none: an empty template ends a chain."""
    ran = [bool(action.template) for action in chain.actions]
    return (ran.index(False) if False in ran else len(ran)) - 1


def heard(turn: Turn, event: Union[str, Event]) -> Turn:
    """The turn after an event; a text is news about loading."""
    if isinstance(event, str):
        return replace(turn, activity=f"{event[:1].upper()}{event[1:]} …")
    if isinstance(event, StepStarted):
        return replace(
            turn,
            activity=f"Action {event.index + 1} of {turn.final + 1}: {asking(event.request)} …",
        )
    if isinstance(event, Delta):
        return replace(turn, answer=turn.answer + event.text) if event.index == turn.final else turn
    if isinstance(event, StepDone):
        answer = event.step.reply.text if event.index == turn.final else turn.answer
        return replace(turn, answer=answer, steps=(*turn.steps, event.step))
    return ended(turn, event)


def asking(request: Request) -> str:
    """What is being done for a request."""
    if isinstance(request, Retrieve):
        return f"searching {request.retriever}"
    return f"asking {request.llm}" if isinstance(request, Generate) else "filling in the template"


def ended(turn: Turn, episode: Episode) -> Turn:
    """The turn when its chain has ended: an error, or the reply of the last action that ran."""
    if episode.error:
        return replace(turn, steps=episode.steps, error=episode.error, state="failed")
    if not episode.steps:
        return replace(
            turn,
            error="The template of action 1 is empty, so nothing was asked; fill it in in Develop.",
            state="failed",
        )
    note = ""
    if episode.outcome and episode.outcome.stop_reason == "empty_template":
        note = f"The template of action {len(episode.steps) + 1} is empty: the chain stopped before it."
    return replace(
        turn, steps=episode.steps, answer=episode.steps[-1].reply.text, note=note, state="done"
    )


def stopped(turns: Sequence[Turn]) -> list[Turn]:
    """The turns, none of them running any more."""
    return [replace(turn, state="stopped") if turn.state == "running" else turn for turn in turns]


# ── the turns → messages ─────────────────────────────────────────────────────


def messages(turns: Sequence[Turn]) -> list[dict[str, Any]]:
    """Every turn: the question, the answer, and under it what can be unfolded."""
    shown: list[dict[str, Any]] = []
    for turn in turns:
        shown += [
            _message("user", safe_markdown(turn.question)),
            _message("assistant", answer(turn)),
        ]
        shown += [*_cost(turn), *_sources(turn)]
        shown += [_step(number, step, turn.prices) for number, step in enumerate(turn.steps, 1)]
    return shown


def _message(role: str, text: str, title: str = "", log: str = "") -> dict[str, Any]:
    # The dict form of the text: Chatbot strips and re-indents a plain str.
    message: dict[str, Any] = {"role": role, "content": [{"type": "text", "text": text}]}
    if title:
        message["metadata"] = {"title": _line(title), "log": log, "status": "done"}
    return message


def answer(turn: Turn) -> str:
    """What stands in the answer's place: what is being done, the text so far, or what went wrong."""
    text = _last_reply(turn)
    if turn.state == "running":
        waited = f" {views.duration(turn.waited)}" if turn.waited > 1 else ""
        return text or one_line(
            f'<span class="rb-chat-activity">{escape(turn.activity)}{waited}</span>'
        )
    remarks = [views.error(turn.error)] if turn.error else []
    if turn.state == "stopped":
        remarks.append(views.note("Stopped by you."))
    remarks.append(views.note(turn.note))
    if not text and turn.state == "done":
        text = '<span class="rb-chat-activity">The answer is empty.</span>'
    return "\n\n".join(part for part in (text, one_line("".join(remarks))) if part)


def _last_reply(turn: Turn) -> str:
    ended = turn.state == "done" or len(turn.steps) == turn.final + 1
    if ended and turn.steps and isinstance(turn.steps[-1].request, Retrieve):
        return _passages(turn.steps[-1].reply.hits)
    return safe_markdown(turn.answer)


def _passages(hits: Sequence[Hit]) -> str:
    if not hits:
        return "No passage shares anything with this question."
    return "\n".join(
        f"{rank}. **{_line(hit.passage.title or hit.passage.doc_id)}** {_line(hit.passage.text)}"
        for rank, hit in enumerate(hits, 1)
    )


def _line(text: str) -> str:
    """Text as one line of Markdown in which nothing is markup."""
    return re.sub(r"([\\`*_\[\]#~|$])", r"\\\1", escape(" ".join(text.split()), quote=False))


def _cost(turn: Turn) -> list[dict[str, Any]]:
    if turn.state == "running" or not turn.steps:
        return []
    title = f"Cost: {views_cost.question_line(turn.steps, turn.prices)}"
    table = one_line(views_cost.steps_table(turn.steps, turn.prices))
    return [_message("assistant", table, title, views_cost.question_remark(turn.steps))]


def _step(number: int, step: Step, prices: Prices) -> dict[str, Any]:
    html = views.step_prompt(step, Gold(), False) + views.response(
        step, Gold(), False, prices=prices
    )
    return _message("assistant", one_line(html), step_title(number, step), step_cost(step, prices))


def step_title(number: int, step: Step) -> str:
    """A step in a few words: its place, who was asked, and what came."""
    if isinstance(step.request, Retrieve):
        return f"{number} · Retriever {step.request.retriever}: {_count(len(step.reply.hits), 'passage')}"
    return (
        f"{number} · LLM {step.request.llm}"
        if isinstance(step.request, Generate)
        else f"{number} · Identity"
    )


def step_cost(step: Step, prices: Prices) -> str:
    """Tokens, speed, dollars, seconds, and whether the reply came from memory."""
    parts = []
    if isinstance(step.request, Generate):
        dollars = usd_of(step, prices)
        parts = [
            costs.tokens(prompt_tokens_of(step), completion_tokens_of(step)),
            costs.speed(speed([step])),
            "" if dollars is None else numbers.text(sum(dollars), "usd"),
        ]
    seconds = numbers.text(step.seconds, "seconds", numbers.UNKNOWN)
    return ", ".join(
        filter(None, [*parts, f"from memory (took {seconds} then)" if step.cached else seconds])
    )


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def sources(turn: Turn) -> list[Hit]:
    """The retrieved passages that stand word for word in the last prompt, best first, each once."""
    if turn.state != "done" or len(turn.steps) < 2:
        return []
    seen = evidence(
        prompt_of(turn.steps[-1].request), Question("", turn.question), turn.steps[:-1]
    ).passages
    hits = {
        hit.passage.doc_id: hit
        for step in reversed(turn.steps[:-1])
        for hit in reversed(step.reply.hits)
    }
    return [hits[passage.doc_id] for passage in seen]


def _sources(turn: Turn) -> list[dict[str, Any]]:
    hits = sources(turn)
    if not hits:
        return []
    pages = len({hit.passage.page_id or hit.passage.doc_id for hit in hits})
    said = turn.answer.strip()
    wanted = [said] if 1 < len(said) <= LONGEST_MARK else []
    html = "".join(_source(number, hit, wanted) for number, hit in enumerate(hits, 1))
    title = f"Sources: {_count(len(hits), 'passage')} from {_count(pages, 'page')}"
    return [
        _message(
            "assistant",
            one_line(f'<div class="rb-hits">{html}</div>'),
            title,
            "as they stood in the last prompt",
        )
    ]


def _source(number: int, hit: Hit, wanted: Sequence[str]) -> str:
    passage = hit.passage
    title = escape(passage.title or "(no title)")
    page = f"page {escape(passage.page_id)}" if passage.page_id else "no page id"
    return (
        f'<div class="rb-hit"><div class="rb-hit-head"><b>{number}</b> <b>{title}</b>'
        f'<span>{page}</span><span class="score">{hit.score:.4f}</span></div>'
        f"{views.marked(passage.text, wanted)}</div>"
    )


# ── beside the conversation ──────────────────────────────────────────────────


def chain_line(chain: Chain) -> str:
    """Which chain answers, and whether it sees the earlier turns. As HTML."""
    actions = chain.actions[: final_action(chain) + 1]
    if not actions:
        return views.error(
            f"The template of action 1 of {chain.name} is empty; fill it in in Develop."
        )
    sees = False
    for number, action in enumerate(actions, 1):
        try:
            check(action.template, action.dialect)
        except TemplateError as error:
            return views.error(f"{chain.name}, action {number}: {error}")
        sees = sees or "history" in names_used(action.template, action.dialect)
    badge = (
        views.badge("sees earlier turns", "good")
        if sees
        else views.badge("each question stands alone: no {history}")
    )
    flow = " → ".join(escape(_who(action)) for action in actions)
    return f'<div class="rb-label"><b>{escape(chain.name)}</b> <span>{flow}</span> {badge}</div>'


def _who(action: Action) -> str:
    return f"{KIND_NAMES[action.kind]} {action.target}" if action.kind != "identity" else "Identity"
