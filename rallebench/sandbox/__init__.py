"""Programs that a language model wrote, each run once in a Python of its own, with limits.

The tool ``python`` is asked twice or more often per program, so that whoever asks stays a flow::

    asked = yield UseTool("python", begin(name, program, functions))
    while asked.tool_calls:                                   # the program is paused in a call
        observation = yield from env.call(…)
        asked = yield UseTool("python", answer(name, observation))
    asked.finish_reason, asked.text, asked.note               # how it ended, what it printed, one sentence

How a program may end: ``stop`` (well), ``not_python``, ``error``, ``refused``, ``time_limit``, ``memory_limit``, ``output_limit``,
``call_limit``, ``killed``, ``gone`` (somebody let go of it).

What holds a program (docs/agents.md says it in full): on Linux a list of the system calls that it may make (``calls``, seccomp), Landlock
for what it may read, limits of resources for memory, time and the size of files (0). It writes no file, so nothing has to be
removed after it. ``protection()`` says what of this holds here; Python's own hooks refuse the rest, which a program can go round.
"""

from __future__ import annotations

import atexit
import functools
import json
from collections.abc import Mapping, Sequence
from typing import Any

from rallebench.core.errors import BackendError
from rallebench.core.types import Reply, ToolCall
from rallebench.sandbox.limits import Limits, Protection
from rallebench.sandbox.sessions import Session, Sessions, new_name

__all__ = [
    "TOOL",
    "Limits",
    "Protection",
    "PythonTool",
    "answer",
    "begin",
    "let_go",
    "new_name",
    "protection",
]

TOOL = "python"
"""The tool's name."""

MEANS = ("landlock", "seccomp")
WITHOUT_SECCOMP = ("landlock", "namespace")
HELD = ("memory", "network", "processes", "writing", "reading")

_SESSIONS = Sessions()
atexit.register(_SESSIONS.close)


def begin(name: str, program: str, functions: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The arguments that start a program under ``name`` (see ``new_name``); ``functions``: name → its arguments' names."""
    return {
        "session": name,
        "program": program,
        "functions": json.dumps({n: list(of) for n, of in functions.items()}),
    }


def answer(name: str, observation: str) -> dict[str, str]:
    """The arguments that answer a program's call."""
    return {"session": name, "observation": observation}


def let_go(name: str) -> None:
    """End the program ``name`` if it runs, or was about to; for flows that are closed before it ended."""
    _SESSIONS.let_go(name)


@functools.lru_cache(maxsize=1)
def protection() -> Protection:
    """What holds here, tried out once in a Python of its own. Raises BackendError if none can be started."""
    found = _probed(MEANS)
    return found if found.network else _probed(WITHOUT_SECCOMP)


def _probed(means: tuple[str, ...]) -> Protection:
    session = Session(Limits(), means)
    try:
        held = session.probe().get("held")
    finally:
        session.close()
    if not isinstance(held, dict):
        raise BackendError(
            "A Python of its own for programs cannot be started here, so no program can be run."
        )
    return Protection(**{name: bool(held.get(name)) for name in HELD}, means=means)


class PythonTool:
    """The tool. Safe for many threads; a program occupies one while it runs, none while it waits."""

    concurrency = 16

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self.about = " ".join(protection().sentences())
        self.fingerprint = f"python/2/{self.limits}"

    def use(self, arguments: Mapping[str, str]) -> Reply:
        """Start a program (``begin``) or go on with one (``answer``).

        The reply holds a tool call if it is paused in one; otherwise ``finish_reason`` says how it ended, ``text`` what it
        printed, and ``note`` one sentence if it did not end well. Raises BackendError if no Python can be started.
        """
        name = arguments["session"]
        if "program" in arguments:
            session = Session(self.limits, protection().means)
            if not _SESSIONS.enter(name, session):
                session.close()
                return _GONE
            told = session.begin(arguments["program"], json.loads(arguments["functions"]))
        else:
            there = _SESSIONS.get(name)
            if there is None:
                return _GONE
            session, told = there, there.answer(arguments["observation"])
        if "call" in told:
            arguments_text = (
                json.dumps(told.get("arguments"), ensure_ascii=False)
                .encode(errors="replace")
                .decode()
            )
            call = ToolCall(f"{name}-{session.calls}", told["call"], arguments_text)
            return Reply(told.get("output", ""), tool_calls=(call,), finish_reason="tool_calls")
        gone = _SESSIONS.get(name) is None
        _SESSIONS.leave(name)
        return _GONE if gone else _ended(told)

    def close(self) -> None:
        """Nothing is kept between programs."""


_GONE = Reply("", finish_reason="gone", note="The program was let go of before it ended.")


def _ended(told: Mapping[str, Any]) -> Reply:
    return Reply(
        told.get("output", ""), finish_reason=told.get("end", "error"), note=told.get("said", "")
    )
