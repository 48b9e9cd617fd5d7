"""An experiment as one parent run in MLflow, its runs below it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rallebench.engine.experiment_store import REPORT, ExperimentStore
from rallebench.engine.store import RunFolder
from rallebench.experiments.baselines import baseline_name
from rallebench.tracking.groups import Group
from rallebench.workspace.paths import Workspace

MOST_NOTES = 3
"""Sentences of the report in the parent's description; all are in its file."""


def group_of(workspace: Workspace, document: Mapping[str, Any], kind: str) -> Group | None:
    """What the parent run shows of an experiment's report: a row for each run, the verdict, the files. None without runs."""
    if "variants" in document:
        return _of_variants(workspace, document, kind)
    if "lines" in document:
        return _of_baselines(workspace, document)
    return _of_parts(workspace, document) if document.get("parts") else None


def _of_baselines(workspace: Workspace, report: Mapping[str, Any]) -> Group | None:
    """The baselines below a parent; the run itself stays where it is, because it may be below a sweep's."""
    if not report["lines"]:
        return None
    names = {"run": report["run"], **report["lines"]}
    rows = [
        {
            "baseline": column,
            "run": names.get(column, ""),
            **_means(
                {name: row[column] for name, row in report["metrics"].items() if column in row}
            ),
        }
        for column in ("run", *report["columns"])
    ]
    return Group(
        baseline_name(report["run"], "baselines"),
        "baselines",
        [workspace.runs / name for name in report["lines"].values()],
        verdict=f"Baselines of the run {report['run']}.",
        rows=_even(rows),
    )


def _of_parts(workspace: Workspace, report: Mapping[str, Any]) -> Group:
    rows = [
        {
            "part": part["label"],
            "run": part["run"],
            **_means(part["metrics"]),
            "questions": part["n"],
            "failed questions": part["n_errors"],
            "seconds": part["seconds"],
        }
        for part in report["parts"]
    ]
    return Group(
        report["name"],
        "suite",
        [workspace.runs / part["run"] for part in report["parts"]],
        verdict=" ".join([f"Suite {report['suite']}.", *report.get("notes", ())[:MOST_NOTES]]),
        rows=_even(rows),
        files=[ExperimentStore(workspace.path).folder(report["name"]) / REPORT],
    )


def _of_variants(workspace: Workspace, report: Mapping[str, Any], kind: str) -> Group | None:
    if not report["variants"]:
        return None
    rows = _even([_variant(workspace, row, report["metric"]) for row in report["variants"]])
    columns = list(rows[0])
    for variant, sentence in report["failed"].items():
        rows.append({**dict.fromkeys(columns), "variant": variant, "error": sentence})
    names = [row["run"] for row in report["variants"]]
    return Group(
        report["sweep"],
        kind,
        [workspace.runs / name for name in names],
        best=names[0] if report["metric"] or len(names) == 1 else "",
        verdict=report["verdict"],
        rows=_even(rows),
    )


def _variant(workspace: Workspace, row: Mapping[str, Any], metric: str | None) -> dict[str, Any]:
    """A variant; its metrics are over the questions that all variants share, where there are several."""
    report = RunFolder(workspace.runs / row["run"]).report() or {}
    means = row["metrics"] or report.get("metrics", {})
    ordered = {name: means[name] for name in sorted(means, key=lambda name: name != metric)}
    cells: dict[str, Any] = {"variant": row["variant"], "run": row["run"], **_means(ordered)}
    if row["difference"] is not None:
        cells |= {
            "difference to the best": row["difference"],
            "difference low": row["low"],
            "difference high": row["high"],
            "p (corrected)": row["p_corrected"],
        }
    return {**cells, "failed questions": report.get("n_errors"), "seconds": report.get("seconds")}


def _means(means: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Each mean as four columns."""
    cells: dict[str, Any] = {}
    for name, mean in means.items():
        cells[name] = mean["value"]
        cells |= {f"{name} {key}": mean[key] for key in ("low", "high", "n")}
    return cells


def _even(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows with the columns of all."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    return [{name: row.get(name) for name in columns} for row in rows]
