"""Arguments of a call as a language model writes them; they are parsed, never executed.

``name="Doe, Jane", organization='Uni of X'``, ``{"name": "Doe, Jane"}``, ``"Doe, Jane", "Uni of X"`` and ``Jane Doe``
are all understood; a quote inside a quoted text ends it only before a comma or the end.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from rallebench.environments._tools import as_text

MAX_TEXT = 2_000
"""Maximum characters of arguments; no scholar's name is longer."""

_KEY = re.compile(r"\s*[\"'“‘]?([A-Za-z_]\w{0,40})[\"'”’]?\s*[=:](?!=)\s*")
_QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’", "`": "`"}
_ENDS = re.compile(r"\s*(?:,|$)")
_NOTHING = ("none", "null", "")


class Unreadable(ValueError):
    """Arguments that cannot be parsed; the message is an observation."""


def read_arguments(
    text: str, names: Sequence[str], aliases: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return argument name → text, without empty arguments and None. Raises Unreadable with one sentence.

    ``names``: the parameters in order, for positional arguments; ``aliases``: other name → parameter.

    >>> read_arguments('name="Doe, Jane", organization=\\'King\\'s College\\'', ["name", "organization"])
    {'name': 'Doe, Jane', 'organization': "King's College"}
    >>> read_arguments("Jane Doe", ["name", "organization"]), read_arguments('{"name": "Jane"}', ["name"])
    ({'name': 'Jane Doe'}, {'name': 'Jane'})
    """
    if len(text) > MAX_TEXT:
        raise Unreadable(
            f"The arguments have {len(text):,} characters; at most {MAX_TEXT:,} are read."
        )
    known = {name.lower(): name for name in names} | dict(aliases or {})
    arguments: dict[str, str] = {}
    for key, value in _pairs(text.strip(), known):
        if not key:
            free = [name for name in names if name not in arguments]
            if not free:
                raise Unreadable(f"There are more arguments than {', '.join(names)}.")
            name = free[0]
        elif key.lower() in known:
            name = known[key.lower()]
        else:
            raise Unreadable(f"{key!r} is not an argument; they are {', '.join(names)}.")
        if name in arguments:
            raise Unreadable(f"{name} is given twice.")
        arguments[name] = value.strip()
    return {name: value for name, value in arguments.items() if value.lower() not in _NOTHING}


def _pairs(text: str, known: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return (name or '', value) of each argument."""
    if text.startswith("{"):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            text = text.strip("{} \t")
        else:
            return (
                [(str(key), as_text(item) or "") for key, item in value.items()]
                if isinstance(value, dict)
                else []
            )
    pairs, at = [], 0
    while at < len(text):
        if text[at] in ", \t\r\n":
            at += 1
            continue
        key = _key(text, at, known)
        value_text, at = _value(text, key.end() if key else at, known)
        pairs.append((key[1] if key else "", value_text))
    return pairs


def _key(text: str, at: int, known: Mapping[str, str]) -> re.Match[str] | None:
    """Match a name before a colon or equals sign, if the call has that parameter or a quote follows."""
    key = _KEY.match(text, at)
    return (
        key
        if key and (key[1].lower() in known or text[key.end() : key.end() + 1] in tuple(_QUOTES))
        else None
    )


def _value(text: str, start: int, known: Mapping[str, str]) -> tuple[str, int]:
    """Return (the value at ``start``, the position of its end)."""
    close = _QUOTES.get(text[start : start + 1])
    if close:
        at = start + 1
        while (at := text.find(close, at)) >= 0:
            if text[at - 1] != "\\" and _ENDS.match(text, at + 1):
                return _unescape(text[start + 1 : at]), at + 1
            at += 1
        return _unescape(text[start + 1 :]), len(text)  # not closed: the rest is the value
    end = start
    while (end := text.find(",", end)) >= 0:
        if _key(text, end + 1, known):
            return text[start:end], end
        end += 1
    return text[start:], len(text)


def _unescape(text: str) -> str:
    return re.sub(r"\\([\"'\\])", r"\1", text)
