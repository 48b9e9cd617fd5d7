"""Every benchmark runs in a small size and prints its figures; a wrong fact behind them gives exit code 1."""

from __future__ import annotations

import argparse
import importlib
import json
import math
import shutil
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

import pytest

pytestmark = pytest.mark.slow

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"

MEASURES = {
    "agents": {
        "own time per ReAct step",
        "mean batch of the model's requests",
        "a PAL program beyond Python's own start",
    },
    "big_corpus": {"import", "anonymous memory at most", "a passage by its row", "a row by its id"},
    "bm25_build": {"build", "first query"},
    "bm25_scale": {"build", "queries a second of processor time, in a batch"},
    "vector_search": {
        "flat: batch",
        "hnsw: batch",
        "ivf-sq8: single",
        "ivf-sq8: memory over flat's",
    },
    "sweeping": {"the sweep", "the sweep over the direct calls"},
    "comparing": {"comparing two runs", "the table of all questions"},
    "device": {
        "bfloat16: memory",
        "8 bit: tokens a second in batches of 8",
        "4 bit: tokens a second in batches of 32",
        "encoder on cpu in float32: passages a second",
        "the reader's network on cpu in float32: prompts of five passages a second",
    },
    "encoding": {"float32, passages a second", "float32, speed-up"},
    "learned_retrieval": {"splade: build", "late-interaction: search"},
    "endpoints": {"over the services", "one HTTP request, beyond the services"},
    "kill_and_resume": {"prompts asked", "time in sessions"},
    "kill_encoding": {"passages encoded twice", "time in both sessions"},
    "forced_formats": {
        "batch 8: processor time a token, forced over free",
        "function-calling: actions that can be read",
        "truthfulness: verdicts that can be read",
    },
    "load_unload": {
        "none: growth of resident memory",
        "4bit: left after an unload, of what it took",
    },
    "loop_overhead": {"overhead per question", "the runner, per question"},
    "mlflow_logging": {"logging the run", "first migration of a database"},
    "memo_rerun": {"speed-up by the memory", "re-run, per question"},
    "own_documents": {"sign of life", "chunks of all files counted"},
    "page": {
        "size of the page",
        "another place",
        "a long run opens",
        "a key in a prompt of 20,000 characters",
        "a key in a prompt of 20,000 characters, 95th percentile",
    },
    "reader": {"starter-qa, its paragraph: exact match", "starter-qa: AUROC of declining"},
    "remote": {"time over the ideal", "processor time per request"},
    "retrieval_quality": {"starter, BM25, page hit@1 (n = 20, 371 passages)"},
    "transformers_batch": {
        "processor time over model.generate's, best round",
        "gain by sorting mixed lengths, in processor time",
    },
    "run_list": {"opened by a new process", "opened again", "filtered", "sorted"},
    "scoring": {"BLEU and ROUGE-L over all answers, processor", "BLEU and ROUGE-L, an answer"},
    "small_models": {"starter-qa, smollm2-4bit: a question"},
    "suites": {
        "RGB at five shares of noise, processor",
        "a second run that changes one share, processor",
    },
    "scholars": {
        "getPersonBasicInfo",
        "searchPerson, misspelled",
        "searchPublication, a common word",
    },
    "support": {
        "the embedded head, processor",
        "a cross-encoder, processor",
        "a cross-encoder, the same answers again",
    },
    "until_decided": {
        "a look at 1,000 articles",
        "300 articles of 3, true difference +5 points: missed",
    },
    "typed_decisions": {
        "yes or no, 10 words, batch 2: a choice over a free token",
        "rgb-rejection-choice: declining answers above real ones",
    },
    "start_up": {"import rallebench", "rallebench list", "app.py until its first answer"},
}
"""Script → the figures that it must print at least."""


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("_report")


def run(name: str, *flags: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCHMARKS / f"{name}.py"), *flags]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("name", MEASURES)
def test_a_benchmark_runs_in_a_small_size_and_the_facts_behind_its_figures_hold(name: str) -> None:
    if name in ("page", "own_documents") and not (
        shutil.which("chromium") or shutil.which("google-chrome")
    ):
        pytest.skip("no Chromium is installed")
    done = run(name, "--quick", "--json")
    assert done.stdout, done.stderr
    found = json.loads(done.stdout)
    assert [fact for fact in found["facts"] if not fact["met"]] == []
    assert done.returncode == 0, done.stderr
    assert found["benchmark"] == name
    assert found["facts"]
    assert found["machine"]["threads"] == 1
    figures = {figure["name"]: figure for figure in found["measures"]}
    assert figures.keys() >= MEASURES[name]
    for figure in figures.values():
        assert figure["samples"] and all(math.isfinite(sample) for sample in figure["samples"])
    compared = [figure for figure in figures.values() if "bare" in figure]
    bare = "no figure is compared with the bare library or direct calls"
    assert compared or name == "own_documents", bare
    for figure in compared:
        assert figure["ratio"] == pytest.approx(figure["median"] / figure["bare"]["median"])


def test_every_benchmark_of_the_folder_stands_in_its_readme_and_the_list_exists() -> None:
    there = {path.name for path in BENCHMARKS.glob("*.py") if not path.name.startswith("_")}
    assert {f"{name}.py" for name in MEASURES} <= there
    readme = (BENCHMARKS / "README.md").read_text(encoding="utf-8")
    assert {name for name in there if f"`{name}`" not in readme} == set()


def test_people_read_the_median_the_ratio_and_whether_the_target_is_met(report: Any) -> None:
    figure = report.Measure("build", "s", [3.0, 1.0, 2.0], [4.0, 4.0, 8.0], "bare bm25s", most=15.0)
    assert figure.line() == (
        "build: 2 s (min 1, rounds 3), 0.50 times bare bm25s (4 s); target at most 15 s: met"
    )
    assert figure.to_json()["median"] == median([3.0, 1.0, 2.0])


@pytest.mark.parametrize(
    ("bounds", "met"),
    [
        ({"most": 2.0}, True),
        ({"most": 1.9}, False),
        ({"least": 2.0}, True),
        ({"least": 2.1}, False),
        ({}, None),
    ],
)
def test_the_median_decides_whether_a_target_is_met(
    report: Any, bounds: dict[str, float], met: bool | None
) -> None:
    assert report.Measure("figure", "s", [1.0, 2.0, 9.0], **bounds).met is met


@pytest.mark.parametrize(
    ("seconds", "asked_again", "strict", "code"),
    [(1.0, 0, False, 0), (9.0, 0, False, 0), (9.0, 0, True, 1), (1.0, 3, False, 1)],
)
def test_a_wrong_fact_always_ends_with_1_and_a_missed_target_only_when_strict(
    report: Any,
    capsys: pytest.CaptureFixture[str],
    seconds: float,
    asked_again: int,
    strict: bool,
    code: int,
) -> None:
    figures = [report.Measure("run", "s", [seconds], most=2.0)]
    found = report.Report("example", {}, figures, [report.Fact("asked again", asked_again, 0)])
    assert found.tell(argparse.Namespace(json=False, strict=strict)) == code
    printed = capsys.readouterr().out
    assert ("MISSED" in printed) == (seconds > 2.0)
    assert ("WRONG" in printed) == (asked_again > 0)


def test_the_questions_are_all_different_and_the_same_every_time(report: Any) -> None:
    records = report.starter_records(1500)
    assert (
        len({record["input"] for record in records})
        == len({record["id"] for record in records})
        == 1500
    )
    assert records == report.starter_records(1500)


def test_the_word_model_writes_the_same_corpus_every_time(report: Any, tmp_path: Path) -> None:
    build = importlib.import_module("bm25_build")
    for name in ("one.tsv", "two.tsv"):
        assert build.write_corpus(tmp_path / name, 500, []) == 500
    assert (tmp_path / "one.tsv").read_bytes() == (tmp_path / "two.tsv").read_bytes()
    assert (
        len({build._made_up(number) for number in range(build.MADE_UP_WORDS)})
        == build.MADE_UP_WORDS
    )
