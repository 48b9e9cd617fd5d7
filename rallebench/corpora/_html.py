"""Visible text of an HTML page, extracted in one pass without a tree, so deep nesting costs nothing.

Every character is read once or twice, even with unclosed tags; these follow the HTML standard (section
13.2.5) where it affects the visible text.
"""

from __future__ import annotations

import html
import re
import time
from collections.abc import Iterator

from rallebench.corpora._documents import Document, UnreadableError, decode

MAX_BYTES = 16 * 2**20
"""Larger pages are refused; the longest Wikipedia articles are under 5 MB."""

SECONDS = 60.0
"""Processor seconds per page; a page of MAX_BYTES takes about 10."""

HIDDEN = ("noscript", "template", "svg")
RAW = ("script", "style", "title", "textarea")
"""Elements whose content ends only at their own end tag."""

_BLOCKS = """
address article aside blockquote body br caption center dd details dialog dir div dl dt fieldset figcaption figure footer
form frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html legend li listing main menu nav ol optgroup option p plaintext pre
search section select summary table tbody tfoot thead tr ul xmp
"""
BLOCKS = frozenset(_BLOCKS.split())
"""Tags that begin a new line."""
_PARTING = """
audio button canvas embed iframe img input label meter object output picture progress td textarea th video
"""
PARTING = frozenset(_PARTING.split())
"""Tags that separate words within a line: cells, and boxes with a border or margin."""

_NAME = re.compile(r"/?([A-Za-z][^\s/>]*)")
_IN_TAG = re.compile(r"[>\"']")
_ENDS = {name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE) for name in RAW}
_CHARSET = re.compile(rb"<meta\b[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)


def read_page(data: bytes, encoding: str = "") -> Document:
    """Return the visible text, one line per block; the title is ``<title>``, or else the first ``<h1>``.

    ``encoding``: of a page that declares none and is not UTF-8.

    Raises UnreadableError for binary data, and for a page beyond MAX_BYTES or SECONDS.
    """
    if len(data) > MAX_BYTES:
        raise UnreadableError(f"is an HTML page of more than {MAX_BYTES // 2**20} MB; divide it.")
    charset = _CHARSET.search(data, 0, 4096)
    text, guessed = decode(data, charset[1].decode("ascii", "replace") if charset else "", encoding)
    parts: list[str] = []
    headings: dict[str, list[str]] = {"title": [], "h1": []}
    hidden, depth, heading = "", 0, ""
    for kind, value in _pieces(text):
        if hidden:  # only tags of its own name count; they may be nested
            depth += (kind == "open" and value == hidden) - (kind == "close" and value == hidden)
            hidden = hidden if depth else ""
        elif kind == "open" and value in HIDDEN:
            hidden, depth = value, 1
        elif kind == "title":
            headings["title"] = headings["title"] or [value]
        elif kind == "text":
            parts.append(value)
            if heading:
                headings["h1"].append(value)
        else:
            if value == "h1":
                heading = value if kind == "open" and not headings["h1"] else ""
            if value in BLOCKS or value in PARTING:
                parts.append("\n" if value in BLOCKS else " ")
                headings["h1"] += [" "] if heading and value != "h1" else []
    lines = (" ".join(line.split()) for line in "".join(parts).split("\n"))
    title = " ".join(" ".join(headings["title"] or headings["h1"]).split())
    return Document("\n".join(line for line in lines if line), title, guessed)


def _pieces(text: str) -> Iterator[tuple[str, str]]:
    """Yield ("text" or "title", characters) and ("open" or "close", lower-case tag name), in order."""
    at, number, until = 0, 0, time.process_time() + SECONDS
    unpaired: set[str] = set()  # quotes and elements without a further end, not searched again
    while at < len(text):
        number += 1
        if number % 4096 == 0 and time.process_time() > until:
            raise UnreadableError(f"takes longer than {SECONDS:.0f} seconds to read; divide it.")
        start = text.find("<", at)
        if start != at:
            start = start if start >= 0 else len(text)
            yield "text", html.unescape(text[at:start])
            at = start
            continue
        name = _NAME.match(text, at + 1)
        if name is None:
            at, piece = _no_tag(text, at)
            if piece:
                yield "text", piece
            continue
        tag, closing = name[1].lower(), text[at + 1] == "/"
        at = _tag_end(text, name.end(), unpaired)
        if closing or text[at - 2] != "/" or tag not in HIDDEN:  # <svg/> has no content
            yield ("close" if closing else "open"), tag
        if not closing and tag in RAW:
            end = None if tag in unpaired else _ENDS[tag].search(text, at)
            unpaired |= set() if end else {tag}
            stop = end.start() if end else text.find("<", at) if tag == "title" else len(text)
            stop = stop if stop >= 0 else len(text)
            if tag in ("title", "textarea"):
                yield ("title" if tag == "title" else "text"), html.unescape(text[at:stop])
            at = stop


def _no_tag(text: str, at: int) -> tuple[int, str]:
    """Return the end of a "<" that does not begin a tag, and its visible text; an unclosed comment hides the rest."""
    if text.startswith("<!--", at):
        end, length = text.find("-->", at + 4), 3
    elif text.startswith(("<!", "<?", "</"), at):
        end, length = text.find(">", at + 2), 1
    else:
        return at + 1, "<"
    return (end + length if end >= 0 else len(text)), ""


def _tag_end(text: str, at: int, unpaired: set[str]) -> int:
    """Return the end of a tag; a quoted value may contain ">". ``unpaired``: quotes without a second occurrence."""
    while sign := _IN_TAG.search(text, at):
        if sign[0] == ">":
            return sign.end()
        at = sign.end()
        if text[sign.start() - 1] == "=" and sign[0] not in unpaired:
            end = text.find(sign[0], at)
            if end < 0:
                unpaired.add(sign[0])
            else:
                at = end + 1
    return len(text)
