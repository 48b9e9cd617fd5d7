"""RaLLe's and KILT's tables: ``id<TAB>text<TAB>title``, with or without that header row.

Named columns may have any order. A field that is quoted as a whole, with doubled inner quotes, is unquoted;
a field that only begins with a quote is text.
"""

from __future__ import annotations

from collections.abc import Iterator

from rallebench.core.errors import BadFileError
from rallebench.core.sources import Source, named
from rallebench.corpora import CORPORA, ID_NAMES, CorpusRow

SAMPLE = "id\ttext\ttitle\nd1\tTitan is a moon of Saturn.\tTitan\nd2\tThe Danube flows into the Black Sea.\tDanube\n"


@CORPORA.register("tsv", recognises=named(".tsv", ".tab"), sample={"corpus.tsv": SAMPLE})
def read_tsv(source: Source) -> Iterator[CorpusRow]:
    """A table with tabs: id, text, title (KILT, RaLLe); a header row is recognised."""
    columns: tuple[int, int, int | None] = (0, 1, 2)
    for number, line in source.lines():
        if not line.strip():
            continue
        fields = line.split("\t")
        if number == 1 and (header := _header(source, fields)) is not None:
            columns = header
            continue
        if len(fields) < 2:
            source.bad(
                number,
                " has one column; a corpus row is id<TAB>text<TAB>title (tabs, not spaces or commas).",
            )
            continue
        at_id, at_text, at_title = columns
        if max(at_id, at_text) >= len(fields):
            source.bad(number, f" has {len(fields)} columns, fewer than its header names.")
            continue
        title = fields[at_title] if at_title is not None and at_title < len(fields) else ""
        values = (fields[at_id], fields[at_text], title)
        yield CorpusRow(number, *(unquote(value.strip()) for value in values))


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


def _header(source: Source, fields: list[str]) -> tuple[int, int, int | None] | None:
    names = [unquote(f.strip()).lower() for f in fields]
    ids = [i for i, name in enumerate(names) if name in ID_NAMES]
    if names[0] in ID_NAMES and "text" not in names and all(name.isidentifier() for name in names):
        raise BadFileError(
            f"{source.where(1)} names the columns {', '.join(names)}, and none is 'text'; a corpus needs id, text and title."
        )
    if not ids or "text" not in names:
        return None
    return ids[0], names.index("text"), names.index("title") if "title" in names else None
