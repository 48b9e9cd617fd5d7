"""The text and the title of one document: plain text and Markdown; ``_html`` and ``_pdf`` read the others."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple


class Document(NamedTuple):
    """``title`` is '' where the document names none."""

    text: str
    title: str = ""


class UnreadableError(Exception):
    """Why a document cannot be read: the end of a sentence that begins with its file."""


def read_plain(path: Path) -> Document:
    """UTF-8 text as it is."""
    data = path.read_bytes()
    if b"\0" in data:
        raise UnreadableError("holds binary data; a UTF-8 text file is needed.")
    try:
        return Document(data.decode("utf-8-sig").replace("\r\n", "\n").strip())
    except UnicodeDecodeError as error:
        raise UnreadableError(
            f"is not UTF-8 text (byte {error.start}); save it as UTF-8 and try again."
        ) from None


def read_markdown(path: Path) -> Document:
    """Markdown as it is; the title is its first heading.

    >>> heading("intro\\n\\n# The *moon* #\\ntext")
    'The *moon*'
    """
    text = read_plain(path).text
    return Document(text, heading(text))


def heading(text: str) -> str:
    """The first ``#`` heading of a Markdown text, '' if there is none."""
    found = re.search(r"^#{1,6}[ \t]+(.+?)[ \t]*#*[ \t]*$", text, re.MULTILINE)
    return found[1].strip() if found else ""
