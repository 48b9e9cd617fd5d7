"""A form of declared settings as HTML, and what the user chose in it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rallebench.core.settings import Setting, checked
from rallebench.gui.frame import Event
from rallebench.gui.html import attributes, e, fold
from rallebench.render.numbers import plural

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
    visible, advanced = "", ""
    for name, setting in form.items():
        value = values.get(name, setting.default)
        field = control(name, setting, value, choices.get(name), prefix)
        visible, advanced = (
            (visible, advanced + field) if name in hidden else (visible + field, advanced)
        )
    more = ""
    if advanced:
        gist = plural(len(hidden), "setting")
        more = fold("Advanced", fields(advanced), gist=gist, id=f"{prefix}advanced")
    return fields(visible) + more


def fields(*controls: str) -> str:
    """Controls side by side, as many in a row as there is room for; "" for none."""
    drawn = "".join(controls)
    return f'<div class="fields">{drawn}</div>' if drawn else ""


def control(
    name: str, setting: Setting, value: Any, choices: Sequence[Any] | None, prefix: str = ""
) -> str:
    """The label and the control of one setting."""
    title = name.replace("_", " ")
    title = title[:1].upper() + title[1:]
    key, about = f"{prefix}{name}", setting.about
    value = "" if value is None else value
    if setting.kind is not object and isinstance(value, (list, tuple)):
        value = ",".join(map(str, value))
    if setting.kind is bool:
        return check(key, title, bool(value), about=about)
    if choices is None and setting.choices:
        choices = setting.choices
    required = " required" if setting.required else ""
    if setting.is_path:
        return text(key, title, value, setting.takes, about, required, choices or ())
    if choices is not None and setting.many:
        return checks(key, choices, str(value).split(","), title, about, id="x")
    if choices is not None:
        field = select(key, choices, value, blank="" if setting.required else "–")
    elif setting.kind in (int, float):
        step = "1" if setting.kind is int else "any"
        field = f'<input type="number" name="{e(key)}" value="{e(value)}" step="{step}"{limits(setting)}>'
    else:
        if setting.kind is object and not isinstance(value, str):
            value = json.dumps(value, ensure_ascii=False)
        field = f'<input name="{e(key)}" value="{e(value)}"{required}>'
    return f'<label class="field" title="{e(about)}"><span>{e(title)}</span>{field}</label>'


def limits(setting: Setting) -> str:
    """The attributes ``min`` and ``max`` of a number."""
    ends = (("min", setting.low), ("max", setting.high))
    return "".join(f' {word}="{limit:g}"' for word, limit in ends if limit is not None)


def on_change(do: str, **data: Any) -> str:
    """The attributes of a field whose change is an action."""
    return attributes(do=do, on="change", **data)


def on_enter(do: str, **data: Any) -> str:
    """The attributes of the field with which a dialog opens; Enter in it is an action."""
    return f"{attributes(do=do, on='enter', **data)} autofocus"


def check(
    name: str,
    label: str,
    ticked: bool = False,
    *,
    value: str = "",
    about: str = "",
    id: str = "",
    kind: str = "checkbox",
) -> str:
    """A box to tick; ``kind`` "radio": of those with the same name only one is ticked."""
    more = "".join(f' {key}="{e(words)}"' for key, words in (("id", id), ("value", value)) if words)
    box = f'<input type="{kind}" name="{e(name)}"{more}{" checked" if ticked else ""}>'
    return f'<label class="check" title="{e(about)}">{box} {e(label)}</label>'


def checks(
    name: str,
    choices: Iterable[Any],
    chosen: Iterable[str] = (),
    legend: str = "",
    about: str = "",
    *,
    abouts: Mapping[str, str] | None = None,
    id: str = "",
    kind: str = "checkbox",
) -> str:
    """Boxes of which several may be ticked, each a text or (value, label); ``legend``: their heading, ``about`` a line on it;
    ``abouts``: value → a line on it; ``id``: with what the ids of the boxes begin."""
    ticked, boxes = set(chosen), ""
    for value, label in pairs(choices):
        more = {"id": f"{id}-{name}-{value}" if id else "", "about": (abouts or {}).get(value, "")}
        boxes += check(name, label, value in ticked, value=value, kind=kind, **more)
    boxes = f'<div class="checks">{boxes}</div>'
    if not legend:
        return boxes
    return f'<fieldset class="plain" title="{e(about)}"><legend class="note">{e(legend)}</legend>{boxes}</fieldset>'


def pairs(choices: Iterable[Any]) -> list[tuple[Any, Any]]:
    """Choices as (value, label)."""
    return [choice if isinstance(choice, tuple) else (choice, choice) for choice in choices]


def select(
    name: str, choices: Sequence[Any], value: Any, *, blank: str = "", more: str = ""
) -> str:
    """A drop-down; ``blank``: the label of an empty choice, "" for none. A value that is no choice is named as missing."""
    offered = [("", blank), *pairs(choices)] if blank else pairs(choices)
    if str(value) not in {str(v) for v, _ in offered} and value not in ("", None):
        offered.append((value, f"{value} (missing)"))
    options = "".join(
        f'<option value="{e(v)}"{" selected" if str(v) == str(value) else ""}>{e(label)}</option>'
        for v, label in offered
    )
    return f'<select name="{e(name)}"{more}>{options}</select>'


def chooser(
    title: str,
    name: str,
    choices: Sequence[Any],
    value: Any,
    about: str = "",
    *,
    blank: str = "",
    more: str = "",
) -> str:
    """A labelled drop-down; see ``select``."""
    return labelled(title, select(name, choices, value, blank=blank, more=more), about)


def text(
    name: str,
    title: str,
    value: Any = "",
    hint: str = "",
    about: str = "",
    more: str = "",
    offers: Iterable[Any] = (),
) -> str:
    """A labelled text field; ``hint`` stands in it while it is empty, ``about`` below it; ``offers``: see ``suggestions``."""
    listed = f"{name}-offers" if (offers := list(offers)) else ""
    more += f' list="{e(listed)}"' if offers else ""
    field = f'<input name="{e(name)}" value="{e(value)}" placeholder="{e(hint)}"{more}>'
    return labelled(title, field + (suggestions(listed, offers) if offers else ""), about)


def number(
    name: str, title: str, value: Any = "", low: int | None = None, hint: str = "", more: str = ""
) -> str:
    """A labelled number; ``low``: the least that is permitted."""
    more = f' type="number"{limits(Setting(int, None, low))}{more}'
    return text(name, title, "" if value is None else value, hint, more=more)


def questions(value: Any = "", *, most: str = "all", more: str = "") -> str:
    """How many questions of a dataset are taken, from its first on: any number; ``most``: what an empty field takes."""
    more = f' type="number" min="1"{more}'
    return text("limit", "Questions", value, most, more=more, offers=(10, 30, 50, 100, 200, 500))


def filter_field(
    id: str, value: str, do: str, hint: str = "Filter", name: str = "words", **data: Any
) -> str:
    """The field that filters a list as it is typed into, or ``on="enter"``; ``/`` puts the focus there."""
    about = f' id="{id}" placeholder="{e(hint)}" aria-label="{e(hint)}"'
    follow = attributes(do=do, **{"on": "input", **data})
    return f'<input name="{name}" value="{e(value)}"{about} data-filter{follow}>'


def area(name: str, title: str, value: str = "", rows: int = 1, more: str = "") -> str:
    """A labelled text of several lines."""
    return labelled(
        title, f'<textarea name="{e(name)}" rows="{rows}"{more}>\n{e(value)}</textarea>'
    )


def drop(do: str, about: str = "", *, accept: str = "") -> str:
    """A place to drop a file or to choose one."""
    kinds = f' accept="{accept}"' if accept else ""
    choose = (
        f'<label class="link" tabindex="0">Choose a file<input type="file" hidden{kinds}></label>'
    )
    return f'<div class="drop" data-upload="{do}">{choose}<small>{e(about)}</small></div>'


def suggestions(id: str, choices: Iterable[Any]) -> str:
    """What a field with ``list=id`` offers, each a text or (value, label)."""
    pairs = [choice if isinstance(choice, tuple) else (choice, "") for choice in choices]
    options = "".join(f'<option value="{e(value)}">{e(label)}</option>' for value, label in pairs)
    return f'<datalist id="{e(id)}">{options}</datalist>'


def hidden(**values: Any) -> str:
    """Values that a form sends and nobody sees."""
    return "".join(
        f'<input type="hidden" name="{e(name)}" value="{e(value)}">'
        for name, value in values.items()
    )


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
    values: dict[str, Any] = {}
    for name, setting in form.items():
        key = f"{prefix}{name}"
        if setting.kind is bool:
            values[name] = event.flag(key)
        elif setting.kind is object and event.text(key):
            values[name] = json_or_text(event.text(key))
        elif event.text(key):
            values[name] = (
                ",".join(event.many(key)) if len(event.many(key)) > 1 else event.text(key)
            )
    return checked(owner, form, values)


def changed(form: Form, event: Event, *, prefix: str = "", owner: str = "form") -> dict[str, Any]:
    """The chosen settings that differ from the defaults, checked. Raises UsageError."""
    values = read(form, event, prefix=prefix, owner=owner)
    return {name: value for name, value in values.items() if value != form[name].default}
