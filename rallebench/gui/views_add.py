"""Presets and entries of language models, as HTML and as the values of the form. Pure: everything is escaped."""

from __future__ import annotations

import json
from collections.abc import Mapping
from html import escape
from typing import Any

from rallebench.core.entries import LLMEntry
from rallebench.core.errors import UsageError
from rallebench.gui.views import badge, empty, note
from rallebench.llms.presets import GROUPS, Preset, presets
from rallebench.services.model_entries import Key, Needs

FIELDS: Mapping[str, tuple[str, ...]] = {
    "openai_compatible": ("model", "base_url", "api_key_env"),
    "transformers": ("model", "quantization", "dtype"),
    "extractive-reader": (),
    "scripted": (),
}
"""Backend → those of its settings that have a field of their own in the form."""

UNSAID = {"quantization": "none", "dtype": "auto"}
"""Settings that are left out of an entry, because they are what happens anyway."""

NO_PRESET = "No preset"
NONE_CHOSEN = "Choose a preset: it fills the form below, where everything can still be changed."
OWN_SETTINGS = "Without a preset: choose a backend and fill the form yourself."


def choices(group: str) -> list[tuple[str, str]]:
    """(what is shown, id) of the presets of a group, named as people read it."""
    found = {name: given for name, given in presets().items() if GROUPS[given.group] == group}
    return [
        (given.title if given.model else f"{given.title} · {given.settings['base_url']}", name)
        for name, given in found.items()
    ]


def count(number: int) -> str:
    """A number of weights as people say it.

    >>> count(134_515_008), count(1_711_376_384), count(68_976_648_192)
    ('135 million', '1.7 billion', '69 billion')
    """
    if number >= 1_000_000_000:
        return f"{number / 1e9:.{1 if number < 10_000_000_000 else 0}f} billion"
    return f"{number / 1e6:.0f} million"


def facts(chosen: Preset, has_token: bool) -> str:
    """What is known of a preset; ``has_token``: whether HF_TOKEN is set now."""
    badges = [badge(f"{count(chosen.parameters)} weights")] if chosen.parameters else []
    badges += [badge(f"window {chosen.context:,} tokens")] if chosen.context else []
    badges += [badge(f"licence: {chosen.licence}")] if chosen.licence else []
    badges += [badge("gated", "bad")] if chosen.gated else []
    shown = f'<div class="rb-label"><b>{escape(chosen.title)}</b>{"".join(badges)}</div>'
    shown += f'<div class="rb-pad">{escape(chosen.about)}.</div>'
    if chosen.gated:
        token = "HF_TOKEN is set now." if has_token else "HF_TOKEN is not set now."
        shown += note(
            f"Its owner asks you to accept the licence first, at huggingface.co/{chosen.model}; then set the environment "
            f"variable HF_TOKEN to a token of your account before rallebench is started. {token}"
        )
    if chosen.start:
        shown += f'<div class="rb-pad">To start it: <code>{escape(chosen.start)}</code></div>'
    return shown


def needs(found: Needs) -> str:
    """What a model takes."""
    text = " ".join(found.sentences)
    return empty(text) if not found.bytes else note(text, "good" if found.fits else "note")


BORDERS = {
    "below": "decline_below",
    "right_kept": "right answers kept",
    "absent_declined": "prompts without an answer declined",
    "given_right": "answers given that are right",
}
"""Column of the built-in reader's measured borders → its head."""


def borders(about: Mapping[str, Any]) -> str:
    """What the built-in reader loses and gains by declining; ``about``: what its weights say of themselves."""
    usual, prompts = about["refuse_below"], about["calibration"]["prompts"]
    told = note(
        f"The built-in reader under another name, with a border of your own: decline_below, 0 to 1, is the confidence below "
        f"which it withholds its answer. Without it: {usual['short']:g} where the prompt says what to do without an answer, "
        f"{usual['plain']:g} elsewhere. Measured on {prompts} five-passage prompts, half of them without the answer:"
    )
    heads = "".join(f'<th class="num">{escape(head)}</th>' for head in BORDERS.values())
    body = "".join(
        f'<tr><td class="num">{row["below"]:.2f}</td>'
        + "".join(f'<td class="num">{row[key]:.0%}</td>' for key in BORDERS if key != "below")
        + "</tr>"
        for row in about["trade_off"]
    )
    return f'{told}<table class="rb-table rb-tight"><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>'


def key_line(key: Key) -> str:
    """Which key a server gets, and whether it is set now."""
    if not key.variable:
        return empty("No key is sent. If the server wants one, name the variable that holds it.")
    if key.is_set:
        return note(
            f"{key.variable} is set now; its key is sent to this server, and to no other.", "good"
        )
    unset = f"{key.variable} is not set now, so no key is sent"
    if key.local:
        return empty(f"{unset}; a server on this machine seldom wants one.")
    return note(f"{unset}. If the server wants one, set it before rallebench is started.")


def found(names: tuple[str, ...]) -> str:
    """The answer to Find models."""
    if not names:
        return note(
            "The server is there but has no model yet: load or fetch one there, then press Find models again."
        )
    several = (
        f"{len(names)} models; choose one under Model"
        if len(names) > 1
        else f"one model, {names[0]}"
    )
    return note(f"The server has {several}.", "good")


# the form


def entry_of_form(backend: str, values: Mapping[str, Any], other: str) -> LLMEntry:
    """The form's fields as an entry; fields of other backends do not count. Raises UsageError."""
    if backend not in FIELDS:
        raise UsageError(f"There is no backend {backend!r} in this form.")
    given = {name: str(values.get(name) or "").strip() for name in FIELDS[backend]}
    settings: dict[str, Any] = {
        name: value for name, value in given.items() if value and value != UNSAID.get(name)
    }
    more = json_object(other)
    if twice := [name for name in more if name in settings]:
        raise UsageError(
            f"{twice[0]!r} stands in its own field and in the other settings; leave one out."
        )
    return LLMEntry(backend=backend, settings={**settings, **more})


def form_of_entry(name: str, entry: LLMEntry) -> tuple[dict[str, str], str]:
    """An entry as the values of the fields, by setting, and the text of the other settings. Raises UsageError."""
    if entry.backend not in FIELDS:
        raise UsageError(
            f"{name!r} has the backend {entry.backend!r}, which this form does not know; change it with "
            f"rallebench models change {name} --set KEY=VALUE."
        )
    own = {
        key: entry.settings[key]
        for key in FIELDS[entry.backend]
        if isinstance(entry.settings.get(key), str)
    }
    rest = {key: value for key, value in entry.settings.items() if key not in own}
    return {**UNSAID, **own}, json.dumps(rest, ensure_ascii=False, indent=1) if rest else ""


def json_object(text: str) -> dict[str, Any]:
    """A JSON object that the user typed, {} if nothing was. Raises UsageError."""
    try:
        value = json.loads(text) if (text or "").strip() else {}
    except (ValueError, RecursionError) as error:
        raise UsageError(f"The other settings are not valid JSON ({error}).") from None
    if not isinstance(value, dict):
        raise UsageError('The other settings must be a JSON object, as in {"temperature": 0.2}.')
    return value
