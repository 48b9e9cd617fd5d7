"""Function calling and the depth-first search over it, natively and in the text protocol."""

from __future__ import annotations

import json
from typing import Any

import pytest
from small_world import (
    INVALID,
    QUESTION,
    SHOT,
    TITAN,
    World,
    calls,
    ended,
    observations,
    play,
    prompts,
    text_call,
)

from rallebench.core.types import Reply, Step, ToolCall
from rallebench.workflows._calling import read_move
from rallebench.workflows.trees import read_tree

ANSWER = json.dumps({"return_type": "give_answer", "final_answer": "Saturn"})
GIVE_UP = json.dumps({"return_type": "give_up_and_restart"})
SEARCH = json.dumps({"entity": "Titan"})
FORMS = [pytest.param(True, calls, id="native"), pytest.param(False, text_call, id="text")]


@pytest.mark.parametrize(("native", "call"), FORMS)
def test_functions_are_called_in_turn_until_it_finishes(native: bool, call: Any) -> None:
    episode, llm = play(
        "function-calling", [call("Search", SEARCH), call("Finish", ANSWER)], native=native
    )
    assert (episode.answer, observations(episode)) == ("Saturn", [TITAN.text])
    first, second = llm.requests
    assert [tool.name for tool in first.tools] == (["Search", "Lookup", "Finish"] if native else [])
    assert ('"name": "Search"' in first.messages[0].content) is not native
    assert [message.role for message in second.messages[2:]] == (
        ["assistant", "tool"] if native else ["assistant", "user"]
    )
    if native:
        assert second.messages[3].tool_call_id == second.messages[2].tool_calls[0].id == "call-1"
    else:
        assert second.messages[3].content == f"Observation: {TITAN.text}"


@pytest.mark.parametrize(("native", "call"), FORMS)
@pytest.mark.parametrize(
    ("name", "arguments", "observation"),
    [
        ("Search", '{"entity": "Titan"', "The arguments of Search are not valid JSON"),
        ("Search", '["Titan"]', "The arguments of Search are not a JSON object"),
        ("Search", "[" * 100_000, "The arguments of Search are not valid JSON"),
        ("Search", '{"name": "Titan"}', INVALID),
        ("Dance", "{}", INVALID),
        ("Search", json.dumps({"entity": "x" * 10_000}), "The argument has 10,000 characters"),
        ("Search", json.dumps({"entity": 'Titan, "the [moon]"'}), TITAN.text),
        ("Finish", '{"final_answer": ', "The arguments of Finish are not valid JSON"),
        ("Finish", "{}", "Finish needs final_answer"),
    ],
)
def test_a_wrong_call_is_one_observation_and_the_episode_goes_on(
    native: bool, call: Any, name: str, arguments: str, observation: str
) -> None:
    episode, llm = play(
        "function-calling", [call(name, arguments), call("Finish", ANSWER)], native=native
    )
    assert episode.answer == "Saturn", episode.error
    told = llm.requests[1].messages[-1].content.removeprefix("Observation: ")
    assert told.startswith(observation)


def test_invented_observations_in_the_text_protocol_are_cut() -> None:
    said = (
        text_call("Search", SEARCH)
        + "\nObservation: It is a planet.\nAction: Finish\nAction Input: {}"
    )
    episode, llm = play("function-calling", [said, text_call("Finish", ANSWER)])
    assert episode.answer == "Saturn"
    assert llm.requests[1].messages[-2].content == text_call("Search", SEARCH)


def test_a_model_that_is_offered_functions_but_writes_its_call_is_understood() -> None:
    assert ended(
        "function-calling", [text_call("Finish", ANSWER) + "\nI am done."], native=True
    ) == ("Saturn", "answered")


def test_of_several_calls_in_one_turn_the_first_counts() -> None:
    two = Reply("", tool_calls=(ToolCall("a", "Search", SEARCH), ToolCall("b", "Finish", ANSWER)))
    episode, llm = play("function-calling", [two, calls("Finish", ANSWER)], native=True)
    assert observations(episode) == [TITAN.text]
    assert [call.id for call in llm.requests[1].messages[2].tool_calls] == ["a"]


@pytest.mark.parametrize(
    ("script", "given", "outcome"),
    [
        ([text_call("Finish", GIVE_UP)], {}, ("", "gave_up")),
        ([text_call("Search", SEARCH)] * 2, {"steps": 2}, ("", "step_limit")),
        (["It is Saturn."] * 2, {"steps": 2}, ("", "step_limit")),
        ([""] * 3, {}, ("", "model_error")),
        ([text_call("Search", SEARCH)] * 60, {"context": 500, "steps": 60}, ("", "context_limit")),
        ([text_call("finish", '{"final_answer": 2}')], {}, ("2", "answered")),
        ([text_call("Finish", "{broken")], {"compat": "original"}, ("", "no_answer")),
        ([text_call("Search", SEARCH)], {"world": World(broken=KeyError("x"))}, ("", "tool_error")),
    ],
)
def test_every_way_to_end(
    script: list[str], given: dict[str, Any], outcome: tuple[str, str]
) -> None:
    assert ended("function-calling", script, **given) == outcome


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("workflow", ["function-calling", "dfsdt"])
def test_demonstrations_are_turns_of_the_conversation(workflow: str, native: bool) -> None:
    _, llm = play(workflow, [calls("Finish", ANSWER)], native=native, shots=(SHOT,))
    roles = [message.role for message in llm.requests[0].messages]
    answers = "tool" if native else "user"
    assert roles == ["system", "user", "assistant", answers, "assistant", answers, "user"]
    assert llm.requests[0].messages[-1].content == f"Question: {QUESTION.text}"


def nodes(steps: tuple[Step, ...]) -> list[tuple[int, int, int, str]]:
    return [(node.number, node.parent, node.depth, node.state) for node in read_tree(steps)]


@pytest.mark.parametrize(("native", "call"), FORMS)
def test_dfsdt_backtracks_twice_then_answers_and_keeps_its_tree(native: bool, call: Any) -> None:
    script = [
        call("Search", SEARCH),  # 1
        call("Lookup", '{"keyword": "a"}'),  # 2 below 1
        call("Finish", GIVE_UP),  # 3 below 2: back to the state after 1
        call("Lookup", '{"keyword": "b"}'),  # 4 below 1, the second try there
        call("Finish", GIVE_UP),  # 5 below 4: 1 is used up, back to the question
        call("Finish", ANSWER),  # 6 below the question
    ]
    episode, llm = play("dfsdt", script, native=native)
    assert (
        episode.answer == "Saturn" and episode.outcome and episode.outcome.stop_reason == "answered"
    )
    assert nodes(episode.steps) == [
        (1, 0, 1, "left"),
        (2, 1, 2, "left"),
        (3, 2, 3, "gave_up"),
        (4, 1, 2, "left"),
        (5, 4, 3, "gave_up"),
        (6, 0, 1, "answered"),
    ]
    again = [
        prompt for prompt in prompts(llm) if prompt.startswith("You were in this state before")
    ]
    tried = [text.split("You tried:\n")[1].split("\nNow")[0] for text in again]
    assert [text.splitlines()[0] for text in tried] == [
        'Lookup({"keyword": "a"})',
        f"Search({SEARCH})",
    ]
    assert [text.count("Observation: ") for text in tried] == [1, 1]
    assert [text.count("Your observation: ") for text in tried] == [1, 0]  # the question has none
    assert [len(request.messages) for request in llm.requests] == [2, 4, 6, 5, 6, 3]


@pytest.mark.parametrize(("back", "parent"), [(1, 2), (2, 1), (3, 0)])
def test_an_attempt_that_gave_up_goes_back_as_many_states_as_is_set(back: int, parent: int) -> None:
    script = [
        text_call("Search", SEARCH),  # 1
        text_call("Lookup", '{"keyword": "a"}'),  # 2 below 1
        text_call("Finish", GIVE_UP),  # 3 below 2
        text_call("Finish", ANSWER),  # 4
    ]
    episode, _ = play("dfsdt", script, back=back)
    assert nodes(episode.steps)[-1] == (4, parent, parent + 1, "answered")


@pytest.mark.parametrize(
    ("settings", "calls_of_the_model", "too_deep"),
    [
        ({"depth": 2}, 2 + 4, 4),
        ({"depth": 2, "back": 5}, 2 + 4, 4),
        ({"depth": 3}, 2 + 4 + 8, 8),
        ({"depth": 3, "compat": "original"}, 2 + 4 + 8, 8),
        ({"depth": 3, "width": 3}, 3 + 9 + 27, 27),
        ({"nodes": 3}, 2, 2),  # a thought, a function, its arguments
        ({"nodes": 4}, 2 + 4, 4),
        ({"nodes": 0, "depth": 1}, 2, 2),
    ],
)
def test_an_attempt_that_is_too_deep_goes_back_one_state(
    settings: dict[str, Any], calls_of_the_model: int, too_deep: int
) -> None:
    script = [text_call("Search", SEARCH)] * 60
    episode, llm = play("dfsdt", script, **{"width": 2, "steps": 60, **settings})
    assert episode.outcome and episode.outcome.stop_reason == "gave_up"
    assert llm.calls == calls_of_the_model
    assert [node.state for node in read_tree(episode.steps)].count("too_deep") == too_deep


@pytest.mark.parametrize(
    ("script", "given", "outcome"),
    [
        ([text_call("Finish", GIVE_UP)] * 2, {}, ("", "gave_up")),
        ([text_call("Finish", GIVE_UP)], {"compat": "original"}, ("", "gave_up")),
        ([text_call("Search", SEARCH)] * 60, {"steps": 5}, ("", "step_limit")),
        (["Hm."] * 60, {"steps": 5}, ("", "step_limit")),
        ([""] * 3, {}, ("", "model_error")),
        ([text_call("Search", SEARCH)], {"world": World(broken=KeyError("x"))}, ("", "tool_error")),
    ],
)
def test_every_way_in_which_a_search_ends_without_an_answer(
    script: list[str], given: dict[str, Any], outcome: tuple[str, str]
) -> None:
    assert ended("dfsdt", script, **given) == outcome


@pytest.mark.parametrize(
    "text",
    [
        'Action: Search\nAction Input: {"entity": "Titan"}',
        'Thought: I look.\n**Action:** `Search`\n**Action Input:** {"entity": "Titan"}',
        '- **Action 1：** Search\n- **Action Input 1：** `{"entity": "Titan"}`',
        'Action: Search\nAction Input:\n```json\n{"entity": "Titan"}\n```\nObservation: x',
        "Action: Search\nAction Input: {'entity': 'Titan'}",
        'Action: Search Action Input: {"entity": "Titan"} and so on',
        'Action: "Search"\n\nAction_Input: {"entity": "Titan"}',
    ],
)
def test_a_call_in_text_is_read_through_markdown_wide_colons_and_pythons_quotes(text: str) -> None:
    call = read_move(Reply(text), 1).call
    assert call is not None
    assert (call.name, json.loads(call.arguments)) == ("Search", {"entity": "Titan"})
    assert read_move(Reply(f"**Thought:** I look.\n{text}"), 1).thought.startswith("I look.")
