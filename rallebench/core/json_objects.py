"""A JSON object around rows: one list of them beside a version and such, or the columns of a table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from rallebench.core.types import Json

LARGEST = 2**26
"""Bytes of the largest file that is read at once."""


def rows_of_file(path: Path) -> list[Json] | None:
    """The rows of a ``.json`` file that is one object around them, None for any other file."""
    if path.suffix.lower() != ".json" or not path.is_file() or path.stat().st_size > LARGEST:
        return None
    try:
        value = json.loads(path.read_bytes())
    except (ValueError, RecursionError, OSError):
        return None
    return find_rows(value) if isinstance(value, Mapping) else None


def find_rows(value: Json) -> list[Json] | None:
    """The rows in the only list of objects, or of columns that are equally long lists or have the same keys.

    >>> find_rows({"version": 2, "data": [{"question": "Who?"}]})
    [{'question': 'Who?'}]
    >>> find_rows({"question": ["Who?", "When?"], "answer": ["Ada", "1843"]})[1]
    {'question': 'When?', 'answer': '1843'}
    >>> find_rows({"question": {"0": "Who?"}, "answer": {"0": "Ada"}}), find_rows({"question": "Who?"})
    ([{'question': 'Who?', 'answer': 'Ada'}], None)
    """
    lists = [rows for rows in value.values() if _holds_objects(rows)]
    if len(lists) == 1:
        return list(lists[0])
    columns = list(value.values())
    if len(columns) > 1 and not lists:
        if all(isinstance(column, list) for column in columns):
            same = len({len(column) for column in columns}) == 1
            return [dict(zip(value, row)) for row in zip(*columns)] if same else None
        if all(isinstance(column, dict) for column in columns):
            same = all(column.keys() == columns[0].keys() for column in columns)
            return [{n: c[key] for n, c in value.items()} for key in columns[0]] if same else None
    return None


def _holds_objects(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(x, dict) for x in value)
