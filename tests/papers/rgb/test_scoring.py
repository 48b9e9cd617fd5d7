"""Scores of predictions by RGB's rules, every branch; prompts of model and judge, and verdicts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rallebench.core.errors import BadFileError
from rallebench.core.prompts import prompt_text
from rallebench.core.types import Generate, Message, Outcome, Passage, Question, Reply
from rallebench.metrics import METRICS
from rallebench.metrics.judges import Case
from rallebench.papers.rgb.judge import verdict_on_errors, verdict_on_rejection
from rallebench.papers.rgb.records import read_records, read_required
from rallebench.papers.rgb.scoring import (
    Assessment,
    as_scored,
    assess,
    counts,
    is_right,
    label_prediction,
)
from rallebench.papers.rgb.suites import holds_the_true_one
from rallebench.papers.rgb.testbed import Prompt, Sampling, answering, messages, read_prompt
from rallebench.reader import REFUSAL

ERRORS = "There are factual errors in the provided documents."


@pytest.mark.parametrize(
    ("prediction", "answer", "language", "labels"),
    [
        ("It was TAMPA, florida.", "Tampa, Florida", "en", (1,)),
        ("It was Miami.", "Tampa, Florida", "en", (0,)),
        ("3 January and 12 January", ["3 January", "12 January"], "en", (1, 1)),
        ("3 January", ["3 January", "12 January"], "en", (1, 0)),
        ("Jan 12", [["12 January", "Jan 12"]], "en", (1,)),
        ("Jan 12", ["Jan 12", ["noon", "midday"]], "en", (1, 0)),
        (REFUSAL, "information", "en", (-1,)),
        ("Insufficient information.", "x", "en", (0,)),
        ("文档信息不足，因此我无法基于提供的文档回答该问题。", "70", "zh", (-1,)),
        ("共 有 7 0 个", "70", "zh", (1,)),
        ("共 有 7 0 个", "70", "en", (0,)),
        ("It is New York.", "New York", "zh", (0,)),
        ("anything", [], "en", ()),
    ],
)
def test_labels_say_which_required_answers_stand_there_or_that_it_declined(
    prediction: str, answer: Any, language: str, labels: tuple[int, ...]
) -> None:
    assert assess(prediction, read_required(answer), language).labels == labels


@pytest.mark.parametrize(
    ("labels", "right", "at_noise_1", "corrects", "corrects_originally"),
    [
        ((1,), True, True, True, True),
        ((1, 0), False, False, False, False),
        ((0,), False, False, False, False),
        ((-1,), False, True, False, True),
        ((), False, False, False, True),
    ],
)
def test_what_labels_count_for(
    labels: tuple[int, ...],
    right: bool,
    at_noise_1: bool,
    corrects: bool,
    corrects_originally: bool,
) -> None:
    assert counts(labels, 0.8) is right is is_right(labels)
    assert counts(labels, 1.0) is at_noise_1
    assessment = Assessment("", labels, errors=True)
    rates = [assessment.rates(0.0, original)["correct_rate"] for original in (False, True)]
    assert rates == [corrects, corrects_originally]


def test_errors_are_found_by_rgbs_words_in_both_languages() -> None:
    texts = {
        ERRORS: True,
        "提供文档的文档存在事实性错误。": True,
        "Factual errors? None.": False,
        "": False,
    }
    assert {text: assess(text, (), "en").errors for text in texts} == texts


# prompts


def test_the_shipped_prompts_hold_the_sentences_that_are_looked_for() -> None:
    english, chinese = read_prompt("en"), read_prompt("zh")
    assert REFUSAL in english.system and ERRORS in english.system
    assert "文档信息不足，因此我无法基于提供的文档回答该问题。" in chinese.system
    assert "提供文档的文档存在事实性错误。" in chinese.system
    assert english.user == "Document:\n{DOCS} \n\nQuestion:\n{QUERY}"
    assert chinese.user == "文档：\n{DOCS} \n\n问题：\n{QUERY}"


USER = "Document:\n{DOCS} \n\nQuestion:\n{QUERY}"
QUESTION = Question("1", "who?", (Passage("d1", "one {QUERY}"), Passage("d2", "two")))
SENT = "Document:\none {QUERY}\ntwo \n\nQuestion:\nwho?"


@pytest.mark.parametrize(
    ("question", "merged", "sent"),
    [
        (QUESTION, False, (Message("system", "Be true."), Message("user", SENT))),
        (QUESTION, True, (Message("user", f"Be true.\n\n{SENT}"),)),
        (Question("1", "who?"), False, (Message("user", "Document:\n \n\nQuestion:\nwho?"),)),
    ],
    ids=["braces in documents stay", "no system role", "no documents, no system text"],
)
def test_documents_are_lines_of_the_message(
    question: Question, merged: bool, sent: tuple[Message, ...]
) -> None:
    assert messages(Prompt("Be true.", USER, merged), question) == sent


def test_prompts_of_ones_own_stand_in_for_the_shipped_ones(tmp_path: Path) -> None:
    (tmp_path / "system-en.txt").write_text("Mine.\n")
    assert read_prompt("en", str(tmp_path)) == Prompt("Mine.", read_prompt("en").user)
    (tmp_path / "user-en.txt").write_text("{QUERY}")
    with pytest.raises(BadFileError, match=r"lacks \{DOCS\}"):
        read_prompt("en", str(tmp_path))


def test_the_flow_asks_once_with_rgbs_settings_and_shows_readers_the_documents() -> None:
    decoding = Sampling(temperature=0.7, top_p=0.8, max_tokens=256, seed=0)
    flow = answering(QUESTION, "llm", Prompt("Be true.", USER), decoding)
    request = next(flow)
    assert isinstance(request, Generate)
    sent = (request.temperature, request.max_tokens, request.seed, request.options)
    assert sent == (0.7, 256, 0, {"top_p": 0.8})
    assert request.evidence is not None and request.evidence.passages == QUESTION.passages
    with pytest.raises(StopIteration) as end:
        flow.send(Reply("Ada"))
    assert end.value.value == Outcome("Ada")


# judges


@pytest.mark.parametrize(
    ("verdict_of", "reply", "verdict"),
    [
        (verdict_on_rejection, "No, the question is not addressed by the documents.", True),
        (verdict_on_rejection, "Yes, the question is addressed by the documents.", False),
        (verdict_on_rejection, "Yes.", False),
        (verdict_on_rejection, "Yesterday, perhaps", None),
        (verdict_on_rejection, "No.", True),
        (verdict_on_rejection, "", None),
        (verdict_on_errors, "Yes, the model has identified the factual errors.", True),
        (verdict_on_errors, "The model has identified an error.", True),
        (verdict_on_errors, "No, the model fails to identify the factual errors.", False),
        (verdict_on_errors, "It has not identified them.", False),
        (verdict_on_errors, "Note that this is hard.", None),
    ],
)
def test_a_judge_says_that_a_question_is_not_addressed_or_that_errors_were_identified(
    verdict_of: Any, reply: str, verdict: bool | None
) -> None:
    assert verdict_of(reply) is verdict


def test_the_judges_prompts_hold_their_demonstrations_and_read_as_they_say() -> None:
    rejection = prompt_text("suites/rgb", "judge-rejection.txt", "", ("question", "answer"))
    errors = prompt_text("suites/rgb", "judge-errors.txt", "", ("answer",))
    verdicts = [
        [read(line) for line in prompt.split("\n") if line.startswith(("Yes,", "No,"))]
        for prompt, read in ((rejection, verdict_on_rejection), (errors, verdict_on_errors))
    ]
    assert verdicts == [[True, False, True, False], [True, False, True, False, False]]
    questions = [line for line in rejection.split("\n") if line.startswith("Question: ")][:4]
    assert sum(line.isascii() for line in questions) == 2
    assert rejection.endswith("Question: {question}\nAnswer: {answer}")
    assert "{question}" not in errors


def test_a_judge_of_errors_sees_the_answer_alone() -> None:
    flow = METRICS["rgb-errors"](Case("who?", "Ada"), llm="llm", prompt="judge: {answer}")
    assert next(flow).messages[0].content == "judge: Ada"


# published records


@pytest.mark.parametrize("name", ["en_fact", "zh_fact", "zh_int", "zh_refine"])
def test_published_answers_are_right_by_any_alias_never_empty(shared_data: Path, name: str) -> None:
    records = read_records(shared_data / "rgb" / f"{name}.jsonl")
    for record in records.records:
        for pick in (0, -1):
            answer = " und ".join(group[pick].upper() for group in record.required)
            spaced = any(" " in group[pick] for group in record.required)
            if records.language == "en" or not spaced:
                reply = as_scored(answer, records.language)
                assert is_right(label_prediction(reply, record.required)), record.id
        assert record.required
        assert label_prediction("", record.required) == (0,) * len(record.required)


def test_three_published_false_answers_contain_the_true_ones(shared_data: Path) -> None:
    blurred = {
        name: [
            record.id
            for record in read_records(shared_data / "rgb" / f"{name}.jsonl").records
            if holds_the_true_one(record)
        ]
        for name in ("en_fact", "zh_fact")
    }
    assert blurred == {"en_fact": [], "zh_fact": ["zh_fact-0", "zh_fact-7", "zh_fact-82"]}
