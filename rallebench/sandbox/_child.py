"""What a program's own Python runs first: give up what a program has no use for, then run it.

This file is started by its path in a Python without site-packages, so it imports nothing of this project. It talks
in JSON lines: in come what to run and then observations, out go calls and, once, how it ended. What it gives up
is given up for good: the kernel holds it, whatever the program does afterwards.
"""

from __future__ import annotations

import builtins
import ctypes
import errno
import json
import os
import sys
from types import CodeType, TracebackType
from typing import Any

NETWORK = "The program tried to use the network, which programs here may not."
PROCESS = "The program tried to start another process or thread, or to signal one, which programs here may not."
LARGE = "The program wrote a larger file than it may and was stopped."
FILES = "The program tried to open a file outside of its own empty folder, which programs here may not."

# Events of sys.addaudithook (PEP 578) that a program has no business with.
REFUSED = {
    **dict.fromkeys(("socket.__new__", "socket.connect", "socket.bind", "socket.getaddrinfo", "socket.gethostbyname"), NETWORK),
    **dict.fromkeys(("os.fork", "os.forkpty", "os.exec", "os.posix_spawn", "os.spawn", "os.system", "os.startfile"), PROCESS),
    **dict.fromkeys(("subprocess.Popen", "os.kill", "os.killpg", "pty.spawn", "_thread.start_new_thread"), PROCESS),
}

# System calls that are answered with EPERM: network; processes; signals, tracing, name spaces, limits, kernel interfaces.
# Numbers: Linux's tables for x86_64 and aarch64. The low 17 bits of clone's flags do not matter here: threads go, too.
DENIED = {
    "x86_64": (
        0xC000003E,
        (41, 53, 42, 49, 50, 43, 288, 44, 46, 307),
        (57, 58, 56, 435, 59, 322),
        (62, 200, 234, 129, 297, 424, 101, 310, 311, 165, 272, 308, 321, 298, 425, 250, 302, 160),
    ),
    "aarch64": (
        0xC00000B7,
        (198, 199, 203, 200, 201, 202, 242, 206, 211, 269),
        (220, 435, 221, 281),
        (129, 130, 131, 138, 240, 424, 117, 270, 271, 40, 97, 268, 280, 241, 425, 219, 261, 164),
    ),
}
EPERM = 1


class _Ended(BaseException):
    """The program is over: ``how`` is a word, ``said`` a sentence. No ``except Exception`` of a program holds it."""

    def __init__(self, how: str, said: str) -> None:
        super().__init__(said)
        self.how, self.said = how, said


class _Filter(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint16), ("jt", ctypes.c_uint8), ("jf", ctypes.c_uint8), ("k", ctypes.c_uint32))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint16), ("filters", ctypes.POINTER(_Filter)))


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("net", ctypes.c_uint64))


class _Path(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def limit_resources(memory: int, seconds: int, written: int) -> bool:
    """Bound address space, processor time and files by rlimits; whether that worked."""
    try:
        import resource
    except ImportError:  # Windows
        return False
    wanted = [
        (resource.RLIMIT_AS, memory), (resource.RLIMIT_CPU, seconds), (resource.RLIMIT_FSIZE, written),
        (resource.RLIMIT_NOFILE, 64), (resource.RLIMIT_CORE, 0),
    ]  # fmt: skip
    if sys.platform != "win32" and hasattr(resource, "RLIMIT_NPROC"):
        wanted.append((resource.RLIMIT_NPROC, 0))  # counts nothing for root
    held = True
    for kind, most in wanted:
        try:
            resource.setrlimit(kind, (most, most))
        except (ValueError, OSError):
            held = held and kind != resource.RLIMIT_AS
    return held


def filter_calls(libc: Any, machine: str) -> bool:
    """Deny the system calls of DENIED by seccomp; whether that worked."""
    if machine not in DENIED:
        return False
    arch, *groups = DENIED[machine]
    numbers = [number for group in groups for number in group]
    load, equal, least, back = 0x20, 0x15, 0x35, 0x06
    deny, allow = 0x00050000 | EPERM, 0x7FFF0000
    body = [_Filter(load, 0, 0, 4), _Filter(equal, 1, 0, arch), _Filter(back, 0, 0, deny), _Filter(load, 0, 0, 0)]
    if machine == "x86_64":  # the x32 numbers of the same calls
        body += [_Filter(least, 0, 1, 0x40000000), _Filter(back, 0, 0, deny)]
    for number in numbers:
        body += [_Filter(equal, 0, 1, number), _Filter(back, 0, 0, deny)]
    body.append(_Filter(back, 0, 0, allow))
    program = _Program(len(body), (_Filter * len(body))(*body))
    return bool(libc.prctl(22, 2, ctypes.byref(program), 0, 0) == 0)


def leave_network(libc: Any) -> bool:
    """Move into a network name space with nothing in it (and a user name space, which lets an ordinary user); whether that worked."""
    return bool(libc.unshare(0x10000000 | 0x40000000) == 0)


def close_files(libc: Any, readable: list[str], own: str) -> bool:
    """Leave by Landlock only ``readable`` to be read and ``own`` to be written; whether that worked."""
    abi = libc.syscall(444, None, ctypes.c_size_t(0), 1)
    if abi < 1:
        return False
    rights = (1 << 13) - 1 | ((1 << 13) if abi >= 2 else 0) | ((1 << 14) if abi >= 3 else 0)
    ruleset = libc.syscall(444, ctypes.byref(_Ruleset(rights, 0)), ctypes.c_size_t(8), 0)
    if ruleset < 0:
        return False
    execute = 1
    for path, allowed in [*((path, (1 << 2) | (1 << 3)) for path in readable), (own, rights & ~execute)]:
        try:
            folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue
        rights_here = allowed if os.path.isdir(path) else allowed & ~(1 << 3)
        libc.syscall(445, ruleset, 1, ctypes.byref(_Path(rights_here, folder)), 0)
        os.close(folder)
    held = bool(libc.syscall(446, ruleset, 0) == 0)
    os.close(ruleset)
    return held


def protect(asked: dict[str, Any]) -> dict[str, bool]:
    """Give up what ``asked`` says; returns what the operating system holds from now on."""
    held = {"memory": False, "network": False, "processes": False, "files": False}
    linux, means = sys.platform.startswith("linux"), asked["means"]
    libc: Any = ctypes.CDLL(None, use_errno=True) if linux else None
    # No new privileges: what an ordinary user has to give up before Landlock and seccomp let him.
    linux = linux and libc.prctl(38, 1, 0, 0, 0) == 0
    held["network"] = linux and "namespace" in means and leave_network(libc)
    held["files"] = linux and "landlock" in means and close_files(libc, readable(), os.getcwd())
    held["memory"] = limit_resources(asked["memory"], asked["processor"], asked["written"])
    filtered = linux and "seccomp" in means and filter_calls(libc, os.uname().machine)
    held["network"] = held["network"] or filtered
    held["processes"] = filtered or (os.name == "posix" and os.geteuid() != 0 and held["memory"])
    return held


def readable() -> list[str]:
    """What Python itself still reads: its library, shared libraries, time zones."""
    own = [sys.base_prefix + "/lib", sys.base_exec_prefix + "/lib", sys.base_prefix + "/lib64", *sys.path]
    return [*own, "/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/share/zoneinfo", "/etc/ld.so.cache", "/dev/null", "/dev/urandom"]


class _Printed:
    """Standard output and error of the program, kept up to a limit of characters."""

    encoding, errors, newlines = "utf-8", "replace", None

    def __init__(self, most: int) -> None:
        self.most, self.parts, self.size = most, list[str](), 0

    def write(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        room = self.most - self.size
        self.parts.append(text[:room])
        self.size += min(len(text), room)
        if len(text) > room:
            raise _Ended("output_limit", f"The program printed more than {self.most:,} characters and was stopped.")
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return False

    def text(self) -> str:
        return "".join(self.parts)


class _Dropped(_Printed):
    """Standard error: read by nobody."""

    def write(self, text: str) -> int:
        return len(text)


class _Line:
    """The line to whoever started this process, and the alarm that runs while the program does."""

    def __init__(self, seconds: float) -> None:
        self.incoming, self.out = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
        self.seconds = seconds
        try:
            import signal

            self.timer: Any = lambda left: signal.setitimer(signal.ITIMER_REAL, left)[0]
        except (ImportError, AttributeError):
            self.timer = lambda left: 0.0

    def receive(self) -> dict[str, Any]:
        line = self.incoming.readline()
        if not line:  # nobody is there any more
            os._exit(0)
        value: dict[str, Any] = json.loads(line)
        return value

    def send(self, value: dict[str, Any]) -> None:
        self.out.write(json.dumps(value).encode() + b"\n")
        self.out.flush()

    def ask(self, call: dict[str, Any]) -> str:
        left = self.timer(0)  # waiting for an answer is not the program's time
        self.send(call)
        answer = self.receive()
        self.timer(left or 0)
        return str(answer["observation"])


def function(name: str, names: list[str], line: _Line, printed: _Printed) -> Any:
    """What a program calls by ``name``: its arguments travel as JSON, the observation comes back as a text."""

    def call(*values: Any, **named: Any) -> str:
        if len(values) > len(names):
            raise TypeError(f"{name}() takes at most {len(names)} arguments ({', '.join(names)}), {len(values)} were given")
        given = dict(zip(names, values))
        for key, value in named.items():
            if key not in names:
                raise TypeError(f"{name}() has no argument {key!r}; it has {', '.join(names) or 'none'}")
            if key in given:
                raise TypeError(f"{name}() got {key!r} twice")
            given[key] = value
        try:
            json.dumps(given)
        except (TypeError, ValueError) as error:
            raise TypeError(f"{name}() takes texts, numbers, lists and dictionaries: {error}") from None
        return line.ask({"call": name, "arguments": given, "output": printed.text()})

    call.__name__ = call.__qualname__ = name
    return call


def _no_input(prompt: object = "") -> str:
    raise EOFError("a program here has nobody to ask")


def run(program: str, functions: dict[str, list[str]], line: _Line, printed: _Printed, memory: int) -> dict[str, Any]:
    """Run the program to its end; how it ended, in one sentence if it did not end well."""
    scope: dict[str, Any] = {"__name__": "__main__", "__builtins__": builtins}
    scope |= {name: function(name, names, line, printed) for name, names in functions.items()}
    how, said = "stop", ""
    try:
        exec(compiled(program), scope)  # a program is what this process is for
    except _Ended as end:
        how, said = end.how, end.said
    except MemoryError:
        how, said = "memory_limit", f"The program needed more than the {memory // 2**20} MiB of memory that it may have."
    except SystemExit as end:
        if end.code not in (None, 0):
            how, said = "error", f"The program ended itself with {end.code!r}."
    except PermissionError as error:
        how, said = "refused", _refused(error)
    except RuntimeError as error:  # a thread is a process to the kernel
        thread = "start new thread" in str(error)
        how, said = ("refused", PROCESS) if thread else ("error", f"The program failed{_where(error.__traceback__)}: {_named(error)}")
    except OSError as error:
        large = error.errno == errno.EFBIG
        how, said = ("refused", LARGE) if large else ("error", f"The program failed{_where(error.__traceback__)}: {_named(error)}")
    except BaseException as error:
        how, said = "error", f"The program failed{_where(error.__traceback__)}: {_named(error)}"
    return {"end": how, "said": said, "output": printed.text()}


def compiled(program: str) -> CodeType:
    """The program as code. Raises _Ended with the line that is not Python."""
    try:
        return compile(program, "program", "exec")
    except (SyntaxError, ValueError) as error:
        place = f" (line {error.lineno})" if isinstance(error, SyntaxError) and error.lineno else ""
        raise _Ended("not_python", f"The program is not valid Python{place}: {getattr(error, 'msg', error)}.") from None
    except (RecursionError, MemoryError):
        raise _Ended("not_python", "The program is not valid Python: it is nested too deeply.") from None


def _refused(error: PermissionError) -> str:
    return FILES if error.filename is not None else f"The program tried what programs here may not: {_named(error)}"


def _named(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:
        text = ""
    return f"{type(error).__name__}: {text[:300]}" if text else type(error).__name__


def _where(trace: TracebackType | None) -> str:
    """The last line of the program itself that was running."""
    line = 0
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "program":
            line = trace.tb_lineno
        trace = trace.tb_next
    return f" in line {line}" if line else ""


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    said = REFUSED.get(event)
    if said is not None:
        raise _Ended("refused", said)


def main() -> None:
    """Read what to run, give things up, run it, say how it ended."""
    asked = json.loads(sys.stdin.buffer.readline())
    line = _Line(asked["seconds"])
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1)
    os.dup2(null, 2)
    printed = _Printed(asked["output"])
    held = protect(asked)
    if asked.get("probe"):
        line.send({"held": held})
        return
    sys.stdout, sys.stderr, sys.stdin = printed, _Dropped(0), None
    sys.argv = ["program"]
    builtins.input = _no_input
    sys.addaudithook(_watch)
    line.timer(asked["seconds"])
    ended = run(asked["program"], asked["functions"], line, printed, asked["memory"])
    line.timer(0)
    line.send(ended)
    os._exit(0)  # what the program registered for the end of its process does not run


if __name__ == "__main__":
    main()
