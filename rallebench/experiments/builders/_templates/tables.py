"""Tables for question templates: CSV, JSON, JSON lines, triples, or a scholar table of the workspace.

Nested objects become columns with dotted names, such as ``contact.email``. A list of objects becomes a column of lists, such
as ``authors.name``.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rallebench.core.errors import BadFileError, Hint, NotFoundError, UsageError
from rallebench.core.files import read_json
from rallebench.core.sources import Problems, Source, files_in
from rallebench.core.starter import STARTER
from rallebench.core.streams import plain_name, with_packed
from rallebench.core.types import digest
from rallebench.workspace.paths import WorkspaceFolder
from rallebench.workspace.scholar_tables import scholar_tables

COLUMNS_OF_TRIPLES = ("head", "relation", "tail")
HEADERS_OF_TRIPLES = (COLUMNS_OF_TRIPLES, ("subject", "predicate", "object"))
_NAMES = """
id _id docid doc_id pageid title text content contents passage document
url name label author year date source question query answer answers
"""
NAMES_OF_COLUMNS = frozenset(_NAMES.split())
"""Column names of other kinds of table. A first row with at least two of them is a header."""
MAX_ROWS = 5_000_000
ENDINGS = (".json", *with_packed(".csv", ".jsonl", ".tsv", ".txt"))
STARTER_SCHOLARS, STARTER_TRIPLES = "starter-scholars", "starter-triples"
FREQUENT, RARE = "frequent", "rare"
"""Bands of the 10% most and 10% least frequent entities."""

Row = dict[str, Any]


@dataclass(frozen=True)
class SourceTable:
    """A table. ``columns``: all columns of its first rows; ``skipped``: number of invalid rows."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    skipped: int = 0

    @property
    def key(self) -> str:
        """The column that identifies an entity; '' if each row is an entity of its own."""
        return next(
            (name for name in ("id", "head", "person_id", "_id") if name in self.columns), ""
        )


def places(reference: str, workspace: WorkspaceFolder) -> dict[str, Path]:
    """Table → file, for ``NAME=FILE,…``, a file, a folder, or the name of a scholar table. Raises UsageError, NotFoundError.

    An imported scholar table is stored in SQLite; its three kinds of record become three tables.
    """
    if not reference.strip():
        raise UsageError(
            "No table is given: a file, a folder, or NAME=FILE,NAME=FILE.",
            hint=Hint("set", "tables=FILE"),
        )
    if reference == STARTER_SCHOLARS:
        return {path.stem: path for path in sorted((STARTER / "scholars").glob("*.jsonl"))}
    if reference == STARTER_TRIPLES:
        return {"triples": STARTER / "triples" / "triples.tsv"}
    known = scholar_tables(workspace) if (workspace.path / "scholars").is_dir() else {}
    if reference in known:
        return dict.fromkeys(("scholars", "publications", "coauthors"), known[reference])
    files: dict[str, Path] = {}
    for part in reference.split(","):
        name, equals, place = part.partition("=") if "=" in part else ("", "", part)
        path = Path(place.strip()).expanduser()
        if not path.exists():
            own = (name for name in known if name != STARTER_SCHOLARS)
            others = f" Tables by name: {', '.join([STARTER_SCHOLARS, STARTER_TRIPLES, *own])}."
            raise NotFoundError(f"tables: {path} does not exist.{others}")
        if path.is_dir():
            if equals:
                raise UsageError(
                    f"tables: {path} is a folder; its files are tables by their own names, leave out {name}=."
                )
            files |= {
                _stem(file): file
                for file in sorted(path.iterdir())
                if file.name.lower().endswith(ENDINGS) and file.name[0] != "."
            }
        else:
            files[name.strip() or _stem(path)] = path
    if not files:
        raise BadFileError(
            f"tables: {reference} holds no table; tables are {', '.join(ENDINGS[:5])} or triples (.tsv, .txt)."
        )
    return files


def fingerprint_files(files: Mapping[str, Path]) -> str:
    """A digest that changes with any file."""
    stats = [
        (name, path.name, file.stat().st_size, file.stat().st_mtime_ns)
        for name, path in files.items()
        for file in files_in(path)
    ]
    return digest(stats)[:12]


def read_table(
    name: str,
    path: Path,
    *,
    skip_bad: bool = False,
    labels: Mapping[str, tuple[str, ...]] | None = None,
) -> SourceTable:
    """Read a whole table. Raises BadFileError for a table without rows and, unless ``skip_bad``, for the first invalid row.

    ``labels`` (for triples): id → names. The first name replaces the id; ``head_names`` and ``tail_names`` hold all names.
    """
    source = Source(path, Problems(skip=skip_bad, offered=False))
    rows: list[Row] = []
    columns: dict[str, None] = {}
    for row in _rows(source, name, labels or {}):
        rows.append(row)
        if len(rows) <= 1000:
            columns |= dict.fromkeys(row)
        if len(rows) > MAX_ROWS:
            raise BadFileError(
                f"{path} has more than {MAX_ROWS:,} rows; keep the relations or rows that the templates ask for."
            )
    if not rows:
        raise BadFileError(f"{path} holds no row.")
    if columns.keys() >= set(COLUMNS_OF_TRIPLES):
        add_bands(rows)
        columns |= dict.fromkeys(("head_count", "head_band"))
    return SourceTable(name, tuple(columns), tuple(rows), source.problems.count)


def add_bands(rows: Sequence[Row]) -> None:
    """Add ``head_count`` and ``head_band`` to each triple. ``head_count`` is the number of triples that mention its head.

    ``head_band`` is ``frequent`` for the 10% of entities in the most triples, ``rare`` for the 10% in the fewest, and '' for
    the rest. Entities with equal counts share a band.
    """
    counts = Counter(str(row[end]) for row in rows for end in ("head", "tail"))
    ordered = sorted(counts.values())
    fewest, most = ordered[len(ordered) // 10], ordered[-1 - len(ordered) // 10]
    for row in rows:
        count = counts[str(row["head"])]
        band = (
            "" if fewest == most else RARE if count <= fewest else FREQUENT if count >= most else ""
        )
        row |= {"head_count": count, "head_band": band}


def read_labels(path: Path) -> dict[str, tuple[str, ...]]:
    """Id → names, from lines ``id <tab> name <tab> name …`` as in Wikidata5M. Raises BadFileError."""
    labels = {}
    for line, text in Source(path).lines():
        name, *others = (part.strip() for part in text.split("\t"))
        if text.strip() and not others:
            raise BadFileError(f"{path}, line {line} is not an id, a tab and names parted by tabs.")
        if text.strip():
            labels[name] = tuple(filter(None, others))
    return labels


def _stem(path: Path) -> str:
    return path.name.split(".")[0]


def _rows(source: Source, name: str, labels: Mapping[str, tuple[str, ...]]) -> Iterator[Row]:
    plain = plain_name(source.path.name.lower())
    if plain.endswith(".sqlite"):
        yield from _scholars(source.path, name)
    elif plain.endswith(".csv"):
        yield from _csv(source)
    elif plain.endswith((".tsv", ".txt")):
        yield from _triples(source, labels)
    elif plain.endswith(".json"):
        yield from _json(source, name)
    else:
        yield from (_flat(row) for _, row in source.objects())


def _scholars(path: Path, kind: str) -> Iterator[Row]:
    from rallebench.environments.scholars.table import ScholarTable

    table = ScholarTable(path)
    try:
        yield from (_flat(row) for row in table.rows(kind))
    finally:
        table.close()


def _csv(source: Source) -> Iterator[Row]:
    rows = source.table()
    header = next(rows, None)
    if header is None:
        return
    names = [name.strip() for name in header[1]]
    if len(set(names)) < len(names) or not all(names):
        raise BadFileError(
            f"{source.where(header[0])}: every column needs a name of its own; they are {', '.join(names)[:200]}."
        )
    for line, fields in rows:
        if len(fields) != len(names):
            source.bad(line, f" has {len(fields)} fields where the header names {len(names)}.")
        else:
            yield {key: _parse_list(field.strip()) for key, field in zip(names, fields)}


def _parse_list(field: str) -> Any:
    """Parse a CSV field that holds a JSON list; return any other field unchanged."""
    if field.startswith("[") and field.endswith("]"):
        with suppress(ValueError, RecursionError):
            return json.loads(field)
    return field


def _triples(source: Source, labels: Mapping[str, tuple[str, ...]]) -> Iterator[Row]:
    begun = False
    for line, text in source.lines():
        if not text.strip():
            continue
        parts = [part.strip() for part in text.rstrip("\r\n").split("\t")]
        if not begun and _is_header(source, line, parts):
            begun = True
            continue
        begun = True
        if len(parts) != 3 or not all(parts):
            source.bad(
                line,
                f" has {len(parts)} fields; a triple is head, relation and tail with tabs between them.",
            )
            continue
        row: Row = dict(zip(COLUMNS_OF_TRIPLES, parts))
        for end in ("head", "tail") if labels else ():
            names = labels.get(row[end], ())
            row |= {f"{end}_name": names[0] if names else "", f"{end}_names": list(names)}
        yield row


def _is_header(source: Source, line: int, parts: list[str]) -> bool:
    """Return whether the first row of triples is a header. Raises BadFileError for the header of another kind of table, such
    as a corpus."""
    names = tuple(part.casefold() for part in parts)
    if len(NAMES_OF_COLUMNS.intersection(names)) > 1:
        raise BadFileError(
            f"{source.where(line)} names the columns {', '.join(parts)}, and a .tsv or .txt file is read as triples (head, relation, "
            "tail); save the table as .csv, whose columns templates can name."
        )
    return names in HEADERS_OF_TRIPLES


def _json(source: Source, name: str) -> Iterator[Row]:
    value = read_json(source.path)
    if isinstance(value, dict):
        lists = (item for item in value.values() if isinstance(item, list))
        value = value.get(name) or next(lists, None)
    if not isinstance(value, list):
        raise BadFileError(f"{source.path} should be a list of objects, as in [{{…}}].")
    for number, row in enumerate(value, 1):
        if isinstance(row, dict):
            yield _flat(row)
        else:
            source.bad(number, " is not an object.")


def _flat(row: Mapping[str, Any], before: str = "") -> Row:
    """The row with nested objects flattened into dotted columns.

    >>> _flat({"a": 1, "b": {"c": 2}, "d": [{"e": 3}, {"e": 4}]})
    {'a': 1, 'b.c': 2, 'd.e': [3, 4]}
    """
    flat: Row = {}
    for key, value in row.items():
        name = f"{before}{key}"
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{name}.")
        elif isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
            inner = dict.fromkeys(key for item in value for key in item)
            flat |= {f"{name}.{key}": [item.get(key) for item in value] for key in inner}
        else:
            flat[name] = value
    return flat
