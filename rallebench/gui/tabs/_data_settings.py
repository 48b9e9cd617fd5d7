"""Forms made of what a registry says of its settings: one group per kind, of which one is shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import gradio as gr

from rallebench.core.settings import Setting
from rallebench.gui.wording import on_page

Known = Mapping[str, Mapping[str, Setting]]
"""Kind → its settings by name."""

MOST_IN_A_ROW = 6
NONE = "This kind has no settings."


@dataclass
class SettingsForm:
    """``groups``: kind → its box; ``inputs``: the components of all kinds, in the order of ``names``."""

    groups: dict[str, gr.Group] = field(default_factory=dict)
    inputs: list[Any] = field(default_factory=list)
    names: list[tuple[str, str]] = field(default_factory=list)


def draw_settings(known: Known, part: str, shown: str) -> SettingsForm:
    """A group for each kind; only that of ``shown`` is seen."""
    form = SettingsForm()
    for kind, settings in known.items():
        with gr.Group(visible=kind == shown, elem_id=f"{part}-{kind}") as form.groups[kind]:
            for row in rows_of(settings):
                with gr.Row(equal_height=True):
                    for name in row:
                        form.inputs.append(_input(name, settings[name], f"{part}-{kind}-{name}"))
                        form.names.append((kind, name))
            if not settings:
                gr.HTML(f'<div class="rb-label rb-pad">{NONE}</div>', elem_classes="rb-flush")
    return form


def rows_of(settings: Mapping[str, Setting]) -> list[list[str]]:
    """The names of settings, row by row: all in one while they fit, else what is ticked in rows of its own."""
    if len(settings) <= MOST_IN_A_ROW:
        return [list(settings)]
    ticked = [name for name, setting in settings.items() if setting.kind is bool]
    found = []
    for names in ([name for name in settings if name not in ticked], ticked):
        rows = -(-len(names) // MOST_IN_A_ROW)
        wide = -(-len(names) // rows) if rows else 1
        found += [names[at : at + wide] for at in range(0, len(names), wide)]
    return found


def _input(name: str, setting: Setting, elem_id: str) -> Any:
    about: dict[str, Any] = {
        "label": name,
        "info": on_page(setting.about or setting.must_be),
        "elem_id": elem_id,
        "min_width": 170,
    }
    if setting.kind is bool:
        return gr.Checkbox(setting.default, **about)
    if setting.choices:
        return gr.Dropdown(list(setting.choices), value=setting.default, **about)
    if setting.kind is str:
        return gr.Textbox(setting.default, max_lines=1, **about)
    return gr.Number(setting.default, precision=0 if setting.kind is int else None, **about)


def show_group(kinds: Sequence[str], kind: str | None) -> list[Any]:
    """Updates that show the group of one kind."""
    return [gr.update(visible=other == kind) for other in kinds]


def given(names: Sequence[tuple[str, str]], kind: str, values: Sequence[Any]) -> dict[str, Any]:
    """The settings of one kind among the values of all; an emptied field is left to its default."""
    return {
        name: value
        for (its, name), value in zip(names, values)
        if its == kind and value is not None
    }
