"""The request for a typed decision, and its answer by any model.

::

    reply = yield choose("my-llm", (Message("user", "Is Rome a city? Answer yes or no."),), ("yes", "no"))
    reply.text, reply.choice.probabilities      # "yes", (0.97, 0.03)

A model with a method ``choose`` gives the probabilities of the options. Any other model generates a text, and the option
that it names is chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Protocol, runtime_checkable

from rallebench.core.backends import LLM
from rallebench.core.choices import TEXT, Choice, check_options, read_option
from rallebench.core.errors import RalleError
from rallebench.core.thinking import generate_answers
from rallebench.core.types import Generate, Message, Reply

WORDS_AROUND = 16
"""Tokens of a generated text beyond its option, for the words that some models put around it."""
NO_LOGPROBS = "{llm!r} gives no log-probabilities, so its text was read."


@dataclass(frozen=True, slots=True)
class Choose(Generate):
    """Ask a language model to choose among ``choices``, at least two. The reply has the chosen option as its ``text``, or
    the generated text, and the ``choice``. Raises OptionsError."""

    choices: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_options(self.choices)

    def as_generation(self) -> Generate:
        """The same request for a text."""
        return Generate(**{field.name: getattr(self, field.name) for field in fields(Generate)})


def choose(
    llm: str, messages: Sequence[Message], choices: Sequence[str], *, max_tokens: int | None = None
) -> Choose:
    """Return the request for a choice. ``max_tokens``: for a model whose text is read. Raises OptionsError."""
    longest = max((len(choice.encode(errors="replace")) for choice in choices), default=0)
    room = max_tokens or WORDS_AROUND + longest
    return Choose(
        llm,
        tuple(messages),
        max_tokens=room,
        temperature=0.0,
        roomy=True,
        choices=tuple(choices),
    )


@runtime_checkable
class Choosing(Protocol):
    """A model that gives the probabilities of options."""

    def choose(self, batch: Sequence[Choose]) -> list[Reply | RalleError]:
        """Return one reply with its ``choice`` per request, in order, as ``generate`` does; ``core.choices.weigh_options``
        normalises log-probabilities. A request without probabilities has its text read by ``read_reply``."""
        ...


def answer_choices(llm: LLM, requests: Sequence[Choose], name: str) -> list[Reply | RalleError]:
    """Return the replies of a model, each with its ``choice``, in order; ``name``: the model's name."""
    if isinstance(llm, Choosing):
        return llm.choose(requests)
    return read_choices(llm, requests, name, NO_LOGPROBS.format(llm=name))


def read_choices(
    llm: LLM, requests: Sequence[Choose], name: str, why: str
) -> list[Reply | RalleError]:
    """Have a model generate texts, and return them with the options that they name as ``choice``. ``why``: the reason for
    reading texts."""
    if not requests:
        return []
    replies = generate_answers(llm, [request.as_generation() for request in requests], name)
    return [read_reply(reply, request, why) for reply, request in zip(replies, requests)]


def read_reply(reply: Reply | RalleError, request: Choose, why: str) -> Reply | RalleError:
    """Return a generated reply with the option that its text names as ``choice``. ``why``: the reason for reading the text;
    an error stays as it is."""
    if isinstance(reply, RalleError):
        return reply
    chosen = read_option(reply.text, request.choices)
    return replace(reply, choice=Choice(request.choices, chosen, TEXT, why=why))


def reply_choice(reply: Reply, request: Choose) -> Choice:
    """Return the choice of a reply to ``request``; of a reply that a person edited, and of a fake one, by its text."""
    if reply.choice is not None:
        return reply.choice
    return Choice(request.choices, read_option(reply.text, request.choices))


def choice_reply(choice: Choice, reply: Reply) -> Reply:
    """Return a reply with the chosen option as its text and the option's probability as its confidence."""
    return replace(
        reply, text=choice.chosen, choice=choice, confidence=max(choice.probabilities, default=None)
    )
