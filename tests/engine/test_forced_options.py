"""What a flow would force on a model: options for a model that enforces forms, nothing for any other, the same in both players."""

from __future__ import annotations

from typing import Any

import pytest

from rallebench.core.runs import Backends
from rallebench.core.types import Episode, Flow, Generate, Message, Outcome, Question
from rallebench.engine import loop
from rallebench.engine.record import request_from_json, request_to_json
from rallebench.engine.reply_cache import ReplyCache, cache_key
from rallebench.engine.single import StepStarted, run_one
from rallebench.llms.scripted import Scripted

YES_OR_NO = {"response_format": {"type": "choice", "choices": ["yes", "no"]}}


class Model(Scripted):
    """A scripted model that may enforce forms."""

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
