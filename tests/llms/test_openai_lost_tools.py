"""A server whose chat template has no tools drops them: that is found out once, and said."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from loopback import Behaviour, Handler, Loopback, completion, fail, send_json, send_text
from small_workspace import CommandLine, make_workspace

from rallebench.llms import LLMS

TURN = 'Thought: I know it.\nAction: Finish\nAction Input: {"return_type": "give_answer", "final_answer": "Titan"}'


def props(supports: Any) -> Behaviour:
    """llama.cpp's ``/props``, and an answer that never calls a tool."""

    def behave(handler: Handler) -> None:
        if handler.command == "GET":
            assert handler.path == "/props"
            send_json({"chat_template_caps": {"supports_tools": supports}})(handler)
        else:
            send_json(completion(TURN))(handler)

    return behave


def counting(tool_tokens: int, usage: bool = True) -> Behaviour:
    """A server without ``/props`` that counts a tool as so many prompt tokens."""

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


@contextmanager
def model(behaviour: Behaviour) -> Iterator[tuple[Loopback, Any]]:
    with Loopback(behaviour) as server:
        llm: Any = LLMS["openai_compatible"](
            "far", model="m", base_url=server.url, timeout=5, max_retries=0
        )
        with closing(llm):
            yield server, llm


@pytest.mark.parametrize(
    ("behaviour", "takes", "requests"),
    [
        (props(True), True, 1),
        (props(False), False, 1),
        (counting(40), True, 3),
        (counting(0), False, 3),
        (counting(0, usage=False), True, 2),
        (fail(500), True, 2),
        (send_text("no JSON"), True, 2),
    ],
)
def test_whether_a_model_takes_tools_is_found_out_once_and_a_server_that_does_not_tell_is_trusted(
    behaviour: Behaviour, takes: bool, requests: int
) -> None:
    with model(behaviour) as (server, llm):
        assert server.bodies == [], "nothing is asked before tools are to be used"
        assert llm.calls_tools is llm.calls_tools is takes
        assert len(server.bodies) == requests
        assert all(body.get("max_tokens", 1) == 1 for body in server.bodies)
        assert ("drops tools" in llm.about) is not takes


def test_an_agent_calls_its_functions_in_text_where_tools_are_dropped_and_the_run_says_so(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    workspace = make_workspace(tmp_path / "w")
    rallebench = CommandLine(capfd, workspace)
    with Loopback(props(False)) as server:
        entry = {
            "backend": "openai_compatible",
            "settings": {"model": "m", "base_url": server.url, "max_retries": 0},
        }
        llms = json.loads((workspace / "llms.json").read_text())
        (workspace / "llms.json").write_text(json.dumps({**llms, "far": entry}))
        ran = rallebench(
            *("run", "--workflow", "function-calling", "--env", "wikipedia", "--llm", "far"),
            *("--set", "env.retriever=tiny", "--dataset", "tiny-qa", "--limit", "2"),
            *("--name", "r", "--no-mlflow", "--json"),
        )
        assert ran.code == 0, ran.err
        assert "Warning: 'far' drops the tools that it is sent" in ran.err
        assert not any("tools" in body for body in server.bodies)
        assert "Action Input" in server.bodies[-1]["messages"][0]["content"]
    assert ran.json["agent"]["stop_reasons"] == {"answered": 2}
    state = json.loads((workspace / "runs" / "r" / "state.json").read_text())
    assert "drops the tools" in state["message"]


def test_replies_without_log_probabilities_are_counted_in_the_warnings_of_a_run(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    workspace = make_workspace(tmp_path / "w")
    rallebench = CommandLine(capfd, workspace)
    chain = {
        "name": "asks",
        "actions": [
            {
                "kind": "generate",
                "template": "{question}",
                "target": "titan",
                "generation": {"logprobs": True},
            }
        ],
    }
    (workspace / "chains").mkdir(exist_ok=True)
    (workspace / "chains" / "asks.json").write_text(json.dumps(chain))
    ran = rallebench(
        *("run", "--chain", "asks", "--dataset", "tiny-qa", "--limit", "3"),
        *("--name", "r", "--no-mlflow"),
    )
    assert ran.code == 0, ran.err
    assert "Warning: 3 of 3 replies of 'titan' hold no log-probabilities" in ran.err
