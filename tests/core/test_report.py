"""A run's report as values: JSON of any version is read, damage is named, and a round trip loses nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rallebench.core.errors import BadFileError, NotFoundError
from rallebench.core.report import Estimate, RunReport

GOLDEN = Path(__file__).parents[1] / "golden" / "workspace" / "space" / "runs"
FILES = sorted(GOLDEN.glob("**/report.json"))
LATER = {"clusters", "ranges"}
"""Keys that reports of the earlier version lack."""


def read(file: Path) -> Any:
    return json.loads(file.read_text("utf-8"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.parent.name)
def test_a_report_of_an_earlier_version_is_written_back_with_every_key_and_value(
    file: Path,
) -> None:
    document = read(file)
    written = json.loads(json.dumps(RunReport.from_json(document, path=file).to_json()))
    assert {key: written[key] for key in document} == document
    assert written.keys() - document.keys() <= LATER


def test_a_column_is_found_by_its_name_and_an_unknown_one_names_those_there_are() -> None:
    mean = {"value": 0.5, "low": 0.4, "high": 0.6, "n": 30}
    document = {"run": "r", "metrics": {"em": mean}, "suite": {"rate": mean}}
    document |= {"definitions": {"rate": "Share."}, "ranges": {"rate": [0, 1]}}
    report = RunReport.from_json(document, path=Path("report.json"))
    assert report["em"].estimate == Estimate(0.5, 0.4, 0.6, 30)
    assert (report["rate"].own, report["rate"].column.definition) == (True, "Share.")
    assert report["rate"].column.range == (0, 1)
    with pytest.raises(NotFoundError, match=r"no column 'f1' \(columns: em, rate\)"):
        report["f1"]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("metrics", []),
        ("metrics", {"em": {"value": "x", "n": 1}}),
        ("metrics", {"em": {"value": float("nan"), "n": 1}}),
        ("n", True),
        ("n_errors", -1),
        ("seconds", 1e16),
        ("cost", {"total": 5}),
        ("judges", {"j": {"columns": "em"}}),
        ("ranges", {"em": [0]}),
        ("errors", {"no": "x"}),
    ],
)
def test_a_value_of_another_type_is_damage_of_the_named_file(key: str, value: Any) -> None:
    document = {**read(GOLDEN / "chain" / "report.json"), key: value}
    with pytest.raises(BadFileError, match=r"^/w/report.json was damaged .*'" + key):
        RunReport.from_json(document, path=Path("/w/report.json"))
