"""Episodes as JSON and back. Evidence is left out: it is derived and never part of a prompt."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, NamedTuple, cast, get_args, get_origin, get_type_hints

from rallebench.core.choosing import Choose
from rallebench.core.json_values import JsonObject, JsonValue
from rallebench.core.own_files import DAMAGE
from rallebench.core.strict_numbers import LARGEST as LARGEST_FIGURE
from rallebench.core.types import (
    Episode,
    Generate,
    Hit,
    Note,
    Outcome,
    Passage,
    Reply,
    Request,
    Retrieve,
    Score,
    Step,
    ToolSpec,
    UseTool,
)

_NUMBER = (int, float)
LARGEST = 2**64
"""The bound of whole numbers, such as seeds; a larger one was never written."""


class _Form:
    """The JSON form of a dataclass: its fields in order, by their types. Fields with default values are left out, unless
    ``whole``; ``unstored``: fields that are never stored."""

    def __init__(
        self, values: type, *, whole: bool = False, unstored: tuple[str, ...] = ()
    ) -> None:
        self._values = values
        hints = get_type_hints(values)
        self._kinds = {n: _kind(hint) for n, hint in hints.items() if n not in unstored}
        self._fields = []
        for field in fields(values):
            if field.name in self._kinds:
                default = field.default if field.default_factory is MISSING else {}
                writer = _writer(self._kinds[field.name])
                left_out = MISSING if whole else default
                self._fields.append((field.name, left_out, left_out in ((), {}), writer))

    def to_json(self, value: Any) -> dict[str, JsonValue]:
        result: dict[str, JsonValue] = {}
        for name, default, may_be_empty, write in self._fields:
            item = getattr(value, name)
            if item if may_be_empty else item != default:
                result[name] = write(item) if write else item
        return result

    def from_json(self, value: JsonObject) -> Any:
        kinds = self._kinds
        return self._values(**{n: _read(kinds[n], item) for n, item in value.items() if n in kinds})


class _HitForm(_Form):
    """A hit, flat."""

    def __init__(self) -> None:
        """Read no dataclass, because ``to_json`` and ``from_json`` name the fields."""

    def to_json(self, value: Hit) -> dict[str, JsonValue]:
        p = value.passage
        return {
            "doc_id": p.doc_id,
            "page_id": p.page_id,
            "title": p.title,
            "text": p.text,
            "score": value.score,
        }

    def from_json(self, value: JsonObject) -> Hit:
        texts = (value["doc_id"], value["text"], value["title"], value["page_id"])
        return Hit(Passage(*(_read(str, text) for text in texts)), _read(_NUMBER, value["score"]))


def _kind(hint: Any) -> Any:
    """The form of a type: of a dataclass its JSON form, of a tuple a list with the form of its elements, else Python
    types."""
    if is_dataclass(hint):
        return _FORMS.get(hint) or _Form(cast(type, hint))
    if get_origin(hint) is tuple:
        return [_kind(get_args(hint)[0])]
    if get_origin(hint) is Mapping:
        return Mapping
    if type(None) in get_args(hint):  # a value without a default of its own is left out
        values = next(filter(is_dataclass, get_args(hint)), None)
        return _Form(cast(type, values)) if values else (*_NUMBER, type(None))
    return _NUMBER if hint is float else hint


def _writer(kind: Any) -> Callable[[Any], Any] | None:
    """The function that turns a field's value into JSON; None if the value is JSON already."""
    if isinstance(kind, _Form):
        return kind.to_json
    if not isinstance(kind, list):
        return dict if kind is Mapping else None
    if not isinstance(kind[0], _Form):
        return list
    to_json = kind[0].to_json
    return lambda items: [to_json(item) for item in items]


def _read(kind: Any, item: Any) -> Any:
    """The value of an item. Raises TypeError for a value of another kind, which the keys around it cannot show."""
    if isinstance(kind, list):
        return tuple(_read(kind[0], element) for element in item)
    if isinstance(kind, _Form):
        return kind.from_json(item)
    if not isinstance(item, kind):
        raise TypeError("a value of another type than was written")
    if isinstance(item, int) and not -LARGEST <= item <= LARGEST:
        raise ValueError("a number that nothing counts")
    return item


_HIT = _HitForm()
_FORMS: dict[Any, _Form] = {Hit: _HIT}
_FORMS[ToolSpec] = _Form(ToolSpec, whole=True)
_UNSTORED = ("evidence", "forced", "explicit", "roomy")
_REQUESTS = {
    "retrieve": _Form(Retrieve, whole=True),
    "note": _Form(Note, unstored=("passages",)),
    "tool": _Form(UseTool),
    "generate": _Form(Generate, unstored=_UNSTORED),
    "choose": _Form(Choose, unstored=_UNSTORED),
}
_REQUEST_KINDS = {
    Retrieve: "retrieve",
    Note: "note",
    UseTool: "tool",
    Generate: "generate",
    Choose: "choose",
}
_REPLY = _Form(Reply)
_OUTCOME = _Form(Outcome, whole=True)


def request_to_json(request: Request) -> dict[str, JsonValue]:
    """A request with its type under ``ask``; unset settings are left out."""
    kind = _REQUEST_KINDS[type(request)]
    return {"ask": kind, **_REQUESTS[kind].to_json(request)}


def request_from_json(value: JsonObject) -> Request:
    """The inverse of ``request_to_json``. Raises LookupError, TypeError or AttributeError for anything else."""
    return cast(Request, _REQUESTS[_read(str, value["ask"])].from_json(value))


def hit_to_json(hit: Hit) -> dict[str, JsonValue]:
    """A hit, flat."""
    return _HIT.to_json(hit)


def reply_to_json(reply: Reply) -> dict[str, JsonValue]:
    """A reply as JSON, without fields that equal those of an empty reply (a confidence of 0.0 stays)."""
    return _REPLY.to_json(reply)


def reply_from_json(value: JsonObject) -> Reply:
    """The inverse of ``reply_to_json``. Raises LookupError, TypeError or AttributeError for anything else."""
    return cast(Reply, _REPLY.from_json(value))


def step_to_json(step: Step) -> dict[str, JsonValue]:
    """A step with its request, reply and cost; a ``batch`` of one is left out."""
    value = {
        **request_to_json(step.request),
        "reply": reply_to_json(step.reply),
        "seconds": round(step.seconds, 6),
        "cached": step.cached,
    }
    return value if step.batch == 1 else {**value, "batch": step.batch}


def step_from_json(value: JsonObject) -> Step:
    """The inverse of ``step_to_json``."""
    reply, request = reply_from_json(_read(dict, value["reply"])), request_from_json(value)
    seconds, cached = _read(_NUMBER, value["seconds"]), _read(bool, value["cached"])
    batch = max(1, int(_read(_NUMBER, value.get("batch", 1))))
    return Step(request, reply, seconds, cached, batch)


def episode_to_json(episode: Episode) -> dict[str, JsonValue]:
    """One line of ``episodes.jsonl``."""
    value: dict[str, JsonValue] = {"qid": episode.qid, "workflow": episode.workflow}
    if episode.outcome is not None:
        value |= _OUTCOME.to_json(episode.outcome)
    if episode.error:
        value["error"] = episode.error
    if episode.failed_seconds:
        value["failed_seconds"] = round(episode.failed_seconds, 6)
    return {**value, "steps": [step_to_json(step) for step in episode.steps]}


class EpisodeHead(NamedTuple):
    """An episode without its steps, which are most of its line. ``elapsed``: seconds since its session began; ``session``:
    the time of that beginning, or the name of an import; ``at``: the byte offset of the line in its file."""

    qid: str
    answer: str = ""
    stop_reason: str = ""
    error: str = ""
    session: str = ""
    elapsed: float = 0.0
    at: int = 0


class Attempt(NamedTuple):
    """A line of ``episodes.jsonl``. ``episode``: None if its steps were damaged."""

    head: EpisodeHead
    episode: Episode | None


def head_from_line(raw: bytes, at: int = 0) -> EpisodeHead:
    """The head of an episode's line at ``at``. Raises ValueError, LookupError or TypeError for anything else."""
    # Quotes inside a JSON text would be escaped, so the marks only occur around the steps.
    head, steps, rest = raw.partition(b', "steps": [')
    _, session, tail = rest.rpartition(b'], "session": ')
    if steps:
        raw = head + (b', "session": ' + tail if session else b"}")
    return _head(json.loads(raw), at)


def attempt_from_line(raw: bytes, at: int = 0) -> Attempt:
    """An episode's line at ``at``. Raises as ``head_from_line``."""
    value = json.loads(raw)
    head = _head(value, at)
    try:
        return Attempt(head, episode_from_json(value))
    except DAMAGE:
        return Attempt(head, None)


def _head(value: JsonObject, at: int) -> EpisodeHead:
    elapsed = value.get("elapsed") if isinstance(value, dict) else None
    return EpisodeHead(
        _read(str, value["qid"]),
        _read(str, value.get("answer", "")),
        _read(str, value.get("stop_reason", "")),
        _read(str, value.get("error", "")),
        str(value.get("session", "")),
        elapsed if isinstance(elapsed, _NUMBER) and 0 <= elapsed <= LARGEST_FIGURE else 0.0,
        at,
    )


def score_to_json(score: Score) -> dict[str, JsonValue]:
    """A line of ``scores.jsonl``."""
    value: dict[str, JsonValue] = {
        "qid": score.qid,
        "metric": score.metric,
        "value": score.value,
    }
    return {**value, "note": score.note} if score.note else value


def score_from_line(raw: bytes) -> Score:
    """The inverse of ``score_to_json``. Raises LookupError, TypeError or ValueError for anything else."""
    line = json.loads(raw)
    if not raw.endswith(b"\n"):  # the file is written whole, so it has no torn line
        raise ValueError("a torn line")
    value = line["value"]
    if value is not None and (type(value) not in _NUMBER or LARGEST_FIGURE < abs(value) < math.inf):
        raise TypeError("not a score")
    qid, metric = _read(str, line["qid"]), _read(str, line["metric"])
    return Score(qid, metric, value, str(line.get("note", "")))


def episode_from_json(value: JsonObject) -> Episode:
    """The inverse of ``episode_to_json``. Raises LookupError, TypeError, ValueError or AttributeError for anything else."""
    steps = tuple(step_from_json(step) for step in _read(list, value["steps"]))
    return Episode(
        _read(str, value["qid"]),
        _read(str, value["workflow"]),
        steps,
        _OUTCOME.from_json(value) if "answer" in value else None,
        _read(str, value.get("error", "")),
        _read(_NUMBER, value.get("failed_seconds", 0.0)),
    )
