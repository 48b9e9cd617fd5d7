"""Corpus formats, chunking, and the passage store.

A format is a reader ``(source) -> Iterator[CorpusRow]``, one per file. It streams, and reports every bad row to
``source.bad``; ``reading`` adds page maps and checks ids for all formats.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from rallebench.core.registry import Registry
from rallebench.core.sources import Source

ID_NAMES = ("id", "doc_id", "docid", "_id", "pid", "passage_id")
TEXT_NAMES = ("text", "contents", "content")
PAGE_NAMES = ("page_id", "wikipedia_id")
URL_NAMES = ("url", "source_url", "page_url", "link")


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
        "sample": "a small valid file, name → text; names with a common folder make a folder",
    },
)
