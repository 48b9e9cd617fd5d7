"""The pages of a corpus, by id or by title; a page joins all passages with one page id.

Nothing is held in memory. Two look-ups are stored beside the passages, written once per corpus::

    pages.npy    uint64 (2, n): sorted hashes of page ids, and rows of the store
    titles.npy   uint64 (2, m): sorted hashes of titles, and entries of rows.npy
    rows.npy     uint64 (m,): the row where the page with that title begins
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rallebench.core.arrays import load_array
from rallebench.core.errors import BadFileError
from rallebench.core.types import Passage
from rallebench.corpora.columns import NumberColumn, rows_with, stable_hash, write_lookup
from rallebench.corpora.store import PassageStore

PAGES, TITLES, ROWS = "pages.npy", "titles.npy", "rows.npy"
MAX_PASSAGES = 5_000
"""Maximum passages of a page; the rest of a longer page is not read."""

_BLANK_LINE = re.compile(r"\n[^\S\n]*\n\s*")
_IN_BRACKETS = re.compile(r"\s*\([^()]*\)$")
_BASE = "\0base\0"


@dataclass(frozen=True, slots=True)
class CorpusPage:
    """A page as one text; blank lines separate its paragraphs."""

    page_id: str
    title: str
    text: str

    @property
    def paragraphs(self) -> tuple[str, ...]:
        """The stripped, non-empty paragraphs."""
        return tuple(part.strip() for part in _BLANK_LINE.split(self.text) if part.strip())

    def passage(self, text: str) -> Passage:
        """Return a part of the page as a passage."""
        return Passage("", text, self.title, self.page_id)


class PageStore:
    """See the module. Thread-safe."""

    def __init__(self, store: PassageStore, folder: Path, fingerprint: str = "") -> None:
        """Open the store; ``folder`` holds its look-ups. Raises BadFileError if they are damaged."""
        self.store, self.fingerprint = store, fingerprint
        try:
            self._pages, self._titles, self._rows = (
                np.asarray(load_array(folder / name, np.uint64)) for name in (PAGES, TITLES, ROWS)
            )
        except (BadFileError, ValueError) as error:
            raise BadFileError(
                f"{folder} is damaged ({error}); delete it, and it will be built again when needed."
            ) from None

    def page(self, page_id: str) -> CorpusPage | None:
        """Join all passages of a page in the corpus's order; None if there is no such page."""
        rows = rows_with(self._pages, page_id)[:MAX_PASSAGES] if page_id else ()
        passages = [
            (row, passage) for row in rows if (passage := self.store[row]).page_id == page_id
        ]
        if not passages:
            return None
        title = next((passage.title for _, passage in passages if passage.title), "")
        return CorpusPage(page_id, title, self.store.join([row for row, _ in passages]))

    def with_title(self, title: str) -> tuple[CorpusPage, ...]:
        """Return the pages with that title in the order of the corpus; case and spaces do not matter.

        Without such a page, return the pages with that title and an addition in brackets.
        """
        plain = plain_title(title)
        if not plain:
            return ()
        exact = self._entries(plain, plain_title)
        return exact or self._entries(plain, _base, _BASE)

    def _entries(
        self, plain: str, form: Callable[[str], str], mark: str = ""
    ) -> tuple[CorpusPage, ...]:
        pages: dict[str, CorpusPage] = {}
        for entry in rows_with(self._titles, mark + plain):
            passage = self.store[int(self._rows[entry])]
            if form(passage.title) == plain and passage.page_id not in pages:
                page = self.page(passage.page_id) or CorpusPage("", passage.title, passage.text)
                pages[passage.page_id] = page
        return tuple(pages.values())


class NoPages(PageStore):
    """The pages of an index that is not built yet: a plan counts an agent's requests and opens no page."""

    def __init__(self) -> None:
        self.fingerprint = ""

    def page(self, page_id: str) -> CorpusPage | None:
        """Return None: no page can be opened yet."""
        return None

    def with_title(self, title: str) -> tuple[CorpusPage, ...]:
        """Return (): no page can be opened yet."""
        return ()


def plain_title(title: str) -> str:
    """Normalise a title for comparison: one case, one kind of space, no quotes around it.

    >>> plain_title('  "Ada_Lovelace" ')
    'ada lovelace'
    """
    text = unicodedata.normalize("NFKC", title).casefold().replace("_", " ")
    return " ".join(text.split()).strip("\"'“”‘’").strip()


def _base(title: str) -> str:
    """Return a title without the addition in brackets at its end.

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
            for name in _title_names(passage.title):
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


def _title_names(title: str) -> Iterator[str]:
    plain, base = plain_title(title), _base(title)
    if plain:
        yield plain
        if base and base != plain:
            yield _BASE + base
