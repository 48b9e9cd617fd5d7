"""Files of vectors by other programs: numpy's ``.npy`` and ``.npz``, RaLLe's ``.npmmap``, TEXMEX's ``.fvecs`` and ``.bvecs``,
and the ``.fbin`` and ``.u8bin`` … of big-ann-benchmarks. They are mapped, and read in pieces.
"""

from __future__ import annotations

import re
import shutil
import struct
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from rallebench.core.archives import MAX_RATIO, MAX_UNPACKED, unpacking
from rallebench.core.arrays import load_array
from rallebench.core.errors import BadFileError

NPMMAP = re.compile(r"(?:.*_)?(\d+)_(\d+)\.npmmap")
"""RaLLe's name: ``full_1024_22220793.npmmap``: dimensions, then vectors."""
TEXMEX = {".fvecs": "<f4", ".bvecs": "u1"}
BIG_ANN = {".fbin": "<f4", ".f16bin": "<f2", ".u8bin": "u1", ".i8bin": "i1"}
VECTORS = ("vectors", "embeddings", "embedding", "embs", "vecs")
"""Names by which an archive's vectors are told from other rows of numbers."""
IDS = ("ids", "id", "docids", "docid", "doc_ids", "doc_id", "passage_ids", "pids", "_id")
UNPACKED = "unpacked.npy"
IDS_AT_ONCE = 4096


@dataclass(frozen=True, slots=True)
class VectorFile:
    """Rows of numbers. ``open(folder)``: the mapped array, (count, dim); an archive is unpacked into the folder before.
    ``ids``: yields the passage id of each row, if the file has them.
    """

    path: Path
    count: int
    dim: int
    open: Callable[[Path], Any]
    ids: Callable[[], Iterator[str]] | None = None


def vector_file(path: Path) -> VectorFile | None:
    """Return the vectors in a file with one of the endings, None for any other file. Raises BadFileError."""
    ending = path.suffix.lower()
    if ending in READERS:
        return READERS[ending](path)
    return None


def _npmmap(path: Path) -> VectorFile:
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
    return raw_vectors(path, "<f4", count, dim, 0)


def raw_vectors(path: Path, dtype: str, count: int, dim: int, start: int) -> VectorFile:
    """Return the rows of a file that begin at a byte."""
    return VectorFile(path, count, dim, lambda _: np.memmap(path, dtype, "r", start, (count, dim)))


def _big_ann(path: Path) -> VectorFile:
    """Two uint32, the numbers of vectors and dimensions, and the vectors."""
    with open(path, "rb") as handle:
        head = struct.unpack("<II", handle.read(8).ljust(8, b"\0"))
    if not all(head):
        raise BadFileError(f"{path} holds no vectors; it begins with their number and dimensions.")
    (count, dim), dtype = head, BIG_ANN[path.suffix.lower()]
    needed, size = 8 + count * dim * np.dtype(dtype).itemsize, path.stat().st_size
    if size != needed:
        raise BadFileError(
            f"{path} says {count} vectors of {dim} dimensions, which take {needed} bytes, and holds {size}; "
            "it was cut short or has another ending."
        )
    return raw_vectors(path, dtype, count, dim, 8)


def _texmex(path: Path) -> VectorFile:
    """Each vector follows its number of dimensions, an int32."""
    with open(path, "rb") as handle:
        (dim,) = struct.unpack("<i", handle.read(4).ljust(4, b"\0"))
    dtype, size = np.dtype(TEXMEX[path.suffix.lower()]), path.stat().st_size
    row = 4 + dim * dtype.itemsize
    if dim < 1 or size < row or size % row:
        raise BadFileError(
            f"{path} begins with a vector of {dim} dimensions, and its {size} bytes are not a whole number of such vectors; "
            "it was cut short or has another ending."
        )
    return VectorFile(path, size // row, dim, lambda _: _texmex_rows(path, dtype, row))


def _texmex_rows(path: Path, dtype: np.dtype[Any], row: int) -> Any:
    """Return the vectors without the numbers before them. Raises BadFileError if these differ."""
    rows = np.memmap(path, np.uint8, "r").reshape(-1, row)
    dim, step = (row - 4) // dtype.itemsize, max(1, 2**24 // row)
    for start in range(0, len(rows), step):
        heads = np.ascontiguousarray(rows[start : start + step, :4]).view("<i4")[:, 0]
        if (heads != dim).any():
            wrong = int(np.flatnonzero(heads != dim)[0])
            raise BadFileError(
                f"{path}, row {start + wrong + 1} of {len(rows)} has {heads[wrong]} dimensions and the first {dim}; "
                "all vectors of an index have the same number."
            )
    return np.memmap(path, dtype, "r", shape=(len(rows), row // dtype.itemsize))[
        :, 4 // dtype.itemsize :
    ]


def _npy(path: Path) -> VectorFile:
    vectors = load_array(path)
    if not _are_vectors(vectors.shape, vectors.dtype):
        raise BadFileError(
            f"{path} holds {vectors.dtype} of shape {vectors.shape}; rows of float vectors are needed."
        )
    return VectorFile(path, len(vectors), vectors.shape[1], lambda _: load_array(path))


def _are_vectors(shape: tuple[int, ...], dtype: np.dtype[Any]) -> bool:
    """Return whether an array is rows of floating-point numbers, or of numbers of 8 bits."""
    return (
        len(shape) == 2 and min(shape) > 0 and (dtype.kind == "f" or dtype in (np.int8, np.uint8))
    )


@dataclass(frozen=True, slots=True)
class _Member:
    """An array in an archive, by its header."""

    info: zipfile.ZipInfo
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def name(self) -> str:
        return self.info.filename.removesuffix(".npy")


def _npz(path: Path) -> VectorFile:
    """The only rows of numbers in an archive, or those with a usual name; and the ids beside them."""
    with unpacking(path, "archive of arrays"), zipfile.ZipFile(path) as archive:
        members = [_header(path, archive, info) for info in archive.infolist()]
    rows = [member for member in members if _are_vectors(member.shape, member.dtype)]
    named = [member for member in rows if member.name.lower() in VECTORS]
    if len(named or rows) != 1:
        have = ", ".join(f"{m.name} ({m.dtype} of shape {m.shape})" for m in members[:8])
        raise BadFileError(
            f"{path} holds {have or 'no arrays'}; one of them must be rows of float vectors, named vectors or embeddings if "
            "there are several."
        )
    (vectors,) = named or rows
    count, dim = vectors.shape
    ids = next((m for m in members if m.name.lower() in IDS and m.shape == (count,)), None)
    if ids is not None and ids.dtype.kind not in "USiu":
        raise BadFileError(
            f"{path} holds the array {ids.name!r} as {ids.dtype}, which is not read since it may run code; save the ids as text "
            "(dtype=str)."
        )
    chosen = ids
    return VectorFile(
        *(path, count, dim, lambda folder: _unpack(path, vectors, folder)),
        ids=None if chosen is None else lambda: _ids_of_member(path, chosen),
    )


def _header(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> _Member:
    """Read the header of an array. Raises BadFileError if the array has another size, or unpacks to far more than vectors do."""
    size, packed = info.file_size, info.compress_size
    if size > max(MAX_UNPACKED, MAX_RATIO * packed):
        raise BadFileError(
            f"{path} unpacks to more than {MAX_RATIO} times its size; unpack it yourself if it is what you want."
        )
    with archive.open(info) as handle:
        version = npy.read_magic(handle)  # type: ignore[no-untyped-call]
        read: Any = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, by_columns, dtype = read(handle)
        begins = handle.tell()
    count = 1
    for number in shape:
        count *= number
    if not dtype.hasobject and begins + count * dtype.itemsize != size:
        raise BadFileError(
            f"{path}: its array {info.filename!r} says {dtype} of shape {shape} and has {size} bytes; write it again."
        )
    if by_columns and len(shape) == 2:
        raise BadFileError(
            f"{path}: its array {info.filename!r} is stored by columns; save it with np.ascontiguousarray."
        )
    return _Member(info, shape, dtype)


@contextmanager
def _open_member(path: Path, member: _Member) -> Iterator[IO[bytes]]:
    """Open an array of an archive. Raises BadFileError if it is damaged."""
    with (
        unpacking(path, "archive of arrays"),
        zipfile.ZipFile(path) as archive,
        archive.open(member.info) as handle,
    ):
        yield handle


def _unpack(path: Path, member: _Member, folder: Path) -> Any:
    """Unpack an array into a file and map it."""
    target = folder / UNPACKED
    with _open_member(path, member) as handle, open(target, "wb") as out:
        shutil.copyfileobj(handle, out, 2**20)
    return load_array(target)


def _ids_of_member(path: Path, member: _Member) -> Iterator[str]:
    width = member.dtype.itemsize
    with _open_member(path, member) as handle:
        handle.read(member.info.file_size - width * member.shape[0])
        while piece := handle.read(width * IDS_AT_ONCE):
            yield from texts(np.frombuffer(piece, member.dtype))


def texts(array: Any) -> list[str]:
    """Return the ids in an array of texts or whole numbers."""
    values = array.tolist()
    return [v.decode("utf-8", "replace") if isinstance(v, bytes) else str(v) for v in values]


READERS: dict[str, Callable[[Path], VectorFile]] = {
    ".npmmap": _npmmap,
    ".npy": _npy,
    ".npz": _npz,
    **dict.fromkeys(TEXMEX, _texmex),
    **dict.fromkeys(BIG_ANN, _big_ann),
}
