"""RGB's own files: reused rows, its result, and ``score --suite rgb`` for rows of any program."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from small_workspace import CommandLine, write_lines

from rallebench.papers.rgb.predictions import count_result, fits, prediction_row, read_rows
from rallebench.papers.rgb.records import Documents, RgbRecord
from rallebench.papers.rgb.scoring import assess

REFUSES = "I can not answer the question because of the insufficient information in documents."
ERRORS = "There are factual errors in the provided documents. It was"


def row(qid: Any, prediction: str, **more: Any) -> dict[str, Any]:
    """A row in the form of RGB's script."""
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
def workspace(tmp_path: Path) -> Path:
    return tmp_path / "workspace"


def score(cli: CommandLine, folder: Path, rows: list[Any], *more: Any) -> Any:
    guess = write_lines(folder / "p.json", rows)
    return cli.json("score", "--suite", "rgb", "--guess", guess, *more)


def rates(share: Any) -> dict[str, Any]:
    return {name: mean["value"] for name, mean in share["metrics"].items()}


def test_results_count_as_rgb_counts() -> None:
    rows = [{"label": label} for label in ([1, 1], [1, 0], [-1], [0])]
    result = {"all_rate": 0.25, "noise_rate": 0.2, "tt": 1, "nums": 4}
    assert count_result(rows, 0.2, False) == result
    assert count_result(rows, 1.0, False)["tt"] == 2
    facts = [{"label": [n], "factlabel": errors} for n, errors in ((1, 1), (-1, 1), (0, 1), (1, 0))]
    result = count_result(facts, 0.0, True)
    assert (result["fact_check_rate"], result["fact_tt"]) == (0.75, 3)
    assert (result["correct_rate"], result["correct_tt"]) == (2 / 3, 2), "a rejection passes"
    assert count_result(facts[3:], 0.0, True)["correct_rate"] == 0


def test_rows_are_used_again_where_id_query_answer_and_documents_match(tmp_path: Path) -> None:
    record = RgbRecord("7", "who?", ["Ada"], (("Ada",),))
    documents = Documents((("positive", "Ada was there."),))
    written = prediction_row(record, documents, 0.2, assess("Ada", record.required, "en"))
    rows = read_rows(write_lines(tmp_path / "p.json", [written, {**written, "id": 8}]))
    assert json.loads(json.dumps(written)) == rows["7"] and set(rows) == {"7", "8"}
    assert fits(rows["7"], record, documents, original=False)
    assert not fits(None, record, documents, False)
    others = Documents((("positive", "else"),))
    assert fits(rows["7"], record, others, original=True)
    assert not fits(rows["7"], record, others, False)
    assert not fits({**written, "query": "whom?"}, record, documents, True)
    assert not fits({**written, "ans": "Ada"}, record, documents, True)
    assert read_rows(tmp_path / "absent.json") == {}


def test_rows_are_scored_anew_and_differences_are_counted(cli: CommandLine, tmp_path: Path) -> None:
    rows = [
        row(1, "In rome."),
        row(2, REFUSES, label=[-1]),
        row(3, f"{ERRORS} Rome."),
        row(4, f"{ERRORS} Paris."),
    ]
    report = score(cli, tmp_path, rows)
    (share,) = report["shares"]
    assert (report["n"], share["noise_rate"], share["labels_differ"]) == (4, 0.2, 1)
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


def test_at_mere_noise_rejections_and_hits_stand_apart(cli: CommandLine, tmp_path: Path) -> None:
    rows = [
        row(1, "Rome", noise_rate=1),
        row(2, REFUSES, noise_rate=1),
        row(3, "Paris", noise_rate=1.0),
        row(4, "Rome"),
    ]
    shares = score(cli, tmp_path, rows)["shares"]
    assert [share["noise_rate"] for share in shares] == [0.2, 1.0]
    third = pytest.approx(1 / 3)
    noise = rates(shares[1])
    assert noise["all_rate"] == pytest.approx(2 / 3)
    assert (noise["rejection_rate"], noise["lucky_rate"]) == (third, third)


def test_the_gold_file_decides_what_is_asked_or_missing(cli: CommandLine, tmp_path: Path) -> None:
    aliases = {"answer": [["Rome", "Roma"]], "positive": ["x"], "negative": []}
    gold = [{"id": n, "query": f"Where was {n}?", **aliases} for n in (1, 2)]
    records = write_lines(tmp_path / "en.json", gold)
    report = score(cli, tmp_path, [row(1, "roma", ans="Paris")], "--gold", records)
    assert report["missing"] == 1 and rates(report["shares"][0])["all_rate"] == 1.0
    assert any("1 rows have another answer than en.json" in note for note in report["notes"])
    write_lines(records, [{**gold[0], "query": "Who?"}])
    guess = tmp_path / "p.json"
    ran = cli("score", "--suite", "rgb", "--guess", guess, "--gold", records)
    assert ran.code == 2 and "another question for '1'" in ran.last


def test_chinese_is_scored_without_its_spaces(cli: CommandLine, tmp_path: Path) -> None:
    more = {"ans": "罗马", "query": "在哪里?"}
    rows = [row(1, "答案 是 罗 马", **more), row(2, "信息 不足", **more)]
    (share,) = score(cli, tmp_path, rows)["shares"]
    assert (rates(share)["all_rate"], rates(share)["rejection_rate"]) == (0.5, 0.5)


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ("--suite rgb --guess nowhere.json", "nowhere.json does not exist"),
        ("--suite rgb --guess FOLDER", "is a folder; name the file that holds RGB's predictions"),
        (
            "--suite rgb --guess GOOD --gold FOLDER",
            "FOLDER is a folder; name the file that holds RGB's records",
        ),
        ("--suite rgb --guess EMPTY", "holds no row"),
        ("--suite rgb --guess OTHER", "is not a row of RGB's predictions"),
        ("--suite rgb --guess NOISY", "must be a number from 0 to 1"),
        ("--suite rgb --guess TWICE", "line 2 repeats the id '1'"),
        ("--suite rgb --guess NOISY --ks 1", "--ks goes with --suite kilt"),
        ("--suite rbg --guess NOISY", "Did you mean 'rgb'? Known:"),
        ("--guess NOISY", "name one with --gold"),
    ],
)
def test_what_cannot_be_scored_is_one_sentence(
    cli: CommandLine, tmp_path: Path, flags: str, sentence: str
) -> None:
    (tmp_path / "FOLDER").mkdir()
    (tmp_path / "EMPTY").write_text("")
    files: dict[str, list[dict[str, Any]]] = {
        "GOOD": [row(1, "Rome")],
        "OTHER": [{"id": 1, "output": []}],
        "NOISY": [row(1, "Rome", noise_rate="much")],
        "TWICE": [row(1, "Rome"), row("1", "Oslo")],
    }
    for name, rows in files.items():
        write_lines(tmp_path / name, rows)
    words = (str(tmp_path / word) if word.isupper() else word for word in flags.split())
    ran = cli("score", *words)
    assert ran.code == 2 and sentence in ran.last
