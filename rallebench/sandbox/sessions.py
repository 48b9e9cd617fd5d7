"""Running programs, by name.

A program pauses in a call until the caller answers. The caller chooses the name beforehand, so that it can stop the
program at any time, even during its start.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from rallebench.core.errors import BackendError
from rallebench.sandbox import _child
from rallebench.sandbox.calls import call_filter, pack
from rallebench.sandbox.limits import Limits

_FOLDER = os.path.dirname(_child.__file__)
START = f"import sys; sys.path.append({_FOLDER!r}); import _child; sys.path.pop(); _child.main()"
"""Command of the child. As this process imports ``_child`` too, the child finds it compiled."""
NEEDED = ("SYSTEMROOT",)
"""Environment of the child: only the variable that Windows needs to start Python."""
GRACE = 0.5
"""Seconds beyond the limit after which a running program is killed."""
IDLE = 600.0
"""Seconds after which a paused program without an answer is stopped."""
LINE = 4_000_000
"""Maximum bytes of a message."""
SENTENCE = 1000
"""Maximum characters of a sentence from the child."""
ENDS = ("stop", "not_python", "error", "refused", "time_limit", "memory_limit", "output_limit")
"""Stop reasons that the child may report."""


def new_name() -> str:
    return uuid.uuid4().hex[:12]


@dataclass(frozen=True, slots=True)
class ChildMessage:
    """A message of the child. ``call``: the called function, None if the program has ended; ``end``: its stop reason and
    ``sentence``: the reason of a failure; ``held``: the enforced limits, in the answer to a probe.
    """

    end: str = ""
    sentence: str = ""
    output: str = ""
    call: str | None = None
    arguments: object = None
    held: Mapping[str, object] | None = None


class Session:
    """One program in its own Python. Not thread-safe, except for ``close``."""

    def __init__(self, limits: Limits, means: Sequence[str]) -> None:
        """Start a Python process that waits for the program. Raises BackendError if it does not start."""
        self.limits, self.means = limits, tuple(means)
        self.left, self.calls, self.touched = limits.seconds, 0, time.monotonic()
        self._timed_out = False
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-B", "-X", "utf8", "-c", START],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=os.path.abspath(os.sep),
                env={name: os.environ[name] for name in NEEDED if name in os.environ},
                close_fds=True,
                start_new_session=os.name == "posix",
            )
        except OSError as error:
            raise BackendError(f"Python could not be started for a program ({error}).") from None
        assert self.process.stdin is not None and self.process.stdout is not None
        self._incoming, self._outgoing = self.process.stdin, self.process.stdout

    def begin(self, program: str, functions: Mapping[str, Sequence[str]]) -> ChildMessage:
        """Run ``program`` until it calls one of ``functions`` (name → names of its arguments) or ends."""
        return self._ask({"program": program, "functions": functions, **self._settings()})

    def probe(self) -> ChildMessage:
        """Return the limits that the operating system enforces."""
        return self._ask({"probe": True, **self._settings()})

    def answer(self, observation: str) -> ChildMessage:
        """Answer the program's call and run until the next call or the end."""
        return self._ask({"observation": observation})

    def _settings(self) -> dict[str, object]:
        limits = self.limits
        instructions = call_filter(platform.machine(), self.process.pid)
        return {
            "seconds": limits.seconds,
            "processor": int(limits.seconds) + 2,
            "memory": limits.memory * 2**20,
            "output": limits.output,
            "means": self.means,
            "filter": pack(instructions).hex(),
        }

    def _ask(self, message: Mapping[str, object]) -> ChildMessage:
        started = time.monotonic()
        # starting Python on a busy machine does not count as the program's time
        watch = threading.Timer(
            self.left + GRACE + (5.0 if self.calls == 0 else 0.0), self._time_out
        )
        watch.daemon = True
        watch.start()
        line = b""
        try:
            self._incoming.write(json.dumps(message).encode() + b"\n")
            self._incoming.flush()
            line = self._outgoing.readline(LINE)
        except (OSError, ValueError):  # the child has ended, or was stopped
            pass
        finally:
            watch.cancel()
        self.touched = time.monotonic()
        self.left = max(0.05, self.left - (self.touched - started))
        value = _read(line, self.limits.output)
        if value is None:
            return self._crash_result()
        if value.call is not None:
            self.calls += 1
            if self.calls > self.limits.calls:
                return _end(
                    "call_limit",
                    f"The program called functions more than {self.limits.calls} times and was stopped.",
                )
        return value

    def _time_out(self) -> None:
        self._timed_out = True
        self._kill()

    def _crash_result(self) -> ChildMessage:
        """Return the result of a child that ended without a message."""
        self._kill()
        code = self.process.wait()
        if self._timed_out or code in (-14, -24):  # SIGALRM, SIGXCPU
            return _end(
                "time_limit", f"The program was stopped after {self.limits.seconds:g} seconds."
            )
        if code == -9:
            return _end("killed", "The program was killed.")
        status = f"signal {-code}" if code < 0 else f"code {code}"
        return _end("error", f"The program ended its Python without a result ({status}).")

    def _kill(self) -> None:
        with suppress(OSError):
            self.process.kill()

    def close(self) -> None:
        """End the child process; may be called at any time, and more than once."""
        if self.process.poll() is None:
            self._kill()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(5)
        for pipe in (self._incoming, self._outgoing):
            with suppress(OSError, ValueError):
                pipe.close()


def _end(how: str, sentence: str) -> ChildMessage:
    return ChildMessage(how, sentence)


def _read(line: bytes, output: int) -> ChildMessage | None:
    """Return a message of the child, with at most ``output`` printed characters; None for anything else.

    A program can write to the pipe itself, but can only forge its own result; any other text ends it.
    """
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or not value.keys() & {"call", "end", "held"}:
        return None
    if value.get("end", "stop") not in ENDS:
        return None
    held, call = value.get("held"), value.get("call")
    return ChildMessage(
        end=value.get("end", "error"),
        sentence=_text(value.get("said", ""), SENTENCE),
        output=_text(value.get("output", ""), output),
        call=_text(call, SENTENCE) if "call" in value else None,
        arguments=value.get("arguments"),
        held=held if isinstance(held, dict) else None,
    )


def _text(value: object, most: int) -> str:
    """Return at most ``most`` characters; a lone surrogate cannot be written to a file."""
    return str(value)[:most].encode(errors="replace").decode()


class Sessions:
    """Sessions by name. Thread-safe."""

    def __init__(self) -> None:
        self._open: dict[str, Session] = {}
        self._stopped: deque[str] = deque(maxlen=10_000)
        self._lock = threading.Lock()

    def enter(self, name: str, session: Session) -> bool:
        """Add ``session`` as ``name``; return False if the name was stopped before, or is in use."""
        self.close_idle()
        with self._lock:
            if name in self._stopped or name in self._open:
                return False
            self._open[name] = session
            return True

    def get(self, name: str) -> Session | None:
        """Return the session with that name, or None."""
        with self._lock:
            return self._open.get(name)

    def leave(self, name: str) -> None:
        """Remove and close a session that has ended."""
        with self._lock:
            session = self._open.pop(name, None)
        if session is not None:
            session.close()

    def stop(self, name: str) -> None:
        """Close a session immediately, and refuse a later session of that name."""
        with self._lock:
            self._stopped.append(name)
        self.leave(name)

    def close_idle(self, seconds: float = IDLE) -> None:
        """Close all sessions that have waited longer than ``seconds`` for an answer."""
        old = time.monotonic() - seconds
        self._leave_all(lambda session: bool(session.calls) and session.touched < old)

    def close(self) -> None:
        self._leave_all(lambda session: True)

    def _leave_all(self, chosen: Callable[[Session], bool]) -> None:
        with self._lock:
            names = [name for name, session in self._open.items() if chosen(session)]
        for name in names:
            self.leave(name)

    def __len__(self) -> int:
        with self._lock:
            return len(self._open)
