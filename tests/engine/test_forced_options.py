"""Options that a flow forces on a model, against settings of the model's entry: equal in both players."""

from __future__ import annotations

from typing import Any

import pytest
from loopback import Loopback

from rallebench.chains.chain import as_flow
from rallebench.core.backends import Backends, fit_to_model
from rallebench.core.live import StepStarted
from rallebench.core.types import Action, Chain, Episode, Flow, Generate, Message, Outcome, Question
from rallebench.engine import loop
from rallebench.engine.record import request_from_json, request_to_json
from rallebench.engine.reply_cache import ReplyCache, cache_key
from rallebench.engine.single import run_one
from rallebench.llms import LLMS
from rallebench.llms.scripted import Scripted

YES_OR_NO = {"response_format": {"type": "choice", "choices": ["yes", "no"]}}


class Model(Scripted):
    """A scripted model that may enforce formats."""

    def __init__(self, forces_formats: bool = False) -> None:
        super().__init__(default="yes")
        self.forces_formats = forces_formats


def flow(question: Question) -> Flow:
    prompt = (Message("user", question.text),)
    reply = yield Generate("m", prompt, options={"top_p": 0.5}, forced=YES_OR_NO)
    return Outcome(reply.text)


@pytest.mark.parametrize(("forces", "more"), [(True, YES_OR_NO), (False, {})])
def test_both_players_send_what_the_model_can_take(forces: bool, more: dict[str, Any]) -> None:
    question, model = Question("q", "Is it?"), Model(forces_formats=forces)
    backends = Backends({}, {"m": model})
    cache = ReplyCache(None)
    (episode,) = loop.run(flow, [question], backends, reply_cache=cache)
    started, *_, alone = run_one(flow(question), backends, qid="q", reply_cache=cache)
    assert isinstance(alone, Episode) and isinstance(started, StepStarted)
    (sent,) = model.requests
    assert sent.options == {"top_p": 0.5, **more} and not sent.forced
    assert started.request == episode.steps[0].request == alone.steps[0].request == sent
    assert alone.steps[0].cached
    assert request_from_json(request_to_json(sent)) == sent


def test_another_form_is_another_reply() -> None:
    backends = Backends({}, {"m": Model()})
    forms: list[dict[str, Any]] = [
        {},
        YES_OR_NO,
        {"response_format": {"type": "choice", "choices": ["no", "yes"]}},
        {"response_format": {"type": "regex", "regex": "yes|no"}},
        {"tool_choice": "required"},
    ]
    prompt = (Message("user", "Is it?"),)
    keys = {cache_key(Generate("m", prompt, options=form), backends) for form in forms}
    assert len(keys) == len(forms) and None not in keys


def test_what_is_forced_is_never_stored() -> None:
    request = Generate("m", (Message("user", "Is it?"),), forced=YES_OR_NO)
    assert "forced" not in request_to_json(request)


# ── settings of the model's entry ────────────────────────────────────────────

ENTRIES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {"max_tokens": 64, "temperature": 0.0, "seed": 0}),
    ({"temperature": None}, {"max_tokens": 64, "seed": 0}),
    ({"max_tokens": 4000}, {"max_tokens": 4000, "temperature": 0.0, "seed": 0}),
    ({"max_tokens": 16}, {"max_tokens": 64, "temperature": 0.0, "seed": 0}),
    ({"max_tokens": None}, {"temperature": 0.0, "seed": 0}),
    (
        {"extra_body": {"temperature": 1, "reasoning_effort": "low", "seed": None}},
        {"max_tokens": 64, "temperature": 1, "reasoning_effort": "low"},
    ),
    (
        {"extra_body": {"max_completion_tokens": 9000, "stop": None}},
        {"max_completion_tokens": 9000, "temperature": 0.0, "seed": 0},
    ),
]


@pytest.mark.parametrize(("entry", "fields"), ENTRIES, ids=str)
@pytest.mark.parametrize("player", ["loop", "single"])
def test_what_an_entry_says_holds_for_a_methods_requests(
    entry: dict[str, Any], fields: dict[str, Any], player: str
) -> None:
    def judge(question: Question) -> Flow:
        prompt = (Message("user", question.text),)
        reply = yield Generate("m", prompt, max_tokens=64, temperature=0.0, seed=0, stop=("\n",))
        return Outcome(reply.text)

    with Loopback() as server:
        model = LLMS["openai_compatible"]("m", model="m", base_url=server.url, **entry)
        backends, question = Backends({}, {"m": model}), Question("q", "Is it?")
        if player == "loop":
            (episode,) = loop.run(judge, [question], backends, reply_cache=ReplyCache(None))
        else:
            *_, episode = run_one(judge(question), backends)
        model.close()
    (body,) = server.bodies
    sent = {name: body[name] for name in body if name not in ("model", "messages", "stream")}
    stop = {} if "stop" in entry.get("extra_body", {}) else {"stop": ["\n"]}
    assert sent == {**fields, **stop}
    stored = request_to_json(episode.steps[0].request)
    assert stored.get("max_tokens") == fields.get("max_tokens", fields.get("max_completion_tokens"))


def test_a_chains_own_settings_go_over_the_models_entry() -> None:
    settings = {"max_tokens": 8, "temperature": 0.5}
    chain = Chain("c", (Action("generate", "{question}", target="m", generation=settings),))
    with Loopback() as server:
        entry = {"max_tokens": 4000, "temperature": None, "base_url": server.url}
        model = LLMS["openai_compatible"]("m", model="m", **entry)
        backends = Backends({}, {"m": model})
        list(run_one(as_flow(chain, Question("q", "Is it?")), backends))
        model.close()
    (body,) = server.bodies
    assert (body["max_tokens"], body["temperature"]) == (8, 0.5)


def test_a_judgement_at_the_servers_own_temperature_is_cached_only_with_a_seed() -> None:
    with Loopback() as server:
        model = LLMS["openai_compatible"]("m", model="m", base_url=server.url, temperature=None)
        backends = Backends({}, {"m": model})
        for seed in (0, None):
            request = Generate("m", (Message("user", "Is it?"),), temperature=0.0, seed=seed)
            assert (cache_key(fit_to_model(request, model), backends) is None) == (seed is None)
        model.close()
