"""Answers in the form of a JSON schema, from servers with and without support for schemas."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from asking import ask, reply_of
from loopback import Behaviour, Handler, Loopback, answer, fail, good_stream

from rallebench.core.errors import BackendError, UsageError
from rallebench.core.types import Reply

SCHEMA = {"type": "object", "properties": {"year": {"type": "integer"}}, "required": ["year"]}
FORMAT = {"type": "json_schema", "json_schema": {"name": "when", "schema": SCHEMA}}
WHEN = ask("When?", options={"response_format": FORMAT})
GOOD = '{"year": 1815}'
REFUSED = (
    "The server takes no response_format (400: unknown field); the schema was put into the prompt."
)

IGNORED = "The server ignores response_format; the schema was put into the prompt."

Serve = Callable[..., tuple[Loopback, Any]]


def one(llm: Any, form: Any = FORMAT) -> Any:
    return reply_of(llm, ask("When?", options={"response_format": form}))


def refuse_formats(handler: Handler) -> None:
    (fail(400, "unknown field") if "response_format" in handler.body else answer(GOOD))(handler)


def test_the_form_is_asked_of_the_server_and_an_answer_in_it_stays_as_is(serve: Serve) -> None:
    server, llm = serve(answer('{ "year":1815 }'))
    assert one(llm) == Reply('{ "year":1815 }', prompt_tokens=7, completion_tokens=3)
    assert server.bodies[0]["response_format"] == FORMAT


def test_a_server_that_refuses_the_form_is_asked_in_the_prompt_from_then_on(serve: Serve) -> None:
    server, llm = serve(refuse_formats, max_retries=0)
    first, second = one(llm), one(llm)
    assert (first.text, first.note) == (second.text, second.note) == (GOOD, REFUSED)
    assert ["response_format" in body for body in server.bodies] == [True, False, False]
    asked = server.bodies[1]["messages"][-1]["content"]
    assert asked.startswith("When?\n\nAnswer with JSON alone")
    assert json.dumps(SCHEMA) in asked


def test_a_request_refused_without_the_form_too_teaches_nothing(serve: Serve) -> None:
    server, llm = serve(fail(400, "no such user"))
    assert "no such user" in str(one(llm))
    assert isinstance(one(llm), BackendError)
    assert ["response_format" in body for body in server.bodies] == [True, False, True, False]


NO_FIT = f"{IGNORED} The answer does not fit the schema: "


@pytest.mark.parametrize(
    ("said", "text", "note"),
    [
        (f"Sure!\n```json\n{GOOD}\n```\nAnything else?", GOOD, ""),
        (f"It was {GOOD}.", GOOD, ""),
        (f"<think>{{}}</think>{GOOD}", f"<think>{{}}</think>{GOOD}", ""),
        (f"<think>{{}}</think>It is {GOOD}.", f"<think>{{}}</think>{GOOD}", ""),
        (
            '{"year": "1815"}',
            '{"year": "1815"}',
            f"{NO_FIT}at $.year: '1815' is not of type 'integer'.",
        ),
        ("In 1815.", "In 1815.", f"{NO_FIT}the answer holds no JSON."),
        ('{"year": 18', '{"year": 18', f"{NO_FIT}the answer holds no JSON."),
    ],
)
def test_of_a_server_that_ignores_the_form_the_json_alone_is_kept_or_the_note_says_what_is_wrong(
    serve: Serve, said: str, text: str, note: str
) -> None:
    _, llm = serve(answer(said))
    assert (one(llm).text, one(llm).note) == (text, note)


def ignore_formats(handler: Handler) -> None:
    in_prompt = "JSON schema" in handler.body["messages"][-1]["content"]
    answer(GOOD if in_prompt else "In 1815.")(handler)


def test_an_ignored_form_is_asked_for_in_the_prompt_from_then_on(serve: Serve) -> None:
    server, llm = serve(ignore_formats, max_retries=0)
    first, second = one(llm), one(llm)
    assert (first.text, first.note) == (second.text, second.note) == (GOOD, IGNORED)
    assert ["response_format" in body for body in server.bodies] == [True, False, False]
    assert (first.prompt_tokens, second.prompt_tokens) == (14, 7), "both tries count"
    assert "ignores response_format" in llm.about


@pytest.mark.parametrize(
    ("behaviour", "second"), [(refuse_formats, [True, False]), (ignore_formats, [False])]
)
def test_a_form_that_is_refused_says_nothing_about_another_and_one_that_is_ignored_all(
    serve: Serve, behaviour: Behaviour, second: list[bool]
) -> None:
    server, llm = serve(behaviour)
    one(llm), one(llm, {"type": "json_object"})
    assert ["response_format" in body for body in server.bodies] == [True, False, *second]


def test_an_answer_that_was_cut_off_is_no_sign_that_the_form_is_ignored(serve: Serve) -> None:
    server, llm = serve(answer('{"year": 18', finish_reason="length"))
    assert "does not fit" in one(llm).note and len(server.bodies) == 1


@pytest.mark.parametrize(
    "behaviour",
    [answer("I won't.", finish_reason="content_filter"), answer(None, refusal="No."), answer("")],
)
def test_a_withheld_answer_says_nothing_of_a_server(serve: Serve, behaviour: Behaviour) -> None:
    server, llm = serve(behaviour)
    one(llm)
    one(llm)
    assert len(server.bodies) == 2 and all("response_format" in body for body in server.bodies)


@pytest.mark.parametrize("stream", [False, True])
def test_if_the_second_request_fails_the_first_answer_is_kept(serve: Serve, stream: bool) -> None:
    _, llm = serve(answer("In 1815."), fail(400, "prompt too long"), max_retries=0)
    *pieces, reply = llm.stream(WHEN) if stream else [one(llm)]
    assert (reply.text, pieces) == ("In 1815.", ["In 1815."] if stream else [])
    assert "the answer holds no JSON" in reply.note


def ignore_formats_in_a_stream(handler: Handler) -> None:
    in_prompt = "JSON schema" in handler.body["messages"][-1]["content"]
    good_stream(GOOD if in_prompt else "In 1815.")(handler)


@pytest.mark.parametrize(
    ("behaviour", "note"),
    [
        (good_stream(f"Well: {GOOD}"), ""),
        (ignore_formats_in_a_stream, IGNORED),
        (refuse_formats, REFUSED),
    ],
)
def test_a_stream_hands_out_checked_answers(serve: Serve, behaviour: Behaviour, note: str) -> None:
    text, reply = serve(behaviour)[1].stream(WHEN)
    assert (text, reply.text, reply.note) == (GOOD, GOOD, note)


def test_plain_text_needs_no_check(serve: Serve) -> None:
    server, llm = serve(answer("In 1815."))
    assert one(llm, {"type": "text"}).note == ""
    assert server.bodies[0]["response_format"] == {"type": "text"}


@pytest.mark.parametrize(
    "wrong",
    [
        "json",
        {"type": "yaml"},
        {"type": "json_schema", "json_schema": {"name": "x"}},
        {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "int"}}},
    ],
)
def test_a_form_that_cannot_be_is_refused_before_anything_asks(serve: Serve, wrong: Any) -> None:
    server, llm = serve()
    assert isinstance(one(llm, wrong), UsageError)
    assert server.bodies == []
