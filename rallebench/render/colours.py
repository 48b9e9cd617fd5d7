"""Colours of plots."""

from __future__ import annotations

from collections.abc import Mapping

SERIES = (
    *("#0d9488", "#d97706", "#4f7fe5", "#c0458b", "#65a30d"),
    *("#8b5cf6", "#dc4c3e", "#0891b2", "#a16207", "#64748b"),
)
"""Colours of series, in order."""
PARTS: Mapping[str, str] = {
    "failed": "#334155",
    "not_in_corpus": "#7f1d1d",
    "not_retrieved": "#dc4c3e",
    "not_found": "#f08a80",
    "not_given": "#be185d",
    "not_in_prompt": "#ea8a3c",
    "not_in_answer": "#e3b23c",
    "lost_by_format": "#a3a847",
    "right_without_support": "#5b9bd5",
    "right": "#0d9488",
    "in_prompt": "#8b5cf6",
    "without_answers": "#6366f1",
    "unanswerable": "#94a3b8",
    "declined": "#115e59",
    "not_declined": "#b45309",
    "retrieved": "#c4b5fd",
    "not_recorded": "#cbd5e1",
    "ACC": "#0f766e",
    "WA": "#9f1239",
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
"""Colours of the parts of a whole, by key: stages of a waterfall, R-Eval's answer classes."""
REST = "#94a3b8"
INKS = ("#ffffff", "#000000")
"""Text colours on a coloured background: one of the two always has a contrast of at least 4.5."""


TOKENS: Mapping[str, str] = {
    "--ink": "#334155",
    "--ink3": "#64748b",
    "--line": "#cbd5e1",
    "--bg": "#ffffff",
} | {f"--plot-{number}": colour for number, colour in enumerate(SERIES, 1)}
"""Colour of a plot by the page's token for it → its value in files."""


def series(number: int) -> str:
    """Return the token of a series, starting again after the last colour."""
    return f"--plot-{number % len(SERIES) + 1}"


def part(key: str) -> str:
    """Return the colour of a part of a whole."""
    return PARTS.get(key, REST)


def ink_on(colour: str) -> str:
    """Return white or black, whichever reads better on ``#rrggbb`` or ``#rgb``; contrast as in WCAG 2.

    >>> ink_on("#7f1d1d"), ink_on("#e3b23c"), ink_on("#000")
    ('#ffffff', '#000000', '#ffffff')
    """
    return max(INKS, key=lambda ink: contrast(ink, colour))


def contrast(a: str, b: str) -> float:
    """Return the contrast of two colours ``#rrggbb``, from 1 (none) to 21; text needs 4.5.

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
