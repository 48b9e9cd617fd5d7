"""PAL: one program, run once; its calls are answered by the environment within the flow."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from small_world import SHOT, TITAN, Pages, World, flow_of, observations, play, prompts

from rallebench import sandbox
from rallebench.core.backends import Backends
from rallebench.core.types import Episode, Reply, ToolCall, UseTool
from rallebench.engine.single import run_one
from rallebench.llms.scripted import Scripted
from rallebench.sandbox.limits import Limits

SEARCH = ToolCall("s-1", "Search", '{"entity": "Titan"}')
CALL = Reply("so far", tool_calls=(SEARCH,), finish_reason="tool_calls")


class Told:
    """The tool ``python`` with a script."""

    concurrency = 1

    def __init__(self, *replies: Reply) -> None:
        self.replies, self.asked = list(replies), list[Mapping[str, str]]()

    def use(self, arguments: Mapping[str, str]) -> Reply:
        self.asked.append(arguments)
        return self.replies.pop(0)


def pal(
    *replies: Reply, said: str = "```python\nprint(1)\n```", **given: object
) -> tuple[Episode, Told]:
    tool = Told(*replies)
    episode, _ = play("pal", [said], tools={"python": tool}, **given)
    return episode, tool


def reason(episode: Episode) -> str:
    assert episode.outcome is not None, episode.error
    return episode.outcome.stop_reason


def test_the_program_is_asked_for_once_run_once_and_its_calls_are_answered() -> None:
    episode, tool = pal(CALL, Reply("Saturn\n"))
    assert (episode.answer, reason(episode)) == ("Saturn", "answered")
    begun, answered = tool.asked
    assert begun["program"] == "print(1)"
    assert json.loads(begun["functions"]) == {"Search": ["entity"], "Lookup": ["keyword"]}
    assert answered == {"session": begun["session"], "observation": TITAN.text}
    kinds = [type(step.request).__name__ for step in episode.steps]
    assert kinds == ["Generate", "UseTool", "Retrieve", "UseTool"]


def test_the_prompt_shows_functions_and_demonstrations() -> None:
    _, llm = play("pal", ["print(1)"], tools={"python": Told(Reply("1"))}, shots=(SHOT,))
    assert "Search(entity)  # Open a page.\nLookup(keyword)  # Look in it." in prompts(llm)[0]
    assert f"Question: {SHOT.question}\n```python\n{SHOT.program}\n```" in prompts(llm)[0]


@pytest.mark.parametrize(
    ("replies", "said", "ended"),
    [
        ([Reply("x", finish_reason="error", note="The program failed.")], "print(", "tool_error"),
        (
            [Reply("", finish_reason="not_python", note="The program is not valid Python.")],
            "I would search.",
            "model_error",
        ),
        ([Reply("", finish_reason="time_limit")], "while True: pass", "tool_error"),
        ([Reply("", finish_reason="call_limit")], "print(1)", "step_limit"),
        ([Reply(" \n")], "x = 1", "no_answer"),
        ([], "```python\n```", "model_error"),
        ([], "", "model_error"),
    ],
)
def test_every_other_way_to_end(replies: list[Reply], said: str, ended: str) -> None:
    episode, _ = pal(*replies, said=said)
    assert (episode.answer, reason(episode)) == ("", ended)


def test_a_program_that_calls_too_often_or_with_too_much_is_told_so_or_stopped() -> None:
    long = Reply("", tool_calls=(ToolCall("s-1", "Search", json.dumps({"entity": "x" * 10_000})),))
    episode, tool = pal(long, Reply("done"))
    assert tool.asked[1]["observation"] == "The argument has 10,000 characters; use at most 2,000."
    episode, tool = pal(*[CALL] * 9, steps=3)
    assert reason(episode) == "step_limit" and len(tool.asked) == 4


def test_an_environment_that_raises_ends_the_episode_and_the_program() -> None:
    episode, _ = pal(CALL, world=World(broken=ValueError("gone")))
    assert reason(episode) == "tool_error"
    assert len(sandbox._SESSIONS) == 0


def real(program: str, **given: object) -> Episode:
    python = sandbox.PythonTool(Limits(seconds=5))
    backends = Backends({"pages": Pages()}, {"m": Scripted([program])}, {"python": python})
    *_, episode = run_one(flow_of("pal", **given), backends)
    assert isinstance(episode, Episode)
    return episode


def test_a_real_program_calls_the_environment_with_quotes_commas_and_brackets() -> None:
    world = World()
    episode = real(
        'page = Search(\'Titan, "the [moon]" (of Saturn)\')\nprint(page.split()[-1].strip("."), Lookup(keyword="x")[:11])',
        world=world,
    )
    assert (episode.answer, reason(episode)) == ("Saturn (Result 1/1", "answered")
    assert world.asked[0] == ("Search", {"entity": 'Titan, "the [moon]" (of Saturn)'})
    assert observations(episode) == []


def test_a_flow_that_is_closed_while_its_program_waits_ends_the_program() -> None:
    tool = sandbox.PythonTool()
    flow = flow_of("pal")
    next(flow)
    asked = flow.send(Reply("print(Search('Titan'))"))
    assert isinstance(asked, UseTool)
    flow.send(tool.use(asked.arguments))
    assert len(sandbox._SESSIONS) == 1
    session = sandbox._SESSIONS.get(asked.arguments["session"])
    flow.close()
    assert len(sandbox._SESSIONS) == 0
    assert session is not None and session.process.poll() is not None


def test_a_flow_that_is_closed_before_its_program_was_started_lets_none_begin() -> None:
    flow = flow_of("pal")
    next(flow)
    asked = flow.send(Reply("print(1)"))
    assert isinstance(asked, UseTool)
    flow.close()
    reply = sandbox.PythonTool().use(asked.arguments)
    assert (reply.text, reply.finish_reason) == ("", "gone")
    assert len(sandbox._SESSIONS) == 0
