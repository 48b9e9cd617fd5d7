"""Datasets as values: by name, by path, or from a list."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_workspace import QUESTIONS, RECORDS, write_lines

from rallebench import Dataset, RalleError, Workspace, load_dataset


def test_a_dataset_is_read_by_name_or_path_and_is_a_sequence(workspace: Path) -> None:
    with Workspace(workspace) as ws:
        tiny = ws.dataset("tiny-qa")
    by_path = load_dataset(workspace / "datasets" / "tiny-qa.jsonl")
    assert tiny.examples == by_path.examples and len(tiny) == len(QUESTIONS)
    assert [e.question.qid for e in tiny] == [row[0] for row in QUESTIONS]
    assert tiny[1].gold.answers == ("Triton",)
    assert isinstance(tiny[:3], Dataset) and len(tiny[:3]) == 3


def test_a_list_may_hold_texts_records_and_examples(workspace: Path) -> None:
    first = load_dataset([RECORDS[0]])[0]
    mixed = load_dataset(
        [
            "Which moon?",
            {"question": "Which sea?", "answers": ["Black Sea"], "page_id": "p4"},
            first,
        ],
        name="mixed",
    )
    assert [e.question.qid for e in mixed] == ["1", "2", "q1"] and mixed.name == "mixed"
    assert [e.gold.answers for e in mixed] == [(), ("Black Sea",), ("Titan",)]
    assert mixed[1].gold.pages == {"p4"}


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ([], "There are no questions in the list"),
        (["Who?", " "], "Question 2 has an empty 'input'"),
        ([{"text": "Who?"}], "Question 1 has no 'question'"),
        ([3], "Question 1 is of the type int"),
        (
            [{"id": "a", "question": "Who?"}, {"id": "a", "question": "Where?"}],
            "Question 2 repeats the id 'a'",
        ),
        ([{"input": "Who?", "output": 3}], "'output' should be a list"),
    ],
)
def test_a_bad_question_is_named_by_its_number(values: list[object], sentence: str) -> None:
    with pytest.raises(RalleError, match=sentence):
        load_dataset(values)  # type: ignore[arg-type]


def test_an_unknown_name_or_bad_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(RalleError, match="starter-qa"):
        load_dataset("starter-aq")
    with pytest.raises(RalleError, match=r"absent\.jsonl"):
        load_dataset(tmp_path / "absent.jsonl")
    with pytest.raises(RalleError, match="line 1"):
        load_dataset(write_lines(tmp_path / "bad.jsonl", [{"input": 3}]))


def test_a_dataset_is_shown_as_a_table_and_becomes_a_data_frame() -> None:
    hostile = load_dataset([{"question": "<b>Who</b>?", "answers": ["<i>me</i>"]}], name="<u>")
    assert "&lt;b&gt;Who" in hostile._repr_html_() and "<b>Who" not in hostile._repr_html_()
    frame = hostile.to_pandas()
    assert frame.loc["1", "question"] == "<b>Who</b>?" and frame.loc["1", "answers"] == (
        "<i>me</i>",
    )
    assert repr(load_dataset(["a?"] + [f"{n}?" for n in range(20)])).endswith(
        "The first 10 are shown."
    )
