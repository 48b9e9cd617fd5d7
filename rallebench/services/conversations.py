"""Conversations: turns with their answers. A turn that is repeated or edited keeps its earlier answers."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from rallebench.chains.chain import sources
from rallebench.chains.conversation import reads_history, standalone
from rallebench.core.errors import RalleError, UsageError
from rallebench.core.live import Delta, Event, StepDone, StepStarted
from rallebench.core.stopping import Stop
from rallebench.core.types import Chain, Episode, Generate, Hit, Message, Question, Retrieve, Step
from rallebench.services.asking import REWRITING, Asking
from rallebench.services.citations import CitedSentence, cite_sentences

HISTORY_TURNS, HISTORY_CHARACTERS, MESSAGE_CHARACTERS = 10, 8_000, 2_000
"""Maximum turns and characters of a conversation passed to a chain, and characters of each message. The total is
about 2,000 tokens, which leaves small models room to answer.
"""

Support = tuple[list[Hit], tuple[CitedSentence, ...]]
State = Literal["running", "done", "stopped", "failed"]
Mark = Literal["", "right", "wrong"]
"""A person's judgement of an answer; "" without one."""


@dataclass(frozen=True, slots=True)
class Correction:
    """The right answers to a question as a person gave them. ``pages``: id → title of the pages that hold them;
    ``dataset``, ``qid``: the dataset with this question and its id there, '' before it is saved.
    """

    question: str
    answers: tuple[str, ...]
    pages: Mapping[str, str] = field(default_factory=dict)
    dataset: str = ""
    qid: str = ""


@dataclass(eq=False)
class Turn:
    """A question and its answer so far. ``number``: its position in the conversation, from 0; ``before``: the turn
    it follows.

    ``rewriting``: the step that rewrote the question to stand alone; ``steps``: the steps of the chain's actions.
    ``copies``: True if the answering model only copies from passages. ``mark``, ``correction``: a person's judgement.
    ``support``: sources and citations, once computed. ``hang_up``: stops the answering thread.
    """

    chain: Chain
    question: str
    history: tuple[Message, ...] = ()
    number: int = 0
    before: Turn | None = None
    answer: str = ""
    rewriting: Step | None = None
    steps: tuple[Step, ...] = ()
    episode: Episode | None = None
    error: str = ""
    cause: RalleError | None = field(default=None, repr=False)
    activity: str = "Starting …"
    state: State = "running"
    copies: bool = False
    mark: Mark = ""
    correction: Correction | None = None
    support: Support | None = field(default=None, repr=False)
    hang_up: Stop = field(default_factory=Stop, repr=False)

    def take(self, event: Event) -> str:
        """Process an event; return the text that it adds to the answer."""
        before = self.answer
        if isinstance(event, StepStarted):
            self.activity = activity(event)
        elif isinstance(event, Delta):
            self.answer += event.text if event.index == answering(self.chain) else ""
        elif isinstance(event, StepDone):
            if event.index == REWRITING:
                self.rewriting = event.step
            else:
                self.steps = (*self.steps, event.step)
        else:
            self.episode, self.error, self.cause = event, event.error, event.cause
            self.state = "failed" if event.error else "done"
            self.answer = event.answer or self.answer
        return self.answer[len(before) :] if self.answer.startswith(before) else ""

    @property
    def standalone(self) -> str:
        """The question as searched and answered, after any rewriting."""
        if self.rewriting is None:
            return self.question
        question = Question("", self.question, history=self.history)
        return standalone(question, self.rewriting.reply.text)

    @property
    def is_rewriting_refused(self) -> bool:
        """True if the model's rewriting was rejected as unrelated to this conversation; the question is then
        extended by names instead.
        """
        step = self.rewriting
        return (
            step is not None
            and isinstance(step.request, Generate)
            and self.standalone not in step.reply.text
        )

    @property
    def sources(self) -> list[Hit]:
        """The passages in the prompt of the answer."""
        return self._support()[0]

    def find_retriever(self, hit: Hit) -> str:
        """Return the retriever that found a source; '' if it is not known."""
        for step in reversed(self.steps):
            if isinstance(step.request, Retrieve) and hit in step.reply.hits:
                return step.request.retriever
        return ""

    @property
    def cited_sentences(self) -> tuple[CitedSentence, ...]:
        """The sentences of the answer, each with its supporting passages."""
        return self._support()[1]

    @property
    def cited_pages(self) -> dict[str, str]:
        """Page id → title of the cited passages."""
        numbers = {c.number for sentence in self.cited_sentences for c in sentence.citations}
        passages = (self.sources[number - 1].passage for number in sorted(numbers))
        return {passage.page_id: passage.title for passage in passages if passage.page_id}

    def _support(self) -> Support:
        """Sources and citations, computed once when the turn has finished, because a page redraws all turns
        repeatedly.
        """
        if self.support is not None:
            return self.support
        hits = sources(self.standalone, self.steps)
        note = self.steps[-1].reply.note if self.steps else ""
        if self.state == "running":
            return hits, ()
        self.support = hits, cite_sentences(self.answer, hits, note, copies=self.copies)
        return self.support

    @property
    def in_build(self) -> tuple[Question, tuple[Step, ...]]:
        """Return the question as Build asks it, and its steps; if the chain reads earlier turns, they are included."""
        history = self.history if reads_history(self.chain) else ()
        return Question("custom", self.standalone, history=history), self.steps


def answering(chain: Chain) -> int | None:
    """Index of the action whose text is the answer; None if that is not known while it is being written."""
    actions = chain.actions
    end = next((i for i, action in enumerate(actions) if not action.template), len(actions)) - 1
    return end if end >= 0 and actions[end].kind == "generate" else None


def activity(event: StepStarted) -> str:
    """Describe the turn's current activity for the page."""
    if event.index == REWRITING:
        return "Rewriting the question …"
    return "Searching …" if isinstance(event.request, Retrieve) else "Asking the model …"


@dataclass(eq=False)
class Talk:
    """A tree of turns: a repeated or edited question starts a branch beside the earlier one.

    ``turns``: all turns in the order they were asked; ``last``: the last turn of the open branch.
    """

    turns: list[Turn] = field(default_factory=list)
    last: Turn | None = None
    began: float = field(default_factory=time.time)

    @property
    def path(self) -> tuple[Turn, ...]:
        """The turns of the open branch, first to last."""
        return path_to(self.last)

    @property
    def is_busy(self) -> bool:
        return any(turn.state == "running" for turn in self.turns)

    def turn(self, number: int) -> Turn:
        """Return the turn with a number. Raises UsageError."""
        if not 0 <= number < len(self.turns):
            raise UsageError("The conversation has no such turn; reload the page.")
        return self.turns[number]

    def ask(self, asking: Asking, chain: Chain, question: str, before: Turn | None) -> Turn:
        """Start a turn after ``before`` and open its branch. Raises UsageError while another turn is being answered."""
        if not question.strip():
            raise UsageError("There is no question; type one.")
        if self.is_busy:
            raise UsageError("The last question is still being answered; wait for it, or stop it.")
        turn = Turn(chain, question.strip(), history(path_to(before)), len(self.turns), before)
        turn.copies = bool(chain.llms) and asking.copies(chain.llms[-1])
        self.turns.append(turn)
        self.last = turn
        return turn

    def with_mark(self, mark: Mark) -> tuple[Turn, ...]:
        """Return the turns of all branches with this mark."""
        return tuple(turn for turn in self.turns if turn.mark == mark)

    def branches(self, turn: Turn) -> list[Turn]:
        """Return this turn and its alternatives at the same position, oldest first."""
        return [other for other in self.turns if other.before is turn.before]

    def show(self, turn: Turn) -> None:
        """Open the branch of a turn, up to its newest turn."""
        self.last = turn
        while following := [other for other in self.turns if other.before is self.last]:
            self.last = following[-1]

    def stop(self) -> None:
        """Stop the answer in progress; the text so far is kept."""
        for turn in self.turns:
            if turn.state == "running":
                turn.state = "stopped"
                turn.hang_up.set()

    def repeats(self, turn: Turn) -> bool:
        """Return whether an earlier branch gave the same answer to the same question."""
        return bool(turn.answer) and any(
            (other.question, other.answer) == (turn.question, turn.answer)
            for other in self.branches(turn)
            if other.number < turn.number
        )


def path_to(turn: Turn | None) -> tuple[Turn, ...]:
    """Return the turns up to and including this one, first to last."""
    path: list[Turn] = []
    while turn is not None:
        path.insert(0, turn)
        turn = turn.before
    return tuple(path)


def history(turns: Sequence[Turn]) -> tuple[Message, ...]:
    """Return the earlier turns as messages for the next one: only answered turns, without the oldest, long texts
    shortened.
    """
    messages: list[Message] = []
    room = HISTORY_CHARACTERS
    answered = [turn for turn in turns if turn.state == "done" and turn.answer.strip()]
    for turn in reversed(answered[-HISTORY_TURNS:]):
        pair = [Message("user", _cut(turn.question)), Message("assistant", _cut(turn.answer))]
        room -= sum(len(message.content) for message in pair)
        if room < 0:
            break
        messages = pair + messages
    return tuple(messages)


def _cut(text: str) -> str:
    """Shorten a long text at its end."""
    text = text.strip()
    return text if len(text) <= MESSAGE_CHARACTERS else f"{text[: MESSAGE_CHARACTERS - 2]} …"
