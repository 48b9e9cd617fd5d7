"""The chain form: widgets ↔ Chain. The widgets are the chain, so no edit can be lost or shared."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import gradio as gr

from rallebench.chains.saved import MAX_ACTIONS, checked_generation
from rallebench.core.errors import UsageError
from rallebench.core.types import Action, Chain

KINDS = [("Retriever", "retrieve"), ("LLM", "generate"), ("Identity", "identity")]
DIALECTS = [("f-string", "fstring"), ("eval", "eval")]
FIELDS = (
    "kind",
    "template",
    "dialect",
    "retriever",
    "k",
    "llm",
    "max_tokens",
    "temperature",
    "seed",
    "stop",
    "system",
    "options",
)
HEAD = ("name", "count", "about")

EXAMPLES = {
    "fstring": "{question} · {response[0]} · {prompt[0]} · {documents[0][0][title]} · {history}",
    "eval": "'; '.join(d['text'] for d in documents[0][:3]) · wiki_id_title[0].split('; ')[0]",
}

Values = Sequence[Any]


def read_chain(values: Values) -> Chain:
    """The flat values of the form → Chain. Raises UsageError naming the action and the field."""
    name, count = str(values[0] or "").strip() or "untitled", int(values[1])
    return Chain(name, tuple(_read_action(values, i) for i in range(count)), values[2] or "")


def _read_action(values: Values, index: int) -> Action:
    start = len(HEAD) + index * len(FIELDS)
    row = dict(zip(FIELDS, values[start : start + len(FIELDS)]))
    kind, where = row["kind"], f"Action {index + 1}"
    target = {"retrieve": row["retriever"], "generate": row["llm"]}.get(kind) or ""
    k = row["k"] if row["k"] is not None else 5
    if kind == "retrieve" and (k != int(k) or not 1 <= k <= 10_000):
        raise UsageError(f"{where}: k is {k:g}; it must be a whole number from 1 to 10000.")
    generation = _generation(row, where) if kind == "generate" else {}
    return Action(kind, row["template"] or "", row["dialect"], str(target), int(k), generation)


def _generation(row: dict[str, Any], where: str) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    if (row["options"] or "").strip():
        try:
            settings = json.loads(row["options"])
        except ValueError as error:
            raise UsageError(f"{where}: the other settings are not valid JSON ({error}).") from None
        if not isinstance(settings, dict):
            raise UsageError(
                f'{where}: the other settings must be a JSON object, as in {{"top_p": 0.9}}.'
            )
    for name in ("max_tokens", "temperature", "seed"):
        if (number := optional_number(row[name], f"{where}: {name}")) is not None:
            settings[name] = number
    if row["system"]:
        settings["system"] = row["system"]
    stop = [
        line.encode().decode("unicode_escape") if "\\" in line else line
        for line in (row["stop"] or "").split("\n")
        if line
    ]
    if stop:
        settings["stop"] = stop
    return checked_generation(settings, where)


def optional_number(text: str | None, what: str) -> float | int | None:
    """The number in a text field, None if it is empty. Raises UsageError.

    >>> optional_number(" 12 ", "k"), optional_number("0.5", "t"), optional_number("", "k")
    (12, 0.5, None)
    """
    text = (text or "").strip()
    if not text:
        return None
    try:
        number = int(text) if text.lstrip("+-").isdigit() else float(text)
    except ValueError:
        number = math.nan
    if isinstance(number, float) and not math.isfinite(number):
        raise UsageError(f"{what} is {cut(text)!r}; it must be a number, or empty.")
    return number


def cut(text: str) -> str:
    """What was typed, short enough for a sentence."""
    return text if len(text) <= 60 else f"{text[:60]}…"


def whole_number(value: float | str | None, what: str) -> int | None:
    """The whole number in a field, None if it is empty. Raises UsageError.

    >>> whole_number("12", "n"), whole_number(5.0, "n"), whole_number("", "n")
    (12, 5, None)
    """
    number = optional_number("" if value is None else str(value), what)
    if number is None or number == int(number):
        return None if number is None else int(number)
    raise UsageError(f"{what} is {number:g}; it must be a whole number.")


def shown_number(value: Any) -> str:
    """A number as it stands in a text field; None is empty."""
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def action_values(action: Action) -> dict[str, Any]:
    """An action → the values of its row."""
    other = {
        k: v
        for k, v in action.generation.items()
        if k not in ("max_tokens", "temperature", "seed", "stop", "system")
    }
    return {
        "kind": action.kind,
        "template": action.template,
        "dialect": action.dialect,
        "retriever": action.target if action.kind == "retrieve" else None,
        "k": action.k,
        "llm": action.target if action.kind == "generate" else None,
        "max_tokens": shown_number(action.generation.get("max_tokens")),
        "temperature": shown_number(action.generation.get("temperature")),
        "seed": shown_number(action.generation.get("seed")),
        "stop": "\n".join(s.replace("\n", "\\n") for s in action.generation.get("stop", ())),
        "system": action.generation.get("system", ""),
        "options": json.dumps(other, ensure_ascii=False) if other else "",
    }


def write_chain(chain: Chain, since: Chain | None = None) -> list[Any]:
    """A Chain → updates for every component of the form, then visibility of every action's group.

    Where the form holds the chain ``since``, its equal parts are left alone: a page redraws slowly.
    """
    updates: list[Any] = [gr.update(value=chain.name), len(chain.actions), chain.about]
    before = [None] * MAX_ACTIONS if since is None else rows(since)
    for action, old in zip(rows(chain), before, strict=True):
        updates += [gr.skip()] * len(FIELDS) if action == old else action_updates(action)
    return updates + visibility(len(chain.actions))


def rows(chain: Chain) -> list[Action]:
    """The action of every row of the form; the rows that are not shown hold an empty one."""
    spare = MAX_ACTIONS - len(chain.actions)
    return [*chain.actions, *[Action("identity", "")] * spare]


def action_updates(action: Action) -> list[Any]:
    """An action → updates for the components of its row; only what its function needs is shown."""
    needed = {"retriever": "retrieve", "k": "retrieve", "llm": "generate"}
    return [
        gr.update(value=value, visible=action.kind == needed[field])
        if field in needed
        else gr.update(value=value)
        for field, value in action_values(action).items()
    ]


def visibility(count: int) -> list[Any]:
    """Which action groups are shown."""
    return [gr.update(visible=index < count) for index in range(MAX_ACTIONS)]


def added(chain: Chain) -> Chain:
    """The chain with an empty identity action at its end. Raises UsageError at eight."""
    if len(chain.actions) >= MAX_ACTIONS:
        raise UsageError(f"A chain has at most {MAX_ACTIONS} actions.")
    return Chain(chain.name, (*chain.actions, Action("identity", "")), chain.about)


def removed(chain: Chain, index: int) -> Chain:
    """The chain without action ``index``. Raises UsageError for the last one left."""
    if len(chain.actions) == 1:
        raise UsageError("A chain needs at least one action.")
    return Chain(chain.name, chain.actions[:index] + chain.actions[index + 1 :], chain.about)


def moved(chain: Chain, index: int, by: int) -> Chain:
    """The chain with action ``index`` one place earlier (−1) or later (+1); at the ends it stays."""
    other = index + by
    if not 0 <= other < len(chain.actions):
        return chain
    actions = list(chain.actions)
    actions[index], actions[other] = actions[other], actions[index]
    return Chain(chain.name, tuple(actions), chain.about)
