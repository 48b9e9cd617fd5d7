"""The tools of MCP servers as an environment: observations, limits, and servers that fail, flood or lie."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from acted import act, observed
from loopback import Loopback, fail, flood, hang, send_json, send_text
from mcp_servers import MOONS, acting, over_http, raw, ready
from project import PROJECT

pytest.importorskip("mcp")

from rallebench.core.errors import (
    BackendError,
    MissingPackageError,
    RalleError,
    StoppedError,
    UsageError,
)
from rallebench.core.stopping import Stop, obeying
from rallebench.core.types import Reply
from rallebench.engine.perform import perform
from rallebench.environments.mcp import McpServerTools
from rallebench.environments.mcp_servers import _session
from rallebench.environments.mcp_servers.calls import McpTool, list_tools
from rallebench.environments.mcp_servers.listing import OfferedTool, choose

Connected = tuple[McpServerTools, dict[str, McpTool]]


def offered(kind: str, names: str = "") -> tuple[OfferedTool, ...]:
    return choose("moons", list_tools(ready(raw(kind))), names)


def say(connected: Connected, text: str) -> str:
    """The observation of ``echo``."""
    environment, tools = connected
    return observed(environment.call("echo", {"text": text}), tools)


def use(connected: Connected, text: str) -> Reply:
    return connected[1]["mcp:moons"].use({"api": "echo", "arguments": f'{{"text": "{text}"}}'})


# ── observations ─────────────────────────────────────────────────────────────


@pytest.fixture(
    scope="module",
    params=[
        "a program",
        pytest.param("HTTP with events", marks=pytest.mark.slow),
        "HTTP with JSON",
    ],
)
def moons(request: pytest.FixtureRequest) -> Iterator[Connected]:
    """The server made with the SDK."""
    if request.param == "a program":
        with acting(MOONS) as connected:
            yield connected
        return
    flags = ["--json"] * (request.param == "HTTP with JSON")
    with over_http(*flags) as entry, acting(entry) as connected:
        yield connected


@pytest.mark.parametrize(
    ("action", "observation"),
    [
        ("moon(Titan)", "Titan is the largest moon of Saturn."),
        ('moon(name="Titan")', "Titan is the largest moon of Saturn."),
        ('Moon({"name": "Titan"})', "Titan is the largest moon of Saturn."),
        ("add(a=2, b=3)", "add: 5"),
        ('add({"a": 2})', "add: 3"),
        ("add(2)", "add: 3"),
        ("add()", "add needs a; it is missing."),
        ("names()", "titan\ntriton"),
        ("names(all of them)", "titan\ntriton"),
        ("picture()", "[image: image/png, 100 bytes]"),
        ("fall()", "The tool failed: Error executing tool fall: it is too dark"),
        ("Finish(Titan)", "Episode finished."),
        ("moon(Titan, Triton, Io)", "moon: there is no moon 'Titan, Triton, Io'"),
        ('moon(a="1")', "moon: 'a' is not an argument; they are name."),
    ],
)
def test_an_action_in_text_calls_the_tool(moons: Connected, action: str, observation: str) -> None:
    environment, tools = moons
    assert act(environment, action, tools).startswith(observation)


def test_wrong_values_are_told_by_the_server(moons: Connected) -> None:
    environment, tools = moons
    said = observed(environment.call("add", {"a": "many"}), tools)
    assert said.startswith("The tool failed: ") and "valid integer" in said


def test_a_server_gets_the_variables_of_its_entry_and_its_replies_do_not_show_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MOON_KEY", "secret-of-the-moon")
    monkeypatch.setenv("OTHER_KEY", "another")
    variables = {"KEY": "${MOON_KEY}", "PLAIN": "bright", "SIGN": "5 $$"}
    with acting({**raw("variable"), "env": variables}) as connected:
        names = ("KEY", "PLAIN", "SIGN", "OTHER_KEY", "MOON_KEY")
        values = [say(connected, name) for name in names]
    assert values == ["…", "bright", "5 $", "none", "none"]


def test_a_long_result_is_cut(tmp_path: Path) -> None:
    with acting(raw("echoes"), characters=100) as connected:
        said = say(connected, "x" * 1000)
    assert said == f"{'x' * 100} … (the first 100 of 1,000 characters)"


# ── tools as they are listed ─────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("kind", "names", "sentence"),
    [
        ("many", "", "lists 10,000 tools"),
        ("none", "", "The MCP server 'moons' lists no tools, so an agent cannot use it."),
        ("twins", "", "cannot be offered: it is listed twice; mend the server"),
        ("deep", "", "its schema is nested too deeply"),
        ("wrong", "", "its schema is not a JSON schema (at $.properties.a.type: 'texts' is not"),
        (
            "mixed",
            "",
            "The tool 'bad' of the MCP server 'moons' cannot be offered: its schema is not",
        ),
        ("long", "", "its schema has 100,103 characters, more than 50,000"),
        ("argument", "", r"its argument 'a\\nb' has a name that cannot be written"),
        ("mixed", "ecko", "There is no tool 'ecko'. Did you mean 'echo'?"),
    ],
)
def test_tools_that_cannot_be_offered_are_refused_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch, kind: str, names: str, sentence: str
) -> None:
    monkeypatch.setattr(_session, "MAX_TOOLS", 20_000)
    with pytest.raises(UsageError) as error:
        offered(kind, names)
    assert sentence in str(error.value) and str(error.value).isprintable()


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("many", "it lists more than 2,000 tools"),
        ("endless", "it lists more than 2,000 tools"),
        ("an array", "its reply does not follow the protocol"),
        ("not a schema", "its reply does not follow the protocol"),
        pytest.param("silent", "it did not answer within 1 seconds", marks=pytest.mark.slow),
        ("leaves", r"it ended (the moon is \x1b[2J not up)"),
        ("no tools", "Method not found"),
    ],
)
def test_a_server_that_cannot_be_used_is_named_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch, kind: str, reason: str
) -> None:
    if kind == "silent":
        monkeypatch.setattr(_session, "CONNECT_SECONDS", 1.0)
    with pytest.raises(BackendError) as error:
        list_tools(ready(raw(kind)))
    assert str(error.value) == f"The MCP server 'moons' failed: {reason}."


def test_names_become_words_that_every_workflow_can_write() -> None:
    tools = offered("alike")
    assert [tool.spec.name for tool in tools] == [
        "read_file",
        "read_file_2",
        "Finish_",
        "_7",
        "import_",
    ]
    with acting(raw("alike")) as (environment, connection):
        assert observed(environment.call("read_file_2", {"text": "Titan"}), connection) == "Titan"


def test_control_characters_of_names_and_descriptions_are_visible() -> None:
    (tool,) = offered("control")
    assert tool.spec.name == "e__2J_cho"
    assert tool.spec.description == r"<script>\x1b[2J</script> second \u202e line"


def test_a_part_of_the_tools_is_offered_if_others_are_wrong() -> None:
    assert [tool.spec.name for tool in offered("mixed", "echo")] == ["echo"]


def test_a_schema_without_types_takes_any_argument() -> None:
    (tool,) = offered("bare")
    assert tool.spec.parameters["properties"] == {"text": {}}
    assert tool.spec.parameters["required"] == []


def test_a_long_description_is_cut() -> None:
    (tool,) = offered("wordy")
    assert len(tool.spec.description) < 4_010 and tool.spec.description.endswith(" …")


# ── servers that fail in the middle ──────────────────────────────────────────


def test_a_server_that_dies_fails_one_call_and_is_started_again() -> None:
    with acting(raw("dies")) as connected:
        assert say(connected, "Titan") == "Titan"
        with pytest.raises(BackendError, match="The MCP server 'moons' failed: it ended"):
            use(connected, "die")
        assert say(connected, "Triton") == "Triton"


def test_a_call_that_fails_repeats_no_other_call_of_its_batch(tmp_path: Path) -> None:
    from rallebench.core.backends import Backends
    from rallebench.core.types import UseTool

    calls: list[str] = []

    class Tool:
        fingerprint = ""

        def use(self, arguments: dict[str, str]) -> Reply:
            calls.append(arguments["n"])
            if arguments["n"] == "2":
                raise BackendError("It ended.")
            return Reply(arguments["n"])

    requests = [UseTool("tool", {"n": str(n)}) for n in range(4)]
    replies = perform(requests, Backends(tools={"tool": Tool()}))
    assert calls == ["0", "1", "2", "3"] and str(replies[2]) == "It ended."
    assert [isinstance(reply, Reply) for reply in replies] == [True, True, False, True]


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("mute", "it did not answer within 0.5 seconds"),
        pytest.param("huge", "it sent more than 8 MB in one message", marks=pytest.mark.slow),
        ("one line", "it sent more than 8 MB in one message"),
        ("misshapen", "its reply does not follow the protocol"),
    ],
)
def test_a_reply_that_cannot_be_taken_fails_the_call_and_ends_the_server(
    kind: str, reason: str
) -> None:
    with acting(raw(kind), seconds=0.5 if kind == "mute" else 30.0) as connected:
        with pytest.raises(BackendError) as error:
            use(connected, "Titan")
        assert connected[1]["mcp:moons"]._session is None
        assert str(error.value) == f"The MCP server 'moons' failed: {reason}."


@pytest.mark.parametrize(
    ("kind", "observation"),
    [
        ("rubbish", "Titan"),
        ("asks back", "Titan -32600"),
        ("refuses", "The tool failed: no such moon"),
    ],
)
def test_other_output_of_a_server_is_left_out(
    kind: str, observation: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with acting(raw(kind)) as connected:
        assert say(connected, "Titan") == observation
    assert capfd.readouterr() == ("", "")


def test_a_server_with_other_tools_after_a_new_start_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "changed"
    with acting(raw("changes", file)) as connected:
        assert say(connected, "Titan") == "Titan"
        connected[1]["mcp:moons"].disconnect()
        file.touch()
        with pytest.raises(
            BackendError, match=r"changed its tool 'echo' meanwhile; start a new run\."
        ):
            use(connected, "Titan")


def test_a_stop_ends_a_call_at_once() -> None:
    stop = Stop()
    with acting(raw("mute"), seconds=60.0) as connected, obeying(stop):
        connected[1]["mcp:moons"]._connect()
        threading.Timer(0.2, stop.set).start()
        began = time.monotonic()
        with pytest.raises(StoppedError):
            use(connected, "Titan")
        with pytest.raises(StoppedError):
            use(connected, "Titan")
        assert time.monotonic() - began < 10


def is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def wait_until(condition: Callable[[], bool], seconds: float = 20.0) -> bool:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
    return condition()


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("end", ["it ends", "an error", "Ctrl-C"])
@pytest.mark.slow
def test_a_server_that_ignores_signals_does_not_outlive_the_program(
    tmp_path: Path, end: str
) -> None:
    file = tmp_path / "pid"
    ending = {"it ends": "", "an error": "raise SystemExit('no')", "Ctrl-C": "time.sleep(60)"}[end]
    program = (
        "import signal, time\nfrom mcp_servers import raw, ready\n"
        # tests in the background of a shell ignore the signal, and pass that on
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from rallebench.environments.mcp_servers.calls import open_session\n"
        f"session = open_session(ready(raw('stubborn', {str(file)!r})))\n"
        f"print('open', flush=True)\n{ending}\n"
    )
    paths = os.pathsep.join(map(str, (PROJECT, PROJECT / "tests" / "support")))
    with subprocess.Popen(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": paths},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as child:
        assert child.stdout is not None and child.stdout.readline() == "open\n"
        server = int(file.read_text())
        if end == "Ctrl-C":
            child.send_signal(2)
        child.wait(30)
    assert wait_until(lambda: not is_running(server))


# ── servers over HTTP ────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        (fail(401), "it answered with the HTTP status 401"),
        (fail(500), "it answered with the HTTP status 500"),
        (
            send_json({}, 302, location="http://example.org/mcp"),
            "Redirect to http://example.org/mcp not followed",
        ),
        (
            send_json({}, 307, location="http://127.0.0.1:1/mcp?key=secret"),
            "Redirect to http://127.0.0.1:1/mcp not followed",
        ),
        (send_text("<h1>Moons</h1>", kind="text/html"), "Unexpected content type: text/html"),
        (send_json({}, content_encoding="gzip"), "it sent more than 8 MB in one message"),
        (send_json([]), "Failed to parse JSON response"),
        (flood, "it sent more than 8 MB in one message"),
        pytest.param(hang(), "it did not answer within 1 seconds", marks=pytest.mark.slow),
    ],
)
def test_a_server_over_http_that_cannot_be_used_is_named_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch, behaviour: Any, reason: str
) -> None:
    monkeypatch.setattr(_session, "CONNECT_SECONDS", 1.0 if "within" in reason else 20.0)
    monkeypatch.setenv("MOON_KEY", "secret-of-the-moon")
    with Loopback(behaviour) as server:
        entry = {"url": f"{server.url}/mcp", "headers": {"Authorization": "Bearer $MOON_KEY"}}
        with pytest.raises(RalleError) as error:
            list_tools(ready(entry))
        assert server.headers[0]["authorization"] == "Bearer secret-of-the-moon"
    sentence = str(error.value)
    assert sentence.startswith(f"The MCP server 'moons' failed: {reason}")
    assert "secret" not in sentence and "\n" not in sentence


def test_without_the_sdk_its_install_line_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(MissingPackageError, match=r"the MCP server 'moons' needs it: pip install "):
        list_tools(ready(raw("echoes")))


def test_a_server_that_is_not_there_is_named_in_one_sentence() -> None:
    for entry, reason in (
        ({"url": "http://127.0.0.1:9/mcp"}, "it cannot be reached"),
        ({"command": "no-such-program"}, "its command could not be started (No such file"),
        ({"command": str(PROJECT)}, "its command could not be started (Permission denied)"),
    ):
        with pytest.raises(BackendError, match=r"^The MCP server 'moons' failed: ") as error:
            list_tools(ready(entry))
        assert reason in str(error.value)
