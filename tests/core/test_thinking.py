"""Thoughts are parted from an answer whatever the pieces of its stream are."""

from __future__ import annotations

import pytest

from rallebench.core.errors import BackendError
from rallebench.core.formats import CHOICE, SCHEMA, Format
from rallebench.core.thinking import parted, parted_stream
from rallebench.core.types import Reply, ToolCall

CALL = ToolCall("c", "search", "{}")

ANSWERS = {
    "Rome": ("Rome", ""),
    "": ("", ""),
    " Rome\n": (" Rome\n", ""),
    "<think>Rome?</think>Rome": ("Rome", "Rome?"),
    "\n<think>\nRome?\n</think>\n\nRome ": ("Rome ", "Rome?"),
    "<think>\n\n</think>\n\nRome": ("Rome", ""),
    "Rome? Or Milan?</think>\nRome": ("Rome", "Rome? Or Milan?"),
    "<think>a</think>b<think>c</think>Rome": ("Rome", "abc"),
    "The tag <think> begins thoughts.": ("The tag <think> begins thoughts.", ""),
    "<thinker>": ("<thinker>", ""),
}
"""What a model wrote → its answer and its thoughts."""


@pytest.mark.parametrize("text", ANSWERS)
def test_the_answer_stands_behind_the_thoughts_and_parting_is_idempotent(text: str) -> None:
    reply = parted(Reply(text), "m")
    assert isinstance(reply, Reply) and (reply.text, reply.thinking) == ANSWERS[text]
    assert parted(reply, "m") == reply


@pytest.mark.parametrize(
    "reply",
    [
        Reply("<think>Rome? Or"),
        Reply("<think>Rome?</think>\n "),
        Reply("Rome?</think>"),
        Reply("<think></think>"),
        Reply("", thinking="Rome?"),
        Reply("\n", thinking="(9 tokens, which the server does not show)"),
    ],
)
def test_thoughts_alone_are_an_error_that_names_the_model_and_the_mend(reply: Reply) -> None:
    error = parted(reply, "m")
    assert isinstance(error, BackendError)
    assert str(error).startswith("'m' only thought and gave no answer; raise max_tokens, or turn")


def test_a_call_is_an_answer_and_thoughts_from_both_places_are_kept() -> None:
    call = parted(Reply("<think>Search.</think>", tool_calls=(CALL,)), "m")
    assert call == Reply("", tool_calls=(CALL,), thinking="Search.")
    both = parted(Reply("<think>Or Milan?</think>Rome", thinking="Rome?"), "m")
    assert both == Reply("Rome", thinking="Rome?\n\nOr Milan?")
    failed = BackendError("No.")
    assert parted(failed, "m") is failed


@pytest.mark.parametrize("size", [1, 3, 100])
@pytest.mark.parametrize("text", [text for text in ANSWERS if "<think>c" not in text])
def test_a_stream_hands_out_the_answer_alone_however_it_is_cut(text: str, size: int) -> None:
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    *shown, last = parted_stream(iter([*pieces, Reply(text)]))
    assert last == Reply(text) and len(shown) >= len(pieces)
    # Only the end of thoughts that no mark began tells them, after they were shown.
    unmarked = "</think>" in text and "<think>" not in text
    assert "".join(map(str, shown)) == (text if unmarked else ANSWERS[text][0])


def test_a_form_is_looked_for_behind_the_thoughts_which_stay() -> None:
    thoughts = '<think>{"a": "no"}, yes</think>'
    schema = Format(SCHEMA, {"type": "object", "properties": {"a": {"type": "integer"}}})
    assert schema.read(thoughts + 'So: {"a": 1}')[0] == thoughts + '{"a": 1}'
    assert Format(CHOICE, ("yes", "no")).read(f"{thoughts}\nno\n") == (f"{thoughts}no", "")
    assert Format(CHOICE, ("yes", "no")).read(f"{thoughts}maybe")[1]
