"""Encoding passages into cached vectors: verify finished shards, encode the missing ones, shard by shard.

A shard is encoded as a whole, so that an interruption changes no bit of the result. Its line is written once its vectors
are on disk, so that at most one shard is ever encoded twice.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import itertools
import json
import os
import shutil
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from rallebench.core.arrays import load_array
from rallebench.core.errors import BackendError
from rallebench.core.events import Progress
from rallebench.core.files import Appender, DiskError, is_full, no_room, writing
from rallebench.core.locks import turn
from rallebench.core.types import Json
from rallebench.encoders import Batches, BulkEncoder, Encoder, Vectors
from rallebench.encoders.checking import VectorCheck, significant_letters
from rallebench.encoders.numeric_types import NumericType, choose_type
from rallebench.retrievers import Passages
from rallebench.workspace.indexes import vectors as stored
from rallebench.workspace.indexes.rates import save_rate
from rallebench.workspace.indexes.vectors import (
    FORM,
    PART,
    PROGRESS,
    STARTER_VECTORS,
    VECTORS,
    VectorsHeader,
    lock_path,
    passage_text,
    passages_in,
    read_progress,
    take_shipped,
    vectors_key,
)

BATCH = 64
"""Passages per call, for encoders without batches of their own."""


@dataclass(frozen=True)
class EncodedPassages:
    """Vectors on disk, read-only: float32 (n, dim), unit length. ``encoding``: facts about their making."""

    vectors: Vectors
    dtype: str
    encoding: Json


def encode_passages(
    cache: Path,
    passages: Passages,
    corpus_sha256: str,
    encoder: Encoder,
    *,
    shipped: Path = STARTER_VECTORS,
) -> Generator[Progress, None, EncodedPassages]:
    """Yield progress; return the vectors of all passages, in order, encoding the missing ones.

    ``shipped``: vectors that come with the package, used if they are of these passages and this encoder. Only one process
    encodes at a time; others that need the same vectors wait for it. Raises BackendError for a full disk and for a model
    that returns values that are not finite.
    """
    folder = Path(cache) / vectors_key(corpus_sha256, encoder)
    with _disk_errors(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)

    def others(seconds: float) -> Progress:
        """Return the progress of another process."""
        header, finished = read_progress(folder)
        total = header.passages if header else 0
        stage = "waiting for another build that encodes the same passages"
        return Progress("", passages_in(finished, total), total, stage, seconds=seconds)

    with turn(lock_path(folder), others) as waiting:
        yield from waiting
        with _disk_errors(folder, 4 * encoder.dim * len(passages)):
            folder.mkdir(parents=True, exist_ok=True)
            take_shipped(folder, shipped, corpus_sha256, encoder)
            return (yield from _Encoding(folder, passages, encoder, corpus_sha256).run())


class _Encoding:
    """One encoding, new or resumed. Only the process that holds the lock has one."""

    def __init__(
        self, folder: Path, passages: Passages, encoder: Encoder, corpus_sha256: str
    ) -> None:
        self.folder, self.passages, self.encoder = folder, passages, encoder
        self.shape = (len(passages), encoder.dim)
        self.head = _npy_head(self.shape)
        self.size = len(self.head) + 4 * self.shape[0] * self.shape[1]
        self.corpus_sha256 = corpus_sha256
        self.started = time.perf_counter()
        self._header: VectorsHeader | None = None
        self.finished: dict[int, str] = {}

    def run(self) -> Generator[Progress, None, EncodedPassages]:
        """Verify existing shards, encode missing ones, rename the file; return the finished vectors."""
        self._read_progress()
        if self._header is None:
            choice = yield from self._choose()
            self._begin(choice)
        yield from self._verify()
        missing = [first for first in self._firsts if first not in self.finished]
        if missing or not (self.folder / VECTORS).exists():
            yield from self._encode(missing)
            os.replace(self.folder / PART, self.folder / VECTORS)
        yield self._progress("encoding passages", self.shape[0])
        vectors = load_array(self.folder / VECTORS, np.float32, 2)
        return EncodedPassages(vectors, self.header.dtype, self.header.measured)

    @property
    def header(self) -> VectorsHeader:
        """The header of the encoding once it has begun."""
        assert self._header is not None
        return self._header

    @property
    def _firsts(self) -> range:
        """The first row of each shard."""
        return range(0, self.shape[0], stored.SHARD)

    def _progress(self, stage: str, done: int, rate: float = 0.0) -> Progress:
        seconds = time.perf_counter() - self.started
        return Progress("", done, self.shape[0], stage, seconds=seconds, rate=rate)

    def _read_progress(self) -> None:
        """Read the shards that an earlier session finished; start over if its progress file does not match."""
        header, finished = read_progress(self.folder)
        fits = header and (header.passages, header.dim) == self.shape
        if fits and self._file().exists():
            self._header = header
            self.finished = {f: sha for f, sha in finished.items() if f in self._firsts}

    def _file(self) -> Path:
        whole, part = self.folder / VECTORS, self.folder / PART
        return part if part.exists() else whole

    def _choose(self) -> Generator[Progress, None, NumericType]:
        yield Progress("", message="choosing the numeric type")
        bulk(
            self.encoder, "float32"
        )  # a query-only encoder raises here, before anything is written
        return choose_type(self.encoder, len(self.passages), self._text)

    def _begin(self, choice: NumericType) -> None:
        """Create a file of the full size, to detect a full disk now; then write the header."""
        for name in (PROGRESS, VECTORS, PART):
            (self.folder / name).unlink(missing_ok=True)
        try:
            with open(self.folder / PART, "wb") as handle:
                _reserve(handle, self.size)
        except OSError:
            (self.folder / PART).unlink(missing_ok=True)
            raise
        self._header = VectorsHeader(
            self.encoder.name,
            self.encoder.fingerprint,
            self.corpus_sha256,
            *self.shape,
            choice.dtype,
            choice.measured,
            FORM,
        )
        with Appender(self.folder / PROGRESS) as progress:
            progress.write(self._header.to_json())

    def _verify(self) -> Iterator[Progress]:
        """Forget the finished shards whose vectors have changed."""
        good: dict[int, str] = {}
        with open(self._file(), "rb") as handle:
            whole = (
                handle.read(len(self.head)) == self.head
                and os.fstat(handle.fileno()).st_size == self.size
            )
            for first, sha256 in sorted(self.finished.items()):
                yield self._progress("checking encoded passages", first)
                handle.seek(self._place(first))
                piece = handle.read(4 * self._rows(first) * self.shape[1])
                if _sha256(piece) == sha256:
                    good[first] = sha256
        if self._file().name == VECTORS and not (whole and len(good) == len(self._firsts)):
            # Indexes may link to the same file, so it is replaced, never written to.
            copy = self.folder / "copy"
            try:
                shutil.copyfile(self.folder / VECTORS, copy)
            except OSError:
                copy.unlink(missing_ok=True)
                raise
            os.replace(copy, self.folder / PART)
            (self.folder / VECTORS).unlink()
        if len(good) < len(self.finished):
            with writing(self.folder / PROGRESS) as out:
                for line in (self.header.to_json(), *itertools.starmap(self._line, good.items())):
                    out.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")
        self.finished = good

    def _place(self, first: int) -> int:
        """Return the byte offset of a shard."""
        return len(self.head) + 4 * first * self.shape[1]

    def _text(self, row: int) -> str:
        return passage_text(self.passages[row])

    def _rows(self, first: int) -> int:
        return min(stored.SHARD, self.shape[0] - first)

    def _line(self, first: int, sha256: str) -> dict[str, Any]:
        return {"first": first, "rows": self._rows(first), "sha256": sha256}

    def _encode(self, missing: Sequence[int]) -> Iterator[Progress]:
        encode = bulk(self.encoder, self.header.dtype)
        check = VectorCheck(self.encoder.name, "")
        before = sum(self._rows(first) for first in self.finished)
        done, began = 0, time.perf_counter()
        earlier = getattr(self.encoder, "encoded", 0)
        with open(self.folder / PART, "r+b") as file, Appender(self.folder / PROGRESS) as progress:
            file.write(self.head)
            file.truncate(self.size)
            for first in missing:
                texts = list(map(self._text, range(first, first + self._rows(first))))
                # A repeated text is encoded once, because its last digits would differ in another batch.
                numbers: dict[str, int] = {}
                places = np.array([numbers.setdefault(text, len(numbers)) for text in texts])
                counts = np.bincount(places)
                # Filled with NaN, so that a row that an encoder leaves out is noticed like a broken one.
                distinct = np.full((len(numbers), self.shape[1]), np.nan, dtype=np.float32)
                for rows, vectors in encode(list(numbers)):
                    distinct[rows] = vectors
                    done += int(counts[rows].sum())
                    rate = done / max(time.perf_counter() - began, 1e-9)
                    yield self._progress("encoding passages", before + done, rate)
                shard = distinct[places]
                self._check(check, shard, texts, first)
                piece = shard.astype("<f4", copy=False).tobytes()
                file.seek(self._place(first))
                file.write(piece)
                file.flush()
                os.fsync(file.fileno())
                progress.write(self._line(first, _sha256(piece)))
        anew = getattr(self.encoder, "encoded", done) - earlier  # the others were known already
        save_rate(self.folder.parent, self.encoder.name, anew, time.perf_counter() - began)

    def _check(self, check: VectorCheck, shard: Vectors, texts: Sequence[str], first: int) -> None:
        """Raise BackendError for broken vectors of an encoder without its own check, and for rows that it left out."""
        fault = check.fault(
            shard,
            lambda row: significant_letters(texts[row]),
            lambda row: f"the passage {self.passages[first + row].doc_id!r}",
        )
        if fault:
            raise BackendError(
                f"The encoder {self.encoder.name!r} gave {fault}: the model is damaged, does not work in "
                f"{self.header.dtype}, or does not know their words; download it again, choose dtype=float32, or another encoder."
            )


def bulk(encoder: Encoder, dtype: str) -> Callable[[Sequence[str]], Batches]:
    """Return the function that encodes passages: the encoder's own batches, or pieces of similar length."""
    if isinstance(encoder, BulkEncoder):
        return encoder.bulk(dtype)

    def encode(texts: Sequence[str]) -> Batches:
        order = np.argsort([-len(text) for text in texts], kind="stable")
        for start in range(0, len(order), BATCH):
            rows = order[start : start + BATCH]
            yield rows, encoder.encode([texts[row] for row in rows], role="passage")

    return encode


@contextlib.contextmanager
def _disk_errors(folder: Path, needed: int = 0) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = no_room(folder, error, needed) if is_full(error) else error.strerror or error
        raise DiskError(
            f"Could not write the vectors in {folder}: {reason}; free space, or use another workspace, and run it again; "
            "encoded vectors are kept."
        ) from error


def _reserve(handle: BinaryIO, size: int) -> None:
    """Make the file ``size`` bytes long and, if the system supports that, allocate them on disk."""
    try:
        os.posix_fallocate(handle.fileno(), 0, size)
    except AttributeError:  # not supported by this system
        handle.truncate(size)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
            raise
        handle.truncate(size)


def _sha256(piece: bytes) -> str:
    return hashlib.sha256(piece).hexdigest()


def _npy_head(shape: tuple[int, int]) -> bytes:
    """Return the header of an .npy file of float32 with this shape."""
    out = io.BytesIO()
    head = {"descr": "<f4", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(out, head)  # type: ignore[no-untyped-call]
    return out.getvalue()
