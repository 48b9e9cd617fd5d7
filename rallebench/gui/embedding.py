"""The page as ``gr.Blocks``, for an application of another program."""

from __future__ import annotations

import weakref
from pathlib import Path

import gradio as gr
from markupsafe import Markup

from rallebench.gui.app import build_app
from rallebench.gui.assets import head
from rallebench.gui.frame import Page
from rallebench.gui.themes import read_theme, tokens
from rallebench.gui.vendored import FOLDER
from rallebench.services.workbench import Workbench

VENDORED = f"gradio_api/file={FOLDER.as_posix()}"
"""Address of the vendored files below the application's own, where Gradio serves them as static files."""


def embed(workspace: str | Path, *, theme: str = "", read_only: bool = False) -> gr.Blocks:
    """Return the page over a workspace, as ``rallebench.gui.blocks`` describes it."""
    rules = tokens(read_theme(theme)) if theme else Markup()
    workbench = Workbench(Path(workspace), read_only=read_only)
    page = Page(workbench)
    gr.set_static_paths([FOLDER])
    embedded = build_app(page, style=head(VENDORED, rules))
    weakref.finalize(embedded, _close, page, workbench)
    return embedded


def _close(page: Page, workbench: Workbench) -> None:
    page.close()
    workbench.close()
