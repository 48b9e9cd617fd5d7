"""The boolean agents and their baselines: five rules for reading passages (arXiv:2403.00820).

``barag-baseline``   never
``barag-gt``         never, but the prompt contains the right article: the upper bound
``barag-naive``      always
``barag-basic``      if the model, asked before answering, wants to query the database
``barag-advanced``   if the model, asked after answering, says that more information would have helped

All requests count: a question's tokens include its draft, its decision and its answer. The stop reason ``READ`` marks episodes
with passages. ``compat`` "original" follows the published code: it sends empty messages, and a basic agent that calls no
function answers with an apology.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any

from rallebench.core.choosing import choose, reply_choice
from rallebench.core.settings import Setting, dataclass_form, declare, declare_text
from rallebench.core.types import (
    Evidence,
    Flow,
    Generate,
    Hit,
    Message,
    Note,
    Outcome,
    Question,
    Reply,
    Retrieve,
    SubFlow,
    ToolSpec,
)
from rallebench.papers.barag.decisions import MORE, RETRIEVAL, boolean_texts, read_boolean
from rallebench.workflows import WORKFLOWS

PAPER = "arXiv:2403.00820"
LONGEST_QUERY = 2000
TURNS, TURN_CHARACTERS = 3, 8000
JOIN = "\n \n"
"""The separator before, between and after the chunks of a context."""
OWN, READ = "without passages", "with passages"
BLANK, TOO_LONG, NO_CALL = "blank", "too long", "no call"
"""The stop reasons of an episode."""
UNDECIDED = "The decision could not be read, so passages are fetched."
SORRY_LONG = f"Your question has more than {LONGEST_QUERY} characters; please ask a shorter one."
SORRY_CALL = "Sorry, somethings wrong, try again later (getContext)."
"""The published basic agent's answer, in its own spelling, if the model calls no function."""


@dataclass(frozen=True, slots=True)
class Prompts:
    """The texts of the agents: two system prompts, and two decision prompts for models that answer in words."""

    naive: str
    basic: str
    basic_decide: str
    advanced_decide: str


@dataclass(frozen=True, slots=True)
class BaragAgent:
    """The settings of all modes. ``temperature``: for answers; None uses the model's default. Decisions are greedy.

    ``calls``: the form of a decision, ``tools``, ``text`` or ``choice`` (by the probabilities of true and false).
    ``layout``: ``original`` sends context and query as two user messages, ``merged`` sends system prompt, context and query as one. ``history``: send earlier turns. ``logprobs``: request
    token probabilities. ``draft_llm``: a cheaper model that drafts and decides, '' for ``llm``; an answer without passages is
    its draft.
    """

    llm: str
    prompts: Prompts
    retriever: str = ""
    k: int = 5
    temperature: float | None = 1.0
    max_tokens: int | None = None
    seed: int | None = None
    calls: str = "tools"
    layout: str = "original"
    compat: str = "corrected"
    history: bool = False
    logprobs: bool = False
    draft_llm: str = ""

    @property
    def drafter(self) -> str:
        """The model that drafts and decides."""
        return self.draft_llm or self.llm

    @property
    def original(self) -> bool:
        return self.compat == "original"


@dataclass(frozen=True, slots=True)
class ModeSettings:
    """The settings of every mode."""

    k: int = declare(int, 5, 1, 1000, about="passages read")
    temperature: float = declare(
        float, 1.0, 0, 2, about="of answers; decisions are greedy", advanced=True
    )
    max_tokens: int = declare(int, 512, 1, 100_000, advanced=True)
    layout: str = declare_text(
        "merged: one user message, for models that take only one",
        "original",
        "merged",
        advanced=True,
    )
    compat: str = declare_text("", "corrected", "original", advanced=True)


MODE_FORM = dataclass_form(ModeSettings)


# ── the modes ───────────────────────────────────────────────────────────


def refusal(question: Question) -> Outcome | None:
    """The outcome of a query that is not sent: no answer to a blank query, an apology for a query that is too long. None for
    other queries."""
    if not question.text.strip():
        return Outcome("", BLANK)
    return Outcome(SORRY_LONG, TOO_LONG) if len(question.text) > LONGEST_QUERY else None


def register_mode(
    name: str, *, form: Mapping[str, Setting] = MODE_FORM, needs_retriever: bool = True
) -> Callable[[Callable[..., Flow]], Callable[..., Flow]]:
    """Register ``flow(question, *, agent, …)`` as a workflow that refuses blank and too long queries."""

    def register(flow: Callable[..., Flow]) -> Callable[..., Flow]:
        @wraps(flow)
        def workflow(question: Question, **settings: Any) -> Flow:
            refused = refusal(question)
            return refused if refused is not None else (yield from flow(question, **settings))

        needs: dict[str, Any] = {
            "needs_env": False,
            "needs_python": False,
            "needs_retriever": needs_retriever,
        }
        WORKFLOWS.register(name, form=form, paper=PAPER, **needs)(workflow)
        return workflow

    return register


@register_mode("barag-baseline", needs_retriever=False)
def baseline(question: Question, *, agent: BaragAgent) -> Flow:
    """The model's own knowledge: no system prompt, no passages."""
    reply = yield from answer(question, agent, "", ())
    return Outcome(reply.text, OWN)


@register_mode("barag-naive")
def naive(question: Question, *, agent: BaragAgent) -> Flow:
    """Always passages, then one answer."""
    result = yield Retrieve(agent.retriever, question.text, agent.k)
    reply = yield from answer(question, agent, agent.prompts.naive, result.hits)
    return Outcome(reply.text, READ)


@register_mode("barag-gt", needs_retriever=False)
def ground_truth(question: Question, *, agent: BaragAgent) -> Flow:
    """The right article as the context: the question's own passages, without a search."""
    hits = tuple(Hit(passage, 0.0) for passage in question.passages)
    reply = yield from answer(question, agent, agent.prompts.naive, hits)
    return Outcome(reply.text, READ)


@register_mode("barag-basic")
def basic_agent(question: Question, *, agent: BaragAgent) -> Flow:
    """The model decides whether to query the database, told to save tokens; then it answers."""
    sent = lay_out(agent.prompts.basic, _history(question, agent), (question.text,), agent)
    words = agent.prompts.basic_decide
    wants = yield from decision(sent, RETRIEVAL, "retrieve", agent, words, "auto")
    if wants is None and agent.original:
        return Outcome(SORRY_CALL, NO_CALL)
    hits: tuple[Hit, ...] = ()
    if wants is not False:
        if wants is None:
            yield Note(UNDECIDED)
        hits = (yield Retrieve(agent.retriever, question.text, agent.k)).hits
    reply = yield from answer(question, agent, agent.prompts.basic, hits)
    return Outcome(reply.text, READ if wants is not False else OWN)


@register_mode("barag-advanced")
def advanced_agent(question: Question, *, agent: BaragAgent) -> Flow:
    """The model answers, is asked whether more information would have helped, and then perhaps reads passages."""
    drafted = yield from draft(question, agent)
    wants = yield from more_information(question, drafted, agent)
    if wants is False:
        return Outcome(drafted.text, OWN)
    if wants is None:
        yield Note(UNDECIDED)
    result = yield Retrieve(agent.retriever, question.text, agent.k)
    reply = yield from answer(question, agent, agent.prompts.naive, result.hits)
    return Outcome(reply.text, READ)


MODES = {
    "baseline": baseline,
    "gt": ground_truth,
    "naive": naive,
    "basic": basic_agent,
    "advanced": advanced_agent,
}


# ── their steps ──────────────────────────────────────────────────────────────


def draft(question: Question, agent: BaragAgent, *, seed: int | None = None) -> SubFlow[Reply]:
    """Send the bare query, without a system prompt."""
    sent = (*_history(question, agent), Message("user", question.text))
    drafting = replace(agent, llm=agent.drafter)
    return (yield _answering(drafting, sent, Evidence(question.text), seed))


def more_information(question: Question, drafted: Reply, agent: BaragAgent) -> SubFlow[bool | None]:
    """Return whether more information would have improved the answer, according to the model; the function call is forced."""
    turn = Message("user", question.text), Message("assistant", drafted.text)
    sent = (*_history(question, agent), *turn)
    words = agent.prompts.advanced_decide
    return (yield from decision(sent, MORE, "moreInfo", agent, words, MORE.name))


def answer(
    question: Question,
    agent: BaragAgent,
    system: str,
    hits: Sequence[Hit],
    *,
    seed: int | None = None,
) -> SubFlow[Reply]:
    """The final request of every mode: system prompt, history, context, query."""
    context = context_text(hits)
    sent = lay_out(system, _history(question, agent), (context, question.text), agent)
    evidence = Evidence(question.text, tuple(hit.passage for hit in hits))
    return (yield _answering(agent, sent, evidence, seed))


def decision(
    sent: tuple[Message, ...], tool: ToolSpec, name: str, agent: BaragAgent, words: str, choice: str
) -> SubFlow[bool | None]:
    """One greedy decision; None if it cannot be parsed. ``choice``: ``auto`` or the name of a forced function."""
    if agent.calls == "choice":
        request = choose(agent.drafter, _append_words(sent, words), boolean_texts(name))
        reply = yield request
        return read_boolean(
            replace(reply, text=reply_choice(reply, request).chosen or reply.text), name
        )
    if agent.calls == "text":
        sent = _append_words(sent, words)
        reply = yield Generate(
            agent.drafter, sent, max_tokens=64, temperature=0.0, seed=agent.seed, roomy=True
        )
    else:
        # without tool_choice, a model decides by itself, which is "auto"
        forced = {"tool_choice": {"type": "function", "function": {"name": choice}}}
        reply = yield Generate(
            agent.drafter,
            sent,
            (tool,),
            max_tokens=64,
            roomy=True,
            temperature=0.0,
            seed=agent.seed,
            options={} if choice == "auto" else forced,
        )
    if agent.original and agent.calls == "tools" and not reply.tool_calls:
        return None
    return read_boolean(reply, name)


def context_text(hits: Sequence[Hit]) -> str:
    """The text of all chunks; '' without chunks. Each chunk begins with its title, unless the index already includes it.

    >>> from rallebench.core.types import Passage
    >>> context_text([Hit(Passage("1", "Title: A\\none"), 2.0), Hit(Passage("2", "two", "B"), 1.0)])
    '\\n \\nTitle: A\\none\\n \\nTitle: B\\ntwo\\n \\n'
    """
    chunks = []
    for hit in hits:
        passage = hit.passage
        titled = not passage.title or passage.text.startswith("Title: ")
        chunks.append(passage.text if titled else f"Title: {passage.title}\n{passage.text}")
    return JOIN + "".join(chunk + JOIN for chunk in chunks) if chunks else ""


def lay_out(
    system: str, history: Sequence[Message], texts: Sequence[str], agent: BaragAgent
) -> tuple[Message, ...]:
    """System prompt, history, then one user message per text; empty texts are sent only in the original layout."""
    contents = list(texts) if agent.original else [text for text in texts if text]
    if agent.layout == "merged":
        user = "\n\n".join(text.strip() for text in (system, *contents) if text.strip())
        return (*history, Message("user", user))
    first = [Message("system", system)] if system or agent.original else []
    return (*first, *history, *(Message("user", text) for text in contents))


def recent_turns(history: Sequence[Message]) -> tuple[Message, ...]:
    """The last three turns, or fewer to stay within 24,000 characters."""
    turns: list[list[Message]] = []
    for message in history:
        if message.role == "user" or not turns:
            turns.append([])
        turns[-1].append(message)
    turns = turns[-TURNS:]
    most = TURNS * TURN_CHARACTERS
    while turns and sum(len(message.content) for turn in turns for message in turn) > most:
        turns = turns[1:]
    return tuple(message for turn in turns for message in turn)


def _history(question: Question, agent: BaragAgent) -> tuple[Message, ...]:
    return recent_turns(question.history) if agent.history else ()


def _append_words(sent: tuple[Message, ...], words: str) -> tuple[Message, ...]:
    """The messages with ``words`` appended to the user's last one, since some models reject two user messages in a row."""
    *before, last = sent
    if last.role == "user":
        return (*before, Message("user", f"{last.content}\n\n{words}"))
    return (*sent, Message("user", words))


def _answering(
    agent: BaragAgent, sent: tuple[Message, ...], evidence: Evidence, seed: int | None = None
) -> Generate:
    return Generate(
        agent.llm,
        sent,
        max_tokens=agent.max_tokens,
        temperature=agent.temperature,
        seed=agent.seed if seed is None else seed,
        options={"logprobs": True} if agent.logprobs else {},
        evidence=evidence,
    )
