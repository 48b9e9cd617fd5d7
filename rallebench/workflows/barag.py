"""The boolean agent and what it is compared with: ways of deciding whether passages are read (arXiv:2402.16874).

``barag-baseline``   never
``barag-gt``         never, but the right article is there: what could be reached at best
``barag-naive``      always
``barag-basic``      the model is asked whether it wants to query the database, before it answers
``barag-advanced``   the model answers, and is then asked whether it could have done better with more information

Every request counts: a question's tokens are those of its draft, its decision and its answer. Whether passages were read is
told by the stop reason (``READ``). ``compat`` "original" does as the published code does: empty messages are sent, and a basic
agent that calls no function answers with an apology.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass

from rallebench.core.settings import Setting
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
    Request,
    Retrieve,
    ToolSpec,
)
from rallebench.workflows import WORKFLOWS
from rallebench.workflows.barag_decisions import MORE, RETRIEVAL, read_boolean

PAPER = "arXiv:2402.16874"
LONGEST_QUERY = 2000
TURNS, TURN_CHARACTERS = 3, 8000
JOIN = "\n \n"
"""What stands before, between and after the chunks of a context."""
OWN, READ, BLANK, TOO_LONG, NO_CALL = (
    "without passages",
    "with passages",
    "blank",
    "too long",
    "no call",
)
"""How an episode stops."""
UNDECIDED = "The decision could not be read, so passages are fetched."
SORRY_LONG = f"Your question has more than {LONGEST_QUERY} characters; please ask a shorter one."
SORRY_CALL = "Sorry, somethings wrong, try again later (getContext)."
"""What the published basic agent answers, in its spelling, where the model calls no function."""

Asking = Generator[Request, Reply, Reply]


@dataclass(frozen=True, slots=True)
class Prompts:
    """The texts of the agents: two system prompts, and two decisions asked for in words."""

    naive: str
    basic: str
    basic_decide: str
    advanced_decide: str


@dataclass(frozen=True, slots=True)
class Agent:
    """What all modes share. ``temperature``: of answers (decisions are greedy; None leaves it to the model).

    ``calls``: how a decision is asked for, ``tools`` or ``text``. ``layout``: ``original`` sends context and query as two
    user messages; ``merged`` as one, with the system's text in it, for models that take nothing else. ``history``:
    whether earlier turns are sent. ``logprobs``: whether the model is asked for them.
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

    @property
    def original(self) -> bool:
        """Whether it does as the published code does."""
        return self.compat == "original"


SETTINGS = {
    "k": Setting(int, 5, 1, 1000, about="passages read"),
    "temperature": Setting(float, 1.0, 0, 2, about="of answers; decisions are greedy"),
    "max_tokens": Setting(int, 512, 1, 100_000),
    "layout": Setting(
        str,
        "original",
        choices=("original", "merged"),
        about="merged: one user message, for models that take no two",
    ),
    "compat": Setting(str, "corrected", choices=("corrected", "original")),
}
"""What every mode takes."""


# ── the modes ───────────────────────────────────────────────────────────


@WORKFLOWS.register(
    "barag-baseline",
    settings=SETTINGS,
    needs_env=False,
    needs_python=False,
    needs_retriever=False,
    paper=PAPER,
)
def baseline(question: Question, *, agent: Agent) -> Flow:
    """The model's own knowledge: no system prompt, no passages."""
    if (refused := refusal(question)) is not None:
        return refused
    reply = yield from answer(question, agent, "", ())
    return Outcome(reply.text, OWN)


@WORKFLOWS.register(
    "barag-naive",
    settings=SETTINGS,
    needs_env=False,
    needs_python=False,
    needs_retriever=True,
    paper=PAPER,
)
def naive(question: Question, *, agent: Agent) -> Flow:
    """Passages always, then one answer."""
    if (refused := refusal(question)) is not None:
        return refused
    found = yield Retrieve(agent.retriever, question.text, agent.k)
    reply = yield from answer(question, agent, agent.prompts.naive, found.hits)
    return Outcome(reply.text, READ)


@WORKFLOWS.register(
    "barag-gt",
    settings=SETTINGS,
    needs_env=False,
    needs_python=False,
    needs_retriever=False,
    paper=PAPER,
)
def ground_truth(question: Question, *, agent: Agent) -> Flow:
    """The right article as the context: the question's own passages, nothing is searched for."""
    if (refused := refusal(question)) is not None:
        return refused
    reply = yield from answer(
        question,
        agent,
        agent.prompts.naive,
        tuple(Hit(passage, 0.0) for passage in question.passages),
    )
    return Outcome(reply.text, READ)


@WORKFLOWS.register(
    "barag-basic",
    settings=SETTINGS,
    needs_env=False,
    needs_python=False,
    needs_retriever=True,
    paper=PAPER,
)
def basic(question: Question, *, agent: Agent) -> Flow:
    """The model may query the database, and is told to save tokens; then it answers."""
    if (refused := refusal(question)) is not None:
        return refused
    sent = laid_out(agent.prompts.basic, _history(question, agent), (question.text,), agent)
    wants = yield from decision(
        sent, RETRIEVAL, "retrieve", agent, agent.prompts.basic_decide, "auto"
    )
    if wants is None and agent.original:
        return Outcome(SORRY_CALL, NO_CALL)
    hits: tuple[Hit, ...] = ()
    if wants is not False:
        if wants is None:
            yield Note(UNDECIDED)
        hits = (yield Retrieve(agent.retriever, question.text, agent.k)).hits
    reply = yield from answer(question, agent, agent.prompts.basic, hits)
    return Outcome(reply.text, READ if wants is not False else OWN)


@WORKFLOWS.register(
    "barag-advanced",
    settings=SETTINGS,
    needs_env=False,
    needs_python=False,
    needs_retriever=True,
    paper=PAPER,
)
def advanced(question: Question, *, agent: Agent) -> Flow:
    """The model answers, is asked whether more information would have helped, and then perhaps reads passages."""
    if (refused := refusal(question)) is not None:
        return refused
    drafted = yield from draft(question, agent)
    wants = yield from more_information(question, drafted, agent)
    if wants is False:
        return Outcome(drafted.text, OWN)
    if wants is None:
        yield Note(UNDECIDED)
    found = yield Retrieve(agent.retriever, question.text, agent.k)
    reply = yield from answer(question, agent, agent.prompts.naive, found.hits)
    return Outcome(reply.text, READ)


MODES = {
    "baseline": baseline,
    "gt": ground_truth,
    "naive": naive,
    "basic": basic,
    "advanced": advanced,
}


# ── their steps ──────────────────────────────────────────────────────────────


def refusal(question: Question) -> Outcome | None:
    """What is answered without asking anybody: nothing to a blank query, an apology to one that is too long."""
    if not question.text.strip():
        return Outcome("", BLANK)
    return Outcome(SORRY_LONG, TOO_LONG) if len(question.text) > LONGEST_QUERY else None


def draft(question: Question, agent: Agent, *, seed: int | None = None) -> Asking:
    """The bare query, without a system prompt."""
    sent = (*_history(question, agent), Message("user", question.text))
    return (yield _answering(agent, sent, Evidence(question.text), seed))


def more_information(
    question: Question, drafted: Reply, agent: Agent
) -> Generator[Request, Reply, bool | None]:
    """Whether the model could have answered better with more information; the function is forced."""
    sent = (
        *_history(question, agent),
        Message("user", question.text),
        Message("assistant", drafted.text),
    )
    return (
        yield from decision(sent, MORE, "moreInfo", agent, agent.prompts.advanced_decide, MORE.name)
    )


def answer(
    question: Question, agent: Agent, system: str, hits: Sequence[Hit], *, seed: int | None = None
) -> Asking:
    """The last request of every mode: system prompt, history, context, query."""
    context = context_of(hits)
    sent = laid_out(system, _history(question, agent), (context, question.text), agent)
    evidence = Evidence(question.text, tuple(hit.passage for hit in hits))
    return (yield _answering(agent, sent, evidence, seed))


def decision(
    sent: tuple[Message, ...], tool: ToolSpec, name: str, agent: Agent, words: str, choice: str
) -> Generator[Request, Reply, bool | None]:
    """One greedy decision; ``choice`` is ``auto`` or the name of the function that is forced. None: it cannot be read."""
    if agent.calls == "text":
        sent = _joined(sent, words)
        reply = yield Generate(agent.llm, sent, max_tokens=64, temperature=0.0, seed=agent.seed)
    else:
        # Left to itself, a model that is offered tools calls as it likes, which is what "auto" says.
        options = (
            {}
            if choice == "auto"
            else {"tool_choice": {"type": "function", "function": {"name": choice}}}
        )
        reply = yield Generate(
            agent.llm,
            sent,
            (tool,),
            max_tokens=64,
            temperature=0.0,
            seed=agent.seed,
            options=options,
        )
    if agent.original and agent.calls == "tools" and not reply.tool_calls:
        return None
    return read_boolean(reply, name)


def context_of(hits: Sequence[Hit]) -> str:
    """The chunks as they are sent, '' for none. Every chunk begins with its title, which the index may have put there.

    >>> from rallebench.core.types import Passage
    >>> context_of([Hit(Passage("1", "Title: A\\none"), 2.0), Hit(Passage("2", "two", "B"), 1.0)])
    '\\n \\nTitle: A\\none\\n \\nTitle: B\\ntwo\\n \\n'
    """
    chunks = []
    for hit in hits:
        passage = hit.passage
        titled = not passage.title or passage.text.startswith("Title: ")
        chunks.append(passage.text if titled else f"Title: {passage.title}\n{passage.text}")
    return JOIN + "".join(chunk + JOIN for chunk in chunks) if chunks else ""


def laid_out(
    system: str, history: Sequence[Message], texts: Sequence[str], agent: Agent
) -> tuple[Message, ...]:
    """System prompt, history, then one user message per text; empty ones are sent as the original does, or not at all."""
    kept = list(texts) if agent.original else [text for text in texts if text]
    if agent.layout == "merged":
        user = "\n\n".join(text.strip() for text in (system, *kept) if text.strip())
        return (*history, Message("user", user))
    first = [Message("system", system)] if system or agent.original else []
    return (*first, *history, *(Message("user", text) for text in kept))


def recent(history: Sequence[Message]) -> tuple[Message, ...]:
    """The last three turns, fewer where they have more than 24,000 characters together."""
    turns: list[list[Message]] = []
    for message in history:
        if message.role == "user" or not turns:
            turns.append([])
        turns[-1].append(message)
    turns = turns[-TURNS:]
    while (
        turns
        and sum(len(message.content) for turn in turns for message in turn)
        > TURNS * TURN_CHARACTERS
    ):
        turns = turns[1:]
    return tuple(message for turn in turns for message in turn)


def _history(question: Question, agent: Agent) -> tuple[Message, ...]:
    return recent(question.history) if agent.history else ()


def _joined(sent: tuple[Message, ...], words: str) -> tuple[Message, ...]:
    """``words`` as the user's last message; two in a row would not fit every model."""
    *before, last = sent
    if last.role == "user":
        return (*before, Message("user", f"{last.content}\n\n{words}"))
    return (*sent, Message("user", words))


def _answering(
    agent: Agent, sent: tuple[Message, ...], evidence: Evidence, seed: int | None = None
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
