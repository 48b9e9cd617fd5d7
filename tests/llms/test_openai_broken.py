"""Broken replies are failures in the server's words, whole and streamed, and are requested again where this may help."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import pytest
from asking import ask, failure, reply_of, stream_failure, streamed
from loopback import (
    DONE,
    Behaviour,
    Loopback,
    answer,
    chunk,
    completion,
    send_json,
    stream,
)

from rallebench.core.backends import Backends
from rallebench.core.live import Delta
from rallebench.core.thinking import split_thoughts
from rallebench.core.types import Episode, Generate, Message, Outcome
from rallebench.engine.record import reply_to_json
from rallebench.engine.reply_cache import ReplyCache
from rallebench.engine.single import run_one

Serve = Callable[..., tuple[Loopback, Any]]


def both(choice: dict[str, Any], **top: Any) -> tuple[Behaviour, Behaviour]:
    """A reply with this choice, whole and streamed; ``message``: its message, or the delta of its only piece."""
    message = choice.get("message", {"role": "assistant", "content": ""})
    rest = {name: value for name, value in choice.items() if name != "message"}
    return (
        send_json({"choices": [{"message": message, **rest}], **top}),
        stream([{"choices": [{"delta": message, **rest}], **top}, DONE]),
    )


def report(error: Any, **top: Any) -> tuple[Behaviour, Behaviour]:
    """An error at the top of the reply, and as a piece of a stream after a good beginning."""
    document = {"error": error, **top} if error else top
    return send_json(document), stream([chunk("", role="assistant"), document, DONE])


BUSY = {"code": 502, "message": "Upstream is down"}
WINDOW = "This model's maximum context length is 4096 tokens"
BROKEN: dict[str, tuple[tuple[Behaviour, Behaviour], str]] = {
    "an error of the choice": (both({"error": BUSY, "finish_reason": "error"}), "Upstream is down"),
    "a text as the choice's error": (both({"error": "lost its GPU"}), "lost its GPU"),
    "an error beside a text": (
        both({"message": {"content": "Ada"}, "error": BUSY, "finish_reason": "stop"}),
        "Upstream is down",
    ),
    "an error of the message": (both({"message": {"content": "", "error": BUSY}}), "502"),
    "an error at the top": (report({"message": "no room"}), "reported an error: no room"),
    "a text at the top": (report("no room"), "reported an error: no room"),
    "an error beside its message": (report(True, message="no room"), "no room"),
    "an object error": (report(None, object="error", message=WINDOW, code=400), WINDOW),
    "a type error": (report(None, type="error", message="no room"), "no room"),
    "a detail alone": (report(None, detail="no room"), "no room"),
    "finish_reason error": (both({"finish_reason": "error"}), "finish_reason 'error'"),
    "an error behind a text": (
        both({"message": {"content": "Ad"}, "finish_reason": "engine_error"}),
        "broke off its answer (finish_reason 'engine_error')",
    ),
    "an unknown reason": (both({"finish_reason": "whim"}), "gave no text and finish_reason 'whim'"),
    "no reason": (both({"finish_reason": None}), "gave no text and no finish_reason"),
    "a filter": (both({"finish_reason": "content_filter"}), "withheld its answer"),
    "calls without a call": (both({"finish_reason": "tool_calls"}), "announced a tool call"),
    "no room for a word": (both({"finish_reason": "length"}), "before it wrote anything"),
    "no message": (both({"message": {"role": "assistant"}, "finish_reason": "stop"}), "no message"),
    "nothing but null": (
        both({"message": {"content": None}, "finish_reason": "stop"}),
        "gave no text, no call and no refusal",
    ),
    "a part that is not text": (
        both({"message": {"content": [{"type": "image_url"}]}, "finish_reason": "stop"}),
        "gave no text, no call and no refusal",
    ),
    "a part that is an error": (
        both({"message": {"content": [{"type": "error", "message": "no room"}]}}),
        "no room",
    ),
    "a list of errors": (
        both({"finish_reason": "stop"}, errors=[{"message": "no room"}]),
        "no room",
    ),
    "a failed status": (
        both({"finish_reason": "stop"}, status="failed", reason="no room"),
        "no room",
    ),
    "no success": (both({"finish_reason": "stop"}, success=False, message="no room"), "no room"),
    "a status of its own": (
        both({"finish_reason": "stop"}, base_resp={"status_code": 1004, "status_msg": "no room"}),
        "no room",
    ),
    "the provider's reason": (
        both({"finish_reason": "stop", "native_finish_reason": "MALFORMED_FUNCTION_CALL"}),
        "native_finish_reason 'MALFORMED_FUNCTION_CALL'",
    ),
    "the provider's filter": (
        both({"finish_reason": "stop", "native_finish_reason": "SAFETY"}),
        "withheld its answer",
    ),
    "a reason that says nothing": (
        both({"finish_reason": "FINISH_REASON_UNSPECIFIED"}),
        "gave no text and finish_reason 'FINISH_REASON_UNSPECIFIED'",
    ),
    **{
        f"{reason} behind a text": (
            both({"message": {"content": "Ad"}, "finish_reason": reason}),
            f"broke off its answer (finish_reason {reason!r})",
        )
        for reason in (
            "preempted",
            "out_of_memory",
            "crashed",
            "internal",
            "terminated",
            "timed-out",
        )
    },
    "no choice": ((send_json({"choices": []}), stream([DONE])), "without any choice"),
    "no object": ((send_json(None), stream(["null", DONE])), "not an object"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_reply_is_a_failure_and_the_same_one_whole_and_streamed(
    serve: Serve, case: str
) -> None:
    (whole, pieces), words = BROKEN[case]
    message = failure(serve(whole, max_retries=0)[1])
    assert words in message
    streaming = stream_failure(serve(pieces, max_retries=0)[1])[1]
    assert words in streaming


def test_an_error_event_of_a_stream_is_quoted_in_json_and_in_words(serve: Serve) -> None:
    for data in ('{"message": "no room"}', '{"error": {"message": "no room"}}', "no room"):
        server = stream([f"\n\nevent: error\ndata: {data}"])
        assert "no room" in stream_failure(serve(server, max_retries=0)[1])[1]


def events_of(text: str) -> Behaviour:
    """A stream of exactly these bytes."""
    return lambda handler: handler.send(200, text.encode(), "text/event-stream")


@pytest.mark.parametrize(
    "line",
    ['{"error": {"message": "no room"}}', "error: no room", 'data: {"errors": ["no room"]}'],
)
def test_an_error_on_a_line_of_its_own_ends_a_stream_that_goes_on(serve: Serve, line: str) -> None:
    begun = f"data: {json.dumps(chunk('Ad'))}\n\n"
    for rest in ("", "data: [DONE]\n\n"):
        _, llm = serve(events_of(f"{begun}{line}\n\n{rest}"), max_retries=0)
        assert "no room" in stream_failure(llm)[1]
    empty = events_of(f"{begun}event: error\n\ndata: [DONE]\n\n")
    assert "reported an error" in stream_failure(serve(empty, max_retries=0)[1])[1]


@pytest.mark.parametrize("end", ["\n\n", "\r\n\r\n", "\r\r", "\n", "\r\n"])
def test_the_lines_of_a_stream_may_end_and_follow_each_other_in_any_way(
    serve: Serve, end: str
) -> None:
    lines = [": hello", "event: ping", "data: now"] if len(end.strip("\r")) > 1 else []
    head = (
        "\ufeff" + "".join(line + end[: len(end) // 2] for line in lines) + (end if lines else "")
    )
    pieces = [json.dumps(chunk("A")), json.dumps(chunk("da", "stop")), '"[DONE]"']
    text = head + "".join(f"data:{piece}{end}" for piece in pieces)
    assert streamed(serve(events_of(text))[1])[1].text == "Ada"


def test_a_refusal_among_the_parts_of_a_message_is_the_answer(serve: Serve) -> None:
    message = {"content": [{"type": "refusal", "refusal": "I cannot."}]}
    whole, pieces = both({"message": message, "finish_reason": "stop"})
    for reply in (reply_of(serve(whole)[1]), streamed(serve(pieces)[1])[1]):
        assert (reply.text, reply.finish_reason) == ("I cannot.", "refusal")


def test_an_empty_answer_that_the_model_ended_is_an_answer(serve: Serve) -> None:
    for reason in ("stop", "STOP", "eos", "end_turn"):
        whole, pieces = both({"finish_reason": reason})
        assert reply_of(serve(whole)[1]).text == "" == streamed(serve(pieces)[1])[1].text


@pytest.mark.parametrize("reason", ["length", "content_filter", "whim"])
def test_a_text_that_is_cut_off_is_an_answer_that_says_so(serve: Serve, reason: str) -> None:
    whole, pieces = both({"message": {"content": "Ada"}, "finish_reason": reason})
    for reply in (reply_of(serve(whole)[1]), streamed(serve(pieces)[1])[1]):
        assert (reply.text, reply.finish_reason) == ("Ada", reason)


def test_thoughts_without_an_answer_keep_their_own_sentence(serve: Serve) -> None:
    message = {"content": None, "reasoning_content": "Rome? Or Milan?"}
    whole, pieces = both({"message": message, "finish_reason": "length"})
    for reply in (reply_of(serve(whole)[1]), streamed(serve(pieces)[1])[1]):
        assert "only thought" in str(split_thoughts(reply, "m"))


# ── repeated requests ────────────────────────────────────────────────────────

CODES = [429, "429", 500, "503", "rate_limit_exceeded", "overloaded_error", "InternalServerError"]


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("place", ["top", "choice", "type"])
def test_an_error_that_may_pass_is_asked_again_inside_a_200_too(
    serve: Serve, code: Any, place: str
) -> None:
    error = {"message": "later", "type" if place == "type" else "code": code}
    broken = report(error) if place != "choice" else both({"error": error})
    if place == "type" and str(code).isdecimal():
        error["code"] = error.pop("type")
    server, llm = serve(broken[0], answer("fine"))
    assert reply_of(llm).text == "fine" and len(server.bodies) == 2
    server, llm = serve(broken[1], answer("fine"))
    assert streamed(llm)[1].text == "fine" and len(server.bodies) == 2


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ({"message": "no", "code": 402}, "asks for payment (402: no). Add credit"),
        ({"message": "no", "code": "insufficient_quota"}, "asks for payment"),
        ({"message": "You are out of credits"}, "asks for payment"),
        ({"message": WINDOW, "code": 400}, "cannot hold the prompt and its answer"),
        ({"message": WINDOW}, "Shorten the prompt (fewer or shorter passages), lower max_tokens"),
        ({"message": "no", "code": "context_length_exceeded"}, "cannot hold the prompt"),
        ({"message": "no such model", "code": 404}, "does not know the model 'm'"),
        ({"message": "no", "code": "invalid_api_key"}, "refused the key"),
    ],
)
def test_an_error_that_stays_has_its_own_mend_with_its_status_and_inside_a_200(
    serve: Serve, error: dict[str, Any], words: str
) -> None:
    whole, pieces = report(error)
    server, llm = serve(whole)
    assert words in failure(llm) and len(server.bodies) == 1
    server, llm = serve(pieces)
    assert words in stream_failure(llm)[1] and len(server.bodies) == 1
    if isinstance(status := error.get("code"), int):
        assert words in failure(serve(send_json({"error": error}, status))[1])


@pytest.mark.parametrize(
    "raw", ["the GPU is on fire", '{"error": {"message": "the GPU is on fire"}}']
)
def test_the_words_of_a_provider_behind_the_server_are_quoted(serve: Serve, raw: str) -> None:
    error = {"message": "Provider returned error", "code": 400, "metadata": {"raw": raw}}
    words = "(400: Provider returned error: the GPU is on fire)"
    whole, pieces = report(error)
    for behaviour in (whole, pieces, send_json({"error": error}, 400)):
        assert words in stream_failure(serve(behaviour)[1])[1]


# ── the cache ────────────────────────────────────────────────────────────────


def flow() -> Any:
    reply = yield Generate("gpt", (Message("user", "Who?"),))
    return Outcome(reply.text)


@pytest.mark.parametrize("streaming", [False, True])
def test_a_broken_reply_is_never_cached(serve: Serve, streaming: bool) -> None:
    whole, pieces = both({"finish_reason": "error", "error": BUSY})
    _, llm = serve(pieces if streaming else whole, answer("Ada"), max_retries=0)
    cache, backends = ReplyCache(None), Backends({}, {"gpt": llm})

    *_, first = run_one(flow(), backends, reply_cache=cache, stream=streaming)
    *_, second = run_one(flow(), backends, reply_cache=cache, stream=streaming)
    assert "Upstream is down" in first.error and first.outcome is None
    assert second.answer == "Ada" and not second.steps[0].cached


# ── numbers and characters ───────────────────────────────────────────────────


def with_logprobs(*values: float) -> tuple[Behaviour, Behaviour]:
    logprobs = {"content": [{"token": "a", "logprob": value} for value in values]}
    return both({"message": {"content": "Ada"}, "finish_reason": "stop", "logprobs": logprobs})


def test_the_log_probability_of_what_cannot_be_is_a_number_that_json_has(serve: Serve) -> None:
    whole, pieces = with_logprobs(-0.5, -math.inf)
    for reply in (reply_of(serve(whole)[1]), streamed(serve(pieces)[1])[1]):
        assert reply.logprobs == (-0.5, -9999.0)
        assert json.loads(json.dumps(reply_to_json(reply), allow_nan=False))


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_log_probabilities_that_are_not_numbers_are_a_failure(serve: Serve, value: float) -> None:
    whole, pieces = with_logprobs(-0.5, value)
    assert "log-probabilities that are not numbers" in failure(serve(whole)[1])
    assert "log-probabilities that are not numbers" in stream_failure(serve(pieces)[1])[1]


SMILE = "\U0001f600"
FIRST, SECOND = "\ud83d", "\ude00"


@pytest.mark.parametrize(
    ("pieces", "deltas"),
    [
        ([f"x{FIRST}", f"{SECOND}b"], ["x", f"{SMILE}b"]),
        ([FIRST, SECOND], [SMILE]),
        ([f"x{FIRST}"], ["x", FIRST]),
        ([f"x{FIRST}", "b"], ["x", f"{FIRST}b"]),
        ([f"<think>{FIRST}", f"{SECOND}</think>", FIRST, SECOND], [SMILE]),
    ],
)
def test_halves_of_a_character_wait_for_each_other_in_a_stream(
    serve: Serve, pieces: list[str], deltas: list[str]
) -> None:
    events = [json.dumps(chunk(piece)) for piece in pieces]
    _, llm = serve(stream([*events, json.dumps(chunk(None, "stop")), DONE]))
    *happened, episode = run_one(flow(), Backends({}, {"gpt": llm}), stream=True)
    written = [event.text for event in happened if isinstance(event, Delta) and event.text]
    assert written == deltas
    assert isinstance(episode, Episode) and episode.answer == "".join(deltas)


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": 1000, "prompt_tokens_details": {"cached_tokens": 900}},
        {"prompt_tokens": 100, "prompt_tokens_details": {"cached_tokens": 900}},
        {"prompt_tokens": 100, "cache_read_input_tokens": 500, "cache_creation_input_tokens": 400},
        {"prompt_tokens": 100, "prompt_cache_hit_tokens": 900},
    ],
)
def test_cached_tokens_of_a_prompt_belong_to_it_and_it_was_not_cut(
    serve: Serve, usage: dict[str, Any]
) -> None:
    reply = reply_of(serve(send_json(completion("Ada") | {"usage": usage}))[1], ask("moon " * 900))
    assert reply.prompt_tokens == 1000 and "cut" not in reply.note
