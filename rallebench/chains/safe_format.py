"""Format strings: the part of ``str.format`` that reads only the variables.

A field is ``{name}`` or ``{name[0][title]}``, with ``!r``, ``!s`` or ``!a`` and a format spec. Attributes and nested
fields are not allowed; widths and precisions go up to ``MAX_WIDTH``. Everything else means the same as in Python, which
the tests check against ``str.format`` itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from rallebench.chains.safe_values import (
    MAX_BRACES,
    MAX_FIELDS,
    MAX_KEYS,
    MAX_WIDTH,
    SCALARS,
    STEP,
    Budget,
    TemplateRefused,
    Value,
    as_repr,
    as_text,
    clip,
    item,
    join_texts,
    kind,
)

_BRACE = re.compile(r"\{\{|\}\}|\{|\}")
_FIELD = re.compile(r"\{([^{}\[\]!:]*)((?:\[[^\[\]{}]*\])*)(?:!([^:{}]*))?(?::([^{}]*))?\}")
_SPEC = re.compile(
    r"(?:.?[<>=^])?[-+ ]?z?#?0?(?P<width>\d*)[,_]?(?:\.(?P<precision>\d+))?[a-zA-Z%]?",
    re.ASCII | re.DOTALL,
)


DOUBLED = "write '{{' and '}}' for braces that are text"
"""Advice about a brace that was meant as text."""


@dataclass(frozen=True, slots=True)
class Field:
    """A replacement field; ``at``: the position of its brace, from 0."""

    at: int
    name: str
    keys: tuple[int | str, ...] = ()
    conversion: str = ""
    spec: str = ""


def parse_format(text: str) -> tuple[str | Field, ...]:
    """Return literal texts and fields in order. Raises TemplateRefused with the position."""
    return _cached_parse(text) if len(text) <= 2_000 else _parse(text)


def _parse(text: str) -> tuple[str | Field, ...]:
    pieces: list[str | Field] = []
    done = position = fields = 0
    if text.count("{") + text.count("}") > MAX_BRACES:
        raise TemplateRefused(f"more than {MAX_BRACES:,} braces are not allowed", 0)
    while brace := _BRACE.search(text, position):
        start, position = brace.span()
        pieces.append(text[done:start])
        if brace[0] == "}":
            unpaired = "this '}' closes nothing: write '}}' for a brace that is text"
            raise TemplateRefused(unpaired, start)
        if brace[0] == "{":
            field, position = _parse_field(text, start)
            pieces.append(field)
            fields += 1
        else:
            pieces.append(brace[0][0])
        if fields > MAX_FIELDS:
            raise TemplateRefused(f"more than {MAX_FIELDS:,} fields are not allowed", start)
        done = position
    pieces.append(text[done:])
    return tuple(piece for piece in pieces if piece != "")


_cached_parse = lru_cache(maxsize=64)(_parse)  # a template is filled once per question


def _parse_field(text: str, start: int) -> tuple[Field, int]:
    match = _FIELD.match(text, start)
    if not match:
        raise TemplateRefused(_why_no_field(text, start), start)
    name, keys, conversion, spec = match.groups()
    why = ""
    if re.search(r"[^\w.]", name):  # for example JSON, whose braces are text
        why = not_a_variable(name)
    elif "." in name:
        why = f"attributes are not allowed: {clip(match[0])} may only use [number] or [key]"
    elif conversion is not None and conversion not in ("r", "s", "a"):
        why = f"the conversion !{clip(conversion)} is not allowed: only !r, !s and !a are"
    elif keys.count("[") > MAX_KEYS:
        why = f"more than {MAX_KEYS} pairs of [] in one field are not allowed"
    if why:
        raise TemplateRefused(why, start)
    check_spec(spec or "", start)
    path = tuple(_key(key, start) for key in re.findall(r"\[(.*?)\]", keys, re.DOTALL))
    return Field(start, name, path, conversion or "", spec or ""), match.end()


def _why_no_field(text: str, start: int) -> str:
    closing, nested = text.find("}", start), text.find("{", start + 1)
    if closing < 0:
        return "this '{' is not closed: write '{{' for a brace that is text"
    if 0 <= nested < closing:
        return "a field within a field is not allowed: close this '{' first, or write '{{' if it is text"
    part = clip(text[start : closing + 1])
    return f"{part} is not a field: write a variable, then [number] or [key], or {DOUBLED}"


def not_a_variable(name: str) -> str:
    """Return the refusal of a field whose name no variable can have."""
    return f"{clip(name)!r} is not the name of a variable: {DOUBLED}"


def _key(key: str, start: int) -> int | str:
    if not key:
        raise TemplateRefused("[] is empty: write a number or a key between the brackets", start)
    if not key.isdecimal():
        return key
    if len(key) > 9:
        raise TemplateRefused(f"the index [{clip(key)}] is too large", start)
    return int(key)


def check_spec(spec: str, at: int | None = None) -> None:
    """Raise TemplateRefused unless ``spec`` is a plain format spec with a width and precision of at most ``MAX_WIDTH``."""
    match = _SPEC.fullmatch(spec)
    if not match:
        raise TemplateRefused(f"the format spec {clip(spec)!r} is not allowed: {DOUBLED}", at)
    for part in ("width", "precision"):
        digits = (match[part] or "").lstrip("0")
        if len(digits) > 4 or int(digits or 0) > MAX_WIDTH:
            raise TemplateRefused(
                f"a {part} of {clip(digits, 12)} is not allowed: the limit is {MAX_WIDTH:,}", at
            )


def format_value(value: Value, conversion: str, spec: str, budget: Budget) -> str:
    """Format ``value`` for a field. ``conversion``: '', 'r', 's' or 'a'; ``spec`` was checked before."""
    budget.spend(STEP)
    if conversion == "s":
        value = as_text(value, budget)
    elif conversion:
        value = as_repr(value, budget)
        if conversion == "a" and not value.isascii():
            # Python's ascii() differs from repr() only in escaping everything but ASCII
            value = value.encode("ascii", "backslashreplace").decode("ascii")
            budget.text(len(value), True)
    if not spec:
        return as_text(value, budget)
    if type(value) not in SCALARS or value is None:
        raise TemplateRefused(f"{kind(value)} takes no format spec such as {clip(spec)!r}")
    if type(value) is str:
        budget.text(len(value) + MAX_WIDTH, value.isascii())
    try:
        text = format(value, spec)
        budget.spend(20 * len(text))
        return text
    except (ValueError, OverflowError) as error:
        raise TemplateRefused(
            f"the format spec {clip(spec)!r} does not fit {kind(value)}: {error}"
        ) from None


def fill(pieces: Sequence[str | Field], get_value: Callable[[Field], Value], budget: Budget) -> str:
    """Fill parsed ``pieces``; ``get_value`` returns a field's variable. Errors carry the position."""
    return join_texts((_render_piece(piece, get_value, budget) for piece in pieces), budget)


def _render_piece(piece: str | Field, get_value: Callable[[Field], Value], budget: Budget) -> str:
    if isinstance(piece, str):
        return piece
    try:
        return _fill_field(piece, get_value, budget)
    except TemplateRefused as refusal:
        refusal.at = piece.at
        raise


def _fill_field(field: Field, get_value: Callable[[Field], Value], budget: Budget) -> str:
    value, label = get_value(field), field.name
    for key in field.keys:
        budget.spend(STEP)
        value = item(value, key, label, budget)
        label += f"[{key}]"
    return format_value(value, field.conversion, field.spec, budget)


def format_call(
    text: str, args: Sequence[Value], kwargs: Mapping[str, Value], budget: Budget
) -> str:
    """Return ``text.format(*args, **kwargs)``; fields are automatic, numbered or named."""
    budget.spend(4 * STEP + 10 * len(text) + STEP * (text.count("{") + text.count("}")))
    following = iter(range(len(args)))
    styles: set[bool] = set()

    def get_value(field: Field) -> Value:
        if field.name and not field.name.isdecimal():
            if field.name in kwargs:
                return kwargs[field.name]
            raise TemplateRefused(f"format was given no argument named {clip(field.name)!r}")
        styles.add(bool(field.name))
        if len(styles) == 2:
            raise TemplateRefused("{} and {0} cannot be mixed in one text")
        position = _key(field.name, field.at) if field.name else next(following, len(args))
        if isinstance(position, str) or position >= len(args):
            raise TemplateRefused(
                f"format was given {len(args)} argument{'s' * (len(args) != 1)}, and a field needs more"
            )
        return args[position]

    return fill(parse_format(text), get_value, budget)
