"""What a prediction is worth by RGB's rules, every branch; what the judges say; RGB's own files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rallebench.core.prompts import filled, prompt_text
from rallebench.core.types import Flow, Generate, Message, Outcome, Passage, Question, Reply
from rallebench.experiments.papers.common import json_lines
from rallebench.experiments.papers.rgb import scoring
from rallebench.experiments.papers.rgb.documents import Documents
from rallebench.experiments.papers.rgb.records import RgbRecord, read_records, required_of
from rallebench.experiments.papers.rgb.robustness import holds_the_true_one
from rallebench.experiments.papers.rgb.testing import (
    Prompt,
    answering,
    messages,
    read_prompt,
)
from rallebench.metrics import METRICS
from rallebench.metrics.judges import Case
from rallebench.metrics.judges.rgb import verdict_on_errors, verdict_on_rejection
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
    assert scoring.labels_of(scoring.as_scored(prediction, language), required_of(answer)) == labels


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
    assert scoring.counts(labels, 0.8) is right is scoring.is_right(labels)
    assert scoring.counts(labels, 1.0) is at_noise_1
    expected = (corrects, corrects_originally)
    assert (scoring.corrects(labels), scoring.corrects(labels, original=True)) == expected


def test_errors_are_found_by_rgbs_words_in_both_languages() -> None:
    texts = {
        ERRORS: True,
        "提供文档的文档存在事实性错误。": True,
        "Factual errors? None.": False,
        "": False,
    }
    assert {text: scoring.assess(text, (), "en").errors for text in texts} == texts


# prompts


def test_the_shipped_prompts_hold_the_sentences_that_are_looked_for() -> None:
    english, chinese = read_prompt("en"), read_prompt("zh")
    assert REFUSAL in english.system and ERRORS in english.system
    assert "文档信息不足，因此我无法基于提供的文档回答该问题。" in chinese.system
    assert "提供文档的文档存在事实性错误。" in chinese.system
    assert english.user == "Document:\n{DOCS} \n\nQuestion:\n{QUERY}"
    assert chinese.user == "文档：\n{DOCS} \n\n问题：\n{QUERY}"


PROMPT = Prompt("Be true.", "Document:\n{DOCS} \n\nQuestion:\n{QUERY}")
ASKED = Question("1", "who?", (Passage("d1", "one {QUERY}"), Passage("d2", "two")))
SENT = "Document:\none {QUERY}\ntwo \n\nQuestion:\nwho?"


def test_documents_are_joined_by_line_ends_and_what_they_hold_in_braces_stays() -> None:
    assert messages(PROMPT, ASKED) == (Message("system", "Be true."), Message("user", SENT))


def test_a_model_without_a_system_role_gets_both_in_one_with_a_blank_line_between() -> None:
    assert messages(Prompt("Be true.", PROMPT.user, True), ASKED) == (
        Message("user", f"Be true.\n\n{SENT}"),
    )


def test_without_documents_the_system_text_is_not_sent() -> None:
    assert messages(PROMPT, Question("1", "who?")) == (
        Message("user", "Document:\n \n\nQuestion:\nwho?"),
    )


def test_prompts_of_ones_own_stand_in_for_the_shipped_ones(tmp_path: Path) -> None:
    (tmp_path / "system-en.txt").write_text("Mine.\n")
    assert read_prompt("en", str(tmp_path)) == Prompt("Mine.", read_prompt("en").user)
    (tmp_path / "user-en.txt").write_text("{QUERY}")
    with pytest.raises(Exception, match=r"lacks \{DOCS\}"):
        read_prompt("en", str(tmp_path))


def played(flow: Flow, text: str) -> tuple[Generate, Outcome]:
    request = next(flow)
    assert isinstance(request, Generate)
    with pytest.raises(StopIteration) as ended:
        flow.send(Reply(text))
    return request, ended.value.value


DECODING = {"temperature": 0.7, "top_p": 0.8, "max_tokens": 256, "seed": 0}


def test_the_flow_asks_once_with_rgbs_settings_and_shows_readers_the_documents() -> None:
    request, outcome = played(answering(ASKED, "llm", PROMPT, DECODING), "Ada")
    sent = (request.temperature, request.max_tokens, request.seed, request.options)
    assert sent == (0.7, 256, 0, {"top_p": 0.8})
    assert request.evidence is not None and request.evidence.passages == ASKED.passages
    assert outcome == Outcome("Ada")


# judges


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        ("No, the question is not addressed by the documents.", True),
        ("Yes, the question is addressed by the documents.", False),
        ("Yes.", False),
        ("Yesterday, perhaps", None),
        ("No.", None),
        ("", None),
    ],
)
def test_a_rejection_is_what_is_not_addressed(said: str, verdict: bool | None) -> None:
    assert verdict_on_rejection(said) is verdict


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        ("Yes, the model has identified the factual errors.", True),
        ("The model has identified an error.", True),
        ("No, the model fails to identify the factual errors.", False),
        ("It has not identified them.", False),
        ("Note that this is hard.", None),
    ],
)
def test_errors_are_noticed_where_the_judge_says_has_identified_or_yes(
    said: str, verdict: bool | None
) -> None:
    assert verdict_on_errors(said) is verdict


def test_the_judges_prompts_hold_their_demonstrations_and_read_as_they_say() -> None:
    shown = {
        kind: prompt_text("suites/rgb", f"judge-{kind}.txt", "", fields)
        for kind, fields in (("rejection", ("question", "answer")), ("errors", ("answer",)))
    }
    readers = {"rejection": verdict_on_rejection, "errors": verdict_on_errors}
    verdicts = {
        kind: [readers[kind](line) for line in text.split("\n") if line.startswith(("Yes,", "No,"))]
        for kind, text in shown.items()
    }
    assert verdicts == {
        "rejection": [True, False, True, False],
        "errors": [True, False, True, False, False],
    }
    questions = [line for line in shown["rejection"].split("\n") if line.startswith("Question: ")][
        :4
    ]
    assert sum(line.isascii() for line in questions) == 2
    assert shown["rejection"].endswith("Question: {question}\nAnswer: {answer}")
    assert "{question}" not in shown["errors"]


def test_a_verdict_that_cannot_be_read_is_no_verdict() -> None:
    def judging() -> Flow:
        return METRICS["rgb-rejection"](
            Case("who?", "Ada"), llm="llm", prompt="{question} {answer}"
        )

    request, outcome = played(judging(), "Hm.")
    assert request.messages[0].content == "who? Ada"
    assert (outcome.answer, outcome.stop_reason) == ("", "unparsed")
    assert played(judging(), "not addressed")[1].answer == "yes"


def test_a_judge_of_errors_sees_the_answer_alone() -> None:
    judging = METRICS["rgb-errors"](Case("who?", "Ada"), llm="llm", prompt="judge: {answer}")
    request, outcome = played(judging, "No.")
    assert request.messages[0].content == "judge: Ada" and outcome.answer == "no"


# files


def row(label: list[int], found: int = 0) -> dict[str, Any]:
    return {"label": label, "factlabel": found}


def test_results_count_as_rgb_counts() -> None:
    rows = [row([1, 1]), row([1, 0]), row([-1]), row([0])]
    result = {"all_rate": 0.25, "noise_rate": 0.2, "tt": 1, "nums": 4}
    assert scoring.result_of(rows, 0.2, False) == result
    assert scoring.result_of(rows, 1.0, False)["tt"] == 2


def test_of_facts_a_rejection_that_found_errors_passes_as_corrected_in_rgbs_own_file() -> None:
    rows = [row([1], 1), row([-1], 1), row([0], 1), row([1])]
    found = scoring.result_of(rows, 0.0, True)
    assert (found["fact_check_rate"], found["fact_tt"], found["correct_tt"]) == (0.75, 3, 2)
    assert found["correct_rate"] == 2 / 3
    assert scoring.result_of([row([1])], 0.0, True)["correct_rate"] == 0


def test_rows_are_rgbs_and_are_used_again_where_id_query_and_answer_match(tmp_path: Path) -> None:
    record = RgbRecord("7", "who?", ["Ada"], (("Ada",),))
    documents = Documents((("positive", "Ada was there."),))
    written = scoring.row_of(record, documents, 0.2, scoring.assess("Ada", record.required, "en"))
    keys = ["id", "query", "ans", "label", "prediction", "docs", "noise_rate", "factlabel"]
    assert list(written) == keys
    (tmp_path / "p.json").write_text(json_lines([written, {**written, "id": 8}]))
    rows = scoring.read_rows(tmp_path / "p.json")
    assert json.loads(json.dumps(written)) == rows["7"] and set(rows) == {"7", "8"}
    assert scoring.fits(rows["7"], record, documents, original=False)
    assert not scoring.fits(None, record, documents, False)
    others = Documents((("positive", "else"),))
    assert scoring.fits(rows["7"], record, others, original=True)
    assert not scoring.fits(rows["7"], record, others, False)
    assert not scoring.fits({**written, "query": "whom?"}, record, documents, True)
    assert not scoring.fits({**written, "ans": "Ada"}, record, documents, True)
    assert scoring.read_rows(tmp_path / "absent.json") == {}


def test_braces_in_an_answer_are_not_filled() -> None:
    assert filled("{a} {b}", {"a": "{b}", "b": "1"}) == "{b} 1"


@pytest.mark.parametrize("name", ["en_fact", "zh_fact", "zh_int", "zh_refine"])
def test_published_answers_are_right_by_any_alias_and_an_empty_reply_is_wrong(
    shared_data: Path, name: str
) -> None:
    found = read_records(shared_data / "rgb" / f"{name}.jsonl")
    for record in found.records:
        for pick in (0, -1):
            said = scoring.as_scored(
                " und ".join(group[pick].upper() for group in record.required), found.language
            )
            if found.language == "en" or not any(" " in group[pick] for group in record.required):
                assert scoring.is_right(scoring.labels_of(said, record.required)), record.id
        assert scoring.labels_of("", record.required) == (0,) * len(record.required)
        assert record.required


def test_three_published_false_answers_contain_the_true_one_and_are_named(
    shared_data: Path,
) -> None:
    found = {
        name: read_records(shared_data / "rgb" / f"{name}.jsonl").records
        for name in ("en_fact", "zh_fact")
    }
    taken = {
        name: [r.id for r in records if holds_the_true_one(r)] for name, records in found.items()
    }
    assert taken == {"en_fact": [], "zh_fact": ["zh_fact-0", "zh_fact-7", "zh_fact-82"]}
