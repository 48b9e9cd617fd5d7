"""Plots with two axes: lines, bars, points, values of boxes, and bubbles."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup

from rallebench.core.marks import Mark, find_marks, value_unit
from rallebench.core.tables import Figure
from rallebench.render.axes import Axis, fit_axis, frame_axis
from rallebench.render.drawing import (
    DASHES,
    DOTS,
    LETTER,
    LONGEST,
    NOTHING,
    Medium,
    document,
    label,
    legend,
    mark,
    point_words,
)

WIDTH, LEFT, TOP = 652.0, 76.0, 30.0
AREA_WIDTH, AREA_HEIGHT = 540.0, 300.0
MANY = 40
"""Marks of a plot beyond which the page offers to zoom."""
BAND = 12
"""Points of a line beyond which the intervals are a band, not whiskers."""
SIGN = 9.0
"""Distance of a series' sign from the foot of its bar."""
Marks = Mapping[str, Sequence[Mark]]


@dataclass(frozen=True, slots=True)
class Frame:
    """The plotted area: names evenly spaced or an axis across, and an axis up."""

    value: Figure
    names: tuple[str, ...]
    across: Axis
    up: Axis
    own: tuple[float, ...] = ()

    def x(self, value: float | str) -> float:
        """The position of a number, or of the middle of a name's space."""
        if self.names:
            return AREA_WIDTH * (self.names.index(str(value)) + 0.5) / len(self.names)
        return AREA_WIDTH * self.across.place(float(value))

    def y(self, value: float) -> float:
        return AREA_HEIGHT * (1 - self.up.place(value))

    @property
    def slanted(self) -> bool:
        """True if the names are too long to stand upright."""
        room = AREA_WIDTH / max(1, len(self.names)) / LETTER
        return any(len(name) > room for name in self.names)

    @property
    def depth(self) -> float:
        """The height of the numbers or names below the area, and of the axis' label."""
        longest = max((min(len(name), 30) for name in self.names), default=0)
        below = 20 + (0.5 * LETTER * longest if self.slanted else 0)
        return below + (24 if self.value.x else 6)

    def ticks(self) -> list[tuple[float, str]]:
        """The numbers below a plot: the data's own if they are few and far apart, otherwise round ones."""
        places = [self.x(number) for number in self.own]
        if self.own and len(places) < 12 and all(b - a > 44 for a, b in pairwise(places)):
            return [(number, f"{number:,.4g}") for number in self.own]
        return self.across.ticks()


def draw_points(value: Figure, medium: Medium) -> Markup:
    """Draw lines, bars, points or the values of boxes, each with its interval; '' without points."""
    series = find_marks(value)
    if not series:
        return NOTHING
    frame, body = _frame(value, series), NOTHING
    slot = AREA_WIDTH / max(1, len(frame.names)) / (len(series) + 0.7)
    has_signs = value.kind == "bar" and len(series) > 1
    for number, (name, marks) in enumerate(series.items()):
        shift = slot * (number - (len(series) - 1) / 2) if value.kind == "bar" else 0.0
        inside = (
            _line(frame, marks, medium.series(number), name) if value.kind == "line" else NOTHING
        )
        for point in marks:
            at = (frame.x(_name(value, point)) + shift, frame.y(point.y.value or 0.0))
            whisker = value.kind != "line" or len(marks) <= BAND
            shape = _bar(frame, at[1], slot) if value.kind == "bar" else _dot(number)
            paint = _paint(medium.series(number), name in value.printed, medium)
            shape = Markup("<g {}>{}</g>").format(paint, shape)
            if has_signs:
                shape += _sign(number, frame.y(0.0) - at[1] - SIGN, medium)
            shape += _whisker(frame, point, at[1], medium) if whisker else NOTHING
            inside += mark(point, point_words(value, point), shape, medium, at)
        body += Markup('<g class="series" data-series="{}">{}</g>').format(number, inside)
    entries = [
        (_sample(value, number, name in value.printed, medium, has_signs), name)
        for number, name in enumerate(series)
    ]
    if len(series) == 1 and not value.printed and next(iter(series)) in (value.y, value.title, ""):
        entries = []
    return _whole(frame, body, entries, medium)


def draw_bubbles(value: Figure, medium: Medium) -> Markup:
    """Draw one bubble per series: y over x, with the size as area. Bubbles of unknown size are hollow."""
    series = find_marks(value)
    points = [point for marks in series.values() for point in marks]
    if not points:
        return NOTHING
    frame, body = _frame(value, series), NOTHING
    most = max((point.size or 0 for point in points), default=0) or 1
    names: list[tuple[float, float, float]] = []  # (middle, half the width, line) of each
    for number, point in enumerate(points):
        x, y, colour = frame.x(point.x), frame.y(point.y.value or 0.0), medium.series(number)
        radius = 6.0 if point.size is None else max(4.0, 14 * math.sqrt(point.size / most))
        facts = (
            Markup('fill="none" stroke="{}" stroke-width="2"').format(colour)
            if point.size is None
            else Markup('fill="{}" fill-opacity=".8"').format(colour)
        )
        # Beside the bubble, where no interval crosses the name.
        wide = LETTER * min(len(point.series), LONGEST)
        leftwards = x + radius + 6 + wide > AREA_WIDTH + 20
        middle = x + (-1 if leftwards else 1) * (radius + 6 + wide / 2)
        line = y + 4.5
        while line > -6 and any(
            abs(middle - at) < wide / 2 + half and abs(line - taken) < 13
            for at, half, taken in names
        ):
            line -= 14
        names.append((middle, wide / 2, line))
        side = -radius - 6 if leftwards else radius + 6
        name = label(side, line - y, point.series, "end" if leftwards else "start")
        shape = Markup('<g class="dot"><circle r="{:.1f}" {}/>{}</g>').format(radius, facts, name)
        shape = _whisker(frame, point, y, medium) + shape
        inside = mark(point, point_words(value, point), shape, medium, (x, y))
        body += Markup('<g class="series" data-series="{}">{}</g>').format(number, inside)
    return _whole(frame, body, [], medium)


def _name(value: Figure, point: Mark) -> float | str:
    return point.series if value.kind == "box" else point.x


def _frame(value: Figure, series: Marks) -> Frame:
    """The frame over all points with their intervals."""
    points = [point for marks in series.values() for point in marks]
    xs = [_name(value, point) for point in points]
    ys = [
        float(end)
        for point in points
        for end in (point.y.value, point.y.low, point.y.high)
        if end is not None
    ]
    bars = value.kind == "bar"
    up = fit_axis(ys, value_unit(value), from_zero=bars, log="y" in value.log and not bars)
    if bars or any(isinstance(x, str) for x in xs):
        return Frame(value, tuple(dict.fromkeys(map(str, xs))), Axis(0, 1), up)
    numbers, log = [float(x) for x in xs], "x" in value.log
    if value.kind == "bubble":
        return Frame(value, (), fit_axis(numbers, value.units[0], log=log), up)
    own = () if log else tuple(sorted(set(numbers)))
    return Frame(value, (), frame_axis(numbers, value.units[0], log=log), up, own)


def _line(frame: Frame, marks: Sequence[Mark], colour: str, name: str) -> Markup:
    """Draw the line of a series, with a band of its intervals if it has many points."""
    places = [(frame.x(point.x), frame.y(point.y.value or 0.0)) for point in marks]
    line, band = " ".join(f"{x:.1f},{y:.1f}" for x, y in places), NOTHING
    known = [(frame.x(p.x), p.y.low, p.y.high) for p in marks]
    if len(marks) > BAND:
        ends = [f"{x:.1f},{frame.y(high):.1f}" for x, _, high in known if high is not None]
        ends += [f"{x:.1f},{frame.y(low):.1f}" for x, low, _ in known[::-1] if low is not None]
        band = Markup('<polygon points="{}" fill="{}" fill-opacity=".18"/>').format(
            " ".join(ends), colour
        )
    dashes = DASHES if name in frame.value.printed else "none"
    return band + Markup(
        '<polyline points="{}" fill="none" stroke="{}" stroke-width="1.8" vector-effect="non-scaling-stroke" stroke-dasharray="{}"/>'
    ).format(line, colour, dashes)


def _paint(colour: str, hollow: bool, medium: Medium, *, dashed: bool = True) -> Markup:
    """Fill a mark; a hollow one, such as a printed value, is dashed."""
    fill = medium.colour("--bg") if hollow else colour
    dashes = Markup(' stroke-dasharray="3 2"') if hollow and dashed else NOTHING
    return Markup('fill="{}" stroke="{}" stroke-width="1.5"{}').format(fill, colour, dashes)


def _dot(number: int) -> Markup:
    return Markup(
        '<g class="dot"><circle r="9" fill="none" stroke="none" pointer-events="all"/><path d="{}"/></g>'
    ).format(DOTS[number % len(DOTS)])


def _bar(frame: Frame, top: float, wide: float) -> Markup:
    zero = frame.y(0.0) - top
    return Markup('<path class="bar" d="M{:.1f} 0h{:.1f}V{:.1f}h{:.1f}z"/>').format(
        -wide / 2, wide, zero, -wide
    )


def _sign(number: int, y: float, medium: Medium) -> Markup:
    """Draw the sign of a series at the foot of its bar, so that it is known without its colour."""
    return Markup('<path class="sign" d="{}" transform="translate(0 {:.1f})" {}/>').format(
        DOTS[number % len(DOTS)], y, _paint(medium.series(number), True, medium, dashed=False)
    )


def _whisker(frame: Frame, point: Mark, at: float, medium: Medium) -> Markup:
    """Draw the interval of a point, relative to it."""
    if point.y.low is None or point.y.high is None:
        return NOTHING
    low, high = frame.y(point.y.low) - at, frame.y(point.y.high) - at
    return Markup(
        '<path class="interval" d="M-4 {:.1f}h8M0 {:.1f}V{:.1f}M-4 {:.1f}h8" fill="none" stroke="{}" '
        'stroke-width="1.2" vector-effect="non-scaling-stroke"/>'
    ).format(high, high, low, low, medium.ink)


def _sample(
    value: Figure, number: int, printed: bool, medium: Medium, has_sign: bool = False
) -> Markup:
    """Draw the sample of a series in the legend."""
    colour = medium.series(number)
    paint = _paint(colour, printed, medium)
    if value.kind == "bar":
        box = Markup('<rect x="2" width="13" height="13" {}/>').format(paint)
        sign = _sign(number, 0.0, medium) if has_sign else NOTHING
        return box + Markup('<g transform="translate(8.5 6.5) scale(.75)">{}</g>').format(sign)
    line = NOTHING
    if value.kind == "line":
        line = Markup(
            '<path d="M-2 6.5H19" stroke="{}" stroke-width="1.8" stroke-dasharray="{}"/>'
        ).format(colour, DASHES if printed else "none")
    return line + Markup('<path d="{}" transform="translate(8.5 6.5)" {}/>').format(
        DOTS[number % len(DOTS)], paint
    )


def _whole(
    frame: Frame, body: Markup, entries: Sequence[tuple[Markup, str]], medium: Medium
) -> Markup:
    """Put axes, area and legend together."""
    area = Markup(
        '<svg class="area" x="{:.0f}" y="{:.0f}" width="{:.0f}" height="{:.0f}" viewBox="0 0 {:.0f} {:.0f}" '
        'preserveAspectRatio="none" overflow="visible">{}</svg>'
    ).format(LEFT, TOP, AREA_WIDTH, AREA_HEIGHT, AREA_WIDTH, AREA_HEIGHT, body)
    below = TOP + AREA_HEIGHT + frame.depth
    samples, height = legend(entries, LEFT, below + 10, AREA_WIDTH)
    whole = _up_axis(frame, medium) + _across_axis(frame, medium) + area + samples
    number = sum(map(len, find_marks(frame.value).values()))
    more = _zoomable(frame, number)
    return document(frame.value, medium, WIDTH, below + 16 + height, whole, more)


def _zoomable(frame: Frame, number: int) -> Markup:
    """The ends of the axes, for the script that zooms a plot with many points."""
    if frame.names or frame.value.kind == "bar" or number <= MANY:
        return NOTHING
    ends = [
        f"{axis.low:.12g} {axis.high:.12g} {'log' if axis.log else 'linear'} {axis.unit}"
        for axis in (frame.across, frame.up)
    ]
    return Markup(' data-zoom-x="{}" data-zoom-y="{}"').format(ends[0], ends[1])


def _up_axis(frame: Frame, medium: Medium) -> Markup:
    body = NOTHING
    for at, words in frame.up.ticks():
        y = TOP + frame.y(at)
        body += Markup(
            '<g transform="translate({:.0f} {:.1f})"><path d="M0 0H{:.0f}" stroke="{}"/>'
        ).format(LEFT, y, AREA_WIDTH, medium.grid)
        body += label(-8, 4.5, words, "end") + Markup("</g>")
    return label(8, 17, frame.value.y) + Markup('<g class="ticks-y">{}</g>').format(body)


def _across_axis(frame: Frame, medium: Medium) -> Markup:
    bottom, body = TOP + AREA_HEIGHT, NOTHING
    slant, anchor = NOTHING, "middle"
    if frame.slanted:
        slant, anchor = Markup(' transform="rotate(-30)"'), "end"
    names = [(name, name if len(name) <= 30 else f"{name[:29]}…") for name in frame.names]
    for at, words in names or frame.ticks():
        body += Markup('<g transform="translate({:.1f} {:.0f})">').format(
            LEFT + frame.x(at), bottom
        )
        body += label(0, 18 if not frame.slanted else 12, words, anchor, slant) + Markup("</g>")
    line = Markup('<path d="M{:.0f} {:.0f}h{:.0f}" stroke="{}"/>').format(
        LEFT, bottom, AREA_WIDTH, medium.colour("--ink3")
    )
    if frame.value.x:
        line += label(LEFT + AREA_WIDTH / 2, bottom + frame.depth - 4, frame.value.x, "middle")
    return line + Markup('<g class="ticks-x">{}</g>').format(body)
