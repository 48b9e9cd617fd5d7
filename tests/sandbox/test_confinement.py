"""Programs that try to escape: each attempt bypasses Python's own hooks and calls the operating system directly."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from rallebench import sandbox
from rallebench.core.types import Reply
from rallebench.sandbox import PythonTool
from rallebench.sandbox.limits import Limits
from rallebench.sandbox.sessions import new_name

pytestmark = pytest.mark.skipif(
    not sandbox.protection().processes or "seccomp" not in sandbox.protection().means,
    reason="this system has no seccomp",
)
C = """
import ctypes, os
from ctypes import byref, c_long, c_ulong, c_uint64
c = ctypes.CDLL(None, use_errno=True)
def refused(result):
    return result == -1 and ctypes.get_errno() in (1, 13)
"""
IOPRIO_SET = (
    {"x86_64": 251, "aarch64": 30}[os.uname().machine] if sys.platform.startswith("linux") else 0
)


def run(program: str, *, limits: Limits | None = None) -> Reply:
    name = new_name()
    try:
        return PythonTool(limits or Limits(seconds=5)).use(
            sandbox.begin(name, program, {"Search": ["entity"]})
        )
    finally:
        sandbox.stop(name)


def attempt(*calls: str) -> str:
    """Return the kernel's answer to each C call, as printed by a program."""
    lines = "\n".join(f"print(refused({call}))" for call in calls)
    reply = run(f"{C}\n{lines}")
    assert reply.finish_reason == "stop", reply.note
    return reply.text


@pytest.mark.parametrize(
    "calls",
    [
        pytest.param(
            ("c.fcntl(0, 8, os.getppid())", "c.fcntl(0, 10, 28)", "c.fcntl(0, 4, 0o20000)"),
            id="signals by F_SETOWN, F_SETSIG and O_ASYNC",
        ),
        pytest.param(
            ("c.kill(os.getppid(), 0)", "c.kill(-1, 0)", "c.kill(0, 0)"), id="signals by kill"
        ),
        pytest.param(("c.setpriority(0, os.getppid(), 19)",), id="priority of the parent"),
        pytest.param(
            ("c.sched_setaffinity(os.getppid(), 8, byref(c_ulong(1)))",),
            id="processors of the parent",
        ),
        pytest.param(
            (f"c.syscall({IOPRIO_SET}, 1, os.getppid(), 3 << 13)",),
            id="disk priority of the parent",
        ),
        pytest.param(
            (
                "c.prlimit(os.getppid(), 7, None, (c_uint64 * 2)())",
                "c.prlimit(0, 9, (c_uint64 * 2)(2**40, 2**40), None)",
            ),
            id="limits",
        ),
        pytest.param(
            ("c.shmget(0, 400 * 2**20, 0o1600)", "c.semget(0, 1, 0o1600)", "c.msgget(0, 0o1600)"),
            id="System V memory, semaphores, queues",
        ),
        pytest.param(("c.memfd_create(b'x', 0)",), id="memory in a file descriptor"),
        pytest.param(
            (
                "c.pipe((ctypes.c_int * 2)())",
                "c.eventfd(0, 0)",
                "c.epoll_create1(0)",
                "c.inotify_init()",
            ),
            id="kernel memory",
        ),
        pytest.param(
            (
                "c.madvise(None, 4096, 100)",
                "c.prctl(4, 1)",
                "c.ptrace(16, os.getppid(), None, None)",
                "c.chroot(b'/')",
            ),
            id="kernel interfaces",
        ),
        pytest.param(
            ("c.ioctl(0, 0x5412, b'x')", "c.flock(0, 2)", "c.chdir(b'/usr')"),
            id="terminals, locks, working folder",
        ),
    ],
)
def test_the_kernel_refuses_what_reaches_outside_the_program(calls: tuple[str, ...]) -> None:
    assert attempt(*calls) == "True\n" * len(calls)


def test_files_outside_keep_their_content_mode_owner_times_and_attributes(tmp_path: Path) -> None:
    file = tmp_path / "theirs.txt"
    file.write_text("kept")
    before = file.stat()
    path, new = repr(os.fsencode(file)), repr(os.fsencode(tmp_path / "new"))
    answers = attempt(
        f"c.chmod({path}, 0)",
        f"c.chown({path}, 1, 1)",
        f"c.lchown({path}, 1, 1)",
        f"c.utime({path}, None)",
        f"c.utimensat(-100, {path}, None, 0)",
        f"c.setxattr({path}, b'user.x', b'1', 1, 0)",
        f"c.truncate({path}, c_long(0))",
        f"c.unlink({path})",
        f"c.rename({path}, {new})",
        f"c.link({path}, {new})",
        f"c.symlink({path}, {new})",
        f"c.mkdir({new}, 0o700)",
        f"c.mknod({new}, 0o10600, 0)",
        f"c.open({path}, 1)",
        f"c.open({path}, 2)",
        f"c.open({path}, 0o1000)",
        f"c.creat({new}, 0o600)",
        f"c.open({new}, 0o100, 0o600)",
        f"c.open({path}, 0)",
        f"c.open({os.fsencode(tmp_path)!r}, 0o20200002, 0o600)",
        "c.shm_open(b'/rallebench-test', 0o102, 0o600)",
    )
    assert answers == "True\n" * 21
    after = file.stat()
    assert (file.read_text(), os.listdir(tmp_path)) == ("kept", ["theirs.txt"])
    assert [
        getattr(after, key) for key in ("st_mode", "st_uid", "st_gid", "st_mtime_ns", "st_ctime_ns")
    ] == [
        getattr(before, key)
        for key in ("st_mode", "st_uid", "st_gid", "st_mtime_ns", "st_ctime_ns")
    ]


@pytest.mark.parametrize(
    "program",
    [
        "for n in range(100):\n    open(f'{n}', 'wb').write(bytes(2**20))",
        "import os\nfor n in range(100): os.mkdir(f'{n}')",
        "from pathlib import Path\nPath('x').touch()",
        "open('x', 'a')",
        "open('/dev/shm/x', 'w')",
        "import os\nos.chmod('/usr/lib', 0o755)",
    ],
)
def test_a_program_that_writes_any_file_is_refused_at_the_first_byte(program: str) -> None:
    reply = run(program)
    assert (reply.finish_reason, reply.note) == (
        "refused",
        "The program tried to write a file, or to read one outside of the libraries, which is not allowed here.",
    )


NESTED = f"""{C}
for n in range(3000):
    c.mkdir(b'x\\xff', 0o700)
    c.chdir(b'x\\xff')
c.chmod(b'.', 0)
"""


@pytest.mark.parametrize("rest", ["print('end')", "while True: pass", "c.abort()", "Search('x')"])
def test_nothing_stays_in_the_temporary_folder_however_a_program_ends(
    rest: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    reply = run(NESTED + rest, limits=Limits(seconds=1))
    assert reply.finish_reason in ("stop", "time_limit", "error", "tool_calls")
    assert os.listdir(tmp_path) == []


def test_memory_is_limited_by_whatever_means_it_is_asked_for() -> None:
    limits = Limits(memory=128, seconds=5)
    attempts = (
        "import mmap\nmmap.mmap(-1, 200 * 2**20)",
        "import mmap\nmmap.mmap(-1, 200 * 2**20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)",
    )
    assert [
        ("Cannot allocate memory" in run(program, limits=limits).note) for program in attempts
    ] == [True, True]
    assert (
        run(
            f"{C}\nc.malloc.restype = ctypes.c_void_p\nprint(c.malloc(c_ulong(200 * 2**20)))",
            limits=limits,
        ).text
        == "None\n"
    )


FORGED = "import os\nfor n in range(3, 9):\n try: os.write(n, {} + b'\\n')\n except OSError: pass"


@pytest.mark.parametrize(
    "message", ["b'[' * 1_000_000", """b'{"end": "gone"}'""", """b'{"x": 1}'""", "b'7'", "b'\\xff'"]
)
def test_a_program_that_forges_a_message_to_the_workbench_ends_only_itself(message: str) -> None:
    reply = run(FORGED.format(message))
    assert reply.finish_reason in ("error", "killed") and reply.text == ""


def test_a_forged_result_keeps_to_the_limit_of_output_and_can_be_written_to_a_file() -> None:
    message = """b'{"end": "stop", "output": "\\\\ud800' + b'x' * 1_000_000 + b'"}'"""
    reply = run(FORGED.format(message), limits=Limits(output=50))
    assert (reply.finish_reason, reply.text) == ("stop", "?" + "x" * 49)
    assert run("print('\\ud800')").text == "?\n"


def python(minor: int) -> str:
    """The Python 3.``minor`` of this machine, '' without one."""
    command = shutil.which(f"python3.{minor}")
    if command is None:
        return ""
    asked = subprocess.run(
        [command, "-c", "import sys; print(sys.executable)"], capture_output=True, text=True
    )
    return asked.stdout.strip()


ORDINARY = """
import abc, argparse, array, base64, bisect, calendar, collections, copy, csv, dataclasses, datetime, decimal, difflib, enum, fractions
import functools, hashlib, heapq, html, io, itertools, json, locale, math, operator, pprint, random, re, secrets, shlex, sqlite3
import statistics, string, struct, textwrap, time, traceback, types, typing, unicodedata, uuid, zlib, zoneinfo
import ctypes, platform, signal, threading, concurrent.futures
@dataclasses.dataclass
class Point:
    x: int
    y: int = 2
rows = list(csv.DictReader(io.StringIO("a,b\\n1,2\\n")))
assert rows == [{"a": "1", "b": "2"}] and Point(1).y == 2 and json.loads('{"a": [1, 2.5, null]}') == {"a": [1, 2.5, None]}
assert re.findall(r"\\d+", "a1b22") == ["1", "22"] and collections.Counter("aab").most_common(1) == [("a", 2)]
assert str(decimal.Decimal(1) / 7)[:8] == "0.142857" and fractions.Fraction(1, 3) + 1 == fractions.Fraction(4, 3)
assert math.comb(10, 3) == 120 and statistics.median([3, 1, 2]) == 2 and sum(1 for _ in itertools.permutations("abcd")) == 24
assert (datetime.date(2024, 3, 1) - datetime.date(2024, 2, 1)).days == 29 and datetime.datetime.now().year > 2000
assert random.Random(0).random() != random.random() and len(secrets.token_hex(4)) == 8 and uuid.uuid4().version == 4
assert hashlib.sha256(b"x").hexdigest()[:4] == "2d71" and zlib.decompress(zlib.compress(b"y" * 99)) == b"y" * 99
assert sqlite3.connect(":memory:").execute("select 1 + 1").fetchone() == (2,)
assert datetime.datetime(2024, 7, 1, tzinfo=zoneinfo.ZoneInfo("UTC")).hour == 0
assert sum(range(2_000_000)) == 1999999000000 and len("x" * 50_000_000) == 50_000_000 and len([[n] for n in range(300_000)]) == 300_000
time.sleep(0.001)
with threading.Lock():
    textwrap.fill("a b"), pprint.pformat({1: 2}), platform.system(), locale.getlocale(), time.localtime(), input
print(sorted({"b", "a"}), f"{3.14159:.2f}", Search("moon"), end="")
"""


@pytest.mark.parametrize("minor", [10, 11, 12, 13])
def test_ordinary_programs_run_on_every_python(minor: int, monkeypatch: pytest.MonkeyPatch) -> None:
    executable = sys.executable if sys.version_info[1] == minor else python(minor)
    if not executable:
        pytest.skip(f"this machine has no Python 3.{minor}")
    monkeypatch.setattr(sys, "executable", executable)
    tool, name = PythonTool(Limits(seconds=10)), new_name()
    try:
        reply = tool.use(sandbox.begin(name, ORDINARY, {"Search": ["entity"]}))
        assert [call.name for call in reply.tool_calls] == ["Search"], reply.note
        assert tool.use(sandbox.answer(name, "Titan")) == Reply("['a', 'b'] 3.14 Titan")
    finally:
        sandbox.stop(name)
