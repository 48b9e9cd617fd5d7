"""``score --suite rgb``: rows in RGB's form, whoever wrote them, scored by RGB's rules."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from small_workspace import CommandLine, write_lines

REFUSES = "I can not answer the question because of the insufficient information in documents."
FOUND = "There are factual errors in the provided documents. It was"


def row(qid: Any, prediction: str, **more: Any) -> dict[str, Any]:
    """A row as RGB's script writes it."""
    return {
        "id": qid,
        "query": f"Where was {qid}?",
        "ans": "Rome",
        "label": [1],
        "prediction": prediction,
        "docs": [],
        "noise_rate": 0.2,
        "factlabel": 0,
        **more,
    }


@pytest.fixture
def rallebench(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> CommandLine:
    return CommandLine(capfd, tmp_path / "workspace")


def score(rallebench: CommandLine, guess: Path, *more: Any) -> Any:
    return rallebench.json("score", "--suite", "rgb", "--guess", guess, *more)


def rates(share: Any) -> dict[str, Any]:
    return {name: mean["value"] for name, mean in share["metrics"].items()}


def test_rows_are_scored_anew_and_labels_that_differ_are_counted(
    rallebench: CommandLine, tmp_path: Path
) -> None:
    rows = [
        row(1, "In rome."),
        row(2, REFUSES, label=[-1]),
        row(3, f"{FOUND} Rome."),
        row(4, f"{FOUND} Paris."),
    ]
    found = score(rallebench, write_lines(tmp_path / "p.json", rows))
    (share,) = found["shares"]
    assert (found["n"], share["noise_rate"], share["labels_differ"]) == (4, 0.2, 1)
    assert rates(share) == {
        "all_rate": 0.5,
        "rejection_rate": 0.25,
        "lucky_rate": None,
        "fact_check_rate": 0.5,
        "correct_rate": 0.5,
    }
    assert share["as_rgb_counts"]["tt"] == 2 and share["as_rgb_counts"]["fact_tt"] == 2
    assert share["metrics"]["correct_rate"]["n"] == 2
    assert share["metrics"]["all_rate"]["low"] is None


def test_at_nothing_but_noise_rejections_and_lucky_hits_stand_apart(
    rallebench: CommandLine, tmp_path: Path
) -> None:
    rows = [
        row(1, "Rome", noise_rate=1),
        row(2, REFUSES, noise_rate=1),
        row(3, "Paris", noise_rate=1.0),
        row(4, "Rome"),
    ]
    shares = score(rallebench, write_lines(tmp_path / "p.json", rows))["shares"]
    assert [share["noise_rate"] for share in shares] == [0.2, 1.0]
    third = pytest.approx(1 / 3)
    seen = rates(shares[1])
    assert seen["all_rate"] == pytest.approx(2 / 3)
    assert (seen["rejection_rate"], seen["lucky_rate"]) == (third, third)


def test_the_gold_file_decides_what_is_required_and_which_rows_are_missing(
    rallebench: CommandLine, tmp_path: Path
) -> None:
    aliases = {"answer": [["Rome", "Roma"]], "positive": ["x"], "negative": []}
    gold = [{"id": n, "query": f"Where was {n}?", **aliases} for n in (1, 2)]
    records = write_lines(tmp_path / "en.json", gold)
    guess = write_lines(tmp_path / "p.json", [row(1, "roma", ans="Paris")])
    found = score(rallebench, guess, "--gold", records)
    assert found["missing"] == 1 and rates(found["shares"][0])["all_rate"] == 1.0
    assert any("1 rows have another answer than en.json" in note for note in found["notes"])
    (tmp_path / "en.json").write_text(json.dumps({**gold[0], "query": "Who?"}) + "\n")
    ran = rallebench("score", "--suite", "rgb", "--guess", guess, "--gold", tmp_path / "en.json")
    assert ran.code == 2 and "another question for '1'" in ran.last


def test_chinese_is_scored_without_its_spaces(rallebench: CommandLine, tmp_path: Path) -> None:
    rows = [
        row(1, "答案 是 罗 马", ans="罗马", query="在哪里?"),
        row(2, "信息 不足", ans="罗马", query="在哪里?"),
    ]
    (share,) = score(rallebench, write_lines(tmp_path / "p.json", rows))["shares"]
    assert (rates(share)["all_rate"], rates(share)["rejection_rate"]) == (0.5, 0.5)


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ("--suite rgb --guess nowhere.json", "nowhere.json does not exist"),
        (
            "--suite rgb --guess FOLDER",
            "FOLDER is a folder; name the file that holds RGB's predictions",
        ),
        (
            "--suite rgb --guess GOOD --gold FOLDER",
            "FOLDER is a folder; name the file that holds RGB's records",
        ),
        ("--suite rgb --guess EMPTY", "holds no row"),
        ("--suite rgb --guess OTHER", "is no row of RGB's predictions"),
        ("--suite rgb --guess NOISY", "must be a number from 0 to 1"),
        ("--suite rgb --guess TWICE", "line 2 repeats the id '1'"),
        ("--suite rgb --guess NOISY --ks 1", "--ks goes with --suite kilt"),
        ("--suite rbg --guess NOISY", "Did you mean 'rgb'? Known:"),
        ("--guess NOISY", "name one with --gold"),
    ],
)
def test_what_cannot_be_scored_is_one_sentence(
    rallebench: CommandLine, tmp_path: Path, flags: str, sentence: str
) -> None:
    (tmp_path / "FOLDER").mkdir()
    write_lines(tmp_path / "GOOD", [row(1, "Rome")])
    (tmp_path / "EMPTY").write_text("")
    write_lines(tmp_path / "OTHER", [{"id": 1, "output": []}])
    write_lines(tmp_path / "NOISY", [row(1, "Rome", noise_rate="much")])
    write_lines(tmp_path / "TWICE", [row(1, "Rome"), row("1", "Oslo")])
    words = (str(tmp_path / word) if word.isupper() else word for word in flags.split())
    ran = rallebench("score", *words)
    assert ran.code == 2 and sentence in ran.last
