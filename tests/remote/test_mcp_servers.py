"""``rallebench mcp`` as a program: over stdin and stdout, and over HTTP behind its key and the Host check."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import anyio
import anyio.to_thread
import httpx2
import psutil
import pytest
from loopback import Handler, Loopback
from loops import run_apart
from mcp import Client, MCPError, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from small_workspace import CommandLine, add_llm, command, environment, make_workspace

from rallebench.cli.verbs import VERBS
from rallebench.core.listening import KEY_VARIABLE
from rallebench.remote.calls import Calls
from rallebench.services.workbench import Workbench

T = TypeVar("T")

QUESTION = "Who discovered Titan?"
KEY = {"Authorization": "Bearer secret"}

NOISY = """
import os, subprocess, sys, warnings
from rallebench.cli.main import main
from rallebench.llms.scripted import Scripted

answer = Scripted.generate

def noisy(self, requests):
    print("printed by a library")
    print("flushed by a library", file=sys.__stdout__, flush=True)
    os.write(1, b"written by C\\n")
    subprocess.run(["sh", "-c", "cat; echo echoed by a program"])
    warnings.warn("warned by a library")
    return answer(self, requests)

Scripted.generate = noisy
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture(scope="module")
def template_workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_workspace(tmp_path_factory.mktemp("made") / "workspace")


class Assistant:
    """A client that starts ``rallebench mcp`` and writes its messages by hand."""

    def __init__(self, workspace: Path, *flags: str) -> None:
        self.process = subprocess.Popen(
            command("mcp --workspace", workspace, *flags),
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        who = {"name": "assistant", "version": "1"}
        self.ask("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=who)
        self.send("notifications/initialized")

    def send(self, method: str, number: int | None = None, **params: Any) -> None:
        """Write a notification, or a request with a number."""
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({**message, **({"id": number} if number else {})}))
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def ask(self, method: str, **params: Any) -> Any:
        """The answer to a request."""
        self.send(method, 1, **params)
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def call(self, tool: str, **arguments: Any) -> Any:
        """The reply of a tool."""
        return self.ask("tools/call", name=tool, arguments=arguments)["result"]["structuredContent"]

    def leave(self, how: str) -> int:
        """Close stdin or send a signal; return the exit code."""
        assert self.process.stdin is not None and self.process.stderr is not None
        children = psutil.Process(self.process.pid).children(recursive=True)
        if how == "eof":
            self.process.stdin.close()
        else:
            self.process.send_signal(getattr(signal, how))
        code = self.process.wait(30)
        assert not psutil.wait_procs(children, 10)[1], "a program of the server still runs"
        assert "Traceback" not in self.process.stderr.read()
        return code


def never_end(handler: Handler) -> None:
    """A model that writes spaces until its client hangs up."""
    handler.start(200, {"Content-Type": "application/json", "Content-Length": "1000000"})
    while not handler.owner.closing.is_set():
        handler.wfile.write(b" ")
        handler.wait(0.05)


def close(process: subprocess.Popen[str]) -> None:
    """End a process and close its pipes."""
    process.kill()
    process.wait(30)
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with suppress(BrokenPipeError):
                pipe.close()


@pytest.fixture
def assistants() -> Iterator[Callable[..., Assistant]]:
    """Starts assistants, and ends their servers."""
    made: list[Assistant] = []

    def start(*arguments: Any) -> Assistant:
        made.append(Assistant(*arguments))
        return made[-1]

    yield start
    for assistant in made:
        close(assistant.process)


def over_stdio(
    talking: Callable[[Client], Awaitable[T]], words: list[str], folder: Path, errors: Path
) -> T:
    """Let the SDK's client start a server in another folder and talk to it."""
    server = StdioServerParameters(
        command=words[0], args=words[1:], env=environment(), cwd=str(folder)
    )

    async def connect() -> T:
        with errors.open("w") as log:
            async with Client(stdio_client(server, errlog=log)) as client:
                return await talking(client)

    return run_apart(connect)


@pytest.mark.slow
def test_an_assistant_asks_runs_and_reads_while_libraries_print(
    workspace: Path, tmp_path: Path
) -> None:
    script, errors = tmp_path / "noisy.py", tmp_path / "errors.txt"
    script.write_text(NOISY)
    words = [sys.executable, str(script), "mcp", "--workspace", str(workspace), "--allow-run"]

    async def work(client: Client) -> Any:
        asked = await client.call_tool("ask", {"question": QUESTION, "chain": "read"})
        run = {"chain": "read", "dataset": "tiny-qa", "metrics": "em", "name": "night"}
        await client.call_tool("start_run", run)
        state: Any = None
        while (state or {"state": "running"})["state"] == "running":
            await anyio.sleep(0.1)
            status = await client.call_tool("run_status", {"run": "night"})
            state = status.structured_content
        (report,) = (await client.read_resource("rallebench://runs/night/report")).contents
        return asked.structured_content, state, json.loads(report.text)  # type: ignore[union-attr]

    answer, state, report = over_stdio(work, words, tmp_path, errors)
    assert answer["answer"] == "Titan" and state["state"] == "finished"
    assert report["n_done"] == 8
    noise = ("printed by", "flushed by", "written by C", "echoed by", "warned by")
    assert all(words in errors.read_text() for words in noise)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["eof", "SIGINT", "SIGTERM"])
def test_an_idle_server_ends_with_its_client_or_an_interrupt(
    how: str, workspace: Path, assistants: Callable[..., Assistant]
) -> None:
    assert assistants(workspace).leave(how) == 0


@pytest.mark.slow
@pytest.mark.parametrize("how", ["eof", "SIGINT", "SIGKILL"])
def test_a_client_that_leaves_ends_the_question_and_the_run(
    how: str, workspace: Path, assistants: Callable[..., Assistant]
) -> None:
    with Loopback(never_end) as model:
        add_llm(workspace, "far", "openai_compatible", model="m", base_url=model.url)
        assistant = assistants(workspace, "--allow-run")
        assistant.call("start_run", chain="read", dataset="tiny-qa", llm="slow", name="night")
        asking = {"question": QUESTION, "chain": "closed", "llm": "far"}
        assistant.send("tools/call", 2, name="ask", arguments=asking)
        assert model.until(lambda: model.in_flight > 0, 30)
        began = time.monotonic()
        assistant.leave(how)
        assert time.monotonic() - began < 20, "the server waits for the model"
        assert model.until(lambda: model.answered > 0, 10)
    bench = Workbench(workspace)
    bench.tracking.enabled = False
    try:
        Calls(bench).start_run("read", "tiny-qa", llm="slow", name="night")
        job = bench.jobs.get("run", "night")
        assert job is not None and job.wait(60)
        assert Calls(bench).report("night")["n_done"] == 8
    finally:
        bench.close()
    assert not [path for path in workspace.rglob("*.part") if path.exists()]


@pytest.mark.slow
def test_a_server_that_dies_fails_the_call_that_waits(workspace: Path, tmp_path: Path) -> None:
    with Loopback(never_end) as model:
        add_llm(workspace, "far", "openai_compatible", model="m", base_url=model.url)

        def kill() -> None:
            assert model.until(lambda: model.in_flight > 0, 30)
            for child in psutil.Process().children():
                if "mcp" in child.cmdline() and str(workspace) in child.cmdline():
                    child.kill()

        async def ask(client: Client) -> str:
            threading.Thread(target=kill, daemon=True).start()
            try:
                await client.call_tool(
                    "ask", {"question": QUESTION, "chain": "closed", "llm": "far"}
                )
            except MCPError as error:
                return error.message
            return ""

        words = command("mcp --workspace", workspace, "--allow-run")
        assert over_stdio(ask, words, tmp_path, tmp_path / "errors.txt") == "Connection closed"


@contextmanager
def served(workspace: Path, *flags: str, key: str = "") -> Iterator[tuple[str, Any]]:
    """The address and the process of a server over HTTP."""
    process = subprocess.Popen(
        command("mcp --http --port 0 --workspace", workspace, *flags),
        env={**environment(), KEY_VARIABLE: key},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    try:
        line = process.stderr.readline()
        assert "Serving http://127.0.0.1:" in line, line + process.stderr.read()
        yield line.split()[1], process
    finally:
        close(process)


def over_http(
    url: str, talking: Callable[[Client], Awaitable[T]], mode: str = "auto", **headers: str
) -> T:
    """Let the SDK's client talk to a server over HTTP."""

    async def connect() -> T:
        async with (
            httpx2.AsyncClient(headers={**KEY, **headers}, timeout=60) as http,
            Client(streamable_http_client(url, http_client=http), mode=mode) as client,
        ):
            return await talking(client)

    return run_apart(connect)


@pytest.fixture(scope="module")
def address(template_workspace: Path) -> Iterator[str]:
    """The address of a server with a key, which is also reached as bench.example."""
    flags = ("--allow-run", "--allowed-host", "bench.example")
    with served(template_workspace, *flags, key="secret") as (url, _):
        yield url


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_over_http_many_calls_are_answered_with_progress(address: str, mode: str) -> None:
    heard: list[str | None] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append(message)

    async def work(client: Client) -> list[bool]:
        asking = {"question": QUESTION, "chain": "read"}
        asked = await client.call_tool("ask", asking, progress_callback=hear)
        assert asked.structured_content is not None
        assert asked.structured_content["answer"] == "Titan"
        failed: list[bool] = []

        async def ask(number: int) -> None:
            result = await client.call_tool("run_status", {"run": f"gone-{number}"})
            failed.append(bool(result.is_error))

        async with anyio.create_task_group() as tasks:
            for number in range(100):
                tasks.start_soon(ask, number)
        return failed

    assert over_http(address, work, mode) == [True] * 100
    assert heard[-1] == "generate titan"


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_a_client_that_cancels_over_http_ends_its_question(
    address: str, template_workspace: Path, mode: str
) -> None:
    async def leave(client: Client) -> bool:
        async with anyio.create_task_group() as tasks:
            arguments = {"question": QUESTION, "chain": "closed", "llm": f"far-{mode}"}
            tasks.start_soon(client.call_tool, "ask", arguments)
            assert await anyio.to_thread.run_sync(model.until, lambda: model.in_flight > 0, 30)
            tasks.cancel_scope.cancel()
        return await anyio.to_thread.run_sync(model.until, lambda: model.answered > 0, 20)

    with Loopback(never_end) as model:
        far = {"model": "m", "base_url": model.url}
        add_llm(template_workspace, f"far-{mode}", "openai_compatible", **far)
        assert over_http(address, leave, mode), "the question is still being answered"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("headers", "status", "words"),
    [
        ({"Authorization": ""}, 401, "send the one of RALLEBENCH_API_KEY as a bearer token"),
        ({"Authorization": "Bearer wrong"}, 401, "The key is wrong"),
        ({"Authorization": "Bearer secret\u00e4"}, 401, "The key is wrong"),
        ({"Host": "evil.example"}, 421, "does not answer to the name evil.example"),
        ({"Origin": "http://evil.example"}, 403, "A page of another site"),
        ({"Host": "bench.example", "Origin": "http://evil.example"}, 403, "A page of another"),
        ({"Host": "bench.example"}, 200, "rallebench"),
        ({}, 200, "rallebench"),
    ],
)
def test_only_own_clients_with_the_key_are_answered(
    address: str, headers: dict[str, str], status: int, words: str
) -> None:
    who = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}  # fmt: skip
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": who}
    accept = {"Accept": "application/json, text/event-stream"}
    sent = {k: v.encode() for k, v in {**KEY, **accept, **headers}.items()}
    reply = httpx2.post(address, json=body, headers=sent)
    assert reply.status_code == status and words in reply.text and "\r" not in words


@pytest.mark.slow
@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[" * 100_000, b"\xff", b'{"jsonrpc": "2.0"}', b"x" * 5_000_000, b"1" * 5_000],
    ids=["empty", "cut", "deep", "bytes", "bare", "huge", "digits"],
)  # fmt: skip
def test_a_body_that_is_no_message_is_refused(address: str, body: bytes) -> None:
    headers = {**KEY, "Accept": "application/json, text/event-stream", "Content-Type": "application/json"}  # fmt: skip
    reply = httpx2.post(address, content=body, headers=headers)
    assert 400 <= reply.status_code < 500 and "Traceback" not in reply.text


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_an_interrupted_server_ends_its_streams_and_its_questions(
    mode: str, workspace: Path
) -> None:
    with Loopback(never_end) as model, served(workspace, "--allow-run") as (url, process):
        add_llm(workspace, "far", "openai_compatible", model="m", base_url=model.url)

        def interrupt() -> None:
            assert model.until(lambda: model.in_flight > 0, 30)
            process.send_signal(signal.SIGINT)

        async def ask(client: Client) -> bool:
            threading.Thread(target=interrupt, daemon=True).start()
            arguments = {"question": QUESTION, "chain": "closed", "llm": "far"}
            try:
                with anyio.fail_after(40):
                    return bool((await client.call_tool("ask", arguments)).is_error)
            except MCPError:
                return True

        assert over_http(url, ask, mode)
        assert process.wait(20) is not None and model.until(lambda: model.answered > 0, 10)
        assert "Traceback" not in process.stderr.read()


REFUSALS = [
    ("--http --host 0.0.0.0", f"Binding 0.0.0.0 lets others ask: set {KEY_VARIABLE} to a key"),
    ("--port 8002", "--port needs --http."),
    ("--allowed-host x.example", "--allowed-host needs --http."),
    ("--http --port 99999", "127.0.0.1:99999 cannot be listened on"),
    ("--http --allowed-host http://x", "The allowed host 'http://x' is not a host"),
    ("--host", "expected one argument"),
]


@pytest.mark.parametrize(("flags", "words"), REFUSALS, ids=[flags for flags, _ in REFUSALS])
def test_a_server_that_cannot_start_says_why(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch, flags: str, words: str
) -> None:
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    ran = cli(f"mcp {flags}")
    assert ran.code == 2 and words in ran.last and ran.out == ""


def test_without_the_package_its_extra_is_named(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    VERBS.entry("mcp")
    monkeypatch.setattr("rallebench.cli.mcp.find_spec", lambda name: None)
    ran = cli("mcp")
    assert ran.code == 2 and ran.last.startswith("mcp is not installed and this verb needs it: pip")
