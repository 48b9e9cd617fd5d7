"""Pages of imported corpora, found by the names in questions: an id, an address, a title or a file name."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from contextlib import closing
from itertools import chain
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from rallebench.core.errors import BadFileError
from rallebench.core.types import Passage
from rallebench.corpora.cards import imported_corpora
from rallebench.corpora.imported import page_addresses
from rallebench.corpora.store import PassageStore

Key = tuple[int, str]
"""Kind of a name (the most reliable first) and its normalised form."""
PAGE, PASSAGE, LINK, TITLE, FILE, STEM = range(6)
MAX_PAGES_PER_NAME = 100
"""Maximum number of pages per name; a title shared by more pages identifies none."""

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*://(www\.)?", re.IGNORECASE)
_WHOLE = re.compile(r"\d+\.0+")
_SHEET = re.compile(r"(\.xlsx)#.*$", re.DOTALL | re.IGNORECASE)
_ENDING = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,4}$")


def find_pages(corpora: Path, names: Collection[str]) -> dict[str, dict[str, list[str]]]:
    """Return corpus → name → ids of the pages with that name; reads every corpus once. Damaged corpora are left out."""
    pages: dict[str, dict[str, list[str]]] = {}
    for corpus in imported_corpora(corpora):
        if not names:  # only the corpora are asked for
            pages[corpus] = {}
            continue
        try:
            with closing(PassageStore(Path(corpora) / corpus)) as passages:
                addresses = page_addresses(Path(corpora) / corpus)
                pages[corpus] = _named_in(chain(_keys_of_all(passages), _links(addresses)), names)
        except BadFileError:
            continue
    return pages


def _named_in(keys: Iterable[tuple[Key, str]], names: Collection[str]) -> dict[str, list[str]]:
    sought = {key for name in names for key in _keys_of_name(name)}
    pages: defaultdict[Key, dict[str, None]] = defaultdict(dict)
    for key, page in keys:
        if page and key in sought and len(pages[key]) <= MAX_PAGES_PER_NAME:
            pages[key][page] = None
    named = {}
    for name in names:
        sets = (list(pages[key]) for key in sorted(_keys_of_name(name)) if key in pages)
        if ids := next((ids for ids in sets if len(ids) <= MAX_PAGES_PER_NAME), None):
            named[name] = ids
    return named


def _keys_of_all(passages: PassageStore) -> Iterator[tuple[Key, str]]:
    return ((key, passage.page_id) for passage in passages for key in _keys_of_passage(passage))


def _links(addresses: Iterable[tuple[str, str]]) -> Iterator[tuple[Key, str]]:
    return (((LINK, address(url)), page) for page, url in addresses)


def _keys_of_passage(passage: Passage) -> Iterator[Key]:
    yield PAGE, passage.page_id
    for name in {passage.page_id, passage.doc_id}:
        yield PASSAGE, name
        if _WHOLE.fullmatch(name):  # pandas writes a column of numbers with empty cells this way
            yield PASSAGE, name.partition(".")[0]
        if _SCHEME.match(name):
            yield LINK, address(name)
        file = _SHEET.sub(r"\1", name)
        if _ENDING.search(file):
            yield FILE, _fold_title(PurePosixPath(file).name)
            yield STEM, _fold_title(PurePosixPath(file).stem)
    if passage.title:
        yield TITLE, _fold_title(passage.title)


def _keys_of_name(name: str) -> set[Key]:
    keys = {(PAGE, name), (PASSAGE, name), (TITLE, _fold_title(name))}
    path = name.replace("\\", "/").partition("#")[0].partition("?")[0].rstrip("/")
    last = unquote(path.rpartition("/")[2])
    if _SCHEME.match(name):
        keys |= {(LINK, address(name)), (TITLE, _fold_title(last))}
    return keys | {(FILE, _fold_title(last)), (STEM, _fold_title(_ENDING.sub("", last)))}


def address(url: str) -> str:
    """Normalise an address for comparison.

    >>> address("https://www.Example.org/a%20b/#top"), address("http://example.org/a b")
    ('example.org/a b', 'example.org/a b')
    """
    return unquote(_SCHEME.sub("", url).partition("#")[0]).rstrip("/").casefold()


def _fold_title(title: str) -> str:
    """Normalise a title for comparison.

    >>> _fold_title("Titan_(moon) "), _fold_title("TITAN (Moon)")
    ('titan (moon)', 'titan (moon)')
    """
    return " ".join(unicodedata.normalize("NFKC", title).replace("_", " ").split()).casefold()
