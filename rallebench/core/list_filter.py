"""The typed filter of lists: ``em<50 chain:starter -tag:night "two words"``. Pure.

Terms are separated by spaces and all must fit. A bare word occurs in a name; ``name:text`` occurs in a column;
``= != < <= > >=`` compare. ``-`` before a term negates it; quotes hold spaces and special characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from rallebench.core.errors import UsageError

FIELD = "where"
"""Name of the setting, form field and value of the address that hold a filter."""
OPERATORS = ("<=", ">=", "!=", ":", "<", ">", "=")
_QUOTED = r'"(?:[^"\\]|\\.)*"'
_NAME = re.compile(rf'{_QUOTED}|[^\s:<>=!"]+', re.DOTALL)
_OPERATOR = re.compile(r"\s*(<=|>=|!=|<|>|=)|:")
_VALUE = re.compile(rf'{_QUOTED}|[^\s"]\S*', re.DOTALL)
_PLAIN_VALUE = re.compile(r'[^\s"=]\S*')
_PLAIN_NAME = re.compile(r'[^\s:<>=!"-][^\s:<>=!"]*')


class FilterError(UsageError):
    """A filter that cannot be understood. ``at``: the position of the fault, from 0."""

    def __init__(self, sentence: str, at: int) -> None:
        super().__init__(sentence, FIELD)
        self.at = at


@dataclass(frozen=True, slots=True)
class Term:
    """A condition. ``name``: of a column, "" for a bare word; ``operator``: one of OPERATORS; ``at``: its position in
    the text.

    >>> str(Term("tag", ":", "two words", negated=True)), str(Term("", ":", "a<b"))
    ('-tag:"two words"', '"a<b"')
    """

    name: str
    operator: str
    value: str
    negated: bool = False
    at: int = field(default=0, compare=False)

    def __str__(self) -> str:
        sign = "-" if self.negated else ""
        if not self.name:
            return sign + _quote(self.value, _PLAIN_NAME)
        name = _quote(self.name, _PLAIN_NAME)
        return f"{sign}{name}{self.operator}{_quote(self.value, _PLAIN_VALUE)}"


@dataclass(frozen=True, slots=True)
class ListFilter:
    """The terms of a filter; all of them must fit.

    >>> ListFilter.parse('em < 50  "chain":starter night')
    ListFilter(terms=(Term(name='em', operator='<', value='50', negated=False, at=0), Term(name='chain', \
operator=':', value='starter', negated=False, at=9), Term(name='', operator=':', value='night', negated=False, at=25)))
    >>> str(ListFilter.parse('em < 50  "chain":starter night'))
    'em<50 chain:starter night'
    """

    terms: tuple[Term, ...] = ()

    @classmethod
    def parse(cls, text: str) -> ListFilter:
        """Parse a filter; "" fits everything. Raises FilterError."""
        return cls(tuple(_terms(text)))

    def __str__(self) -> str:
        return " ".join(map(str, self.terms))


def _terms(text: str) -> Iterator[Term]:
    at = _skip_spaces(text, 0)
    while at < len(text):
        start, negated = at, text[at] == "-"
        at += negated
        name, at = _name(text, at, start)
        operator = _OPERATOR.match(text, at)
        if operator is None:
            value, at = _bare_word(text, name, at)
            yield Term("", ":", value, negated, start)
        else:
            if not name:
                raise _no_column(text, start)
            value, at = _value(text, start, operator)
            yield Term(name, operator[1] or ":", value, negated, start)
        at = _skip_spaces(text, at)


def _name(text: str, at: int, start: int) -> tuple[str, int]:
    """Read the name of a column, or the beginning of a bare word."""
    match = _NAME.match(text, at)
    if match:
        return _unquote(match[0]), match.end()
    if text[at : at + 1] == '"':
        raise FilterError(f"The quote at character {at + 1} is not closed.", at)
    if at == len(text) or text[at].isspace():
        raise FilterError("'-' needs a word or a condition after it.", start)
    raise _no_column(text, start)


def _no_column(text: str, start: int) -> FilterError:
    written = text[start:].split(None, 1)[0]
    return FilterError(
        f"{written!r} at character {start + 1} needs a column before it, such as em<50.", start
    )


def _bare_word(text: str, name: str, at: int) -> tuple[str, int]:
    """Read the rest of a bare word, which may hold a "!"."""
    end = at
    while end < len(text) and not text[end].isspace():
        end += 1
    return name + text[at:end], end


def _value(text: str, start: int, operator: re.Match[str]) -> tuple[str, int]:
    at = operator.end()
    if operator[1]:
        at = _skip_spaces(text, at)
    match = _VALUE.match(text, at)
    if match:
        return _unquote(match[0]), match.end()
    if text[at : at + 1] == '"':
        raise FilterError(f"The quote at character {at + 1} is not closed.", at)
    written = text[start : operator.end()]
    needed = "a text" if operator[0] == ":" else "a number"
    raise FilterError(f"{written!r} at character {start + 1} needs {needed} after it.", start)


def _skip_spaces(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _quote(text: str, plain: re.Pattern[str]) -> str:
    if plain.fullmatch(text):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _unquote(text: str) -> str:
    if not text.startswith('"'):
        return text
    return re.sub(r"\\(.)", r"\1", text[1:-1], flags=re.DOTALL)
