"""The values of a template, plain data only, and its budget: comparing, indexing and writing a value have known costs.

A template is refused within 100 ms and 50 MB. Loops exist only as comprehensions, so an allowance of *units*, which
every operation pays **before** it runs, ensures both: a unit is about one copied or compared byte, a node of the
expression costs ``STEP`` units, an element of a list ``ELEMENT``. The costs come from timing each method in its worst
case over the whole allowance; the slowest unit took about 3 ns, and a real prompt of 500,000 characters spends about
a tenth.

Python's own ``==``, ``<``, ``hash`` and ``repr`` of nested data take exponential time on lists with shared elements,
so containers are walked here and every element is paid for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

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
    """The template does something forbidden or impossible. ``at``: the position from 0, if known."""

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
        """Deduct ``units``. Raises TemplateRefused if too few are left."""
        self.left -= units
        if self.left < 0:
            raise TemplateRefused(
                "the template does too much work: a loop is too long, or texts are too many or too long"
            )

    def text(self, length: int, ascii_only: bool) -> None:
        """Pay for a text of ``length`` characters; a text beyond ASCII may take four bytes per character."""
        check_length(length)
        self.spend(length if ascii_only else 4 * length)

    def elements(self, count: int) -> None:
        """Pay for a list of ``count`` elements."""
        check_limit(count, MAX_ELEMENTS, "a list of {} elements")
        self.spend(ELEMENT * count)


def check_length(length: int) -> None:
    """Raise TemplateRefused if a text of ``length`` characters would be too long."""
    check_limit(length, MAX_TEXT, "a text of {} characters")


def check_limit(count: int, limit: int, phrase: str) -> None:
    """Raise TemplateRefused if ``count`` is above the limit; ``phrase`` names the thing, with {} for the count."""
    if count > limit:
        size = phrase.format(f"{count:,}")
        raise TemplateRefused(f"{size} is not allowed: the limit is {limit:,}")


def clip(text: str, length: int = 60) -> str:
    """``text`` cut to ``length`` characters, for error messages.

    >>> clip("abcdef", 4)
    'abc…'
    """
    return text if len(text) <= length else text[: length - 1] + "…"


def listing(names: list[str], last: str = "and") -> str:
    """Join names for use in a sentence.

    >>> listing(["a", "b", "c"])
    'a, b and c'
    """
    *first, final = names or [""]
    return f"{', '.join(first)} {last} {final}" if first else final


# ── values ───────────────────────────────────────────────────────────────────

Value = Any  # str, int, float, bool, None, or list, tuple, dict, set of them

TYPE_NAMES: dict[type, str] = {
    str: "a text",
    int: "a number",
    float: "a number",
    bool: "a truth value",
    type(None): "None",
    list: "a list",
    tuple: "a tuple",
    dict: "a dict",
    set: "a set",
}
_BRACKETS: dict[type, str] = {list: "[]", tuple: "()", dict: "{}"}
SCALARS = (str, int, float, bool, type(None))
NUMBERS = (int, float, bool)
UNORDERED = "a set has no order, so the prompt would change from run to run: use sorted(...)"


def kind(value: Value) -> str:
    """Return the kind of ``value`` for a message: 'a text', 'a list' and so on."""
    return TYPE_NAMES.get(type(value), "an object")


def plain(value: object, name: str) -> Value:
    """Return ``value`` of the variable ``name`` as plain data: exactly Python's own types, at every depth.

    Raises TemplateRefused for anything else, so that no object with behaviour ever reaches a template.
    """
    if type(value) in SCALARS:
        return value
    if isinstance(value, str):  # a subclass of a scalar, such as numpy.float64
        return str.__str__(value)
    if isinstance(value, (int, float)):
        return int.__int__(value) if isinstance(value, int) else float.__float__(value)
    if isinstance(value, Mapping):
        return {plain(key, name): plain(element, name) for key, element in value.items()}
    if isinstance(value, tuple):
        return tuple(plain(element, name) for element in value)
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray, memoryview)):
        return [plain(element, name) for element in value]
    raise TemplateRefused(
        f"the variable {name!r} holds a {type(value).__name__}, which a template cannot use"
    )


def check_number(value: Value) -> Value:
    """Return ``value`` if it is a number within bounds. Raises TemplateRefused otherwise."""
    if type(value) is int and not -INTEGER_BOUND < value < INTEGER_BOUND:
        raise TemplateRefused("a whole number beyond 2**64 is not allowed")
    if type(value) not in NUMBERS:
        raise TemplateRefused(f"a {type(value).__name__} is not allowed as a number")
    return value


def check_key(key: Value, budget: Budget) -> Value:
    """Return ``key`` if a dict or set may contain it: a scalar, or a tuple of scalars. Pays for the lookup."""
    for part in key if type(key) is tuple else (key,):
        if type(part) not in SCALARS:
            raise TemplateRefused(
                f"{kind(key)} cannot be a key here: only texts, numbers and tuples of them can"
            )
        budget.spend(8 * len(part) if type(part) is str else 8)
    return key


def join_texts(pieces: Iterable[str], budget: Budget) -> str:
    """Return ``"".join(pieces)``, refused as soon as it is too long."""
    parts: list[str] = []
    length = 0
    for piece in pieces:
        length += len(piece)
        check_length(length)
        parts.append(piece)
    budget.text(length, all(piece.isascii() for piece in parts))
    return "".join(parts)


def as_text(value: Value, budget: Budget) -> str:
    return value if type(value) is str else as_repr(value, budget)


def as_repr(value: Value, budget: Budget) -> str:
    """Return ``repr(value)``. Sets are refused: their order differs from process to process."""
    if type(value) not in SCALARS:
        pieces: list[str] = []
        _write(value, pieces, budget)
        return join_texts(pieces, budget)
    text = repr(value)  # at most ten times as long as the text it is made from
    budget.text(len(text), text.isascii())
    return text


def _write(value: Value, pieces: list[str], budget: Budget) -> None:
    """Append the parts of ``repr(value)``; a shared element is paid for each time."""
    budget.spend(STEP)
    if type(value) in SCALARS:
        pieces.append(as_repr(value, budget))
        return
    if type(value) is set:
        raise TemplateRefused(UNORDERED)
    brackets = _BRACKETS[type(value)]
    pieces.append(brackets[0])
    for number, element in enumerate(value):
        pieces.append(", " if number else "")
        _write(element, pieces, budget)
        if type(value) is dict:
            pieces.append(": ")
            _write(value[element], pieces, budget)
    pieces.append(",)" if type(value) is tuple and len(value) == 1 else brackets[1])


def equal(left: Value, right: Value, budget: Budget) -> bool:
    if type(left) in SCALARS or type(right) in SCALARS or type(left) is not type(right):
        if type(left) is str and type(right) is str and len(left) == len(right):
            budget.spend(4 * len(left))
        return bool(left == right)  # Python does not walk values of different types
    budget.spend(STEP)
    if len(left) != len(right):
        return False
    if type(left) is set:
        return all(check_key(key, budget) in right for key in _pay_for_each(left, budget))
    if type(left) is dict:
        return all(
            check_key(key, budget) in right and same(left[key], right[key], budget)
            for key in _pay_for_each(left, budget)
        )
    return all(
        same(first, second, budget)
        for first, second in zip(_pay_for_each(left, budget), right, strict=True)
    )


def same(left: Value, right: Value, budget: Budget) -> bool:
    """Return whether Python treats two elements as equal: they are the same object (such as a nan), or equal."""
    return left is right or equal(left, right, budget)


def less(left: Value, right: Value, budget: Budget, *, or_equal: bool = False) -> bool:
    """Return ``left < right``, or ``<=``, for two numbers, two texts, or two lists or tuples of them.

    Lists are compared by their first two elements that are not ``same``. With nan, ``<=`` is not the opposite of
    ``>``.
    """
    if type(left) in NUMBERS and type(right) in NUMBERS:
        return bool(left <= right if or_equal else left < right)
    if type(left) is str and type(right) is str:
        budget.spend(4 * min(len(left), len(right)))
        return left <= right if or_equal else left < right
    if type(left) is type(right) and type(left) in (list, tuple):
        for first, second in zip(_pay_for_each(left, budget), right, strict=False):
            if not same(first, second, budget):
                return less(first, second, budget, or_equal=or_equal)
        return len(left) <= len(right) if or_equal else len(left) < len(right)
    raise TemplateRefused(f"{kind(left)} and {kind(right)} have no order")


def _pay_for_each(values: Iterable[Value], budget: Budget) -> Iterable[Value]:
    for value in values:
        budget.spend(STEP)
        yield value


def item(container: Value, key: Value, label: str, budget: Budget) -> Value:
    """Return ``container[key]``; ``label``: the container's name in the template, such as ``response``.

    Raises TemplateRefused with a sentence that describes the container.
    """
    if type(container) is dict:
        if check_key(key, budget) in container:
            return container[key]
        keys = ", ".join(str(name) for name in container)
        raise TemplateRefused(
            f"{label} has no key {clip(repr(key))}: its keys are {clip(keys, 200) or 'none'}"
        )
    if type(container) not in (str, list, tuple):
        raise TemplateRefused(f"{label} is {kind(container)} and cannot be indexed")
    if type(key) not in (int, bool):
        raise TemplateRefused(
            f"{label} is {kind(container)} and is indexed by whole numbers, not by {clip(repr(key))}"
        )
    if -len(container) <= key < len(container):
        return container[key]
    raise TemplateRefused(f"{label}[{int(key)}] does not exist: {_extent(container, label)}")


def _extent(container: Value, label: str) -> str:
    """Describe the length of ``container``; for the lists of a chain, in terms of its actions."""
    count = len(container)
    span = f"{label}[0]" if count == 1 else f"{label}[0] … {label}[{count - 1}]"
    if label in ("prompt", "response", "wiki_id_title", "documents"):
        if not count:
            return "no action has run before this one"
        return f"{count} action{'s have' if count > 1 else ' has'} run before this one, so there is {span}"
    if label.startswith("documents[") and type(container) is list:
        return f"there is {span}" if count else "that action retrieved nothing"
    if type(container) is str:
        return f"the text has {count} character{'s' * (count != 1)}"
    return f"the list has {count} element{'s' * (count != 1)}"
