"""Backends that ask a server on this machine, closed after the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from asking import KEY
from loopback import Behaviour, Loopback

from rallebench.llms import LLMS


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key for this machine's servers."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@pytest.fixture
def make() -> Iterator[Callable[..., Any]]:
    """``make(**settings)`` → a backend: short pauses, and a time-out of 5 seconds."""
    with ExitStack() as stack:

        def start(**settings: Any) -> Any:
            own = {"model": "m", "backoff": 0.01, "timeout": 5}
            llm: Any = LLMS["openai_compatible"]("gpt", **{**own, **settings})
            stack.callback(llm.close)
            return llm

        yield start


@pytest.fixture
def load(make: Callable[..., Any]) -> Callable[..., Any]:
    """``load(server, **settings)`` → a backend that asks it."""
    return lambda server, **settings: make(base_url=server.url, **settings)


@pytest.fixture
def serve(load: Callable[..., Any]) -> Iterator[Callable[..., tuple[Loopback, Any]]]:
    """``serve(behaviour, …, **settings)`` → a running server and a backend that asks it."""
    with ExitStack() as stack:

        def start(*behaviours: Behaviour, **settings: Any) -> tuple[Loopback, Any]:
            server = stack.enter_context(Loopback(*behaviours))
            return server, load(server, **settings)

        yield start
