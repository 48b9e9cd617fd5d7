"""Maps from passage id to page id: RaLLe's JSON object or pickle, or a compact map from a table or JSON lines."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from rallebench.core.columns import first_value
from rallebench.core.errors import BadFileError
from rallebench.core.files import read_json
from rallebench.core.sources import Source, has_suffix
from rallebench.corpora import ID_NAMES, PAGE_NAMES
from rallebench.corpora._seen import hashes
from rallebench.corpora.reading import PageMap
from rallebench.corpora.tsv import unquote

BATCH = 2**16


def read_page_map(path: Path) -> PageMap:
    """Read a map from passage ids to page ids (``wikipedia_id``), both as stripped text.

    A JSON object becomes a dict, and so does RaLLe's pickled map (``.p``, ``.pkl``), without executing any of it. A ``.tsv``
    with two columns (id, page id; a header row is skipped) or JSON lines (``id`` and ``page_id`` or ``wikipedia_id``) take
    about 20 bytes per id. Raises BadFileError for other content, and for an id with two pages.
    """
    path = Path(path)
    if has_suffix(".tsv", ".tab", ".txt")(path):
        return CompactPages(path, _table(path))
    if has_suffix(".jsonl", ".ndjson")(path):
        return CompactPages(path, _objects(path))
    pickled = has_suffix(".p", ".pkl", ".pickle")(path)
    value = _unpickle(path) if pickled else read_json(path)
    if not isinstance(value, dict):
        raise BadFileError(f"{path} should hold a JSON object that maps passage ids to page ids.")
    for key, page in value.items():
        if not isinstance(key, (str, int)) or not isinstance(page, (str, int)):
            raise BadFileError(
                f"{path} maps {key!r} to {type(page).__name__}; a page id is a string or a number."
            )
    pages = {str(key).strip(): str(page).strip() for key, page in value.items()}
    # RaLLe writes -1 for a passage without a known page.
    return {key: page for key, page in pages.items() if page != "-1"} if pickled else pages


class _PlainUnpickler(pickle.Unpickler):
    """Unpickles plain values only: a pickle that names any class or function is refused."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"it asks for {module}.{name}")


def _unpickle(path: Path) -> Any:
    try:
        with open(path, "rb") as handle:
            return _PlainUnpickler(handle).load()
    except OSError as error:
        raise BadFileError(f"{path} cannot be read: {error.strerror or error}.") from None
    except (
        Exception
    ) as error:  # according to Python's documentation, a damaged pickle may raise anything
        raise BadFileError(
            f"{path} is not a pickled map of passage ids to page ids ({error})."
        ) from None


class CompactPages:
    """Sorted 64-bit hashes of the ids, and each page name once.

    The ids are not stored: with 22 million ids an unknown id gets a wrong page with a probability of 1e-12.
    """

    def __init__(self, path: Path, pairs: Iterator[tuple[str, str]]) -> None:
        """Read the pairs. Raises BadFileError if there are none, or if an id has two pages."""
        numbers: dict[str, int] = {}
        keys, values = [], []
        ids: list[str] = []
        pages: list[int] = []
        for doc_id, page in pairs:
            ids.append(doc_id)
            pages.append(numbers.setdefault(page, len(numbers)))
            if len(ids) == BATCH:
                keys.append(hashes(ids))
                values.append(np.array(pages, dtype=np.uint32))
                ids, pages = [], []
        keys.append(hashes(ids))
        values.append(np.array(pages, dtype=np.uint32))
        key, value = np.concatenate(keys), np.concatenate(values)
        if not len(key):
            raise BadFileError(
                f"{path} is empty; it should hold a passage id and a page id on every line."
            )
        order = np.argsort(key, kind="stable")
        self._keys, self._values = key[order], value[order]
        names = [name.encode("utf-8", "surrogatepass") for name in numbers]
        self._names = b"".join(names)
        self._ends = np.cumsum([0, *map(len, names)], dtype=np.uint64)
        conflicts = (self._keys[1:] == self._keys[:-1]) & (self._values[1:] != self._values[:-1])
        if conflicts.any():
            at = int(np.flatnonzero(conflicts)[0])
            first, second = (self._name(int(number)) for number in self._values[at : at + 2])
            raise BadFileError(
                f"{path} maps one passage id to two pages, {first!r} and {second!r}; an id has one page."
            )

    def get(self, key: str, default: str, /) -> str:
        """Return the page id of a passage id, else ``default``."""
        hashed = hashes([key])[0]
        at = int(np.searchsorted(self._keys, hashed))
        if at == len(self._keys) or self._keys[at] != hashed:
            return default
        return self._name(int(self._values[at]))

    def _name(self, number: int) -> str:
        start, end = int(self._ends[number]), int(self._ends[number + 1])
        return self._names[start:end].decode("utf-8", "surrogatepass")

    def __len__(self) -> int:
        return len(self._keys)


def _table(path: Path) -> Iterator[tuple[str, str]]:
    source = Source(path)
    for number, line in source.lines():
        if not line.strip():
            continue
        fields = [unquote(field.strip()) for field in line.split("\t")]
        if len(fields) != 2 or not fields[0]:
            raise BadFileError(
                f"{source.where(number)} has {len(fields)} columns; a page map has two: passage id<TAB>page id."
            )
        if (
            number == 1
            and fields[0].lower() in ID_NAMES
            and fields[1].lower() in (*PAGE_NAMES, "page")
        ):
            continue
        yield fields[0], fields[1]


def _objects(path: Path) -> Iterator[tuple[str, str]]:
    source = Source(path)
    for number, row in source.objects():
        doc_id, page = first_value(row, ID_NAMES, None), first_value(row, PAGE_NAMES, None)
        if not isinstance(doc_id, (str, int)) or not isinstance(page, (str, int)):
            raise BadFileError(
                f"{source.where(number)} needs 'id' and 'page_id', each a text or a number."
            )
        yield str(doc_id).strip(), str(page).strip()
