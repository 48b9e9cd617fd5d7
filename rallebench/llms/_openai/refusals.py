"""Request fields that the server refuses for one model: left out of later requests, and always reported."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from rallebench.core.types import digest
from rallebench.http.failures import Failure
from rallebench.http.refusals import SYSTEM, Refusal, find_refusal
from rallebench.llms._openai.requests import FEWER_TOKENS, MOST_TOKENS_AT_A_PLACE, Settings

MAX_REFUSALS = 12
"""Maximum number of refusals that one request learns from."""

MOST_VALUES = 3
"""Number of refused values after which the whole field counts as refused."""

LIMITS = ("max_tokens", "max_completion_tokens")
"""Two names of one field; a server takes one of them."""

NEEDED = frozenset({"model", "messages", "prompt", "tools", "functions", "n"})
"""Fields that cannot be left out without changing the question."""

QUIET = frozenset({"stream", "stream_options"})
"""Fields that do not affect the reply."""

Key = tuple[str, str]
"""A refused field, and the digest of the refused value, or '' for all values."""


class Refusals:
    """The refused fields of one model. Thread-safe: a refusal is learned once the same request without the field is
    answered.
    """

    def __init__(self, settings: Settings) -> None:
        fixed = settings.max_tokens_field != "auto"
        self._limit = settings.max_tokens_field if fixed else ""
        self._lock = threading.Lock()
        self._keys: set[Key] = set()
        self._needed = NEEDED | ({self._limit} if fixed else set())

    @property
    def fields(self) -> tuple[str, ...]:
        """The refused fields, for display."""
        with self._lock:
            keys = set(self._keys)
        renamed = {field for field, _ in keys} & {*LIMITS}
        names = {field for field, _ in keys} - (renamed if len(renamed) == 1 else set())
        return tuple(sorted(names))

    def read(self, failure: Failure, sent: Mapping[str, Any], keys: Collection[Key]) -> Key | None:
        """Return the field of ``sent`` that a failure refuses; None if it names none, if it is already known, or if there
        are too many.
        """
        fields = {name: value for name, value in sent.items() if name != "stream" or value}
        refusal = find_refusal(failure, fields, self._needed) if len(keys) < MAX_REFUSALS else None
        if refusal is None:
            return None
        key = _key(refusal, sent)
        return None if key in keys else key

    def learn(self, keys: Iterable[Key]) -> None:
        """Remember refused fields."""
        with self._lock:
            self._keys.update(keys)
            values = Counter(field for field, value in self._keys if value)
            self._keys.update((field, "") for field, n in values.items() if n >= MOST_VALUES)

    def fit(self, body: Mapping[str, Any], stream: bool, keys: Iterable[Key]) -> Fitted:
        """Return ``body`` without the refused fields; ``keys``: refused fields that are not yet learned."""
        with self._lock:
            refused = self._keys | set(keys)
        sent, left_out = dict(body), []
        stream = stream and ("stream", "") not in refused
        if stream:
            sent["stream_options"] = {"include_usage": True}
        self._name_limit(sent, refused)
        for field in {field for field, _ in refused} & sent.keys():
            if not _is_refused(field, sent[field], refused):
                continue
            fewer = field == "top_logprobs" and sent[field] == MOST_TOKENS_AT_A_PLACE
            if fewer and not _is_refused(field, FEWER_TOKENS, refused):
                sent[field] = FEWER_TOKENS
                continue
            left_out.append(field)
            del sent[field]
        if "logprobs" in left_out:
            sent.pop("top_logprobs", None)
        if (SYSTEM, "") in refused and any(m["role"] == "system" for m in sent.get("messages", ())):
            sent["messages"] = without_system(sent["messages"])
            left_out.append(SYSTEM)
        order = dict.fromkeys((*body, *LIMITS, SYSTEM))
        names = tuple(field for field in order if field in left_out)
        return Fitted({**sent, "stream": stream}, names)

    def _name_limit(self, sent: dict[str, Any], refused: set[Key]) -> None:
        """Use the name for the token limit that the server takes."""
        for name, other in (LIMITS, LIMITS[::-1]):
            unnamed = self._limit == other or (not self._limit and (name, "") in refused)
            if name in sent and other not in sent and unnamed and (other, "") not in refused:
                sent[other] = sent.pop(name)
                return


class Fitted:
    """A request with only the fields that the server takes, and the names of the omitted fields."""

    def __init__(self, body: dict[str, Any], left_out: tuple[str, ...]) -> None:
        self.body, self.left_out = body, left_out

    @property
    def note(self) -> str:
        """The note for the reply, '' if no field was left out."""
        if not self.left_out:
            return ""
        names = ", ".join(self.left_out)
        folded = " Their text was put before the user's." if SYSTEM in self.left_out else ""
        return f"The server refuses {names}; it was asked without.{folded}"


def _is_refused(field: str, value: Any, refused: Collection[Key]) -> bool:
    return (field, "") in refused or (field, digest(value)) in refused


def _key(refusal: Refusal, sent: Mapping[str, Any]) -> Key:
    of_value = refusal.of_value and refusal.field in sent and refusal.field not in QUIET
    return refusal.field, digest(sent[refusal.field]) if of_value else ""


def without_system(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the messages with each system text moved to the start of the next user message.

    >>> without_system([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Who?"}])
    [{'role': 'user', 'content': 'Be brief.\\n\\nWho?'}]
    """
    waiting: list[str] = []
    folded: list[dict[str, Any]] = []
    for message in messages:
        if message["role"] == "system":
            waiting.append(message["content"] or "")
        elif message["role"] == "user" and waiting:
            content = "\n\n".join([*waiting, message["content"] or ""])
            folded.append({**message, "content": content})
            waiting = []
        else:
            folded.append(dict(message))
    if waiting:
        folded.append({"role": "user", "content": "\n\n".join(waiting)})
    return folded
