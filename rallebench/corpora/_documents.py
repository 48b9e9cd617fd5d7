"""The text and the title of one document: plain text, Markdown, HTML, PDF."""

from __future__ import annotations

import logging
import re
import warnings
from pathlib import Path
from typing import NamedTuple

from rallebench.errors import MissingPackageError

UNREAD = ("script", "style", "noscript", "template", "svg")
BLOCKS = (
    "address", "article", "aside", "blockquote", "dd", "div", "dl", "dt", "fieldset", "figcaption", "figure",
    "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "nav", "ol", "p", "pre",
    "section", "table", "tr", "ul",
)  # fmt: skip
"""Tags that begin a new line."""


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
        raise UnreadableError(f"is not UTF-8 text (byte {error.start}); save it as UTF-8 and try again.") from None


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


def read_html(path: Path) -> Document:
    """What a browser would show, a line for each block; the title is ``<title>``, or else the first ``<h1>``."""
    try:
        from bs4 import BeautifulSoup
        from bs4.exceptions import ParserRejectedMarkup
    except ImportError:
        raise MissingPackageError("beautifulsoup4", "but is needed for HTML files") from None

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what it guesses of a strange file is as good as any
        try:
            page = BeautifulSoup(path.read_bytes(), "html.parser")
        except (ParserRejectedMarkup, RecursionError, AssertionError) as error:
            raise UnreadableError(f"is not HTML ({str(error)[:100] or type(error).__name__}).") from None
    named = page.title or page.h1
    title = " ".join(named.get_text(" ").split()) if named else ""
    for tag in page(["title", *UNREAD]):
        tag.decompose()
    for tag in page(["br", *BLOCKS]):
        tag.insert_before("\n")
        tag.append("\n")
    lines = (" ".join(line.split()) for line in page.get_text().split("\n"))
    return Document("\n".join(line for line in lines if line), title)


def read_pdf(path: Path) -> Document:
    """The text layer of a PDF, a blank line between pages; the title is the one it names."""
    try:
        import pypdf
    except ImportError:
        raise MissingPackageError("pypdf", "but is needed for PDF files") from None

    logging.getLogger("pypdf").setLevel(logging.ERROR)  # a warning for every oddity of a file
    try:
        with pypdf.PdfReader(path) as reader:
            if reader.is_encrypted and not reader.decrypt(""):
                raise UnreadableError("is protected by a password; save it without one.")
            pages = [page.extract_text().strip() for page in reader.pages]
            title = str((reader.metadata and reader.metadata.title) or "").strip()
    except (UnreadableError, OSError):
        raise
    except Exception as error:  # a damaged file may fail anywhere in the library
        reason = " ".join(str(error).split())[:100] or type(error).__name__
        raise UnreadableError(f"is not a PDF that can be read ({reason}).") from None
    text = "\n\n".join(page for page in pages if page)
    if not text:
        raise UnreadableError("holds no text, only pictures; recognise its text (OCR) first.")
    return Document(text.encode("utf-8", "replace").decode(), title)
