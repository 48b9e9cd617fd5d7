"""Programs in a separate Python: permitted and forbidden actions, and the end of each attempt."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rallebench import sandbox
from rallebench.core.types import Reply
from rallebench.sandbox import _SESSIONS, PythonTool
from rallebench.sandbox.limits import Limits, Protection
from rallebench.sandbox.sessions import Session, Sessions, new_name

POSIX = pytest.mark.skipif(os.name != "posix", reason="the operating system offers no such limits")
NETWORK = "The program tried to use the network, which is not allowed here."
PROCESS = "The program tried to start another process or thread, or to signal one, which is not allowed here."
FILES = "The program tried to write a file, or to read one outside of the libraries, which is not allowed here."


@pytest.fixture(autouse=True)
def nothing_stays() -> Iterator[None]:
    yield
    assert len(_SESSIONS) == 0


def run(
    program: str,
    *observations: str,
    limits: Limits | None = None,
    functions: dict[str, list[str]] | None = None,
) -> Reply:
    """Run a program, answer its calls in turn, and return the last reply."""
    tool, name = PythonTool(limits or Limits(seconds=5)), new_name()
    try:
        reply = tool.use(sandbox.begin(name, program, functions or {"Search": ["entity", "place"]}))
        for observation in observations:
            assert reply.tool_calls, reply
            reply = tool.use(sandbox.answer(name, observation))
        return reply
    finally:
        sandbox.stop(name)


def end(program: str, *observations: str, limits: Limits | None = None) -> tuple[str, str]:
    """Return the end of the program: (word, sentence)."""
    reply = run(program, *observations, limits=limits)
    return reply.finish_reason, reply.note


def test_what_a_program_prints_is_the_answer() -> None:
    assert run("print(6 * 7)") == Reply("42\n")


def test_a_call_pauses_the_program_until_it_is_answered() -> None:
    reply = run("print('first'); print(Search('Titan, \"[x]\"', place='Saturn').upper())")
    (call,) = reply.tool_calls
    assert (call.name, json.loads(call.arguments), reply.text) == (
        "Search",
        {"entity": 'Titan, "[x]"', "place": "Saturn"},
        "first\n",
    )
    assert run("x = Search('a')\nprint(x + Search('b'))", "one ", "töw").text == "one töw\n"


FAILED = "The program failed in line 1:"


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("def f(:\n  pass", "The program is not valid Python (line 1): "),
        ("x = 1\nprint(y)", "The program failed in line 2: NameError: name 'y' is not defined"),
        ("1 / 0", f"{FAILED} ZeroDivisionError: division by zero"),
        ("import requests", f"{FAILED} ModuleNotFoundError: No module named 'requests'"),
        ("import rallebench", f"{FAILED} ModuleNotFoundError: No module named 'rallebench'"),
        ("Search(1, 2, 3)", f"{FAILED} TypeError: Search() takes at most 2 arguments (entity, pl"),
        ("Search(who=1)", f"{FAILED} TypeError: Search() has no argument 'who'; it has entity, pl"),
        ("Search({1})", f"{FAILED} TypeError: Search() takes texts, numbers, lists and diction"),
        ("input('who?')", f"{FAILED} EOFError: a program has no input here"),
        ("import sys; sys.exit(3)", "The program ended itself with 3."),
        ("f = lambda: f()\nf()", f"{FAILED} RecursionError"),
        ("(" * 100_000, "The program is not valid Python"),
        ("Это не программа", "The program is not valid Python (line 1): "),
        ("import os; os._exit(7)", "The program ended its Python without a result (code 7)."),
    ],
)
def test_a_program_that_fails_says_so_in_one_sentence(program: str, said: str) -> None:
    how, sentence = end(program)
    assert how == ("not_python" if "not valid Python" in said else "error")
    assert sentence.startswith(said) and "\n" not in sentence


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("while True: pass", "time_limit"),
        ("import time; time.sleep(1000)", "time_limit"),
        ("print('x' * 100_000_000)", "output_limit"),
        ("while True:\n try: print('x' * 999)\n except Exception: pass", "output_limit"),
    ],
)
def test_a_program_is_stopped_at_its_limits(program: str, reason: str) -> None:
    sentence = {
        "time_limit": "The program was stopped after 0.2 seconds.",
        "output_limit": "The program printed more than 20,000 characters and was stopped.",
    }[reason]
    limits = Limits(seconds=0.2 if reason == "time_limit" else 5)
    assert end(program, limits=limits) == (reason, sentence)


@POSIX
@pytest.mark.parametrize(
    "program", ["x = bytearray(10**10)", "x = []\nwhile True: x.append(bytearray(10**7))"]
)
def test_a_program_that_eats_memory_is_stopped_at_what_it_may_have(program: str) -> None:
    assert end(program, limits=Limits(seconds=5, memory=128)) == (
        "memory_limit",
        "The program needed more than its limit of 128 MiB of memory.",
    )


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("import socket; socket.socket()", NETWORK),
        ("import _socket\ntry: _socket.socket(2, 1)\nexcept Exception: pass", NETWORK),
        (
            "import urllib.request as r\ntry: r.urlopen('http://127.0.0.1:1')\nexcept Exception: pass",
            NETWORK,
        ),
        ("import os; os.system('true')", PROCESS),
        ("import subprocess; subprocess.run(['true'])", PROCESS),
    ],
)
def test_a_program_that_reaches_for_network_or_processes_is_refused_whatever_it_catches(
    program: str, said: str
) -> None:
    assert end(program) == ("refused", said)


@POSIX
@pytest.mark.parametrize(
    "program",
    [
        "import os; os.fork()",
        "import os; os.kill(os.getppid(), 9)",
        "import threading as t; t.Thread(target=print).start()",
    ],
)
def test_a_program_that_forks_or_kills_is_refused(program: str) -> None:
    if "Thread" in program and "seccomp" not in sandbox.protection().means:
        pytest.skip("threads are refused by seccomp only")
    assert end(program) == ("refused", PROCESS)


@pytest.mark.skipif(
    not sandbox.protection().network or not sandbox.protection().processes,
    reason="this system holds neither",
)
def test_the_kernel_refuses_what_goes_round_pythons_own_hooks() -> None:
    program = (
        "import ctypes\nc = ctypes.CDLL(None)\n"
        "print(c.fork(), c.socket(2, 1, 0), c.kill(1, 0), c.syscall(435, 0, 0))"
    )
    assert run(program).text.split() == ["-1"] * 4


@pytest.mark.skipif(not sandbox.protection().reading, reason="this system has no Landlock")
def test_a_program_reads_nothing_but_libraries(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("hush")
    assert end(f"print(open({str(tmp_path / 'secret.txt')!r}).read())") == ("refused", FILES)
    assert end("import os; print(os.listdir('/'))") == ("refused", FILES)
    assert end("print(open('/proc/self/environ').read())") == ("refused", FILES)
    assert run("import json\nprint(len(open(json.__file__).read()) > 0)").text == "True\n"


@pytest.mark.parametrize(
    "program",
    [
        "open({!r}, 'w')",
        "import os; os.mkdir({!r})",
        "import os; os.open({!r}, os.O_CREAT | os.O_WRONLY)",
    ],
)
def test_a_program_writes_no_file_on_any_system(program: str, tmp_path: Path) -> None:
    assert end(program.format(str(tmp_path / "new"))) == ("refused", FILES)
    assert not (tmp_path / "new").exists()


@POSIX
def test_a_file_cannot_grow_even_where_only_limits_of_resources_hold(tmp_path: Path) -> None:
    session = Session(Limits(seconds=5), ())
    path = os.fsencode(tmp_path / "new")
    program = f"import ctypes, os\nc = ctypes.CDLL(None)\nfile = c.open({path!r}, os.O_CREAT | os.O_WRONLY, 0o600)\nprint(file > 0)\nos.write(file, b'x')"
    ended = session.begin(program, {})
    session.close()
    assert (ended.end, ended.sentence, ended.output) == ("refused", FILES, "True\n")
    assert (tmp_path / "new").read_bytes() == b""


def test_a_program_inherits_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    found = run(
        "import os, sys; print(dict(os.environ), sys.argv, sys.stdin, [p for p in sys.path if 'site-packages' in p])"
    ).text
    assert (
        "sk-secret" not in found and "PATH" not in found and found.endswith("['program'] None []\n")
    )


def test_pythons_own_library_is_there() -> None:
    names = "json, re, math, datetime, collections, itertools, statistics, decimal, fractions, random, string, textwrap, unicodedata"
    assert (
        run(
            f"import {names}\nprint(random.random() < 2, datetime.date(2024, 2, 29).isoformat())"
        ).text
        == "True 2024-02-29\n"
    )


def test_waiting_for_an_answer_is_not_the_programs_time() -> None:
    tool, name = PythonTool(Limits(seconds=0.2)), new_name()
    tool.use(sandbox.begin(name, "print(Search('x'))", {"Search": ["entity"]}))
    time.sleep(0.3)
    assert tool.use(sandbox.answer(name, "late")).text == "late\n"


def test_a_program_that_calls_without_end_is_stopped() -> None:
    limits = Limits(calls=2)
    assert end("while True: Search('x')", "a", "b", limits=limits) == (
        "call_limit",
        "The program called functions more than 2 times and was stopped.",
    )


def test_letting_go_of_a_program_that_runs_ends_it_at_once() -> None:
    tool, name, replies = PythonTool(Limits(seconds=30)), new_name(), list[Reply]()
    thread = threading.Thread(
        target=lambda: replies.append(tool.use(sandbox.begin(name, "while True: pass", {})))
    )
    thread.start()
    deadline = time.monotonic() + 5
    while _SESSIONS.get(name) is None and time.monotonic() < deadline:
        time.sleep(0.01)
    sandbox.stop(name)
    thread.join(5)
    assert [reply.finish_reason for reply in replies] == ["gone"]


def test_an_answer_for_a_program_that_is_gone_is_a_reply_not_an_error() -> None:
    assert PythonTool().use(sandbox.answer("nobody", "x")).finish_reason == "gone"


def test_what_nobody_answers_any_more_is_ended() -> None:
    sessions = Sessions()
    session = Session(Limits(), ())
    assert sessions.enter("a", session) and not sessions.enter("a", session)
    assert session.begin("Search('x')", {"Search": ["entity"]}).call == "Search"
    sessions.close_idle(100)
    assert len(sessions) == 1
    sessions.close_idle(0)
    assert len(sessions) == 0 and session.process.poll() is not None


@POSIX
def test_a_program_ends_when_whoever_started_it_dies() -> None:
    session = Session(Limits(), ())
    assert session.begin("Search('x')", {"Search": ["entity"]}).call == "Search"
    assert session.process.stdin is not None
    session.process.stdin.close()
    assert session.process.wait(5) == 0
    session.close()


@POSIX
@pytest.mark.slow
def test_sixteen_programs_at_once_each_keep_to_their_own_memory() -> None:
    program = "x = bytearray(60 * 2**20)\nprint(len(x))"
    greedy = "x = bytearray(300 * 2**20)"
    limits = Limits(seconds=30, memory=128)
    with ThreadPoolExecutor(16) as pool:
        ended = list(
            pool.map(
                lambda n: run(greedy if n % 4 == 0 else program, limits=limits).finish_reason,
                range(16),
            )
        )
    assert ended == ["memory_limit" if n % 4 == 0 else "stop" for n in range(16)]


def test_what_is_protected_here_is_said_and_what_is_not() -> None:
    all_held = " ".join(Protection(True, True, True, True, True).sentences())
    none_held = " ".join(Protection(False, False, False, False, False).sentences())
    assert "no network" in all_held and "NOT" not in all_held
    assert none_held.count("NOT") == 5
    assert all("not a security boundary" in text for text in (all_held, none_held))
    if sys.platform == "win32":
        assert not sandbox.protection().network


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux's own means")
@pytest.mark.parametrize(
    "means", [("landlock", "seccomp"), ("landlock", "namespace"), ("seccomp",), ()]
)
def test_each_means_is_tried_out_and_only_what_held_is_claimed(means: tuple[str, ...]) -> None:
    found = sandbox._probe(means)
    assert found.memory
    assert found.network <= bool({"seccomp", "namespace"} & set(means))
    assert found.processes == found.writing <= ("seccomp" in means)
    assert found.reading <= ("landlock" in means)
    if found.network:
        session = Session(Limits(), means)
        program = "import ctypes\nc = ctypes.CDLL(None)\nprint(c.connect(c.socket(2, 1, 0), bytes([2, 0, 0, 9, 127, 0, 0, 1] + [0] * 8), 16))"
        assert session.begin(program, {}).output == "-1\n"
        session.close()


def test_a_program_starts_without_the_modules_that_load_slowly() -> None:
    program = (
        "import sys\nprint(sorted({'json', 're', 'enum', 'typing', 'signal'} & sys.modules.keys()))"
    )
    assert run(program) == Reply("[]\n")
