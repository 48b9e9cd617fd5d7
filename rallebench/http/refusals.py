"""The request field that a server refuses, parsed from its error message.

Servers name it as OpenAI does (``param``), as pydantic does (``loc: ["body", "seed"]``), in other lists of fields, or
only in a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rallebench.http.failures import Failure
from rallebench.http.reported import is_overflow

REFUSING = (400, 422, 501)
"""Statuses of a refused request."""

PASSED_ON = (403, 404, 405, 500, 502)
"""Statuses under which gateways pass on a refusal; with these, the message must speak of a field explicitly."""

SYSTEM = "system messages"
"""Pseudo-field for the role ``system`` of messages."""

_NAMING = frozenset(
    [
        "param",
        "params",
        "parameter",
        "parameters",
        "field",
        "fields",
        "loc",
        "path",
        "keys",
        "property",
        "unsupported_params",
    ]
)
_DEEPEST = 6

_ROLE = re.compile(
    r"\bsystem.{0,30}(role|message|prompt|instruction|not (supported|allowed))|\brole.{0,60}\bsystem\b"
    r"|developer (role|instruction|message)|only user and assistant|roles? must alternate"
    r"|\b(first|start|begin)\b.{0,40}\buser\b|(unknown|unexpected|unsupported|invalid) role|messages?[\[.\d\]]+role|['\"]user['\"] or ['\"]assistant['\"]",
    re.IGNORECASE | re.DOTALL,
)
_OF_VALUE = re.compile(
    r"unsupported.?value|this value|only .{0,40}\b(value|default)|invalid.?value|must be|should be|less than|greater than"
    r"|at (most|least)|too (large|small|long|short|many|high|low|big)|exceed|maximum|minimum|positive|\brange\b|between",
    re.IGNORECASE,
)
_TONE = re.compile(
    r"\bnot\b|n't\b|cannot|\bun|\bin(valid|compat)|\bextra|\bonly\b|\bmust\b|\bshould\b|deprecat|disabled|\btoo\b|exceed"
    r"|\bthan\b|\bbetween\b|\brange\b|\b(max|min)|removed|forbid|reject|refus|disallow|no longer|\bbad\b|requires?\b"
    r"|constraint|illegal|malformed|error|\bup to\b|[<>\u3400-\u9fff]",
    re.IGNORECASE,
)
"""Words of refusal; a sentence without any names no refused field: "stop and adjust your prompt"."""

_OF_FIELD = re.compile(
    r"\b(param(eter)?|field|argument|propert(y|ie)|option|kwarg|extra input|request key)s?\b|参数",
    re.IGNORECASE,
)

_OTHER_KINDS = re.compile(
    r"content_?filter|content_policy|api_?key|model_not_found|tool_use_failed|json_validate_failed|moderation",
    re.IGNORECASE,
)
"""Codes of errors that never refuse a field, whatever their text says."""

_MISSING = re.compile(
    r"\bmissing\b|field required|\b(is|are) required\b|\brequired (parameter|property|field)",
    re.IGNORECASE,
)
"""Words about a missing field: leaving out more fields does not help."""

_TAKEN = re.compile(
    r"expected one of\b[^.;]*|(?<!not )\b(supported|allowed|valid|known|accepted|permitted|available)"
    r" (fields|parameters|params|arguments|keys|properties|options)\b[^.;]*",
    re.IGNORECASE,
)
"""Lists of the fields that a server accepts."""

_ECHOES = ("input", "ctx", "url", "request_id", "failed_generation", "request", "prompt", "value")
"""Keys of an error whose texts are not the server's own words."""

_ALSO = {
    "stop": r"stop[ _-]?(sequence|string|word)s?",
    "seed": r"random[ _-]?seed",
    "max_tokens": r"max[ _-]?(output|new)[ _-]?tokens|maximum tokens",
    "response_format": r"json[ _-]?(schema|object|mode)|structured[ _-]?outputs?",
    "stream": r"streaming",
    "think": "thinking",
    "reasoning_effort": "thinking|reasoning",
    "logprobs": r"log[ _-]?prob(abilitie)?s",
    "tools": r"(tool|function)[ _-]?(calling|calls?|use)",
}
"""Field → other names that servers give it."""


@dataclass(frozen=True)
class Refusal:
    """A refused field. ``of_value``: True if only the sent value is refused; another may be accepted."""

    field: str
    of_value: bool = False


def find_refusal(
    failure: Failure, sent: Mapping[str, Any], needed: Collection[str]
) -> Refusal | None:
    """Return the field of ``sent`` that the server refuses; None if it names none, or one that is ``needed``.

    An over-long prompt never counts as a refused field, whatever fields the message names.

    >>> failure = Failure("refused the request")
    >>> failure.status, failure.message = 400, "Unsupported parameter: 'stop' is not supported with this model."
    >>> find_refusal(failure, {"model": "m", "stop": ["x"]}, ["model"])
    Refusal(field='stop', of_value=False)
    """
    words = " ".join([failure.message, *_texts(failure.error)])
    if is_overflow(words) or _OTHER_KINDS.search(_error_code(failure.error)):
        return None
    words = _TAKEN.sub(" ", _without_prompt(words, sent))
    names = " ".join(_names(failure.error))
    if _ROLE.search(f"{names} {words}") and _has_system(sent) and failure.status != 501:
        return Refusal(SYSTEM) if failure.status in (*REFUSING, 500) else None
    if failure.status not in (*REFUSING, *PASSED_ON) or _MISSING.search(words):
        return None
    fields = {field: value for field, value in sent.items() if field not in needed}
    field = _first(names, fields)
    if failure.status in PASSED_ON and not (_OF_FIELD.search(words) and _TONE.search(words)):
        return None
    if not field and not _first(names, needed) and _TONE.search(words):
        field = _first(words, fields)
    if not field:
        return None
    return Refusal(field, bool(_OF_VALUE.search(words)))


def _error_code(error: Any) -> str:
    """Return the code of an error; '' without one."""
    inner = error.get("error") if isinstance(error, Mapping) else None
    inner = inner if isinstance(inner, Mapping) else error
    return str(inner.get("code") or "") if isinstance(inner, Mapping) else ""


def _without_prompt(words: str, sent: Mapping[str, Any]) -> str:
    """Return a server's message without the parts of the request that it quotes."""
    messages = sent.get("messages")
    for message in messages if isinstance(messages, Sequence) else ():
        text = message.get("content")
        if isinstance(text, str) and len(text) >= _SHORTEST_ECHO:
            words = words.replace(text, " ")
    return words


_SHORTEST_ECHO = 12

_TOOLS = re.compile(
    r"\b(tools?|functions?)([ _-]?(choice|call\w*|use))?\b.{0,60}(not supported|unsupported|not enabled|requires?)"
    r"|(not support|unsupported|unknown|unrecogni[sz]ed|extra|not permitted|not allowed).{0,60}\b(tools?|functions?)\b"
    r"|no endpoints? .{0,40}\btool use",
    re.IGNORECASE | re.DOTALL,
)


def is_tool_refusal(failure: Failure) -> bool:
    """Return whether a server says that the model, or the server as configured, does not support tools.

    >>> failure = Failure("refused the request")
    >>> failure.status, failure.message = 400, "registry.ollama.ai/library/gemma:2b does not support tools"
    >>> is_tool_refusal(failure)
    True
    """
    if failure.status not in (*REFUSING, 404):
        return False
    names = " ".join(_names(failure.error)).split(".")
    words = " ".join([failure.message, *_texts(failure.error)])
    return "tools" in names or (bool(_TOOLS.search(words)) and not _TOOL_FIELD.search(words))


_TOOL_FIELD = re.compile(r"'tool_choice'|parallel_tool_calls|max_tool_calls")


def _has_system(sent: Mapping[str, Any]) -> bool:
    messages = sent.get("messages")
    messages = messages if isinstance(messages, Sequence) else ()
    return any(message["role"] == "system" for message in messages)


def _names(error: Any, depth: int = 0) -> Iterator[str]:
    """Yield the field names in an error's JSON."""
    if depth > _DEEPEST:
        return
    if isinstance(error, Mapping):
        for key, value in error.items():
            if key in _NAMING and isinstance(value, str):
                yield value
            elif key in _NAMING and isinstance(value, list) and not _has_objects(value):
                yield ".".join(map(str, value))
            else:
                yield from _names(value, depth + 1)
    elif isinstance(error, list):
        for value in error:
            yield from _names(value, depth + 1)


def _has_objects(values: list[Any]) -> bool:
    return any(isinstance(value, (Mapping, list)) for value in values)


def _texts(error: Any, depth: int = 0) -> Iterator[str]:
    """Yield the texts of an error's JSON, except echoes of the request (``input``)."""
    if isinstance(error, str):
        yield error
    elif depth <= _DEEPEST and isinstance(error, Mapping):
        for key, value in error.items():
            if key not in _ECHOES:
                yield from _texts(value, depth + 1)
    elif depth <= _DEEPEST and isinstance(error, list):
        for value in error:
            yield from _texts(value, depth + 1)


def _first(text: str, fields: Collection[str]) -> str:
    """Return the field that a text names first; '' if it names none.

    >>> _first("maxTokens and stop sequences", ["stop", "max_tokens"]), _first("nonstop", ["stop"])
    ('max_tokens', '')
    """
    text = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", text).lower()
    places = []
    for field in fields:
        names = [
            re.escape(name.lower()).replace("_", "[ _-]?")
            for name in (field, *_inner(fields, field))
        ]
        pattern = "|".join([*names, *filter(None, [_ALSO.get(field)])])
        if match := re.search(f"(?<![a-z0-9_])(?:{pattern})(?![a-z0-9_])", text):
            places.append((match.start(), -len(field), field))
    return min(places)[2] if places else ""


def _inner(fields: Collection[str], field: str) -> Iterator[str]:
    """Yield the nested names by which a server may refuse a field; names without underscore could be any word."""
    value = fields[field] if isinstance(fields, Mapping) else None
    if isinstance(value, Mapping) and field != "response_format":
        yield from (name for name in value if "_" in name)
