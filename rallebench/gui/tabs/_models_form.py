"""The form of a language model's entry, in the Models tab: what fills it and empties it."""

from __future__ import annotations

import os
from typing import Any

import gradio as gr

from rallebench.core.entries import LLMEntry
from rallebench.gui import views, views_add
from rallebench.llms.presets import preset, presets
from rallebench.services.workbench import Workbench

BACKENDS = ("openai_compatible", "transformers", "extractive-reader", "scripted")
ADD, ADD_AND_ASK, EMPTY = "Add to this workspace", "Add, load and ask", "Empty the form"


def on_group(group: str) -> list[Any]:
    """Offer the presets of a group."""
    own = group == views_add.NO_PRESET
    hint = views_add.OWN_SETTINGS if own else views_add.NONE_CHOSEN
    return [
        gr.update(choices=views_add.choices(group), value=None, visible=not own),
        views.empty(hint),
    ]


def on_preset(workbench: Workbench, chosen: str | None, name: str) -> list[Any]:
    """Fill the form with a preset, under a name that is free; a name that the user typed stays."""
    if not chosen:
        return [gr.skip()] * 16
    given = preset(chosen)
    typed = (name or "").strip()
    own = bool(typed) and preset_of(typed) is None
    entry = LLMEntry(backend=given.backend, settings=given.settings)
    fields = fill(typed if own else free_name(workbench, chosen), entry)
    return [
        *fields,
        views_add.facts(given, bool(os.environ.get("HF_TOKEN"))),
        "",
        "",
        "",
        *mode_of(""),
    ]


def preset_of(name: str) -> str | None:
    """The preset that gave a name, None if the user did."""
    head, _, number = name.rpartition("-")
    return next(
        (found for found in (name, head if number.isdigit() else "") if found in presets()), None
    )


def free_name(workbench: Workbench, wanted: str) -> str:
    """``wanted``, or with the first number that no model of the workspace has."""
    taken = {*workbench.workspace.llms(), *workbench.workspace.retrievers()}
    return next(
        name for name in (wanted, *(f"{wanted}-{n}" for n in range(2, 10_000))) if name not in taken
    )


def fill(name: str, entry: LLMEntry) -> list[Any]:
    """The values of the form for an entry."""
    values, other = views_add.form_of_entry(name, entry)
    model = values.get("model")
    return [
        entry.backend,
        name,
        gr.update(value=model, choices=[model] if model else []),
        values.get("base_url", ""),
        values.get("api_key_env", ""),
        values["quantization"],
        values["dtype"],
        other,
    ]


def mode_of(editing: str) -> list[Any]:
    """What the buttons say while a new entry is made, or one that is there is changed."""
    if not editing:
        return ["", ADD, ADD_AND_ASK, EMPTY]
    return [editing, f"Save the changes to {editing}", "Save, load and ask", "Leave it; new entry"]


def on_anew() -> list[Any]:
    """An empty form."""
    fields = fill("", LLMEntry(backend=BACKENDS[0]))
    return [*fields, views.empty(views_add.NONE_CHOSEN), "", "", "", *mode_of(""), None]
