"""R-Eval's plots as plotly figures: radar, nested rings, bubbles, boxes, bars. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from rallebench.analysis.agents import AgentTask
from rallebench.analysis.agents.aspects import (
    DeploymentPoint,
    MatchingScores,
    NormalizedScores,
    OracleScore,
)
from rallebench.analysis.agents.errors import CLASSES, RIGHT, WRONG, ErrorBreakdown
from rallebench.analysis.agents.leaderboard import domain_name

INK, GRID = "#8391a5", "rgba(128,140,160,.28)"
"""Readable on white and on black."""
COLOURS = (
    "#0d9488",
    "#d97706",
    "#4f7fe5",
    "#c0458b",
    "#65a30d",
    "#8b5cf6",
    "#dc4c3e",
    "#0891b2",
    "#a16207",
    "#64748b",
)
OF_CLASS: Mapping[str, str] = {
    "EM": "#0d9488",
    "AM": "#5eead4",
    "GE": "#d97706",
    "ME": "#dc4c3e",
    "TE": "#c0458b",
    "SL": "#8b5cf6",
    "CL": "#4f7fe5",
    "OL": "#0891b2",
    "RE": "#94a3b8",
}
_AXIS = {"gridcolor": GRID, "zeroline": False, "linecolor": GRID, "automargin": True}
SMALLEST, LARGEST = 12.0, 46.0
"""Diameters of bubbles."""


def _layout(figure: Any, height: int = 430, **more: Any) -> Any:
    figure.update_layout(
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"color": INK, "size": 13},
        height=height,
        margin={"l": 60, "r": 30, "t": 50, "b": 50},
        **more,
    )
    return figure


def radar(scores: MatchingScores) -> Any:
    """One workflow: a polygon per model over its groups, in percent; bars for fewer than three groups."""
    import plotly.graph_objects as go

    figure = go.Figure()
    axes = [escape(group.label, quote=False) for group in scores.groups]
    for i, (llm, row) in enumerate(scores.values.items()):
        values = [None if value is None else 100 * value for value in row]
        colour = COLOURS[i % len(COLOURS)]
        if len(axes) < 3:
            figure.add_trace(go.Bar(x=axes, y=values, name=escape(llm), marker={"color": colour}))
            continue
        figure.add_trace(
            go.Scatterpolar(
                r=[*values, values[0]],
                theta=[*axes, axes[0]],
                name=escape(llm),
                line={"color": colour},
                opacity=0.8,
                fill="none" if None in values else "toself",
                mode="lines+markers",
                hovertemplate=f"<b>{escape(llm)}</b><br>%{{theta}}: F1 %{{r:.1f}}<extra></extra>",
            )
        )
    grid = {"gridcolor": GRID, "linecolor": GRID}
    polar = {
        "radialaxis": {**grid, "range": [0, 100]},
        "angularaxis": grid,
        "bgcolor": "rgba(0,0,0,0)",
    }
    layout = (
        {"polar": polar}
        if len(axes) >= 3
        else {
            "yaxis": {**_AXIS, "range": [0, 100], "title": "F1"},
            "xaxis": _AXIS,
            "barmode": "group",
        }
    )
    return _layout(figure, title={"text": escape(scores.workflow)}, showlegend=True, **layout)


def rings(breakdown: ErrorBreakdown) -> Any:
    """One system: right and wrong inside, the classes outside, in percent."""
    import plotly.graph_objects as go

    names = [name for name in CLASSES if breakdown.shares.get(name)]
    shares = [breakdown.shares[name] for name in names]
    unasked = max(0.0, 100 - sum(shares))  # of R-Eval's hundred questions
    outer_names, outer, colours = list(names), list(shares), [OF_CLASS[name] for name in names]
    if unasked > 0.05 and names:
        outer_names, outer, colours = (
            [*outer_names, "not asked"],
            [*outer, unasked],
            [*colours, "rgba(128,140,160,.15)"],
        )
    inner = [
        ("ACC", breakdown.sum(RIGHT), "#0f766e"),
        ("WA", breakdown.sum(WRONG), "#9f1239"),
        ("not asked", unasked if unasked > 0.05 else 0.0, "rgba(128,140,160,.15)"),
    ]
    inner = [part for part in inner if part[1] > 0]
    common = {
        "sort": False,
        "direction": "clockwise",
        "rotation": 0,
        "texttemplate": "%{label}<br>%{value:.1f}",
        "showlegend": False,
    }
    figure = go.Figure()
    if names:
        figure.add_trace(
            go.Pie(
                labels=[part[0] for part in inner],
                values=[part[1] for part in inner],
                hole=0.35,
                textposition="inside",
                domain={"x": [0.2, 0.8], "y": [0.2, 0.8]},
                marker={"colors": [part[2] for part in inner]},
                insidetextfont={"color": "#fff"},
                hovertemplate="%{label}: %{value:.1f} %<extra></extra>",
                **common,
            )
        )
        figure.add_trace(
            go.Pie(
                labels=outer_names,
                values=outer,
                hole=0.66,
                textposition="outside",
                marker={"colors": colours, "line": {"width": 1, "color": "rgba(255,255,255,.6)"}},
                text=[CLASSES.get(name, "") for name in outer_names],
                hovertemplate="%{label}: %{value:.1f} %<br>%{text}<extra></extra>",
                **common,
            )
        )
    else:
        figure.add_annotation(text="No question of this system is scored.", showarrow=False)
    _layout(
        figure, 430, title={"text": f"{escape(breakdown.system.label)} ({breakdown.n} questions)"}
    )
    return figure.update_layout(margin={"t": 90})  # room for a label between ring and title


def bubbles(points: Sequence[DeploymentPoint], domain: str, across: str = "seconds") -> Any:
    """F1 against seconds (or tokens) per question, a bubble per system. Its area is the model's size, or
    the memory of its models and indexes if no size is known."""
    import plotly.graph_objects as go

    figure = go.Figure()
    known = [
        p
        for p in points
        if p.domain == domain and p.reward is not None and getattr(p, across) is not None
    ]
    by = "size" if any(p.size for p in known) else "memory"
    most = max((getattr(p, by) or 0 for p in known), default=0)
    for i, point in enumerate(known):
        size = (
            SMALLEST + (LARGEST - SMALLEST) * ((getattr(point, by) or 0) / most) ** 0.5
            if most
            else 18
        )
        label = escape(point.system.label)
        size_text = (
            f"{point.size:g} B parameters"
            if point.size
            else f"{point.memory / 1e6:,.0f} MB"
            if point.memory
            else "size not known"
        )
        figure.add_trace(
            go.Scatter(
                x=[getattr(point, across)],
                y=[100 * (point.reward or 0)],
                name=label,
                mode="markers",
                cliponaxis=False,
                marker={"size": size, "color": COLOURS[i % len(COLOURS)], "opacity": 0.75},
                hovertemplate=f"<b>{label}</b><br>F1: %{{y:.1f}}<br>{across} a question: %{{x:.4g}}<br>{size_text}<extra></extra>",
            )
        )
    if not known:
        figure.add_annotation(text=f"No system has both F1 and {across} here.", showarrow=False)
    right, top = (
        max((getattr(p, across) for p in known), default=0) or 1,
        max((100 * (p.reward or 0) for p in known), default=0) or 1,
    )
    return _layout(
        figure,
        470,
        title={"text": escape(domain_name(domain))},
        showlegend=True,
        xaxis={**_AXIS, "title": f"{across} a question", "range": padded(right)},
        yaxis={**_AXIS, "title": "F1 (percent)", "range": padded(top)},
        legend={"orientation": "h", "y": -0.22, "yanchor": "top", "itemsizing": "constant"},
    )


def padded(most: float) -> list[float]:
    """The range of an axis: beyond 0 and ``most``, so that no bubble covers its numbers."""
    return [-0.12 * most, 1.18 * most]


def boxes(scores: NormalizedScores, by: str = "workflow") -> Any:
    """Scores divided by a reference's: a box per workflow, or per model; 1 is the reference."""
    import plotly.graph_objects as go

    figure = go.Figure()
    groups: dict[str, list[tuple[float, str]]] = {}
    for system, row in scores.ratios.items():
        name = (system.llm if by == "model" else system.workflow) or system.label
        groups.setdefault(name, []).extend(
            (ratio, f"{system.label}, {group.label}") for group, ratio in row.items()
        )
    for i, (name, values) in enumerate(groups.items()):
        figure.add_trace(
            go.Box(
                y=[value for value, _ in values],
                text=[escape(label) for _, label in values],
                name=escape(name),
                boxpoints="all",
                jitter=0.3,
                marker={"color": COLOURS[i % len(COLOURS)]},
                hovertemplate="%{text}: %{y:.3f}<extra></extra>",
            )
        )
    figure.add_hline(y=1, line={"dash": "dot", "color": INK, "width": 1})
    return _layout(
        figure,
        title={"text": f"F1 by that of {escape(scores.reference.label)}"},
        showlegend=False,
        xaxis=_AXIS,
        yaxis={**_AXIS, "title": "ratio", "rangemode": "tozero"},
    )


def oracle(tasks: Sequence[OracleScore]) -> Any:
    """By task: the best single system and the oracle, with the standard deviation per question."""
    import plotly.graph_objects as go

    figure = go.Figure()
    known = [task for task in tasks if task.mean is not None]
    names = [escape(_task_label(task.task)) for task in known]
    rows: tuple[tuple[str, list[float | None], list[float | None]], ...] = (
        (
            "best single system",
            [task.best_mean for task in known],
            [task.best_deviation for task in known],
        ),
        (
            "best of all, per question",
            [task.mean for task in known],
            [task.deviation for task in known],
        ),
    )
    for i, (name, values, deviations) in enumerate(rows):
        labels = [
            escape(task.best.label)
            if task.best and not i
            else f"{task.systems} systems, {task.n} questions"
            for task in known
        ]
        figure.add_trace(
            go.Bar(
                x=names,
                y=[100 * (value or 0) for value in values],
                name=name,
                marker={"color": COLOURS[i]},
                text=labels,
                textposition="none",
                error_y={
                    "type": "data",
                    "array": [100 * (value or 0) for value in deviations],
                    "thickness": 1,
                    "color": INK,
                },
                hovertemplate="%{x}: %{y:.1f}<br>%{text}<extra></extra>",
            )
        )
    if not known:
        figure.add_annotation(
            text="No task has questions that all systems answered.", showarrow=False
        )
    return _layout(
        figure,
        title={"text": "Combination"},
        barmode="group",
        xaxis=_AXIS,
        yaxis={**_AXIS, "title": "F1", "rangemode": "tozero"},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 1, "xanchor": "right"},
    )


def _task_label(task: AgentTask) -> str:
    return f"{task.order} {task.name}" if task.order != "~" else task.name
