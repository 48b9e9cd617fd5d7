"""Endpoints of the page for other programs, provided through Gradio's own API with its documentation page, client
and queue.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import gradio as gr

from rallebench.remote.calls import CALLS, Calls
from rallebench.remote.wording import in_one_sentence

AT_ONCE = 16
"""Concurrent calls per endpoint; further calls wait in Gradio's queue. GRADIO_DEFAULT_CONCURRENCY_LIMIT replaces it."""


def add_endpoints(calls: Calls, at_once: int | Literal["default"]) -> None:
    """Add every call as a named endpoint to the Gradio app under construction.

    ``at_once``: concurrent calls of each; "default" for the limit of the queue.
    """
    for name in CALLS:
        call = calls.by_name(name)
        gr.api(
            in_one_sentence(call, _failure),
            api_name=name,
            api_description=_description(call),
            concurrency_limit=at_once,
        )


def _description(call: Callable[..., object]) -> str:
    """The docstring of a call on one line, without its marks, which Gradio's page does not render."""
    return " ".join((call.__doc__ or "").replace("``", "").split())


def _failure(sentence: str) -> Exception:
    """An error that Gradio sends to its client without a traceback in the log."""
    error: Exception = gr.Error(sentence, print_exception=False)
    return error
