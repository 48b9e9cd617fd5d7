"""Actions are recognised in the ways that models write them, and nothing else is taken for an action."""

from __future__ import annotations

import pytest
from small_world import TITAN, World, acting, ended, observations, play, prompts

from rallebench.workflows._actions import parse_action

NOTHING = "Could not find that page, please try again."
VERBS = ("Search", "Lookup", "Finish")
WAYS = [
    "Search(Titan)",
    'Search("Titan")',
    "Search{Titan}",
    "Search<Titan>",
    "Search 「Titan」",
    "Search《Titan》",
    'Search "Titan"',
    'Search[query="Titan"]',
    "Search\\[Titan\\]",
    "Search: Titan",
    "Search：Titan",
    'Search: "Titan"',
    "Search → Titan",
    "Search -> Titan",
    "Search = Titan",
    "Ｓｅａｒｃｈ［Titan］",
    "\ufeffSearch[Titan]",
    "Search\u200b[Titan]",
    "~~~\nSearch[Titan]\n~~~",
    "```text\nSearch[Titan]\n```",
    "+ Search[Titan]",
    "→ Search[Titan]",
    "✅ Search[Titan]",
    "(1) Search[Titan]",
    "a) Search[Titan]",
    "[Search[Titan]]",
    '"Search[Titan]"',
    "$\\boxed{Search[Titan]}$",
    "Action #1: Search[Titan]",
    "Action (1): Search[Titan]",
    "Action 1. Search[Titan]",
    "Action 1 - Search[Titan]",
    "**Action** 1: Search[Titan]",
    "**Action 1**: Search[Titan]",
    "### Action 1: Search[Titan]",
    "Next Action: Search[Titan]",
    "Step 1: Search[Titan]",
    "Tool: Search[Titan]",
    "行动：Search[Titan]",
    "动作 1：Search【Titan】",
    "Thought: I look for it. Action: Search[Titan]",
    "Thought 1: I look for it.\nAction 1: Search[Titan]",
    "思考：先查。\n行动：Search[Titan]",
    "I will Search[Titan]",
    "Let me use Search[Titan] first.",
    "Tool: Search\nTool Input: Titan",
    "Action: Search\nInput: Titan",
    'Action: Search\nArguments: {"entity": "Titan"}',
    "Action: Search\n\nAction Input:\nTitan",
    "Action: Search[]\nAction Input: [Titan]",
    "Action: `Search`\n**Action Input**: `Titan`",
    '{"action": "Search", "action_input": "Titan"}',
    '```json\n{"action": "Search", "action_input": {"entity": "Titan"}}\n```',
    '{"name": "search", "arguments": "{\\"entity\\": \\"Titan\\"}"}',
    '[{"function": {"name": "Search", "parameters": {"entity": "Titan"}}}]',
    '{"Search": "Titan"}',
    '<tool_call>{"name": "Search", "arguments": {"entity": "Titan"}}</tool_call>',
    "<action>Search[Titan]</action>",
    "<Search>Titan</Search>",
    "<b>Search[Titan]</b>",
    "functions.Search[Titan]",
]


@pytest.mark.parametrize("action", WAYS)
def test_a_known_verb_is_read_in_any_form(action: str) -> None:
    assert parse_action(action, "[]", verbs=VERBS) == ("Search", "Titan")


@pytest.mark.parametrize(
    "action",
    [
        "Search",
        "Search[]",
        "Search[Titan",
        "Search Titan",
        "I know it.",
        "The search (for Titan) is over.",
        "Note: it is Saturn.",
        "Dance: Titan",
        '{"action": "Dance", "action_input": "Titan"}',
        '{"action": "Search"}',
        '{"action": "Search", "action_input": {"a": "Titan", "b": 1}}',
        "<Search></Search>",
        "Action Input: Titan",
        "Research: Titan",
    ],
)
def test_what_names_no_verb_with_an_argument_is_no_action(action: str) -> None:
    verb, argument = parse_action(action, "[]", verbs=VERBS)
    assert not argument or verb not in VERBS


def test_arguments_of_json_keep_their_names_between_round_brackets() -> None:
    call = '{"name": "search", "arguments": {"name": "Ada", "year": 1815}}'
    assert parse_action(call, "()", verbs=VERBS) == ("Search", 'name="Ada", year=1815')
    answer = '{"name": "Finish", "arguments": {"answer": "Ada"}}'
    assert parse_action(answer, "()", verbs=VERBS) == ("Finish", "Ada")
    assert ended("react", acting(answer), world=World("()")) == ("Ada", "answered")


@pytest.mark.parametrize("first", ["Search", " **Search**", "Action: Search", "`search`"])
@pytest.mark.parametrize(
    "second", [" Titan", " [Titan]", ' "Titan"', ' {"entity": "Titan"}', " Search[Titan]"]
)
def test_an_input_behind_the_stop_at_the_end_of_the_line_is_asked_for(
    first: str, second: str
) -> None:
    script = ["I look.", first, second, "I know.", "Finish", " Saturn"]
    episode, llm = play("react", script)
    assert episode.answer == "Saturn"
    assert observations(episode) == [TITAN.text, "Episode finished."]
    assert prompts(llm)[2].endswith(f"Action 1: {first.strip()}\nAction Input:")
    page = prompts(llm)[3]
    assert "Action 1: Search[Titan]\nObservation 1:" in page and "Action Input" not in page


def test_a_verb_whose_input_is_empty_searches_for_nothing() -> None:
    episode, _ = play("react", ["I look.", "Search", "", "I know.", "Finish[Saturn]"])
    assert observations(episode) == [NOTHING, "Episode finished."]


@pytest.mark.parametrize("first", ["```", "```json", "**Action:**", "Action:"])
def test_an_action_behind_a_fence_or_a_label_is_asked_for(first: str) -> None:
    episode, llm = play("react", ["I look.", first, "Search[Titan]", "I know.", "Finish[Saturn]"])
    assert observations(episode) == [TITAN.text, "Episode finished."]
    assert prompts(llm)[2].endswith(f"Action 1: {first}\n")


def test_compat_original_asks_for_no_further_line() -> None:
    script = ["I look.", "Search", "I know.", "Finish[Saturn]"]
    episode, _ = play("react", script, compat="original")
    assert observations(episode) == [NOTHING, "Episode finished."]


@pytest.mark.parametrize(
    "reply",
    [
        "I look.\nAction 1:\n```\nSearch[Titan]\n```",
        'I look.\nAction:\n```json\n{"action": "Search", "action_input": "Titan"}\n```',
        "I look.\n**Action #1:** Search(Titan)",
        "I look.\n行动：Search[Titan]",
        "I look.\nSearch[Titan]",
        "I look.\n- action: Search[Titan]",
        "I look.\nAction: Search\nInput: Titan",
    ],
)
def test_one_call_finds_the_action_in_any_form_below_the_thought(reply: str) -> None:
    episode, llm = play("react", [reply, "I know.\nAction 2: Finish[Saturn]"], one_call=True)
    assert (episode.answer, observations(episode)[0]) == ("Saturn", TITAN.text)
    assert "Thought 1: I look.\nAction 1: Search" in prompts(llm)[1]


def test_an_action_that_a_thought_only_speaks_of_is_not_the_action() -> None:
    reply = "The best action: open a page, not Finish.\nAction 1: Search[Titan]"
    episode, _ = play("react", [reply, "I know.\nAction 2: Finish[Saturn]"], one_call=True)
    assert observations(episode) == [TITAN.text, "Episode finished."]
