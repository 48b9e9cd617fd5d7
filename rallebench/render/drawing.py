"""The elements of plots: marks with their words, legends, and the colours of the page and of files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from rallebench.core.marks import Mark, value_unit
from rallebench.core.tables import Figure
from rallebench.core.terminal import CONTROLS
from rallebench.render import axes, colours

NOTHING = Markup()
FONT = "system-ui, sans-serif"
LETTER = 7.0
"""Mean width of a letter."""
LONGEST = 60
"""Characters of a label, beyond which it is shortened."""
DOTS = (
    "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0",
    "M-4-4h8v8h-8z",
    "M0-5.4L5 3.8H-5z",
    "M0-5.8L5.4 0L0 5.8L-5.4 0z",
    "M0 5.4L5-3.8H-5z",
    "M-1.6-5h3.2v3.4h3.4v3.2h-3.4v3.4h-3.2v-3.4h-3.4v-3.2h3.4z",
)
"""Shapes of points, one per series: a meaning is never colour alone."""
DASHES = "6 4"
"""The dashes of the line of printed values; ours is solid."""


@dataclass(frozen=True, slots=True)
class Medium:
    """The place of a plot. ``live``: on the page, which has its own colours and a script; ``door``: the address that a
    mark leads to, or ''."""

    live: bool = False
    door: Callable[[Mark], str] = lambda mark: ""

    def colour(self, token: str) -> str:
        """The colour of a token; on the page with the colour of files as its fallback.

        >>> Medium().colour("--bg"), Medium(live=True).colour("--bg")
        ('#ffffff', 'var(--bg,#ffffff)')
        """
        value = colours.TOKENS[token]
        return f"var({token},{value})" if self.live else value

    def series(self, number: int) -> str:
        return self.colour(colours.series(number))

    @property
    def ink(self) -> str:
        return self.colour("--ink")

    @property
    def grid(self) -> str:
        return self.colour("--line")


FILE = Medium()
"""A report or a file: its own colours, no addresses."""


def document(
    value: Figure, medium: Medium, width: float, height: float, body: Markup, more: Markup = NOTHING
) -> Markup:
    """Draw a whole SVG with its title and description."""
    title = value.title or value.y
    ground = Markup('<rect width="{:.0f}" height="{:.0f}" fill="{}"/>').format(
        width, height, medium.colour("--bg")
    )
    head = Markup("<title>{}</title><desc>{}</desc>").format(title, describe(value))
    drawn = Markup(
        '<svg xmlns="http://www.w3.org/2000/svg" role="group" aria-label="{}" width="{:.0f}" height="{:.0f}" '
        'viewBox="0 0 {:.0f} {:.0f}" font-family="{}" font-size="13" fill="{}" style="font-variant-numeric:tabular-nums"{}>'
        "{}{}{}</svg>"
    ).format(title, width, height, width, height, FONT, medium.ink, more, head, ground, body)
    return Markup("{}").format(drawn.translate(CONTROLS))


def describe(value: Figure) -> str:
    """The axes and series of a plot in a sentence."""
    names = ", ".join(value.series)
    over = " over ".join(filter(None, (value.y, value.x)))
    sources = "; ".join(dict.fromkeys(value.printed.values()))
    return ". ".join(filter(None, (f"{over}: {names}" if over else names, sources))) + "."


def label(x: float, y: float, text: str, anchor: str = "start", more: Markup = NOTHING) -> Markup:
    short = text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
    return Markup('<text x="{:.1f}" y="{:.1f}" text-anchor="{}"{}>{}</text>').format(
        x, y, anchor, more, short
    )


def mark(
    point: Mark, words: str, shape: Markup, medium: Medium, at: tuple[float, float] = (0.0, 0.0)
) -> Markup:
    """Draw a point that shows its words, and leads to its run or question on the page."""
    facts = Markup('class="mark" transform="translate({:.1f} {:.1f})" aria-label="{}"').format(
        at[0], at[1], words
    )
    inside = Markup("<title>{}</title>{}").format(words, shape)
    if address := medium.door(point):
        return Markup('<a {} href="{}">{}</a>').format(facts, address, inside)
    return Markup('<g {} role="img" tabindex="0">{}</g>').format(facts, inside)


def point_words(value: Figure, point: Mark) -> str:
    """The words of a point.

    >>> from rallebench.core.report import Estimate
    >>> figure = Figure("", "k", "EM", {"EM": ()}, units=("", "share"))
    >>> point_words(figure, Mark("EM", 10, Estimate(0.518, 0.455, 0.581, 222)))
    'k 10 · EM 51.8 % ± 6.3 · 222 questions'
    """
    several = point.series not in (value.y, "") and (
        len(value.series) > 1 or value.kind == "bubble"
    )
    where = point.x if isinstance(point.x, str) else axes.value_words(point.x, value.units[0])
    x = where if isinstance(point.x, str) and value.kind != "line" else f"{value.x} {where}".strip()
    y = f"{value.y} {axes.mean_words(point.y, value_unit(value))}".strip()
    source = value.printed.get(point.series, "")
    parts = (point.series if several else "", x, y, *point.words, source)
    return " · ".join(dict.fromkeys(filter(None, parts)))


def legend(
    entries: Sequence[tuple[Markup, str]], left: float, top: float, width: float
) -> tuple[Markup, float]:
    """Draw (sample, name) pairs in as many lines as they need; return them with their height."""
    body, x, y = NOTHING, left, top
    for number, (sample, name) in enumerate(entries):
        wide = 44 + LETTER * min(len(name), LONGEST)
        if x > left and x + wide > left + width:
            x, y = left, y + 22
        body += Markup(
            '<g class="key" data-series="{}" transform="translate({:.1f} {:.1f})">'
        ).format(number, x, y)
        body += sample + label(22, 11, name) + Markup("</g>")
        x += wide
    return body, (y - top + 24) if entries else 0.0


def square(colour: str) -> Markup:
    """The sample of a filled area in a legend."""
    return Markup('<rect width="13" height="13" x="2" fill="{}"/>').format(colour)


def keys(
    pairs: Iterable[tuple[str, str]], left: float, top: float, width: float
) -> tuple[Markup, float]:
    """Draw (colour, meaning) pairs; return them with their height."""
    return legend([(square(colour), words) for colour, words in pairs], left, top, width)
