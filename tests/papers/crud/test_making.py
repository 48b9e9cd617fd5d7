"""CRUD-RAG's tasks from the user's articles: halves, one wrong fact, questions about several articles; unusable rows are
counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from performing import build
from small_workspace import scripted

from rallebench.core.errors import UsageError
from rallebench.core.experiments import ExperimentResult
from rallebench.experiments import BUILDERS
from rallebench.papers.crud import builder as crud
from rallebench.papers.crud.builder_texts import groups, halves, is_changed, opening
from rallebench.papers.crud.records import TASKS, find_tasks, read_tasks
from rallebench.workspace.paths import WorkspaceFolder

FIRST = "临江市城东水厂二期工程九月十四日通水。该工程总投资2.4亿元，日供水能力30万吨。"
REST = "工程惠及城东片区约50万居民。水务局表示，三期工程将于明年开工建设。"
ARTICLES = {
    "water": FIRST + REST,
    "water2": "临江市水务局介绍，城东水厂二期工程采用了新的净水工艺。当地居民说，水质比过去好了很多。三期工程的选址已经确定。",
    "bus": "青禾市首条无人驾驶公交线路正式开通。线路全长12公里，设站9座。试运营期间市民可以免费乘坐。",
    "short": "三个字。",
    "huge": "这一句话说的是同一件事情。" * 60_000,
    "water3": FIRST + REST,
}
REPLIES = {
    r"事件名称（不超过[\s\S]*净水工艺": "抱歉，我不能完成这个任务。",
    "事件名称（不超过": '好的：```json\n{"event": "水厂通水", "summary": "水厂通水了。"}\n```',
    "新闻开头：临江市城东": json.dumps(
        {"changed": "该工程总投资4.2亿元，日供水能力30万吨。" + REST, "error": "投资"},
        ensure_ascii=False,
    ),
    "改写续写": '{"changed": "完全不同的一段话"}',
    "相互关联": '先想一想。{"event": "水厂", "question": "水厂二期用了什么工艺，惠及多少人？", "answer": "新的净水工艺，约50万居民"}',
    r"提出一个问题[\s\S]*公交": '{"question": "线路多长？", "answer": "我不知道"}',
    "提出一个问题": '{"question": "水厂二期投资多少？", "answer": "2.4亿元", "event": "通水"}',
}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    (folder / "articles").mkdir(parents=True)
    for name, text in ARTICLES.items():
        (folder / "articles" / f"{name}.txt").write_text(text, encoding="utf-8")
    (folder / "articles" / "bad.pdf").write_bytes(b"no pdf")
    models = scripted({"writes": {"replies": REPLIES}, "mute": {"default": "不。"}})
    (folder / "llms.json").write_text(json.dumps(models), encoding="utf-8")
    return folder


def build_tasks(
    workspace: Path, name: str = "own", llm: str = "writes", **settings: Any
) -> ExperimentResult:
    given = BUILDERS.settings("crud", {"shortest": 20, **settings})
    return build(WorkspaceFolder(workspace), "crud", name, given, str(workspace / "articles"), llm)


def test_all_tasks_are_made_and_read_by_the_suites_as_they_are(workspace: Path) -> None:
    done = build_tasks(workspace)
    expected = {"summary": 3, "continuation": 4, "hallucination": 1, "qa1": 3, "qa2": 1, "qa3": 0}
    assert done.stored.records == expected
    stages = done.stored.stages
    assert stages["1-articles"].left_out == {"too short": 1, "same text": 1, "cannot be read": 1}
    assert any("bad.pdf is not a PDF" in note for note in done.report.notes)
    assert stages["2-summary"].unknown == 1
    assert stages["4-hallucination"].left_out == {"not the text with one change": 3}
    assert stages["5-qa1"].left_out == {"no answer": 1}
    assert any("qa3: no 3 articles share" in note for note in done.report.notes)
    found = read_tasks(done.folder, find_tasks("summary,continuation,hallucination,qa1,qa2"))
    (hallucination,) = found["hallucination"].records
    assert "2.4亿元" in hallucination.reference
    assert "4.2亿元" in hallucination.values["hallucination"]
    (pair,) = found["qa2"].records
    assert [sorted(one.ids) for one in pair.gold] == [["water.txt"], ["water2.txt"]]
    lines = (workspace / "datasets" / "own.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 4
    expected = [{"wikipedia_id": "water.txt"}, {"wikipedia_id": "water2.txt"}]
    assert json.loads(lines[-1])["output"][0]["provenance"] == expected


def test_a_row_that_a_person_edited_stays_and_nothing_is_asked_twice(workspace: Path) -> None:
    folder = build_tasks(workspace, tasks="qa1").folder
    path = folder / "2-qa1.jsonl"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("水厂二期投资多少？", "二期工程投资几何？", 1), encoding="utf-8")
    counts = build_tasks(workspace, tasks="qa1").stored.stages["2-qa1"]
    assert (counts.edited, counts.new) == (1, 0)
    records = read_tasks(folder, (TASKS["qa1"],))["qa1"].records
    assert "二期工程投资几何？" in {record.values["question"] for record in records}


def test_the_mark_of_an_annotator_is_in_no_record() -> None:
    row = {"id": "1", "questions": "Where?", "answers": "Here.", "articles": ["a"], "checked": True}
    assert crud._record(row).keys() == {"ID", "questions", "answers", "gold_doc_ids"}


def test_a_model_that_refuses_makes_no_record_and_halves_need_none(workspace: Path) -> None:
    refused = build_tasks(workspace, llm="mute", tasks="summary,qa1")
    assert refused.stored.records == {"summary": 0, "qa1": 0}
    assert refused.stored.stages["3-qa1"].unknown == 4
    halved = build_tasks(workspace, "halves", llm="", tasks="continuation")
    assert halved.stored.records == {"continuation": 4}


def test_without_a_model_what_needs_one_is_refused_before_any_writing(workspace: Path) -> None:
    with pytest.raises(UsageError, match="written by a language model"):
        build_tasks(workspace, llm="")
    assert not (workspace / "experiments").exists()


def test_texts_are_cut_between_sentences_only() -> None:
    assert halves(FIRST + REST) == (FIRST, REST)
    assert halves("没有句号的一段话说了很久很久也没有停下来") is None
    smith = "Mr. Smith came at 3.5 in the morning. No one saw him leave the house again."
    first, second = halves(smith) or ("", "")
    assert first.endswith("morning.") and second.startswith("No one")
    first, second = opening(FIRST + REST) or ("", "")
    assert (first + second) == (FIRST + REST)[: len(first + second)]
    assert opening("一句话而已。") is None


def test_articles_belong_together_by_rare_words_and_each_to_one_group() -> None:
    texts = {name: ARTICLES[name] for name in ("water", "bus", "water2")}
    assert groups(texts, 2) == [("water", "water2")]
    assert groups(texts, 4) == []
    assert groups({}, 2) == []
    assert is_changed(FIRST.replace("2.4", "4.2"), FIRST) and not is_changed(FIRST, FIRST)
