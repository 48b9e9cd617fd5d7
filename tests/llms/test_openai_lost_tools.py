"""A server whose chat template has no tools drops them. This is detected once, and reported."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from asking import ask, reply_of
from loopback import Behaviour, Handler, Loopback, answer, completion, fail, send_json, send_text
from small_workspace import CommandLine

from rallebench.core.types import Episode, Step, ToolSpec
from rallebench.engine.run_warnings import ReplyCounts
from rallebench.llms.openai_compatible import NO_CALL

Serve = Callable[..., tuple[Loopback, Any]]

TURN = 'Thought: I know it.\nAction: Finish\nAction Input: {"return_type": "give_answer", "final_answer": "Titan"}'


def props(supports: Any) -> Behaviour:
    """llama.cpp's ``/props``, and an answer without a tool call."""

    def behave(handler: Handler) -> None:
        if handler.command == "GET":
            assert handler.path == "/props?model=m"
            send_json({"chat_template_caps": {"supports_tools": supports}})(handler)
        else:
            send_json(completion(TURN))(handler)

    return behave


def counting(tool_tokens: int, usage: bool = True) -> Behaviour:
    """A server without ``/props`` that counts a tool as this number of prompt tokens."""

    def behave(handler: Handler) -> None:
        if handler.command == "GET":
            fail(404)(handler)
            return
        value = completion(TURN)
        value["usage"]["prompt_tokens"] += tool_tokens * ("tools" in handler.body)
        if not usage:
            del value["usage"]
        send_json(value)(handler)

    return behave


@pytest.mark.parametrize(
    ("behaviour", "takes", "requests"),
    [
        (props(True), True, 1),
        (props(False), False, 1),
        (counting(40), True, 3),
        (counting(0), False, 3),
        (counting(-3), True, 3),  # a server that does not count cached tokens
        (counting(0, usage=False), True, 2),
        (fail(500), True, 2),
        (send_text("no JSON"), True, 2),
    ],
)
def test_whether_a_model_takes_tools_is_found_out_once_and_a_server_that_does_not_tell_is_trusted(
    serve: Serve, behaviour: Behaviour, takes: bool, requests: int
) -> None:
    server, llm = serve(behaviour, max_retries=0)
    assert server.bodies == [], "nothing is asked before tools are to be used"
    assert llm.calls_tools is llm.calls_tools is takes
    assert len(server.bodies) == requests
    assert all(body.get("max_tokens", 1) == 1 for body in server.bodies)
    assert ("drops tools" in llm.about) is not takes


def test_the_small_request_holds_a_models_fields_but_for_tools(serve: Serve) -> None:
    extra = {"response_format": {"type": "json_object"}, "tool_choice": "auto", "top_k": 1}
    server, llm = serve(counting(40), model="a/m", extra_body=extra)
    assert llm.calls_tools
    assert server.paths[0] == "/props?model=a%2Fm"
    plain, offered = server.bodies[1:]
    assert plain["top_k"] == offered["top_k"] == 1
    assert not {"response_format", "tool_choice", "tools"} & plain.keys()


@pytest.fixture
def far(cli: CommandLine) -> Iterator[Loopback]:
    """A server that drops tools; the model ``far`` of the workspace is behind it."""
    file = cli.workspace / "llms.json"
    with Loopback(props(False)) as server:
        settings = {"model": "m", "base_url": server.url, "max_retries": 0}
        entry = {"backend": "openai_compatible", "settings": settings}
        file.write_text(json.dumps({**json.loads(file.read_text()), "far": entry}))
        yield server


def agent_run(*more: str) -> tuple[str, ...]:
    return (
        *("run", "--workflow", "function-calling", "--env", "wikipedia", "--llm", "far"),
        *("--set", "env.retriever=tiny", "--dataset", "tiny-qa", "--limit", "2"),
        *("--name", "r", "--no-mlflow", *more),
    )


def test_an_agent_that_must_call_natively_is_left_to_it(cli: CommandLine, far: Loopback) -> None:
    ran = cli(*agent_run("--set", "protocol=native"))
    assert ran.code == 0 and "so it is not told of any function; set protocol" in ran.err
    assert "called in text;" not in ran.err
    assert all("tools" in body for body in far.bodies if body)


@pytest.mark.parametrize("more", [("--set", "protocol=text"), ()])
def test_a_server_is_not_asked_about_tools_where_none_are_offered_any_more(
    cli: CommandLine, far: Loopback, more: tuple[str, ...]
) -> None:
    assert cli(*agent_run(*more)).code == 0
    assert cli(*agent_run(*more, "--resume")).code == 0  # no question is left
    assert far.paths.count("/props?model=m") == (0 if more else 1)


def test_an_agent_calls_its_functions_in_text_where_tools_are_dropped_and_the_run_says_so(
    cli: CommandLine, far: Loopback
) -> None:
    ran = cli(*agent_run("--json"))
    assert ran.code == 0, ran.err
    assert "Warning: 'far' drops the tools that it is sent" in ran.err
    assert not any("tools" in body for body in far.bodies)
    assert "Action Input" in far.bodies[-1]["messages"][0]["content"]
    assert ran.json["agent"]["stop_reasons"] == {"answered": 2}
    state = json.loads((cli.workspace / "runs" / "r" / "state.json").read_text())
    assert "drops the tools" in state["message"]


def test_replies_without_log_probabilities_are_counted_in_a_warning(cli: CommandLine) -> None:
    action = {"kind": "generate", "template": "{question}", "target": "titan"}
    chain = {"name": "asks", "actions": [{**action, "generation": {"logprobs": True}}]}
    (cli.workspace / "chains" / "asks.json").write_text(json.dumps(chain))
    ran = cli("run --chain asks --dataset tiny-qa --limit 3 --name r --no-mlflow")
    assert ran.code == 0, ran.err
    assert "Warning: 3 of 3 replies of 'titan' hold no log-probabilities" in ran.err


# ── a required call ──────────────────────────────────────────────────────────

NAMED = {"type": "function", "function": {"name": "search"}}
CALLED = {"id": "c", "type": "function", "function": {"name": "search", "arguments": "{}"}}


@pytest.mark.parametrize(
    ("choice", "behaviour", "ignored"),
    [
        ("required", answer("Ada."), True),
        (NAMED, answer("Ada."), True),
        ("required", answer(None, tool_calls=[CALLED]), False),
        ("required", answer(json.dumps({"name": "search", "arguments": {}})), False),
        ("auto", answer("Ada."), False),
        ("none", answer("Ada."), False),
    ],
)
def test_a_reply_without_the_call_that_must_be_made_is_told_of_and_counted(
    serve: Serve, choice: Any, behaviour: Behaviour, ignored: bool
) -> None:
    tool = ToolSpec("search", "search", {"type": "object", "properties": {}})
    request = ask(tools=(tool,), options={"tool_choice": choice})
    reply = reply_of(serve(behaviour)[1], request)
    assert (NO_CALL in reply.note) is ignored
    counts = ReplyCounts()
    counts.count(Episode("q1", "asks", (Step(request, reply),)))
    sentences = counts.sentences()
    assert len(sentences) == ignored
    assert all("hold no call although tool_choice demands one" in text for text in sentences)
