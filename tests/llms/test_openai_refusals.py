"""A field that a server refuses is left out from then on: learnt once from the server's own words, and reported."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from asking import ask, failure, reply_of, streamed
from loopback import (
    DONE,
    Behaviour,
    Handler,
    Loopback,
    answer,
    chunk,
    completion,
    fail,
    good_stream,
    send_json,
)
from loopback import stream as stream_of

from rallebench.core.errors import RalleError
from rallebench.core.types import Episode, Generate, Message, Step, ToolSpec
from rallebench.engine.run_warnings import ReplyCounts

Serve = Callable[..., tuple[Loopback, Any]]

FULL = Generate(
    "gpt",
    (Message("system", "Be brief."), Message("user", "Who?")),
    max_tokens=5,
    stop=("\n",),
    temperature=0.0,
    seed=3,
    options={
        "top_k": 2,
        "logprobs": True,
        "think": False,
        "chat_template_kwargs": {"enable_thinking": False},
    },
)


def refuse(field: str, status: int, body: Any) -> Behaviour:
    """Refuse a request with this field (``system``: with a system message); answer any other."""

    def behave(handler: Handler) -> None:
        roles = [message["role"] for message in handler.body["messages"]]
        refused = field in handler.body or (field == "system" and "system" in roles)
        text = "Ada\nQ: Who?"
        good = good_stream(text) if handler.body["stream"] else answer(text)
        (send_json(body, status) if refused else good)(handler)

    return behave


def openai(message: str, param: str | None = None, code: str | None = None) -> dict[str, Any]:
    kind = "invalid_request_error"
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def pydantic(*loc: Any, **more: Any) -> list[dict[str, Any]]:
    detail = {"type": "extra_forbidden", "loc": loc, "msg": "Extra inputs are not permitted"}
    return [{**detail, "input": {"temperature": 0}, **more}]


LITELLM = "litellm.UnsupportedParamsError: groq does not support parameters: {fields}, for model=m."
RAW = json.dumps(openai("Unsupported parameter: 'seed' is not supported with this model.", "seed"))
WORDINGS: list[tuple[str, int, Any]] = [
    ("stop", 400, openai("Unsupported parameter: 'stop' is not supported with this model.", "stop")),
    ("stop", 400, openai("Stop sequences are not supported by this model")),
    ("stop", 400, openai("Argument not supported on this model: stop")),
    ("temperature", 400, openai("Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) value is supported.", "temperature", "unsupported_value")),
    ("temperature", 422, {"error": "Input validation error: `temperature` must be strictly positive", "error_type": "validation"}),
    ("temperature", 400, openai("`temperature` and `seed` cannot both be specified for this model.")),
    ("seed", 422, {"detail": pydantic("body", "seed")}),
    ("seed", 400, {"object": "error", "message": str(pydantic("body", "seed")), "code": 400}),
    ("seed", 422, {"object": "error", "message": {"detail": pydantic("body", "seed")}, "code": 422}),
    ("seed", 400, {"error": {"message": LITELLM.format(fields="['seed', 'stop']"), "code": "400"}}),
    ("seed", 400, {"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": "Invalid JSON payload", "details": [{"fieldViolations": [{"field": "seed"}]}]}}),
    ("seed", 400, {"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": RAW}}}),
    ("seed", 400, {"error": [{"code": "unrecognized_keys", "keys": ["seed"], "path": []}]}),
    ("top_k", 400, openai("Unrecognized request argument supplied: top_k")),
    ("top_k", 400, {"type": "error", "error": {"type": "invalid_request_error", "message": "top_k: Extra inputs are not permitted"}}),
    ("top_k", 501, {"message": "不支持参数 topK"}),
    ("chat_template_kwargs", 400, openai("Unknown field enable_thinking")),
    ("stop", 403, openai("Parameter 'stop' is not allowed for this deployment.", "stop")),
    ("seed", 404, openai("No endpoints found that support the parameter seed; remove it, it is not supported.")),
    ("top_k", 500, {"error": {"message": "litellm.BadRequestError: Unsupported parameter: top_k", "code": "500"}}),
    ("temperature", 502, {"detail": "upstream: argument temperature is not permitted"}),
    ("logprobs", 400, openai("This model does not support log probabilities.")),
    ("max_tokens", 400, openai("Unsupported parameter: 'max_tokens'", "max_tokens")),
    ("think", 400, openai('"gemma" does not support thinking')),
    ("think", 400, {"message": "Malformed input request: #: extraneous key [think] is not permitted"}),
    ("system", 400, openai("Unsupported value: 'messages[0].role' does not support 'system' with this model.", "messages[0].role", "unsupported_value")),
    ("system", 400, {"error": {"code": 400, "message": "Developer instruction is not enabled for models/gemma-3"}}),
    ("system", 500, {"error": {"code": 500, "message": "Jinja: System role not supported", "type": "server_error"}}),
    ("system", 400, openai("Conversation roles must alternate user/assistant/user/assistant/...")),
    ("system", 400, openai("Conversations must start with a user message.")),
    ("seed", 400, openai("Unknown field. Supported fields: model, messages, max_tokens, temperature, stop. Got: seed")),
    ("seed", 422, "unknown field `seed`, expected one of `stop`, `temperature` at line 1 column 80"),
    ("system", 422, {"detail": pydantic("body", "messages", 0, "role", msg="Input should be 'user' or 'assistant'")}),
]  # fmt: skip


@pytest.mark.parametrize(("field", "status", "body"), WORDINGS, ids=str)
@pytest.mark.parametrize("streaming", [False, True])
def test_a_refused_field_is_left_out_once_and_for_all_and_the_reply_says_so(
    serve: Serve, field: str, status: int, body: Any, streaming: bool
) -> None:
    server, llm = serve(refuse(field, status, body), max_retries=0)
    for _ in range(2):
        reply = streamed(llm, FULL)[1] if streaming else reply_of(llm, FULL)
        assert not isinstance(reply, RalleError), reply
        assert reply.text == "Ada", "the stop string is obeyed here"
    assert len(server.bodies) == 3, "the second request is asked rightly at once"
    first, second, third = server.bodies
    assert second == third
    if field == "max_tokens":
        assert second["max_completion_tokens"] == 5 and reply.note == ""
        return
    name = "system messages" if field == "system" else field
    assert f"The server refuses {name}; it was asked without." in reply.note
    assert f"refuses {name}" in llm.about
    left = {"logprobs"} if field == "logprobs" else {field} - {"system"}
    changed = {"messages"} if field == "system" else set()
    kept = {key: value for key, value in first.items() if key not in {*left, *changed}}
    assert {key: value for key, value in second.items() if key not in changed} == kept
    if field == "system":
        assert second["messages"] == [{"role": "user", "content": "Be brief.\n\nWho?"}]


def test_the_same_answer_with_stop_refused_is_cut_here_and_not_called_ignored(serve: Serve) -> None:
    _, llm = serve(refuse("stop", 400, openai("unknown field: stop")))
    assert "ignores stop" not in reply_of(llm, FULL).note


def test_a_refused_value_says_nothing_of_another_value(serve: Serve) -> None:
    def only_one(handler: Handler) -> None:
        words = "'temperature' does not support this value. Only the default (1) value is supported"
        good = handler.body.get("temperature", 1) == 1
        (answer("Ada") if good else fail(400, words, param="temperature"))(handler)

    server, llm = serve(only_one)
    for temperature in (0.0, 0.0, 1.0):
        assert reply_of(llm, ask(temperature=temperature)).text == "Ada"
    sent = [body.get("temperature") for body in server.bodies]
    assert sent == [0.0, None, None, 1.0]
    for n in range(6):
        reply_of(llm, ask(temperature=0.1 + n / 10))
    assert len(server.bodies) <= 4 + 6 + 2, "after three values the field itself counts as refused"


def test_a_limit_that_is_refused_under_its_other_name_too_is_named(serve: Serve) -> None:
    def small(handler: Handler) -> None:
        other = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
        if "max_tokens" in handler.body:
            return fail(400, other, param="max_tokens")(handler)
        if handler.body.get("max_completion_tokens", 0) > 100:
            return fail(400, "max_completion_tokens is too large: 256")(handler)
        return answer("Ada")(handler)

    server, llm = serve(small)
    assert "refuses max_completion_tokens; it was asked without" in reply_of(llm).note
    assert reply_of(llm, ask(max_tokens=5)).note == ""
    assert server.bodies[-1]["max_completion_tokens"] == 5


def test_several_refused_fields_are_learnt_one_after_another(serve: Serve) -> None:
    def picky(handler: Handler) -> None:
        for field in ("seed", "stop", "temperature", "top_k"):
            if field in handler.body:
                return fail(400, f"Unknown parameter: '{field}'", param=field)(handler)
        return answer("Ada")(handler)

    server, llm = serve(picky, max_retries=0)
    assert reply_of(llm, FULL).note.startswith("The server refuses temperature, top_k, seed, stop;")
    reply_of(llm, FULL)
    assert len(server.bodies) == 6
    assert llm.refuses == ("seed", "stop", "temperature", "top_k")


def test_requests_at_once_learn_a_refusal_at_most_once_each(serve: Serve) -> None:
    server, llm = serve(refuse("seed", 400, openai("Unknown field: seed")), concurrency=4)
    replies = llm.generate([ask(str(n), seed=n) for n in range(40)])
    assert all("refuses seed" in reply.note for reply in replies)
    assert len(server.bodies) <= 40 + llm.concurrency


def test_a_field_is_not_learnt_where_the_request_without_it_is_refused_too(serve: Serve) -> None:
    server, llm = serve(fail(400, "The model had to stop at seed 3, temperature 0: bad image"))
    assert "bad image" in failure(llm, FULL)
    assert len(server.bodies) == 4 and llm.refuses == ()


@pytest.mark.parametrize(
    ("message", "param"),
    [
        (
            "This model's maximum context length is 100 tokens; reduce max_tokens or stop",
            "max_tokens",
        ),
        ("The model `m` is not allowed", "model"),
        ("messages: field required", "messages"),
    ],
)
def test_what_is_needed_for_the_question_is_never_left_out(
    serve: Serve, message: str, param: str
) -> None:
    server, llm = serve(fail(400, message, param=param))
    assert message in failure(llm, FULL) and len(server.bodies) == 1


@pytest.mark.parametrize(
    "error",
    [
        {"message": "Please stop and adjust your prompt."},
        {"message": "Not possible: stop", "code": "content_filter"},
        {"message": "That failed.", "code": "tool_use_failed", "failed_generation": "not a stop"},
        {"message": "Missing required parameter: 'seed'.", "param": "seed"},
        {"message": "An error with 'Where must I not stop, and at what temperature?'"},
    ],
)
def test_an_error_that_refuses_no_field_drops_none(serve: Serve, error: dict[str, str]) -> None:
    server, llm = serve(send_json({"error": error}, 400))
    question = Message("user", "Where must I not stop, and at what temperature?")
    failure(llm, replace(FULL, messages=(*FULL.messages[:1], question)))
    assert len(server.bodies) == 1 and llm.refuses == ()


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (403, "You must stop: this key is not allowed here."),
        (404, "No such model at this temperature."),
        (500, "The seed of the cluster is not ready."),
        (502, "Bad gateway: stop"),
    ],
)
def test_a_gateways_error_that_speaks_of_no_field_drops_none(
    serve: Serve, status: int, message: str
) -> None:
    server, llm = serve(fail(status, message))
    failure(llm, FULL)
    assert all({"stop", "temperature", "seed"} <= body.keys() for body in server.bodies)
    assert llm.refuses == ()


def test_a_server_without_streams_or_usage_in_them_is_asked_without(serve: Serve) -> None:
    for field in ("stream", "stream_options"):

        def no_streams(handler: Handler, field: str = field) -> None:
            words = f"Unsupported value: '{field}' is not supported with this model."
            good = answer("Ada") if not handler.body["stream"] else good_stream("Ada")
            (fail(400, words, param=field) if handler.body.get(field) else good)(handler)

        server, llm = serve(no_streams)
        for _ in range(2):
            pieces, reply = streamed(llm)
            assert ("".join(pieces), reply.text, reply.note) == ("Ada", "Ada", "")
        assert len(server.bodies) == 3


# ── tools ────────────────────────────────────────────────────────────────────

SEARCH = ToolSpec("search", "finds", {"type": "object"})
NO_TOOLS = [
    "registry.example/library/gemma:2b does not support tools",
    '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
    "Function calling is not enabled for models/gemma-3",
    "No endpoints found that support tool use.",
]


@pytest.mark.parametrize("words", NO_TOOLS)
def test_tools_are_never_left_out_in_silence(serve: Serve, words: str) -> None:
    server, llm = serve(fail(404 if "endpoints" in words else 400, words))
    message = failure(llm, ask(tools=(SEARCH,)))
    assert words in message and message.endswith(
        "Have the functions called in text, or choose a model or a server that takes tools."
    )
    assert len(server.bodies) == 1 and llm.calls_tools is False


@pytest.mark.parametrize("words", NO_TOOLS)
def test_a_model_that_refuses_tools_is_known_before_it_is_asked_with_them(
    serve: Serve, words: str
) -> None:
    def no_tools(handler: Handler) -> None:
        refused = "tools" in handler.body or "temperature" in handler.body
        message = "temperature: unknown field" if "temperature" in handler.body else words
        (fail(400, message) if refused else send_json(completion("Hi")))(handler)

    assert serve(no_tools)[1].calls_tools is False


def test_a_refused_tool_choice_is_left_out_and_a_missing_call_is_noted(serve: Serve) -> None:
    _, llm = serve(
        refuse("tool_choice", 400, openai("'tool_choice' is not supported", "tool_choice"))
    )
    request = ask(tools=(SEARCH,), options={"tool_choice": "required"})
    note = reply_of(llm, request).note
    assert "refuses tool_choice" in note and "holds no call" in note


# ── warnings of a run ────────────────────────────────────────────────────────


def sentences(llm: Any, *requests: Generate) -> tuple[str, ...]:
    steps = tuple(Step(request, reply_of(llm, request)) for request in requests)
    counts = ReplyCounts()
    counts.count(Episode("q", "chain", steps))
    return counts.sentences()


def test_a_run_says_once_for_each_model_what_its_server_refuses(serve: Serve) -> None:
    _, llm = serve(refuse("stop", 400, openai("unknown field: stop")))
    plain = replace(FULL, options={})
    (sentence,) = sentences(llm, plain, plain, ask())
    assert sentence.startswith(
        "2 of 3 replies of 'gpt' came without stop, which the server refuses"
    )


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (answer("Ad", finish_reason="content_filter"), "withheld by the server's filter in part"),
        (answer("Ad", finish_reason="SAFETY"), "withheld by the server's filter in part"),
        (answer(None, refusal="I cannot."), "were refused by the model"),
        (answer(" "), "hold no text, which counts as the answer"),
    ],
)
def test_a_run_says_how_many_answers_were_held_back_or_hold_no_text(
    serve: Serve, reply: Behaviour, words: str
) -> None:
    _, llm = serve(reply, answer("Ada"))
    (sentence,) = sentences(llm, ask(), ask())
    assert sentence.startswith("1 of 2 replies of 'gpt'") and words in sentence


@pytest.mark.parametrize(
    ("text", "counted", "cut"),
    [
        ("which moon is it " * 3000, 2050, True),
        ("which moon is it " * 3000, 11_000, False),
        ("哪个卫星" * 3000, 2050, True),
        ("哪个卫星" * 3000, 6000, False),
        ("-" * 30_000, 2050, False),
        ("Who?", 1, False),
        ("which moon is it " * 3000, 0, False),
    ],
)
def test_a_server_that_counts_far_fewer_tokens_than_the_prompt_has_words_has_cut_it(
    serve: Serve, text: str, counted: int, cut: bool
) -> None:
    usage = {"prompt_tokens": counted, "completion_tokens": 3}
    _, llm = serve(send_json({**completion("Ada"), "usage": usage}))
    warnings = sentences(llm, ask(text), ask(text))
    assert [
        ("2 of 2 replies of 'gpt' are to a prompt that the server cut" in s) for s in warnings
    ] == ([True] if cut else [])


@pytest.mark.parametrize("stream", [False, True])
def test_tokens_that_only_the_timings_of_llama_cpp_call_cached_are_not_cut_away(
    serve: Serve, stream: bool
) -> None:
    usage = {"prompt_tokens": 50, "completion_tokens": 3}
    body = {**completion("Ada"), "usage": usage, "timings": {"prompt_n": 50, "cache_n": 11_000}}
    last = {"choices": [], "usage": usage, "timings": body["timings"]}
    _, llm = serve(stream_of([chunk("Ada", "stop"), last, DONE]) if stream else send_json(body))
    request = ask("which moon is it " * 3000)
    reply = streamed(llm, request)[1] if stream else reply_of(llm, request)
    assert reply.prompt_tokens == 11_050 and reply.note == ""
