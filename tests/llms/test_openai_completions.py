"""A base model behind a server uses plain completions: one text instead of messages, no tools, no forced format."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from asking import ask, reply_of, stream_failure, streamed
from loopback import (
    DONE,
    USAGE,
    Behaviour,
    Loopback,
    answer,
    chunk,
    completion,
    fail,
    good_stream,
    send_json,
    stream,
)

from rallebench.core.errors import UsageError
from rallebench.core.types import Episode, Generate, Message, Step, ToolSpec
from rallebench.engine.run_warnings import ReplyCounts
from rallebench.llms._openai.abilities import PLAIN
from rallebench.llms._openai.sampling import OTHER, SAME
from rallebench.llms._transformers.templates import plain
from rallebench.llms.openai_compatible import IGNORES_STOP

Serve = Callable[..., tuple[Loopback, Any]]

pytestmark = pytest.mark.usefixtures("key")


def completed(text: str = " Paris.", **choice: Any) -> Behaviour:
    """A well-formed plain completion."""
    chosen = {"index": 0, "text": text, "finish_reason": "stop", **choice}
    usage = {"prompt_tokens": 7, "completion_tokens": 3}
    return send_json({"object": "text_completion", "choices": [chosen], "usage": usage})


def base(serve: Serve, *behaviours: Behaviour, **settings: Any) -> tuple[Loopback, Any]:
    return serve(*(behaviours or (completed(),)), api="completions", **settings)


def test_a_prompt_is_sent_as_it_stands_to_the_plain_endpoint(serve: Serve) -> None:
    server, llm = base(serve)
    reply = reply_of(llm, ask("The capital of France is", seed=3, stop=("\n",), max_tokens=5))
    assert server.paths == ["/v1/completions"]
    assert server.bodies == [
        {
            "model": "m",
            "prompt": "The capital of France is",
            "temperature": 0.0,
            "max_tokens": 5,
            "seed": 3,
            "stop": ["\n"],
            "stream": False,
        }
    ]
    assert (reply.text, reply.prompt_tokens, reply.completion_tokens) == (" Paris.", 7, 3)
    assert (reply.finish_reason, reply.note) == ("stop", "")


def test_messages_become_the_text_of_a_model_here_without_a_template(serve: Serve) -> None:
    server, llm = base(serve, system="Be brief.")
    turns = (Message("user", "Hi"), Message("assistant", "Hello"), Message("user", "Who?"))
    reply_of(llm, Generate("gpt", turns))
    sent = plain((Message("system", "Be brief."), *turns))
    assert (
        server.bodies[0]["prompt"]
        == sent
        == "Be brief.\n\nUser: Hi\nAssistant: Hello\nUser: Who?\nAssistant:"
    )


def test_a_stream_of_plain_completions_is_put_together(serve: Serve) -> None:
    pieces = [{"choices": [{"index": 0, "text": text}]} for text in (" Pa", "ris", ".\nQ: b")]
    end = {
        "choices": [{"index": 0, "text": "", "finish_reason": "length"}],
        "usage": USAGE["usage"],
    }
    server, llm = base(serve, stream([*pieces, end]), stream([*pieces, end, DONE]))
    for stop, text in (((), " Paris.\nQ: b"), (("\nQ:",), " Paris.")):
        parts, reply = streamed(llm, ask(stop=stop))
        assert "".join(parts) == reply.text == text
        assert (reply.prompt_tokens, reply.completion_tokens) == (7, 3)
    assert [body["stream"] for body in server.bodies] == [True, True]
    broken, sentence = stream_failure(base(serve, stream(pieces), max_retries=0)[1])
    assert broken and "broke off" in sentence


def test_the_endpoint_is_part_of_the_fingerprint_and_chat_is_the_default(serve: Serve) -> None:
    chat, other = serve()[1], base(serve)[1]
    assert chat.settings.path == "/chat/completions" and "/completions/" not in chat.fingerprint
    assert "/completions/" in other.fingerprint and "plain completions" in other.about
    with pytest.raises(UsageError, match="api is 'text'; it must be one of chat, completions"):
        serve(api="text")


def test_no_tools_are_offered_and_none_are_sent(serve: Serve) -> None:
    server, llm = base(serve)
    assert llm.calls_tools is False and server.bodies == [], "the server is not asked for it"
    refused = reply_of(llm, ask(tools=(ToolSpec("search", "Searches.", {}),)))
    assert isinstance(refused, UsageError) and server.bodies == []
    assert "plain completions, which take no tools; set api to chat" in str(refused)


def test_a_schema_goes_before_the_prompt_and_the_note_says_so(serve: Serve) -> None:
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    form = {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}
    server, llm = base(serve, completed('Sure: {"name": "Ada"} and more'), completed("Ada"))
    request = ask("Name:", options={"response_format": form})
    reply = reply_of(llm, request)
    (body,) = server.bodies
    assert "response_format" not in body and body["prompt"].endswith(
        f"{json.dumps(schema)}\n\nName:"
    )
    assert (
        reply.text == '{"name": "Ada"}'
        and f"{PLAIN}; the schema was put into the prompt." in reply.note
    )
    assert "no JSON" in reply_of(llm, request).note


def test_log_probabilities_are_asked_for_by_their_number_and_read(serve: Serve) -> None:
    given = {"tokens": [" Pa", "ris"], "token_logprobs": [None, -0.25]}
    server, llm = base(
        serve, completed(logprobs=given), completed(logprobs={"content": [{"logprob": -1.5}]})
    )
    request = ask(options={"logprobs": True})
    assert reply_of(llm, request).logprobs == (-0.25,)
    assert server.bodies[0]["logprobs"] == 1
    assert reply_of(llm, request).logprobs == (-1.5,), (
        "the form of chat completions, as of llama.cpp"
    )


def test_a_server_without_the_endpoint_is_one_sentence(serve: Serve) -> None:
    reply = reply_of(base(serve, fail(404, "no such path"), max_retries=0)[1])
    assert "no such path" in str(reply) and "\n" not in str(reply)


def test_extra_fields_may_not_set_the_prompt(serve: Serve) -> None:
    with pytest.raises(UsageError, match="may not set prompt"):
        serve(extra_body={"prompt": "x"})


# ── a server that ignores stop ───────────────────────────────────────────────

ON = "Paris.\nQ: " + "What is the capital of Spain? " * 4


@pytest.mark.parametrize("api", ["chat", "completions"])
def test_a_server_that_ignores_stop_is_told_of(serve: Serve, api: str) -> None:
    behaviour = answer(ON) if api == "chat" else completed(ON)
    reply = reply_of(serve(behaviour, api=api)[1], ask(stop=("\nQ:",)))
    assert (reply.text, reply.note) == ("Paris.", IGNORES_STOP)


def test_a_stream_that_ignores_stop_is_told_of_too(serve: Serve) -> None:
    parts, reply = streamed(serve(good_stream(ON))[1], ask(stop=("\nQ:",)))
    assert ("".join(parts), reply.note) == ("Paris.", IGNORES_STOP)


def test_a_stop_string_at_the_end_of_the_text_is_cut_without_a_word(serve: Serve) -> None:
    reply = reply_of(serve(answer("Paris.\nQ: b"))[1], ask(stop=("\nQ:",)))
    assert (reply.text, reply.note) == ("Paris.", "")


def test_replies_past_their_stop_string_are_counted_in_a_run(serve: Serve) -> None:
    request = ask(stop=("\nQ:",))
    steps = tuple(
        Step(request, reply_of(serve(answer(text))[1], request), 0.1) for text in (ON, "Paris.")
    )
    counts = ReplyCounts()
    counts.count(Episode("q1", "asks", steps))
    assert [
        s.startswith("1 of 2 replies of 'gpt' went on after a stop string")
        for s in counts.sentences()
    ] == [True]


# ── a server that ignores seed or temperature ────────────────────────────────

STORY = "Once upon a time there was a moon that went round its planet backwards."


def sampled(seed: int, **more: Any) -> Generate:
    return ask("Tell a story.", **{"seed": seed, "temperature": 1.0, **more})


def long_answer(text: str) -> Behaviour:
    document = completion(text)
    return send_json({**document, "usage": {"prompt_tokens": 7, "completion_tokens": 30}})


@pytest.mark.parametrize(
    ("texts", "requests", "note"),
    [
        ((STORY, STORY), (sampled(1), sampled(2)), SAME),
        ((STORY, "Another."), (sampled(1), sampled(1)), OTHER),
        ((STORY, STORY), (sampled(1), sampled(1)), ""),
        ((STORY, "Another."), (sampled(1), sampled(2)), ""),
        ((STORY, STORY), (sampled(1, temperature=0.1), sampled(2, temperature=0.1)), ""),
        ((STORY, "Another."), (sampled(1, temperature=0.0), sampled(1, temperature=0.0)), ""),
    ],
)
def test_a_server_that_shows_that_it_ignores_a_seed_is_told_of(
    serve: Serve, texts: tuple[str, str], requests: tuple[Generate, Generate], note: str
) -> None:
    llm = serve(*map(long_answer, texts))[1]
    replies = [reply_of(llm, request) for request in requests]
    assert [reply.note for reply in replies] == ["", note]
    assert ("keeps to no seed" in llm.about) == bool(note)
    counts = ReplyCounts()
    steps = tuple(map(Step, requests, replies))
    counts.count(Episode("q1", "asks", steps))
    assert len(counts.sentences()) == bool(note)


def test_a_short_text_may_be_the_same_with_two_seeds(serve: Serve) -> None:
    llm = serve(answer("Paris."))[1]
    assert [reply_of(llm, sampled(seed)).note for seed in (1, 2)] == ["", ""]


# ── a server that changes its model ──────────────────────────────────────────


@pytest.mark.parametrize("api", ["chat", "completions"])
def test_a_server_that_changes_its_model_meanwhile_is_told_of(serve: Serve, api: str) -> None:
    def by(model: str) -> Behaviour:
        choice = {"index": 0, "finish_reason": "stop"}
        said = {"message": {"content": "a"}} if api == "chat" else {"text": "a"}
        return send_json({"model": model, "choices": [{**choice, **said}], "usage": USAGE["usage"]})

    llm = serve(by("old"), by("old"), by("new"), answer("a"), by("new"), api=api)[1]
    replies = [reply_of(llm) for _ in range(5 if api == "chat" else 3)]
    change = "The server answered with the model 'new', before with 'old'."
    assert [reply.note for reply in replies] == ["", "", change, "", ""][: len(replies)]
    counts = ReplyCounts()
    counts.count(Episode("q1", "asks", tuple(Step(ask(), reply) for reply in replies)))
    assert "1 of" in counts.sentences()[0] and "another model" in counts.sentences()[0]


def test_the_model_of_a_stream_is_read_too(serve: Serve) -> None:
    def by(model: str) -> Behaviour:
        pieces = [{**chunk("a", None), "model": model}, {**chunk(None, "stop"), "model": model}]
        return stream([*pieces, USAGE, DONE])

    llm = serve(by("old"), by("new"))[1]
    assert ["before with 'old'" in streamed(llm)[1].note for _ in range(2)] == [False, True]
