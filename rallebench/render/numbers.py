"""Format numbers for readers: columns of every format, intervals, times and counts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from rallebench.core.memory import size
from rallebench.core.numbers import ABSENT, as_estimate, no_interval, usd
from rallebench.core.numbers import (
    plural as plural,
)  # re-exported for the front ends
from rallebench.core.report import ClusterCounts, Estimate
from rallebench.core.tables import Format


def text(value: Any, format: Format = "score", absent: str = ABSENT) -> str:
    """Format a cell: ``absent`` for None, a mean with its interval and number of questions, a number by ``format``.

    >>> text(0.12345), text(1234.6), text(7, "percent"), text(0.9633, "percent"), text(None), text("k=1"), text(True)
    ('0.1235', '1,235', '7', '96.33', '–', 'k=1', 'yes')
    >>> text(Estimate(0.5, 0.4, 0.6, 30), "percent"), text(Estimate(None))
    ('50.00 [40.0, 60.0] n=30', 'not scored')
    """
    if (mean := as_estimate(value)) is not None:
        if mean.value is None:
            return "not scored"
        ends = (
            "" if mean.low is None or mean.high is None else f"{interval(mean, format, fewer=1)} "
        )
        return f"{text(mean.value, format)} {ends}n={mean.n:,}"
    if value is None:
        return absent
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, int) and format in ("score", "percent"):
        return f"{value:,}"
    return _FORMATS[format](value)


def interval(
    mean: Estimate,
    format: Format = "score",
    clusters: ClusterCounts | None = None,
    *,
    fewer: int = 0,
    note: str = "",
) -> str:
    """Format the interval of a mean or a difference, or say why there is none.

    ``fewer``: how many digits fewer than the mean to show; ``note``: the reason, if known.

    >>> interval(Estimate(0.1, -0.1, 0.25), "delta"), interval(Estimate(0.1), note="too few articles")
    ('[-0.1000, +0.2500]', 'too few articles')
    """
    if mean.low is None or mean.high is None:
        return note or no_interval(mean.n, clusters)
    shorten = _score if format == "score" else _percent if format == "percent" else None
    low, high = (
        shorten(end, fewer) if shorten else text(float(end), format)
        for end in (mean.low, mean.high)
    )
    return f"[{low}, {high}]"


def moment(when: datetime | str, *, seconds: bool = False) -> str:
    """Format a time as in "today 14:02", "yesterday 14:02", "23 Nov 14:02", "23 Nov 2024".

    ``when``: may also be text in ISO form; other text is returned unchanged. ``seconds``: include seconds, and the
    time of day for other years too.
    """
    try:
        local = (datetime.fromisoformat(when) if isinstance(when, str) else when).astimezone()
    except ValueError:
        return str(when)
    today = datetime.now().astimezone()
    clock = f"{local:%H:%M:%S}" if seconds else f"{local:%H:%M}"
    days = (today.date() - local.date()).days
    if days in (0, 1):
        return f"{'yesterday' if days else 'today'} {clock}"
    day = f"{local.day} {local:%b}"
    if local.year == today.year:
        return f"{day} {clock}"
    return f"{day} {local.year}" + (f" {clock}" if seconds else "")


def _score(value: float, fewer: int = 0) -> str:
    if abs(value) <= 1:
        return f"{value:.{4 - fewer}f}"
    return f"{value:.{2 - fewer}f}" if abs(value) < 1000 else f"{value:,.0f}"


def _percent(value: float, fewer: int = 0) -> str:
    return f"{100 * value:.{2 - fewer}f}"


def _count(value: float) -> str:
    """Format a whole number, or a mean of whole numbers."""
    return f"{value:,.0f}" if value == int(value) or value >= 1000 else f"{value:.1f}"


def _quantity(value: float) -> str:
    """Format a number of seconds, tokens per second and so on, without its unit.

    >>> [_quantity(value) for value in (0, 0.0004, 0.5, 12, 12.34, 12345.6)]
    ['0', '< 0.001', '0.500', '12.0', '12.3', '12,346']
    """
    if value == 0:
        return "0"
    if value < 0.001:
        return "< 0.001"
    if value < 1:
        return f"{value:.3f}"
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 1000 else f"{value:,.0f}"


def _duration(seconds: float) -> str:
    """Format seconds in clock units.

    >>> [_duration(value) for value in (0.02, 5.4, 120, 7300)]
    ['0.02 s', '5 s', '2 min', '2 h 1 min']
    """
    if seconds < 2:
        return f"{seconds:.2f} s" if seconds >= 0.01 else "< 0.01 s" if seconds else "0 s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    first, second = ("min", "s") if whole < 3600 else ("h", "min")
    large, small = divmod(whole if whole < 3600 else whole // 60, 60)
    return f"{large:,} {first}" + (f" {small} {second}" if small else "")


def about_time(seconds: float) -> str:
    """Format a rough estimate of a time.

    >>> [about_time(value) for value in (0.4, 7.2, 43, 171, 5200)]
    ['a few seconds', 'about 8 s', 'about 45 s', 'about 3 min', 'about 1 h 30 min']
    """
    if seconds < 5:
        return "a few seconds"
    unit, step = _unit(seconds)
    return f"about {_duration(unit * step * math.ceil(round(seconds / unit / step, 6)))}"


def time_range(low: float, high: float) -> str:
    """Format a rough range of times.

    >>> [time_range(*ends) for ends in ((0.1, 0.8), (3, 4), (21, 38), (50, 80), (100, 280), (4000, 9000), (4000, 20000))]
    ['a few seconds', 'a few seconds', '20–40 s', '50–80 s', '1–5 min', '65–150 min', '1–6 h']
    """
    if high < 5:
        return "a few seconds"
    unit, step = _unit(high)
    name = {1: "s", 60: "min", 3600: "h"}[unit]
    first = step * math.floor(round(low / unit / step, 6))
    last = step * math.ceil(round(high / unit / step, 6))
    if first == last:
        return f"about {last} {name}"
    return f"{first}–{last} {name}" if first else f"up to {last} {name}"


def _unit(seconds: float) -> tuple[int, int]:
    """Return (seconds of the unit suited to such a time, number of units to round to)."""
    unit = 1 if seconds <= 90 else 60 if seconds <= 10_800 else 3600
    number = seconds / unit
    return unit, 1 if number < 10 else 5 if number <= 45 or unit > 1 else 10


def _p(p: float) -> str:
    """Format a p-value without rounding it across .05.

    >>> _p(0.0312), _p(0.0496), _p(0.00001)
    ('0.031', '0.0496', '< 0.001')
    """
    if p < 0.001:
        return "< 0.001"
    rounded = f"{p:.3f}"
    return f"{math.floor(p * 1e4) / 1e4:.4f}" if rounded == "0.050" and p < 0.05 else rounded


_FORMATS: Mapping[Format, Callable[[float], str]] = {
    "text": str,
    "count": _count,
    "score": _score,
    "percent": _percent,
    "quantity": _quantity,
    "seconds": lambda value: f"{_quantity(value)} s",
    "duration": _duration,
    "bytes": lambda value: size(int(value)),
    "usd": usd,
    "p": _p,
    "delta": lambda value: f"{value:+.4f}",
}
