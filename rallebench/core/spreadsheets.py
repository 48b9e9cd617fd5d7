"""Texts as cells of a spreadsheet, which runs a cell as a formula where it begins like one."""

from __future__ import annotations

import re
from typing import Any

_FORMULA = re.compile(r"'*[=+\-@\t\r\n＝＋－＠]")
_QUOTED = re.compile(r"'+[=+\-@\t\r\n＝＋－＠]")


def quoted(cell: Any) -> Any:
    """A cell that a spreadsheet shows as it is: a text that begins like a formula has a ' before it; numbers stay.

    >>> quoted("=1+1"), quoted("-0.5"), quoted(-0.5), quoted("'=x"), quoted("plain")
    ("'=1+1", '-0.5', -0.5, "''=x", 'plain')
    """
    if not isinstance(cell, str) or not _FORMULA.match(cell) or _is_number(cell):
        return cell
    return f"'{cell}"


def unquoted(cell: str) -> str:
    """The text of a cell that ``quoted`` made; any other stays.

    >>> unquoted("'=1+1"), unquoted("''=x"), unquoted("'tis")
    ('=1+1', "'=x", "'tis")
    """
    return cell[1:] if _QUOTED.match(cell) else cell


def _is_number(text: str) -> bool:
    return re.fullmatch(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?%?", text, re.ASCII) is not None
