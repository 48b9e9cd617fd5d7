"""The plots of suites, of one or of two in one. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from rallebench.engine.experiment_store import StoredExperiment
from rallebench.gui.views_tradeoff import COLOURS, GRID, INK
from rallebench.render.numbers import mean_of


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


def plot(made: Mapping[str, Any]) -> Any:
    """A plotly figure: lines, bars or points, every interval as an error bar."""
    import plotly.graph_objects as go

    drawn = go.Figure()
    for number, (name, points) in enumerate(made["series"].items()):
        known = [(x, mean_of(y) or {"value": y, "low": None, "high": None}) for x, y in points]
        known = [(x, y) for x, y in known if x is not None and y["value"] is not None]
        given: dict[str, Any] = {
            "x": [escape(x, quote=False) if isinstance(x, str) else x for x, _ in known],
            "y": [y["value"] for _, y in known],
            "name": escape(name, quote=False),
            "error_y": _whiskers([y for _, y in known]),
            "hovertemplate": "%{x}<br>%{y:.4f}<extra>" + escape(name) + "</extra>",
        }
        colour = COLOURS[number % len(COLOURS)]
        if made["kind"] == "bar":
            drawn.add_trace(go.Bar(**given, marker={"color": colour, "line": {"width": 0}}))
        else:
            mode = "markers" if made["kind"] == "scatter" else "lines+markers"
            drawn.add_trace(
                go.Scatter(
                    **given,
                    mode=mode,
                    line={"width": 1.8, "color": colour},
                    marker={"size": 8, "color": colour},
                )
            )
    axis = {"gridcolor": GRID, "zeroline": False, "linecolor": GRID, "automargin": True}
    drawn.update_layout(
        title={"text": escape(made["title"], quote=False), "font": {"size": 15}, "x": 0.02},
        barmode="group",
        xaxis={**axis, "title": escape(made["x"], quote=False)},
        yaxis={**axis, "title": escape(made["y"], quote=False)},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"color": INK, "size": 13},
        height=400,
        margin={"l": 60, "r": 20, "t": 50, "b": 55},
        legend={"orientation": "h", "y": -0.22},
        showlegend=len(made["series"]) > 1,
    )
    return drawn


def _whiskers(means: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    up = [0 if mean["high"] is None else mean["high"] - mean["value"] for mean in means]
    down = [0 if mean["low"] is None else mean["value"] - mean["low"] for mean in means]
    shown = any(up) or any(down)
    return {
        "type": "data",
        "symmetric": False,
        "array": up,
        "arrayminus": down,
        "thickness": 1.2,
        "color": INK,
        "visible": shown,
    }
