"""Text and title of plain text, Markdown and reStructuredText; ``document_files`` names the readers of other documents."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import NamedTuple

from rallebench.core.encodings import (
    UTF8,
    check_encoding,
    guess_encoding,
    label,
    mark_encoding,
    sample_range,
)
from rallebench.core.errors import UsageError

TITLE_WITHIN = 2**16
"""Characters at the beginning of a Markdown text that are searched for its title."""

CHARACTERS = 64 * 2**20
"""Maximum characters of text per file."""

LARGEST_MATTER = 2**13
"""Longest front matter, in characters, that is parsed; deeply nested YAML takes seconds."""

_WIDER = {"gb2312": "gb18030", "gbk": "gb18030", "iso8859-1": "cp1252", "ascii": "cp1252"}
"""Declared encoding → the one that such texts are really in, as browsers read them."""
_FRONT_MATTER = re.compile(r"(---|\+\+\+)[ \t]*\n(.*?\n)?(?:\1|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_RST_TITLE = re.compile(r"^[ \t]*(\w.*?)[ \t]*\n(([!-/:-@\[-`{-~])\3+)[ \t]*$", re.MULTILINE)
_TOML_TITLE = re.compile(
    r"^title[ \t]*=[ \t]*(\"(?:[^\"\\]|\\.)*\"|'[^']*')", re.MULTILINE | re.IGNORECASE
)


class Document(NamedTuple):
    """A document. ``title``: '' if it has none; ``guessed``: the encoding, if the document does not declare it; ``part``: its name
    in a file with several, such as a sheet's."""

    text: str
    title: str = ""
    guessed: str = ""
    part: str = ""


class UnreadableError(Exception):
    """An unreadable document. The message continues a sentence that begins with the file's name."""


def decode(data: bytes, declared: str = "", named: str = "") -> tuple[str, str]:
    """Return the text and its encoding if that is a guess, else ''.

    The encoding is that of the byte order mark, the ``declared`` one, UTF-8, the one ``named`` by the user, or a guess. Raises
    UnreadableError for binary data, for text that is not in the named encoding, and where no encoding fits.

    >>> decode(b"Caf\\xe9"), decode("Café".encode()), decode("Café".encode("utf-16"))
    (('Café', 'cp1252'), ('Café', ''), ('Café', ''))
    """
    text, guessed = _decode(data, declared, named)
    if "\0" in text:
        raise UnreadableError("contains binary data; a text file is needed.")
    return text.removeprefix("\ufeff"), guessed


def _decode(data: bytes, declared: str, named: str) -> tuple[str, str]:
    if mark := mark_encoding(data[:4]):
        text = _decode_as(data, mark)
        if text is None:
            raise UnreadableError(
                f"begins as {label(mark)} text but is not valid {label(mark)}; save it as UTF-8 and try again."
            )
        return text, ""
    for encoding in (_python_name(declared), *([UTF8] if not (named and data.isascii()) else [])):
        text = _decode_as(data, encoding) if encoding else None
        if text is not None and not (encoding == UTF8 and "\0" in text):
            return text, ""
    start, end = sample_range(data)
    encoding = named or guess_encoding(data[start:end], len(data) <= end)
    text = _decode_as(data, encoding) if encoding else None
    if text is None and b"\0" in data:
        raise UnreadableError("contains binary data; a text file is needed.")
    if text is None and named:
        raise UnreadableError(f"holds bytes that are not {label(named)}; name the right encoding.")
    if text is None:
        raise UnreadableError(
            "is in an encoding that is not recognised; name it, or save the file as UTF-8."
        )
    return text, "" if named else encoding


def _decode_as(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except (LookupError, ValueError):
        return None


def _python_name(declared: str) -> str:
    """Return Python's name of the encoding that a page declares; '' if it knows none."""
    try:
        name = check_encoding(declared)
    except UsageError:
        return ""
    return _WIDER.get(name, name)


def read_plain(path: Path, named: str = "") -> Document:
    """Return the text of a file, unchanged."""
    text, guessed = decode(path.read_bytes(), named=named)
    return Document(text.replace("\r\n", "\n").strip(), guessed=guessed)


def read_markdown(path: Path, named: str = "") -> Document:
    """Return Markdown unchanged, with its title."""
    document = read_plain(path, named)
    return document._replace(title=markdown_title(document.text))


def read_rst(path: Path, named: str = "") -> Document:
    """Return reStructuredText unchanged, with its title.

    docutils would drop the content of directives and roles that it does not know, such as Sphinx's: of 150 files, a sixth of
    the words.
    """
    document = read_plain(path, named)
    return document._replace(title=rst_title(document.text))


def rst_title(text: str) -> str:
    """Return the first section title, which is underlined at its full length; '' if there is none.

    >>> rst_title("====\\nMoon\\n====\\ntext"), rst_title(".. _top:\\n\\nThe moon\\n--------\\n"), rst_title("text\\n==")
    ('Moon', 'The moon', '')
    """
    titles = _RST_TITLE.finditer(text[:TITLE_WITHIN])
    return next((title[1].strip() for title in titles if len(title[2]) >= len(title[1])), "")


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
