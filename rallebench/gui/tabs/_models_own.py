"""Change or delete a language model that was added to the workspace, in the Models tab."""

from __future__ import annotations

from functools import partial
from typing import Any

import gradio as gr

from rallebench.core.errors import RalleError, UsageError
from rallebench.gui import views
from rallebench.gui.session import guard
from rallebench.gui.tabs._models_form import fill, mode_of
from rallebench.services.workbench import Workbench

NONE = "No language model has been added to this workspace yet."


def draw_own(workbench: Workbench, panel: gr.Accordion, filled: list[Any]) -> None:
    """Choose one, change it in the form (``panel``; ``filled`` are its parts), or delete it."""
    asked = gr.State("")
    with gr.Accordion(
        "Change or delete an added language model", open=False, elem_id="models-own-panel"
    ) as opened:
        with gr.Row(equal_height=True, elem_classes="rb-tools"):
            chosen = gr.Dropdown(
                names(workbench),
                value=None,
                label="Added to this workspace",
                allow_custom_value=True,
                elem_id="models-own-chosen",
                scale=5,
                min_width=200,
            )
            edit = gr.Button("Change", elem_id="models-own-edit", scale=1, min_width=110)
            delete = gr.Button("Delete …", elem_id="models-own-delete", scale=1, min_width=110)
        with gr.Row(elem_classes="rb-tools"):
            sure = gr.Button(
                "", variant="stop", visible=False, elem_id="models-own-delete-sure", scale=3
            )
            keep = gr.Button(
                "Keep it", visible=False, elem_id="models-own-delete-keep", scale=1, min_width=110
            )
        said = gr.HTML(elem_id="models-own-status", elem_classes="rb-flush")
    shown = [asked, sure, keep, said]
    gr.on(
        [opened.expand, chosen.focus],
        partial(guard, on_own, workbench),
        [chosen],
        [chosen, said],
        show_progress="hidden",
    )
    edit.click(
        partial(guard, on_edit, workbench),
        [chosen],
        [panel, opened, *filled],
        show_progress="hidden",
    )
    delete.click(partial(guard, on_delete, workbench), [chosen], shown, show_progress="hidden")
    sure.click(
        partial(guard, on_sure, workbench), [asked], [*shown, chosen], show_progress="hidden"
    )
    keep.click(on_keep, None, shown, show_progress="hidden")
    # Not .input: a drop-down that takes any text fires that whenever it is left, too.
    chosen.change(on_other, [chosen], shown, show_progress="hidden")


def names(workbench: Workbench) -> list[str]:
    """The entries that were added; none where their file is damaged, which the table above says."""
    try:
        return list(workbench.models.own())
    except RalleError:
        return []


def on_own(workbench: Workbench, chosen: str | None) -> list[Any]:
    """What has been added by now, by whomever."""
    found = list(workbench.models.own())
    gone = bool(chosen) and chosen not in found
    return [
        gr.update(choices=found, value=None) if gone else gr.update(choices=found),
        gr.skip() if found else views.empty(NONE),
    ]


def on_edit(workbench: Workbench, chosen: str | None) -> list[Any]:
    """Open the form with an entry in it."""
    if not chosen:
        raise UsageError("No language model is chosen, so there is nothing to change.")
    fields = fill(chosen, workbench.models.entry(chosen))
    facts = views.empty(
        f"Change {chosen} below, then save it. Another name makes a new entry and leaves this one."
    )
    return [
        gr.Accordion(open=True),
        gr.Accordion(open=False),
        *fields,
        facts,
        "",
        "",
        "",
        *mode_of(chosen),
        None,
    ]


def on_delete(workbench: Workbench, chosen: str | None) -> list[Any]:
    """Say who uses it, and ask again before anything is deleted."""
    if not chosen:
        raise UsageError("No language model is chosen, so there is nothing to delete.")
    workbench.models.entry(chosen)
    if workbench.models.is_loaded(chosen):
        return [
            *on_keep()[:3],
            views.error(f"{chosen} is loaded; unload it above, then delete it."),
        ]
    users = workbench.models.users(chosen)
    said = views.note(f"{chosen} is used by {', '.join(users)}.") if users else ""
    return [
        chosen,
        gr.update(visible=True, value=f"Yes, delete {chosen}"),
        gr.update(visible=True),
        said,
    ]


def on_keep() -> list[Any]:
    """Nothing is deleted."""
    return ["", gr.update(visible=False), gr.update(visible=False), ""]


def on_other(chosen: str | None) -> list[Any]:
    """Another one is chosen: nothing is asked of the earlier one any more."""
    return [*on_keep()[:3], "" if chosen else gr.skip()]


def on_sure(workbench: Workbench, asked: str) -> list[Any]:
    """Delete what was asked about, and nothing else."""
    try:
        said = views.note(workbench.models.delete(asked), "good")
    except RalleError as error:
        said = views.error(str(error))
    return [
        "",
        *[gr.update(visible=False)] * 2,
        said,
        gr.update(choices=names(workbench), value=None),
    ]
