"""A sweep, or a folder of chains that was run, as one parent run in MLflow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rallebench.core.errors import RalleError
from rallebench.services.workbench import Workbench
from rallebench.tracking.groups import Group


def track(workbench: Workbench, told: Mapping[str, Any], kind: str = "sweep") -> str:
    """Put the runs of a sweep below one MLflow run; '' or one sentence saying why that did not work.

    ``told``: the JSON document of ``results.as_json``, the best variant first.
    """
    if not told["variants"]:
        return ""
    try:
        workbench.log_group(group_of(workbench, told, kind))
    except RalleError as error:
        later = (
            f"Send it later: rallebench track {told['sweep']}."
            if kind == "sweep"
            else "Send its runs later: rallebench track RUN."
        )
        return f"The {kind} {told['sweep']!r} is complete but was not put together in MLflow: {error} {later}"
    return ""


def group_of(workbench: Workbench, told: Mapping[str, Any], kind: str = "sweep") -> Group:
    """What the parent run shows: the verdict, the metrics of the best, a row for every variant."""
    rows = [_row(workbench, row, told["metric"]) for row in told["variants"]]
    columns = list(dict.fromkeys(name for row in rows for name in row))
    rows += [
        {"variant": variant, "error": sentence} for variant, sentence in told["failed"].items()
    ]
    columns += ["error"] if told["failed"] else []
    runs = [row["run"] for row in told["variants"]]
    return Group(
        told["sweep"],
        kind,
        [workbench.open_run(run).path for run in runs],
        best=runs[0] if told["metric"] or len(runs) == 1 else "",
        verdict=told["verdict"],
        rows=[{name: row.get(name) for name in columns} for row in rows],
    )


def _row(workbench: Workbench, row: Mapping[str, Any], decides: str | None) -> dict[str, Any]:
    """A variant; its metrics are over the questions that all variants share, where there are several."""
    report = workbench.open_run(row["run"]).report() or {}
    means = row["metrics"] or report.get("metrics", {})
    found: dict[str, Any] = {"variant": row["variant"], "run": row["run"]}
    for name in sorted(means, key=lambda name: name != decides):
        mean = means[name]
        found |= {
            name: mean["value"],
            f"{name} low": mean["low"],
            f"{name} high": mean["high"],
            f"{name} n": mean["n"],
        }
    if row["difference"] is not None:
        found |= {
            "difference to the best": row["difference"],
            "difference low": row["low"],
            "difference high": row["high"],
            "p (corrected)": row["p_corrected"],
        }
    return {**found, "failed questions": report.get("n_errors"), "seconds": report.get("seconds")}
