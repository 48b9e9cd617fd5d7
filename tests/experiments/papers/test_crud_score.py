"""``score --suite crud``: results in CRUD-RAG's form, whoever wrote them, scored by CRUD-RAG's rules."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from small_workspace import CommandLine


def row(qid: Any, said: str, wanted: str = "北京和上海", **more: Any) -> dict[str, Any]:
    """A result as CRUD-RAG writes it."""
    return {
        "id": qid,
        "metrics": {"bleu-avg": 1.0},
        "log": {"generated_text": said, "ground_truth_text": wanted, **more},
        "valid": True,
    }


@pytest.fixture
def rallebench(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> CommandLine:
    return CommandLine(capfd, tmp_path / "workspace")


def written(path: Path, rows: Any, task: str = "QuestAnswer1Doc") -> Path:
    path.write_text(
        json.dumps(
            {"info": {"task": task, "llm": "theirs"}, "overall": {}, "results": rows},
            ensure_ascii=False,
        )
    )
    return path


def values(found: Any) -> dict[str, Any]:
    return {name: (mean["value"], mean["n"]) for name, mean in found["metrics"].items()}


def test_texts_are_scored_anew_and_numbers_that_differ_are_counted(
    rallebench: CommandLine, tmp_path: Path
) -> None:
    guess = written(tmp_path / "r.json", [row("a", "北京和上海"), row("b", "广州"), row("c", " ")])
    found = rallebench.json("score", "--suite", "crud", "--guess", guess)
    expected = ("QuestAnswer1Doc", 3, 1, {"bleu-avg": 2})
    assert (found["task"], found["n"], found["invalid"], found["differ"]) == expected
    assert values(found)["rouge-L"] == (0.5, 2) and values(found)["length"] == (3.5, 2)
    assert "1 of 3 rows have no text" in found["notes"][0] and "QA_recall" not in found["metrics"]


def test_questions_are_scored_where_their_answers_were_kept(
    rallebench: CommandLine, tmp_path: Path
) -> None:
    kept = {
        "questions_gt": ["a?", "b?", "c?"],
        "answers_gt4gt": ["北京", "无法推断", "上海"],
        "answers_gm4gt": ["北京", "天津", "无法推断"],
    }
    guess = written(
        tmp_path / "r.json",
        [
            row(1, "北京", quest_eval_save=kept),
            row(2, "北京", quest_eval_save={"questions_gt": []}),
        ],
    )
    found = values(rallebench.json("score", "--suite", "crud", "--guess", guess))
    assert found["QA_recall"] == (0.5, 1) and found["QA_avg_F1"] == (1.0, 1)


def test_a_reference_that_answers_nothing_scores_0_and_missing_answers_leave_their_row_out(
    rallebench: CommandLine, tmp_path: Path
) -> None:
    right = {"questions_gt": ["谁？"], "answers_gt4gt": ["北京"], "answers_gm4gt": ["北京"]}
    silent = {"questions_gt": ["谁？"], "answers_gt4gt": [], "answers_gm4gt": ["北京"]}
    short = {"questions_gt": ["a?", "b?"], "answers_gt4gt": ["x", "y"], "answers_gm4gt": ["x"]}
    rows = [row(n, "北京", quest_eval_save=save) for n, save in enumerate((right, silent, short))]
    found = rallebench.json(
        "score", "--suite", "crud", "--guess", written(tmp_path / "r.json", rows)
    )
    assert values(found)["QA_recall"] == values(found)["QA_avg_F1"] == (0.5, 2)
    assert values(found)["length"][1] == 3
    assert found["notes"] == [
        "1 rows have fewer answers than questions; they are in neither mean of RAGQuestEval, as in CRUD-RAG."
    ]


def test_the_records_references_go_before_the_rows_own(
    rallebench: CommandLine, tmp_path: Path
) -> None:
    records = [
        {"ID": one, "questions": "哪里？", "answers": "广州", "news1": "新闻", "event": "事"}
        for one in ("a", "b")
    ]
    gold = tmp_path / "qa1.json"
    gold.write_text(json.dumps(records, ensure_ascii=False))
    guess = written(tmp_path / "r.json", [row("a", "广州")])
    found = rallebench.json("score", "--suite", "crud", "--guess", guess, "--gold", gold)
    assert values(found)["rouge-L"] == (1.0, 1) and found["missing"] == 1
    ran = rallebench(
        "score", "--suite", "crud", "--guess", written(guess, [row("z", "广州")]), "--gold", gold
    )
    assert ran.code == 2 and "answers 'z'" in ran.last


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([], "at least one"),
        ({"a": 1}, "is no result of CRUD-RAG"),
        ([{"id": 1}], "result 1 has no id, or no generated_text"),
        ([row(1, "x"), row("1", "y")], "more than one result of the id '1'"),
    ],
)
def test_what_is_no_result_is_one_sentence(
    rallebench: CommandLine, tmp_path: Path, rows: Any, sentence: str
) -> None:
    ran = rallebench("score", "--suite", "crud", "--guess", written(tmp_path / "r.json", rows))
    assert ran.code == 2 and sentence in ran.last


def test_a_folder_in_place_of_a_result_is_called_one(
    rallebench: CommandLine, tmp_path: Path
) -> None:
    written(tmp_path / "r.json", [row(1, "x")])
    ran = rallebench("score", "--suite", "crud", "--guess", tmp_path)
    assert ran.code == 2
    assert f"{tmp_path} is a folder; name the file that holds a result of CRUD-RAG" in ran.last
    assert "It holds r.json" in ran.last
