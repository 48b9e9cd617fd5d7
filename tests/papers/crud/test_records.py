"""CRUD-RAG's records: both forms of file, the reasons for leaving records out, the query for the retriever."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from rallebench.core.errors import RalleError, UsageError
from rallebench.papers.crud.records import FAILED, TASKS, find_tasks, read_tasks

QA = {
    "ID": "a",
    "questions": "谁夺冠？",
    "answers": "巩立姣",
    "news1": "2023-07-28，正文：巩立姣在女子铅球比赛中夺冠，这是她本赛季的第三个冠军。",
}
HALLU = {
    "ID": "h",
    "newsBeginning": "水厂通水。",
    "hallucinatedContinuation": "投资4亿元。",
    "hallucinatedMod": "投资2亿元。",
}


def write_content(path: Path, content: Any, lines: bool = False) -> Path:
    text = "".join(json.dumps(row) + "\n" for row in content) if lines else json.dumps(content)
    path.write_text(text, encoding="utf-8")
    return path


def test_the_six_lists_of_cruds_file_are_read(tmp_path: Path) -> None:
    rows = {
        "event_summary": [{"ID": 1, "event": "通水", "summary": "水厂通水。"}],
        "continuing_writing": [{"ID": 2, "beginning": "水厂", "continuing": "通水。"}],
        "hallu_modified": [HALLU],
        **{f"questanswer_{n}doc{'s' * (n > 1)}": [QA] for n in (1, 2, 3)},
    }
    data = write_content(tmp_path / "split_merged.json", rows)
    for place in (data, tmp_path):
        sets = read_tasks(place, find_tasks("all"))
        assert set(sets) == set(TASKS)
        assert {(of.total, len(of.records)) for of in sets.values()} == {(1, 1)}
        (record,) = sets["summary"].records
        assert (record.id, record.reference) == ("1", "水厂通水。")


@pytest.mark.parametrize("name", ["mine.jsonl", "mine.json"])
def test_one_tasks_records_are_read_as_json_and_as_json_lines(tmp_path: Path, name: str) -> None:
    data = write_content(tmp_path / name, [QA], lines=name.endswith("l"))
    (record,) = read_tasks(data, (TASKS["qa1"],))["qa1"].records
    assert record.values == {"question": "谁夺冠？"}
    assert record.gold[0].text.startswith("2023-07-28")


def test_what_cannot_be_asked_or_scored_is_left_out_and_named(tmp_path: Path) -> None:
    failed, blank = (
        {**HALLU, "ID": n, "hallucinatedMod": t} for n, t in (("x", FAILED), ("y", " "))
    )
    rows = [HALLU, failed, blank, HALLU, {"newsBeginning": "?"}, 7]
    path = write_content(tmp_path / "hallucination.json", rows)
    (records,) = read_tasks(path, (TASKS["hallucination"],)).values()
    assert [record.id for record in records.records] == ["h"] and records.total == 6
    assert records.left_out == {
        "have a failed request's text for a reference": ("x",),
        "have no hallucinatedMod": ("y",),
        "have an id that another record had before": ("h",),
        "have no ID": ("record 5",),
        "are not objects": ("record 6",),
    }


def test_gold_ids_go_before_gold_texts_and_lists_of_texts_are_lines(tmp_path: Path) -> None:
    rows = [{**QA, "questions": ["谁？", "何时？"], "auto_gold_doc_ids": [7, 8]}]
    (record,) = read_tasks(write_content(tmp_path / "qa1.json", rows), (TASKS["qa1"],))[
        "qa1"
    ].records
    assert record.values["question"] == "谁？\n何时？"
    assert [set(document.ids) for document in record.gold] == [{"7"}, {"8"}]


@pytest.mark.parametrize(
    ("content", "tasks", "sentence"),
    [
        ([QA], "qa1,qa2", "holds the records of one task, but 2 were asked for"),
        ({"event_summary": []}, "qa1", "holds no list 'questanswer_1doc'; it holds event_summary"),
        ({"event_summary": []}, "qa1,qa2", "it holds event_summary"),
        ([{"ID": "a"}], "qa1", "no usable record of questanswer_1doc (1 have no questions)"),
        ([], "qa1", "the list is empty"),
        ("text", "qa1", "should hold an object with CRUD-RAG's lists"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, content: Any, tasks: str, sentence: str) -> None:
    with pytest.raises(RalleError, match=re.escape(sentence)):
        read_tasks(write_content(tmp_path / "x.json", content), find_tasks(tasks))


def test_tasks_have_cruds_names_too_and_unknown_ones_are_refused() -> None:
    expected = ["hallucination", "qa2"]
    assert [task.name for task in find_tasks("QuestAnswer2Docs,hallu_modified")] == expected
    with pytest.raises(UsageError, match="Did you mean 'qa1'"):
        find_tasks("qa11")
    with pytest.raises(UsageError, match="at least one task"):
        find_tasks(" ,")
