"""A form of declared settings as HTML, and what the user chose in it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rallebench.core.settings import Setting, checked
from rallebench.gui.frame import Event
from rallebench.gui.html import e

Form = Mapping[str, Setting]
Choices = Mapping[str, Sequence[Any]]
"""Setting → the values that may be chosen, each a text or (value, label)."""


def draw(
    form: Form,
    values: Mapping[str, Any],
    choices: Choices,
    *,
    prefix: str = "",
    folded: Iterable[str] = (),
) -> str:
    """The controls of all settings; ``folded``: those that stand under "Advanced"."""
    hidden = set(folded)

    def controls(advanced: bool) -> str:
        return "".join(
            control(name, setting, values.get(name, setting.default), choices.get(name), prefix)
            for name, setting in form.items()
            if (name in hidden) == advanced
        )

    more = controls(True)
    fold = (
        f'<details class="fold" id="{e(prefix)}advanced"><summary>Advanced<em>{len(hidden)} setting{"s" * (len(hidden) != 1)}</em></summary><div class="fields">{more}</div></details>'
        if more
        else ""
    )
    return f'<div class="fields">{controls(False)}</div>{fold}'


def control(
    name: str, setting: Setting, value: Any, choices: Sequence[Any] | None, prefix: str = ""
) -> str:
    """The label and the control of one setting."""
    title = name.replace("_", " ")
    title = title[:1].upper() + title[1:]
    key, about = f"{prefix}{name}", setting.about
    value = "" if value is None else value
    if setting.kind is bool:
        box = f'<input type="checkbox" name="{e(key)}"{" checked" if value else ""}>'
        return f'<label class="check" title="{e(about)}">{box} {e(title)}</label>'
    if choices is None and setting.choices:
        choices = setting.choices
    if choices is not None:
        field = select(key, choices, value, blank="" if setting.required else "–")
    elif setting.kind in (int, float):
        limits = "".join(
            f' {word}="{limit:g}"'
            for word, limit in (("min", setting.low), ("max", setting.high))
            if limit is not None
        )
        step = "1" if setting.kind is int else "any"
        field = f'<input type="number" name="{e(key)}" value="{e(value)}" step="{step}"{limits}>'
    else:
        shown = (
            value
            if isinstance(value, str)
            else json.dumps(value, ensure_ascii=False)
            if setting.kind is object
            else ",".join(map(str, value))
            if isinstance(value, (list, tuple))
            else str(value)
        )
        field = (
            f'<input name="{e(key)}" value="{e(shown)}"{" required" if setting.required else ""}>'
        )
    return f'<label class="field" title="{e(about)}"><span>{e(title)}</span>{field}</label>'


def select(
    name: str, choices: Sequence[Any], value: Any, *, blank: str = "", more: str = ""
) -> str:
    """A drop-down; ``blank``: the label of an empty choice, "" for none. A value that is no choice is named as missing."""
    pairs = [choice if isinstance(choice, tuple) else (choice, choice) for choice in choices]
    if blank:
        pairs.insert(0, ("", blank))
    if str(value) not in {str(v) for v, _ in pairs} and value not in ("", None):
        pairs.append((value, f"{value} (missing)"))
    options = "".join(
        f'<option value="{e(v)}"{" selected" if str(v) == str(value) else ""}>{e(label)}</option>'
        for v, label in pairs
    )
    return f'<select name="{e(name)}"{more}>{options}</select>'


def text(
    name: str, title: str, value: Any = "", hint: str = "", about: str = "", more: str = ""
) -> str:
    """A labelled text field; ``hint`` stands in it while it is empty, ``about`` below it."""
    field = f'<input name="{e(name)}" value="{e(value)}" placeholder="{e(hint)}"{more}>'
    return labelled(title, field, about)


def labelled(title: str, field: str, about: str = "") -> str:
    """A field with its label."""
    hint = f"<small>{e(about)}</small>" if about else ""
    return f'<label class="field"><span>{e(title)}</span>{field}{hint}</label>'


def json_or_text(words: str) -> Any:
    """A field that takes any JSON; other words are a text.

    >>> json_or_text('{"a": 1}'), json_or_text("auto")
    ({'a': 1}, 'auto')
    """
    try:
        return json.loads(words)
    except (ValueError, RecursionError):
        return words


def read(form: Form, event: Event, *, prefix: str = "", owner: str = "form") -> dict[str, Any]:
    """The settings that the user chose, checked; empty fields have their defaults. Raises UsageError."""
    given: dict[str, Any] = {}
    for name, setting in form.items():
        key = f"{prefix}{name}"
        if setting.kind is bool:
            given[name] = event.flag(key)
        elif setting.kind is object and event.text(key):
            given[name] = json_or_text(event.text(key))
        elif event.text(key):
            given[name] = ",".join(event.many(key)) if len(event.many(key)) > 1 else event.text(key)
    return checked(owner, form, given)
