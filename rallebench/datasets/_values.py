"""Parsing of answers and page ids in the notations that programs write.

A table cell may contain a list as printed by Python, NumPy or JSON; pandas writes ``nan`` for an empty cell and
``1898.0`` for a whole number in a column with empty cells.
"""

from __future__ import annotations

import ast
import io
import json
import math
import re
import tokenize
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

_MISSING = "nan NaN -nan -NaN None null NULL <NA> NaT N/A #N/A"  # "none" and "NA" may be answers
MISSING = frozenset(_MISSING.split())
"""Texts that stand for a missing value."""
INSIDE = ("text", "texts", "answer", "answers", "value", "spans", "input_text", "output", "content")
"""Keys of an answer object: SQuAD's ``text``, TriviaQA's ``value``, DROP's ``spans``, CoQA's ``input_text``."""
ALIASES = ("aliases", "answer_aliases", "alternatives")
"""Keys of further accepted answers in such an object."""
NAMES_OF_PAGE = ("wikipedia_id", "page_id", "doc_id", "docid", "id", "_id", "title", "url")
"""Keys of a page object."""

_WHOLE = re.compile(r"[+-]?\d+\.0+")
_NUMBER = re.compile(r"\d+(\.0+)?")
_LIST_BEGINS = re.compile(r"\s*(\[\s*(b?['\"\u2018\u201c]|np\.)|array\()")
"""Beginning of a printed list of texts."""
_CALLS = ("array", "set", "frozenset", "list", "tuple")
_SCALARS = re.compile(r"(str|int|float|bool|uint|object|bytes)?\d*_?")
"""Names of NumPy's scalar types, as ``np.str_('a')`` and ``np.float64(1.0)`` print them."""
_LITERALS = (tokenize.STRING, tokenize.NUMBER)
_BEGIN = ("[", "{", "(", "array(", "np.array(", "numpy.array(", "set(", "frozenset(")
MAX_LIST_CHARACTERS = 10**6
"""Longest cell, in characters, that is parsed as a list."""


class NoValueError(ValueError):
    """A value that cannot be an answer or a page; the message continues "an answer is"."""


def parse_answers(value: Any) -> tuple[list[str], list[str]]:
    """Return the accepted answers, and the texts that stand for a missing value. Raises NoValueError.

    >>> parse_answers("['Titan', 'Saturn VI']")[0], parse_answers({"text": ["Titan"], "answer_start": [3]})[0]
    (['Titan', 'Saturn VI'], ['Titan'])
    >>> parse_answers({"value": "Titan", "aliases": ["Saturn VI"]})[0], parse_answers(1898.0)[0], parse_answers("nan")
    (['Titan', 'Saturn VI'], ['1898'], ([], ['nan']))
    """
    texts = [text.strip() for text in _texts(parse(value), 0)]
    missing = [text for text in texts if text in MISSING]
    answers: list[str] = []
    for text in texts:
        if text and text not in MISSING:
            whole = [text.partition(".")[0]] if _WHOLE.fullmatch(text) else []
            answers += [*whole, text]  # 1898.0 may be a version number, so both are accepted
    return list(dict.fromkeys(answers)), missing


def parse_pages(value: Any) -> list[str]:
    """Return the page ids or names in a text, a number, a list of these, or page objects. Raises NoValueError.

    >>> parse_pages("[12, 15]"), parse_pages("12, 15"), parse_pages("12.0"), parse_pages({"title": ["Titan"], "sent_id": [0]})
    (['12', '15'], ['12', '15'], ['12'], ['Titan'])
    """
    texts = [text.strip() for text in _names(parse(value, bare=True), 0)]
    several = (text.replace(",", " ").replace(";", " ").replace("|", " ").split() for text in texts)
    ids = (
        parts if len(parts) > 1 and all(map(_NUMBER.fullmatch, parts)) else [text]
        for text, parts in zip(texts, several)
    )
    pages = (
        text.partition(".")[0] if _WHOLE.fullmatch(text) else text
        for text in chain.from_iterable(ids)
        if text and text not in MISSING
    )
    return list(dict.fromkeys(pages))


def row_id(value: Any, number: int) -> Any:
    """Return a row's id, or its number if it has none. A whole number that pandas wrote as ``7.0`` becomes 7."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)) or value == "":
        return number
    return int(value) if isinstance(value, float) and value.is_integer() else value


def is_empty(value: Any) -> bool:
    """Return whether a field is empty: null, NaN, '' or an empty list or object.

    >>> is_empty(float("nan")), is_empty(" "), is_empty(0), is_empty([None])
    (True, True, False, True)
    """
    if isinstance(value, (list, tuple)):
        return all(map(is_empty, value))
    if isinstance(value, Mapping):
        return all(map(is_empty, value.values()))
    if isinstance(value, float):
        return math.isnan(value)
    return value is None or (isinstance(value, str) and value.strip() in {"", *MISSING})


def parse(value: Any, *, bare: bool = False) -> Any:
    """Parse a list, set, tuple or object as printed by JSON, Python or NumPy; return any other text unchanged.

    Sets and tuples must hold only texts, because ``(3, 4)`` may be a point; with ``bare``, numbers too. A JSON string
    that contains such a text is parsed as well.

    >>> parse("['a' 'b']"), parse('{"text": ["a"]}'), parse("[sic] Titan"), parse("(3, 4)")
    (['a', 'b'], {'text': ['a']}, '[sic] Titan', '(3, 4)')
    >>> parse("{'text': array(['a', 'b'], dtype=object), 'answer_start': array([1, 2])}")["text"]
    ['a', 'b']
    """
    if not isinstance(value, str) or len(value) > MAX_LIST_CHARACTERS:
        return value
    text = value.strip()
    if text.startswith(('"[', '"{')) and text.endswith((']"', '}"')):
        text = _unquote(text)
    if not text.startswith(_BEGIN) or not text.endswith(("]", "}", ")")):
        return value
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        tree = ast.parse(_with_commas(text), mode="eval").body
        read = _literal(tree)
    except (ValueError, SyntaxError, RecursionError, MemoryError, tokenize.TokenError):
        return value
    point = isinstance(tree, (ast.Tuple, ast.Set)) and not bare
    listed = isinstance(read, (list, dict))
    return read if listed and not (point and not all(isinstance(x, str) for x in read)) else value


def _unquote(text: str) -> str:
    """Return the list or object inside a JSON string, else the text."""
    try:
        inner = json.loads(text)
    except ValueError:
        return text
    return inner.strip() if isinstance(inner, str) else text


def _with_commas(text: str) -> str:
    """Insert commas between adjacent values: NumPy leaves them out, and Python would join the strings."""
    pieces: list[tuple[int, str]] = []
    before = tokenize.ENCODING
    for token in tokenize.generate_tokens(io.StringIO(text.replace("\n", " ")).readline):
        if before in _LITERALS and token.type in _LITERALS:
            pieces.append((tokenize.OP, ","))
        pieces.append((token.type, token.string))
        before = token.type
    return tokenize.untokenize(pieces).strip()


def _literal(node: ast.expr) -> Any:
    """Return the value of a literal; arrays and sets become lists. Raises ValueError for any other expression."""
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        return [_literal(element) for element in node.elts]
    if isinstance(node, ast.Dict):
        keys = [_literal(key) if key else None for key in node.keys]
        if not all(isinstance(key, (str, int, float)) for key in keys):
            raise ValueError(node)
        return dict(zip(map(str, keys), map(_literal, node.values)))
    if isinstance(node, ast.Call) and node.args:
        called = ast.unparse(node.func)
        module, _, name = called.rpartition(".")
        numpy = module in ("np", "numpy")
        if (name in _CALLS and (not module or numpy)) or (numpy and _SCALARS.fullmatch(name)):
            return _literal(node.args[0])
        raise ValueError(node)
    if isinstance(node, ast.Attribute) and ast.unparse(node) in ("np.nan", "numpy.nan"):
        return None
    if isinstance(node, ast.Name):
        named = dict.fromkeys(("nan", "NaN", "null", "NaT", "NA"), None)
        named |= {"true": True, "false": False}
        if node.id in named:
            return named[node.id]
        raise ValueError(node)
    value = ast.literal_eval(node)
    if value is Ellipsis or isinstance(value, (bytes, complex)):
        raise ValueError(node)
    return value


def _texts(value: Any, depth: int) -> list[str]:
    """Return the texts of an answer in order, '' for an empty one. ``depth``: number of enclosing lists."""
    if isinstance(value, Mapping):
        value = {str(key).lower(): inner for key, inner in value.items()}
        key = next((key for key in INSIDE if not is_empty(value.get(key))), None)
        further = [alias for name in ALIASES for alias in _as_list(value.get(name))]
        if key is None and not further and not any(key in value for key in (*INSIDE, *ALIASES)):
            have = ", ".join(map(str, list(value)[:6])) or "no field"
            raise NoValueError(f"an object with {have}")
        first = _texts(value[key], depth) if key is not None else _count_or_date(value)
        return [*first, *(text for alias in further for text in _texts(alias, depth))]
    if isinstance(value, (list, tuple)):
        if depth:
            raise NoValueError("a list inside a list")
        inner = (1 if not isinstance(element, Mapping) else 0 for element in value)
        return [text for element, level in zip(value, inner) for text in _texts(element, level)]
    return [_text(value)]


def _count_or_date(value: Mapping[str, Any]) -> list[str]:
    """Return the number or date that DROP gives instead of spans."""
    if not is_empty(value.get("number")):
        return [_text(value["number"])]
    date = value.get("date")
    parts = (
        [date.get(part) for part in ("day", "month", "year")] if isinstance(date, Mapping) else []
    )
    return [" ".join(_text(part) for part in parts if not is_empty(part))]


def _names(value: Any, depth: int) -> list[str]:
    """Return the page names in order, '' for an empty one."""
    if isinstance(value, Mapping):
        value = {str(key).lower(): inner for key, inner in value.items()}
        key = next((key for key in NAMES_OF_PAGE if not is_empty(value.get(key))), None)
        if key is None:
            raise NoValueError("an object without an id, title or url")
        return _names(value[key], depth)
    if isinstance(value, (list, tuple)):
        if depth and len(value) == 2 and isinstance(value[0], str) and isinstance(value[1], int):
            return _names(value[0], depth)  # HotpotQA's [title, sentence]
        if depth:
            raise NoValueError("a list inside a list")
        inner = (1 if not isinstance(element, Mapping) else 0 for element in value)
        return [name for element, level in zip(value, inner) for name in _names(element, level)]
    return [_text(value)]


def _as_list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, (list, tuple)) else [] if is_empty(value) else [value]


def _text(value: Any) -> str:
    """Return a text or number as text, '' for null and NaN. Raises NoValueError for any other value."""
    if value is None:
        return ""
    if isinstance(value, bool):
        word = "true" if value else "false"
        raise NoValueError(f'{word} without quotes; write the intended word, such as "yes"')
    if isinstance(value, float):
        if not math.isfinite(value):
            return "nan" if math.isnan(value) else str(value)
        return str(int(value)) if value.is_integer() and abs(value) < 1e16 else str(value)
    if isinstance(value, str) and _LIST_BEGINS.match(value):
        raise NoValueError(f"a list that is cut off or cannot be read, {value.strip()[:40]!r}")
    if isinstance(value, (str, int)):
        return str(value)
    raise NoValueError("binary data" if isinstance(value, bytes) else type(value).__name__)
