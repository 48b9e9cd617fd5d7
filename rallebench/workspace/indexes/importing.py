"""Import of other programs' results: files of vectors, Faiss files, Pyserini's folders, DiskANN folders.

Vectors can become an index of any kind, also those in a flat Faiss file; a finished index is linked into a folder of ours,
or copied if links are not supported. Rows are the corpus's passages, in its order, unless the vectors have ids.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from rallebench.core.errors import BadFileError, MismatchError, UsageError
from rallebench.core.types import Json
from rallebench.encoders.checking import VectorCheck, significant_letters
from rallebench.retrievers import INDEX_KINDS, Passages
from rallebench.vector_indexes import Progress
from rallebench.vector_indexes.copies import ROWS
from rallebench.vector_indexes.diskann_files import GRAPH, check_same_length, read_disk_files
from rallebench.vector_indexes.diskann_library import about
from rallebench.vector_indexes.faiss_factory import LABELS, FaissFactory
from rallebench.vector_indexes.faiss_files import read_faiss_file
from rallebench.vector_indexes.faiss_flat import FaissFlat
from rallebench.vector_indexes.hnsw import FaissHNSW
from rallebench.vector_indexes.stored_vectors import PIECE_BYTES, Selection, not_finite_error
from rallebench.workspace.indexes.passage_ids import Ids, Rows, ids_in, passage_rows
from rallebench.workspace.indexes.vector_files import (
    READERS,
    UNPACKED,
    VectorFile,
    raw_vectors,
    vector_file,
)
from rallebench.workspace.indexes.vectors import passage_text

FAISS_FILES = {"flat": FaissFlat.file, "hnsw": FaissHNSW.file, "faiss": FaissFactory.file}
"""Index kinds that take a Faiss file as it is, and its name in their folder."""
SAME_LENGTH = 1e-3
"""Largest relative difference of lengths with which distance and inner product rank alike."""


@dataclass(frozen=True, slots=True)
class ForeignIndex:
    """A foreign index. ``kinds``: the index kinds that take it as it is; ``vectors``: those in it, of which any kind can be
    built. ``labels``: the vectors' numbers in a Faiss file, None for their rows; ``ids``: of their passages.
    ``by_distance``: made for a ranking by distance. ``prefix``: of DiskANN's file names; ``facts``: kind → what its parameters
    say of the file.
    """

    path: Path
    kinds: tuple[str, ...]
    count: int
    dim: int
    vectors: VectorFile | None = None
    labels: Rows | None = None
    ids: Ids | None = None
    by_distance: bool = False
    prefix: str = ""
    facts: Mapping[str, Json] = field(default_factory=dict)


def recognise(path: Path, ids: Path | None = None) -> ForeignIndex:
    """Recognise a file or folder. ``ids``: a file with the passage id of each vector. Raises BadFileError, naming the
    importable formats, for anything else.
    """
    path = Path(path)
    if ids is not None and not ids.is_file():
        raise BadFileError(
            f"There is no file {ids}; give a file with the passage id of each vector."
        )
    if (path / INDEX).is_file():
        ids = ids or ((path / DOCIDS) if (path / DOCIDS).is_file() else None)
        path = path / INDEX
    foreign = _recognise(path)
    return foreign if ids is None else replace(foreign, ids=lambda: ids_in(ids))


INDEX, DOCIDS = "index", "docid"
"""Files in Pyserini's folders: a Faiss index, and the passage id of each vector, a line each."""


def _recognise(path: Path) -> ForeignIndex:
    if path.is_dir() or not path.exists():
        return _diskann(path)
    vectors = vector_file(path)
    if vectors is None:
        return _faiss(path)
    ids = vectors.ids
    with_labels = None if ids is None else lambda: ((None, text) for text in ids())
    return ForeignIndex(path, (), vectors.count, vectors.dim, vectors, ids=with_labels)


FAISS_KINDS = {b"IxFI": "flat", b"IHNf": "hnsw"}
"""First four bytes of Faiss files for inner products: flat, or HNSW."""


def foreign_kind(path: Path) -> str:
    """Return the kind of another program's index by its first bytes; '' if there is none at ``path``."""
    path = Path(path)
    if path.is_dir() or path.with_name(path.name + GRAPH).is_file():
        return "diskann"
    if not path.is_file():
        return ""
    with open(path, "rb") as handle:
        return FAISS_KINDS.get(handle.read(4), "flat")


def _faiss(path: Path) -> ForeignIndex:
    with open(path, "rb") as handle:
        if not handle.read(4).startswith(
            b"I"
        ):  # every Faiss index begins with I and three other letters
            raise BadFileError(
                f"{path} is neither vectors ({', '.join(READERS)}) nor a Faiss index file nor a folder of Pyserini or DiskANN."
            )
    file = read_faiss_file(path)
    vectors = raw_vectors(path, "<f4", file.count, file.dim, file.start) if file.start else None
    kinds: tuple[str, ...] = ("faiss",)
    if file.name == "IndexFlatIP" and file.labels is None:
        kinds = ("flat", *kinds)
    if file.name == "IndexHNSWFlat" and not file.by_distance:
        kinds = ("hnsw", *kinds)
    graph: Json = {"m": file.m, "ef_construction": file.ef_construction}
    ranks_by = "distance" if file.by_distance else "inner product"
    facts = {"hnsw": graph, "faiss": {"type": file.name, "ranks_by": ranks_by}}
    return ForeignIndex(
        *(path, kinds, file.count, file.dim, vectors, file.labels),
        by_distance=file.by_distance,
        facts=facts,
    )


def _diskann(path: Path) -> ForeignIndex:
    """``path``: the folder, or the folder and the prefix of its files' names."""
    if path.is_dir():
        prefixes = sorted(p.name.removesuffix(GRAPH) for p in path.glob(f"*{GRAPH}"))
        folder, prefix = path, prefixes[0] if len(prefixes) == 1 else ""
        if len(prefixes) != 1:
            which = f"holds several ({', '.join(prefixes)}); write one behind the folder"
            which = which if prefixes else "holds none"
            raise BadFileError(f"{path}: a DiskANN folder has one PREFIX{GRAPH}; this one {which}.")
    else:
        folder, prefix = path.parent, path.name
        if not (folder / (prefix + GRAPH)).is_file():
            raise BadFileError(f"{path} does not exist.")
    files = read_disk_files(folder, prefix)
    check_same_length(files)
    return ForeignIndex(folder, ("diskann",), files.count, files.dim, prefix=prefix)


def check_fits(foreign: ForeignIndex, kind: str, passages: int, dim: int, encoder: str) -> None:
    """Raise MismatchError or UsageError unless it fits this kind, corpus and encoder."""
    name = foreign.path.name
    if kind not in foreign.kinds and foreign.vectors is None:
        first = foreign.kinds[0]
        raise UsageError(f"{name} is an index of the kind {first!r}; choose the kind {first}.")
    if foreign.count != passages:
        raise MismatchError(
            f"{name} holds {foreign.count} vectors and the corpus {passages} passages; "
            "give the corpus that it was made of, cut in the same way."
        )
    if foreign.dim != dim:
        raise MismatchError(
            f"{name} holds vectors of {foreign.dim} dimensions, the encoder {encoder!r} makes {dim}; "
            "give the encoder that it was made with."
        )


def take_over(
    foreign: ForeignIndex, kind: str, folder: Path, passages: Passages, settings: Json
) -> Generator[Progress, None, dict[str, Any]]:
    """Turn it into the index in ``folder``; return the settings. Vectors are built into ``kind`` with ``settings``."""
    rows = yield from passage_rows(
        *(foreign.path.name, foreign.count, foreign.labels, foreign.ids),
        passages,  # type: ignore[arg-type]
    )
    linked = kind in foreign.kinds and (rows is None or kind != "flat")
    with _open_vectors(foreign, folder) as vectors:
        if vectors is not None:
            yield from _all_numbers(foreign, vectors, passages, rows, kind)
        if not linked:
            chosen = vectors if rows is None else Selection(vectors, np.argsort(rows))
            used = yield from INDEX_KINDS[kind].build(folder, passages, chosen, settings)
            return {**used, "imported": foreign.path.name}
    yield 0, foreign.count
    if kind == "diskann":
        files = read_disk_files(foreign.path, foreign.prefix)
        for name in files.names:
            _link(foreign.path / name, folder / name)
        about(folder, "imported", files.count, files.dim, files.longest, False, foreign.prefix)
    else:
        _link(foreign.path, folder / FAISS_FILES[kind])
    _keep_rows(foreign, kind, folder, rows)
    yield foreign.count, foreign.count
    return {**foreign.facts.get(kind, {}), "imported": foreign.path.name}


@contextlib.contextmanager
def _open_vectors(foreign: ForeignIndex, folder: Path) -> Iterator[Any]:
    """The mapped vectors, None if there are none; an archive is unpacked for this block."""
    try:
        yield foreign.vectors.open(folder) if foreign.vectors else None
    finally:
        (folder / UNPACKED).unlink(missing_ok=True)


def _keep_rows(foreign: ForeignIndex, kind: str, folder: Path, rows: Rows | None) -> None:
    """Store the rows of a finished index's vectors beside it, unless they are its own."""
    own = np.arange(foreign.count)
    if kind != "faiss":
        if rows is not None:
            np.save(folder / ROWS, np.argsort(rows))
        return
    labels, rows = own if foreign.labels is None else foreign.labels, own if rows is None else rows
    if not np.array_equal(labels, rows):
        order = np.argsort(labels)
        np.save(folder / LABELS, np.stack([labels[order], rows[order]]))


def _all_numbers(
    foreign: ForeignIndex, vectors: Any, passages: Passages, rows: Rows | None, kind: str
) -> Generator[Progress, None, None]:
    """Raise BadFileError, naming the row, for a value that is not finite, a row of zeros, or equal rows for all passages, and
    MismatchError if ``kind`` ranks otherwise than the file was made for. Checks before anything is built.
    """
    path, check = foreign.path, VectorCheck(str(foreign.path), "")
    shortest, longest = np.inf, 0.0

    def key_from(start: int) -> Callable[[int], str]:
        return lambda row: significant_letters(passage_text(passages[_passage(start + row)]))

    def name_from(start: int) -> Callable[[int], str]:
        return lambda row: f"row {start + row + 1} of {len(vectors)}"

    def _passage(number: int) -> int:
        return number if rows is None else int(rows[number])

    step = max(1, PIECE_BYTES // (4 * vectors.shape[1]))
    for start in range(0, len(vectors), step):
        yield start, len(vectors)
        with np.errstate(over="ignore"):  # a value that overflows float32 is not finite either
            piece = vectors[start : start + step].astype(np.float32)
        whole = np.isfinite(piece).all(axis=1)
        if not whole.all():
            row = start + int(np.flatnonzero(~whole)[0]) + 1
            raise not_finite_error(path, row, len(vectors))
        fault = check.fault(piece, key_from(start), name_from(start))
        if fault:
            raise BadFileError(
                f"{path} holds {fault}, so a search of it would find nothing; encode the corpus again, in float32 if the "
                "encoder ran in another type."
            )
        lengths = np.linalg.norm(piece, axis=1)
        shortest, longest = min(shortest, lengths.min()), max(longest, lengths.max())
    if foreign.by_distance and kind != "faiss" and longest - shortest > SAME_LENGTH * longest:
        raise MismatchError(
            f"{path} ranks by distance and its vectors differ in length, so it does not rank by inner product; "
            "choose the kind faiss, which ranks as the file does."
        )


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source.resolve(), target)
    except OSError:  # another file system, or one without hard links
        shutil.copyfile(source, target)
