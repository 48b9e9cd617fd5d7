"""The core values. All are frozen: equal content means equal values, which are safe to share.

Chains and agents are *flows*: a flow is a generator that yields a ``Request``, receives the ``Reply``, and returns an
``Outcome``. Flows do no input or output themselves::

    def closed_book(question):
        reply = yield Generate("my-llm", (Message("user", question.text),))
        return Outcome(reply.text)
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar, Union

from rallebench.core.choices import Choice
from rallebench.core.errors import RalleError
from rallebench.core.json_values import JsonValue

if TYPE_CHECKING:
    from typing_extensions import Unpack

Json = Mapping[str, Any]
"""A user's own JSON object: settings, tool arguments, extra fields. A thing with a name is a dataclass."""


@dataclass(frozen=True, slots=True)
class Passage:
    """One retrievable piece of text. ``page_id`` is KILT's ``wikipedia_id``."""

    doc_id: str
    text: str
    title: str = ""
    page_id: str = ""


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage and its score; higher is better, always."""

    passage: Passage
    score: float


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message; ``role`` is ``system``, ``user``, ``assistant`` or ``tool``.

    ``tool_calls``: the calls in an assistant's message. ``tool_call_id``: the call that a tool's message answers.
    """

    role: str
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """The question as a flow sees it, without the gold. ``history`` holds the earlier turns of a chat."""

    qid: str
    text: str
    passages: tuple[Passage, ...] = ()
    history: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True)
class GoldClaim:
    """A statement that a right answer makes: ALCE's claim, a nugget. ``vital``: False for one that may be left out."""

    text: str
    vital: bool = True


@dataclass(frozen=True, slots=True)
class Gold:
    """The gold of a question, for the scorer only.

    ``answers``: each of them is right (KILT aliases). ``required``: a right answer contains a member of each group (RGB).
    ``provenance``: one set of page ids per gold output element with pages, in order. ``titles``: page id → title.
    ``reference``: a long text (CRUD-RAG, judges). ``passages``: like ``provenance``, with passage ids, if the gold names
    passages. ``grades``: page id → degree of relevance, if it is not 1; a page with a grade of 0 or less was judged, but
    is not a gold page. ``unanswerable``: True if no answer is right, so that an answer should decline; without it and
    without ``answers``, the right answer is unknown. ``claims``: the statements of a right answer.
    """

    answers: tuple[str, ...] = ()
    required: tuple[tuple[str, ...], ...] = ()
    provenance: tuple[frozenset[str], ...] = ()
    titles: Mapping[str, str] = field(default_factory=dict)
    reference: str = ""
    passages: tuple[frozenset[str], ...] = ()
    grades: Mapping[str, float] = field(default_factory=dict)
    unanswerable: bool = False
    claims: tuple[GoldClaim, ...] = ()

    @property
    def page_grades(self) -> dict[str, float]:
        """Every gold page id with its grade, 1 by default."""
        return {page: self.grades.get(page, 1.0) for page in self.pages}

    @property
    def judgements(self) -> dict[str, float]:
        """Every judged page id with its grade, irrelevant pages included."""
        return {**self.grades, **self.page_grades}

    @property
    def pages(self) -> frozenset[str]:
        """The gold page ids of all output elements together."""
        return frozenset().union(*self.provenance) if self.provenance else frozenset()


@dataclass(frozen=True, slots=True)
class Example:
    """A question with its gold and its unchanged record."""

    question: Question
    gold: Gold
    record: Json = field(default_factory=dict)


ActionKind = Literal["retrieve", "generate", "identity"]
Dialect = Literal["fstring", "eval"]


@dataclass(frozen=True, slots=True)
class Action:
    """One step of a chain: a template and its target.

    ``target`` names a retriever or a language model; ``k`` counts passages (retrieve only).
    ``generation`` overrides the model's own defaults: ``max_tokens``, ``temperature``, ``seed``,
    ``stop`` (list of str), ``system`` (str), and further options of the backend (``top_p`` …).
    """

    kind: ActionKind
    template: str
    dialect: Dialect = "fstring"
    target: str = ""
    k: int = 5
    generation: Json = field(default_factory=dict)


class ActionChanges(TypedDict, total=False):
    """New values for fields of an action."""

    kind: ActionKind
    template: str
    dialect: Dialect
    target: str
    k: int
    generation: Json


@dataclass(frozen=True, slots=True)
class Chain:
    """A named sequence of actions, at least one and by custom at most eight."""

    name: str
    actions: tuple[Action, ...]
    about: str = ""

    @property
    def llms(self) -> tuple[str, ...]:
        """The language models of the chain, in order, without duplicates."""
        return self._targets("generate")

    @property
    def retrievers(self) -> tuple[str, ...]:
        """The retrievers of the chain, in order, without duplicates."""
        return self._targets("retrieve")

    @property
    def effective_actions(self) -> tuple[Action, ...]:
        """The actions up to the empty template that ends a chain."""
        return tuple(itertools.takewhile(lambda action: action.template, self.actions))

    @property
    def produces_answer(self) -> bool:
        """True if an action generates, or passes on more than retrieved passages."""
        actions = self.effective_actions
        passages = {f"{{response[{i}]}}" for i, a in enumerate(actions) if a.kind == "retrieve"}
        return any(
            a.kind == "generate" or (a.kind == "identity" and a.template.strip() not in passages)
            for a in actions
        )

    @property
    def depth(self) -> int:
        """The total number of passages that the retrieve actions request."""
        return sum(a.k for a in self.effective_actions if a.kind == "retrieve")

    def _targets(self, kind: str) -> tuple[str, ...]:
        targets = (a.target for a in self.actions if a.kind == kind and a.template)
        return tuple(dict.fromkeys(targets))

    def replace_action(self, index: int, **changes: Unpack[ActionChanges]) -> Chain:
        """Return a chain with ``changes`` in action ``index`` (from 0)."""
        actions = list(self.actions)
        actions[index] = replace(actions[index], **changes)
        return replace(self, actions=tuple(actions))


@dataclass(frozen=True, slots=True)
class Evidence:
    """The question and the passages that a prompt contains word for word, as data for readers.

    Evidence adds nothing to the prompt: a passage is listed only if the prompt contains it.
    """

    question: str = ""
    passages: tuple[Passage, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool for a language model; ``parameters`` is a JSON schema."""

    name: str
    description: str = ""
    parameters: Json = field(default_factory=dict)

    @property
    def arguments(self) -> tuple[str, ...]:
        """The names of its parameters, in order."""
        return tuple(self.properties)

    @property
    def properties(self) -> Mapping[str, Json]:
        """Parameter → its JSON schema."""
        properties: Mapping[str, Json] = self.parameters.get("properties", {})
        return properties

    @property
    def required_names(self) -> tuple[str, ...]:
        """The names of the parameters that every call has."""
        return tuple(self.parameters.get("required", ()))


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call by a language model; ``arguments`` is JSON text."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Retrieve:
    """Ask a retriever for the ``k`` best passages."""

    retriever: str
    query: str
    k: int = 5


@dataclass(frozen=True, slots=True)
class Generate:
    """Request a reply of a language model. ``None`` leaves a setting to the model's own default.

    ``forced``: options for the form of the reply, for a model that enforces formats during generation. ``explicit``: a
    person chose these settings for this very request, as in an action of a chain; settings of a method (a judge, an agent,
    a re-ranker, a suite) give way to the model's entry. ``backends.fit_to_model`` applies both. ``roomy``: ``max_tokens``
    is enough for the answer alone, so a model that thinks first gets more.
    """

    llm: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    temperature: float | None = None
    seed: int | None = None
    options: Json = field(default_factory=dict)
    evidence: Evidence | None = None
    forced: Json = field(default_factory=dict)
    explicit: bool = field(default=False, compare=False)
    roomy: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class UseTool:
    """A call of the run's tool of that name; its result is the reply's text."""

    tool: str
    arguments: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Note:
    """A text for the trace. No backend is called, and the reply is the text itself.

    ``passages``: passages of the note, such as a page that an agent opened by its title; the reply has them as hits.
    """

    text: str
    passages: tuple[Passage, ...] = field(default=(), compare=False)

    def reply(self) -> Reply:
        """The text, with its passages as hits of score 1."""
        return Reply(self.text, tuple(Hit(passage, 1.0) for passage in self.passages))


Request = Union[Retrieve, Generate, UseTool, Note]


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to any request: one type, so the loop needs no cases.

    ``thinking``: the thoughts of a reasoning model before its answer; they are recorded, but not part of ``text``.
    ``finish_reason``: ``stop``, ``length``, or the backend's own word. ``confidence``: 0..1, or None if the backend has
    none. Token counts are 0 if the backend counts none. ``embedding_tokens``: number of query tokens read by encoders; 0
    without an encoder, None if an encoder counts no tokens. ``choice``: the typed decision, for ``core.choosing.Choose``.
    """

    text: str
    hits: tuple[Hit, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    prompt_tokens: int = 0
    completion_tokens: int = 0
    finish_reason: str = "stop"
    confidence: float | None = None
    first_token_seconds: float | None = None
    logprobs: tuple[float, ...] = ()
    note: str = ""
    embedding_tokens: int | None = 0
    thinking: str = ""
    choice: Choice | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """A request with its reply.

    ``seconds``: the duration of the original call (its share of a ``batch`` of requests), even if the reply is ``cached``
    now.
    """

    request: Request
    reply: Reply
    seconds: float = 0.0
    cached: bool = False
    batch: int = 1


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a flow: its answer and its stop reason."""

    answer: str
    stop_reason: str = "answered"


@dataclass(frozen=True, slots=True)
class Episode:
    """The steps of one question. ``error`` is '' or one sentence. With an error ``outcome`` is None, and
    ``failed_seconds`` is the duration of the failed request, which has no step. ``cause``: the exception, if the question
    was answered live; it is never stored."""

    qid: str
    workflow: str
    steps: tuple[Step, ...]
    outcome: Outcome | None = None
    error: str = ""
    failed_seconds: float = 0.0
    cause: RalleError | None = field(default=None, compare=False, repr=False)

    @property
    def answer(self) -> str:
        """The final answer, '' if there is none."""
        return self.outcome.answer if self.outcome else ""

    @property
    def hits(self) -> tuple[Hit, ...]:
        """All hits of all retrievals, and the opened pages, in order."""
        return tuple(hit for step in self.steps for hit in step.reply.hits)


@dataclass(frozen=True, slots=True)
class Score:
    """One question's value under one metric; None means not scored, never 0."""

    qid: str
    metric: str
    value: float | None
    note: str = ""


_T = TypeVar("_T")
SubFlow = Generator[Request, Reply, _T]
"""A part of a flow: yields requests, receives replies, and ends with a value of its own."""
Flow = SubFlow[Outcome]


def digest(value: JsonValue) -> str:
    """sha256 (64 hex digits) of a JSON-able value in canonical form.

    >>> digest({"b": 1, "a": 2}) == digest({"a": 2, "b": 1})
    True
    """
    text = _CANONICAL.encode(value)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


_CANONICAL = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":"))
