"""Scoring a prediction file as KILT does: hand-worked records, KILT's fixtures, unsuitable files."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from project import GOLDEN
from small_workspace import write_lines

from rallebench.core.errors import BadFileError, MismatchError, UsageError
from rallebench.papers.ralle.predictions import score_kilt

CASES = json.loads((GOLDEN / "kilt.json").read_text(encoding="utf-8"))["cases"]
SECTIONS = ("kilt", "downstream", "retrieval")


def score(
    folder: Path, gold: list[dict[str, Any]], guess: list[dict[str, Any]], **settings: Any
) -> dict[str, Any]:
    guesses = write_lines(folder / "guess.jsonl", guess)
    return score_kilt(guesses, write_lines(folder / "gold.jsonl", gold), **settings)


def truth(qid: Any, answer: str, page: str = "1") -> dict[str, Any]:
    return {"id": qid, "output": [{"answer": answer, "provenance": [{"wikipedia_id": page}]}]}


def number(value: Any) -> float:
    return float(Fraction(value)) if isinstance(value, str) else float(value)


@pytest.mark.parametrize("case", CASES, ids=[case["rule"] for case in CASES])
def test_a_hand_worked_case_gives_its_values(case: dict[str, Any], tmp_path: Path) -> None:
    settings = {key: case[key] for key in ("rank_keys", "ks", "compat") if key in case}
    result = score(tmp_path, case["gold"], case["guess"], **settings)
    for section in SECTIONS:
        for key, expected in case.get(section, {}).items():
            assert result[section][key] == pytest.approx(number(expected), abs=1e-12), key
    for section in case.get("absent", []):
        assert result[section] is None and result["notes"]
    for key, expected in case.get("counts", {}).items():
        assert result[key] == expected


def test_kilts_own_fixtures_are_reproduced_to_the_last_digit(shared_data: Path) -> None:
    folder = shared_data / "kilt" / "fixtures"
    cases = json.loads((folder / "expected.json").read_text(encoding="utf-8"))["cases"]
    checked = 0
    for case in cases:
        for keys in case.get("rank_keys", [["wikipedia_id"]]):
            result = score_kilt(folder / case["guess"], folder / case["gold"], rank_keys=keys)
            for section in SECTIONS:
                for key, expected in case.get(section, {}).items():
                    where = (case["guess"], keys, key)
                    assert result[section][key] == pytest.approx(expected, abs=1e-12), where
                    checked += 1
    assert checked == 52


def test_the_gold_of_every_set_scores_full_marks(shared_data: Path, tmp_path: Path) -> None:
    for path in sorted((shared_data / "kilt").glob("*_kilt.jsonl")):
        with open(path, encoding="utf-8") as lines:
            records = [json.loads(line) for line in islice(lines, 40)]
        guess = [{"id": r["id"], "output": r["output"][:1]} for r in records]
        result = score(tmp_path, records, guess)
        scores = {result["downstream"][key] for key in ("accuracy", "em", "has_answer")}
        assert scores == {1.0}, path
        if result["retrieval"]:
            assert result["retrieval"]["Rprec"] == result["kilt"]["KILT-em"] == 1.0, path


def test_the_result_is_laid_out_as_kilt_and_ralle_print_it(tmp_path: Path) -> None:
    result = score(tmp_path, GOLD, GOLD)
    assert list(result)[:4] == ["kilt", "downstream", "retrieval", "n"]
    names = {"accuracy", "em", "f1", "rougel", "has_answer"}
    assert names <= set(result["downstream"])
    assert {f"KILT-{name}" for name in names} <= set(result["kilt"])
    retrieval = {"Rprec", "recall_at_5", "recall@5", "precision@1", "success_rate@20"}
    assert retrieval <= set(result["retrieval"])
    json.dumps(result, allow_nan=False)
    at_3 = {"Rprec", "recall@5", "recall_at_5", "precision@3", "recall@3", "success_rate@3"}
    assert set(score(tmp_path, GOLD, GOLD, ks=[3])["retrieval"]) == at_3


def test_predictions_may_come_in_any_order_and_surplus_ones_are_noted(tmp_path: Path) -> None:
    gold = [truth(1, "Oslo"), truth(2, "Bern")]
    result = score(tmp_path, gold, [truth("3", "x"), truth(" 2 ", "Bern"), truth("1", "Oslo")])
    assert result["downstream"]["em"] == 1 and result["n"] == 2
    assert "1 of 3 predictions" in result["notes"][0]


def test_a_null_prediction_is_an_empty_one(tmp_path: Path) -> None:
    result = score(tmp_path, [truth(1, "None")], [{"id": 1, "output": [{"answer": None}]}])
    assert result["downstream"]["em"] == 0 and result["n_empty_answer"] == 1


def test_missing_predictions_are_counted_and_the_first_are_named(tmp_path: Path) -> None:
    gold = [truth(n, "Oslo") for n in range(9)]
    with pytest.raises(
        MismatchError,
        match=r"no prediction for 7 of the 9 questions of .*: '2', '3', '4', '5', '6', …",
    ):
        score(tmp_path, gold, gold[:2])


GOLD = [truth(1, "a")]
FLOAT_PAGE = {"id": 1, "output": [{"answer": "a", "provenance": [{"wikipedia_id": 1.0}]}]}
TWO = {"id": 1, "output": [{"answer": "a"}] * 2}
SILENT = {"id": 2, "output": [{"provenance": []}]}


@pytest.mark.parametrize(
    ("gold", "guess", "message"),
    [
        ([*GOLD, truth(2, "b")], [*GOLD, SILENT], r"1 of 2 predictions without 'answer': '2'"),
        ([*GOLD, truth("1 ", "b")], GOLD, "gold.jsonl, line 2 repeats the id '1' of line 1"),
        (GOLD, GOLD * 2, "guess.jsonl, line 2 repeats the id '1' of line 1"),
        (GOLD, [TWO], "has 2 outputs; .* output_reduced.jsonl"),
        (GOLD, [{"id": 1}], "has 0 outputs"),
        (GOLD, [{"output": []}], "guess.jsonl, line 1 has no 'id'"),
        (GOLD, [FLOAT_PAGE], "line 1: 'wikipedia_id' is a number, not text"),
        ([{"id": 1, "output": [{"answer": 5}]}], GOLD, "gold.jsonl, line 1: an 'answer' is a num"),
        ([], GOLD, "gold.jsonl holds no gold record"),
    ],
)
def test_a_bad_file_is_refused_with_its_line(
    gold: list[dict[str, Any]], guess: list[dict[str, Any]], message: str, tmp_path: Path
) -> None:
    with pytest.raises(BadFileError, match=message):
        score(tmp_path, gold, guess)


@pytest.mark.parametrize(
    "settings", [{"ks": [0]}, {"ks": [1001]}, {"rank_keys": []}, {"rank_keys": ["section", ""]}]
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        score(tmp_path, [truth(1, "a")], [truth(1, "a")], **settings)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    gold = write_lines(tmp_path / "gold.jsonl", GOLD)
    with pytest.raises(BadFileError, match=r"absent\.jsonl does not exist"):
        score_kilt(tmp_path / "absent.jsonl", gold)
