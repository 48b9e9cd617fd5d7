"""What indexes give and cost, as a table, a plot and a file. Pure: everything is escaped."""

from __future__ import annotations

import base64
import csv
import io
import shlex
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from rallebench.core.errors import RalleError, StoppedError
from rallebench.core.memory import size
from rallebench.experiments.tradeoff import Point, Tradeoff
from rallebench.gui.views import badge, error, note
from rallebench.render.colours import GRID, INK
from rallebench.render.colours import SERIES as COLOURS

AXES: Mapping[str, str] = {
    "recall": "recall@k against exact",
    "Rprec": "R-precision",
    "success_rate@1": "success@1",
    "success_rate@5": "success@5",
    "success_rate@10": "success@10",
    "single_qps": "queries a second, one by one",
    "batch_qps": "queries a second, in batches",
    "single_ms": "milliseconds a query, one by one",
    "batch_ms": "milliseconds a query, in batches",
    "ram": "memory while searching (MB)",
    "disk": "disk (MB)",
    "build_seconds": "seconds to build",
}
"""Key → what an axis shows."""

LOGARITHMIC = frozenset(
    {"single_qps", "batch_qps", "single_ms", "batch_ms", "ram", "disk", "build_seconds"}
)
MARKER = (9.0, 34.0)
"""Diameters of the smallest and the largest memory."""
COLUMNS = (
    "index",
    "kind",
    "settings",
    "recall",
    "Rprec",
    "success_rate@1",
    "success_rate@5",
    "success_rate@10",
    "single_ms",
    "batch_ms",
    "encode_ms",
    "ram_bytes",
    "disk_bytes",
    "build_seconds",
    "passages",
    "k",
    "n",
    "n_gold",
    "error",
)


def value_of(point: Point, axis: str) -> float | None:
    """What a point has on an axis; None if it was not measured."""
    if axis in ("single_qps", "batch_qps"):
        taken = point.single_ms if axis == "single_qps" else point.batch_ms
        return 1000.0 / taken if taken else None
    if axis in ("ram", "disk"):
        count = point.ram if axis == "ram" else point.disk
        return None if count is None else count / 1e6
    if axis in point.quality:
        return point.quality[axis]
    value = getattr(point, axis, None)
    return None if value is None else float(value)


def best_axis(points: Sequence[Point], axis: str) -> str:
    """``axis`` if any point has a value there, else the first measure of quality that has."""
    known = [axis, "recall", "Rprec", "success_rate@10", "success_rate@5", "success_rate@1"]
    return next(
        (a for a in known if any(value_of(p, a) is not None for p in points if not p.error)), axis
    )


def figure(points: Sequence[Point], across: str, up: str) -> Any:
    """A plotly figure: one line per index, a marker per setting, its area the memory while searching."""
    import plotly.graph_objects as go

    most = max((point.ram or 0 for point in points), default=0)
    drawn = go.Figure()
    for number, name in enumerate(
        dict.fromkeys(point.index for point in points if not point.error)
    ):
        own = [
            (value_of(p, across), value_of(p, up), p)
            for p in points
            if p.index == name and not p.error
        ]
        known = sorted(
            [(x, y, p) for x, y, p in own if x is not None and y is not None],
            key=lambda xyp: xyp[0],
        )
        drawn.add_trace(
            go.Scatter(
                x=[x for x, _, _ in known],
                y=[y for _, y, _ in known],
                name=name,
                mode="lines+markers",
                line={"width": 1.5, "color": COLOURS[number % len(COLOURS)]},
                marker={
                    "size": [_diameter(p.ram, most) for _, _, p in known],
                    "opacity": 0.85,
                    "line": {"width": 0},
                },
                text=[_hover(p) for _, _, p in known],
                hovertemplate="%{text}<extra></extra>",
            )
        )
    axis = {"gridcolor": GRID, "zeroline": False, "linecolor": GRID, "automargin": True}
    drawn.update_layout(
        xaxis={**axis, "title": AXES[across], "type": "log" if across in LOGARITHMIC else "linear"},
        yaxis={**axis, "title": AXES[up], "type": "log" if up in LOGARITHMIC else "linear"},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"color": INK, "size": 13},
        height=460,
        margin={"l": 60, "r": 20, "t": 20, "b": 55},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom"},
        showlegend=True,
    )
    return drawn


def _diameter(ram: int | None, most: int) -> float:
    low, high = MARKER
    return low + (high - low) * ((ram or 0) / most) ** 0.5 if most else low


def _hover(point: Point) -> str:
    lines = [f"<b>{escape(point.label)}</b>"]
    for axis in ("recall", "Rprec", "single_ms", "batch_ms"):
        if (value := value_of(point, axis)) is not None:
            lines.append(f"{AXES[axis]}: {value:.4g}")
    lines.append(f"memory while searching: {size(point.ram)}" if point.ram is not None else "")
    return "<br>".join(filter(None, lines))


# the table

NO_RECALL = (
    "–: recall is told of indexes over vectors, as long as an exact index (flat, numpy-flat) over the same passages and "
    "encoder, or their cached vectors, are there to compare with."
)


def whole(result: Tradeoff) -> str:
    """A result: its table, what failed, and its CSV file to take away."""
    gold = max((point.n_gold for point in result.points), default=0)
    facts = [
        f"{result.n:,} questions of {result.dataset}",
        f"{gold:,} with gold pages",
        f"k = {result.k}",
    ]
    badges = "".join(badge(fact) for fact in facts)
    content = base64.b64encode(as_csv(result).encode()).decode()
    link = (
        f'<a class="rb-link" id="data-tradeoff-csv" download="{escape(result.name, quote=True)}.csv" '
        f'href="data:text/csv;charset=utf-8;base64,{content}">Download CSV</a>'
    )
    untold = any(point.recall is None and not point.error for point in result.points)
    why = f'<div class="rb-label">{NO_RECALL}</div>' if untold else ""
    return (
        f'<div class="rb-label"><b>{escape(result.name)}</b>{badges}{link}</div>'
        + points(result.points)
        + why
    )


HEADS = (
    ("Index", "the index and the settings of its search"),
    ("Recall@k", "share of the exact k nearest passages that it finds"),
    ("R-prec", "R-precision of the pages found"),
    ("Success@1", "share of questions with a gold page at rank 1"),
    ("@5", "… among the first 5"),
    ("@10", "… among the first 10"),
    ("ms single", "milliseconds a query, asked one by one, median"),
    ("ms batch", "milliseconds a query, in batches of 64"),
    ("+ encode", "milliseconds that encoding one query adds"),
    ("Memory", "what a process grows by opening and searching it"),
    ("Disk", "all files of the index"),
    ("Build s", "seconds that its build took"),
    ("n", "questions asked"),
)


def points(found: Sequence[Point]) -> str:
    """One line per index and setting; failed ones with their sentence."""
    if not found:
        return ""
    heads = "".join(
        f'<th{_number(i)} title="{escape(about, quote=True)}">{name}</th>'
        for i, (name, about) in enumerate(HEADS)
    )
    body = "".join(_failed(point) if point.error else _line(point) for point in found)
    table = f'<table class="rb-table rb-tight"><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>'
    return f'<div class="rb-wide">{table}</div>'


def _number(column: int) -> str:
    return ' class="num"' if column else ""


def _failed(point: Point) -> str:
    return (
        f'<tr><td><b>{escape(point.label)}</b></td><td colspan="{len(HEADS) - 1}">{badge("failed", "bad")} '
        f"{escape(point.error)}</td></tr>"
    )


def _line(point: Point) -> str:
    quality = [
        _shown(point.quality.get(name), 3)
        for name in ("Rprec", "success_rate@1", "success_rate@5", "success_rate@10")
    ]
    cells = [
        _shown(point.recall, 4),
        *quality,
        _shown(point.single_ms, 2),
        _shown(point.batch_ms, 3),
        _shown(point.encode_ms, 1),
        "–" if point.ram is None else size(point.ram),
        size(point.disk) if point.disk else "–",
        _shown(point.build_seconds or None, 1),
        f"{point.n:,}",
    ]
    knobs = ", ".join(f"{name} {value}" for name, value in point.knobs.items())
    label = (
        f"<b>{escape(point.index)}</b> "
        + badge(point.kind)
        + (f" {escape(knobs)}" if knobs else "")
    )
    return (
        f"<tr><td>{label}</td>"
        + "".join(f'<td class="num">{cell}</td>' for cell in cells)
        + "</tr>"
    )


def _shown(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


# while it is measured, and to have it again


def measuring(name: str, events: Sequence[Any], stopping: bool = False) -> str:
    """How far a measurement is: its newest event."""
    told = [
        f"{event.task}: {getattr(event, 'message', '')}"
        for event in events
        if hasattr(event, "task")
    ]
    now = told[-1].removesuffix(": ") if told else "beginning"
    return note(f"{f'Stopping {name}' if stopping else f'Measuring {name}: {now}'} …")


def ended(name: str, end: Any) -> str:
    """How a measurement ended: with a RalleError, or with an ExperimentResult."""
    if isinstance(end, StoppedError):
        return note(str(end))
    if isinstance(end, RalleError):
        return error(f"{name}: {end}")
    failed = len(end.report.failed)
    bad = f", {failed} of them failed" if failed else ""
    text = f"Measured {name}: {len(end.document['points'])} settings{bad}. It is stored, and shown below."
    return note(text, "good")


def as_csv(result: Tradeoff) -> str:
    """All points with every figure."""
    out = io.StringIO()
    rows = csv.writer(out)
    rows.writerow(COLUMNS)
    for p in result.points:
        knobs = " ".join(f"{name}={value}" for name, value in p.knobs.items())
        quality = [p.quality.get(name) for name in COLUMNS[4:8]]
        rows.writerow(
            [
                p.index,
                p.kind,
                knobs,
                p.recall,
                *quality,
                p.single_ms,
                p.batch_ms,
                p.encode_ms,
                p.ram,
                p.disk,
                p.build_seconds,
                p.passages,
                p.k,
                p.n,
                p.n_gold,
                p.error,
            ]
        )
    return out.getvalue()


def command(result: Tradeoff, workspace: str) -> str:
    """The command line that measures the same."""
    indexes = dict.fromkeys(point.index for point in result.points)
    names = ",".join(f"({name})" if "," in name else name for name in indexes)
    words = [
        "python",
        "-m",
        "rallebench",
        "tradeoff",
        "--workspace",
        workspace,
        "--index",
        names,
        "--dataset",
        result.dataset,
    ]
    words += ["-k", str(result.k), "--limit", str(max(result.n, 1)), "--json"]
    shown = escape(" ".join(shlex.quote(word) for word in words))
    return f'<div class="rb-label"><span>The same on the command line:</span></div><div class="rb-text"><code>{shown}</code></div>'
