"""The embedded reader as a language model: replies, notes, limits, and that it says what it is."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

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
TITLED = "; ".join(f"{p.title}, {p.text}" for p in PASSAGES)


@pytest.fixture(scope="module")
def llm() -> Iterator[ExtractiveReader]:
    import torch

    torch.set_num_threads(1)
    loaded = LLMS["extractive-reader"]("my-reader", dtype="float32")
    assert isinstance(loaded, ExtractiveReader)
    yield loaded
    loaded.close()


def ask(question: str, passages: str = TITLED, **fields: object) -> Generate:
    prompt = f'Referring to the following document, answer "{question}" in 5 words or less.\n\n{passages}\n\nAnswer: '
    return Generate(
        "my-reader", (Message("user", prompt),), evidence=Evidence(question, PASSAGES), **fields
    )  # type: ignore[arg-type]


def reply(llm: ExtractiveReader, request: Generate) -> Reply:
    (result,) = replies(llm, [request])
    return result


def replies(llm: ExtractiveReader, requests: list[Generate]) -> list[Reply]:
    """What the reader says, without the time it took."""
    said = [result for result in llm.generate(requests) if isinstance(result, Reply)]
    assert len(said) == len(requests) and all((one.first_token_seconds or 0) > 0 for one in said)
    return [replace(one, first_token_seconds=None) for one in said]


def test_it_says_that_it_is_extractive_wherever_its_name_appears(llm: ExtractiveReader) -> None:
    entry = LLMS.entry("extractive-reader")
    for text in (entry.about, llm.about):
        assert "extractive" in text
        assert "does not write, reason or know facts" in text
    assert "extractive" in llm.fingerprint
    assert "extractive" in reply(llm, ask("Who developed the clarinet?")).note.lower()


def test_a_reply_has_the_span_its_place_a_confidence_and_token_counts(
    llm: ExtractiveReader,
) -> None:
    said = reply(llm, ask("Who developed the clarinet?"))
    assert said.text == "Johann Christoph Denner"
    assert "passage 1 (Clarinet)" in said.note
    assert "It was developed in Nuremberg" in said.note
    assert said.confidence is not None and 0 < said.confidence < 1
    assert said.finish_reason == "stop"
    assert said.prompt_tokens > 40
    assert said.completion_tokens >= 3


def test_it_declines_in_the_words_that_scorers_look_for(llm: ExtractiveReader) -> None:
    for request in (
        ask("Who wrote the national anthem of Bolivia?"),
        ask("Who developed the clarinet?", passages=""),
        Generate("my-reader", (Message("user", "Who developed the clarinet?"),)),
    ):
        said = reply(llm, request)
        assert (
            said.text
            == REFUSAL
            == "I can not answer the question because of the insufficient information in documents."
        )
        assert said.confidence is not None and said.confidence < 0.2


def test_passages_that_the_prompt_does_not_show_are_never_used(llm: ExtractiveReader) -> None:
    assert (
        reply(llm, ask("Who developed the clarinet?", passages=PASSAGES[1].text)).text
        != "Johann Christoph Denner"
    )


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
        prompt = f'{TITLED}\n\nAnswer IN ONE WORD if the document SUPPORTS or REFUTES "{claim}".\n\nAnswer: '
        assert reply(llm, Generate("r", (Message("user", prompt),))).text == verdict


def test_what_it_can_not_do_gets_one_plain_sentence(llm: ExtractiveReader) -> None:
    said = reply(
        llm, Generate("r", (Message("user", f"Summarize the following text.\n\n{TITLED}"),))
    )
    assert said.text.startswith("This extractive reader only copies spans")
    assert said.confidence == 0


def test_the_same_requests_get_the_same_replies_in_any_batch(llm: ExtractiveReader) -> None:
    requests = [
        ask("Who developed the clarinet?"),
        ask("How long is the Danube?"),
        ask("Who wrote the national anthem of Bolivia?"),
        Generate("r", ()),
    ]
    alone = [reply(llm, request) for request in requests]
    assert replies(llm, requests) == alone
    assert replies(llm, requests[::-1]) == alone[::-1]
    assert llm.generate([]) == []


def test_sampling_settings_change_nothing(llm: ExtractiveReader) -> None:
    request = ask("Who developed the clarinet?")
    assert reply(llm, ask("Who developed the clarinet?", temperature=1.5, seed=7)) == reply(
        llm, request
    )


def test_max_tokens_cuts_at_a_word_and_says_so(llm: ExtractiveReader) -> None:
    long = "Explain the following question from the document as if I were five years old."
    prompt = f"{long}\n\n{TITLED}\n\nQuestion: What is the clarinet?\n\nAnswer: "
    whole = reply(llm, Generate("r", (Message("user", prompt),)))
    cut = reply(llm, Generate("r", (Message("user", prompt),), max_tokens=4))
    assert whole.finish_reason == "stop"
    assert whole.completion_tokens > 4
    assert cut.finish_reason == "length"
    assert 0 < cut.completion_tokens <= 4
    assert whole.text.startswith(cut.text)
    assert (
        reply(
            llm, Generate("r", (Message("user", prompt),), max_tokens=whole.completion_tokens)
        ).text
        == whole.text
    )


def test_the_answer_ends_before_a_stop_sequence(llm: ExtractiveReader) -> None:
    assert (
        reply(llm, ask("Who developed the clarinet?", stop=("Denner",))).text == "Johann Christoph "
    )


def test_a_stream_is_the_answer_then_the_reply(llm: ExtractiveReader) -> None:
    *pieces, last = llm.stream(ask("Who developed the clarinet?"))
    assert isinstance(last, Reply)
    assert "".join(map(str, pieces)) == last.text == "Johann Christoph Denner"
    assert last.first_token_seconds is not None and last.first_token_seconds >= 0


def test_odd_bytes_do_not_stop_it(llm: ExtractiveReader) -> None:
    for text in ("\ud800", "\x00" * 10, "🙂", "\u202eabc", "\ufffd\ufffe", "é" * 5000):
        request = Generate(
            "r",
            (
                Message("system", text),
                Message("user", f"Context: {text}\nQuestion: Who {text}?\nAnswer:"),
            ),
        )
        assert reply(llm, request).finish_reason == "stop"


def test_a_setting_that_it_does_not_have_is_refused() -> None:
    with pytest.raises(UsageError, match=r"my-reader.*no setting 'temprature'"):
        LLMS["extractive-reader"]("my-reader", temprature=1)
    with pytest.raises(UsageError, match=r"my-reader.*one of auto, float32, bfloat16"):
        LLMS["extractive-reader"]("my-reader", dtype="int8")
    for wrong, said in (
        (1.5, r"1\.5"),
        (-0.1, r"-0\.1"),
        (float("nan"), "nan"),
        ("abc", "'abc'"),
        (True, "True"),
    ):
        with pytest.raises(
            UsageError,
            match=rf"my-reader.*decline_below is {said}; it must be a number from 0 to 1",
        ):
            LLMS["extractive-reader"]("my-reader", decline_below=wrong)


def test_the_confidence_below_which_it_declines_can_be_set_and_is_part_of_its_fingerprint(
    llm: ExtractiveReader,
) -> None:
    questions = [
        ask("Who developed the clarinet?"),
        ask("Who wrote the national anthem of Bolivia?"),
    ]
    said = {}
    for border in (0, 0.5, 1):
        other = LLMS["extractive-reader"]("my-reader", dtype="float32", decline_below=border)
        assert isinstance(other, ExtractiveReader) and other.fingerprint not in (
            llm.fingerprint,
            *said,
        )
        answers = replies(other, questions)
        assert [one.confidence for one in answers] == [
            one.confidence for one in replies(llm, questions)
        ]
        said[other.fingerprint] = [one.text != REFUSAL for one in answers]
    assert list(said.values()) == [[True, True], [True, False], [False, False]]


def test_in_bfloat16_it_answers_alike_and_says_so_in_its_fingerprint(llm: ExtractiveReader) -> None:
    other = LLMS["extractive-reader"]("my-reader", dtype="bfloat16")
    assert isinstance(other, ExtractiveReader)
    asked = ask("Who developed the clarinet?")
    assert reply(other, asked).text == reply(llm, asked).text
    assert "bfloat16" in other.fingerprint and other.fingerprint != llm.fingerprint


@pytest.mark.slow
@pytest.mark.parametrize(
    "line", ["The town lies on a river. ", "The town lies on a river.\n", "x", "river "]
)
def test_a_prompt_of_200000_characters_is_answered_in_time(
    llm: ExtractiveReader, line: str
) -> None:
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
    (result,) = other.generate([ask("Who developed the clarinet?")])
    assert isinstance(result, BackendError)
    assert "'gone' was unloaded" in str(result)
    with pytest.raises(BackendError, match="load it again"):
        list(other.stream(ask("Who developed the clarinet?")))
