"""Programs written by a language model, each run once in its own Python process, with limits.

The tool ``python`` takes several requests per program, so that the caller remains a flow::

    reply = yield UseTool("python", begin(name, program, functions))
    while reply.tool_calls:                                   # the program is paused in a call
        observation = yield from env.call(…)
        reply = yield UseTool("python", answer(name, observation))
    reply.finish_reason, reply.text, reply.note               # stop reason, output, one sentence

A program ends with ``stop`` (success), ``not_python``, ``error``, ``refused``, ``time_limit``, ``memory_limit``,
``output_limit``, ``call_limit``, ``killed`` or ``gone`` (the caller stopped it).

Protection on Linux (details in docs/agents.md): an allowlist of system calls (``calls``, seccomp), Landlock for reading,
and resource limits for memory, time and file size (0, so there is nothing to clean up). ``protection()`` returns the means
that work on this machine; Python's own hooks refuse the rest, but a program can bypass them.
"""

from __future__ import annotations

import atexit
import functools
import json
from collections.abc import Mapping, Sequence

from rallebench.core.errors import BackendError
from rallebench.core.types import Reply, ToolCall
from rallebench.sandbox.limits import Limits, Protection
from rallebench.sandbox.sessions import ChildMessage, Session, Sessions

TOOL = "python"
"""The tool's name."""

MEANS = ("landlock", "seccomp")
WITHOUT_SECCOMP = ("landlock", "namespace")
HELD = ("memory", "network", "processes", "writing", "reading")

_SESSIONS = Sessions()
atexit.register(_SESSIONS.close)


def begin(name: str, program: str, functions: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the arguments that start a program as ``name`` (see ``new_name``); ``functions``: name → argument names."""
    return {"session": name, "program": program, "functions": json.dumps(functions)}


def answer(name: str, observation: str) -> dict[str, str]:
    """Return the arguments that answer a program's call."""
    return {"session": name, "observation": observation}


def stop(name: str) -> None:
    """Stop the program ``name``, even before its start; for flows that close before its end."""
    _SESSIONS.stop(name)


@functools.lru_cache(maxsize=1)
def protection() -> Protection:
    """Return the protection on this machine, probed once in a child process. Raises BackendError if none starts."""
    with_seccomp = _probe(MEANS)
    return with_seccomp if with_seccomp.network else _probe(WITHOUT_SECCOMP)


def _probe(means: tuple[str, ...]) -> Protection:
    session = Session(Limits(), means)
    try:
        results = session.probe().held
    finally:
        session.close()
    if results is None:
        raise BackendError(
            "No separate Python for programs can be started here, so no program can be run."
        )
    return Protection(**{name: bool(results.get(name)) for name in HELD}, means=means)


class PythonTool:
    """The tool ``python``. Thread-safe; a program occupies a thread while it runs, none while it waits."""

    concurrency = 16

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self.about = " ".join(protection().sentences())
        self.fingerprint = f"python/2/{self.limits}"

    def use(self, arguments: Mapping[str, str]) -> Reply:
        """Start a program (``begin``) or resume it (``answer``).

        The reply of a paused program contains its tool call. Otherwise ``finish_reason`` is the program's stop reason, ``text``
        its output, and ``note`` one sentence about a failure. Raises BackendError if no Python can be started.
        """
        name = arguments["session"]
        if "program" in arguments:
            session = Session(self.limits, protection().means)
            if not _SESSIONS.enter(name, session):
                session.close()
                return _GONE
            message = session.begin(arguments["program"], json.loads(arguments["functions"]))
        else:
            paused = _SESSIONS.get(name)
            if paused is None:
                return _GONE
            session, message = paused, paused.answer(arguments["observation"])
        if message.call is not None:
            text = json.dumps(message.arguments, ensure_ascii=False)
            text = text.encode(errors="replace").decode()
            call = ToolCall(f"{name}-{session.calls}", message.call, text)
            return Reply(message.output, tool_calls=(call,), finish_reason="tool_calls")
        gone = _SESSIONS.get(name) is None
        _SESSIONS.leave(name)
        return _GONE if gone else _end_reply(message)

    def close(self) -> None:
        """Do nothing: programs share nothing that could be closed."""


_GONE = Reply("", finish_reason="gone", note="The program was stopped before it ended.")


def _end_reply(message: ChildMessage) -> Reply:
    return Reply(message.output, finish_reason=message.end, note=message.sentence)
