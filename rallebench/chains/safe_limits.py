"""The limits of a template, its budget, and the error for a refused template.

A template is refused within 100 ms and 50 MB. Loops exist only as comprehensions, so both follow from an allowance
of *units*, which every operation pays **before** it runs: a unit is about one copied or compared byte, a node of the
expression costs ``STEP`` units, an element of a list ``ELEMENT``. The costs come from timing each method in its worst
case over the whole allowance; the slowest unit took about 3 ns, and a real prompt of 500,000 characters spends about
a tenth.
"""

from __future__ import annotations

MAX_TEMPLATE = 100_000  # characters of a template
MAX_CODE = 10_000  # characters of an eval template outside its literals: parsing takes 1 us each
MAX_BRACES = 20_000  # braces of one format string
MAX_FIELDS = 1_000  # replacement fields of one format string
MAX_KEYS = 10  # [number] or [key] in one field
MAX_NESTING = 60  # levels of an expression; a chain of + counts as one
MAX_TEXT = 1_000_000  # characters of any text
MAX_ELEMENTS = 100_000  # elements of any list
MAX_WIDTH = 1_000  # width and precision of a format spec, width of ljust and its like
INTEGER_BOUND = 2**64  # integers stay below it in magnitude

ALLOWANCE = 20_000_000  # units of one rendering
STEP = 1_000  # units of one node: 20,000 nodes at most
ELEMENT = 80  # units of one element of a list: its slot and a small object


class TemplateRefused(Exception):
    """A template does something forbidden or impossible. ``at``: the position from 0, if known."""

    def __init__(self, message: str, at: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.at = at


class Budget:
    """The units left for one rendering."""

    __slots__ = ("left",)

    def __init__(self, units: int = ALLOWANCE) -> None:
        self.left = units

    def spend(self, units: int) -> None:
        """Draw ``units``; TemplateRefused if they are not there."""
        self.left -= units
        if self.left < 0:
            raise TemplateRefused(
                "the template does too much work: a loop is too long, or texts are too many or too long"
            )

    def text(self, length: int, ascii_only: bool) -> None:
        """Pay for a text of ``length`` characters; beyond ASCII one may take four bytes."""
        check_length(length)
        self.spend(length if ascii_only else 4 * length)

    def elements(self, count: int) -> None:
        """Pay for a list of ``count`` elements."""
        check_limit(count, MAX_ELEMENTS, "a list of {} elements")
        self.spend(ELEMENT * count)


def check_length(length: int) -> None:
    """Raises TemplateRefused if a text of ``length`` characters would be too long."""
    check_limit(length, MAX_TEXT, "a text of {} characters")


def check_limit(count: int, limit: int, what: str) -> None:
    """Raises TemplateRefused if ``count`` is above the limit; ``what`` names the thing, with {} for the count."""
    if count > limit:
        size = what.format(f"{count:,}")
        raise TemplateRefused(f"{size} is not allowed: the limit is {limit:,}")


def clip(text: str, length: int = 60) -> str:
    """``text`` cut to ``length`` characters, for error messages.

    >>> clip("abcdef", 4)
    'abc…'
    """
    return text if len(text) <= length else text[: length - 1] + "…"


def listing(names: list[str], last: str = "and") -> str:
    """Names as part of a sentence.

    >>> listing(["a", "b", "c"])
    'a, b and c'
    """
    *first, final = names or [""]
    return f"{', '.join(first)} {last} {final}" if first else final
