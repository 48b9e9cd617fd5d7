"""Endpoints of the page for other programs, provided through Gradio's own API with its documentation page, client
and queue.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import gradio as gr
from pydantic import ValidationError, validate_call

from rallebench.core.errors import RalleError
from rallebench.remote.calls import Calls
from rallebench.remote.wording import word_error, wrong_argument

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

AT_ONCE = 16
"""Concurrent calls per endpoint; further calls wait in Gradio's queue."""


def add_endpoints(calls: Calls) -> None:
    """Add every call as a named endpoint to the Gradio app under construction."""
    for call in (
        calls.ask,
        calls.search,
        calls.start_run,
        calls.run_status,
        calls.stop_run,
        calls.report,
        calls.compare,
        calls.list_names,
    ):
        gr.api(in_one_sentence(call), api_name=call.__name__, concurrency_limit=AT_ONCE)


def in_one_sentence(call: Callable[P, T]) -> Callable[P, T]:
    """Wrap a call so that its errors reach the client as one sentence. A bug is logged and named by its type."""

    checked = validate_call(call)

    @wraps(call)
    def answer(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return checked(*args, **kwargs)
        except ValidationError as error:
            raise gr.Error(wrong_argument(error), print_exception=False) from None
        except RalleError as error:
            raise gr.Error(word_error(error), print_exception=False) from None
        except Exception as error:
            log.exception("The endpoint %s met an unexpected error.", call.__name__)
            name = type(error).__name__
            raise gr.Error(
                f"rallebench met an unexpected error ({name}); its log has more.",
                print_exception=False,
            ) from None

    # Gradio cannot evaluate postponed annotations.
    answer.__signature__ = inspect.signature(call, eval_str=True)  # type: ignore[attr-defined]
    return answer
