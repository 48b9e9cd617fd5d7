"""Figures for the page: one function, a trace builder per kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from typing import Any

from rallebench.core.numbers import mean_of
from rallebench.core.tables import Figure
from rallebench.render import colours
from rallebench.render.numbers import measured

SMALLEST, LARGEST, UNSIZED = 8.0, 44.0, 14.0
"""Diameters of bubbles; of those whose size is not known."""
_GRID = {"gridcolor": colours.GRID, "linecolor": colours.GRID}
_AXIS = {**_GRID, "zeroline": False, "automargin": True}


def figure(value: Figure) -> Any:
    """A plotly figure. Without a point it says ``value.empty``."""
    import plotly.graph_objects as go

    plot = go.Figure()
    for trace in _TRACES.get(value.kind, _points)(value):
        plot.add_trace(trace)
    if not plot.data:
        plot.add_annotation(text=escape(value.empty), showarrow=False, font={"size": 14})
    plot.update_layout(
        title={"text": _plain(value.title), "font": {"size": 15}, "x": 0.02},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"color": colours.INK, "size": 13},
        height=430,
        margin={"l": 60, "r": 30, "t": 60, "b": 55},
        legend={"orientation": "h", "y": -0.22, "yanchor": "top", "itemsizing": "constant"},
        showlegend=len(value.series) > 1 and value.kind not in ("rings", "box"),
    )
    if value.kind == "radar":
        radial = {**_GRID, "range": [0, value.high]}
        polar = {"radialaxis": radial, "angularaxis": _GRID, "bgcolor": "rgba(0,0,0,0)"}
        plot.update_layout(polar=polar)
    elif value.kind != "rings":
        end = None if value.high is None else [0, value.high]
        y = {**_AXIS, "title": _plain(value.y), "range": end}
        plot.update_layout(xaxis={**_AXIS, "title": _plain(value.x)}, yaxis=y, barmode="group")
        if not plot.data:
            plot.update_layout(xaxis={"visible": False}, yaxis={"visible": False})
    return plot


def _plain(text: Any) -> Any:
    return escape(text, quote=False) if isinstance(text, str) else text


def _points(value: Figure) -> list[Any]:
    """Lines, bars or points, every interval as an error bar."""
    import plotly.graph_objects as go

    traces = []
    for number, (name, points) in enumerate(value.series.items()):
        known, colour = measured(points), colours.series(number)
        if not known:
            continue
        common: dict[str, Any] = {
            "x": [_plain(x) for x, _, _ in known],
            "y": [y["value"] for _, y, _ in known],
            "name": _plain(name),
            "error_y": _whiskers([y for _, y, _ in known]),
            "text": [_plain(more[0]) if more else "" for *_, more in known],
            "hovertemplate": "%{x}<br>%{y:.4g} %{text}<extra>" + escape(name) + "</extra>",
        }
        if value.kind == "bar":
            bar = {"color": colour, "line": {"width": 0}}
            traces.append(go.Bar(**common, marker=bar, textposition="none"))
        else:
            mode = "markers" if value.kind == "scatter" else "lines+markers"
            line, marker = {"width": 1.8, "color": colour}, {"size": 8, "color": colour}
            traces.append(go.Scatter(**common, mode=mode, line=line, marker=marker))
    return traces


def _whiskers(means: list[Mapping[str, Any]]) -> dict[str, Any]:
    up = [0 if mean["high"] is None else mean["high"] - mean["value"] for mean in means]
    down = [0 if mean["low"] is None else mean["value"] - mean["low"] for mean in means]
    return {
        "type": "data",
        "symmetric": False,
        "array": up,
        "arrayminus": down,
        "thickness": 1.2,
        "color": colours.INK,
        "visible": any(up) or any(down),
    }


def _radar(value: Figure) -> list[Any]:
    """A polygon per series, filled if every axis has a value; nothing for fewer than three axes, which span no area."""
    import plotly.graph_objects as go

    traces = []
    for number, (name, points) in enumerate(value.series.items()):
        means = [mean_of(y) or {"value": y} for _, y in points]
        values = [mean["value"] for mean in means]
        counts = [f"n = {mean['n']}" if mean.get("n") else "" for mean in means]
        axes = [_plain(x) for x, _ in points]
        if len(axes) < 3:
            continue
        traces.append(
            go.Scatterpolar(
                r=[*values, values[0]],
                theta=[*axes, axes[0]],
                text=[*counts, counts[0]],
                name=escape(name),
                fill="none" if None in values else "toself",
                opacity=0.75,
                line={"color": colours.series(number)},
                mode="lines+markers",
                hovertemplate=f"<b>{escape(name)}</b><br>%{{theta}}: %{{r:.4g}} %{{text}}<extra></extra>",
            )
        )
    return traces


def _bubbles(value: Figure) -> list[Any]:
    """A named bubble per series; hollow where its size is not known."""
    import plotly.graph_objects as go

    points = {name: point for name, (point, *_) in value.series.items()}
    most = max((size or 0 for _, _, size, *_ in points.values()), default=0)
    traces = []
    for number, (name, (x, y, size, *words)) in enumerate(points.items()):
        share = (size / most) ** 0.5 if size and most else 0.0
        colour = colours.series(number)
        traces.append(
            go.Scatter(
                x=[x],
                y=[y],
                name=escape(name),
                mode="markers+text",
                text=[escape(name)],
                textposition="top center",
                cliponaxis=False,
                marker={
                    "size": UNSIZED if size is None else max(SMALLEST, LARGEST * share),
                    "color": colour,
                    "opacity": 0.8,
                    "symbol": "circle-open" if size is None else "circle",
                    "line": {"width": 2 if size is None else 0, "color": colour},
                },
                hovertemplate=f"<b>{escape(name)}</b><br>{escape(value.y)}: %{{y:.4g}}<br>{escape(value.x)}: %{{x:.4g}}"
                f"<br>{escape(' '.join(words))}<extra></extra>",
            )
        )
    return traces


def _boxes(value: Figure) -> list[Any]:
    """A box per series with all its points."""
    import plotly.graph_objects as go

    return [
        go.Box(
            y=[y for _, y in points],
            text=[escape(label) for label, _ in points],
            name=escape(name),
            boxpoints="all",
            jitter=0.3,
            marker={"color": colours.series(number)},
            hovertemplate="%{text}: %{y:.3f}<extra></extra>",
        )
        for number, (name, points) in enumerate(value.series.items())
    ]


def _rings(value: Figure) -> list[Any]:
    """Two rings of shares, the first series inside."""
    import plotly.graph_objects as go

    traces = []
    for inner, points in zip((True, False), value.series.values()):
        if not points:
            continue
        keys = [key for key, _ in points]
        place: dict[str, Any] = (
            {"hole": 0.35, "domain": {"x": [0.2, 0.8], "y": [0.2, 0.8]}, "textposition": "inside"}
            if inner
            else {"hole": 0.66, "textposition": "outside"}
        )
        traces.append(
            go.Pie(
                labels=keys,
                values=[share for _, share in points],
                text=[value.labels.get(key, "") for key in keys],
                marker={"colors": [colours.part(key) for key in keys]},
                sort=False,
                direction="clockwise",
                texttemplate="%{label}<br>%{value:.1f}",
                hovertemplate="%{label}: %{value:.1f} %<br>%{text}<extra></extra>",
                showlegend=False,
                **place,
            )
        )
    return traces


_TRACES: Mapping[str, Callable[[Figure], list[Any]]] = {
    "radar": _radar,
    "bubble": _bubbles,
    "box": _boxes,
    "rings": _rings,
}
