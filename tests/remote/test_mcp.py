"""The SDK's own client calls every tool and reads every resource, in both eras of the protocol."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import anyio
import pytest
from loopback import Loopback, hang
from loops import run_apart
from mcp import Client, MCPError, types
from small_workspace import add_llm, everything, make_workspace

from rallebench.core.errors import READ_ONLY
from rallebench.remote.calls import CALLS, Calls
from rallebench.remote.mcp_resources import CARD, PAGE, REPORT
from rallebench.remote.mcp_server import McpServer
from rallebench.services.workbench import Workbench
from rallebench.views.cards import CARDS

T = TypeVar("T")

QUESTION = "Who discovered Titan?"
ERAS = ("legacy", "auto")
"""Handshake of 2025 and envelopes of 2026, as the client's ``mode`` names them."""


@pytest.fixture(scope="module")
def template_workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small workspace with the finished runs ``a`` and ``b``."""
    made = make_workspace(tmp_path_factory.mktemp("made") / "workspace")
    bench = Workbench(made)
    make_runs(bench, "a", "b")
    bench.close()
    return made


@pytest.fixture
def bench(bench: Workbench) -> Workbench:
    bench.tracking.enabled = False
    return bench


def talk(
    bench: Workbench,
    talking: Callable[[Client], Awaitable[T]],
    *,
    allow_run: bool = True,
    era: str = "legacy",
) -> T:
    """Let a client talk to a server in this process; return the result."""

    served = bench if allow_run else Workbench(bench.workspace.path, read_only=True)

    async def connect() -> T | MCPError:
        async with Client(McpServer(served).protocol, mode=era) as client:
            try:
                return await talking(client)
            except MCPError as error:
                return error  # raised below, outside of the client's groups of tasks

    try:
        result = run_apart(connect)
    finally:
        if served is not bench:
            served.close()
    if isinstance(result, MCPError):
        raise result
    return result


def call(bench: Workbench, name: str, arguments: Mapping[str, Any], **how: Any) -> Any:
    """The result of one tool."""
    return talk(bench, lambda client: client.call_tool(name, dict(arguments)), **how)


def sentence(result: types.CallToolResult) -> str:
    """The text of a failed call."""
    (content,) = result.content
    assert result.is_error and result.structured_content is None
    assert isinstance(content, types.TextContent) and "\n" not in content.text
    return content.text


def make_runs(bench: Workbench, *names: str) -> None:
    """Finished runs of the small dataset."""
    bench.tracking.enabled = False
    calls = Calls(bench)
    for name in names:
        started = calls.start_run("read", "tiny-qa", metrics="em", name=name)
        job = bench.jobs.get("run", started["run"])
        assert job is not None and job.wait(60)


EXAMPLES: Mapping[str, tuple[Mapping[str, Any], Callable[[Any], bool]]] = {
    "ask": ({"question": QUESTION, "chain": "read"}, lambda reply: reply["answer"] == "Titan"),
    "search": (
        {"query": QUESTION, "retriever": "tiny", "k": 2},
        lambda reply: [hit["rank"] for hit in reply["result"]] == [1, 2],
    ),
    "start_run": (
        {"chain": "read", "dataset": "tiny-qa", "name": "new"},
        lambda reply: (reply["run"], reply["state"]) == ("new", "running"),
    ),
    "run_status": ({"run": "a"}, lambda reply: reply["state"] == "finished"),
    "stop_run": ({"run": "a"}, lambda reply: reply["state"] == "finished"),
    "report": ({"run": "a"}, lambda reply: reply["n_done"] == 8),
    "compare": ({"run": "a", "other": "b"}, lambda reply: reply["difference"] == 0),
    "list_names": ({"kind": "runs"}, lambda reply: {"a", "b"} <= reply.keys()),
}
"""Call → arguments, and what holds of its reply. A new call needs an example here."""


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("name", CALLS)
def test_every_call_is_a_tool_whose_reply_fits_its_schema(
    name: str, era: str, bench: Workbench
) -> None:
    arguments, holds = EXAMPLES[name]
    result = call(bench, name, arguments, era=era)  # the client checks the schema
    (content,) = result.content
    assert not result.is_error and holds(result.structured_content)
    assert json.loads(content.text) == result.structured_content


def test_a_tool_has_the_words_the_types_and_the_effect_of_its_call(bench: Workbench) -> None:
    tools = {tool.name: tool for tool in talk(bench, lambda client: client.list_tools()).tools}
    assert tools.keys() == CALLS.keys()
    start = tools["start_run"]
    assert (start.description or "").startswith("Start to ask a chain the questions of a dataset")
    assert "``" not in (start.description or "")
    assert start.input_schema["required"] == ["chain", "dataset"]
    assert start.input_schema["properties"]["limit"]["type"] == "integer"
    assert start.input_schema["additionalProperties"] is False
    assert "share" in (start.output_schema or {})["properties"]
    for name, tool in tools.items():
        assert tool.annotations is not None and tool.annotations.destructive_hint is False
        assert tool.annotations.read_only_hint is not CALLS[name].works


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("ask", {"question": " "}, "The question is empty; write one."),
        ("ask", {}, "The argument question is missing."),
        ("ask", {"question": QUESTION, "chian": "read"}, "There is no argument 'chian'."),
        ("ask", {"question": 3}, "The argument question is '3'; input should be a valid string."),
        ("ask", {"question": QUESTION, "self": 1}, "There is no argument 'self'."),
        ("ask", {"question": QUESTION, "chain": "../../etc/passwd"}, "There is no chain"),
        ("ask", {"question": QUESTION, "chain": "read", "llm": "mute"}, "all its 0 replies"),
        ("search", {"query": QUESTION, "k": "many"}, "The argument k is 'many'; input should be"),
        ("search", {"query": QUESTION, "k": [1] * 99_999}, "The argument k is '[1, 1, 1"),
        ("search", {"query": QUESTION, "retriever": "tiny", "k": 0}, "k is 0; it must be from 1"),
        ("search", {"query": QUESTION, "retriever": "none"}, "none"),
        ("start_run", {"chain": "read", "dataset": "none"}, "none"),
        ("start_run", {"chain": "read", "dataset": "tiny-qa", "limit": -1}, "limit is -1"),
        ("start_run", {"chain": "read", "dataset": "tiny-qa", "name": "../x"}, "'../x'"),
        ("run_status", {"run": "gone"}, "There is no run 'gone'"),
        ("stop_run", {"run": "a\x00b"}, "cannot be a folder name"),
        ("report", {"run": "../../x"}, "cannot be a folder name"),
        ("compare", {"run": "x" * 9999, "other": "b"}, "is too long"),
        ("list_names", {"kind": "stars"}, "There is no kind 'stars'"),
    ],
)  # fmt: skip
def test_a_wrong_call_gets_one_sentence(
    name: str, arguments: Mapping[str, Any], expected: str, bench: Workbench
) -> None:
    assert expected in sentence(call(bench, name, arguments))


@pytest.mark.parametrize("era", ERAS)
def test_an_unknown_tool_is_an_error_of_the_protocol(era: str, bench: Workbench) -> None:
    with pytest.raises(MCPError, match=r"There is no tool 'aks'\. Did you mean 'ask'") as refused:
        call(bench, "aks", {}, era=era)
    assert refused.value.error.code == types.INVALID_PARAMS


def test_a_bug_is_logged_and_named_by_its_type(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("rallebench.remote.calls.hits_json", lambda hits: 1 / 0)
    result = call(bench, "search", {"query": QUESTION, "retriever": "tiny"})
    assert "unexpected error (ZeroDivisionError)" in sentence(result)
    assert "division by zero" in caplog.text and "division" not in sentence(result)


@pytest.mark.parametrize("name", [name for name, effect in CALLS.items() if effect.works])
def test_without_allow_run_nothing_is_asked_or_started(name: str, bench: Workbench) -> None:
    before = everything(bench.workspace.path)
    refused = sentence(call(bench, name, EXAMPLES[name][0], allow_run=False))
    assert refused.startswith(READ_ONLY.removesuffix(".")) and "--allow-run" in refused
    assert everything(bench.workspace.path) == before
    offered = talk(bench, lambda client: client.list_tools(), allow_run=False).tools
    assert {tool.name for tool in offered} == {n for n, e in CALLS.items() if not e.works}


@pytest.mark.parametrize("name", [name for name, effect in CALLS.items() if not effect.works])
def test_a_call_that_works_at_nothing_leaves_the_workspace_as_it_is(
    name: str, bench: Workbench
) -> None:
    before = everything(bench.workspace.path)
    assert EXAMPLES[name][1](
        call(bench, name, EXAMPLES[name][0], allow_run=False).structured_content
    )
    assert everything(bench.workspace.path) == before


def test_progress_rises_from_loading_to_the_last_step(bench: Workbench) -> None:
    heard: list[tuple[float, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, message))

    async def ask(client: Client) -> None:
        await client.call_tool("ask", dict(EXAMPLES["ask"][0]), progress_callback=hear)

    talk(bench, ask)
    numbers, messages = zip(*heard)
    assert list(numbers) == sorted(set(numbers))
    assert messages[-2:] == ("retrieve tiny", "generate titan")


@pytest.mark.parametrize("era", ERAS)
def test_a_cancelled_call_ends_the_request_to_the_model(era: str, bench: Workbench) -> None:
    async def leave(server: Loopback, client: Client) -> None:
        async with anyio.create_task_group() as tasks:
            arguments = {"question": QUESTION, "chain": "closed", "llm": "far"}
            tasks.start_soon(client.call_tool, "ask", arguments)
            assert await anyio.to_thread.run_sync(server.until, lambda: server.in_flight > 0, 20)
            tasks.cancel_scope.cancel()

    with Loopback(hang(60)) as server:
        add_llm(bench.workspace.path, "far", "openai_compatible", model="m", base_url=server.url)
        talk(bench, partial(leave, server), era=era)
        assert bench.models.leases.wait(20), "the question is still being answered"


def test_a_reply_that_utf8_cannot_encode_arrives(bench: Workbench) -> None:
    add_llm(bench.workspace.path, "torn", default="half \ud800 of \ud83d\ude00")
    arguments = {"question": QUESTION, "chain": "read", "llm": "torn"}
    reply = call(bench, "ask", arguments).structured_content
    assert reply["answer"] == "half \ufffd of \U0001f600"


def test_a_hundred_calls_at_once_are_all_answered(bench: Workbench) -> None:
    answers: list[Any] = []

    async def ask_all(client: Client) -> None:
        async def ask(number: int) -> None:
            name = "ask" if number % 2 else "run_status"
            arguments = EXAMPLES["ask"][0] if number % 2 else {"run": "gone"}
            answers.append((await client.call_tool(name, dict(arguments))).is_error)

        async with anyio.create_task_group() as tasks:
            for number in range(100):
                tasks.start_soon(ask, number)

    talk(bench, ask_all)
    assert answers.count(True) == answers.count(False) == 50


async def every_resource(client: Client) -> list[types.Resource]:
    """All pages of the list."""
    page = await client.list_resources()
    resources = page.resources
    while page.next_cursor:
        assert len(page.resources) == PAGE
        page = await client.list_resources(cursor=page.next_cursor)
        resources = [*resources, *page.resources]
    return resources


def test_every_listed_resource_is_read_and_no_other_is_there(bench: Workbench) -> None:
    async def read_all(client: Client) -> dict[str, tuple[str, str]]:
        texts = {}
        for resource in await every_resource(client):
            (contents,) = (await client.read_resource(resource.uri)).contents
            assert isinstance(contents, types.TextResourceContents)
            assert contents.mime_type == resource.mime_type
            texts[resource.uri] = (contents.mime_type or "", contents.text)
        return texts

    texts = talk(bench, read_all)
    assert list(texts)[:2] == ["rallebench://runs/b/report", "rallebench://runs/a/report"]
    assert len(texts) == 2 + sum(len(card.names(bench.workspace)) for card in CARDS.values())
    assert json.loads(texts["rallebench://runs/a/report"][1])["n_done"] == 8
    for media_type, text in texts.values():
        assert text and (media_type == "text/markdown" or json.loads(text))


def test_templates_name_all_addresses_and_their_parts_are_completed(bench: Workbench) -> None:
    async def complete(client: Client) -> list[list[str]]:
        listed = (await client.list_resource_templates()).resource_templates
        assert [template.uri_template for template in listed] == [str(REPORT), str(CARD)]

        async def fitting(template: object, part: str, typed: str, **given: str) -> list[str]:
            ref = types.ResourceTemplateReference(uri=str(template))
            argument = {"name": part, "value": typed}
            return (await client.complete(ref, argument, given)).completion.values

        return [
            await fitting(REPORT, "name", ""),
            await fitting(CARD, "kind", "Met"),
            await fitting(CARD, "name", "recall@", kind="metrics"),
            await fitting(CARD, "name", "", kind="stars"),
            await fitting("file://x", "name", ""),
        ]

    runs, kinds, metrics, *none = talk(bench, complete)
    assert (runs, kinds, none) == (["b", "a"], ["metrics"], [[], []])
    assert "recall@5" in metrics


def test_names_are_encoded_in_addresses(bench: Workbench) -> None:
    make_runs(bench, "a (b), 100@c")

    async def read(client: Client) -> str:
        first = (await client.list_resources()).resources[0]
        (contents,) = (await client.read_resource(first.uri)).contents
        assert isinstance(contents, types.TextResourceContents)
        return str(json.loads(contents.text)["run"])

    assert talk(bench, read) == "a (b), 100@c"


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("rallebench://runs/gone/report", "There is no run 'gone'"),
        ("rallebench://runs/..%2F..%2Fetc/report", "cannot be a folder name"),
        ("rallebench://runs/%00/report", "cannot be a folder name"),
        ("rallebench://cards/metrics/nope", "There is no metric 'nope'"),
        ("rallebench://cards/corpora/..%2F..", "There is no corpus '../..'"),
        ("rallebench://cards/llms/titan", "There is no model with a card 'titan'"),
        ("rallebench://cards/stars/sun", "There is no kind of card 'stars'"),
        ("file:///etc/passwd", "There is no resource 'file:///etc/passwd'"),
        ("rallebench://" + "x" * 70_000, "There is no resource"),
    ],
)
@pytest.mark.parametrize("era", ERAS)
def test_a_resource_that_is_not_there_is_refused_in_one_sentence(
    era: str, uri: str, expected: str, bench: Workbench
) -> None:
    with pytest.raises(MCPError) as refused:
        talk(bench, lambda client: client.read_resource(uri), era=era)
    assert expected in str(refused.value) and "\n" not in str(refused.value)
    assert refused.value.error.code == types.INVALID_PARAMS


@pytest.mark.parametrize("cursor", ["x", "-1", "1.5", "9" * 99, "²"])
def test_a_cursor_of_no_page_is_refused(cursor: str, bench: Workbench) -> None:
    with pytest.raises(MCPError, match="is of no page"):
        talk(bench, lambda client: client.list_resources(cursor=cursor))


def test_a_run_without_results_has_no_report(bench: Workbench) -> None:
    (bench.workspace.runs / "a" / "report.json").unlink()
    listed = [resource.uri for resource in talk(bench, every_resource)]
    assert "rallebench://runs/b/report" in listed and "rallebench://runs/a/report" not in listed
    with pytest.raises(MCPError, match="has no results yet"):
        talk(bench, lambda client: client.read_resource("rallebench://runs/a/report"))
