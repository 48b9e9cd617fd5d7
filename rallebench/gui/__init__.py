"""The page. It is a thin view: a handler reads fields, makes one call of the services, and draws the result with a
pure view.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import gradio

__all__ = ["blocks"]


def blocks(workspace: str | Path, *, theme: str = "", read_only: bool = False) -> gradio.Blocks:
    """Return the page over a workspace, which is created if it does not exist, for an application of your own.

    Mount it with ``gr.mount_gradio_app``, launch it, or ``render()`` it in a ``gr.Blocks``, which has at most one page.
    Login, host names and content policy are those of your application. ``theme``: as in ``ui --theme``. The workspace
    is closed with the program. Raises UsageError for an unknown theme.
    """
    from rallebench.gui.embedding import embed  # late, because importing Gradio takes seconds

    return embed(workspace, theme=theme, read_only=read_only)
