"""Text and title of plain text and Markdown; ``_html`` and ``_pdf`` read the other documents."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple


class Document(NamedTuple):
    """``title``: '' for a document without one."""

    text: str
    title: str = ""


class UnreadableError(Exception):
    """A document cannot be read. The message continues a sentence that begins with the file's name."""


def read_plain(path: Path) -> Document:
    """UTF-8 text, unchanged."""
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
    """Markdown, unchanged; the title is its first heading.

    >>> heading("intro\\n\\n# The *moon* #\\ntext")
    'The *moon*'
    """
    text = read_plain(path).text
    return Document(text, heading(text))


def heading(text: str) -> str:
    """The first ``#`` heading of a Markdown text, '' if there is none."""
    match = re.search(r"^#{1,6}[ \t]+(.+?)[ \t]*#*[ \t]*$", text, re.MULTILINE)
    return match[1].strip() if match else ""
