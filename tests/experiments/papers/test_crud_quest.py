"""RAGQuestEval: filters in their order, replies that can and cannot be read, the file of gold questions."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import jieba
import pytest

from rallebench.core.errors import BadFileError
from rallebench.core.types import digest
from rallebench.experiments.papers.crud import questing
from rallebench.experiments.papers.crud.records import TASKS
from rallebench.metrics.judges.ragquesteval import (
    UNKNOWN,
    Quest,
    answers_in,
    quest_scores,
    questions_in,
)

FILES = ("QuestAnswer1Doc", "QuestAnswer2Docs", "QuestAnswer3Docs", "HalluModified")


@pytest.mark.parametrize(
    ("wanted", "said", "code", "paper"),
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
    wanted: list[str], said: list[str], code: tuple[float, float], paper: tuple[float, float]
) -> None:
    found = quest_scores(wanted, said), quest_scores(wanted, said, over_all=True)
    assert [(one.f1, one.recall) for one in found] == [code, paper]


def test_missing_answers_matter_only_where_the_reference_answers() -> None:
    assert quest_scores(["北京", UNKNOWN], ["北京"]) == Quest(1.0, 1.0, 1, 1)
    with pytest.raises(IndexError):
        quest_scores([UNKNOWN, "北京"], ["北京"])


def plainly(wanted: list[str], said: list[str]) -> tuple[float, float]:
    """The steps as the paper's code takes them, written out."""
    kept = [i for i, one in enumerate(wanted) if one != UNKNOWN]
    theirs, ours = [wanted[i] for i in kept], [said[i] for i in kept]
    if not ours:
        return 0.0, 0.0
    recall = 1 - ours.count(UNKNOWN) / len(ours)
    pairs = [(a, b) for a, b in zip(theirs, ours) if b != UNKNOWN]
    if not pairs:
        return 0.0, 0.0
    scores = []
    for one, other in pairs:
        left, right = Counter(jieba.cut(one)), Counter(jieba.cut(other))
        same = sum((left & right).values())
        if not left or not right:
            scores.append(float(left == right))
        elif not same:
            scores.append(0.0)
        else:
            precision, recall_ = same / sum(right.values()), same / sum(left.values())
            scores.append(2 * precision * recall_ / (precision + recall_))
    return sum(scores) / len(scores), recall


@pytest.mark.shared_data
def test_on_the_published_questions_the_arithmetic_is_that_of_the_code(shared_data: Path) -> None:
    """A text that gives every other record's answers: overlaps, gaps, unanswerable ones in all combinations."""
    jieba.setLogLevel(60)
    seen: Counter[str] = Counter()
    for name in FILES:
        entries = questing.read_published(
            str(shared_data / "crud"), next(t for t in TASKS.values() if t.file == name)
        )
        rows = [
            (tuple(e["question"]), list(e["answers"])) for e in entries.values() if e["question"]
        ][:60]
        for (questions, wanted), (_, other) in zip(rows, rows[1:]):
            said = (
                [one if i % 3 else other[i % len(other)] for i, one in enumerate(wanted)]
                if other
                else wanted
            )
            found = quest_scores(wanted, said)
            assert (found.f1, found.recall) == pytest.approx(plainly(wanted, said))
            seen["unequal"] += len(questions) != len(wanted)
            seen["partly"] += 0 < found.recall < 1
            seen["overlapping"] += 0 < found.f1 < 1
    assert min(seen.values()) > 0 and seen["overlapping"] > 50


@pytest.mark.shared_data
def test_the_published_files_are_read_with_their_empty_and_uneven_entries(
    shared_data: Path,
) -> None:
    counts: dict[str, Any] = {}
    for task in TASKS.values():
        entries = questing.read_published(str(shared_data / "crud"), task)
        found = [questing.entry_for(entries, name, "", original=True) for name in entries]
        counts[task.name] = (
            len(found),
            sum(not f["question"] for f in found if f),
            sum(
                bool(f["question"]) and len(f["question"]) != len(f["answers"]) for f in found if f
            ),
        )
    assert {name: n for name, (n, *_) in counts.items()} == {
        "summary": 0,
        "continuation": 0,
        "hallucination": 1445,
        "qa1": 574,
        "qa2": 574,
        "qa3": 574,
    }
    lines = (
        (shared_data / "crud" / "quest_gold_HalluModified.jsonl")
        .read_text(encoding="utf-8")
        .splitlines()
    )
    assert counts["hallucination"][1] == sum(json.loads(line)["empty"] for line in lines) > 400
    for name, file in (("qa1", FILES[0]), ("qa2", FILES[1]), ("qa3", FILES[2])):
        rows = [
            json.loads(line)
            for line in (shared_data / "crud" / f"quest_gold_{file}.jsonl")
            .read_text(encoding="utf-8")
            .splitlines()
        ]
        assert (
            counts[name][2]
            == sum(row["count_mismatch"] and bool(row["question"]) for row in rows)
            > 0
        )


def test_questions_are_found_among_prose_and_only_bare_json_is_strict() -> None:
    wanted = {"key_info": ["甲"], "question": ["谁？"]}
    text = json.dumps(wanted, ensure_ascii=False)
    assert questions_in(f'想一想 {{"a": 1}}：\n```json\n{text}\n```') == wanted
    assert questions_in(f'<think>{{"question": ["旧？"]}}</think>{text}') == wanted
    assert questions_in(text, strict=True) == wanted
    assert questions_in(f"好的 {text}", strict=True) is None
    for reply in (
        "",
        "没有问题",
        '{"question": []}',
        '{"question": "谁？"}',
        '{"question": [1]}',
        "{" * 50,
        "[" * 100_000,
    ):
        assert questions_in(reply) is None


def test_as_many_answers_as_questions_or_none_can_be_read() -> None:
    reply = "<response>\n北京\n</response>\n<response>“无法推断”。</response>"
    assert answers_in(reply, 2) == ("北京", UNKNOWN)
    assert answers_in(reply, 3) is None
    assert answers_in("北京", 1) is None
    assert answers_in(reply, 3, strict=True) == ("北京",), (
        "the original wants the tags on lines of their own"
    )


def test_an_entry_of_another_reference_or_without_use_is_none(tmp_path: Path) -> None:
    task, path = TASKS["qa1"], tmp_path / "crud" / "quest_gold_QuestAnswer1Doc.json"
    published: dict[str, questing.Entry] = {
        "a": {"question": [], "answers": []},
        "b": {"question": ["谁？"], "answers": ["甲", "乙"]},
    }
    assert all(questing.entry_for(published, record, "甲") is None for record in "ab")
    uneven = questing.entry_for(published, "b", "甲", original=True)
    assert uneven is not None and uneven["answers"] == ["甲", "乙"]
    made = {"key_info": ["甲"], "question": ["谁？"], "answers": ["甲"]}
    new = questing.new_entry(published, "a", "甲", made, "judge")
    questing.add_entries(path, {**published, **new})
    kept = questing.read_cache(path)
    assert kept[f"a {digest('甲')[:8]}"] == {**made, "reference": digest("甲"), "llm": "judge"}
    assert questing.entry_for(kept, "a", "甲") == {"question": ["谁？"], "answers": ["甲"]}
    assert questing.entry_for(kept, "a", "乙") is None
    questing.add_entries(path, {"a": {"question": ["?"], "answers": ["!"]}, "c": made})
    assert questing.read_cache(path) == {**kept, "c": made}, "what is there stays"
    path.write_text("[]")
    with pytest.raises(BadFileError, match="from record ids to questions"):
        questing.read_cache(path)
    assert questing.read_published(str(tmp_path), task) == {}
