"""Axes of plots: their ends, their ticks, and values in their units as words."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from rallebench.core.memory import size
from rallebench.core.numbers import plural, spread, usd
from rallebench.core.report import Estimate
from rallebench.core.tables import Unit
from rallebench.render.numbers import text

STEPS = 6
"""Ticks of an axis, approximately."""
ROOM = 0.05
"""Share of the data's range that stays free at both ends of an axis."""
Bounds = tuple["float | None", "float | None"]
BOUNDS: dict[Unit, Bounds] = {"share": (0.0, 1.0), "percent": (0.0, 100.0)}
"""Unit → its lowest and highest possible value."""
MEASURED: Bounds = (0.0, None)
FACTORS: dict[Unit, float] = {"share": 100.0}


@dataclass(frozen=True, slots=True)
class Axis:
    """The ends of an axis with its unit. ``log``: logarithmic; ``step``: between ticks, 0 for any that fits."""

    low: float
    high: float
    unit: Unit = ""
    log: bool = False
    step: float = 0.0

    def place(self, value: float) -> float:
        """The position of a value, 0 at the low end and 1 at the high one."""
        if self.log:
            value, low, high = (math.log10(max(x, 1e-300)) for x in (value, self.low, self.high))
        else:
            low, high = self.low, self.high
        return (value - low) / ((high - low) or 1.0)

    def ticks(self) -> list[tuple[float, str]]:
        """Round numbers between the ends, ascending, each with its text."""
        if self.log:
            return [(at, value_words(at, self.unit)) for at in log_ticks(self.low, self.high)]
        if not self.high > self.low:
            return [(self.low, value_words(self.low, self.unit))]
        step = self.step or round_step(self.low, self.high)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [(n * step, tick_words(n * step, step, self.unit)) for n in range(first, last + 1)]


def fit_axis(
    values: Iterable[float], unit: Unit = "", *, from_zero: bool = False, log: bool = False
) -> Axis:
    """The axis over all values that begins and ends at a tick.

    It does not go beyond the possible values of its unit, or below 0 if no value does. ``from_zero``: as bars need it.
    Values that have no logarithm make the axis linear.

    >>> axis = fit_axis([0.452, 0.583], "share")
    >>> axis.low, axis.high, [words for _, words in axis.ticks()]
    (0.4, 0.6, ['40 %', '45 %', '50 %', '55 %', '60 %'])
    >>> [words for _, words in fit_axis([3, 8100], log=True).ticks()]
    ['1', '10', '100', '1,000', '10,000']
    """
    known = sorted(values) or [0.0, 1.0]
    low, high = known[0], known[-1]
    if log and low > 0:
        ticks = log_ticks(low, high)
        return Axis(ticks[0], ticks[-1], unit, log=True)
    least, most = BOUNDS.get(unit, (0.0 if low >= 0 else None, None))
    if from_zero:
        low, high = min(0.0, low), max(0.0, high)
    else:
        room = ROOM * (high - low) or 0.1 * abs(high) or 0.5
        low, high = low - room, high + room
        low = low if least is None or known[0] < least else max(low, least)
        high = high if most is None or known[-1] > most else min(high, most)
    if not high > low:
        high = low + (1.0 if unit != "percent" else 100.0)
    step = round_step(low, high)
    low, high = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
    return Axis(float(f"{low:.12g}"), float(f"{high:.12g}"), unit, step=step)


def frame_axis(values: Iterable[float], unit: Unit = "", *, log: bool = False) -> Axis:
    """The axis over all values that leaves room for the marks at both ends, without looking for ticks."""
    known = sorted(values) or [0.0, 1.0]
    if log and known[0] > 0:
        return fit_axis(known, unit, log=True)
    room = ROOM * (known[-1] - known[0]) or 0.5
    return Axis(known[0] - room, known[-1] + room, unit)


def round_step(low: float, high: float) -> float:
    """A step of 1, 2 or 5 times a power of ten that divides the range into about STEPS parts.

    >>> round_step(0, 1460), round_step(0.237, 0.497)
    (500.0, 0.05)
    """
    raw = (high - low) / STEPS
    power = math.floor(math.log10(raw))
    factor = next(f for f in (1, 2, 5, 10) if f * 10.0**power >= raw * (1 - 1e-9))
    return float(f"{factor}e{power}")


def log_ticks(low: float, high: float) -> list[float]:
    """Powers of ten that include both ends; with 2 and 5 times them if they are few."""
    first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
    if last - first > 2:
        return [float(f"1e{n}") for n in range(first, last + 1)]
    all_of = [float(f"{f}e{n}") for n in range(first - 1, last + 2) for f in (1, 2, 5)]
    start = max(i for i, tick in enumerate(all_of) if tick <= low * (1 + 1e-9))
    end = min(i for i, tick in enumerate(all_of) if tick >= high * (1 - 1e-9))
    if end == start:
        end += 1
    return all_of[start : end + 1]


def tick_words(value: float, step: float, unit: Unit = "") -> str:
    """The text of a tick, with as many digits as its step needs."""
    if unit in ("bytes", "usd"):
        return value_words(value, unit)
    factor = FACTORS.get(unit, 1.0)
    digits = max(0, -math.floor(math.log10(factor * step) + 1e-9))
    words = f"{factor * value:,.{digits}f}".replace("-", "−")
    return words + _suffix(unit)


def _suffix(unit: Unit) -> str:
    return {"share": " %", "percent": " %", "seconds": " s", "ms": " ms"}.get(unit, "")


def value_words(value: float, unit: Unit = "") -> str:
    """A value with its unit.

    >>> value_words(0.518, "share"), value_words(0.25), value_words(1265), value_words(0.456, "seconds")
    ('51.8 %', '0.25', '1,265', '0.456 s')
    """
    if unit == "bytes":
        return size(int(value))
    if unit == "usd":
        return usd(value)
    return _plain(FACTORS.get(unit, 1.0) * value, unit) + _suffix(unit)


def _plain(value: float, unit: Unit) -> str:
    if unit in ("share", "percent"):
        return f"{value:.1f}".replace("-", "−")
    if abs(value) >= 1000 or value == int(value):
        return f"{value:,.0f}".replace("-", "−")
    return f"{value:.3g}".replace("-", "−") if abs(value) >= 0.001 else text(value, "quantity")


def mean_words(mean: Estimate, unit: Unit = "") -> str:
    """A mean with its interval and the number of its questions.

    >>> mean_words(Estimate(0.518, 0.455, 0.581, 222), "share")
    '51.8 % ± 6.3 · 222 questions'
    """
    if mean.value is None:
        return ""
    factor = FACTORS.get(unit, 1.0)

    def write(part: float) -> str:
        plain = unit not in ("bytes", "usd")
        return _plain(factor * part, unit) if plain else value_words(part, unit)

    beside = spread(mean, write, BOUNDS.get(unit, (None, None)))
    count = plural(mean.n, "question") if mean.n else ""
    value = " ".join(filter(None, (value_words(mean.value, unit), beside)))
    return " · ".join(filter(None, (value, count)))
