"""What the tabs share: the chain form (its widgets *are* the chain), and handlers' common manners.

A visitor's values live in the widgets and ``gr.State`` of that visitor's page; the server keeps none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from html import escape
from typing import Any

import gradio as gr

from rallebench.core.errors import RalleError
from rallebench.gui.wording import on_page
from rallebench.services.workbench import Workbench


@dataclass
class Session:
    """Components that several tabs read or fill. Filled while the page is drawn, in tab order.

    ``form`` is the flat list of the chain form's inputs (see ``gui.form``), ``groups`` the boxes of its
    actions; ``executed`` is what Develop shows of them (see ``gui.executed``): whoever fills the form with
    another chain blanks it. ``open_question`` is a State that a tab sets to
    ``{"run": …, "position": …, "at": …}`` to open a question of a run: in Develop that of a chain, in Agent that of
    an agent; ``compare_runs`` likewise one of
    ``{"runs": […], "at": …}``, runs to compare. ``episode`` is the name of the one that Agent follows,
    ``edited_chain`` the chain that was last edited in Develop, as JSON text; the browser keeps both.
    """

    tabs: gr.Tabs
    form: list[Any] = field(default_factory=list)
    groups: list[Any] = field(default_factory=list)
    executed: list[Any] = field(default_factory=list)
    dataset: Any = None
    open_question: Any = None
    compare_runs: Any = None
    followed: Any = None
    episode: Any = None
    edited_chain: Any = None


def guard(handler: Callable[..., Any], *args: Any) -> Any:
    """Call a handler; a RalleError becomes a message on the page."""
    try:
        return handler(*args)
    except RalleError as error:
        raise gr.Error(
            escape(on_page(error), quote=False), duration=20, print_exception=False
        ) from None


def guard_stream(handler: Callable[..., Iterator[Any]], *args: Any) -> Iterator[Any]:
    """The same for a handler that yields."""
    try:
        yield from handler(*args)
    except RalleError as error:
        raise gr.Error(
            escape(on_page(error), quote=False), duration=20, print_exception=False
        ) from None


def warn_of_memory(workbench: Workbench) -> None:
    """Tell the visitor if replies cannot be kept, as on a read-only workspace."""
    if workbench.asking.memo_warning:
        gr.Warning(on_page(workbench.asking.memo_warning))
