"""Articles from a MediaWiki XML dump, read as a stream.

Redirects and pages outside the article namespace (0) are skipped. The text is from the last revision in the dump, the date
from the first. A dump of current pages has one revision per page, dated by its last edit.
"""

from __future__ import annotations

import bz2
import gzip
import re
import zlib
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

from rallebench.core.errors import BadFileError, MissingPackageError
from rallebench.experiments.builders._source import SourceArticle, SourceReading

LAST_EDIT = (
    "The dump holds one revision of each page, so its dates are those of the last edit, not of the first; a dump with the "
    "whole history has those, or give them as dates=FILE."
)
_PICTURES = re.compile(
    r"^:?(file|image|media|category|datei|bild|kategorie|fichier|catégorie|archivo|categoría|文件|分类|图像)\s*:",
    re.I,
)
_UNREAD = ("ref", "table", "gallery", "math", "timeline", "score", "syntaxhighlight", "imagemap")


def read_dump(reading: SourceReading) -> Iterator[SourceArticle]:
    """Yield the pages of a dump. Raises BadFileError for an invalid or truncated dump."""
    path = reading.source.path
    opened: Any = {".bz2": bz2.open, ".gz": gzip.open}.get(path.suffix.lower(), open)
    pages = most = 0
    try:
        with opened(path, "rb") as handle:
            for entry, revisions in _pages(handle):
                pages, most = pages + 1, max(most, revisions)
                if entry.get("ns", "0") != "0":
                    reading.passed_over["of another namespace"] += 1
                elif entry["redirect"]:
                    reading.passed_over["a redirect"] += 1
                else:  # keep the wikitext: parsing is slow, and many articles are discarded
                    title = entry.get("title", "")
                    date, text = entry.get("date", ""), entry.get("text", "")
                    id = entry.get("id") or title
                    yield SourceArticle(id, title, text, date=date, wikitext=True)
    except (ElementTree.ParseError, EOFError, OSError, zlib.error) as error:
        raise BadFileError(
            f"{path} cannot be read as a MediaWiki dump after {pages} pages ({error}); download it again."
        ) from None
    if not pages:
        raise BadFileError(f"{path} holds no page; a MediaWiki dump has <page> elements.")
    if most == 1:
        reading.notes.append(LAST_EDIT)


def _pages(handle: Any) -> Iterator[tuple[dict[str, Any], int]]:
    """(fields, number of revisions) of every page; each revision is freed after reading."""
    entry: dict[str, Any] = {"redirect": False}
    revisions = 0
    root: Any = None
    inside = ""
    for event, element in ElementTree.iterparse(handle, events=("start", "end")):
        name = element.tag.rpartition("}")[2]
        if event == "start":
            root = element if root is None else root
            if name == "page":
                entry, revisions = {"redirect": False}, 0
            inside = name if name in ("page", "revision") else inside
            continue
        text = element.text or ""
        if name in ("title", "ns") or (name == "id" and "id" not in entry):
            entry[name] = text.strip()
        elif name == "redirect":
            entry["redirect"] = True
        elif name == "timestamp" and inside == "revision":
            entry["date"] = min(entry.get("date") or text, text)
            entry["newest"] = text
        elif (
            name == "text"
            and inside == "revision"
            and entry.get("newest", "") >= entry.get("text_of", "")
        ):
            entry["text"], entry["text_of"] = text, entry.get("newest", "")
        elif name == "revision":
            revisions += 1
            inside = "page"
            element.clear()
        elif name == "page":
            yield entry, revisions
            root.clear()


def plain(wikitext: str) -> str:
    """Plain text of wikitext. Templates, tables, references, images and categories are removed; links keep their text.

    >>> plain("'''Titan''' is a [[moon|natural satellite]].{{cite|x}}<ref>Book</ref>\\n[[File:T.jpg|thumb|A [[moon]]]]\\n== Orbit ==\\nIt is slow.")
    'Titan is a natural satellite.\\n\\nOrbit\\nIt is slow.'
    """
    try:
        import mwparserfromhell
    except ImportError:
        raise MissingPackageError(
            "mwparserfromhell", "but is needed for MediaWiki's text"
        ) from None

    code = mwparserfromhell.parse(re.sub(r"__[A-Z]+__", "", wikitext), skip_style_tags=False)
    lines = (" ".join(line.split()) for line in "".join(_text_pieces(code)).split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def _text_pieces(code: Any) -> Iterator[str]:
    """The words of parsed wikitext. (The library's ``strip_code`` keeps tables, references and pictures.)"""
    for node in code.nodes if code is not None else ():
        kind = type(node).__name__
        if kind == "Text":
            yield str(node)
        elif kind == "HTMLEntity":
            yield str(node.normalize())
        elif kind == "Wikilink" and not _PICTURES.match(str(node.title).strip()):
            yield from _text_pieces(node.title if node.text is None else node.text)
        elif kind in ("ExternalLink", "Heading"):
            yield from _text_pieces(node.title)
        elif kind == "Tag" and str(node.tag).strip().lower() not in _UNREAD:
            yield "\n" if str(node.tag).strip().lower() == "br" else ""
            yield from _text_pieces(node.contents)
