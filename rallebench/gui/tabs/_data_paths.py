"""A file of this machine, or an uploaded one; a corpus by its name or its place."""

from __future__ import annotations

from typing import Any

import gradio as gr

from rallebench.services.workbench import Workbench
from rallebench.workspace.paths import STARTER

STARTER_CORPUS = str(STARTER / "corpus.tsv")


def draw_path(label: str, info: str, elem_id: str) -> gr.Textbox:
    """A path; a file that is uploaded or dropped on the button's side writes its place into the box."""
    with gr.Row(elem_classes="rb-tools"):
        path = gr.Textbox(
            label=label, info=info, max_lines=1, elem_id=elem_id, scale=8, min_width=240
        )
        upload = gr.UploadButton("Upload", elem_id=f"{elem_id}-upload", scale=1, min_width=110)
    upload.upload(on_upload, [upload], [path], show_progress="hidden")
    return path


def on_upload(path: str) -> str:
    """Where the uploaded file lies."""
    return path


def draw_corpus(label: str, elem_id: str, choices: list[tuple[str, str]]) -> gr.Dropdown:
    """An imported corpus, or the path of a file or folder typed in its place."""
    return gr.Dropdown(
        choices,
        value=choices[0][1],
        label=label,
        info="an imported corpus, or the path of a file or folder",
        allow_custom_value=True,
        elem_id=elem_id,
        scale=4,
        min_width=240,
    )


def corpora_choices(workbench: Workbench) -> list[tuple[str, str]]:
    """(shown, value) of the corpora that can be chosen; the shipped one is last."""
    names = [(name, name) for name in workbench.data.corpora()]
    return [*names, ("starter corpus (shipped)", STARTER_CORPUS)]


def whole_path(text: str | None) -> str:
    """A path as it was typed, without the quotes that file managers put around it."""
    return (text or "").strip().strip("\"'").strip()


def offered(names: list[Any], chosen: Any, *, custom: bool = False) -> Any:
    """Choices of a list or drop-down; what is chosen stays chosen while it can be.

    A value is sent only if it must change: the visitor may be choosing another at this moment.
    """
    values = [name[1] if isinstance(name, tuple) else name for name in names]
    if isinstance(chosen, list):
        left = [name for name in chosen if name in values]
        return gr.update(choices=names) if left == chosen else gr.update(choices=names, value=left)
    if chosen in values or (custom and chosen):
        return gr.update(choices=names)
    return gr.update(choices=names, value=values[0] if values else None)
