"""Turns of a conversation, and the replies of its model."""

from __future__ import annotations

from rallebench.core.types import Chain
from rallebench.llms.scripted import Scripted
from rallebench.services.conversations import Talk, Turn
from rallebench.services.workbench import Workbench


def ask(bench: Workbench, talk: Talk, chain: Chain, text: str, before: Turn | None = None) -> Turn:
    """Run a turn to its end."""
    turn = talk.ask(bench.asking, chain, text, before or talk.last)
    for event in bench.asking.chat(chain, turn.history, turn.question):
        turn.take(event)
    return turn


def script(bench: Workbench, *replies: str) -> Scripted:
    """The model ``titan`` with a script."""
    list(bench.models.load("titan", "language model"))
    llm = bench.models.backends.llms["titan"]
    assert isinstance(llm, Scripted)
    llm._replies, llm._position = list(replies), 0
    return llm
