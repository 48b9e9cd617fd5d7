"""The form of a reply, enforced while a model of this process writes, even against the model's preference."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from asking import ask_tiny, reply_of, streamed
from listed import Listed, ids

from rallebench.core.entries import Combination
from rallebench.core.errors import BackendError, UsageError
from rallebench.core.structured import check_schema
from rallebench.core.types import Generate, Reply, ToolSpec
from rallebench.retrievers.composites import check_settings
from rallebench.retrievers.rerank_llm import list_form, parse_order
from rallebench.workspace.opening import open_combination

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "age": {"type": "integer", "minimum": 1, "maximum": 120},
        "alive": {"type": "boolean"},
    },
    "required": ["name", "age", "alive"],
    "additionalProperties": False,
}
QUESTIONS = ("who won ?", "When was Ada Byron lost in Paris ?", "a", "the river of the old city")
SEARCH = ToolSpec(
    "search",
    "the river",
    {
        "type": "object",
        "properties": {"query": {"type": "string", "maxLength": 20}},
        "required": ["query"],
    },
)
OPEN = ToolSpec("open", "a page", {})
FORMS: dict[str, tuple[dict[str, Any], str]] = {
    "choice": ({"type": "choice", "choices": ["yes", "no, it is not"]}, "yes|no, it is not"),
    "regex": (
        {"type": "regex", "regex": " ?(Search|Finish)\\[[a-zé ]{1,20}\\]"},
        " ?(Search|Finish)\\[[a-zé ]{1,20}\\]",
    ),
    "grammar": (
        {
            "type": "grammar",
            "grammar": 'start: "Thought: " /[^\\n]{1,30}/ "\\nAction: " ("a" | "b")',
        },
        "Thought: [^\n]{1,30}\nAction: [ab]",
    ),
}


def of_schema(schema: Any) -> dict[str, Any]:
    named = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
    return {"response_format": named}


def ask(text: str = QUESTIONS[0], **fields: Any) -> Generate:
    return ask_tiny(text, **{"max_tokens": 200, **fields})


@pytest.mark.parametrize("which", ["bytes", "bytes, t5"])
@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({}, id="greedy"),
        pytest.param({"temperature": 1.0, "seed": 3}, id="sampled", marks=pytest.mark.slow),
    ],
)
def test_a_random_model_writes_json_of_a_schema(tiny: Any, which: str, settings: Any) -> None:
    llm = tiny(which)
    requests = [ask(text, options=of_schema(PERSON), **settings) for text in QUESTIONS]
    replies = llm.generate(requests)
    for request, reply in zip(requests, replies, strict=True):
        assert check_schema(json.loads(reply.text), PERSON) == ""
        assert (reply.finish_reason, reply.note) == ("stop", "")
        assert reply_of(llm, request).text == reply.text
        pieces, last = streamed(llm, request)
        assert "".join(pieces) == last.text == reply.text
        assert len(pieces) > 5, "a forced reply need not be read before it is shown"


@pytest.mark.parametrize("kind", FORMS)
def test_a_random_model_writes_every_other_form(tiny: Any, kind: str) -> None:
    form, pattern = FORMS[kind]
    reply = reply_of(tiny("bytes"), ask(options={"response_format": form}))
    assert re.fullmatch(pattern, reply.text), reply.text
    assert (reply.finish_reason, reply.note) == ("stop", "")


def test_a_re_ranker_reads_every_reply_of_a_random_model_unless_forms_are_off(tiny: Any) -> None:
    listed = Listed(*((letter, 1.0) for letter in "abc"))
    entry = Combination(kind="llm-rerank", of=["listed"], settings={"llm": "m", "way": "pointwise"})
    entry = entry.model_copy(update={"settings": check_settings("ranked", entry)})
    unread = {}
    for forced in (True, False):
        llm = tiny("bytes", forced_formats=forced)
        ranked = open_combination("ranked", entry, [listed], llm)
        assert sorted(ids(ranked.search(["Who won?"], 3)[0])) == [*"abc"] and ranked.requests == 3
        unread[forced] = ranked.unread
    assert unread == {True: 0, False: 3}


@pytest.mark.parametrize("count", [2, 20, 200])
def test_a_random_model_writes_an_order_of_passages(tiny: Any, count: int) -> None:
    reply = reply_of(tiny("bytes"), ask(options=list_form(count)))
    number = r"\[[1-9][0-9]{0,2}\]"
    assert re.fullmatch(rf"{number}( > {number})*", reply.text) or reply.finish_reason == "length"
    assert parse_order(reply.text, count) is not None and reply.text[0] == "["


def test_a_forced_form_leaves_the_prompt_as_it_is(tiny: Any) -> None:
    free, forced = tiny("bytes").generate([ask(), ask(options=of_schema(PERSON))])
    assert free.prompt_tokens == forced.prompt_tokens


def test_rows_of_a_batch_have_forms_of_their_own_or_none(tiny: Any) -> None:
    forms = [*({"response_format": form} for form, _ in FORMS.values()), of_schema(PERSON), {}]
    requests = [ask(options=options) for options in forms]
    alone = [reply_of(tiny("bytes"), request) for request in requests]
    together = tiny("bytes").generate(requests)
    assert [reply.text for reply in together] == [reply.text for reply in alone]
    assert together[-1].text == reply_of(tiny("bytes"), ask()).text


def test_a_stop_string_still_ends_a_forced_reply_and_what_it_lacks_is_noted(tiny: Any) -> None:
    request = ask(options=of_schema(PERSON), stop=('"age"',))
    reply = reply_of(tiny("bytes"), request)
    assert reply.text.startswith('{"name": "') and '"age"' not in reply.text
    assert (reply.finish_reason, reply.note) == (
        "stop",
        "The answer does not fit the schema: the answer holds no JSON.",
    )
    pieces, last = streamed(tiny("bytes"), request)
    assert "".join(pieces) == last.text == reply.text


def test_a_row_that_ended_at_its_stop_string_does_not_disturb_the_others(tiny: Any) -> None:
    requests = [
        ask(options=of_schema(PERSON), stop=('"',)),
        ask(QUESTIONS[1], options=of_schema(PERSON)),
    ]
    cut, whole = tiny("bytes").generate(requests)
    assert cut.text == "{" and check_schema(json.loads(whole.text), PERSON) == ""


def test_a_reply_that_reaches_max_tokens_in_the_middle_says_so_in_one_sentence(tiny: Any) -> None:
    reply = reply_of(tiny("bytes"), ask(options=of_schema(PERSON), max_tokens=15))
    assert (reply.finish_reason, reply.completion_tokens) == ("length", 15)
    assert reply.text.startswith('{"name": "')
    assert reply.note == "The answer reached max_tokens before its JSON schema was complete."


def test_log_probabilities_are_those_of_the_model_without_the_form(tiny: Any) -> None:
    forced = {"response_format": {"type": "regex", "regex": "aaaa"}, "logprobs": True}
    reply = reply_of(tiny("bytes"), ask(options=forced))
    assert reply.text == "aaaa" and len(reply.logprobs) == reply.completion_tokens
    assert min(reply.logprobs) < -1, "a random model is not sure of what it was forced to write"


@pytest.mark.parametrize(
    ("form", "words"),
    [
        (of_schema({"type": "integer", "minimum": 2, "maximum": 1}), "fits no text"),
        (of_schema({"type": "texts"}), "not a JSON schema"),
        ({"response_format": {"type": "regex", "regex": "(a"}}, "cannot be read"),
        ({"response_format": {"type": "regex", "regex": "[^\\s\\S]b"}}, "no text has it"),
        ({"tool_choice": "required"}, "tool_choice must be"),
    ],
)
def test_a_form_that_nothing_fits_fails_alone(tiny: Any, form: dict[str, Any], words: str) -> None:
    failed, answered = tiny("bytes").generate([ask(options=form), ask(max_tokens=3)])
    assert isinstance(failed, (UsageError, BackendError)) and words in str(failed)
    assert "\n" not in str(failed) and isinstance(answered, Reply)


def test_a_keyword_that_cannot_be_enforced_is_checked_afterwards(tiny: Any) -> None:
    llm, either = tiny("bytes"), {"enum": ["a", "b"]}
    text = reply_of(llm, ask(options=of_schema(either))).text
    assert text in ('"a"', '"b"')
    other = {**either, "not": {"const": text.strip('"')}}
    reply = reply_of(llm, ask(options=of_schema(other)))
    assert reply.text == text and reply.note.startswith("The answer does not fit the schema")


def test_a_schema_that_cannot_be_enforced_at_all_is_put_into_the_prompt(tiny: Any) -> None:
    reply = reply_of(tiny("bytes"), ask(options=of_schema({"type": "string", "pattern": "(?=a)"})))
    assert reply.note.startswith("The JSON schema was added to the prompt.")


# ── the fallback ─────────────────────────────────────────────────────────────


def test_the_setting_turns_it_off_and_changes_the_fingerprint(tiny: Any) -> None:
    off = tiny("bytes", forced_formats=False)
    assert tiny("bytes").forces_formats and not off.forces_formats
    assert off.fingerprint != tiny("bytes").fingerprint
    reply = reply_of(off, ask(options=of_schema(PERSON), max_tokens=12))
    assert reply.note.startswith(
        "The JSON schema was added to the prompt. The answer does not fit the schema"
    )
    assert reply.prompt_tokens > reply_of(off, ask(max_tokens=1)).prompt_tokens + 100
    choice = reply_of(off, ask(options={"response_format": FORMS["choice"][0]}))
    assert choice.note == (
        "The list of choices was added to the prompt. The answer is none of the choices."
    )


def test_a_tokenizer_that_cannot_be_read_leaves_the_prompt_and_the_check(tiny: Any) -> None:
    assert not tiny("llama").forces_formats
    reply = reply_of(
        tiny("llama"), ask_tiny("who ?", options={"response_format": {"type": "json_object"}})
    )
    assert reply.note.startswith(
        "The JSON schema was added to the prompt. It could not be enforced (can't determine decoder"
    )


# ── calls ────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("which", ["bytes, calls", "bytes, marked calls"])
def test_a_random_model_calls_a_tool_where_it_must(tiny: Any, which: str) -> None:
    required = {"tool_choice": "required"}
    request = ask(tools=(SEARCH, OPEN), options=required)
    reply = reply_of(tiny(which), request)
    (call,) = reply.tool_calls
    schema = {"search": SEARCH, "open": OPEN}[call.name].parameters
    assert check_schema(json.loads(call.arguments), schema) == ""
    assert (reply.text, reply.finish_reason, reply.note) == ("", "tool_calls", "")
    pieces, last = streamed(tiny(which), request)
    assert "".join(pieces) == "" and last.tool_calls == reply.tool_calls
    named = {"tool_choice": {"type": "function", "function": {"name": "search"}}}
    assert (
        reply_of(tiny(which), ask(tools=(OPEN, SEARCH), options=named)).tool_calls[0].name
        == "search"
    )


def test_a_call_that_reaches_max_tokens_says_so(tiny: Any) -> None:
    named = {"tool_choice": {"type": "function", "function": {"name": "search"}}}
    reply = reply_of(tiny("bytes, calls"), ask(tools=(SEARCH,), options=named, max_tokens=9))
    assert reply.tool_calls == ()
    assert reply.note == "The answer reached max_tokens before its call was complete."


def test_a_model_that_may_call_or_not_is_free(tiny: Any) -> None:
    free, automatic = tiny("bytes, calls").generate(
        [
            ask(tools=(SEARCH,), options=options, max_tokens=8)
            for options in ({}, {"tool_choice": "auto"})
        ]
    )
    assert free.text == automatic.text and not free.text.startswith("{")


def test_calls_that_must_not_be_made_are_text(tiny: Any) -> None:
    none = {"tool_choice": "none"}
    reply = reply_of(tiny("plain call"), ask(tools=(SEARCH,), options=none))
    assert reply.tool_calls == () and "search" in reply.text


@pytest.mark.parametrize("choice", ["always", {"type": "function"}, {"function": {"name": "x"}}])
def test_a_choice_of_no_offered_tool_is_refused(tiny: Any, choice: Any) -> None:
    refused = reply_of(tiny("bytes, calls"), ask(tools=(SEARCH,), options={"tool_choice": choice}))
    assert isinstance(refused, UsageError) and "tool_choice must be" in str(refused)
