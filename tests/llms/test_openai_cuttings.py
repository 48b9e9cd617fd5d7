"""One reply gives the same episode, whole or in pieces, for every way in which a server may cut it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, zip_longest
from typing import Any

import httpcore2
import pytest
from asking import ask, streamed
from hypothesis import assume, given
from hypothesis import strategies as st
from loopback import DONE, Loopback, chunk, completion, stream

from rallebench.core.backends import Backends
from rallebench.core.types import Episode, Flow, Outcome, Reply, ToolCall, ToolSpec
from rallebench.engine.single import run_one
from rallebench.http.client import Answer, Server
from rallebench.http.deadline import Deadline
from rallebench.llms import LLMS
from rallebench.llms._openai.replies import read_answer
from rallebench.llms._openai.requests import read_settings

TOOLS = (ToolSpec("Search"), ToolSpec("Lookup"), ToolSpec("Search_again"))
THOUGHTS = [
    "",
    "<think>Rome?</think>",
    "[THINK]Titan?\n[/THINK]\n",
    "<|channel|>analysis<|message|>Hm.<|end|>",
]
TEXTS = ["", "Rome", "a < b [1]", "Let me see.\n\nRome is it.", "北京 <b>"]

CALL = st.tuples(
    st.sampled_from([tool.name for tool in TOOLS]),
    st.dictionaries(
        st.sampled_from(["query", "q"]),
        st.sampled_from(["Titan", 'a "b"', "{}", "北京", ""]),
        max_size=2,
    ),
)
IDS = ["once", "always", "once, then empty", "once, then null", "late", "never", "another in each"]
MANNERS = st.fixed_dictionaries(
    {
        "index": st.sampled_from(["own", "zero", "null", "none"]),
        "id": st.sampled_from(IDS),
        "name": st.sampled_from(["once", "always", "in pieces", "alone", "last"]),
        "empty first": st.booleans(),
        "object": st.booleans(),
        "interleaved": st.booleans(),
    }
)


MISSING = object()


def is_decidable(manner: Any, calls: Any) -> bool:
    """Return whether the pieces show which call they belong to.

    Without early indexes and ids, ``{}`` may be a call without arguments or the placeholder of the next. A second id
    beside the rest of a name looks like another call.
    """
    if manner["id"] == "another in each" and manner["name"] == "in pieces":
        return False
    told_apart = manner["index"] == "own" or manner["id"] not in ("late", "never")
    return told_apart or all(arguments for _, arguments in calls[:-1])


def piece_id(manner: str, number: int, place: int, count: int) -> Any:
    """The id of a call's piece number ``place`` of ``count``."""
    if manner == "never":
        return MISSING
    if manner == "another in each":
        return f"call-{number}" + (f"-{place}" if place else "")
    if manner == "late":
        return f"call-{number}" if place == count - 1 else MISSING
    if place == 0 or manner == "always":
        return f"call-{number}"
    return {"once": MISSING, "once, then empty": ""}.get(manner)


def cut(text: str, cuts: list[int]) -> list[str]:
    """The text cut into pieces; one piece if no cut is inside it."""
    ends = [*sorted({at for at in cuts if 0 < at < len(text)}), len(text)]
    return [text[start:end] for start, end in zip([0, *ends], ends)]


def pieces_of_call(
    number: int, name: str, arguments: Any, manner: Any, cuts: list[int]
) -> Iterator[Any]:
    """The chunks of one call, in the style of a server."""
    parts: list[Any] = (
        [arguments] if manner["object"] else cut(json.dumps(arguments, ensure_ascii=False), cuts)
    )
    names = [name] * len(parts) if manner["name"] == "always" else [name]
    if manner["name"] == "in pieces":
        names, parts = [name[:3], name[3:]], ["", "", *parts]
    if manner["name"] == "alone":
        parts = ["", *parts]
    if manner["name"] == "last":
        names, parts = [*[""] * len(parts), name], [*parts, ""]
    if manner["empty first"]:
        names, parts = ["", *names], ["", *parts]
    for place, part in enumerate(parts):
        piece: dict[str, Any] = {"function": {"arguments": part}}
        if place < len(names):
            piece["function"]["name"] = names[place]
        identity = piece_id(manner["id"], number, place, len(parts))
        if identity is not MISSING:
            piece["id"] = identity
        if manner["index"] != "none":
            piece["index"] = {"own": number, "zero": 0, "null": None}[manner["index"]]
        yield chunk(tool_calls=[piece])


def episode(llm: Any, streaming: bool) -> Episode:
    """The episode of one request, without its times."""

    def flow() -> Flow:
        reply = yield replace(ask(tools=TOOLS), llm="m")
        return Outcome(reply.text)

    *_, last = run_one(flow(), Backends({}, {"m": llm}), stream=streaming)
    assert isinstance(last, Episode)
    steps = [
        replace(s, seconds=0.0, reply=replace(s.reply, first_token_seconds=None))
        for s in last.steps
    ]
    return replace(last, steps=tuple(steps), failed_seconds=0.0)


def without_ids(episode: Episode) -> Episode:
    """The episode with calls that have no ids."""
    steps = []
    for step in episode.steps:
        calls = tuple(replace(call, id="") for call in step.reply.tool_calls)
        steps.append(replace(step, reply=replace(step.reply, tool_calls=calls)))
    return replace(episode, steps=tuple(steps))


class InMemory:
    """A model with the server's bytes in ``whole`` and ``pieces``; they are read like the bytes of a connection."""

    def __init__(self) -> None:
        self.whole: dict[str, Any] = {}
        self.pieces: list[Any] = []
        settings = read_settings("m", base_url="http://127.0.0.1:1/v1", model="m")
        self.server = Server("m", settings, "")

    def _read(self, kind: str, body: list[bytes]) -> Iterator[str | Reply]:
        headers = [(b"content-type", kind.encode())]
        reply = Answer(httpcore2.Response(200, headers=headers, content=body), Deadline(9.0))
        return read_answer(reply, kind != "application/json", self.server)

    def generate(self, batch: Any) -> list[Any]:
        return [
            [*self._read("application/json", [json.dumps(self.whole).encode()])][-1] for _ in batch
        ]

    def stream(self, request: Any) -> Iterator[str | Reply]:
        lines = [piece if isinstance(piece, str) else json.dumps(piece) for piece in self.pieces]
        return self._read("text/event-stream", [f"data: {line}\n\n".encode() for line in lines])


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[dict[str, Any], Any]]:
    """The streamed reply of a server, and a model behind that server."""
    replies: dict[str, Any] = {}
    with Loopback(
        lambda handler: replies[str(bool(handler.body.get("stream")))](handler)
    ) as server:
        llm: Any = LLMS["openai_compatible"](
            "gpt", base_url=server.url, model="m", max_retries=0, timeout=20
        )
        yield replies, llm
        llm.close()


@given(
    st.sampled_from(THOUGHTS),
    st.sampled_from(TEXTS),
    st.lists(CALL, max_size=3),
    MANNERS,
    st.lists(st.integers(0, 90), max_size=8),
)
def test_a_reply_in_pieces_gives_the_episode_of_the_whole_reply(
    thoughts: str, text: str, calls: Any, manner: Any, cuts: list[int]
) -> None:
    assume(is_decidable(manner, calls))
    llm = InMemory()
    channel = "<|start|>assistant<|channel|>final<|message|>" if "channel" in thoughts else ""
    text = thoughts + channel + text
    whole = [
        {
            "id": f"call-{n}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)},
        }
        for n, (name, arguments) in enumerate(calls)
    ]
    reason = "tool_calls" if calls else "stop"
    more = {"tool_calls": whole} if calls else {}
    llm.whole = completion(text, finish_reason=reason, **more)
    chunks = [chunk(part) for part in cut(text, cuts)]
    each = [
        list(pieces_of_call(number, name, arguments, manner, cuts))
        for number, (name, arguments) in enumerate(calls)
    ]
    if manner["interleaved"] and manner["index"] == "own":
        chunks += filter(None, chain.from_iterable(zip_longest(*each)))
    else:
        chunks += chain.from_iterable(each)
    llm.pieces = [*chunks, chunk(finish_reason=reason), DONE]
    expected, actual = episode(llm, False), episode(llm, True)
    if manner["id"] == "never":
        expected, actual = without_ids(expected), without_ids(actual)
    assert [s.reply.tool_calls for s in actual.steps] == [
        s.reply.tool_calls for s in expected.steps
    ]
    tokens = {"prompt_tokens": 0, "completion_tokens": 0}
    assert [replace(s.reply, **tokens) for s in actual.steps] == [
        replace(s.reply, **tokens) for s in expected.steps
    ]
    assert (actual.outcome, actual.error) == (expected.outcome, expected.error)


def test_two_calls_of_the_same_index_are_two_calls(served: Any) -> None:
    replies, llm = served
    calls = [
        {
            "index": 0,
            "id": f"c{n}",
            "function": {"name": "Search", "arguments": json.dumps({"query": name})},
        }
        for n, name in enumerate(["Titan", "Triton"])
    ]
    replies["True"] = stream(
        [*(chunk(tool_calls=[call]) for call in calls), chunk(None, "tool_calls"), DONE]
    )
    _, reply = streamed(llm, ask(tools=TOOLS))
    assert reply.tool_calls == (
        ToolCall("c0", "Search", '{"query": "Titan"}'),
        ToolCall("c1", "Search", '{"query": "Triton"}'),
    )


def test_without_ids_complete_arguments_end_a_call_and_a_placeholder_is_none(served: Any) -> None:
    replies, llm = served
    parts = [
        {"index": 0, "function": {"name": "Search", "arguments": "{}"}},
        {"index": 0, "function": {"arguments": '{"query": "Ti'}},
        {"index": 0, "function": {"name": "Search", "arguments": 'tan"}'}},
        {"index": 0, "function": {"name": "Search", "arguments": ""}},
        {"index": 0, "function": {"name": "Search", "arguments": '{"query": "Triton"}'}},
        {"index": 0, "function": {"name": "Lookup"}},
        {"index": 0, "function": {"arguments": '{"q": 1}'}},
    ]
    replies["True"] = stream(
        [*(chunk(tool_calls=[part]) for part in parts), chunk(None, "tool_calls"), DONE]
    )
    _, reply = streamed(llm, ask(tools=TOOLS))
    assert [(call.name, call.arguments) for call in reply.tool_calls] == [
        ("Search", '{"query": "Titan"}'),
        ("Search", '{"query": "Triton"}'),
        ("Lookup", '{"q": 1}'),
    ]


def test_an_id_of_its_own_for_every_piece_makes_one_call(served: Any) -> None:
    replies, llm = served
    parts: list[Any] = [{"index": 0, "id": "a", "function": {"name": "Search", "arguments": ""}}]
    parts += [
        {"index": 0, "id": f"b{n}", "function": {"name": None, "arguments": part}}
        for n, part in enumerate(['{"query"', ': "Titan"}'])
    ]
    replies["True"] = stream(
        [*(chunk(tool_calls=[part]) for part in parts), chunk(None, "tool_calls"), DONE]
    )
    assert streamed(llm, ask(tools=TOOLS))[1].tool_calls == (
        ToolCall("a", "Search", '{"query": "Titan"}'),
    )


@pytest.mark.parametrize("index", [0, None])
def test_without_ids_a_name_repeated_behind_a_complete_call_begins_the_next(
    served: Any, index: int | None
) -> None:
    replies, llm = served
    parts: list[Any] = []
    for query in ("Titan", "Triton"):
        parts += [{"name": "Search"}, {"arguments": '{"query"'}, {"arguments": f': "{query}"}}'}]
    pieces = [chunk(tool_calls=[{"index": index, "function": part}]) for part in parts]
    replies["True"] = stream([*pieces, chunk(None, "tool_calls"), DONE])
    reply = streamed(llm, ask(tools=TOOLS))[1]
    assert [(call.name, call.arguments) for call in reply.tool_calls] == [
        ("Search", '{"query": "Titan"}'),
        ("Search", '{"query": "Triton"}'),
    ]


def test_an_id_and_the_name_in_every_piece_make_one_call(served: Any) -> None:
    replies, llm = served
    pieces = [
        chunk(tool_calls=[{"id": f"b{n}", "function": {"name": "Search", "arguments": part}}])
        for n, part in enumerate(['{"query', '": "Ti', 'tan"}', '{"query": "Triton"}'])
    ]
    replies["True"] = stream([*pieces, chunk(None, "tool_calls"), DONE])
    reply = streamed(llm, ask(tools=TOOLS))[1]
    assert [call.arguments for call in reply.tool_calls] == [
        '{"query": "Titan"}',
        '{"query": "Triton"}',
    ]
