"""The pages of a corpus: all passages of one page id as one text, found by id or by title, nothing held in memory.

Beside a store of passages lie two look-ups, made once per corpus by reading it through::

    pages.npy    uint64 (2, n): sorted hashes of page ids, and rows of the store
    titles.npy   uint64 (2, m): sorted hashes of titles, and entries of rows.npy
    rows.npy     uint64 (m,): the row where the page with that title begins
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rallebench.core.errors import BadFileError
from rallebench.core.types import Passage
from rallebench.corpora._columns import NumberColumn, rows_with, stable_hash, write_lookup
from rallebench.corpora.store import PassageStore

PAGES, TITLES, ROWS = "pages.npy", "titles.npy", "rows.npy"
MAX_PASSAGES = 5_000
"""Passages that one page may have; of a longer one the beginning is read."""

_BLANK_LINE = re.compile(r"\n[^\S\n]*\n\s*")
_IN_BRACKETS = re.compile(r"\s*\([^()]*\)$")
_BASE = "\0base\0"


@dataclass(frozen=True, slots=True)
class Page:
    """A page as one text; its paragraphs are parted by blank lines."""

    page_id: str
    title: str
    text: str

    @property
    def paragraphs(self) -> tuple[str, ...]:
        """The stripped paragraphs that are not empty."""
        return tuple(part.strip() for part in _BLANK_LINE.split(self.text) if part.strip())

    def passage(self, text: str) -> Passage:
        """A part of the page that is shown."""
        return Passage("", text, self.title, self.page_id)


class Pages:
    """See the module. Safe for several reading threads."""

    def __init__(self, store: PassageStore, folder: Path, fingerprint: str = "") -> None:
        """``folder`` holds the look-ups of ``store``. BadFileError if they are not whole."""
        self.store, self.fingerprint = store, fingerprint
        try:
            self._pages, self._titles, self._rows = (
                np.asarray(np.load(folder / name, mmap_mode="r")) for name in (PAGES, TITLES, ROWS)
            )
        except (OSError, ValueError, EOFError) as error:
            raise BadFileError(
                f"{folder} is damaged ({error}); remove it, it is made again when next needed."
            ) from None

    def page(self, page_id: str) -> Page | None:
        """All passages of a page in the corpus's order as one text; None if there is no such page."""
        rows = rows_with(self._pages, page_id)[:MAX_PASSAGES] if page_id else ()
        found = [(row, passage) for row in rows if (passage := self.store[row]).page_id == page_id]
        if not found:
            return None
        title = next((passage.title for _, passage in found if passage.title), "")
        return Page(page_id, title, self._joined([row for row, _ in found]))

    def titled(self, title: str) -> tuple[Page, ...]:
        """The pages of that title in the corpus's order, however it is cased and spaced.

        Where there is none: those whose title is it, followed by something in brackets.
        """
        wanted = plain_title(title)
        if not wanted:
            return ()
        exact = self._entries(wanted, plain_title)
        return exact or self._entries(wanted, _base, _BASE)

    def _entries(self, wanted: str, form: object, mark: str = "") -> tuple[Page, ...]:
        found: dict[str, Page] = {}
        for entry in rows_with(self._titles, mark + wanted):
            passage = self.store[int(self._rows[entry])]
            assert callable(form)
            if form(passage.title) == wanted and passage.page_id not in found:
                page = self.page(passage.page_id) or Page("", passage.title, passage.text)
                found[passage.page_id] = page
        return tuple(found.values())

    def _joined(self, rows: list[int]) -> str:
        """Chunks of one document without what they share; anything else parted by blank lines."""
        text, document, end = "", "", 0
        for row in rows:
            passage, origin = self.store[row], self.store.origin(row)
            length = origin.end - origin.start
            body = passage.text[-length:] if 0 < length < len(passage.text) else passage.text
            if text and origin.document == document and origin.start > 0:
                shared = max(0, end - origin.start)
                text += body[shared:] if shared else " " + body.lstrip()
            else:
                text += "\n\n" + body if text else body
            document, end = (
                origin.document,
                max(end, origin.end) if origin.document == document else origin.end,
            )
        return text


def plain_title(title: str) -> str:
    """A title as it is compared: one case, one kind of space, no quotes around it.

    >>> plain_title('  "Ada_Lovelace" ')
    'ada lovelace'
    """
    text = unicodedata.normalize("NFKC", title).casefold().replace("_", " ")
    return " ".join(text.split()).strip("\"'“”‘’").strip()


def _base(title: str) -> str:
    """A title without what stands in brackets at its end.

    >>> _base("Georgia (country)")
    'georgia'
    """
    return _IN_BRACKETS.sub("", plain_title(title))


def write_pages(store: PassageStore, folder: Path) -> None:
    """Write the look-ups of a store into an existing folder; reads the whole store once. Raises OSError."""
    columns = [pages, titles, rows] = [
        NumberColumn(folder / name) for name in ("p.npy", "t.npy", ROWS)
    ]
    before = None
    try:
        for row, passage in enumerate(store):
            pages.append(stable_hash(passage.page_id))
            if passage.page_id and passage.page_id == before:
                continue
            before = passage.page_id
            for name in _names_of(passage.title):
                titles.append(stable_hash(name))
                rows.append(row)
        titles.append(stable_hash("\0"))  # an empty array cannot be mapped
        rows.append(0)
        for column in columns:
            column.finish()
        for half, whole in (("p.npy", PAGES), ("t.npy", TITLES)):
            write_lookup(folder / half, folder / whole)
            (folder / half).unlink()
    finally:
        for column in columns:
            column.close()


def _names_of(title: str) -> Iterator[str]:
    plain, base = plain_title(title), _base(title)
    if plain:
        yield plain
        if base and base != plain:
            yield _BASE + base
