"""``score --suite crud``: results in CRUD-RAG's form, of any program, scored by CRUD-RAG's rules."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from small_workspace import CommandLine, write_lines


def row(qid: Any, text: str, reference: str = "北京和上海", **more: Any) -> dict[str, Any]:
    """A row of a result in CRUD-RAG's form."""
    log = {"generated_text": text, "ground_truth_text": reference, **more}
    return {"id": qid, "metrics": {"bleu-avg": 1.0}, "log": log, "valid": True}


def quest(questions: int, reference: list[str], text: list[str]) -> dict[str, Any]:
    """The part of a row that CRUD-RAG saves for RAGQuestEval."""
    asks = [f"{n}?" for n in range(questions)]
    return {"questions_gt": asks, "answers_gt4gt": reference, "answers_gm4gt": text}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return tmp_path / "workspace"


def write_results(path: Path, rows: Any) -> Path:
    value = {"info": {"task": "QuestAnswer1Doc", "llm": "theirs"}, "overall": {}, "results": rows}
    path.write_text(json.dumps(value, ensure_ascii=False))
    return path


def score(cli: CommandLine, folder: Path, rows: Any, *more: Any) -> Any:
    guess = write_results(folder / "r.json", rows)
    return cli.json("score", "--suite", "crud", "--guess", guess, *more)


def values(report: Any) -> dict[str, Any]:
    return {name: (mean["value"], mean["n"]) for name, mean in report["metrics"].items()}


def test_texts_are_scored_anew_and_differences_counted(cli: CommandLine, tmp_path: Path) -> None:
    rows = [row("a", "北京和上海"), row("b", "广州"), row("c", " ")]
    report = score(cli, tmp_path, rows)
    expected = ("QuestAnswer1Doc", 3, 1, {"bleu-avg": 2})
    assert tuple(report[key] for key in ("task", "n", "invalid", "differ")) == expected
    assert values(report)["rouge-L"] == (0.5, 2) and values(report)["length"] == (3.5, 2)
    assert "1 of 3 rows have no text" in report["notes"][0]
    assert "QA_recall" not in report["metrics"]


def test_questions_are_scored_where_answers_were_kept(cli: CommandLine, tmp_path: Path) -> None:
    saved = quest(3, ["北京", "无法推断", "上海"], ["北京", "天津", "无法推断"])
    saves = (saved, {"questions_gt": []})
    rows = [row(n, "北京", quest_eval_save=save) for n, save in enumerate(saves)]
    means = values(score(cli, tmp_path, rows))
    assert means["QA_recall"] == (0.5, 1) and means["QA_avg_F1"] == (1.0, 1)


def test_a_reference_that_answers_nothing_scores_0_and_missing_answers_leave_their_row_out(
    cli: CommandLine, tmp_path: Path
) -> None:
    saves = (quest(1, ["北京"], ["北京"]), quest(1, [], ["北京"]), quest(2, ["x", "y"], ["x"]))
    rows = [row(n, "北京", quest_eval_save=save) for n, save in enumerate(saves)]
    report = score(cli, tmp_path, rows)
    assert values(report)["QA_recall"] == values(report)["QA_avg_F1"] == (0.5, 2)
    assert values(report)["length"][1] == 3
    (note,) = report["notes"]
    assert note.startswith("1 rows have fewer answers than questions")


def test_the_records_references_go_before_the_rows_own(cli: CommandLine, tmp_path: Path) -> None:
    record = {"questions": "哪里？", "answers": "广州", "news1": "新闻", "event": "事"}
    gold = write_lines(tmp_path / "qa1.jsonl", [{"ID": name, **record} for name in "ab"])
    report = score(cli, tmp_path, [row("a", "广州")], "--gold", gold)
    assert values(report)["rouge-L"] == (1.0, 1) and report["missing"] == 1
    guess = write_results(tmp_path / "r.json", [row("z", "广州")])
    ran = cli("score", "--suite", "crud", "--guess", guess, "--gold", gold)
    assert ran.code == 2 and "answers 'z'" in ran.last


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([], "at least one"),
        ({"a": 1}, "is not a result of CRUD-RAG"),
        ([{"id": 1}], "result 1 has no id, or no generated_text"),
        ([row(1, "x"), row("1", "y")], "more than one result of the id '1'"),
    ],
)
def test_what_is_no_result_is_one_sentence(
    cli: CommandLine, tmp_path: Path, rows: Any, sentence: str
) -> None:
    ran = cli("score", "--suite", "crud", "--guess", write_results(tmp_path / "r.json", rows))
    assert ran.code == 2 and sentence in ran.last


def test_a_folder_in_place_of_a_result_is_called_one(cli: CommandLine, tmp_path: Path) -> None:
    write_results(tmp_path / "r.json", [row(1, "x")])
    ran = cli("score", "--suite", "crud", "--guess", tmp_path)
    sentence = f"{tmp_path} is a folder; name the file that holds a result of CRUD-RAG"
    assert ran.code == 2 and sentence in ran.last and "It holds r.json" in ran.last
