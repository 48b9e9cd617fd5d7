"""Text and title of plain text and Markdown; ``_html`` and ``_pdf`` read other documents."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

TITLE_WITHIN = 2**16
"""Characters at the beginning of a Markdown text that are searched for its title."""

LARGEST_MATTER = 2**13
"""Longest front matter, in characters, that is parsed; deeply nested YAML takes seconds."""

WESTERN = "Windows-1252"
"""Fallback encoding of texts that are not UTF-8 and declare no encoding."""
MOST_ACCENTS = 0.3
"""Maximum share of non-ASCII letters in Western text; other scripts and encodings have more."""

_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
_FRONT_MATTER = re.compile(r"(---|\+\+\+)[ \t]*\n(.*?\n)?(?:\1|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_TOML_TITLE = re.compile(
    r"^title[ \t]*=[ \t]*(\"(?:[^\"\\]|\\.)*\"|'[^']*')", re.MULTILINE | re.IGNORECASE
)


class Document(NamedTuple):
    """A document. ``title``: '' if it has none; ``guessed``: the encoding, if the document does not declare it."""

    text: str
    title: str = ""
    guessed: str = ""


class UnreadableError(Exception):
    """An unreadable document. The message continues a sentence that begins with the file's name."""


def decode(data: bytes, named: Sequence[str] = ()) -> tuple[str, str]:
    """Return the text and the guessed encoding (or ''), trying byte order mark, ``named`` encodings, UTF-8, Windows-1252.

    Raises UnreadableError for binary data, and if Windows-1252 does not yield Western text.

    >>> decode(b"Caf\\xe9"), decode("Café".encode())
    (('Café', 'Windows-1252'), ('Café', ''))
    """
    text, guessed = _decode(data, named)
    if "\0" in text:
        raise UnreadableError("contains binary data; a text file is needed.")
    return text, guessed


def _decode(data: bytes, named: Sequence[str]) -> tuple[str, str]:
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            try:
                return data[len(mark) :].decode(encoding), ""
            except UnicodeDecodeError:
                name = encoding.upper().removesuffix("-LE").removesuffix("-BE")
                raise UnreadableError(
                    f"begins as {name} text but is not valid {name}; save it as UTF-8 and try again."
                ) from None
    for encoding in (*named, "utf-8"):
        try:
            return data.decode(encoding), ""
        except (LookupError, UnicodeDecodeError):
            continue
    beyond = sum(byte >= 0x80 for byte in data)
    letters = sum(byte >= 0x80 or chr(byte).isalpha() for byte in data)
    try:
        if b"\0" not in data and beyond > MOST_ACCENTS * letters:
            raise UnicodeError
        return data.decode("cp1252", "replace" if b"\0" in data else "strict"), WESTERN
    except UnicodeError:
        raise UnreadableError(
            f"is neither UTF-8 nor {WESTERN} text; save it as UTF-8 and try again."
        ) from None


def read_plain(path: Path) -> Document:
    """Return the text of a file, unchanged."""
    text, guessed = decode(path.read_bytes())
    return Document(text.replace("\r\n", "\n").strip(), guessed=guessed)


def read_markdown(path: Path) -> Document:
    """Return Markdown unchanged, with its title."""
    document = read_plain(path)
    return document._replace(title=markdown_title(document.text))


def markdown_title(text: str) -> str:
    """Return the title in the front matter, else the first heading; '' if there is none.

    >>> markdown_title("intro\\n\\n# The *moon* #\\ntext"), markdown_title("The moon\\n========\\ntext")
    ('The *moon*', 'The moon')
    >>> markdown_title("---\\ntitle: 'Moon: a study'\\n---\\n# Other"), markdown_title("```\\n# a comment\\n```")
    ('Moon: a study', '')
    """
    front = _FRONT_MATTER.match(text[:TITLE_WITHIN])
    if front and (title := _front_title(front[1], front[2] or "")):
        return title
    return _heading(text[front.end() if front else 0 :][:TITLE_WITHIN])


def _front_title(mark: str, matter: str) -> str:
    """Return the title in YAML (``---``) or TOML (``+++``) front matter; '' if it has none."""
    if mark == "+++":
        line = _TOML_TITLE.search(matter)
        return str(ast.literal_eval(line[1])).strip() if line else ""
    if len(matter) > LARGEST_MATTER:
        return ""
    import yaml

    try:
        fields = yaml.load(matter, Loader=yaml.BaseLoader)  # every scalar stays text
    except (yaml.YAMLError, RecursionError):
        return ""
    titles = fields.items() if isinstance(fields, dict) else ()
    return next(
        (" ".join(x.split()) for name, x in titles if _is_title(name) and isinstance(x, str)), ""
    )


def _is_title(name: object) -> bool:
    return isinstance(name, str) and name.strip().lower() == "title"


def _heading(text: str) -> str:
    """Return the first heading outside quotations and lists, per CommonMark; text over several lines is a paragraph."""
    from markdown_it import MarkdownIt

    tokens = MarkdownIt("commonmark").disable("inline").parse(text)
    for token, following in zip(tokens, tokens[1:]):
        title = following.content.strip()
        if token.type == "heading_open" and not token.level and title and "\n" not in title:
            return title
    return ""
