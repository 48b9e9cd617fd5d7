"""The tool calls of an answer, put together from the pieces of a stream as different servers cut them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rallebench.core.structured import decode_json
from rallebench.core.surrogates import join_pairs
from rallebench.core.types import ToolCall
from rallebench.http.failures import NOT_OPENAI, Failure

MALFORMED = "answered with a malformed tool call"


@dataclass
class _Call:
    """A call so far. ``index``: the place that the server gives it, None without one. ``renamed``: the name came once more
    behind complete arguments, which may announce another call of the same function."""

    index: int | None
    id: str = ""
    name: str = ""
    arguments: str = ""
    renamed: bool = False

    @property
    def complete(self) -> bool:
        return isinstance(decode_json(self.arguments), Mapping)


class GatheredCalls:
    """Calls in the order of their places, equal whether they come whole or in pieces.

    OpenAI sends index, id and name first and then the arguments bit by bit. Others leave out the index or the id, send every
    call with the same index, repeat id and name in every piece, or send the arguments as an object. So a new id, or
    arguments behind complete ones, begin a new call; a repeated name adds nothing.
    """

    def __init__(self) -> None:
        self._calls: list[_Call] = []

    def __bool__(self) -> bool:
        return bool(self._calls)

    def add(self, piece: Any, place: int | None = None) -> None:
        """Take in one piece; with its ``place`` in a list of whole calls it is a call of its own. Raises Failure."""
        function = piece.get("function") if isinstance(piece, Mapping) else None
        if not isinstance(function, Mapping):
            raise Failure(MALFORMED, NOT_OPENAI)
        name, arguments = _text(function.get("name")), function.get("arguments")
        whole = arguments is not None and not isinstance(arguments, str)
        if whole:
            arguments = json.dumps(arguments, ensure_ascii=False)
        index = piece.get("index") if place is None else place
        index = index if isinstance(index, int) else None
        identity = str(piece.get("id") or "")
        call = (
            None if place is not None else self._continued(index, identity, name, arguments or "")
        )
        if call is None:
            before = self._calls[-1:]
            call = _Call(index)
            if not name and before and before[0].renamed:
                name = before[0].name
            self._calls.append(call)
        call.renamed = "" != name == call.name and not arguments and call.complete
        call.id = call.id or identity
        call.name = name if name.startswith(call.name) else call.name + name
        if arguments and (whole or _placeholder(call.arguments, arguments)):
            call.arguments = arguments
        elif arguments and not (call.complete and arguments == call.arguments):
            call.arguments += arguments

    def calls(self) -> tuple[ToolCall, ...]:
        """All calls; one that came without an id is ``call_0``, ``call_1`` … Raises Failure for one without a name."""
        if not all(call.name for call in self._calls):
            raise Failure(MALFORMED, NOT_OPENAI)
        calls = self._calls
        if all(call.index is not None for call in calls):
            calls = sorted(calls, key=lambda call: call.index or 0)
        return tuple(
            ToolCall(call.id or f"call_{number}", call.name, join_pairs(call.arguments) or "{}")
            for number, call in enumerate(calls)
        )

    def _continued(
        self, index: int | None, identity: str, name: str, arguments: str
    ) -> _Call | None:
        """The call that a piece goes on with, None for a new one."""
        near = [call for call in self._calls if index is None or call.index in (index, None)]
        if identity and (same := [call for call in near if call.id == identity]):
            return same[-1]
        if not near:
            return None
        last = near[-1]
        again = bool(arguments.strip()) and not _placeholder(last.arguments, arguments)
        if not last.name:
            return None if last.complete and again else last
        if last.complete and (again or (name and name != last.name)):
            return None
        if identity and last.id and (name or last.complete):
            # Some servers give every piece an id of its own.
            begun = last.arguments.strip() and not last.complete
            return last if begun and arguments and not arguments.lstrip().startswith("{") else None
        return last


def _placeholder(before: str, arguments: str) -> bool:
    """Return whether the arguments before are the ``{}`` that some servers send until they have real ones."""
    return before.strip() == "{}" and arguments.lstrip().startswith("{")


def _text(value: Any) -> str:
    if not isinstance(value, (str, type(None))):
        raise Failure(MALFORMED, NOT_OPENAI)
    return value or ""
