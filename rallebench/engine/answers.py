"""What a run answered, without the steps that led there: of ten thousand questions these are most of what is stored."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rallebench.core.errors import BadFileError
from rallebench.core.files import whole_lines
from rallebench.core.types import Episode
from rallebench.engine.record import episode_from_json
from rallebench.engine.store import EPISODES, RunFolder

_STEPS = b', "steps": ['
"""Inside a JSON text its quotes would be escaped, so it stands only where the steps begin."""


def heads(run: RunFolder) -> dict[str, Mapping[str, Any]]:
    """Question id → its last line without ``steps``: ``answer`` and ``stop_reason``, or ``error``. In order of first
    appearance. Raises BadFileError for a line that is no episode."""
    lines: dict[str, Mapping[str, Any]] = {}
    for number, raw in whole_lines(run.path / EPISODES):
        head, cut, _ = raw.partition(_STEPS)
        try:
            value = json.loads(head + b"}" if cut else raw)
            lines[value["qid"]] = value
        except (ValueError, LookupError, TypeError) as error:
            fault = (
                "was damaged by another program"
                if isinstance(error, ValueError)
                else "is no episode"
            )
            raise BadFileError(
                f"{run.path / EPISODES}, line {number} {fault}. Remove that line: a resumed run asks its question again."
            ) from None
    return lines


def episode_of(run: RunFolder, qid: str) -> Episode | None:
    """The last episode of one question, None if it was not asked. Raises BadFileError if it cannot be read."""
    begins = (
        b'{"qid": ' + json.dumps(qid, ensure_ascii=False).encode("utf-8", "backslashreplace") + b","
    )
    last = b""
    for _, raw in whole_lines(run.path / EPISODES):
        if raw.startswith(begins):
            last = raw
    try:
        return episode_from_json(json.loads(last)) if last else None
    except (ValueError, LookupError, TypeError, AttributeError):
        raise BadFileError(
            f"{run.path / EPISODES}: the last line of the question {qid!r} was damaged by another program."
        ) from None
