"""Checked rows of scholars, publications and coauthors from CSV, JSON or JSON lines.

A folder holds ``scholars``, ``publications`` and ``coauthors`` with one of the endings ``.csv``, ``.json``, ``.jsonl``
(or packed); only the first is needed. A single file is the scholars, or a JSON object of the three lists.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rallebench.core.errors import BadFileError
from rallebench.core.files import read_json
from rallebench.core.sources import Problems, Source
from rallebench.core.streams import plain_name, with_packed

TABLE_KINDS = ("scholars", "publications", "coauthors")
ENDINGS = (".json", *with_packed(".jsonl", ".csv"))

Row = Mapping[str, Any]

NAMES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "scholars": {
        "id": ("id", "person_id", "_id", "scholar_id"),
        "name": ("name",),
        "organization": ("organization", "organisation", "org", "affiliation"),
        "position": ("position", "title"),
        "bio": ("bio", "short_bio", "biography"),
        "education": ("education", "edu", "education_experience"),
        "email": ("email",),
        "gender": ("gender",),
        "language": ("language",),
        "interests": ("interests", "interest", "tags", "topics"),
        "hindex": ("hindex", "h_index"),
        "gindex": ("gindex", "g_index"),
        "ncitation": ("ncitation", "n_citation", "num_citation", "citations"),
        "npubs": ("npubs", "n_pubs", "num_pubs"),
    },
    "publications": {
        "id": ("id", "pub_id", "publication_id", "_id"),
        "title": ("title",),
        "year": ("year",),
        "venue": ("venue", "journal", "conference"),
        "abstract": ("abstract", "pubabstract", "pub_abstract"),
        "ncitation": ("ncitation", "n_citation", "num_citation", "citations"),
        "authors": ("authors", "author_ids", "author_list", "authors_name_list"),
    },
    "coauthors": {
        "person_id": ("person_id", "id", "scholar_id"),
        "coauthor_id": ("coauthor_id", "coauthor", "other_id"),
        "relation": ("relation",),
    },
}
"""Kind of table → field → possible names of its column."""

NEEDED = {
    "scholars": ("id", "name"),
    "publications": ("id", "title"),
    "coauthors": ("person_id", "coauthor_id"),
}
NUMBERS = frozenset({"hindex", "gindex", "ncitation", "npubs", "year"})


Tables = Mapping[str, Iterator[tuple[int, dict[str, Any]]]]
"""Kind → iterator over its rows, with line numbers."""


def open_tables(source: Path, problems: Problems) -> Tables:
    """Open the tables of a file or folder, to be read in the order of TABLE_KINDS. Raises BadFileError, also during
    reading.
    """
    if not source.exists():
        raise BadFileError(f"{source} does not exist.")
    sources: dict[str, tuple[Source, Any]] = {}
    if source.is_dir():
        paths = ((kind, source / f"{kind}{ending}") for kind in TABLE_KINDS for ending in ENDINGS)
        sources = {kind: (Source(path, problems), None) for kind, path in paths if path.is_file()}
        needed = "holds no scholars.csv, scholars.json or scholars.jsonl; publications and coauthors are named likewise."
    else:
        value = read_json(source) if source.suffix == ".json" else None
        tables: Mapping[str, Any] = {"scholars": value}
        parted = isinstance(value, dict) and bool(value.keys() & set(TABLE_KINDS))
        if isinstance(value, dict) and parted:
            tables = value
        for kind in TABLE_KINDS:
            if kind in tables:
                unit = f"{kind} row" if parted else "row" if value is not None else "line"
                sources[kind] = (Source(source, problems, unit=unit), tables[kind])
        needed = (
            'is a JSON object without "scholars"; it may hold "publications" and "coauthors", too.'
        )
    if "scholars" not in sources:
        raise BadFileError(f"{source} {needed}")
    return {kind: _check_rows(origin, kind, value) for kind, (origin, value) in sources.items()}


def _rows(source: Source, kind: str, value: Any) -> Iterator[tuple[int, Row]]:
    """Yield the objects of a file, or of the JSON list ``value``."""
    name = plain_name(source.path.name)
    if value is None and name.endswith(".json"):
        source.unit, value = "row", read_json(source.path)
    if value is None and name.endswith(".csv"):
        rows = source.named_rows(lambda line, columns: _check_columns(columns, kind, source, line))
        yield from ((line, row) for line, _, row in rows)
    elif value is None:
        yield from source.objects()
    elif not isinstance(value, list):
        raise BadFileError(f"{source.path}: the {kind} should be a list of objects, as in [{{…}}].")
    else:
        for number, row in enumerate(value, 1):
            if isinstance(row, dict):
                yield number, row
            else:
                source.bad(number, " is not an object.")


def _check_columns(names: Iterable[str], kind: str, source: Source, line: int) -> None:
    columns = {name.lower(): name for name in names}
    for field in NEEDED[kind]:
        if columns.keys().isdisjoint(NAMES[kind][field]):
            raise BadFileError(
                f"{source.where(line)} has the columns {', '.join(columns.values())[:300]}, and none is {field!r}; "
                f"a table of {kind} needs {' and '.join(NEEDED[kind])}."
            )


def _check_rows(source: Source, kind: str, value: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield rows with our field names and types; a row with a bad value is reported as a problem of the source."""
    for number, (line, row) in enumerate(_rows(source, kind, value)):
        contact = row.get("contact")
        plain = {**contact, **row} if isinstance(contact, dict) else row
        if number == 0:
            _check_columns(plain, kind, source, line)
        lower = {str(name).lower(): value for name, value in plain.items()}
        values = {
            field: next((lower[name] for name in aliases if name in lower), None)
            for field, aliases in NAMES[kind].items()
        }
        try:
            typed = {field: _convert(field, value) for field, value in values.items()}
            json.dumps(typed, ensure_ascii=False).encode()  # the table is stored as UTF-8
        except UnicodeEncodeError:
            source.bad(line, " contains half of a surrogate pair, which is not text.")
        except ValueError as error:
            source.bad(line, f": {error}")
        else:
            yield line, typed


def _convert(field: str, value: Any) -> Any:
    """Convert a value to its field's type; None for a missing number. Raises ValueError with a sentence."""
    if field in NUMBERS:
        if value is None or (isinstance(value, str) and not value.strip()):
            return None
        try:
            number = float(value) if not isinstance(value, (bool, list, dict)) else -1.0
        except ValueError:
            number = -1.0
        if not 0 <= number < 1e12 or number != int(number):
            raise ValueError(
                f"{field!r} is {str(value)[:80]!r}; it must be a whole number of at least 0."
            )
        return int(number)
    if field == "interests":
        return _texts(value)
    if field == "authors":
        return _authors(value)
    if isinstance(value, (list, dict, bool)):
        raise ValueError(f"{field!r} should be text.")
    text = "" if value is None else str(value).strip()
    if not text and field in ("id", "name", "title", "person_id", "coauthor_id"):
        raise ValueError(f"{field!r} is empty.")
    return text


def _as_list(value: Any) -> list[Any]:
    """Return a list from a list, a JSON text, or a text separated by semicolons (or else commas)."""
    if value is None:
        return []
    if isinstance(value, str):
        if value.lstrip().startswith("["):
            try:
                value = json.loads(value)
            except (ValueError, RecursionError):
                raise ValueError("a list is not valid JSON.") from None
        else:
            return [
                part.strip() for part in value.split(";" if ";" in value else ",") if part.strip()
            ]
    if not isinstance(value, list):
        raise ValueError("a list is needed, or texts separated by semicolons.")
    return value


def _texts(value: Any) -> list[str]:
    texts = []
    for item in _as_list(value):
        text = item.get("t") or item.get("name") if isinstance(item, dict) else item
        if not isinstance(text, (str, int, float)):
            raise ValueError("'interests' should be a list of texts.")
        if str(text).strip():
            texts.append(str(text).strip())
    return texts


def _authors(value: Any) -> list[dict[str, str]]:
    """Return authors as ``{id, name}``; a plain text counts as an id until the table is known."""
    authors = []
    for item in _as_list(value):
        if isinstance(item, dict):
            number, name = item.get("id") or item.get("person_id") or "", item.get("name") or ""
            authors.append({"id": str(number).strip(), "name": str(name).strip()})
        elif isinstance(item, (str, int)):
            authors.append({"id": str(item).strip(), "name": ""})
        else:
            raise ValueError(
                "'authors' should be a list of ids, names or objects with id and name."
            )
    return [author for author in authors if author["id"] or author["name"]]
