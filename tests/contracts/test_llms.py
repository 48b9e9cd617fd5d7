"""Contract of every language model backend, whatever its kind."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import loopback
import pytest
import tiny_models

from rallebench.core.backends import Backends, StreamingLLM
from rallebench.core.choices import TEXT, Choice
from rallebench.core.choosing import Choose, answer_choices, choose
from rallebench.core.errors import RalleError
from rallebench.core.types import Evidence, Generate, Message, Passage, Reply
from rallebench.engine.reply_cache import cache_key
from rallebench.llms import LLMS

SECRET = "sk-verysecret0123456789"
PASSAGE = Passage(
    "d1",
    "Ada Byron wrote a book in Paris. The king founded the old city on the Danube in 1820.",
    "Ada Byron",
)
QUESTIONS = ("Who wrote a book ?", "When was the city founded ?", "Where was the book written ?")

CHANGES: dict[str, dict[str, Any]] = {
    "extractive-reader": {},
    "openai_compatible": {"model": "n"},
    "scripted": {"echo": False, "default": "so be it"},
    "transformers": {"max_tokens": 5},
}
"""For each backend a setting that changes an answer; none if there is no such setting."""

SAMPLING = ("openai_compatible", "transformers")
"""The backends with a temperature setting."""

Make = Callable[..., Any]


def speak(handler: loopback.Handler) -> None:
    """Answer with the last message, all at once or word by word, as requested."""
    text = handler.body["messages"][-1]["content"]
    (loopback.good_stream(text) if handler.body["stream"] else loopback.answer(text))(handler)


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import torch
    import transformers  # noqa: F401

    torch.set_num_threads(1)
    gc.freeze()  # otherwise every load walks through all objects of the libraries
    return tiny_models.save_llama(tmp_path_factory.mktemp("tiny") / "llama", positions=256)


@pytest.fixture(params=LLMS.names())
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def make(
    backend: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Make]:
    """``make(**settings)`` → a model of this backend; a backend without required settings needs none."""
    for variable in ("OPENAI_API_KEY", "HF_TOKEN"):
        monkeypatch.setenv(variable, SECRET)
    made: list[Any] = []
    with loopback.Loopback(speak) as server:
        settings: dict[str, Any] = {"scripted": {"echo": True}}.get(backend, {})
        if backend == "openai_compatible":
            settings = {"base_url": server.url, "model": "m", "max_retries": 0}
        if backend == "transformers":
            settings = {"model": str(request.getfixturevalue("tiny_model")), "device_map": "cpu"}

        def make(**more: Any) -> Any:
            made.append(LLMS[backend]("llm", **{**settings, **more}))
            return made[-1]

        yield make
        for llm in made:
            close(llm)


def close(llm: Any) -> None:
    getattr(llm, "close", lambda: None)()


def ask(question: str = QUESTIONS[0], **fields: Any) -> Generate:
    """A question below its passage, as in the prompt of a chain."""
    prompt = f"Context : {PASSAGE.text}\n\nQuestion : {question}\nAnswer :"
    return Generate(
        "llm",
        (Message("user", prompt),),
        **{"max_tokens": 30, **fields},
        evidence=Evidence(question, (PASSAGE,)),
    )


def texts(llm: Any, requests: list[Generate]) -> list[str]:
    replies = llm.generate(requests)
    assert all(isinstance(reply, Reply) for reply in replies), replies
    return [reply.text for reply in replies]


def is_remembered(llm: Any, request: Generate) -> bool:
    return cache_key(request, Backends(llms={"llm": llm})) is not None


def test_there_is_one_result_per_request_in_the_asked_order(make: Make) -> None:
    llm = make()
    alone = [texts(llm, [ask(question)])[0] for question in QUESTIONS]
    assert len(set(alone)) > 1, "equal answers would show no order"
    requests = [ask(question) for question in QUESTIONS]
    assert texts(llm, requests) == alone
    assert texts(llm, requests[::-1] + requests[:1]) == alone[::-1] + alone[:1]


def test_an_empty_batch_has_no_results(make: Make) -> None:
    assert make().generate([]) == []


def test_an_answer_at_temperature_0_is_the_same_each_time_and_instance(make: Make) -> None:
    llm = make()
    requests = [ask(question, temperature=0.0) for question in QUESTIONS]
    first = texts(llm, requests)
    assert texts(llm, requests) == first
    assert texts(make(), requests) == first


def test_a_stream_joins_to_what_generate_returns(make: Make) -> None:
    llm = make()
    if not isinstance(llm, StreamingLLM):
        pytest.skip("this backend does not stream")
    for question in QUESTIONS:
        *pieces, last = llm.stream(ask(question))
        (whole,) = llm.generate([ask(question)])
        assert "".join(map(str, pieces)) == last.text == whole.text
        assert (last.finish_reason, last.prompt_tokens, last.completion_tokens) == (
            whole.finish_reason,
            whole.prompt_tokens,
            whole.completion_tokens,
        )


def test_the_fingerprint_changes_with_what_changes_an_answer(make: Make, backend: str) -> None:
    llm = make()
    before = llm.fingerprint
    texts(llm, [ask()])
    assert llm.fingerprint == before == make().fingerprint
    assert backend in CHANGES, "add the new backend to CHANGES"
    if CHANGES[backend]:
        assert make(**CHANGES[backend]).fingerprint != before


def test_the_form_of_a_reply_is_kept_to_or_noted_and_cached_apart(make: Make, backend: str) -> None:
    llm, form = make(), {"response_format": {"type": "choice", "choices": ["Ada Byron", "nobody"]}}
    backends = Backends(llms={"llm": llm})
    assert cache_key(ask(), backends) != cache_key(ask(options=form), backends)
    (reply,) = llm.generate([ask(options=form)])
    forces = getattr(llm, "forces_formats", False)
    assert forces is (backend == "transformers" and llm.forces_formats)
    if forces or backend in ("openai_compatible", "transformers"):
        assert reply.text in ("Ada Byron", "nobody") or reply.note
    assert not forces or reply.text in ("Ada Byron", "nobody")


YES_NO = ("yes", "no")


def choices_for(llm: Any, requests: list[Choose]) -> list[Choice]:
    replies = answer_choices(llm, requests, "llm")
    assert all(isinstance(reply, Reply) and reply.choice for reply in replies), replies
    return [reply.choice for reply in replies if isinstance(reply, Reply) and reply.choice]


def decide(question: str, options: tuple[str, ...] = ("Danube", "Paris", "the old city")) -> Choose:
    return choose("llm", ask(question).messages, options)


def test_a_choice_has_probabilities_or_the_reason_for_reading_a_text(make: Make) -> None:
    llm = make()
    for choice in choices_for(llm, [decide(question) for question in QUESTIONS]):
        if choice.source == TEXT:
            assert (choice.probabilities, choice.covered) == ((), None)
            assert choice.why.endswith("so its text was read.") and "'llm'" in choice.why
            assert choice.chosen in ("", *choice.options)
        else:
            assert sum(choice.probabilities) == pytest.approx(1)
            assert 0 < (choice.covered or 0) <= 1 and not choice.why
            assert choice.probability(choice.chosen) == max(choice.probabilities)


def test_choices_are_in_the_order_of_their_requests_and_the_same_each_time(make: Make) -> None:
    llm = make()
    requests = [decide(question) for question in QUESTIONS]
    requests.append(decide(QUESTIONS[0], ("a new king", "a new city")))
    alone = [choices_for(llm, [request])[0] for request in requests]
    for first, again in zip(alone[::-1], choices_for(llm, requests[::-1])):
        assert (first.options, first.chosen) == (again.options, again.chosen)
        assert first.probabilities == pytest.approx(again.probabilities, rel=1e-3)


def test_no_choices_have_no_results(make: Make) -> None:
    assert answer_choices(make(), [], "llm") == []


def test_a_choice_is_cached_apart_from_a_text_and_from_other_options(make: Make) -> None:
    backends = Backends(llms={"llm": make()})
    request = decide(QUESTIONS[0])
    others = (request.as_generation(), decide(QUESTIONS[0], YES_NO), decide(QUESTIONS[1]))
    assert len({cache_key(each, backends) for each in (request, *others)}) == 4


def test_no_secret_of_the_environment_shows_in_what_a_model_says_of_itself(make: Make) -> None:
    llm = make()
    for text in (
        repr(llm),
        str(llm),
        llm.fingerprint,
        getattr(llm, "about", ""),
        repr(getattr(llm, "__dict__", {})),
    ):
        assert SECRET not in text


def test_the_default_temperature_is_0_so_that_replies_are_remembered(make: Make) -> None:
    llm = make()
    assert llm.temperature == 0
    assert is_remembered(llm, ask())
    assert not is_remembered(llm, ask(temperature=0.7))


def test_a_temperature_setting_keeps_samples_from_memory(make: Make, backend: str) -> None:
    if backend not in SAMPLING:
        pytest.skip("this backend does not sample")
    llm = make(temperature=0.7)
    assert llm.temperature == 0.7
    assert not is_remembered(llm, ask())
    assert is_remembered(llm, ask(seed=1))
    assert is_remembered(llm, ask(temperature=0.0))


def test_a_seed_of_the_settings_makes_samples_worth_remembering(make: Make, backend: str) -> None:
    if backend not in SAMPLING:
        pytest.skip("this backend does not sample")
    seeded = {"seed": 3} if backend == "transformers" else {"extra_body": {"seed": 3}}
    llm = make(temperature=0.7, **seeded)
    assert llm.seed == 3
    assert is_remembered(llm, ask())


def test_a_closed_model_answers_or_says_why_not(make: Make) -> None:
    llm = make()
    texts(llm, [ask()])
    close(llm)
    close(llm)
    (result,) = llm.generate([ask()])
    assert isinstance(result, (Reply, RalleError))
    if isinstance(llm, StreamingLLM):
        with contextlib.suppress(RalleError):
            assert [*llm.stream(ask())]
