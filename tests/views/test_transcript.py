"""An episode's steps as thoughts, actions and observations, and edited actions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rallebench.core.errors import UsageError
from rallebench.core.types import Generate, Gold, Message, Note, Reply, Retrieve, Step, ToolCall
from rallebench.gui.places._steps import output
from rallebench.tracking.traces import span_content
from rallebench.views.answers import show_step
from rallebench.views.transcript import (
    actions,
    before,
    beginning,
    edit_reply,
    edit_text,
    pieces,
)
from rallebench.workflows.edits import EDITED, was_edited


def model_step(prompt: str, text: str, *calls: ToolCall) -> Step:
    return Step(Generate("llm", (Message("user", prompt),)), Reply(text, tool_calls=calls))


CALL = model_step("Question: Who?", "I search.", ToolCall("c1", "Search", '{"entity": "Ada"}'))
STEPS = (
    model_step("…\nThought 1:", "I search."),
    model_step("…\nAction 1:", "Search[Ada]"),
    Step(Note("Observation 1: A countess."), Reply("")),
)


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (model_step("…\nThought 2:", " Hm. "), [("thought", "Hm.", "2")]),
        (model_step("…\nAction 12:", "Search[Ada]"), [("action", "Search[Ada]", "12")]),
        (
            model_step("…\nThought 1:", "Hm.\nAction 1: Search[Ada]"),
            [("thought", "Hm.", "1"), ("action", "Search[Ada]", "1")],
        ),
        (model_step("…\nPlan:", "1. Search."), [("plan", "1. Search.", "")]),
        (CALL, [("thought", "I search.", ""), ("action", 'Search({"entity": "Ada"})', "")]),
        (
            model_step("?", 'Thought: Hm.\nAction: Search\nAction Input: {"entity": "Ada"}'),
            [("thought", "Hm.", ""), ("action", 'Search({"entity": "Ada"})', "")],
        ),
        (model_step("?", "So it is 1815."), [("reply", "So it is 1815.", "")]),
        (
            Step(Note("Observation 3: A countess."), Reply("")),
            [("observation", "A countess.", "3")],
        ),
        (Step(Note('tree {"number": 1}'), Reply("")), []),
        (Step(Retrieve("bm25", "Ada"), Reply("")), [("search", "bm25: Ada", "")]),
    ],
)
def test_a_step_is_told_in_the_agents_own_words(
    step: Step, expected: list[tuple[str, str, str]]
) -> None:
    assert [(p.kind, p.text, p.number) for p in pieces([step])] == expected


def test_what_a_model_thought_stands_before_what_it_did() -> None:
    thinking = replace(CALL, reply=replace(CALL.reply, thinking="Who was she?"))
    kinds = [("thinking", "Who was she?"), *((piece.kind, piece.text) for piece in pieces([CALL]))]
    assert [(piece.kind, piece.text) for piece in pieces([thinking])] == kinds
    assert (
        show_step(thinking).to_json()["thinking"] == "Who was she?"
        and "thinking" not in show_step(CALL).to_json()
    )
    assert span_content(thinking).attributes["thinking"] == "Who was she?"
    assert "Who was she?" in output(thinking, Gold(), None)


def test_what_a_model_is_writing_is_told_as_far_as_it_has_come() -> None:
    (piece,) = beginning(STEPS[1].request, "Search[A")
    assert (piece.kind, piece.text, piece.number) == ("action", "Search[A", "1")


def test_only_what_the_model_chose_can_be_edited() -> None:
    assert actions(STEPS) == {1: "Search[Ada]"}
    with pytest.raises(UsageError, match="no action to go on from"):
        before(STEPS, 2, "Search[Byron]")


def test_an_edited_action_keeps_what_was_before_it_and_says_that_it_was_edited() -> None:
    kept = before(STEPS, 1, "Search[Byron]")
    assert kept[0] == STEPS[0] and kept[1].reply.text == "Search[Byron]" and len(kept) == 2
    assert was_edited(kept) and not was_edited(before(STEPS, 1, " Search[Ada] "))


def test_a_call_is_edited_as_a_call() -> None:
    assert edit_text(CALL.reply) == 'Search({"entity": "Ada"})'
    changed = edit_reply(CALL.reply, 'Lookup({"keyword": "1815"})')
    assert (
        changed.tool_calls == (ToolCall("c1", "Lookup", '{"keyword": "1815"}'),)
        and changed.note == EDITED
    )
    assert edit_reply(CALL.reply, "Finish()").tool_calls[0].arguments == "{}"


@pytest.mark.parametrize(
    ("text", "sentence"), [("", "is empty"), ("look it up", "is not a call; write it as Name")]
)
def test_what_is_no_action_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        edit_reply(CALL.reply, text)
