"""The methods of eval templates, each paid for before it runs.

They have no side effects, do not call back into the template, and take and return plain values. The cost factors below
were measured in Python 3.10, 3.11 and 3.13, in each method's worst case on long texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from rallebench.chains.safe_format import format_call
from rallebench.chains.safe_values import (
    ELEMENT,
    MAX_ELEMENTS,
    MAX_WIDTH,
    STEP,
    UNORDERED,
    Budget,
    TemplateRefused,
    Value,
    check_key,
    clip,
    kind,
    same,
)

Method = Callable[..., Value]  # (budget, self, *args, **kwargs)

# ── texts ────────────────────────────────────────────────────────────────────


def _of_characters(method: Method, units: int) -> Method:
    """Wrap a method that reads each character once, at ``units`` each, and may return a new text."""

    def call(budget: Budget, text: str, /, *args: Value) -> Value:
        budget.spend(units * len(text))
        for argument in args:
            _check_text(argument)
            budget.spend(len(argument))
        result = method(text, *args)
        if type(result) is str:
            budget.text(len(result), result.isascii())
        return result

    return call


def _stripping(method: Method) -> Method:
    """Wrap ``strip``, ``lstrip`` and ``rstrip``: each character may be compared with the whole argument."""

    def call(budget: Budget, text: str, characters: str | None = None, /) -> str:
        budget.spend(4 * len(text) * (1 + len(characters or "") // 8))
        result: str = method(text, characters)
        budget.text(len(result), result.isascii())
        return result

    return call


def search_cost(text: str, part: Value, backward: bool = False) -> int:
    """Return the units for finding ``part`` in ``text``. Backwards, and forwards if either is short, Python compares it
    at every position; otherwise its two-way search is linear.
    """
    slow = backward or len(text) < 2_500 or len(_check_text(part)) < 100
    return len(text) * (4 + slow * len(_check_text(part)) // 4) + len(part)


def _check_text(value: Value) -> str:
    if type(value) is not str:
        raise TemplateRefused(f"{kind(value)} is not allowed where a text is needed: use str(...)")
    return value


def _searching(method: Method, backward: bool = False) -> Method:
    """Wrap ``find``, ``count``, ``partition`` and similar methods."""

    def call(budget: Budget, text: str, part: Value, /, *bounds: Value) -> Value:
        budget.spend(search_cost(text, part, backward))
        result = method(text, part, *bounds)
        if type(result) is tuple:
            budget.text(len(text), text.isascii())
        return result

    return call


def _affix(method: Method) -> Method:
    """Wrap ``startswith`` and ``endswith``, with one text or a tuple of texts."""

    def call(budget: Budget, text: str, affix: Value, /, *bounds: Value) -> bool:
        for part in affix if type(affix) is tuple else (affix,):
            budget.spend(STEP // 4 + len(_check_text(part)))
        return bool(method(text, affix, *bounds))

    return call


def _padding(method: Method) -> Method:
    """Wrap ``ljust``, ``rjust``, ``center`` and ``zfill``."""

    def call(budget: Budget, text: str, width: int, /, *fill: Value) -> str:
        if width > MAX_WIDTH:
            raise TemplateRefused(f"a width of more than {MAX_WIDTH:,} is not allowed")
        length = max(len(text), width)
        budget.text(
            length, text.isascii() and all(_check_text(character).isascii() for character in fill)
        )
        result: str = method(text, width, *fill)
        return result

    return call


def _splitting(method: Method, backward: bool = False) -> Method:
    """Wrap ``split`` and ``rsplit``, which stop at the number of parts that the budget allows."""

    def call(budget: Budget, text: str, /, sep: str | None = None, maxsplit: int = -1) -> list[str]:
        budget.spend(4 * len(text) if sep is None else search_cost(text, sep, backward))
        most = max(0, min(MAX_ELEMENTS, budget.left // ELEMENT))
        parts: list[str] = method(text, sep, most if maxsplit < 0 else min(most, maxsplit))
        budget.elements(len(parts))
        budget.text(len(text), text.isascii())
        return parts

    return call


def _splitlines(budget: Budget, text: str, /, keepends: bool = False) -> list[str]:
    budget.spend(4 * STEP + 10 * len(text))
    budget.elements(sum(text.count(end) for end in "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"))
    budget.text(len(text), text.isascii())
    return text.splitlines(keepends)


def _replace(budget: Budget, text: str, old: str, new: str, count: int = -1, /) -> str:
    budget.spend(2 * search_cost(text, old) + len(_check_text(new)))
    occurrences = text.count(old)
    times = occurrences if count < 0 else min(count, occurrences)
    budget.text(len(text) + times * (len(new) - len(old)), text.isascii() and new.isascii())
    return text.replace(old, new, count)


def _join(budget: Budget, text: str, parts: Value, /) -> str:
    values = elements(parts, budget)
    budget.spend(ELEMENT * len(values))
    for number, part in enumerate(values):
        if type(part) is not str:
            raise TemplateRefused(
                f"join needs texts, and element {number} is {kind(part)}: use str(...)"
            )
    length = sum(map(len, values)) + len(text) * max(0, len(values) - 1)
    budget.text(length, text.isascii() and all(map(str.isascii, values)))
    return text.join(values)


def _format(budget: Budget, text: str, /, *args: Value, **kwargs: Value) -> str:
    try:
        return format_call(text, args, kwargs, budget)
    except TemplateRefused as refusal:
        raise TemplateRefused(f"in the text before .format, {refusal.message}") from None


# ── lists, tuples and dicts ──────────────────────────────────────────────────


def elements(value: Value, budget: Budget, ordered: bool = True) -> Any:
    """Return the elements of ``value`` as a list or tuple; a set is allowed only if order has no effect."""
    if type(value) in (list, tuple):
        budget.spend(len(value))
        return value
    if type(value) not in (str, dict, set):
        raise TemplateRefused(f"{kind(value)} cannot be iterated over")
    if type(value) is set and ordered:
        raise TemplateRefused(UNORDERED)
    budget.elements(len(value))
    return list(value)


def _index(
    budget: Budget, values: Any, sought: Value, start: int = 0, stop: int | None = None, /
) -> int:
    for position in range(*slice(start, stop).indices(len(values))):
        budget.spend(STEP // 2)
        if same(values[position], sought, budget):
            return position
    raise TemplateRefused(
        f"index did not find {clip(repr(sought)) if type(sought) is str else kind(sought)}"
    )


def count_equal(budget: Budget, values: Any, sought: Value, /) -> int:
    """Count the ``values`` that are the same as ``sought``."""
    budget.spend(STEP // 2 * len(values))
    return sum(same(value, sought, budget) for value in values)


def _get(
    budget: Budget, mapping: dict[Value, Value], key: Value, default: Value = None, /
) -> Value:
    return mapping.get(check_key(key, budget), default)


def _listing(method: Callable[[dict[Value, Value]], Iterable[Value]], each: int) -> Method:
    """Wrap ``items``, ``keys`` and ``values``, which return lists here, at ``each`` elements per entry."""

    def call(budget: Budget, mapping: dict[Value, Value], /) -> list[Value]:
        budget.elements(each * len(mapping))
        return list(method(mapping))

    return call


_TEXT_METHODS: Sequence[tuple[Callable[[Method], Method], str]] = (
    (partial(_of_characters, units=20), "lower upper title capitalize casefold swapcase"),
    (
        partial(_of_characters, units=10),
        "isalnum isalpha isascii isdecimal isdigit isidentifier islower isnumeric isprintable isspace istitle isupper",
    ),
    (partial(_of_characters, units=1), "removeprefix removesuffix"),
    (_stripping, "strip lstrip rstrip"),
    (_searching, "find index count partition"),
    (partial(_searching, backward=True), "rfind rindex rpartition"),
    (_affix, "startswith endswith"),
    (_padding, "ljust rjust center zfill"),
    (_splitting, "split"),
    (partial(_splitting, backward=True), "rsplit"),
)
"""Wrappers that pay for methods of texts, with the names of the methods."""

_SEQUENCE: Mapping[str, Method] = {"index": _index, "count": count_equal}

METHODS: Mapping[type, Mapping[str, Method]] = {
    str: {
        **{
            name: paid(getattr(str, name))
            for paid, names in _TEXT_METHODS
            for name in names.split()
        },
        "splitlines": _splitlines,
        "replace": _replace,
        "join": _join,
        "format": _format,
    },
    list: _SEQUENCE,
    tuple: _SEQUENCE,
    dict: {
        "get": _get,
        "items": _listing(dict.items, 2),
        "keys": _listing(dict.keys, 1),
        "values": _listing(dict.values, 1),
    },
}
METHOD_NAMES = frozenset(name for methods in METHODS.values() for name in methods)
