"""The child process of a program: drops its rights, then runs the program.

A Python without site-packages imports only this file, so it imports nothing from this project, and only modules that load
fast: ``json`` and ``signal`` would take longer than everything else here. Messages are JSON lines: the program and then
observations on standard input; calls and, at the end, the result on standard output. The kernel enforces the loss of
rights, so the program cannot regain them.
"""

from __future__ import annotations

import builtins
import ctypes
import errno
import os
import sys
from _json import encode_basestring_ascii, make_encoder, make_scanner  # written in C

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from types import CodeType, TracebackType
    from typing import Any
else:
    import _signal  # the part of signal that is written in C

NETWORK = "The program tried to use the network, which is not allowed here."
PROCESS = "The program tried to start another process or thread, or to signal one, which is not allowed here."
FILES = "The program tried to write a file, or to read one outside of the libraries, which is not allowed here."

_NETWORK_EVENTS = (
    "socket.__new__ socket.connect socket.bind socket.getaddrinfo socket.gethostbyname"
)
_PROCESS_EVENTS = (
    "os.fork os.forkpty os.exec os.posix_spawn os.spawn os.system os.startfile "
    "subprocess.Popen os.kill os.killpg pty.spawn _thread.start_new_thread"
)
REFUSED = {
    **dict.fromkeys(_NETWORK_EVENTS.split(), NETWORK),
    **dict.fromkeys(_PROCESS_EVENTS.split(), PROCESS),
}
"""Events of sys.addaudithook (PEP 578) that end the program."""

_CHANGES = (
    "chflags chmod chown link mkdir remove removexattr rename rmdir setxattr symlink truncate utime"
)
CHANGING = frozenset(f"os.{name}" for name in _CHANGES.split())
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class _JSON:
    """JSON text as ``json`` reads and writes it."""

    strict, memo = True, dict[str, str]()
    object_hook = object_pairs_hook = parse_constant = None
    parse_float, parse_int = float, int

    @classmethod
    def loads(cls, text: str) -> Any:
        context: Any = cls  # any object with these attributes, which the type stubs do not know
        return make_scanner(context)(text, 0)[0]

    @staticmethod
    def dumps(value: Any) -> str:
        encode = make_encoder(
            {}, _no_json, encode_basestring_ascii, None, ": ", ", ", False, False, True
        )
        return "".join(encode(value, 0))


def _no_json(value: Any) -> Any:
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


class _End(BaseException):
    """End of the program; ``how``: the reason in one word. Derives from BaseException, so that user code cannot catch it."""

    def __init__(self, how: str, sentence: str) -> None:
        super().__init__(sentence)
        self.how, self.sentence = how, sentence


class _Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint16), ("instructions", ctypes.c_char_p))


class _Path(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def limit_resources(memory: int, seconds: int) -> bool:
    """Limit address space, processor time and file size (0); return whether the memory limit works."""
    try:
        import resource
    except ImportError:  # Windows
        return False
    limits = [
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NOFILE, 64),
        (resource.RLIMIT_CORE, 0),
    ]
    if sys.platform != "win32" and hasattr(resource, "RLIMIT_NPROC"):
        limits.append((resource.RLIMIT_NPROC, 0))  # has no effect for root
    works = True
    for kind, most in limits:
        try:
            resource.setrlimit(kind, (most, most))
        except (ValueError, OSError):
            works = works and kind != resource.RLIMIT_AS
    return works


def filter_calls(libc: Any, instructions: bytes) -> bool:
    """Deny by seccomp every system call that the filter does not allow; return whether that works."""
    program = _Filter(len(instructions) // 8, instructions)
    return bool(instructions) and bool(libc.prctl(22, 2, ctypes.byref(program), 0, 0) == 0)


def leave_network(libc: Any) -> bool:
    """Enter an empty network namespace, and the user namespace that it needs; return whether that works."""
    return bool(libc.unshare(0x10000000 | 0x40000000) == 0)


def close_files(libc: Any, readable: list[str]) -> bool:
    """Restrict reading to ``readable`` and forbid writing by Landlock; return whether that works."""
    abi = libc.syscall(444, None, ctypes.c_size_t(0), 1)
    if abi < 1:
        return False
    newer = {2: 1 << 13, 3: 1 << 14, 5: 1 << 15}  # moving between folders, truncating, devices
    rights = (1 << 13) - 1 | sum(right for version, right in newer.items() if abi >= version)
    ruleset = libc.syscall(444, ctypes.byref(ctypes.c_uint64(rights)), ctypes.c_size_t(8), 0)
    if ruleset < 0:
        return False
    read_file, read_folder = 1 << 2, 1 << 3
    for path in readable:
        try:
            place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue
        allowed = read_file | read_folder if os.path.isdir(path) else read_file
        libc.syscall(445, ruleset, 1, ctypes.byref(_Path(allowed, place)), 0)
        os.close(place)
    works = bool(libc.syscall(446, ruleset, 0) == 0)
    os.close(ruleset)
    return works


def protect(message: dict[str, Any]) -> dict[str, bool]:
    """Drop the rights in ``message``; return the limits that the operating system enforces from now on."""
    linux, means = sys.platform.startswith("linux"), message["means"]
    libc: Any = ctypes.CDLL(None, use_errno=True) if linux else None
    # No new privileges: Landlock and seccomp require this of an ordinary user.
    linux = linux and libc.prctl(38, 1, 0, 0, 0) == 0
    if linux:  # no core dump
        libc.prctl(4, 0, 0, 0, 0)
    apart = linux and "namespace" in means and leave_network(libc)
    reading = linux and "landlock" in means and close_files(libc, readable())
    memory = limit_resources(message["memory"], message["processor"])
    # last, because the filter forbids setting further limits
    filtered = linux and "seccomp" in means and filter_calls(libc, bytes.fromhex(message["filter"]))
    return {
        "memory": memory,
        "network": apart or filtered,
        "processes": filtered,
        "writing": filtered,
        "reading": reading,
    }


def readable() -> list[str]:
    """Return the paths that Python itself still reads: its library, shared libraries, time zones."""
    own = [f"{sys.base_prefix}/lib", f"{sys.base_exec_prefix}/lib", f"{sys.base_prefix}/lib64"]
    shared = "/lib /lib64 /usr/lib /usr/lib64 /usr/share/zoneinfo /etc/ld.so.cache /dev/null /dev/urandom"
    return [*own, *sys.path, *shared.split()]


class _Output:
    """Standard output of the program, limited to ``most`` characters."""

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
            raise _End(
                "output_limit",
                f"The program printed more than {self.most:,} characters and was stopped.",
            )
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


class _DiscardedErrors(_Output):
    """Standard error of the program, which is discarded."""

    def write(self, text: str) -> int:
        return len(text)


class _Line:
    """Messages to and from the parent process, and the timer of the program."""

    def __init__(self) -> None:
        self.incoming, self.out = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")

    def timer(self, seconds: float) -> float:
        """Set the seconds until the program is ended (0: never); return those left before. Windows has no such timer."""
        return float(_signal.setitimer(0, seconds)[0]) if hasattr(_signal, "setitimer") else 0.0

    def receive(self) -> dict[str, Any]:
        line = self.incoming.readline()
        if not line:  # the parent has ended
            os._exit(0)
        value: dict[str, Any] = _JSON.loads(line.decode())
        return value

    def send(self, value: dict[str, Any]) -> None:
        self.out.write(_JSON.dumps(value).encode() + b"\n")
        self.out.flush()

    def ask(self, call: dict[str, Any]) -> str:
        left = self.timer(0)  # waiting for an answer does not count
        self.send(call)
        answer = self.receive()
        self.timer(left or 0)
        return str(answer["observation"])


def function(name: str, names: list[str], line: _Line, printed: _Output) -> Any:
    """Return the function ``name`` of a program, which sends its arguments as JSON and returns the observation."""

    def call(*values: Any, **named: Any) -> str:
        if len(values) > len(names):
            raise TypeError(
                f"{name}() takes at most {len(names)} arguments ({', '.join(names)}), {len(values)} were given"
            )
        arguments = dict(zip(names, values))
        for key, value in named.items():
            if key not in names:
                raise TypeError(
                    f"{name}() has no argument {key!r}; it has {', '.join(names) or 'none'}"
                )
            if key in arguments:
                raise TypeError(f"{name}() got {key!r} twice")
            arguments[key] = value
        try:
            _JSON.dumps(arguments)
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"{name}() takes texts, numbers, lists and dictionaries: {error}"
            ) from None
        return line.ask({"call": name, "arguments": arguments, "output": printed.text()})

    call.__name__ = call.__qualname__ = name
    return call


def _no_input(prompt: object = "") -> str:
    raise EOFError("a program has no input here")


def run(
    program: str, functions: dict[str, list[str]], line: _Line, printed: _Output, memory: int
) -> dict[str, Any]:
    """Run the program to its end; return the result message, with a sentence about a failure."""
    scope: dict[str, Any] = {"__name__": "__main__", "__builtins__": builtins}
    scope |= {name: function(name, names, line, printed) for name, names in functions.items()}
    how, sentence = "stop", ""
    try:
        exec(compile_program(program), scope)  # running a program is the purpose of this process
    except _End as end:
        how, sentence = end.how, end.sentence
    except MemoryError:
        how = "memory_limit"
        sentence = f"The program needed more than its limit of {memory // 2**20} MiB of memory."
    except SystemExit as end:
        if end.code not in (None, 0):
            how, sentence = "error", f"The program ended itself with {end.code!r}."
    except PermissionError as error:
        how, sentence = "refused", FILES
        if error.filename is None:
            sentence = f"The program tried something that is not allowed here: {_error_text(error)}"
    except BaseException as error:
        how, words = "refused", _error_text(error)
        if isinstance(error, OSError) and error.errno == errno.EFBIG:
            sentence = FILES
        elif isinstance(error, RuntimeError) and "start new thread" in words:
            sentence = PROCESS  # a thread is a process to the kernel
        else:
            how, sentence = "error", f"The program failed{_where(error.__traceback__)}: {words}"
    return {"end": how, "said": sentence, "output": printed.text()}


def compile_program(program: str) -> CodeType:
    """Compile the program. Raises _End with the line of a syntax error."""
    try:
        return compile(program, "program", "exec")
    except (SyntaxError, ValueError) as error:
        place = f" (line {error.lineno})" if isinstance(error, SyntaxError) and error.lineno else ""
        raise _End(
            "not_python", f"The program is not valid Python{place}: {getattr(error, 'msg', error)}."
        ) from None
    except (RecursionError, MemoryError):
        raise _End(
            "not_python", "The program is not valid Python: it is nested too deeply."
        ) from None


def _error_text(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:
        text = ""
    return f"{type(error).__name__}: {text[:300]}" if text else type(error).__name__


def _where(trace: TracebackType | None) -> str:
    """Return the last line of the program in the traceback, as words."""
    line = 0
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "program":
            line = trace.tb_lineno
        trace = trace.tb_next
    return f" in line {line}" if line else ""


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    """Refuse audit events: a clearer refusal if the kernel refuses too, and the only one elsewhere."""
    sentence = REFUSED.get(event)
    if sentence is not None:
        raise _End("refused", sentence)
    if event in CHANGING or (event == "open" and (arguments[2] or 0) & WRITING):
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), str(arguments[0]))


def main() -> None:
    """Read the program, drop rights, run it, send the result."""
    line = _Line()
    message = line.receive()
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1)
    os.dup2(null, 2)
    printed = _Output(message["output"])
    enforced = protect(message)
    if message.get("probe"):
        line.send({"held": enforced})
        return
    sys.stdout, sys.stderr, sys.stdin = printed, _DiscardedErrors(0), None
    sys.argv = ["program"]
    builtins.input = _no_input
    sys.addaudithook(_watch)
    line.timer(message["seconds"])
    result = run(message["program"], message["functions"], line, printed, message["memory"])
    line.timer(0)
    line.send(result)
    os._exit(0)  # skips the program's own exit handlers
