"""The plots of suites, of one or of two in one. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rallebench.engine.experiment_store import StoredExperiment


def plots_of(first: StoredExperiment, other: StoredExperiment | None) -> list[Mapping[str, Any]]:
    """A suite's plots; beside another's, the lines of both in each that both have, a line of the paper once."""
    mine = list((first.report or {}).get("plots", ()))
    theirs = {one["title"]: one for one in (other.report or {}).get("plots", ())} if other else {}
    found: list[Mapping[str, Any]] = []
    for one in mine:
        beside = theirs.get(one["title"], {"series": {}})["series"]
        series: dict[str, Any] = {}
        for name in dict.fromkeys([*one["series"], *beside]):
            both = [
                (kept, rows[name])
                for kept, rows in ((first, one["series"]), (other, beside))
                if kept and name in rows
            ]
            same = len(both) == 2 and all(point in both[0][1] for point in both[1][1])
            series |= (
                {name: both[0][1]}
                if same or not beside
                else {f"{name} ({kept.name})": points for kept, points in both}
            )
        found.append({**one, "series": series})
    return found
