"""Models that think: with every backend only the answer is passed on, whole and streamed, and the thoughts are in the
step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from asking import ask
from loopback import Behaviour, Loopback, answer, chunk, completion, send_json, stream

from rallebench.core.backends import Backends
from rallebench.core.live import Delta
from rallebench.core.types import Episode, Flow, Generate, Outcome, Step, ToolSpec
from rallebench.engine.reply_cache import ReplyCache
from rallebench.engine.single import run_one
from rallebench.llms.scripted import Scripted
from rallebench.metrics import METRICS
from rallebench.metrics.judges import Case

Serve = Callable[..., tuple[Loopback, Any]]


def asked(
    llm: Any, request: Generate | None = None, *, streamed: bool = False, cache: Any = None
) -> tuple[str, Episode]:
    """Return the streamed pieces of a flow's one request, and its episode."""

    def flow() -> Flow:
        reply = yield replace(request or ask(), llm="m")
        return Outcome(reply.text)

    *events, episode = run_one(flow(), Backends({}, {"m": llm}), stream=streamed, reply_cache=cache)
    assert isinstance(episode, Episode)
    return "".join(event.text for event in events if isinstance(event, Delta)), episode


def step_of(episode: Episode) -> Step:
    assert not episode.error, episode.error
    (step,) = episode.steps
    return step


PARTED = [chunk(reasoning_content="Rome"), chunk(reasoning_content="?"), chunk("Ro"), chunk("me")]
STREAMED: dict[str, Behaviour] = {
    "in the text": stream(
        [chunk("<thi"), chunk("nk>Rome?</th"), chunk("ink>\nRo"), chunk("me", "stop")]
    ),
    "parted from the text": stream([*PARTED, chunk(None, "stop")]),
    "in brackets": stream(
        [chunk("[TH"), chunk("INK]Rome?[/"), chunk("THINK]Ro"), chunk("me", "stop")]
    ),
    "in channels": stream(
        [
            *[chunk("<|channel|>ana"), chunk("lysis<|message|>Rome?<|end|><|start|>assis")],
            *[chunk("tant<|channel|>final<|mess"), chunk("age|>Rome"), chunk("<|return|>", "stop")],
        ]
    ),
    "in parts": stream(
        [
            chunk([{"type": "thinking", "thinking": [{"type": "text", "text": "Rome?"}]}]),
            chunk([{"type": "text", "text": "Rome"}], "stop"),
        ]
    ),
}
WHOLE: dict[str, Behaviour] = {
    "in the text": answer("<think>Rome?</think>\n\nRome"),
    "in the text, without a beginning": answer("Rome?\n</think>\n\nRome"),
    "parted from the text": answer("Rome", reasoning_content="Rome?"),
    "by another name": answer("Rome", reasoning="Rome?"),
    "by another form": answer("[THINK]Rome?[/THINK]Rome"),
    "in channels": answer(
        "<|channel|>analysis<|message|>Rome?<|end|><|start|>assistant<|channel|>final<|message|>Rome<|return|>"
    ),
    "in a part": answer([{"type": "reasoning", "text": "Rome?"}, {"type": "text", "text": "Rome"}]),
    "in a nested part": answer(
        [
            {"type": "thinking", "thinking": [{"type": "text", "text": "Rome?"}]},
            {"type": "text", "text": "Rome"},
        ]
    ),
    "in a summary": answer(
        [
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Rome?"}]},
            {"type": "output_text", "text": "Rome"},
        ]
    ),
    "in details": answer("Rome", reasoning_details=[{"type": "reasoning.text", "text": "Rome?"}]),
    "by a third name": answer("Rome", thinking="Rome?"),
    "by both names": answer("Rome", reasoning="Rome?", reasoning_content="Rome?"),
}


@pytest.mark.parametrize("where", WHOLE)
def test_a_servers_answer_goes_on_and_thoughts_are_in_the_step(serve: Serve, where: str) -> None:
    _, episode = asked(serve(WHOLE[where])[1])
    reply = step_of(episode).reply
    assert (episode.answer, reply.text, reply.thinking) == ("Rome", "Rome", "Rome?")


@pytest.mark.parametrize("where", STREAMED)
def test_of_a_servers_stream_the_answer_alone_is_shown(serve: Serve, where: str) -> None:
    shown, episode = asked(serve(STREAMED[where])[1], streamed=True)
    reply = step_of(episode).reply
    assert (shown, reply.text, reply.thinking) == ("Rome", "Rome", "Rome?")


def test_thoughts_that_a_server_hides_are_counted_in_the_step(serve: Serve) -> None:
    usage = {"completion_tokens_details": {"reasoning_tokens": 9}}
    _, episode = asked(serve(send_json({**completion("Rome"), "usage": usage}))[1])
    assert step_of(episode).reply.thinking == "(9 tokens, which the server does not show)"


ONLY_THOUGHTS: dict[str, Behaviour] = {
    "parted from the text": answer(None, reasoning_content="Rome?", finish_reason="length"),
    "by another name": answer("", reasoning="Rome? Or Milan?"),
    "in the text": answer("<think>Rome?</think>\n"),
    "in the text, without an end": answer("<think>Rome? Or Milan?", finish_reason="length"),
    "only counted": send_json(
        {**completion(""), "usage": {"completion_tokens_details": {"reasoning_tokens": 9}}}
    ),
    "streamed": stream([chunk(reasoning_content="Rome?"), chunk(None, "length")]),
}
SEARCH = ToolSpec("search")
MEND = "'m' only thought and gave no answer; raise max_tokens, or turn its thinking off"


@pytest.mark.parametrize("where", ONLY_THOUGHTS)
def test_thoughts_alone_are_a_failure_that_is_not_asked_again(serve: Serve, where: str) -> None:
    server, llm = serve(ONLY_THOUGHTS[where], max_retries=3)
    cache = ReplyCache(None)
    _, episode = asked(llm, streamed=where == "streamed", cache=cache)
    assert episode.error.startswith(MEND) and len(server.bodies) == 1
    assert cache.get(replace(ask(), llm="m"), Backends({}, {"m": llm})) is None
    cache.close()


def test_a_call_or_an_empty_answer_is_no_thinking(serve: Serve) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "search", "arguments": "{}"}}
    calls = answer("<think>Search.</think>", tool_calls=[call])
    assert step_of(asked(serve(calls)[1])[1]).reply.tool_calls
    assert step_of(asked(serve(answer(""))[1])[1]).reply.text == ""


# ── models in this process ───────────────────────────────────────────────────


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("which", "answer", "thoughts"),
    [
        ("thinks, answers", "Rome", "Rome?"),
        ("thinks in brackets", "Rome", "Rome?"),
        ("thinks in channels", "Rome", "Rome?"),
        ("thinks from the prompt on", "Rome it is.", "Rome? Or Milan?"),
    ],
)
def test_of_a_model_in_this_process_the_answer_goes_on(
    tiny: Any, which: str, answer: str, thoughts: str, streamed: bool
) -> None:
    shown, episode = asked(tiny(which), ask("the river", max_tokens=12), streamed=streamed)
    reply = step_of(episode).reply
    assert (episode.answer, reply.thinking) == (answer, thoughts)
    assert shown == (answer if streamed else "")


@pytest.mark.parametrize("streamed", [False, True])
def test_a_call_in_a_channel_of_a_model_in_this_process_is_a_call(
    tiny: Any, streamed: bool
) -> None:
    request = ask("the river", max_tokens=24, tools=(SEARCH,))
    shown, episode = asked(tiny("calls in channels"), request, streamed=streamed)
    reply = step_of(episode).reply
    assert [(call.name, call.arguments) for call in reply.tool_calls] == [
        ("search", '{"query": "Ada"}')
    ]
    assert (reply.text, reply.thinking, shown) == ("", "Rome?", "")


@pytest.mark.parametrize("streamed", [False, True])
def test_a_call_in_a_channel_of_a_server_is_a_call(serve: Serve, streamed: bool) -> None:
    text = (
        "<|channel|>analysis<|message|>Rome?<|end|><|start|>assistant<|channel|>commentary"
        ' to=functions.search <|constrain|>json<|message|>{"query": "Ada"}<|call|>'
    )
    pieces = [chunk(text[at : at + 7]) for at in range(0, len(text), 7)]
    behaviour = stream([*pieces, chunk(None, "stop")]) if streamed else answer(text)
    shown, episode = asked(serve(behaviour)[1], ask(tools=(SEARCH,)), streamed=streamed)
    reply = step_of(episode).reply
    assert [call.arguments for call in reply.tool_calls] == ['{"query": "Ada"}']
    assert (reply.text, reply.thinking, shown) == ("", "Rome?", "")


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("which", "limit"), [("thinks", 12), ("thinks on", 3), ("thinks from the prompt on", 2)]
)
def test_thoughts_alone_are_a_failure_also_where_the_prompt_began_them(
    tiny: Any, which: str, limit: int, streamed: bool
) -> None:
    shown, episode = asked(tiny(which), ask("the river", max_tokens=limit), streamed=streamed)
    assert episode.error.startswith(MEND) and not shown


@pytest.mark.parametrize("streamed", [False, True])
def test_a_stop_string_ends_the_answer_and_not_the_thoughts(tiny: Any, streamed: bool) -> None:
    request = replace(ask("the river", max_tokens=12), stop=("Milan", " it"))
    _, episode = asked(tiny("thinks from the prompt on"), request, streamed=streamed)
    reply = step_of(episode).reply
    assert (reply.text, reply.thinking) == ("Rome", "Rome? Or Milan?")
    assert reply.completion_tokens < 7 and reply.finish_reason == "stop"


# ── replies outside the backends ─────────────────────────────────────────────


@pytest.mark.parametrize("streamed", [False, True])
def test_a_cached_reply_is_the_parted_one(streamed: bool) -> None:
    llm, cache = Scripted(["<think>Rome?</think>Rome"]), ReplyCache(None)
    for _ in range(2):
        _, episode = asked(llm, streamed=streamed, cache=cache)
        reply = step_of(episode).reply
        assert (episode.answer, reply.thinking) == ("Rome", "Rome?")
    assert llm.calls == 1
    cache.close()


# ── room to think ────────────────────────────────────────────────────────────


def thinks_for(tokens: int) -> Behaviour:
    """A model that thinks for this number of tokens before it says No."""

    def behave(handler: Any) -> None:
        limit = handler.body.get("max_tokens", 0)
        thoughts = {"reasoning_content": "Let me see", "finish_reason": "length"}
        reply = answer("No.") if limit > tokens else answer(None, **thoughts)
        reply(handler)

    return behave


@pytest.mark.parametrize("streamed", [False, True])
def test_a_methods_short_question_is_asked_again_with_room_to_think(
    serve: Serve, streamed: bool
) -> None:
    server, llm = serve(thinks_for(1000))
    request = ask(max_tokens=64, roomy=True)
    _, episode = asked(llm, request, streamed=streamed)
    assert episode.answer == "No."
    assert [body["max_tokens"] for body in server.bodies] == [64, 4096]


def test_a_judge_whose_model_thinks_has_a_verdict(serve: Serve) -> None:
    _, llm = serve(thinks_for(1000))
    flow = METRICS["rgb-rejection"](Case("Who?", "Ada"), llm="m", prompt="{question} {answer}")
    *_, episode = run_one(flow, Backends({}, {"m": llm}))
    assert isinstance(episode, Episode) and (episode.answer, episode.error) == ("yes", "")


def test_the_limit_of_any_other_request_stays_and_more_room_is_given_once(serve: Serve) -> None:
    server, llm = serve(thinks_for(1000))
    _, episode = asked(llm, ask(max_tokens=64))
    assert episode.error.startswith(MEND) and len(server.bodies) == 1
    server, llm = serve(thinks_for(100_000))
    _, episode = asked(llm, ask(max_tokens=64, roomy=True))
    assert episode.error.startswith(MEND) and len(server.bodies) == 2
