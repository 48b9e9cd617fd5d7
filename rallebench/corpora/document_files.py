"""Readers of the documents in a folder, by the ending of their names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rallebench.corpora._documents import Document, read_markdown, read_plain, read_rst
from rallebench.corpora._guarded import KINDS, GuardedReader
from rallebench.corpora._html import read_page

TEXTS: dict[str, Callable[[Path, str], Document]] = {
    ".txt": read_plain,
    ".md": read_markdown,
    ".markdown": read_markdown,
    ".rst": read_rst,
    ".html": lambda path, encoding: read_page(path.read_bytes(), encoding),
    ".htm": lambda path, encoding: read_page(path.read_bytes(), encoding),
}
SUFFIXES = (*TEXTS, *KINDS)
"""Suffixes of documents, in small letters."""


def is_document(path: Path) -> bool:
    """Return whether a file has the suffix of a document."""
    return path.suffix.lower() in SUFFIXES


def read_document(path: Path, guarded: GuardedReader, encoding: str = "") -> list[Document]:
    """Return the documents in a file: one, or one for each sheet. A file of another suffix is plain text.

    ``encoding``: of a text that is neither UTF-8 nor declares one. Raises UnreadableError.
    """
    suffix = path.suffix.lower()
    if suffix in KINDS:
        return guarded.read(path)
    return [TEXTS.get(suffix, read_plain)(path, encoding)]
