"""Read a corpus file as passages, streaming: RaLLe's TSV, or JSONL.

TSV: ``id<TAB>text<TAB>title``, with or without that header row (named columns may stand in any
order). A field that is quoted as a whole, with inner quotes doubled, is unquoted; a field that
merely begins with a quote is text. JSONL: objects with ``id`` (or ``doc_id``, ``_id``), ``text``
and optionally ``title`` and ``page_id`` (or ``wikipedia_id``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rallebench.errors import BadFileError
from rallebench.files import read_json, read_jsonl, read_lines
from rallebench.types import Passage

ID_NAMES = ("id", "doc_id", "docid", "_id", "pid", "passage_id")
PAGE_NAMES = ("page_id", "wikipedia_id")


def read_corpus(path: Path, page_map: Mapping[str, str] | None = None) -> Iterator[Passage]:
    """Yield the passages of a TSV or JSONL file in order.

    ``page_map``: passage id → page id; a passage it lacks has page id ''. Without a map the
    passage id (or the record's own page id) is the page id. Raises BadFileError with the line
    number for a malformed row, a duplicate id, or a file without passages.
    """
    path = Path(path)
    rows = _jsonl_rows(path) if path.suffix.lower() in (".jsonl", ".ndjson") else _tsv_rows(path)
    seen: dict[str, int] = {}
    for number, doc_id, text, title, page_id in rows:
        if not doc_id:
            raise BadFileError(f"{path}, line {number} has an empty id.")
        if doc_id in seen:
            raise BadFileError(
                f"{path}, line {number} repeats the id {doc_id!r} of line {seen[doc_id]}; ids must be unique."
            )
        seen[doc_id] = number
        page = page_map.get(doc_id, "") if page_map is not None else (page_id or doc_id)
        yield Passage(doc_id, text, title, page)
    if not seen:
        raise BadFileError(f"{path} holds no passages; it should hold one passage per line: id, text, title.")


def read_page_map(path: Path) -> dict[str, str]:
    """Read a JSON object passage id → page id (``wikipedia_id``); ids are compared as strings."""
    value = read_json(path)
    if not isinstance(value, dict):
        raise BadFileError(f"{path} should hold a JSON object that maps passage ids to page ids.")
    for key, page in value.items():
        if not isinstance(page, (str, int)):
            raise BadFileError(
                f"{path} maps {key!r} to {type(page).__name__}; a page id is a string or a number."
            )
    return {str(key).strip(): str(page).strip() for key, page in value.items()}


def unquote(field: str) -> str:
    """Undo CSV quoting only where the whole field is quoted and its inner quotes are doubled.

    >>> unquote('"say ""hi"" now"'), unquote('"Hi" she said')
    ('say "hi" now', '"Hi" she said')
    """
    if len(field) >= 2 and field[0] == field[-1] == '"':
        inner = field[1:-1]
        if '"' not in inner.replace('""', ""):
            return inner.replace('""', '"')
    return field


def _tsv_rows(path: Path) -> Iterator[tuple[int, str, str, str, str]]:
    columns: tuple[int, int, int | None] = (0, 1, 2)
    for number, line in read_lines(path):
        if not line.strip():
            continue
        fields = line.split("\t")
        if number == 1 and (header := _header(path, fields)) is not None:
            columns = header
            continue
        if len(fields) < 2:
            raise BadFileError(
                f"{path}, line {number} has one column; a corpus row is id<TAB>text<TAB>title (tabs, not spaces or commas)."
            )
        at_id, at_text, at_title = columns
        if max(at_id, at_text) >= len(fields):
            raise BadFileError(
                f"{path}, line {number} has {len(fields)} columns, fewer than its header names."
            )
        title = fields[at_title] if at_title is not None and at_title < len(fields) else ""
        yield (
            number,
            unquote(fields[at_id].strip()),
            unquote(fields[at_text].strip()),
            unquote(title.strip()),
            "",
        )


def _header(path: Path, fields: list[str]) -> tuple[int, int, int | None] | None:
    names = [unquote(f.strip()).lower() for f in fields]
    ids = [i for i, name in enumerate(names) if name in ID_NAMES]
    if names[0] in ID_NAMES and "text" not in names and all(name.isidentifier() for name in names):
        raise BadFileError(
            f"{path}, line 1 names the columns {', '.join(names)}, and none is 'text'; a corpus needs id, text and title."
        )
    if not ids or "text" not in names:
        return None
    return ids[0], names.index("text"), names.index("title") if "title" in names else None


def _jsonl_rows(path: Path) -> Iterator[tuple[int, str, str, str, str]]:
    for number, row in read_jsonl(path):
        doc_id = next((row[name] for name in ID_NAMES if row.get(name) is not None), None)
        if doc_id is None or not isinstance(row.get("text"), str):
            have = ", ".join(list(row)[:8]) or "nothing"
            raise BadFileError(f"{path}, line {number} needs 'id' and 'text'; it has {have}.")
        page: Any = next((row[name] for name in PAGE_NAMES if row.get(name) is not None), "")
        if isinstance(doc_id, (list, dict)) or isinstance(page, (list, dict)):
            raise BadFileError(f"{path}, line {number}: an id must be text or a number.")
        yield number, str(doc_id).strip(), row["text"], str(row.get("title") or ""), str(page).strip()
