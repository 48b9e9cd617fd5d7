"""Corpus formats, chunking, and the passage store.

A format is a reader ``(source) -> Iterator[CorpusRow]``, one per file. It streams, and reports every bad row to
``source.bad``; ``reading`` adds page maps and checks ids for all formats.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from rallebench.core.columns import Role
from rallebench.core.registry import Registry
from rallebench.core.sources import Source

ID_NAMES = ("id", "id_", "_id", "pid", "passage_id", "chunk_id", "doc_id", "docid")
"""Names of a passage's own id come before those that often name its document."""
TEXT_NAMES: tuple[str, ...] = (
    "text",
    "contents",
    "content",
    "page_content",
    "pageContent",
    "content_with_weight",
)
TEXT_NAMES += ("passage", "segment", "body")
PAGE_NAMES = ("page_id", "wikipedia_id")
URL_NAMES = ("url", "source_url", "page_url", "link")
ROLES = {
    "id": Role("id", ID_NAMES),
    "text": Role("text", TEXT_NAMES),
    "title": Role("title", ("title",)),
    "page": Role("page_id", PAGE_NAMES),
    "url": Role("url", URL_NAMES),
}
"""Roles of the columns of a table of passages."""


class CorpusRow(NamedTuple):
    """A passage of a corpus file; ``line``: its first line, or its number in a folder; ``url``: its page's address."""

    line: int
    doc_id: str
    text: str
    title: str = ""
    page_id: str = ""
    url: str = ""


_QUOTED_TITLE = re.compile(r'\s*"(?=\S)(.+)"[ \t]*\r?\n(?=\s*\S)')


def split_title(text: str) -> tuple[str, str]:
    """Split ``contents`` into title and text if its first line is a quoted title, as in DPR's and FlashRAG's corpora.

    >>> split_title('"Chapel"\\nIt has a ceiling.'), split_title('"So," he said,\\nand "no".'), split_title("Chapel")
    (('Chapel', 'It has a ceiling.'), ('', '"So," he said,\\nand "no".'), ('', 'Chapel'))
    """
    line = _QUOTED_TITLE.match(text)
    if line is None or '"' in line[1].replace('""', ""):
        return "", text
    return line[1].replace('""', '"'), text[line.end() :]


Reader = Callable[[Source], Iterator[CorpusRow]]

CORPORA: Registry[Reader] = Registry(
    "corpus format",
    "rallebench.corpora",
    expects="a reader (source) → a CorpusRow of each passage",
    traits={
        "recognises": "(path) → True if it looks like this format; without it, the format must be named",
        "documents": "True if it reads documents, which are cut into passages, rather than rows, which are passages",
        "columns": "True if the columns of a file may be given roles, because they have names and an order of their own",
        "sample": "a small valid file, name → text, or a function that makes the bytes; names with a common folder make a folder",
    },
)
