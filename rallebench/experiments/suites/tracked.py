"""A suite as one parent run in MLflow, the runs of its parts below it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rallebench.core.errors import RalleError
from rallebench.experiments.suites import kept
from rallebench.services.workbench import Workbench
from rallebench.tracking.groups import Group

MOST_NOTE = 3
"""Sentences of the report that stand in the parent's description; all are in its file."""


def track(workbench: Workbench, report: Mapping[str, Any]) -> str:
    """Put the runs of a suite below one MLflow run; '' or one sentence saying why that did not work."""
    if not report["parts"]:
        return ""
    try:
        workbench.log_group(group_of(workbench, report))
    except RalleError as error:
        return (
            f"The suite {report['name']!r} is complete but was not put together in MLflow: {error} "
            f"Send it later: rallebench track {report['name']!r}."
        )
    return ""


def group_of(workbench: Workbench, report: Mapping[str, Any]) -> Group:
    """What the parent run shows: a row for every part, the report and the files."""
    folder = kept.folder_of(workbench.workspace, report["name"])
    rows = [_row(part) for part in report["parts"]]
    columns = list(dict.fromkeys(name for row in rows for name in row))
    return Group(
        report["name"],
        "suite",
        [workbench.open_run(part["run"]).path for part in report["parts"]],
        verdict=" ".join([f"Suite {report['suite']}.", *report.get("notes", ())[:MOST_NOTE]]),
        rows=[{name: row.get(name) for name in columns} for row in rows],
        files=[folder / kept.REPORT],
    )


def _row(part: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"part": part["label"], "run": part["run"]}
    for name, mean in part["metrics"].items():
        found |= {
            name: mean["value"],
            f"{name} low": mean["low"],
            f"{name} high": mean["high"],
            f"{name} n": mean["n"],
        }
    return {
        **found,
        "questions": part["n"],
        "failed questions": part["n_errors"],
        "seconds": part["seconds"],
    }
