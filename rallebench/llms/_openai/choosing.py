"""Typed decisions by the log-probabilities that a server reports for the most probable tokens at each place of its answer.

Tokens are compared with the options as text: without the case, and without white space, quotes and Markdown before the
answer. A token counts for the only option that it can begin. While several options begin alike, the answer is followed to
the token that tells them apart; a token beside the answer that still fits several options counts for none. So the covered
mass may be less than the model's probability of the options, and never more.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rallebench.core.choices import SERVER, Choice, weigh_options
from rallebench.core.choosing import Choose
from rallebench.core.thinking import answer_begins
from rallebench.core.types import Generate, Json
from rallebench.llms._openai.requests import FEWER_TOKENS, MOST_TOKENS_AT_A_PLACE

LEAST_COVERED = 0.1
"""With less than this of the probability on the options, the model answers in other words, and its text is read."""

_OF_TOKEN = ("token", "logprob", "top_logprobs")
"""Keys of a token in an answer of the chat API."""
_BEFORE = " \t\r\n\"'`*_([{“‘「▁Ġ"


@dataclass(frozen=True, slots=True)
class TokenPlace:
    """A token of an answer, its log-probability, and those of the most probable tokens at its place."""

    token: str
    logprob: float
    others: Mapping[str, float]


def with_logprobs(request: Choose, plain: bool) -> Choose:
    """The request with the log-probabilities of the most probable tokens; ``plain``: at the plain completion endpoint."""
    most = FEWER_TOKENS if plain else MOST_TOKENS_AT_A_PLACE
    return replace(request, options={**request.options, "logprobs": True, "top_logprobs": most})


def request_choices(request: Generate) -> tuple[str, ...]:
    """The options of a request, () for one that asks for a text."""
    return request.choices if isinstance(request, Choose) else ()


def read_places(logprobs: Any) -> list[TokenPlace]:
    """Return the places of an answer, or of a piece of it, as chat or plain completions report them; entries that are not
    numbers are skipped.

    >>> read_places({"tokens": ["yes"], "token_logprobs": [-0.1], "top_logprobs": [{"yes": -0.1, "no": -2.5}]})
    [TokenPlace(token='yes', logprob=-0.1, others={'yes': -0.1, 'no': -2.5})]
    """
    fields = logprobs if isinstance(logprobs, Mapping) else {}
    (content,) = _fields(fields, ("content",))
    read: Iterable[tuple[Any, Any, Any]]
    if isinstance(content, list):
        entries = [entry for entry in content if isinstance(entry, Mapping)]
        read = (_fields(entry, _OF_TOKEN) for entry in entries)
    else:
        lists = [fields.get(name) for name in ("tokens", "token_logprobs", "top_logprobs")]
        read = zip(*(each if isinstance(each, list) else () for each in lists))
    return [
        TokenPlace(token, float(value), _pairs(others))
        for token, value, others in read
        if isinstance(token, str) and _is_number(value)
    ]


def _fields(value: Json, names: Sequence[str]) -> Any:
    """The values of these keys, None where one is absent."""
    return tuple(value.get(name) for name in names)


def _pairs(others: Any) -> dict[str, float]:
    """Token → log-probability, from a list of objects or from one object."""
    if isinstance(others, list):
        entries = (entry for entry in others if isinstance(entry, Mapping))
        others = dict(_fields(entry, _OF_TOKEN[:2]) for entry in entries)
    pairs = others.items() if isinstance(others, Mapping) else ()
    return {str(token): float(value) for token, value in pairs if _is_number(value)}


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not math.isnan(value) and value < math.inf


def choice_from_places(
    places: Sequence[TokenPlace], text: str, thinks: bool, options: tuple[str, ...]
) -> Choice | None:
    """Return the choice of an answer; None if its tokens cover the options too little. ``text``: the answer, perhaps with
    thoughts before it; ``thinks``: True if thoughts were sent apart from it."""
    begin = _first_place(places, text, thinks)
    masses = _masses(places[begin:], options) if begin is not None else {}
    if sum(masses.values()) < LEAST_COVERED:
        return None
    logprobs = [math.log(mass) if (mass := masses[o]) > 0 else -math.inf for o in options]
    return weigh_options(options, logprobs, SERVER)


def _first_place(places: Sequence[TokenPlace], text: str, thinks: bool) -> int | None:
    """The index of the answer's first token; None if the tokens hold no such answer."""
    begins = answer_begins(text)
    if not begins and not thinks:
        return 0
    joined, answer = "".join(place.token for place in places), text[begins:].strip()
    at = joined.rfind(answer) if answer else -1
    length = 0
    for index, place in enumerate(places):
        length += len(place.token)
        if 0 <= at < length:
            return index
    return None


def _masses(places: Sequence[TokenPlace], options: Sequence[str]) -> dict[str, float]:
    """Option → its probability, as far as the places tell."""
    masses = dict.fromkeys(options, 0.0)
    written, mass = "", 1.0
    for place in places:
        for token, logprob in place.others.items():
            fitting = _fitting(written + token, options)
            if token != place.token and len(fitting) == 1:
                masses[fitting[0]] += mass * math.exp(logprob)
        written, mass = written + place.token, mass * math.exp(place.logprob)
        fitting = _fitting(written, options)
        if len(fitting) == 1:
            masses[fitting[0]] += mass
        if len(fitting) < 2:
            return masses
    ended = [option for option in options if _plain(option) == _plain(written)]
    for option in ended[:1]:
        masses[option] += mass
    return masses


def _fitting(text: str, options: Sequence[str]) -> list[str]:
    """The options that begin with a text, or that the text begins with as whole words; of these only the longest."""
    plain = _plain(text)
    own = {option: _plain(option) for option in options}
    begun = [option for option, words in own.items() if words.startswith(plain)]
    ended = [
        option
        for option, words in own.items()
        if len(words) < len(plain) and plain.startswith(words) and not _goes_on(plain, len(words))
    ]
    return begun or sorted(ended, key=lambda option: -len(own[option]))[:1]


def _goes_on(text: str, at: int) -> bool:
    """True if the word before ``at`` continues there."""
    return text[at].isalnum() and text[at - 1].isascii()


def _plain(text: str) -> str:
    return text.lstrip(_BEFORE).casefold().rstrip()
