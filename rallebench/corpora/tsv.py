"""RaLLe's and KILT's tables, ``id<TAB>text<TAB>title``, with or without that header row; MS MARCO's documents without one,
``id<TAB>url<TAB>title<TAB>body``.

Named columns may be in any order. Without a header, the first rows are checked against these orders; any other order is
refused, never read as text. A fully quoted field, with doubled inner quotes, is unquoted; a field that only begins with a
quote is left unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from rallebench.core.errors import BadFileError
from rallebench.core.sources import Source, has_suffix
from rallebench.corpora import (
    CORPORA,
    ID_NAMES,
    PAGE_NAMES,
    TEXT_NAMES,
    URL_NAMES,
    CorpusRow,
    split_title,
)
from rallebench.corpora._collections import each_file

SAMPLE = "id\ttext\ttitle\nd1\tTitan is a moon of Saturn.\tTitan\nd2\tThe Danube flows into the Black Sea.\tDanube\n"
LOOKED_AT = 20
"""Number of rows that decide on the columns of a table without a header."""
TEXT_LENGTH = 100
"""Minimum length, in characters, of a third column that is taken for the text, if it is also twice as long as the second.
"""

_LINK = re.compile(r"\s*(https?://|www\.)\S+\s*")
NAME_THEM = "name the columns in the first line, for example id<TAB>title<TAB>text"


class Columns(NamedTuple):
    """Positions of the columns, None for an absent one; ``most``: maximum number of fields in a row."""

    doc_id: int
    text: int
    title: int | None
    page: int | None = None
    url: int | None = None
    most: int = 3
    contents: bool = False


@CORPORA.register(
    "tsv", recognises=has_suffix(".tsv", ".tab"), columns=True, sample={"corpus.tsv": SAMPLE}
)
def read_tsv(source: Source) -> Iterator[CorpusRow]:
    """A tab-separated table: id, text, title (KILT, RaLLe); a header row is recognised. Or a folder of such files."""
    return each_file(source, _rows, ".tsv", ".tab")


def _rows(source: Source) -> Iterator[CorpusRow]:
    lines = source.lines()
    head, failed = _head(lines)
    if not head:
        columns = Columns(0, 1, 2)
    elif header := _header(source, head[0][1].split("\t")) if head[0][0] == 1 else None:
        columns, head = header, head[1:]
    else:
        columns = _without_header(source, [_fields(line) for _, line in head])
    yield from _passages(source, head, columns)
    if failed is not None:  # raised after the rows before it
        raise failed
    yield from _passages(source, lines, columns)


def _head(lines: Iterator[tuple[int, str]]) -> tuple[list[tuple[int, str]], BadFileError | None]:
    """Return the first non-blank lines, and the error that ended them."""
    head: list[tuple[int, str]] = []
    try:
        for number, line in lines:
            if line.strip():
                head.append((number, line))
            if len(head) > LOOKED_AT:
                break
    except BadFileError as error:
        return head, error
    return head, None


def _passages(
    source: Source, lines: Iterable[tuple[int, str]], columns: Columns
) -> Iterator[CorpusRow]:
    at_id, at_text, at_title, at_page, at_url = columns[:5]
    needed = max(at_id, at_text) + 1
    more = at_page is not None or at_url is not None or columns.contents
    for number, line in lines:
        if not line.strip():
            continue
        fields = line.split("\t")
        if len(fields) > columns.most:
            fields = _fields(line)
        if len(fields) < 2:
            source.bad(
                number,
                " has one column; a corpus row is id<TAB>text<TAB>title (tabs, not spaces or commas).",
            )
        elif len(fields) < needed:
            source.bad(number, f" has {len(fields)} columns, fewer than its header names.")
        elif len(fields) > columns.most:
            source.bad(
                number,
                f" has {len(fields)} columns instead of {columns.most}; a text must not contain tabs.",
            )
        else:
            title = fields[at_title] if at_title is not None and at_title < len(fields) else ""
            values = (fields[at_id], fields[at_text], title)
            row = CorpusRow(number, *[unquote(value.strip()) for value in values])
            yield _with_more(row, fields, columns) if more else row


def _with_more(row: CorpusRow, fields: Sequence[str], columns: Columns) -> CorpusRow:
    """Return the row with its page, its address, and the title at the beginning of its contents."""
    page, url = (
        "" if place is None or place >= len(fields) else unquote(fields[place].strip())
        for place in (columns.page, columns.url)
    )
    row = row._replace(page_id=page, url=url)
    if not columns.contents or row.title:
        return row
    title, text = split_title(row.text)
    return row._replace(title=title, text=text)


def _fields(line: str) -> list[str]:
    """Return the fields of a line, without trailing empty ones after the second."""
    fields = line.split("\t")
    while len(fields) > 2 and not fields[-1].strip():
        fields.pop()
    return fields


def unquote(field: str) -> str:
    """Undo CSV quoting if the whole field is quoted and its inner quotes are doubled.

    >>> unquote('"say ""hi"" now"'), unquote('"Hi" she said')
    ('say "hi" now', '"Hi" she said')
    """
    if len(field) >= 2 and field[0] == field[-1] == '"':
        inner = field[1:-1]
        if '"' not in inner.replace('""', ""):
            return inner.replace('""', '"')
    return field


def _header(source: Source, fields: list[str]) -> Columns | None:
    """Return the columns that the first row names; None if that row is a passage."""
    names = [unquote(f.strip()).lower().lstrip("#").strip() for f in fields]
    if source.columns:
        names = source.columns.rename(names)

    def place(known: Sequence[str]) -> int | None:
        return next((names.index(name) for name in known if name in names), None)

    doc_id, text, title = place(ID_NAMES), place(TEXT_NAMES), place(("title",))
    if doc_id is not None and text is not None:
        contents = names[text] == "contents"
        return Columns(
            *(doc_id, text, title, place(PAGE_NAMES), place(URL_NAMES), len(names)), contents
        )
    names_columns = len(names) > 1 and all(name.isidentifier() for name in names)
    if names_columns and (names[0] in ID_NAMES or text is not None):
        lacking = "text" if text is None else "id"
        raise BadFileError(
            f"{source.where(1)} names the columns {', '.join(names)}, and none is {lacking!r}; a corpus needs id, text and title."
        )
    return None


def _without_header(source: Source, rows: list[list[str]]) -> Columns:
    """Return the columns of a table without a header. Raises BadFileError if the second is not the text."""
    whole = [fields for fields in rows if len(fields) > 1]
    second_links = bool(whole) and all(_LINK.fullmatch(fields[1]) for fields in whole)
    if second_links and all(len(fields) == 4 for fields in whole):
        return Columns(0, 3, 2, url=1, most=4)
    if second_links:
        raise BadFileError(
            f"{source.path} has web addresses in its second column, where the text is expected; {NAME_THEM}."
        )
    if whole and all(len(fields) > 3 for fields in whole):
        raise BadFileError(
            f"{source.path} has {len(whole[0])} columns and no header row, so they are not id, text and title; {NAME_THEM}."
        )
    three = [fields for fields in whole if len(fields) == 3]
    if three and all(len(f[2]) >= max(TEXT_LENGTH, 2 * len(f[1])) for f in three):
        raise BadFileError(
            f"{source.path} has its long texts in the third column, where the title is expected; {NAME_THEM}."
        )
    return Columns(0, 1, 2)
