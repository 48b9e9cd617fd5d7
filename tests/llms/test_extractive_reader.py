"""The embedded reader as a language model: replies, notes, limits, and its description of itself."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from rallebench.core.errors import BackendError, MismatchError, UsageError
from rallebench.core.types import Evidence, Generate, Message, Passage, Reply
from rallebench.llms import LLMS
from rallebench.llms.extractive_reader import ExtractiveReader
from rallebench.reader import REFUSAL

PASSAGES = (
    Passage(
        "1",
        "The clarinet has a single reed. It was developed in Nuremberg by Johann Christoph Denner around 1700.",
        "Clarinet",
    ),
    Passage(
        "2",
        "The Danube rises in the Black Forest and empties into the Black Sea after 2,850 kilometres.",
        "Danube",
    ),
)
WHO = "Who developed the clarinet?"
TITLED = "; ".join(f"{p.title}, {p.text}" for p in PASSAGES)


@pytest.fixture(scope="module")
def llm() -> Iterator[ExtractiveReader]:
    import torch

    torch.set_num_threads(1)
    loaded = LLMS["extractive-reader"]("my-reader", dtype="float32")
    assert isinstance(loaded, ExtractiveReader)
    yield loaded
    loaded.close()


def ask(question: str = WHO, passages: str = TITLED, **fields: Any) -> Generate:
    prompt = f'Referring to the following document, answer "{question}" in 5 words or less.\n\n{passages}\n\nAnswer: '
    return prompted(prompt, evidence=Evidence(question, PASSAGES), **fields)


def reply(llm: ExtractiveReader, request: Generate) -> Reply:
    """Return the reader's answers, without their times."""
    (result,) = llm.generate([request])
    assert isinstance(result, Reply) and (result.first_token_seconds or 0) > 0
    return replace(result, first_token_seconds=None)


def prompted(text: str, **fields: Any) -> Generate:
    return Generate("my-reader", (Message("user", text),), **fields)


def test_it_says_that_it_is_extractive_wherever_its_name_appears(llm: ExtractiveReader) -> None:
    entry = LLMS.entry("extractive-reader")
    for text in (entry.about, llm.about):
        assert "extractive" in text
        assert "does not write, reason or know facts" in text
    assert "extractive" in llm.fingerprint
    assert "extractive" in reply(llm, ask()).note.lower()


def test_a_reply_has_a_span_its_place_a_confidence_and_token_counts(llm: ExtractiveReader) -> None:
    said = reply(llm, ask())
    assert said.text == "Johann Christoph Denner"
    assert "passage 1 (Clarinet)" in said.note
    assert "It was developed in Nuremberg" in said.note
    assert said.confidence is not None and 0 < said.confidence < 1
    assert said.finish_reason == "stop"
    assert said.prompt_tokens > 40
    assert said.completion_tokens >= 3


def test_it_declines_in_the_words_that_scorers_look_for(llm: ExtractiveReader) -> None:
    words = "I can not answer the question because of the insufficient information in documents."
    for request in (
        ask("Who wrote the national anthem of Bolivia?"),
        ask(passages=""),
        prompted(WHO),
    ):
        said = reply(llm, request)
        assert said.text == REFUSAL == words
        assert said.confidence is not None and said.confidence < 0.5


def test_passages_that_the_prompt_does_not_show_are_never_used(llm: ExtractiveReader) -> None:
    assert "Denner" not in reply(llm, ask(passages=PASSAGES[1].text)).text


def test_a_prompt_is_read_alike_with_and_without_data_beside_it(llm: ExtractiveReader) -> None:
    with_data = ask("Where does the Danube rise?")
    without = Generate("my-reader", with_data.messages)
    assert reply(llm, with_data) == reply(llm, without)
    assert reply(llm, without).text.endswith("Black Forest")


def test_a_claim_gets_one_of_the_two_words(llm: ExtractiveReader) -> None:
    for claim, verdict in (
        ("The clarinet has a single reed.", "SUPPORTS"),
        ("The Danube empties into the North Sea.", "REFUTES"),
    ):
        order = f'Answer IN ONE WORD if the document SUPPORTS or REFUTES "{claim}".'
        assert reply(llm, prompted(f"{TITLED}\n\n{order}\n\nAnswer: ")).text == verdict


def test_what_it_can_not_do_gets_one_plain_sentence(llm: ExtractiveReader) -> None:
    said = reply(llm, prompted(f"Summarize the following text.\n\n{TITLED}"))
    assert said.text.startswith("This extractive reader only copies spans") and said.confidence == 0


def test_max_tokens_cuts_at_a_word_and_says_so(llm: ExtractiveReader) -> None:
    order = "Explain the following question from the document as if I were five years old."
    prompt = f"{order}\n\n{TITLED}\n\nQuestion: What is the clarinet?\n\nAnswer: "
    whole, cut = reply(llm, prompted(prompt)), reply(llm, prompted(prompt, max_tokens=4))
    assert (whole.finish_reason, cut.finish_reason) == ("stop", "length")
    assert 0 < cut.completion_tokens <= 4 < whole.completion_tokens
    assert whole.text.startswith(cut.text)
    assert reply(llm, prompted(prompt, max_tokens=whole.completion_tokens)).text == whole.text


def test_the_answer_ends_before_a_stop_sequence_in_any_sampling(llm: ExtractiveReader) -> None:
    assert reply(llm, ask(stop=("Denner",))).text == "Johann Christoph "
    assert reply(llm, ask(temperature=1.5, seed=7)) == reply(llm, ask())


@pytest.mark.parametrize(
    "text", ["\ud800", "\x00" * 10, "🙂", "\u202eabc", "\ufffd\ufffe", "é" * 5000], ids=ascii
)
def test_odd_bytes_do_not_stop_it(llm: ExtractiveReader, text: str) -> None:
    prompt = Message("user", f"Context: {text}\nQuestion: Who {text}?\nAnswer:")
    request = Generate("r", (Message("system", text), prompt))
    assert reply(llm, request).finish_reason == "stop"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"temprature": 1}, "no setting 'temprature'"),
        ({"dtype": "int8"}, "one of auto, float32, bfloat16"),
        *(
            (
                {"decline_below": value},
                f"decline_below is {value!r}; it must be a number from 0 to 1",
            )
            for value in (1.5, -0.1, float("nan"), "abc", True)
        ),
    ],
    ids=str,
)
def test_a_setting_that_it_does_not_have_is_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=rf"my-reader.*{re.escape(words)}"):
        LLMS["extractive-reader"]("my-reader", **settings)


def test_the_confidence_to_decline_is_set_and_fingerprinted(llm: ExtractiveReader) -> None:
    questions = [ask(), ask("Who wrote the national anthem of Bolivia?")]
    usual = [reply(llm, question).confidence for question in questions]
    answered = {}
    for threshold in (0, 0.5, 1):
        other: Any = LLMS["extractive-reader"](
            "my-reader", dtype="float32", decline_below=threshold
        )
        answers = [reply(other, question) for question in questions]
        assert [answer.confidence for answer in answers] == usual
        answered[other.fingerprint] = [answer.text != REFUSAL for answer in answers]
    assert llm.fingerprint not in answered
    assert list(answered.values()) == [[True, True], [True, False], [False, False]]


def test_in_bfloat16_it_answers_alike_and_says_so_in_its_fingerprint(llm: ExtractiveReader) -> None:
    other: Any = LLMS["extractive-reader"]("my-reader", dtype="bfloat16")
    assert reply(other, ask()).text == reply(llm, ask()).text
    assert "bfloat16" in other.fingerprint and other.fingerprint != llm.fingerprint


@pytest.mark.slow
@pytest.mark.parametrize(
    "line", ["The town lies on a river. ", "The town lies on a river.\n", "x", "river "]
)
def test_a_prompt_of_200000_characters_is_read_in_time(llm: ExtractiveReader, line: str) -> None:
    body = (line * (200_000 // len(line)))[:200_000] + f"\n\n{PASSAGES[0].text}"
    prompt = f"Context: {body}\n\nQuestion: Who developed the clarinet?\nAnswer:"
    start = time.process_time()
    said = reply(llm, Generate("r", (Message("user", prompt),)))
    assert time.process_time() - start < 15
    assert said.text == "Johann Christoph Denner"


def test_weights_that_are_not_the_known_ones_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from rallebench.encoders import minilm

    monkeypatch.setattr(minilm, "WEIGHTS_SHA256", "0" * 64)
    with pytest.raises(MismatchError, match="reinstall"):
        LLMS["extractive-reader"]("my-reader")


def test_an_unloaded_reader_says_so(llm: ExtractiveReader) -> None:
    other = ExtractiveReader("gone", llm._reader)  # type: ignore[arg-type]
    other.close()
    (result,) = other.generate([ask()])
    assert isinstance(result, BackendError)
    assert "'gone' was unloaded" in str(result)
    with pytest.raises(BackendError, match="load it again"):
        list(other.stream(ask()))
