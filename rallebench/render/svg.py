"""Figures of a report as SVG without scripts, with links that save them as SVG and PNG without a network."""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from markupsafe import Markup

from rallebench.core.numbers import as_estimate
from rallebench.core.report import Estimate
from rallebench.core.tables import Figure
from rallebench.core.terminal import CONTROLS
from rallebench.render import colours
from rallebench.render.numbers import present_points

NOTHING = Markup()
INK, GRID, FONT = "#334155", "#cbd5e1", "system-ui, sans-serif"

AS_PNG = (
    "const a=this.previousElementSibling,i=new Image();i.onload=()=>{const c=document.createElement('canvas');"
    "c.width=2*i.width;c.height=2*i.height;const x=c.getContext('2d');x.fillStyle='#fff';x.fillRect(0,0,c.width,c.height);"
    "x.drawImage(i,0,0,c.width,c.height);const d=document.createElement('a');d.href=c.toDataURL('image/png');"
    "d.download=a.download.replace(/svg$/,'png');d.click()};i.src=a.href;return false"
)
"""Script that draws the SVG of the preceding link at twice the size and saves it."""
_DIGEST = base64.b64encode(hashlib.sha256(AS_PNG.encode()).digest()).decode()
ALLOWED = f"'unsafe-hashes' 'sha256-{_DIGEST}'"
"""The part of a page's Content-Security-Policy that allows only this handler."""


def figure(value: Figure) -> Markup:
    """Draw a figure; '' if it has no points, or if it is a radar with fewer than three axes."""
    return _DRAWINGS.get(value.kind, _points)(value) if value.series else Markup()


def saveable(value: Figure, name: str) -> Markup:
    """Draw a figure with links that save it as ``name.svg`` and ``name.png``."""
    svg = figure(value)
    return (
        Markup('<div class="rb-wide">{}</div>{}').format(svg, save_links(svg, name))
        if svg
        else Markup()
    )


def save_links(svg: str, name: str) -> Markup:
    """Return links that save a drawing as ``name.svg`` and ``name.png``."""
    data = base64.b64encode(svg.encode()).decode()
    style = Markup('style="text-decoration:underline;color:inherit"')
    return Markup(
        '<div class="rb-label">'
        '<a {} download="{}.svg" href="data:image/svg+xml;base64,{}">Save as SVG</a> '
        '<a {} href="#" onclick="{}">Save as PNG</a></div>'
    ).format(style, name, data, style, AS_PNG)


def _svg(width: int, height: int, body: Markup) -> Markup:
    return Markup(
        '<svg xmlns="http://www.w3.org/2000/svg" width="{}" height="{}" viewBox="0 0 {} {}" font-family="{}" font-size="13" fill="{}">'
        '<rect width="{}" height="{}" fill="#fff"/>{}</svg>'
    ).format(width, height, width, height, FONT, INK, width, height, body.translate(CONTROLS))


def _text(x: float, y: float, text: str, anchor: str = "start", extra: Markup = NOTHING) -> Markup:
    short = text if len(text) <= 60 else f"{text[:59]}…"
    return Markup('<text x="{:.1f}" y="{:.1f}" text-anchor="{}"{}>{}</text>').format(
        x, y, anchor, extra, short
    )


def _title(words: Sequence[Any]) -> Markup:
    """Return the tooltip of a mark: the data behind it."""
    return Markup("<title>{}</title>").format(" ".join(map(str, words))) if words else Markup()


def _key(x: float, y: float, colour: str, label: str) -> Markup:
    """Draw a legend entry: a coloured square with its meaning."""
    square = Markup('<rect x="{}" y="{}" width="13" height="13" fill="{}"/>').format(x, y, colour)
    return square + _text(x + 20, y + 11, label)


def _waterfall(value: Figure) -> Markup:
    """Draw one bar per series, divided by key."""
    keys = [k for k in value.labels if any(dict(bar).get(k) for bar in value.series.values())]
    left, width, body = 220, 620, Markup()
    for i, (name, points) in enumerate(value.series.items()):
        counts = dict(points)
        total, x, y = sum(counts.values()), float(left), 16 + 36 * i
        body += _text(left - 10, y + 17, name, "end")
        for key in keys:
            wide, colour = width * counts[key] / total if total else 0.0, colours.part(key)
            if wide:
                body += Markup(
                    '<rect x="{:.1f}" y="{}" width="{:.1f}" height="26" fill="{}"/>'
                ).format(x, y, wide, colour)
            if wide > 24:
                ink = Markup(' fill="{}"').format(colours.ink_on(colour))
                body += _text(x + wide / 2, y + 17, str(counts[key]), "middle", ink)
            x += wide
        body += _text(left + width + 8, y + 17, f"n = {total}")
    y = 30 + 36 * len(value.series)
    for i, key in enumerate(keys):
        x, at = 20 + 300 * (i % 3), y + 22 * (i // 3)
        body += _key(x, at, colours.part(key), value.labels[key])
    return _svg(930, y + 22 * math.ceil(len(keys) / 3) + 8, body)


def _radar(value: Figure) -> Markup:
    """Draw one polygon per series; '' for fewer than three axes, which enclose no area."""
    axes = [x for x, _ in next(iter(value.series.values()))]
    if len(axes) < 3:
        return Markup()
    cx, cy, rim, body, most = 360.0, 240.0, 170.0, Markup(), value.high or 1.0

    def at(i: int, share: float) -> tuple[float, float]:
        angle = 2 * math.pi * i / len(axes) - math.pi / 2
        return cx + rim * share * math.cos(angle), cy + rim * share * math.sin(angle)

    def polygon(shares: Sequence[float], style: Markup) -> Markup:
        points = " ".join("{:.1f},{:.1f}".format(*at(i, share)) for i, share in enumerate(shares))
        return Markup('<polygon points="{}" {}/>').format(points, style)

    for ring in (0.25, 0.5, 0.75, 1.0):
        body += polygon([ring] * len(axes), Markup('fill="none" stroke="{}"').format(GRID))
        label = f"{100 * ring:.0f} %" if most == 1 else f"{most * ring:.2f}"
        body += _text(cx + 4, cy - rim * ring + 12, label, "start", Markup(' font-size="10"'))
    for i, axis in enumerate(axes):
        x, y = at(i, 1.0)
        body += Markup('<line x1="{}" y1="{}" x2="{:.1f}" y2="{:.1f}" stroke="{}"/>').format(
            cx, cy, x, y, GRID
        )
        x, y = at(i, 1.1)
        anchor = "middle" if abs(x - cx) < 20 else "start" if x > cx else "end"
        body += _text(x, y + 4, axis, anchor)
    for number, (name, points) in enumerate(value.series.items()):
        colour, row = colours.series(number), [as_estimate(y) or Estimate(y) for _, y in points]
        known = [(i, y.value / most) for i, y in enumerate(row) if y.value is not None]
        if len(known) == len(axes):
            style = Markup('fill="{}" fill-opacity=".15" stroke="{}" stroke-width="2"').format(
                colour, colour
            )
            body += polygon([share for _, share in known], style)
        for i, share in known:
            x, y = at(i, share)
            body += Markup('<circle cx="{:.1f}" cy="{:.1f}" r="3.5" fill="{}"/>').format(
                x, y, colour
            )
        body += _key(20, 470 + 20 * number, colour, name)
    return _svg(720, 480 + 20 * len(value.series), _text(20, 22, value.title) + body)


def _bubbles(value: Figure) -> Markup:
    """Draw one bubble per series: y over x, with the size as area. Bubbles of unknown size are hollow."""
    points = [(name, *point) for name, (point, *_) in value.series.items()]
    xs, ys = [x for _, x, *_ in points], [y for _, _, y, *_ in points]
    room = 0.15 * ((max(ys) - min(ys)) or abs(max(ys)) or 1.0)
    # A share needs no room below 0, and above 1 only as much as its bubble takes.
    low = max(min(ys) - room, 0.0) if min(ys) >= 0 else min(ys) - room
    high = min(max(ys) + room, 1.05) if max(ys) <= 1 else max(ys) + room
    axes = _Axes(value, (0.0, max(xs) * 1.15 or 1.0), (low, high))
    most, body = max(size or 0 for _, _, _, size, *_ in points) or 1, axes.ticks()
    names: list[tuple[float, float, float]] = []  # (middle, half the width, line) of each
    for number, (name, cost, quality, size, *words) in enumerate(points):
        x, y, colour = axes.x(cost), axes.y(quality), colours.series(number)
        radius = 7.0 if size is None else max(4.0, 14 * math.sqrt(size / most))
        style = (
            Markup('fill="none" stroke="{}" stroke-width="2"').format(colour)
            if size is None
            else Markup('fill="{}" fill-opacity=".8"').format(colour)
        )
        body += Markup('<circle cx="{:.1f}" cy="{:.1f}" r="{:.1f}" {}>{}</circle>').format(
            x, y, radius, style, _title(words)
        )
        line, half = y - radius - 5, 3.4 * min(len(name), 60)
        while line > 24 and any(
            abs(x - at) < half + wide and abs(line - taken) < 13 for at, wide, taken in names
        ):
            line -= 14
        names.append((x, half, line))
        body += _text(x, line, name, "middle")
    return _svg(720, 410, body)


def round_ticks(low: float, high: float) -> list[tuple[float, str]]:
    """Return two to seven round numbers for an axis, each with its text.

    >>> [label for _, label in round_ticks(0, 1460)], [label for _, label in round_ticks(0.237, 0.497)]
    (['0', '500', '1,000'], ['0.25', '0.30', '0.35', '0.40', '0.45'])
    """
    if not high > low:
        return [(low, f"{low:,.4g}")]
    raw = (high - low) / 6
    power = math.floor(math.log10(raw))
    factor = next(f for f in (1, 2, 5, 10) if f * 10.0**power >= raw * (1 - 1e-9))
    step, digits = factor * 10.0**power, max(0, -power - (factor == 10))
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [(n * step, f"{n * step:,.{digits}f}") for n in range(first, last + 1)]


class _Axes:
    """The frame of a plot, 600 × 320: a y scale, and an x scale or evenly spaced names."""

    left, top, width, height = 70.0, 30.0, 600.0, 320.0

    def __init__(
        self, value: Figure, across: Sequence[float] | Sequence[str], up: tuple[float, float]
    ) -> None:
        self.value, self.up = value, up
        self.names = [name for name in across if isinstance(name, str)]
        self.numbers = sorted(number for number in across if not isinstance(number, str))
        low, high = (self.numbers or [0.0, 1.0])[0], (self.numbers or [0.0, 1.0])[-1]
        # Marks of a line keep clear of the frame; an axis given by its two ends starts exactly at the first.
        room = 0.05 * (high - low) if value.kind != "bubble" else 0.0
        self.span = (low - room, high + room)

    def x(self, value: Any) -> float:
        """Return the x position of a number, or of the middle of a name's space."""
        if isinstance(value, str):
            place = (self.names.index(value) + 0.5) / len(self.names)
        else:
            low, high = self.span
            place = (value - low) / ((high - low) or 1)
        return self.left + self.width * place

    def y(self, value: float) -> float:
        """Return the y position of a value."""
        low, high = self.up
        return self.top + self.height * (high - value) / ((high - low) or 1)

    def ticks(self) -> Markup:
        """Draw the axes' lines, numbers and names."""
        body, (low, high) = Markup(), self.up
        for at, label in round_ticks(low, high):
            body += Markup('<line x1="{}" y1="{:.1f}" x2="{}" y2="{:.1f}" stroke="{}"/>').format(
                self.left, self.y(at), self.left + self.width, self.y(at), GRID
            )
            label = f"{100 * at:.4g} %" if self.value.high == 1.0 else label
            body += _text(self.left - 8, self.y(at) + 4, label, "end")
        below = self.top + self.height + 20
        if self.names:
            room = max(4, int(90 / len(self.names)))
            for name in self.names:
                body += _text(self.x(name), below, name[:room], "middle")
        else:
            for at, label in self._across():
                body += _text(self.x(at), below, label, "middle")
        body += _text(self.left + self.width / 2, below + 25, self.value.x, "middle")
        return body + _text(self.left, 16, self.value.y)

    def _across(self) -> list[tuple[float, str]]:
        """Return the numbers below a plot: the data's own if they are few and far apart, otherwise round ones."""
        places = [self.x(number) for number in self.numbers]
        is_apart = all(right - left > 40 for left, right in pairwise(places))
        if self.value.kind == "bubble" or not is_apart:
            return round_ticks(*self.span)
        return [(number, f"{number:,.4g}") for number in self.numbers]


def _points(value: Figure) -> Markup:
    """Draw lines, bars, points or box values, with intervals as whiskers and the names of the series below."""
    series = {name: present_points(points) for name, points in value.series.items()}
    if value.kind == "box":
        series = {name: [(name, y, ()) for _, y, _ in row] for name, row in series.items()}
    known = [(x, y) for row in series.values() for x, y, _ in row]
    if not known:
        return Markup()
    xs = list(dict.fromkeys(x for x, _ in known))
    if any(isinstance(x, str) for x in xs):
        xs = [str(x) for x in xs]
    ends = [end for _, y in known for end in (y.value, y.low, y.high) if end is not None]
    up = (min(0.0, *ends), value.high or max(ends) * 1.05 or 1.0)
    axes = _Axes(value, xs, up)
    wide = axes.width / len(xs) / (len(series) + 1)
    body = axes.ticks()
    for number, (name, row) in enumerate(series.items()):
        colour = colours.series(number)
        shift = wide * (number - (len(series) - 1) / 2) if value.kind == "bar" else 0.0
        places = [
            (
                axes.x(str(x) if isinstance(xs[0], str) else x) + shift,
                axes.y(y.value or 0.0),
                y,
                words,
            )
            for x, y, words in row
        ]
        for x, top, y, words in places:
            if value.kind == "bar":
                edge, high = min(top, axes.y(0)), abs(axes.y(0) - top)
                body += Markup(
                    '<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" fill="{}">{}</rect>'
                ).format(x - wide / 2, edge, wide, high, colour, _title(words))
            else:
                body += Markup(
                    '<circle cx="{:.1f}" cy="{:.1f}" r="4" fill="{}">{}</circle>'
                ).format(x, top, colour, _title(words))
            if y.low is not None and y.high is not None:
                low, high = axes.y(y.low), axes.y(y.high)
                body += Markup(
                    '<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" stroke="{}"/>'
                ).format(x, low, x, high, INK)
        if value.kind == "line":
            line = " ".join(f"{x:.1f},{top:.1f}" for x, top, *_ in places)
            body += Markup(
                '<polyline points="{}" fill="none" stroke="{}" stroke-width="1.8"/>'
            ).format(line, colour)
        body += _key(70, 415 + 20 * number, colour, name)
    return _svg(720, 425 + 20 * len(series), body)


def _rings(value: Figure) -> Markup:
    """Draw two concentric rings of shares, the first series inside, with a legend below."""
    cx, cy, body, lines = 180.0, 170.0, Markup(), []
    for (_, points), radius in zip(value.series.items(), (75.0, 125.0)):
        total, start = sum(share for _, share in points) or 1.0, 0.0
        around = 2 * math.pi * radius
        for key, share in points:
            length, colour = around * share / total, colours.part(key)
            body += Markup(
                '<circle cx="{}" cy="{}" r="{}" fill="none" stroke="{}" stroke-width="40" stroke-dasharray="{:.2f} {:.2f}" stroke-dashoffset="{:.2f}" transform="rotate(-90 {} {})"/>'
            ).format(cx, cy, radius, colour, length, around - length, -start, cx, cy)
            lines.append((colour, f"{key} {share:.1f}  {value.labels.get(key, '')}"))
            start += length
    for i, (colour, text) in enumerate(lines):
        body += _key(360, 30 + 22 * i, colour, text)
    return _svg(760, max(340, 50 + 22 * len(lines)), body) if lines else Markup()


_DRAWINGS: Mapping[str, Callable[[Figure], Markup]] = {
    "waterfall": _waterfall,
    "radar": _radar,
    "bubble": _bubbles,
    "rings": _rings,
}
