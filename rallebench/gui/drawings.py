"""Plots as SVG that need no script to be seen, and links that save them as SVG and PNG without a network."""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Mapping, Sequence
from html import escape

from rallebench.analysis.radar import Radar
from rallebench.gui.views_tradeoff import COLOURS

INKS = ("#ffffff", "#000000")
"""Of text on a colour: on every colour one of these two has a contrast of 4.5 at least."""
INK, GRID, FONT = "#334155", "#cbd5e1", "system-ui, sans-serif"

AS_PNG = (
    "const a=this.previousElementSibling,i=new Image();i.onload=()=>{const c=document.createElement('canvas');"
    "c.width=2*i.width;c.height=2*i.height;const x=c.getContext('2d');x.fillStyle='#fff';x.fillRect(0,0,c.width,c.height);"
    "x.drawImage(i,0,0,c.width,c.height);const d=document.createElement('a');d.href=c.toDataURL('image/png');"
    "d.download=a.download.replace(/svg$/,'png');d.click()};i.src=a.href;return false"
)
"""Draws the SVG that the link before this one saves, twice as large, and saves that."""
ALLOWED = (
    "'unsafe-hashes' 'sha256-"
    + base64.b64encode(hashlib.sha256(AS_PNG.encode()).digest()).decode()
    + "'"
)
"""What a page's Content-Security-Policy must allow for it: this text as a handler, and no other script."""


def save_links(svg: str, name: str) -> str:
    """Links that save a drawing as ``name.svg`` and ``name.png``."""
    data = base64.b64encode(svg.encode()).decode()
    return (
        f'<div class="rb-label"><a class="rb-link" download="{escape(name, quote=True)}.svg" href="data:image/svg+xml;base64,{data}">'
        f'Save as SVG</a> <a href="#" onclick="{escape(AS_PNG, quote=True)}" style="text-decoration:underline;color:inherit">Save as PNG</a></div>'
    )


def shown(svg: str, name: str) -> str:
    """A drawing with its links."""
    return f'<div class="rb-wide">{svg}</div>{save_links(svg, name)}' if svg else ""


def _svg(width: int, height: int, body: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'font-family="{FONT}" font-size="13" fill="{INK}"><rect width="{width}" height="{height}" fill="#fff"/>{body}</svg>'
    )


def _text(x: float, y: float, text: str, anchor: str = "start", extra: str = "") -> str:
    short = text if len(text) <= 60 else f"{text[:59]}…"
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{extra}>{escape(short)}</text>'


def ink_on(colour: str) -> str:
    """White or black, whichever is read better on ``#rrggbb`` or ``#rgb``: contrast as WCAG 2 defines it.

    >>> ink_on("#7f1d1d"), ink_on("#e3b23c"), ink_on("#000")
    ('#ffffff', '#000000', '#ffffff')
    """
    return max(INKS, key=lambda ink: contrast(ink, colour))


def contrast(a: str, b: str) -> float:
    """Of two colours ``#rrggbb``, 1 (none) to 21; text wants 4.5.

    >>> contrast("#000000", "#ffffff")
    21.0
    """
    lighter, darker = sorted((_luminance(a), _luminance(b)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) > 4 else "".join(digit * 2 for digit in colour[1:])
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    red, green, blue = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def falls(
    named: Sequence[tuple[str, Mapping[str, int]]],
    names: Mapping[str, str],
    colours: Mapping[str, str],
) -> str:
    """Waterfalls: a bar per run, a part per stage. ``named``: run → stage → questions."""
    there = [stage for stage in names if any(counts[stage] for _, counts in named)]
    left, width, body = 220, 620, ""
    for i, (name, counts) in enumerate(named):
        total, x, y = sum(counts.values()), float(left), 16 + 36 * i
        body += _text(left - 10, y + 17, name, "end")
        for stage in there:
            wide = width * counts[stage] / total if total else 0.0
            if wide:
                body += f'<rect x="{x:.1f}" y="{y}" width="{wide:.1f}" height="26" fill="{colours[stage]}"/>'
                body += (
                    _text(
                        x + wide / 2,
                        y + 17,
                        str(counts[stage]),
                        "middle",
                        f' fill="{ink_on(colours[stage])}"',
                    )
                    if wide > 24
                    else ""
                )
            x += wide
        body += _text(left + width + 8, y + 17, f"n = {total}")
    y = 30 + 36 * len(named)
    for i, stage in enumerate(there):
        x, at = 20 + 300 * (i % 3), y + 22 * (i // 3)
        body += f'<rect x="{x}" y="{at}" width="13" height="13" fill="{colours[stage]}"/>{_text(x + 20, at + 11, names[stage])}'
    return _svg(930, y + 22 * math.ceil(len(there) / 3) + 8, body)


def radar(found: Radar, label: str, most: float) -> str:
    """A polygon per line. ``most``: the value at the rim."""
    if not found.spans:
        return ""
    cx, cy, rim, body = 360.0, 240.0, 170.0, ""

    def at(i: int, share: float) -> tuple[float, float]:
        angle = 2 * math.pi * i / len(found.axes) - math.pi / 2
        return cx + rim * share * math.cos(angle), cy + rim * share * math.sin(angle)

    def polygon(shares: Sequence[float], style: str) -> str:
        points = " ".join("{:.1f},{:.1f}".format(*at(i, share)) for i, share in enumerate(shares))
        return f'<polygon points="{points}" {style}/>'

    for ring in (0.25, 0.5, 0.75, 1.0):
        body += polygon([ring] * len(found.axes), f'fill="none" stroke="{GRID}"')
        body += _text(
            cx + 4, cy - rim * ring + 12, f"{most * ring:.2f}", "start", ' font-size="10"'
        )
    for i, axis in enumerate(found.axes):
        x, y = at(i, 1.0)
        body += f'<line x1="{cx}" y1="{cy}" x2="{x:.1f}" y2="{y:.1f}" stroke="{GRID}"/>'
        x, y = at(i, 1.1)
        body += _text(
            x, y + 4, axis, "middle" if abs(x - cx) < 20 else "start" if x > cx else "end"
        )
    for i, (name, row) in enumerate(found.lines.items()):
        colour = COLOURS[i % len(COLOURS)]
        shares = [
            (mean.value or 0.0) / most if mean and mean.value is not None else None for mean in row
        ]
        known = [(n, share) for n, share in enumerate(shares) if share is not None]
        if len(known) == len(shares):
            body += polygon(
                [share for _, share in known],
                f'fill="{colour}" fill-opacity=".15" stroke="{colour}" stroke-width="2"',
            )
        for n, share in known:
            x, y = at(n, share)
            body += f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>'
        body += f'<rect x="20" y="{470 + 20 * i}" width="13" height="13" fill="{colour}"/>{_text(40, 481 + 20 * i, name)}'
    return _svg(720, 480 + 20 * len(found.lines), _text(20, 22, label) + body)


def bubbles(points: Sequence[tuple[str, float, float, float | None]], across: str, up: str) -> str:
    """Quality against cost: (name, cost, quality, share of the largest size 0 … 1) of each run; hollow where the size is None."""
    if not points:
        return ""
    left, top, width, height = 70.0, 30.0, 600.0, 320.0
    right = max(x for _, x, _, _ in points) * 1.15 or 1.0
    low, high = min(y for _, _, y, _ in points), max(y for _, _, y, _ in points)
    room = 0.15 * ((high - low) or abs(high) or 1.0)
    # A share has no room below 0, and no more above 1 than its bubble takes.
    low, high = (
        max(low - room, 0.0) if low >= 0 else low - room,
        min(high + room, 1.05) if high <= 1 else high + room,
    )
    body = ""
    for tick in range(5):
        x, y = left + width * tick / 4, top + height * (1 - tick / 4)
        body += f'<line x1="{left}" y1="{y:.1f}" x2="{left + width}" y2="{y:.1f}" stroke="{GRID}"/>'
        body += _text(left - 8, y + 4, f"{low + (high - low) * tick / 4:.3g}", "end")
        body += _text(x, top + height + 20, f"{right * tick / 4:.3g}", "middle")
    for i, (name, cost, quality, size) in enumerate(points):
        x, y = left + width * cost / right, top + height * (high - quality) / (high - low)
        radius, colour = (
            7.0 if size is None else max(4.0, 21 * math.sqrt(size)),
            COLOURS[i % len(COLOURS)],
        )
        style = (
            f'fill="none" stroke="{colour}" stroke-width="2"'
            if size is None
            else f'fill="{colour}" fill-opacity=".8"'
        )
        body += f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" {style}/>'
        body += _text(x, y - radius - 5, name, "middle")
    body += _text(left + width / 2, top + height + 45, across, "middle") + _text(left, 16, up)
    return _svg(720, 410, body)
