"""Typed decisions: probabilities of options, the option that a text names, and the request in the one loop."""

from __future__ import annotations

import math

import pytest

from rallebench.core.backends import Backends
from rallebench.core.choices import (
    SERVER,
    TEXT,
    Choice,
    OptionsError,
    check_options,
    read_option,
    weigh_options,
)
from rallebench.core.choosing import choose
from rallebench.core.errors import BackendError
from rallebench.core.types import Flow, Generate, Message, Outcome, Question, Reply
from rallebench.engine.loop import run
from rallebench.engine.perform import prepare_request
from rallebench.engine.record import episode_from_json, episode_to_json
from rallebench.engine.reply_cache import ReplyCache, cache_key
from rallebench.engine.single import run_one
from rallebench.llms.scripted import Scripted

ASK = (Message("user", "Is Rome a city?"),)
YES_NO = ("yes", "no")


def test_probabilities_are_normalised_and_the_mass_before_is_covered():
    choice = weigh_options(("a", "b", "c"), [math.log(p) for p in (0.1, 0.3, 0.2)], SERVER)
    assert choice.probabilities == pytest.approx((1 / 6, 1 / 2, 1 / 3))
    assert (choice.chosen, choice.covered) == ("b", pytest.approx(0.6))


def test_very_small_probabilities_still_compare():
    choice = weigh_options(YES_NO, (-2000.0, -2001.0), SERVER)
    assert choice.probability("yes") == pytest.approx(1 / (1 + math.exp(-1)))
    assert choice.covered == 0.0


def test_an_option_without_any_probability_has_0():
    assert weigh_options(YES_NO, (-1.0, -math.inf), SERVER).probabilities == (1.0, 0.0)


@pytest.mark.parametrize(
    ("logprobs", "sentence"),
    [((math.nan, -1.0), "not numbers"), ((-math.inf, -math.inf), "none of the options")],
)
def test_numbers_that_decide_nothing_are_an_error(logprobs, sentence):
    with pytest.raises(BackendError, match=sentence):
        weigh_options(YES_NO, logprobs, SERVER)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("yes", " "), "is empty"),
        (("yes", "yes"), "not all different"),
        (("yes",), "at least two"),
        ((), "at least two"),
    ],
)
def test_options_that_allow_no_choice_are_refused_in_a_sentence(options, sentence):
    with pytest.raises(OptionsError, match=sentence):
        check_options(options)
    with pytest.raises(OptionsError, match=sentence):
        choose("m", ASK, options)


@pytest.mark.parametrize(
    ("text", "options", "chosen"),
    [
        ("yes", YES_NO, "yes"),
        ("**No.**", YES_NO, "no"),
        ("It is not so: no", YES_NO, "no"),
        ("yes or no", YES_NO, ""),
        ("Supported", ("supported", "not supported"), "supported"),
        ("not supported, I think", ("supported", "not supported"), "not supported"),
        ("The answer is B.", ("A", "B"), "B"),
        ("A or B", ("A", "B"), "A"),
        ("Either B or A", ("A", "B"), ""),
        ("中立", ("支持", "中立", "反对"), "中立"),
        ("我认为是中立的", ("支持", "中立", "反对"), "中立"),
        ("unsupported", ("supported", "neutral"), ""),
        ("4", ("1", "2", "3", "4", "5"), "4"),
        ("14", ("1", "4"), ""),
        ("", YES_NO, ""),
    ],
)
def test_the_option_that_a_text_names(text, options, chosen):
    assert read_option(text, options) == chosen


def test_the_mean_value_of_a_choice():
    choice = Choice(("1", "2", "3"), "2", SERVER, (0.25, 0.5, 0.25))
    assert choice.mean_value((1, 2, 3)) == 2.0
    assert Choice(("1", "2"), "2").mean_value((1, 2)) == 2.0


# ── in the loop ──────────────────────────────────────────────────────────────


def _decide(question: Question) -> Flow:
    reply = yield choose("judge", ASK, YES_NO)
    return Outcome(reply.choice.chosen)


def _only_episode(llm: object, cache: ReplyCache | None = None):
    (episode,) = run(
        _decide, [Question("q", "?")], Backends(llms={"judge": llm}), reply_cache=cache
    )
    return episode


def test_a_flow_receives_the_probabilities_of_its_options():
    episode = _only_episode(Scripted([{"yes": 0.6, "no": 0.2}]))
    reply = episode.steps[0].reply
    assert episode.answer == reply.text == "yes"
    assert reply.choice.probabilities == pytest.approx((0.75, 0.25))
    assert reply.confidence == pytest.approx(0.75)


class _OnlyText:
    """A model without log-probabilities."""

    fingerprint = "only text"

    def generate(self, batch):
        self.received = list(batch)
        return [Reply("No, it is not.", prompt_tokens=5, completion_tokens=5) for _ in batch]


def test_a_model_without_log_probabilities_has_its_text_read_and_says_so():
    llm = _OnlyText()
    choice = _only_episode(llm).steps[0].reply.choice
    assert (choice.chosen, choice.source, choice.probabilities) == ("no", TEXT, ())
    assert choice.why == "'judge' gives no log-probabilities, so its text was read."
    assert type(llm.received[0]) is Generate


def test_an_error_of_a_choice_fails_its_question_only():
    episode = _only_episode(Scripted([{"yes": 0.0, "no": 0.0}]))
    assert "none of the options (yes, no) any probability" in episode.error


def test_a_choice_is_cached_apart_from_a_generated_text():
    cache, llm = ReplyCache(None), Scripted([{"yes": 0.6, "no": 0.2}])
    first, again = _only_episode(llm, cache), _only_episode(llm, cache)
    assert again.steps[0].cached and again.steps[0].reply == first.steps[0].reply
    request, backends = choose("judge", ASK, YES_NO), Backends(llms={"judge": llm})
    keys = {
        cache_key(prepare_request(each, backends), backends)
        for each in (request, request.as_generation(), choose("judge", ASK, ("no", "yes")))
    }
    assert len(keys) == 3


def test_a_choice_is_recorded_whole():
    episode = _only_episode(Scripted([{"yes": 0.6, "no": 0.2}]))
    read = episode_from_json(episode_to_json(episode))
    assert read.steps[0].reply == episode.steps[0].reply
    assert read.steps[0].request.choices == YES_NO


def test_a_choice_does_not_stream():
    llm = Scripted([{"yes": 0.6, "no": 0.2}])
    *_, episode = run_one(_decide(Question("q", "?")), Backends(llms={"judge": llm}), stream=True)
    assert episode.answer == "yes" and llm.batches == [1]
