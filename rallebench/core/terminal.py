"""Texts of models and files for a terminal: control characters are shown, never obeyed."""

from __future__ import annotations

import logging
import re

_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Control characters except tab and line feed, marks that change the direction of writing, halves of surrogate pairs."""


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


CONTROLS = {
    code: _escape(chr(code))
    for code in (*range(0xA0), *range(0x600, 0x700), *range(0x2000, 0x2100), *range(0xD800, 0xE000))
    if _CONTROLS.match(chr(code))
}
"""Each control character → its escape, for ``str.translate``; that keeps the type of HTML texts."""


def visible(text: str) -> str:
    r"""The text with every control character as its escape; tabs and line feeds stay.

    >>> print(visible("a\x1b[2Jb\u202ec"))
    a\x1b[2Jb\u202ec
    """
    return _CONTROLS.sub(lambda match: CONTROLS[ord(match[0])], text)


def visible_line(text: str) -> str:
    r"""The same for a text in one line.

    >>> print(visible_line("a\nb"))
    a\nb
    """
    return visible(text.replace("\n", "\\n").replace("\t", " "))


def visible_json(text: str) -> str:
    r"""JSON text with every control character as JSON's own escape: the same value.

    >>> print(visible_json('"\x9b2J"'))
    "\u009b2J"
    """
    return _CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


class VisibleFormatter(logging.Formatter):
    """A format of log records that is safe to print in a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        """The record's lines, with visible control characters."""
        return visible(super().format(record))
