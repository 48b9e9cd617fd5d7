"""A model with scores that are not numbers gives no answer: whole, streamed, in a batch, forced, as a judge or a
re-ranker."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tiny_models
from asking import ask
from listed import Listed, combined, passage
from tiny_bert import save_cross_encoder

from rallebench.core.backends import Backends
from rallebench.core.errors import BackendError, RalleError
from rallebench.core.types import Generate, Outcome, Reply
from rallebench.engine.reply_cache import ReplyCache
from rallebench.engine.single import run_one
from rallebench.llms import LLMS

MEND = "computed scores that are not numbers.*float32.*quantization"
FORM = {"response_format": {"type": "choice", "choices": ["Yes, it is.", "No, it is not."]}}


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """``loaded(kind)`` → a separate model on the CPU, whose weights a test may break."""

    def load(kind: str = "llama", **settings: Any) -> Any:
        folder = tmp_path_factory.mktemp("models") / kind
        getattr(tiny_models, f"save_{kind}")(folder)
        own = {"model": str(folder), "device_map": "cpu", "max_tokens": 6, **settings}
        return LLMS["transformers"]("broken", **own)

    return load


def spoil(llm: Any, value: float, rows: slice = slice(None)) -> Any:
    llm._model.lm_head.weight.data[rows] = value
    return llm


@pytest.mark.parametrize("kind", ["llama", "gpt2", "t5", "bloom"])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_no_answer_comes_of_scores_that_are_no_numbers(
    loaded: Any, kind: str, value: float
) -> None:
    llm = spoil(loaded(kind), value, slice(4, 5))
    for options in ({}, {"logprobs": True}, {"repetition_penalty": 1.2}):
        (reply,) = llm.generate([ask("the river", options=options)])
        assert isinstance(reply, BackendError), options
        with pytest.raises(BackendError, match=MEND):
            raise reply


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("forced", [False, True])
def test_a_forced_form_makes_no_readable_answer_of_them(
    loaded: Any, forced: bool, temperature: float
) -> None:
    llm = spoil(loaded(), float("nan"))
    request = ask("the river", temperature=temperature, options=FORM if forced else {})
    with pytest.raises(BackendError, match=MEND):
        raise llm.generate([request])[0]
    pieces: list[Any] = []
    with pytest.raises(BackendError, match=MEND):
        for piece in llm.stream(request):
            pieces.append(piece)
    assert not any(pieces), "nothing of it is shown"


def test_only_the_request_whose_scores_break_fails_and_nothing_is_cached(loaded: Any) -> None:
    llm = loaded()
    embedding = llm._model.get_input_embeddings().weight
    word = llm._tokenizer("king", add_special_tokens=False)["input_ids"][0]
    embedding.data[word] = float("nan")
    requests = [ask("the river"), ask("the king"), ask("the old city of the river")]
    replies = llm.generate(requests)
    assert [isinstance(reply, RalleError) for reply in replies] == [False, True, False]
    assert replies[0] == replace(
        llm.generate(requests[:1])[0], first_token_seconds=replies[0].first_token_seconds
    )
    cache, backends = ReplyCache(None), Backends({}, {"m": llm})

    def flow() -> Any:
        reply = yield replace(requests[1], llm="m")
        return Outcome(reply.text)

    for stream in (False, True):
        *_, episode = run_one(flow(), backends, stream=stream, reply_cache=cache)
        assert episode.outcome is None and "not numbers" in episode.error  # type: ignore[union-attr]
    assert cache.get(replace(requests[1], llm="m"), backends) is None
    cache.close()


def test_the_embedded_reader_does_not_decline_where_its_network_is_broken() -> None:
    reader: Any = LLMS["extractive-reader"]("reader")
    prompt = "Passages:\n[1] Titan is the largest moon of Saturn.\n\nQuestion: Which is the largest moon of Saturn?"
    request = Generate("reader", ask(prompt).messages)
    assert isinstance(reader.generate([request])[0], Reply)
    reader._reader._network.head.weight.data.fill_(float("nan"))
    with pytest.raises(BackendError, match=r"reader computed scores that are not numbers.*float32"):
        reader.generate([request])


def test_a_cross_encoder_does_not_rank_by_scores_that_are_no_numbers(tmp_path: Path) -> None:
    folder = save_cross_encoder(tmp_path / "cross")
    over = Listed((passage("a", "the old river"), 9.0), (passage("b", "the king"), 8.0))
    reranker = combined("rerank", over, model=str(folder), device="cpu")
    assert reranker.search(["who"], 2)[0]
    reranker._scorer._model[0].auto_model.classifier.bias.data.fill_(float("nan"))
    with pytest.raises(BackendError, match=r"re-ranker .* not numbers.*dtype=float32"):
        reranker.search(["who"], 2)
