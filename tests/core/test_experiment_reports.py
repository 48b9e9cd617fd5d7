"""The reports of experiments: each kind is read as written, and a damaged one is one sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rallebench.core.errors import BadFileError
from rallebench.core.experiment_reports import (
    BaselinesReport,
    BuilderReport,
    ExperimentReport,
    OwnRow,
    PartResult,
    Point,
    RankingReport,
    StageCounts,
    SuiteReport,
    TradeoffReport,
    VariantResult,
)
from rallebench.core.report import Estimate
from rallebench.core.stored_experiments import report_from_json
from rallebench.core.tables import Column, Figure, Table

HALF = Estimate(0.5, 0.4, 0.6, 300)
PATH = Path("experiments/night/report.json")
TABLE = Table("Scores", (Column("run", "text"), Column("em")), (("ours", HALF), ("paper", 0.4)))
REPORTS: dict[str, ExperimentReport] = {
    "sweep": RankingReport(
        "night",
        "em",
        (
            VariantResult("night k=5", "k=5", {"em": HALF}),
            VariantResult("night k=1", "k=1", {"em": HALF}, -0.1, -0.2, 0.0, 0.03, 0.06),
        ),
        {"k=9": "The model is gone."},
        "Best: k=5",
        ("Few questions.",),
    ),
    "baselines": BaselinesReport(
        "r", {"random": "r random"}, ("random",), {"em": {"run": HALF, "random": HALF}}, TABLE
    ),
    "trade-off": TradeoffReport(
        "t", "qa", 5, 20, (Point("mine", "hnsw", {"ef_search": 8}, quality={"Rprec": 0.5}),)
    ),
    "suite": SuiteReport(
        "rgb-noise",
        "night",
        (PartResult("noise=0", "night noise=0", 300, 2, 3.5, {"all_rate": HALF}),),
        {"all_rate": "Share of right answers."},
        {
            "headline": "all_rate",
            "published": (OwnRow("rgb_table1", "reader", {"en_0": HALF}, {}, "", ("Reworded.",)),),
            "documents": {"noise=0": {"asked": 5}},
        },
        ("A note.",),
        (TABLE,),
        (Figure("Noise", "noise", "score", {"ours": (("0", HALF), ("0.4", None))}, "bar"),),
        ("night/en.json",),
        "night",
    ),
    "dataset builder": BuilderReport(
        "rgb",
        "mine",
        "news.jsonl",
        "titan",
        {"questions": 3},
        2,
        {"records": {"en": 2}},
        {
            "1-articles": StageCounts(5, 5, 4, {"too short": 1}, 0, 0, 0, 5),
            "documents": StageCounts(6, 6, 5, failed=1),
        },
        ("A note.",),
        ("mine.jsonl",),
        "mine",
    ),
}


def write_report(report: ExperimentReport) -> Any:
    """The report as JSON, with the lines added by the store."""
    return json.loads(json.dumps({**report.to_json(), "request": {"llm": ""}, "made": "now"}))


@pytest.mark.parametrize("noun", REPORTS)
def test_a_report_is_read_as_it_was_written(noun: str) -> None:
    report = REPORTS[noun]
    assert report_from_json(write_report(report), noun, PATH) == report


@pytest.mark.parametrize("noun", REPORTS)
def test_a_report_that_is_read_is_written_again_with_the_same_bytes(noun: str) -> None:
    report = REPORTS[noun]
    again = report_from_json(write_report(report), noun, PATH)
    assert json.dumps(again.to_json()) == json.dumps(report.to_json())


def test_batches_have_the_report_of_a_sweep() -> None:
    assert report_from_json(write_report(REPORTS["sweep"]), "batch", PATH) == REPORTS["sweep"]


def test_counts_that_a_stage_does_not_have_are_left_out() -> None:
    assert StageCounts(6, 6, 5, failed=1).to_json() == {
        "inputs": 6,
        "rows": 6,
        "kept": 5,
        "failed": 1,
    }


@pytest.mark.parametrize(
    ("noun", "change"),
    [
        ("sweep", {"variants": [{"run": 5, "variant": "k=1", "metrics": {}}]}),
        ("sweep", {"metric": []}),
        ("baselines", {"metrics": {"em": {"run": {"value": "high", "n": 1}}}}),
        ("trade-off", {"points": [{"colour": 1}]}),
        ("suite", {"parts": [{"label": "a", "n": -1}]}),
        ("suite", {"tables": [{"title": "no rows"}]}),
        ("suite", {"plots": [{"series": []}]}),
        ("suite", {"published": [{"table": "rgb_table1"}]}),
        ("dataset builder", {"counts": {"stages": {"1-articles": {"rows": "many"}}}}),
    ],
)
def test_a_damaged_report_names_its_file_and_the_mend(noun: str, change: dict[str, Any]) -> None:
    document = {**write_report(REPORTS[noun]), **change}
    with pytest.raises(BadFileError, match=r"night/report\.json was damaged .* run the experiment"):
        report_from_json(document, noun, PATH)
