"""Backends that ask a server on this machine, closed after the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from loopback import Behaviour, Loopback

from rallebench.llms import LLMS


def backend(server: Loopback, **settings: Any) -> Any:
    """A backend that asks this server: short pauses, and a time-out of 5 seconds."""
    own = {"base_url": server.url, "model": "m", "backoff": 0.01, "timeout": 5}
    return LLMS["openai_compatible"]("gpt", **{**own, **settings})


@pytest.fixture
def load() -> Iterator[Callable[..., Any]]:
    """``load(server, **settings)`` → a backend that asks it."""
    with ExitStack() as stack:

        def start(server: Loopback, **settings: Any) -> Any:
            llm = backend(server, **settings)
            stack.callback(llm.close)
            return llm

        yield start


@pytest.fixture
def serve() -> Iterator[Callable[..., tuple[Loopback, Any]]]:
    """``serve(behaviour, …, **settings)`` → a running server and a backend that asks it."""
    with ExitStack() as stack:

        def start(*behaviours: Behaviour, **settings: Any) -> tuple[Loopback, Any]:
            server = stack.enter_context(Loopback(*behaviours))
            llm = backend(server, **settings)
            stack.callback(llm.close)
            return server, llm

        yield start
