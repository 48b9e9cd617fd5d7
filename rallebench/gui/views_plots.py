"""Plots of runs beside each other: quality against cost, radars. On the page by plotly, in a report as drawings. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from rallebench.analysis.measures import Measure
from rallebench.analysis.radar import Radar
from rallebench.core.memory import size
from rallebench.engine.statistics import Mean
from rallebench.gui import drawings
from rallebench.gui.views import note
from rallebench.gui.views_compare import mean_cell
from rallebench.gui.views_csv import csv_link
from rallebench.gui.views_tradeoff import COLOURS, GRID, INK

COST_AXES: Mapping[str, str] = {
    "seconds_per_question": "seconds a question",
    "tokens_per_question": "tokens a question",
    "completion_tokens_per_question": "written tokens a question",
}
"""Key → what the deployment plot shows across."""


def points(
    named: Sequence[tuple[str, Mapping[str, Any]]], metric: str, across: str
) -> list[tuple[str, float, float, int | None]]:
    """(run, cost, quality, bytes that its models and indexes took) of every run of which cost and quality are known."""
    known = []
    for name, report in named:
        value, cost = report.get("metrics", {}).get(metric, {}).get("value"), costs(report)
        if value is not None and cost[across] is not None:
            known.append(
                (name, cost[across] or 0.0, value, (report.get("memory") or {}).get("bytes"))
            )
    return known


def below(named: Sequence[tuple[str, Mapping[str, Any]]], metric: str, across: str) -> str:
    """What stands below the plot: what a bubble's size is, whose is not known, and which runs the plot lacks."""
    known, lacking = points(named, metric, across), note(unplotted(named, metric, across))
    if not known:
        return lacking
    hollow = [name for name, *_, held in known if held is None]
    unknown = f" Hollow, because it is not known: {', '.join(hollow)}." if hollow else ""
    said = f"The area of a bubble is the memory that the run's models and indexes took when they were loaded.{unknown}"
    rows: list[list[Any]] = [["run", across, metric, "memory_bytes"], *map(list, known)]
    return f'<div class="rb-label"><span>{escape(said)}</span></div>{lacking}{csv_link("quality-and-cost.csv", rows)}'


def unplotted(named: Sequence[tuple[str, Mapping[str, Any]]], metric: str, across: str) -> str:
    """Which runs the plot of quality against cost lacks; '' if it has all."""
    there = {name for name, *_ in points(named, metric, across)}
    left = [name for name, _ in named if name not in there]
    return (
        f"Not in the plot, because the metric or this cost is unknown: {', '.join(left)}."
        if left
        else ""
    )


def deployment_drawing(
    named: Sequence[tuple[str, Mapping[str, Any]]], of: Measure, across: str
) -> str:
    """The same plot as a drawing, with links that save it; '' if no run has both."""
    known = points(named, of.name, across)
    if not known:
        return ""
    most = max((held or 0 for *_, held in known), default=0) or 1
    bubbles = [(name, x, y, None if held is None else held / most) for name, x, y, held in known]
    return drawings.shown(
        drawings.bubbles(bubbles, COST_AXES[across], of.about["label"]), "quality-and-cost"
    ) + below(named, of.name, across)


def deployment(named: Sequence[tuple[str, Mapping[str, Any]]], of: Measure, across: str) -> Any:
    """A plotly figure: quality up, cost across, one bubble per run, its area the memory taken; hollow where that is not known."""
    import plotly.graph_objects as go

    known, label = points(named, of.name, across), of.about["label"]
    most = max((held or 0 for *_, held in known), default=0)
    drawn = go.Figure()
    if not known:
        drawn.add_annotation(
            text="No run has both the metric and this cost.", showarrow=False, font={"size": 14}
        )
    for i, (name, cost, value, held) in enumerate(known):
        colour, told = (
            COLOURS[i % len(COLOURS)],
            "memory not known" if held is None else f"memory: {size(held)}",
        )
        wide = 42 * (held / most) ** 0.5 if held and most else 14
        drawn.add_trace(
            go.Scatter(
                x=[cost],
                y=[value],
                name=escape(name),
                mode="markers+text",
                text=[escape(name)],
                textposition="top center",
                cliponaxis=False,
                marker={
                    "size": max(wide, 8),
                    "color": colour,
                    "opacity": 0.8,
                    "symbol": "circle-open" if held is None else "circle",
                    "line": {"width": 2 if held is None else 0, "color": colour},
                },
                hovertemplate=f"<b>{escape(name)}</b><br>{escape(label)}: %{{y:.4f}}<br>{COST_AXES[across]}: %{{x:.4g}}<br>{told}<extra></extra>",
            )
        )
    axis = {"gridcolor": GRID, "zeroline": False, "linecolor": GRID, "automargin": True}
    drawn.update_layout(
        xaxis={**axis, "title": COST_AXES[across], "rangemode": "tozero"},
        yaxis={**axis, "title": label},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"color": INK, "size": 13},
        height=420,
        margin={"l": 60, "r": 20, "t": 30, "b": 55},
        showlegend=False,
    )
    return drawn


def radar(found: Radar) -> Any:
    """A plotly figure: a polygon per line, an axis per question set or kind of question."""
    import plotly.graph_objects as go

    drawn = go.Figure()
    for i, (name, row) in enumerate(found.lines.items() if found.spans else ()):
        values = [mean.value if mean else None for mean in row]
        told = [f"n = {mean.n}" if mean else "" for mean in row]
        drawn.add_trace(
            go.Scatterpolar(
                r=[*values, values[0]],
                theta=[escape(axis, quote=False) for axis in (*found.axes, found.axes[0])],
                text=[*told, told[0]],
                name=escape(name),
                fill="toself" if None not in values else "none",
                opacity=0.75,
                line={"color": COLOURS[i % len(COLOURS)]},
                mode="lines+markers",
                hovertemplate=f"<b>{escape(name)}</b><br>%{{theta}}: %{{r:.4f}}, %{{text}}<extra></extra>",
            )
        )
    if not found.spans:
        drawn.add_annotation(
            text="A radar needs three axes; the table has the means.",
            showarrow=False,
            font={"size": 14},
        )
        drawn.update_layout(xaxis={"visible": False}, yaxis={"visible": False})
    grid = {"gridcolor": GRID, "linecolor": GRID}
    drawn.update_layout(
        polar={
            "radialaxis": {**grid, "range": [0, rim(found)]},
            "angularaxis": grid,
            "bgcolor": "rgba(0,0,0,0)",
        },
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"color": INK, "size": 13},
        height=460,
        showlegend=True,
        margin={"l": 60, "r": 60, "t": 40, "b": 40},
    )
    return drawn


def rim(found: Radar) -> float:
    """The value at the rim of a radar: 1 for what lies between 0 and 1, a little more than the largest for the rest."""
    most = max(
        (
            mean.value
            for row in found.lines.values()
            for mean in row
            if mean and mean.value is not None
        ),
        default=1.0,
    )
    return 1.0 if found.about.get("range", [None, None])[1] == 1 else most * 1.1 or 1.0


def radar_drawing(found: Radar) -> str:
    """The radar as a drawing with links that save it, and its table."""
    return drawings.shown(
        drawings.radar(found, f"{found.about['label']} by {found.by}", rim(found)), "radar"
    ) + radar_table(found)


def radar_table(found: Radar) -> str:
    """Axis by line, mean and interval."""
    about = found.about
    heads = f"<th>{escape(found.by)}</th>" + "".join(
        f'<th class="num">{escape(name)}</th>' for name in found.lines
    )
    body, rows = (
        "",
        [
            [
                found.by,
                *(
                    head
                    for name in found.lines
                    for head in (name, f"{name} low", f"{name} high", f"{name} n")
                ),
            ]
        ],
    )
    for i, axis in enumerate(found.axes):
        cells = [row[i] for row in found.lines.values()]
        shown_ = "".join(
            f'<td class="num">{_radar_cell(mean, about.get("unit", ""))}</td>' for mean in cells
        )
        body += f"<tr><td>{escape(axis)}</td>{shown_}</tr>"
        rows.append(
            [
                axis,
                *(
                    part
                    for mean in cells
                    for part in ((mean.value, mean.low, mean.high, mean.n) if mean else [None] * 4)
                ),
            ]
        )  # type: ignore[list-item]
    return (
        f'<div class="rb-label">{escape(about["label"])}, mean and 95 % interval over articles</div><div class="rb-wide"><table class="rb-table rb-tight">'
        f"<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>{csv_link('radar.csv', rows)}"
    )


def _radar_cell(mean: Mean | None, unit: str) -> str:
    return (
        f'{mean_cell(mean, unit, False)}<br><span class="rb-basis">n = {mean.n}</span>'
        if mean and mean.value is not None
        else "–"
    )


def costs(report: Mapping[str, Any]) -> dict[str, float | None]:
    """What a question cost on average when it was really asked, not what memory saved; None where it is not known."""
    mean = {name: value["value"] for name, value in report.get("metrics", {}).items()}
    read, written = mean.get("prompt_tokens"), mean.get("completion_tokens")
    return {
        "seconds_per_question": mean.get("seconds"),
        "tokens_per_question": None if read is None or written is None else read + written,
        "completion_tokens_per_question": written,
    }
