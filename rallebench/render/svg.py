"""Figures as accessible SVG: for the page with its tokens and addresses, for reports and files with colours of their own.

Every mark says its value to the mouse, the keyboard and screen readers without a script. Reports have links that save a
figure as SVG, PNG and CSV without a network.
"""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Callable, Mapping, Sequence

from markupsafe import Markup

from rallebench.core.marks import find_marks, marks_table
from rallebench.core.table_files import csv_table
from rallebench.core.tables import Figure
from rallebench.render import axes, colours
from rallebench.render.drawing import (
    DASHES,
    DOTS,
    FILE,
    NOTHING,
    Medium,
    document,
    keys,
    label,
    legend,
    mark,
)
from rallebench.render.plots import draw_bubbles, draw_points

AS_PNG = (
    "const a=this.previousElementSibling,i=new Image();i.onload=()=>{const c=document.createElement('canvas');"
    "c.width=2*i.width;c.height=2*i.height;const x=c.getContext('2d');x.fillStyle='#fff';x.fillRect(0,0,c.width,c.height);"
    "x.drawImage(i,0,0,c.width,c.height);const d=document.createElement('a');d.href=c.toDataURL('image/png');"
    "d.download=a.download.replace(/svg$/,'png');d.click()};i.src=a.href;return false"
)
"""Script that draws the SVG of the preceding link at twice the size and saves it."""
_DIGEST = base64.b64encode(hashlib.sha256(AS_PNG.encode()).digest()).decode()
ALLOWED = f"'unsafe-hashes' 'sha256-{_DIGEST}'"
"""The part of a report's Content-Security-Policy that allows only this handler."""


def figure(value: Figure, medium: Medium = FILE) -> Markup:
    """Draw a figure; '' if it has no points, or if it is a radar with fewer than three axes."""
    return _DRAWINGS.get(value.kind, draw_points)(value, medium) if value.series else Markup()


def saveable(value: Figure, name: str) -> Markup:
    """Draw a figure with links that save it as ``name.svg`` and ``name.png``, and its points as ``name.csv``."""
    svg = figure(value)
    if not svg:
        return Markup()
    links = Markup('<div class="rb-label">{}{}</div>').format(
        save_links(svg, name), data_link(value, name)
    )
    return Markup('<div class="rb-wide">{}</div>{}').format(svg, links)


def save_links(svg: str, name: str) -> Markup:
    """Return links that save a drawing as ``name.svg`` and ``name.png``."""
    data = base64.b64encode(svg.encode()).decode()
    style = Markup('style="text-decoration:underline;color:inherit"')
    return Markup(
        '<a {} download="{}.svg" href="data:image/svg+xml;base64,{}">Save as SVG</a> '
        '<a {} href="#" onclick="{}">Save as PNG</a>'
    ).format(style, name, data, style, AS_PNG)


def data_link(value: Figure, name: str, kind: str = "rb-link") -> Markup:
    """Return a link that saves the points of a figure as ``name.csv``."""
    data = base64.b64encode(csv_table(marks_table(value)).encode()).decode()
    return Markup(
        ' <a class="{}" download="{}.csv" href="data:text/csv;base64,{}">Save data as CSV</a>'
    ).format(kind, name, data)


def _share(count: float, total: float) -> str:
    """A count with its share of the total."""
    share = f" ({100 * count / total:.1f} %)" if total else ""
    return f"{count:,g} of {total:,g}{share}"


def _waterfall(value: Figure, medium: Medium) -> Markup:
    """Draw one bar per series, divided by key."""
    bars = {name: {str(p.x): p for p in marks} for name, marks in find_marks(value).items()}
    used = [k for k in value.labels if any(k in bar and bar[k].y.value for bar in bars.values())]
    left, width, body = 220, 620, Markup()
    for i, (name, points) in enumerate(bars.items()):
        counts = {key: point.y.value or 0.0 for key, point in points.items()}
        total, x, y = sum(counts.values()), float(left), 16 + 36 * i
        body += label(left - 10, y + 17, name, "end")
        for key in used:
            count = counts.get(key, 0.0)
            wide, colour = width * count / total if total else 0.0, colours.part(key)
            if wide:
                rest = Markup(
                    '<rect width="{:.1f}" height="26" fill="{}" stroke="{}" stroke-width=".5"/>'
                ).format(wide, colour, medium.grid)
                if wide > 24:
                    ink = Markup(' fill="{}"').format(colours.ink_on(colour))
                    rest += label(wide / 2, 17, f"{count:g}", "middle", ink)
                words = f"{name} · {value.labels[key]} · {_share(count, total)}"
                body += mark(points[key], words, rest, medium, (x, float(y)))
            x += wide
        body += label(left + width + 8, y + 17, f"n = {total:g}")
    top = 30 + 36 * len(bars)
    below, height = keys([(colours.part(k), value.labels[k]) for k in used], 20, top, 880)
    return document(value, medium, 930, top + height + 8, body + below)


def _radar(value: Figure, medium: Medium) -> Markup:
    """Draw one polygon per series; '' for fewer than three axes, which enclose no area."""
    names = [str(x) for x, *_ in next(iter(value.series.values()))]
    if len(names) < 3:
        return Markup()
    cx, cy, rim, most = 360.0, 240.0, 170.0, value.high or 1.0

    def at(i: int, share: float) -> tuple[float, float]:
        angle = 2 * math.pi * i / len(names) - math.pi / 2
        return cx + rim * share * math.cos(angle), cy + rim * share * math.sin(angle)

    def polygon(shares: Sequence[float], style: Markup) -> Markup:
        points = " ".join("{:.1f},{:.1f}".format(*at(i, share)) for i, share in enumerate(shares))
        return Markup('<polygon points="{}" {}/>').format(points, style)

    body = label(20, 22, value.title)
    for ring in (0.25, 0.5, 0.75, 1.0):
        body += polygon([ring] * len(names), Markup('fill="none" stroke="{}"').format(medium.grid))
        words = f"{100 * ring:.0f} %" if most == 1 else f"{most * ring:.4g}"
        body += label(cx + 4, cy - rim * ring + 12, words, "start", Markup(' font-size="10"'))
    for i, axis in enumerate(names):
        x, y = at(i, 1.0)
        body += Markup('<line x1="{}" y1="{}" x2="{:.1f}" y2="{:.1f}" stroke="{}"/>').format(
            cx, cy, x, y, medium.grid
        )
        x, y = at(i, 1.1)
        anchor = "middle" if abs(x - cx) < 20 else "start" if x > cx else "end"
        body += label(x, y + 4, axis, anchor)
    entries = []
    for number, (name, points) in enumerate(find_marks(value).items()):
        colour, inside = medium.series(number), NOTHING
        dashes = DASHES if name in value.printed else "none"
        known = [(names.index(str(p.x)), p) for p in points]
        if len(known) == len(names):
            style = Markup(
                'fill="{}" fill-opacity=".12" stroke="{}" stroke-width="2" stroke-dasharray="{}" pointer-events="none"'
            ).format(colour, colour, dashes)
            inside += polygon([(p.y.value or 0.0) / most for _, p in known], style)
        dot = Markup('<path d="{}" fill="{}"/>').format(DOTS[number % len(DOTS)], colour)
        for i, point in known:
            place = at(i, (point.y.value or 0.0) / most)
            unit = axes.mean_words(point.y, "share" if most == 1 else "")
            inside += mark(point, f"{name} · {point.x} {unit}", dot, medium, place)
        body += Markup('<g class="series" data-series="{}">{}</g>').format(number, inside)
        sample = Markup('<g transform="translate(8.5 6.5)">{}</g>').format(dot)
        entries.append((sample, name))
    below, height = legend(entries, 20, 470, 680)
    return document(value, medium, 720, 480 + height, body + below)


def _rings(value: Figure, medium: Medium) -> Markup:
    """Draw two concentric rings of shares, the first series inside, with a legend below."""
    cx, cy, body, lines = 180.0, 170.0, Markup(), []
    for (name, points), radius in zip(find_marks(value).items(), (75.0, 125.0)):
        total, start = sum(point.y.value or 0.0 for point in points) or 1.0, 0.0
        around = 2 * math.pi * radius
        for point in points:
            share, key = point.y.value or 0.0, str(point.x)
            length, colour = around * share / total, colours.part(key)
            arc = Markup(
                '<circle cx="{}" cy="{}" r="{}" fill="none" stroke="{}" stroke-width="40" stroke-dasharray="{:.2f} {:.2f}" stroke-dashoffset="{:.2f}" transform="rotate(-90 {} {})"/>'
            ).format(cx, cy, radius, colour, length, around - length, -start, cx, cy)
            meaning = f"{key} {share:.1f}  {value.labels.get(key, '')}"
            body += mark(point, f"{name} · {' '.join(meaning.split())}", arc, medium)
            lines.append((colour, meaning))
            start += length
    if not lines:
        return Markup()
    for i, entry in enumerate(lines):
        body += keys([entry], 360, 30 + 22 * i, 380)[0]
    return document(value, medium, 760, max(340, 50 + 22 * len(lines)), body)


_DRAWINGS: Mapping[str, Callable[[Figure, Medium], Markup]] = {
    "waterfall": _waterfall,
    "radar": _radar,
    "bubble": draw_bubbles,
    "rings": _rings,
}
