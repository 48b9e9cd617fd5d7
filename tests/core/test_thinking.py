"""Thoughts are separated from an answer, however its stream is cut into pieces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rallebench.core.errors import BackendError
from rallebench.core.formats import CHOICE, SCHEMA, Format
from rallebench.core.thinking import parted_stream, split_thoughts
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
    "[THINK]Rome?[/THINK]Rome": ("Rome", "Rome?"),
    "<thinking>\nRome?\n</thinking>\n\nRome": ("Rome", "Rome?"),
    "<thought>Rome?</thought>Rome": ("Rome", "Rome?"),
    "<Thoughts>Rome?</Thoughts> Rome": ("Rome", "Rome?"),
    "<reasoning>Rome?</reasoning>\nRome": ("Rome", "Rome?"),
    "<seed:think>Rome?</seed:think>Rome": ("Rome", "Rome?"),
    "◁think▷Rome?◁/think▷Rome": ("Rome", "Rome?"),
    "<|begin_of_thought|>Rome?<|end_of_thought|>\n<|begin_of_solution|>Rome<|end_of_solution|>": (
        "Rome",
        "Rome?",
    ),
    "<|START_THINKING|>Rome?<|END_THINKING|><|START_RESPONSE|>Rome<|END_RESPONSE|>": (
        "Rome",
        "Rome?",
    ),
    "<|channel|>analysis<|message|>Rome?<|end|><|start|>assistant<|channel|>final<|message|>Rome": (
        "Rome",
        "Rome?",
    ),
    "<|start|>assistant<|channel|>analysis<|message|>Rome?<|end|>\n<|start|>assistant<|channel|>final "
    '<|constrain|>json<|message|>{"a": 1}<|return|>': ('{"a": 1}', "Rome?"),
    "<|channel|>final<|message|>Rome<|return|>": ("Rome", ""),
    "analysisRome or Milan?assistantfinalRome": ("Rome", "Rome or Milan?"),
    "<think>Rome?</think>\n<think>Milan?</think>\nRome": ("Rome", "Rome?\nMilan?"),
    "<think>Rome?</think>Rome <reasoning>It is so.</reasoning>": ("Rome", "Rome?\n\nIt is so."),
    "Rome\n<reasoning>It is so.</reasoning>\n": ("Rome", "It is so."),
    "analysis of Rome": ("analysis of Rome", ""),
    "A [think] and a </p> and <|x|>.": ("A [think] and a </p> and <|x|>.", ""),
    "<|im_sep|>": ("<|im_sep|>", ""),
}
"""Text of a model → its answer and its thoughts."""


@pytest.mark.parametrize("text", ANSWERS)
def test_the_answer_stands_behind_the_thoughts_and_parting_is_idempotent(text: str) -> None:
    reply = split_thoughts(Reply(text), "m")
    assert isinstance(reply, Reply) and (reply.text, reply.thinking) == ANSWERS[text]
    assert split_thoughts(reply, "m") == reply


@pytest.mark.parametrize(
    "reply",
    [
        Reply("<think>Rome? Or"),
        Reply("<think>Rome?</think>\n "),
        Reply("Rome?</think>"),
        Reply("<think></think>"),
        Reply("[THINK]Rome? Or"),
        Reply("<thought>Rome? Or"),
        Reply("<|channel|>analysis<|message|>Rome? Or"),
        Reply("<|channel|>analysis<|message|>Rome?<|end|><|start|>assistant"),
        Reply(
            "<|channel|>analysis<|message|>Rome?<|end|><|start|>assistant<|channel|>final<|message|><|return|>"
        ),
        Reply("analysisRome? Or"),
        Reply("<think>Rome?</think>\n<reasoning>Milan?"),
        Reply("", thinking="Rome?"),
        Reply("\n", thinking="(9 tokens, which the server does not show)"),
    ],
)
def test_thoughts_alone_are_an_error_that_names_the_model_and_the_mend(reply: Reply) -> None:
    error = split_thoughts(reply, "m")
    assert isinstance(error, BackendError)
    assert str(error).startswith("'m' only thought and gave no answer; raise max_tokens, or turn")


def test_a_call_is_an_answer_and_thoughts_from_both_places_are_kept() -> None:
    call = split_thoughts(Reply("<think>Search.</think>", tool_calls=(CALL,)), "m")
    assert call == Reply("", tool_calls=(CALL,), thinking="Search.")
    both = split_thoughts(Reply("<think>Or Milan?</think>Rome", thinking="Rome?"), "m")
    assert both == Reply("Rome", thinking="Rome?\n\nOr Milan?")
    failed = BackendError("No.")
    assert split_thoughts(failed, "m") is failed


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
@pytest.mark.parametrize("text", [text for text in ANSWERS if "<think>c" not in text])
def test_a_stream_hands_out_the_answer_alone_however_it_is_cut(text: str, size: int) -> None:
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    *shown, last = parted_stream(iter([*pieces, Reply(text)]))
    assert last == Reply(text) and len(shown) >= len(pieces)
    # Thoughts without an opening mark are known only at their end, after they were shown.
    unmarked = "</think>" in text and "<think>" not in text
    assert "".join(map(str, shown)).rstrip() == (text if unmarked else ANSWERS[text][0]).rstrip()


FORMS = [
    *((f"<{tag}>", f"</{tag}>") for tag in ("think", "thinking", "thought", "reasoning")),
    ("[THINK]", "[/THINK]"),
    ("<|START_THINKING|>", "<|END_THINKING|><|START_RESPONSE|>"),
    (
        "<|channel|>analysis<|message|>",
        "<|end|><|start|>assistant<|channel|>final<|message|>",
    ),
]
WORDS = st.lists(
    st.sampled_from(["Rome", "[1]", "<b>", "a < b", "|", "think", "\n", "北京"]), min_size=1
)
LINE = WORDS.map(" ".join).map(str.strip).filter(bool)


@given(st.sampled_from(FORMS), LINE, LINE, st.lists(st.integers(1, 80), max_size=8))
def test_thoughts_are_parted_in_every_form_from_whole_replies_and_from_pieces(
    form: tuple[str, str], thoughts: str, answer: str, cuts: list[int]
) -> None:
    text = f"{form[0]}{thoughts}{form[1]}{answer}"
    assert split_thoughts(Reply(text), "m") == Reply(answer, thinking=thoughts)
    ends = [*sorted(cut for cut in cuts if cut < len(text)), len(text)]
    pieces = [text[start:end] for start, end in zip([0, *ends], ends)]
    *shown, _ = parted_stream(iter([*pieces, Reply(text)]))
    assert "".join(map(str, shown)) == answer


@pytest.mark.parametrize(
    "text",
    ["<think>" * 3000, "x<think></think>" * 2000, "<|channel|>" * 3000, "[THINK]" + "a " * 20_000],
)
def test_a_long_reply_of_marks_is_parted_and_streamed(text: str) -> None:
    reply = split_thoughts(Reply(text), "m")
    shown = "".join(
        map(
            str,
            list(parted_stream(iter([*map("".join, zip(*[iter(text)] * 4)), Reply(text)])))[:-1],
        )
    )
    assert isinstance(reply, BackendError) is (not shown.strip())


def test_a_form_is_looked_for_behind_the_thoughts_which_stay() -> None:
    thoughts = '<think>{"a": "no"}, yes</think>'
    schema = Format(SCHEMA, {"type": "object", "properties": {"a": {"type": "integer"}}})
    assert schema.read(thoughts + 'So: {"a": 1}')[0] == thoughts + '{"a": 1}'
    assert Format(CHOICE, ("yes", "no")).read(f"{thoughts}\nno\n") == (f"{thoughts}no", "")
    assert Format(CHOICE, ("yes", "no")).read(f"{thoughts}maybe")[1]
