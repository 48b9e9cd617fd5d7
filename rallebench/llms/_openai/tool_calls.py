"""Tool calls of an answer, assembled from the stream pieces of various servers."""

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
    """An unfinished call. ``index``: its position as sent by the server, None without one. ``renamed``: its name was repeated after
    complete arguments, which may start another call of the same function.
    """

    index: int | None
    id: str = ""
    name: str = ""
    arguments: str = ""
    renamed: bool = False

    @property
    def complete(self) -> bool:
        return isinstance(decode_json(self.arguments), Mapping)


class GatheredCalls:
    """Calls in order, equal whether they arrive whole or in pieces.

    OpenAI sends index, id and name first, then the arguments bit by bit. Other servers omit the index or the id, give every
    call the same index, repeat id and name in every piece, or send the arguments as an object. So a new id, or arguments
    after complete ones, start a new call; a repeated name adds nothing.
    """

    def __init__(self) -> None:
        self._calls: list[_Call] = []

    def __bool__(self) -> bool:
        return bool(self._calls)

    def add(self, piece: Any, place: int | None = None) -> None:
        """Add a piece; a piece with a ``place``, from a list of whole calls, is a call of its own. Raises Failure."""
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
            None
            if place is not None
            else self._find_continued(index, identity, name, arguments or "")
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
        """Return all calls, with the ids ``call_0``, ``call_1`` … where missing. Raises Failure for a call without a
        name.
        """
        if not all(call.name for call in self._calls):
            raise Failure(MALFORMED, NOT_OPENAI)
        calls = self._calls
        if all(call.index is not None for call in calls):
            calls = sorted(calls, key=lambda call: call.index or 0)
        return tuple(
            ToolCall(call.id or f"call_{number}", call.name, join_pairs(call.arguments) or "{}")
            for number, call in enumerate(calls)
        )

    def _find_continued(
        self, index: int | None, identity: str, name: str, arguments: str
    ) -> _Call | None:
        """Return the call that a piece continues, or None if it starts a new one."""
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
            # Some servers give every piece its own id.
            begun = last.arguments.strip() and not last.complete
            return last if begun and arguments and not arguments.lstrip().startswith("{") else None
        return last


def _placeholder(before: str, arguments: str) -> bool:
    """Return whether the earlier arguments are the ``{}`` that some servers send as a placeholder."""
    return before.strip() == "{}" and arguments.lstrip().startswith("{")


def _text(value: Any) -> str:
    if not isinstance(value, (str, type(None))):
        raise Failure(MALFORMED, NOT_OPENAI)
    return value or ""
