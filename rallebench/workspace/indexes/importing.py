"""Import of other programs' results: vectors (RaLLe's ``.npmmap``, ``.npy``), Faiss files, DiskANN folders.

Vectors can become an index of any kind; a finished index is linked into a folder of ours, or copied if links are
not supported. Rows are the corpus's passages, in its order.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rallebench.core.arrays import load_array
from rallebench.core.errors import BadFileError, MismatchError, UsageError
from rallebench.core.types import Json
from rallebench.encoders.checking import VectorCheck, significant_letters
from rallebench.retrievers import IndexKind, Passages
from rallebench.vector_indexes import Progress
from rallebench.vector_indexes.diskann_files import GRAPH, check_same_length, read_disk_files
from rallebench.vector_indexes.diskann_library import about
from rallebench.vector_indexes.faiss_flat import FaissFlat
from rallebench.vector_indexes.faiss_index import faiss, read
from rallebench.vector_indexes.hnsw import FaissHNSW
from rallebench.vector_indexes.stored_vectors import PIECE_BYTES
from rallebench.workspace.indexes.vectors import passage_text

NPMMAP = re.compile(r"(?:.*_)?(\d+)_(\d+)\.npmmap")
"""RaLLe's name: ``full_1024_22220793.npmmap``: dimensions, then vectors."""


@dataclass(frozen=True, slots=True)
class ForeignIndex:
    """A foreign index. ``kind``: its index kind; '' for vectors, which any kind can use. ``prefix``: of DiskANN's file names."""

    path: Path
    kind: str
    count: int
    dim: int
    prefix: str = ""
    settings: Json | None = None


def recognise(path: Path) -> ForeignIndex:
    """Recognise a file or folder. Raises BadFileError, naming the importable formats, for anything else."""
    path = Path(path)
    if path.is_dir() or not path.exists():
        return _diskann(path)
    if path.suffix == ".npmmap":
        return _npmmap(path)
    if path.suffix == ".npy":
        return _npy(path)
    return _faiss(path)


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


def _npmmap(path: Path) -> ForeignIndex:
    match = NPMMAP.fullmatch(path.name)
    if match is None:
        raise BadFileError(
            f"{path} does not say how many vectors it holds; name it as RaLLe does, subset_DIMENSIONS_COUNT.npmmap."
        )
    dim, count = int(match[1]), int(match[2])
    if not dim or not count or path.stat().st_size != 4 * dim * count:
        raise BadFileError(
            f"{path} holds {path.stat().st_size} bytes, but {count} float32 vectors of {dim} dimensions "
            f"take {4 * dim * count}; it was cut short or renamed."
        )
    return ForeignIndex(path, "", count, dim)


def _npy(path: Path) -> ForeignIndex:
    vectors = load_array(path)
    if vectors.ndim != 2 or vectors.dtype.kind != "f" or not vectors.size:
        raise BadFileError(
            f"{path} holds {vectors.dtype} of shape {vectors.shape}; rows of float vectors are needed."
        )
    return ForeignIndex(path, "", len(vectors), vectors.shape[1])


def map_vectors(foreign: ForeignIndex) -> Any:
    """Return the memory-mapped vectors, (count, dim)."""
    if foreign.path.suffix == ".npy":
        return load_array(foreign.path)
    return np.memmap(foreign.path, dtype="<f4", mode="r", shape=(foreign.count, foreign.dim))


def _faiss(path: Path) -> ForeignIndex:
    package = faiss()
    with open(path, "rb") as handle:
        if not handle.read(4).startswith(
            b"I"
        ):  # every Faiss index begins with I and three other letters
            raise BadFileError(
                f"{path} is neither vectors (.npmmap, .npy) nor a Faiss index file nor a DiskANN folder."
            )
    index = read(path)
    inner = index.metric_type == package.METRIC_INNER_PRODUCT
    name = type(index).__name__
    _check_numbers(path, index)
    if inner and isinstance(index, package.IndexFlat):
        return ForeignIndex(path, "flat", index.ntotal, index.d, settings={})
    if inner and isinstance(index, package.IndexHNSWFlat):
        settings = {"m": index.hnsw.nb_neighbors(1), "ef_construction": index.hnsw.efConstruction}
        return ForeignIndex(path, "hnsw", index.ntotal, index.d, settings=settings)
    raise BadFileError(
        f"{path} is a Faiss {name} by {'inner product' if inner else 'distance'}; flat and HNSW indexes by inner "
        "product can be imported. Import the vectors that it was made of (.npmmap or .npy)."
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
    return ForeignIndex(folder, "diskann", files.count, files.dim, prefix, {})


def check_fits(foreign: ForeignIndex, kind: str, passages: int, dim: int, encoder: str) -> None:
    """Raise MismatchError or UsageError unless it fits this kind, corpus and encoder."""
    name = foreign.path.name
    if foreign.kind and foreign.kind != kind:
        raise UsageError(
            f"{name} is an index of the kind {foreign.kind!r}; choose the kind {foreign.kind}."
        )
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
    foreign: ForeignIndex,
    kind: IndexKind,
    folder: Path,
    passages: Passages,
    settings: Json,
) -> Generator[Progress, None, dict[str, Any]]:
    """Turn it into the index in ``folder``; return the settings. Vectors are built into ``kind`` with ``settings``."""
    if not foreign.kind:
        yield from _all_numbers(foreign.path, map_vectors(foreign), passages)
        used = yield from kind.build(folder, passages, map_vectors(foreign), settings)
        return {**used, "imported": foreign.path.name}
    yield 0, foreign.count
    if foreign.kind == "diskann":
        files = read_disk_files(foreign.path, foreign.prefix)
        for name in files.names:
            _link(foreign.path / name, folder / name)
        about(folder, "imported", files.count, files.dim, files.longest, False, foreign.prefix)
    else:
        _link(foreign.path, folder / {"flat": FaissFlat, "hnsw": FaissHNSW}[foreign.kind].file)
    yield foreign.count, foreign.count
    return {**(foreign.settings or {}), "imported": foreign.path.name}


def _all_numbers(
    path: Path, vectors: Any, passages: Passages | None = None
) -> Generator[Progress, None, None]:
    """Raise BadFileError, naming the row, for a value that is not finite, a row of zeros, or equal rows for all passages.
    Checks before anything is built. Without ``passages`` every row counts as a distinct text."""
    check = VectorCheck(str(path), "")

    def key_from(start: int) -> Callable[[int], str]:
        if passages is None:
            return lambda row: str(start + row)
        return lambda row: significant_letters(passage_text(passages[start + row]))

    def name_from(start: int) -> Callable[[int], str]:
        return lambda row: f"row {start + row + 1} of {len(vectors)}"

    step = max(1, PIECE_BYTES // (4 * vectors.shape[1]))
    for start in range(0, len(vectors), step):
        yield start, len(vectors)
        with np.errstate(over="ignore"):  # a value that overflows float32 is not finite either
            piece = vectors[start : start + step].astype(np.float32)
        whole = np.isfinite(piece).all(axis=1)
        if not whole.all():
            row = start + int(np.flatnonzero(~whole)[0]) + 1
            raise BadFileError(
                f"{path}, row {row} of {len(vectors)} holds a value that is not a finite number; "
                "encode the corpus again, in float32 if the encoder ran in another type."
            )
        fault = check.fault(piece, key_from(start), name_from(start))
        if fault:
            raise BadFileError(
                f"{path} holds {fault}, so a search of it would find nothing; encode the corpus again, in float32 if the "
                "encoder ran in another type."
            )


def _check_numbers(path: Path, index: Any) -> None:
    """Apply ``_all_numbers`` to the vectors of a Faiss index in memory."""
    package = faiss()
    flat = package.downcast_index(index.storage) if hasattr(index, "storage") else index
    if not isinstance(flat, package.IndexFlat) or not flat.ntotal:
        return
    held = package.rev_swig_ptr(flat.get_xb(), flat.ntotal * flat.d).reshape(flat.ntotal, flat.d)
    for _ in _all_numbers(path, np.asarray(held)):
        pass


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source.resolve(), target)
    except OSError:  # another file system, or one without hard links
        shutil.copyfile(source, target)
