"""RAGQuestEval: filters in their order, readable and unreadable replies, the file of gold questions."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import jieba
import pytest
from small_workspace import read_lines

from rallebench.core.errors import BadFileError
from rallebench.core.runs import RunResult
from rallebench.core.types import Episode, Json, Outcome, digest
from rallebench.metrics.judges import JudgeScorer
from rallebench.papers.crud import questing
from rallebench.papers.crud.judge import (
    UNKNOWN,
    Quest,
    QuestEntry,
    quest_scores,
    read_answers,
    read_questions,
)
from rallebench.papers.crud.records import TASKS, Record

FILES = ("QuestAnswer1Doc", "QuestAnswer2Docs", "QuestAnswer3Docs", "HalluModified")


@pytest.mark.parametrize(
    ("reference", "text", "code", "paper"),
    [
        (["北京", "3人"], ["北京", "3人"], (1.0, 1.0), (1.0, 1.0)),
        (["北京", UNKNOWN], [UNKNOWN, "上海"], (0.0, 0.0), (0.0, 0.0)),
        ([UNKNOWN], ["上海"], (0.0, 0.0), (0.0, 0.0)),
        (["北京", "上海"], ["北京", UNKNOWN], (1.0, 0.5), (0.5, 0.5)),
        (["北京", "上海", UNKNOWN], ["广州", "上海", "3人"], (0.5, 1.0), (0.5, 1.0)),
        (["", "北京"], ["", ""], (0.5, 1.0), (0.5, 1.0)),
        (["北京 。"], ["北京"], (0.5, 1.0), (0.5, 1.0)),
    ],
)
def test_the_filters_come_in_their_order(
    reference: list[str], text: list[str], code: tuple[float, float], paper: tuple[float, float]
) -> None:
    quests = quest_scores(reference, text), quest_scores(reference, text, over_all=True)
    assert [(quest.f1, quest.recall) for quest in quests] == [code, paper]


def test_missing_answers_matter_only_where_the_reference_answers() -> None:
    assert quest_scores(["北京", UNKNOWN], ["北京"]) == Quest(1.0, 1.0, 1, 1)
    with pytest.raises(IndexError):
        quest_scores([UNKNOWN, "北京"], ["北京"])


def as_published(reference: list[str], text: list[str]) -> tuple[float, float]:
    """The steps of the paper's code, written out."""
    pairs = [pair for pair in zip(reference, text) if pair[0] != UNKNOWN]
    answered = [pair for pair in pairs if pair[1] != UNKNOWN]
    if not answered:
        return 0.0, 0.0
    scores = []
    for pair in answered:
        left, right = (Counter(jieba.cut(words)) for words in pair)
        same = sum((left & right).values())
        if not left or not right:
            scores.append(float(left == right))
        elif not same:
            scores.append(0.0)
        else:
            precision, recall = same / sum(right.values()), same / sum(left.values())
            scores.append(2 * precision * recall / (precision + recall))
    return sum(scores) / len(scores), len(answered) / len(pairs)


@pytest.mark.shared_data
def test_on_the_published_questions_the_arithmetic_is_that_of_the_code(shared_data: Path) -> None:
    """A text with the answers of another record: overlaps, gaps and unanswerable questions in all combinations."""
    jieba.setLogLevel(60)
    seen: Counter[str] = Counter()
    tasks = {task.file: task for task in TASKS.values()}
    for name in FILES:
        entries = questing.read_published(str(shared_data / "crud"), tasks[name])
        rows = [list(entry["answers"]) for entry in entries.values() if entry["question"]][:60]
        for reference, other in zip(rows, rows[1:]):
            text = [
                own if i % 3 or not other else other[i % len(other)]
                for i, own in enumerate(reference)
            ]
            quest = quest_scores(reference, text)
            assert (quest.f1, quest.recall) == pytest.approx(as_published(reference, text))
            seen["partly"] += 0 < quest.recall < 1
            seen["overlapping"] += 0 < quest.f1 < 1
    assert min(seen.values()) > 0 and seen["overlapping"] > 50


@pytest.mark.shared_data
def test_published_files_are_read_with_empty_and_uneven_entries(shared_data: Path) -> None:
    counts: dict[str, tuple[int, int, int]] = {}
    for task in TASKS.values():
        published = questing.read_published(str(shared_data / "crud"), task)
        entries = [questing.find_entry(published, name, "", original=True) for name in published]
        sizes = [(len(entry.question), len(entry.answers or ())) for entry in entries if entry]
        empty = sum(not questions for questions, _ in sizes)
        uneven = sum(bool(questions) and questions != answers for questions, answers in sizes)
        counts[task.file] = len(entries), empty, uneven
    totals = dict.fromkeys(FILES[:3], 574) | {FILES[3]: 1445, "Summary": 0, "ContinueWriting": 0}
    assert {name: total for name, (total, *_) in counts.items()} == totals
    rows = {name: read_lines(shared_data / "crud" / f"quest_gold_{name}.jsonl") for name in FILES}
    assert counts[FILES[3]][1] == sum(row["empty"] for row in rows[FILES[3]]) > 400
    for name in FILES[:3]:
        uneven = sum(row["count_mismatch"] and bool(row["question"]) for row in rows[name])
        assert counts[name][2] == uneven > 0


def test_questions_are_found_among_prose_and_only_bare_json_is_strict() -> None:
    questions = {"key_info": ["甲"], "question": ["谁？"]}
    entry = QuestEntry(("谁？",), ("甲",))
    assert entry.to_json() == questions
    text = json.dumps(questions, ensure_ascii=False)
    assert read_questions(f'想一想 {{"a": 1}}：\n```json\n{text}\n```') == entry
    assert read_questions(text, strict=True) == entry
    assert read_questions(f"好的：{questions}") == entry, "in Python's notation"
    assert read_questions(f"好的 {text}", strict=True) is None
    unreadable = ("", "没有问题", '{"question": []}', '{"question": "谁？"}', '{"question": [1]}')
    for reply in (*unreadable, "{" * 50, "[" * 100_000):
        assert read_questions(reply) is None


def test_as_many_answers_as_questions_or_none_can_be_read() -> None:
    reply = "<response>\n北京\n</response>\n<response>“无法推断”。</response>"
    assert read_answers(reply, 2) == ("北京", UNKNOWN)
    assert read_answers(reply, 3) is None
    assert read_answers("北京", 1) is None
    assert read_answers(reply, 3, strict=True) == ("北京",), "tags on lines of their own"


def test_an_entry_of_another_reference_is_none_and_stays_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "crud" / "quest_gold_QuestAnswer1Doc.json"
    published: dict[str, Json] = {
        "a": {"question": [], "answers": []},
        "b": {"question": ["谁？"], "answers": ["甲", "乙"]},
    }
    assert all(questing.find_entry(published, record, "甲") is None for record in "ab")
    uneven = questing.find_entry(published, "b", "甲", original=True)
    assert uneven is not None and uneven.answers == ("甲", "乙")
    judge = JudgeScorer("ragquesteval:judge", ("judge",), (), {}, lambda *_: None, lambda *_: {})
    questions = {"key_info": ["甲"], "question": ["谁？"], "answers": ["甲"]}
    judgement = Episode("", "", (), Outcome(json.dumps(questions)))

    def store(known: dict[str, Json], record: Record) -> dict[str, Json]:
        answered = SimpleNamespace(judgements={judge.name: {record.id: judgement}})
        judging = questing.Judging(judge, file, known, {record.id: None})
        questing.store_questions(judging, [record], cast(RunResult, answered))
        return questing.read_cache(file)

    stored = store(published, Record("a", {}, "甲"))
    new = {**questions, "reference": digest("甲"), "llm": "judge"}
    assert stored == {**published, f"a {digest('甲')[:8]}": new}
    assert questing.find_entry(stored, "a", "甲") == QuestEntry(("谁？",), answers=("甲",))
    assert questing.find_entry(stored, "a", "乙") is None
    other = {"a": {"question": ["?"], "answers": ["!"]}}
    assert store(other, Record("c", {}, "甲")) == {**stored, "c": new}, "what is there stays"
    file.write_text("[]")
    with pytest.raises(BadFileError, match="from record ids to questions"):
        questing.read_cache(file)
    assert questing.read_published(str(tmp_path), TASKS["qa1"]) == {}
