"""A model behind a server whose calls cost one cent each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from loopback import Loopback, answer
from small_workspace import add_llm

CENT = {"prompt": 1000.0, "completion": 1000.0}
"""Prices at which a reply of the stand-in (10 tokens) costs one cent."""


@contextmanager
def paid_model(workspace: Path, name: str = "paid", reply: str = "Titan") -> Iterator[Loopback]:
    """A server that answers ``reply``, as the model ``name`` of a workspace: a cent per call, one call at a time."""
    with Loopback(answer(reply)) as server:
        add_llm(
            workspace,
            name,
            "openai_compatible",
            model="m",
            base_url=server.url,
            prices=CENT,
            concurrency=1,
        )
        yield server
