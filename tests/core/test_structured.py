"""JSON and tool calls in the text of a model, and their validation against a schema."""

from __future__ import annotations

import time

import pytest

from rallebench.core.errors import BackendError
from rallebench.core.structured import AROUND, check_schema, find_json, in_form
from rallebench.llms._calls_in_text import before_calls, parse_calls

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name"],
}
CALL = '{"name": "search", "arguments": {"query": "Ada"}}'

HEADER = "<|channel|>commentary to=functions.search "
THOUGHT = "<|channel|>analysis<|message|>Hm.<|end|>"
FINAL = "<|start|>assistant<|channel|>final<|message|>"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        (" 5 ", 5),
        ('```json\n{"a": 1}\n```', {"a": 1}),
        ("So:\n```\n[1, 2]\n```\nthat is all", [1, 2]),
        ('Sure! {"a": {"b": "}"}} I hope', {"a": {"b": "}"}}),
        ('{broken} then {"a": 1}', {"a": 1}),
        ("{NaN} [NaN] [3]", [3]),
    ],
)
def test_the_first_json_value_of_a_text_is_found_fenced_or_not(text: str, value: object) -> None:
    assert find_json(text) == value


@pytest.mark.parametrize("text", ["", "Paris", "{", '{"a": ', "9" * 5000, "[" * 100_000])
def test_a_text_without_json_says_so_and_at_once(text: str) -> None:
    started = time.perf_counter()
    with pytest.raises(BackendError, match="holds no JSON"):
        find_json(text)
    assert time.perf_counter() - started < 5


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"name": "Ada", "age": 3}, ""),
        ({"name": "Ada", "age": "3"}, "at $.age: '3' is not of type 'integer'"),
        ({"age": 3}, "'name' is a required property"),
        ([], "is not of type 'object'"),
    ],
)
def test_a_schema_says_where_a_value_does_not_fit(value: object, words: str) -> None:
    said = check_schema(value, PERSON)
    assert words in said and bool(words) == bool(said)


def test_a_schema_that_points_elsewhere_or_at_itself_is_never_fetched_nor_followed() -> None:
    assert "cannot be followed" in check_schema({}, {"$ref": "http://127.0.0.1:9/nowhere.json"})
    assert "cannot be followed" in check_schema({}, {"$ref": "#"})


def test_an_answer_is_judged_by_the_first_json_that_fits() -> None:
    assert in_form('As [1] says: {"name": "Ada"}', PERSON) == ('{"name": "Ada"}', AROUND)
    assert "holds no JSON" in in_form("Ada", PERSON)[1]
    assert in_form('{"name": 3}', PERSON)[1].startswith(
        "The answer does not fit the schema: at $.name"
    )


@pytest.mark.parametrize(
    ("text", "rest", "names"),
    [
        (f"<tool_call>\n{CALL}\n</tool_call>", "", ["search"]),
        (f"<tool_call>{CALL}</tool_call>\n<tool_call>{CALL}</tool_call>", "", ["search", "search"]),
        (f"I look. <tool_call>{CALL}", "I look.", ["search"]),
        (f"<think>hm</think>\n<tool_call>{CALL}</tool_call>", "<think>hm</think>", ["search"]),
        (CALL, "", ["search"]),
        (f"```json\n{CALL}\n```", "", ["search"]),
        (f"[{CALL}, {CALL}]", "", ["search", "search"]),
        ('{"type": "function", "function": {"name": "f", "parameters": {}}}', "", ["f"]),
        (
            f"<tool_call>{{oops</tool_call> <tool_call>{CALL}</tool_call>",
            "<tool_call>{oops</tool_call>",
            ["search"],
        ),
        ("<tool_call>search(Ada)</tool_call>", "<tool_call>search(Ada)</tool_call>", []),
        ('{"name": "Ada", "age": 3}', '{"name": "Ada", "age": 3}', []),
        (f"[{CALL}, 3]", f"[{CALL}, 3]", []),
        (f"I would call {CALL}", f"I would call {CALL}", []),
        ('{"name": "f", "arguments": "x"}', '{"name": "f", "arguments": "x"}', []),
        ("[]", "[]", []),
        (f"{HEADER}<|constrain|>json<|message|>{{}}<|call|>", "", ["search"]),
        (f"{HEADER}<|message|>{{}}", "", ["search"]),
        (f"{THOUGHT}<|start|>assistant{HEADER}json<|message|>{{}}<|call|>", THOUGHT, ["search"]),
        (
            f"{THOUGHT}<|start|>assistant to=functions.search<|channel|>commentary json<|message|>{{}}",
            THOUGHT,
            ["search"],
        ),
        (
            f"{HEADER}<|message|>{{}}<|call|><|start|>assistant{HEADER.replace('search', 'read')}<|message|>{{}}<|call|>",
            "",
            ["search", "read"],
        ),
        (
            'analysisHm.assistantcommentary to=functions.search json{"q": 1}',
            "analysisHm.",
            ["search"],
        ),
        (f"{HEADER}<|message|>{{oops<|call|>", f"{HEADER}<|message|>{{oops<|call|>", []),
        ("Write commentary to=functions.f {}", "Write commentary to=functions.f {}", []),
        (f"{THOUGHT}{FINAL}Rome", f"{THOUGHT}{FINAL}Rome", []),
    ],
)
def test_tool_calls_leave_the_text_and_what_is_none_stays(
    text: str, rest: str, names: list[str]
) -> None:
    said, calls = parse_calls(text)
    assert (said, [call.name for call in calls]) == (rest, names)
    assert [call.id for call in calls] == [f"call_{number}" for number in range(len(calls))]
    for end in range(len(text) + 1):
        assert said.startswith(before_calls(text[:end])), (
            "a stream had shown what is no text in the end"
        )
