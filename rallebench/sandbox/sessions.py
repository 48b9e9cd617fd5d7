"""Programs that are running, by the name that whoever asked for them chose.

A program that calls functions is paused in between, while somebody else answers it. Whoever asked names it beforehand,
so that he can let go of it whatever happens: also while it is being started.
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
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from rallebench.core.errors import BackendError
from rallebench.sandbox.calls import call_filter, packed
from rallebench.sandbox.limits import Limits

CHILD = Path(__file__).with_name("_child.py")
GRACE = 0.5
"""Seconds beyond its limit until a program that does not stop by itself is killed."""
IDLE = 600.0
"""Seconds after which nobody is expected to answer a paused program any more."""
LINE = 4_000_000
"""Bytes of a message at most."""
SENTENCE = 1000
"""Characters of a sentence of the child at most."""
ENDS = ("stop", "not_python", "error", "refused", "time_limit", "memory_limit", "output_limit")
"""How a program's own Python may say that the program ended."""


def new_name() -> str:
    """A name for a program that nobody else has."""
    return uuid.uuid4().hex[:12]


class Session:
    """One program in its own Python. Not for two threads at once, but for ``close``."""

    def __init__(self, limits: Limits, means: Sequence[str]) -> None:
        """Start the Python, which waits. Raises BackendError if it cannot be started."""
        self.limits, self.means = limits, tuple(means)
        self.left, self.calls, self.touched = limits.seconds, 0, time.monotonic()
        self._timed_out = False
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-B", "-X", "utf8", str(CHILD)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=os.path.abspath(os.sep),
                env=_environment(),
                close_fds=True,
                start_new_session=os.name == "posix",
            )
        except OSError as error:
            raise BackendError(f"Python could not be started for a program ({error}).") from None

    def begin(self, program: str, functions: Mapping[str, Sequence[str]]) -> dict[str, Any]:
        """Run ``program`` until it calls one of ``functions`` (name → names of its arguments) or ends."""
        return self._told(
            {
                "program": program,
                "functions": {name: list(of) for name, of in functions.items()},
                **self._asked(),
            }
        )

    def probe(self) -> dict[str, Any]:
        """What the operating system holds a program to."""
        return self._told({"probe": True, **self._asked()})

    def answer(self, observation: str) -> dict[str, Any]:
        """Answer the program's call and go on until the next, or the end."""
        return self._told({"observation": observation})

    def _asked(self) -> dict[str, Any]:
        limits = self.limits
        instructions = call_filter(platform.machine(), self.process.pid)
        return {
            "seconds": limits.seconds,
            "processor": int(limits.seconds) + 2,
            "memory": limits.memory * 2**20,
            "output": limits.output,
            "means": self.means,
            "filter": packed(instructions).hex(),
        }

    def _told(self, message: Mapping[str, Any]) -> dict[str, Any]:
        started = time.monotonic()
        # Half a second for the start of a Python on a machine that is busy is not the program's.
        watch = threading.Timer(
            self.left + GRACE + (5.0 if self.calls == 0 else 0.0), self._time_out
        )
        watch.daemon = True
        watch.start()
        try:
            line = self._exchanged(message)
        finally:
            watch.cancel()
        self.touched = time.monotonic()
        self.left = max(0.05, self.left - (self.touched - started))
        value = _read(line, self.limits.output)
        if value is None:
            return self._died()
        if "call" in value:
            self.calls += 1
            if self.calls > self.limits.calls:
                return _end(
                    "call_limit",
                    f"The program called functions more than {self.limits.calls} times and was stopped.",
                )
        return value

    def _exchanged(self, message: Mapping[str, Any]) -> bytes:
        incoming, outgoing = self.process.stdin, self.process.stdout
        assert incoming is not None and outgoing is not None
        try:
            incoming.write(json.dumps(message).encode() + b"\n")
            incoming.flush()
            return outgoing.readline(LINE)
        except (OSError, ValueError):  # it has died, or was let go
            return b""

    def _time_out(self) -> None:
        self._timed_out = True
        self._kill()

    def _died(self) -> dict[str, Any]:
        """How a program ended that did not say so itself."""
        self._kill()
        code = self.process.wait()
        if self._timed_out or code in (-14, -24):  # SIGALRM, SIGXCPU
            return _end(
                "time_limit", f"The program was stopped after {self.limits.seconds:g} seconds."
            )
        if code == -9:
            return _end("killed", "The program was killed.")
        ended = f"signal {-code}" if code < 0 else f"code {code}"
        return _end("error", f"The program ended its Python without a result ({ended}).")

    def _kill(self) -> None:
        with suppress(OSError):
            self.process.kill()

    def close(self) -> None:
        """End the Python; may be called at any time, and twice."""
        if self.process.poll() is None:
            self._kill()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(5)
        for pipe in (self.process.stdin, self.process.stdout):
            _closed(pipe)


def _closed(pipe: IO[bytes] | None) -> None:
    with suppress(OSError, ValueError):
        if pipe is not None:
            pipe.close()


def _end(how: str, said: str) -> dict[str, Any]:
    return {"end": how, "said": said, "output": ""}


def _read(line: bytes, output: int) -> dict[str, Any] | None:
    """A message of the child, with at most ``output`` characters printed; None for anything else.

    A program can write to the line itself: it forges its own result at most, and what is no message ends it.
    """
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or not value.keys() & {"call", "end", "held"}:
        return None
    if value.get("end", "stop") not in ENDS:
        return None
    for key, most in (("output", output), ("said", SENTENCE), ("call", SENTENCE)):
        if key in value:  # half of a surrogate pair cannot be written to a file
            value[key] = str(value[key])[:most].encode(errors="replace").decode()
    return value


def _environment() -> dict[str, str]:
    """Nothing of this process's environment, but what an operating system needs to start a Python."""
    return {name: os.environ[name] for name in ("SYSTEMROOT",) if name in os.environ}


class Sessions:
    """Sessions by name. Safe for many threads."""

    def __init__(self) -> None:
        self._open: dict[str, Session] = {}
        self._gone: deque[str] = deque(maxlen=10_000)
        self._lock = threading.Lock()

    def enter(self, name: str, session: Session) -> bool:
        """Keep ``session`` under ``name``; false if somebody let go of it meanwhile, or has that name."""
        self.let_go_of_idle()
        with self._lock:
            if name in self._gone or name in self._open:
                return False
            self._open[name] = session
            return True

    def get(self, name: str) -> Session | None:
        """The session, or None if there is none of that name (any more)."""
        with self._lock:
            return self._open.get(name)

    def leave(self, name: str) -> None:
        """Let go of one that has ended."""
        with self._lock:
            session = self._open.pop(name, None)
        if session is not None:
            session.close()

    def let_go(self, name: str) -> None:
        """Let go of one whatever it does, and do not let one of that name begin any more."""
        with self._lock:
            self._gone.append(name)
        self.leave(name)

    def let_go_of_idle(self, seconds: float = IDLE) -> None:
        """Let go of all that nobody has answered for so long."""
        old = time.monotonic() - seconds
        with self._lock:
            names = [
                name
                for name, session in self._open.items()
                if session.calls and session.touched < old
            ]
        for name in names:
            self.leave(name)

    def close(self) -> None:
        """Let go of all."""
        with self._lock:
            names = list(self._open)
        for name in names:
            self.leave(name)

    def __len__(self) -> int:
        with self._lock:
            return len(self._open)
