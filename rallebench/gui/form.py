"""Forms for declared settings: draw them as HTML, and read them back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from rallebench.core.numbers import plural
from rallebench.core.repeats import ONCE, RepeatOptions, repeat_options
from rallebench.core.settings import Setting, check_values
from rallebench.core.spending_limit import SpendingLimit, spending_limit
from rallebench.core.types import Json
from rallebench.gui.events import Event
from rallebench.gui.html import NOTHING, attributes, fold

Form = Mapping[str, Setting]
Choices = Mapping[str, Sequence[Any]]
"""Setting → the values on offer, each a text or (value, label)."""


def draw(
    form: Form,
    values: Mapping[str, Any],
    choices: Choices,
    *,
    prefix: str = "",
    folded: Iterable[str] = (),
) -> Markup:
    """Draw the controls of all settings; ``folded``: settings under "Advanced"."""
    hidden = set(folded)
    visible, advanced = "", ""
    for name, setting in form.items():
        value = values.get(name, setting.default)
        field = control(name, setting, value, choices.get(name), prefix)
        visible, advanced = (
            (visible, advanced + field) if name in hidden else (visible + field, advanced)
        )
    more = Markup()
    if advanced:
        gist = plural(len(hidden), "setting")
        more = fold("Advanced", fields(advanced), gist=gist, id=f"{prefix}advanced")
    return fields(visible) + more


def fields(*controls: str) -> Markup:
    """Draw controls side by side, as many per row as fit; "" for none."""
    drawn = Markup().join(controls)
    return Markup('<div class="fields">{}</div>').format(drawn) if drawn else Markup()


def control(
    name: str, setting: Setting, value: Any, choices: Sequence[Any] | None, prefix: str = ""
) -> Markup:
    """Draw the label and control of one setting."""
    title = setting.title or name.replace("_", " ")
    title = title[:1].upper() + title[1:]
    key, about = f"{prefix}{name}", setting.about
    value = "" if value is None else value
    if setting.kind is not object and isinstance(value, (list, tuple)):
        value = ",".join(map(str, value))
    if setting.kind is bool:
        return check(key, title, bool(value), about=about)
    if choices is None and setting.choices:
        choices = setting.choices
    required = Markup(" required") if setting.required else NOTHING
    if setting.is_path:
        return text(key, title, value, setting.takes, about, required, choices or ())
    if choices is not None and setting.many:
        return checks(key, choices, str(value).split(","), title, about, id="x")
    if choices is not None:
        field = select(key, choices, value, blank="" if setting.required else "–")
    elif setting.kind in (int, float):
        step = "1" if setting.kind is int else "any"
        field = Markup('<input type="number" name="{}" value="{}" step="{}"{}>').format(
            key, value, step, limits(setting)
        )
    else:
        if setting.kind is object and not isinstance(value, str):
            value = json.dumps(value, ensure_ascii=False)
        field = Markup('<input name="{}" value="{}"{}>').format(key, value, required)
    return Markup('<label class="field" title="{}"><span>{}</span>{}</label>').format(
        about, title, field
    )


def limits(setting: Setting) -> Markup:
    """Return the attributes ``min`` and ``max`` of a number field."""
    ends = (("min", setting.low), ("max", setting.high))
    return Markup().join(
        Markup(' {}="{:g}"').format(word, limit) for word, limit in ends if limit is not None
    )


def on_change(do: str, **data: Any) -> Markup:
    """Return attributes that trigger an action when the field changes."""
    return attributes(do=do, on="change", **data)


def on_edit(do: str, **data: Any) -> Markup:
    """Return attributes of a part of a form that trigger an action when a field in it changes, and while a number is typed."""
    return attributes(do=do, on="edit", **data)


def on_enter(do: str, **data: Any) -> Markup:
    """Return attributes for the first field of a dialog that trigger an action on Enter."""
    return Markup("{} autofocus").format(attributes(do=do, on="enter", **data))


def check(
    name: str,
    label: str,
    ticked: bool = False,
    *,
    value: str = "",
    about: str = "",
    id: str = "",
    kind: str = "checkbox",
    more: Markup = NOTHING,
) -> Markup:
    """Draw a check box, or a radio button in a group of the same name."""
    more += Markup().join(
        Markup(' {}="{}"').format(key, words)
        for key, words in (("id", id), ("value", value))
        if words
    )
    box = Markup('<input type="{}" name="{}"{}{}>').format(
        kind, name, more, Markup(" checked") if ticked else NOTHING
    )
    return Markup('<label class="check" title="{}">{} {}</label>').format(about, box, label)


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
) -> Markup:
    """Draw a group of check boxes, each a text or (value, label).

    ``legend``: the heading; ``about``: a line below it; ``abouts``: value → its own line; ``id``: prefix of the
    boxes' ids.
    """
    ticked, boxes = set(chosen), Markup()
    for value, label in pairs(choices):
        own_id, about_value = f"{id}-{name}-{value}" if id else "", (abouts or {}).get(value, "")
        boxes += check(
            name, label, value in ticked, value=value, about=about_value, id=own_id, kind=kind
        )
    boxes = Markup('<div class="checks">{}</div>').format(boxes)
    if not legend:
        return boxes
    return Markup(
        '<fieldset class="plain" title="{}"><legend class="note">{}</legend>{}</fieldset>'
    ).format(about, legend, boxes)


def pairs(choices: Iterable[Any]) -> list[tuple[Any, Any]]:
    """Return choices as (value, label)."""
    return [choice if isinstance(choice, tuple) else (choice, choice) for choice in choices]


def select(
    name: str, choices: Sequence[Any], value: Any, *, blank: str = "", more: Markup = NOTHING
) -> Markup:
    """Draw a drop-down. ``blank``: label of an empty choice, "" for none. A value that is not on offer is shown as
    missing.
    """
    offered = [("", blank), *pairs(choices)] if blank else pairs(choices)
    if str(value) not in {str(v) for v, _ in offered} and value not in ("", None):
        offered.append((value, f"{value} (missing)"))
    options = Markup().join(
        Markup('<option value="{}"{}>{}</option>').format(
            v, Markup(" selected") if str(v) == str(value) else NOTHING, label
        )
        for v, label in offered
    )
    return Markup('<select name="{}"{}>{}</select>').format(name, more, options)


def chooser(
    title: str,
    name: str,
    choices: Sequence[Any],
    value: Any,
    about: str = "",
    *,
    blank: str = "",
    more: Markup = NOTHING,
) -> Markup:
    """Draw a labelled drop-down; see ``select``."""
    return label_field(title, select(name, choices, value, blank=blank, more=more), about)


def text(
    name: str,
    title: str,
    value: Any = "",
    hint: str = "",
    about: str = "",
    more: Markup = NOTHING,
    offers: Iterable[Any] = (),
) -> Markup:
    """Draw a labelled text field. ``hint``: its placeholder; ``about``: a line below it; ``offers``: see
    ``suggestions``.
    """
    listed = f"{name}-offers" if (offers := list(offers)) else ""
    more += Markup(' list="{}"').format(listed) if offers else Markup()
    field = Markup('<input name="{}" value="{}" placeholder="{}"{}>').format(
        name, value, hint, more
    )
    return label_field(title, field + (suggestions(listed, offers) if offers else Markup()), about)


def number(
    name: str,
    title: str,
    value: Any = "",
    low: int | None = None,
    hint: str = "",
    more: Markup = NOTHING,
) -> Markup:
    """Draw a labelled number field; ``low``: the minimum."""
    more = Markup(' type="number"{}{}').format(limits(Setting(int, None, low)), more)
    return text(name, title, "" if value is None else value, hint, more=more)


def spending_limit_field(value: str = "") -> Markup:
    """Draw a field for the dollars at which a work stops."""
    more = Markup(' type="number" min="0" step="any"')
    about = "Stops once new calls of models have cost so much; what was answered is kept."
    return text("max_usd", "Spending limit (US$)", value, "none", about, more)


def read_spending_limit(event: Event) -> SpendingLimit | None:
    """Return the limit in the form; None if the field is empty. Raises UsageError."""
    return spending_limit(event.number("max_usd", "The spending limit"))


def repeats_field(value: str = "") -> Markup:
    """Draw a field for the number of times that every question is asked."""
    more = Markup(' type="number" min="1"')
    about = "Where a model samples; scores are then means, with their spread."
    return text("repeats", "Repeats of each question", value, "1", about, more)


def read_repeats(event: Event) -> RepeatOptions:
    """Return the repeats in the form; one if the field is empty. Raises UsageError."""
    number = event.whole("repeats", "Repeats of each question")
    return ONCE if number is None else repeat_options(number)


def questions(value: Any = "", *, most: str = "all", more: Markup = NOTHING) -> Markup:
    """Draw a field for the number of questions to take from the start of a dataset; ``most``: the meaning of an
    empty field.
    """
    more = Markup(' type="number" min="1"{}').format(more)
    return text("limit", "Questions", value, most, more=more, offers=(10, 30, 50, 100, 200, 500))


def filter_field(
    id: str, value: str, do: str, hint: str = "Filter", name: str = "words", **data: Any
) -> Markup:
    """Draw a field that filters a list on every keystroke, or only on Enter with ``on="enter"``.

    ``enter``: the action on Enter; the key ``/`` focuses this field.
    """
    about = Markup(' id="{}" placeholder="{}" aria-label="{}"').format(id, hint, hint)
    follow = attributes(do=do, **{"on": "input", **data})
    return Markup('<input name="{}" value="{}"{} data-filter{}>').format(name, value, about, follow)


def area(name: str, title: str, value: str = "", rows: int = 1, more: Markup = NOTHING) -> Markup:
    """Draw a labelled multi-line field."""
    return label_field(
        title,
        Markup('<textarea name="{}" rows="{}" dir="auto"{}>\n{}</textarea>').format(
            name, rows, more, value
        ),
    )


def drop(do: str, about: str = "", *, accept: str = "") -> Markup:
    """Draw an area for dropping, pasting or choosing a file; all of it can be pressed."""
    kinds = Markup(' accept="{}"').format(accept) if accept else Markup()
    return Markup(
        '<label class="drop" data-upload="{}"><span class="link">Choose a file</span>'
        '<input type="file" class="sr" aria-label="Choose a file"{}><small>{}</small></label>'
    ).format(do, kinds, about)


def suggestions(id: str, choices: Iterable[Any]) -> Markup:
    """Draw the suggestions of a field with ``list=id``, each a text or (value, label)."""
    pairs = [choice if isinstance(choice, tuple) else (choice, "") for choice in choices]
    options = Markup().join(
        Markup('<option value="{}">{}</option>').format(value, label) for value, label in pairs
    )
    return Markup('<datalist id="{}">{}</datalist>').format(id, options)


def hidden_fields(**values: Any) -> Markup:
    """Draw hidden fields that the form sends."""
    return Markup().join(
        Markup('<input type="hidden" name="{}" value="{}">').format(name, value)
        for name, value in values.items()
    )


def label_field(title: str, field: str, about: str = "") -> Markup:
    """Draw a field with its label."""
    hint = Markup("<small>{}</small>").format(about) if about else Markup()
    return Markup('<label class="field"><span>{}</span>{}{}</label>').format(title, field, hint)


def json_or_text(words: str) -> Any:
    """Parse a field that accepts any JSON; anything else is plain text.

    >>> json_or_text('{"a": 1}'), json_or_text("auto")
    ({'a': 1}, 'auto')
    """
    try:
        return json.loads(words)
    except (ValueError, RecursionError):
        return words


def read(form: Form, event: Event, *, prefix: str = "", owner: str = "form") -> Json:
    """Return the checked settings; empty fields take their defaults. Raises UsageError."""
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
    return check_values(owner, form, values)


def changed_settings(
    form: Form, event: Event, *, prefix: str = "", owner: str = "form"
) -> dict[str, Any]:
    """Return the checked settings that differ from their defaults. Raises UsageError."""
    values = read(form, event, prefix=prefix, owner=owner)
    return {name: value for name, value in values.items() if value != form[name].default}
