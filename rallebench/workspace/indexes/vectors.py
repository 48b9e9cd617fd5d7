"""Passages × encoder → one memory-mapped file of vectors, encoded once for all vector indexes.

A folder ``<cache>/<key>/`` holds ``vectors.npy`` and ``progress.jsonl``: what is encoded, in which numeric
type and why, and one line with rows and sha256 for each finished shard. While shards are missing, the file
is called ``vectors.part``. A shard is encoded as a whole, so that where an encoding was interrupted
changes no bit, and its line is written after its vectors are on the disk: whatever happens, at most one
shard is encoded twice.
"""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rallebench.core.errors import UsageError
from rallebench.core.files import DiskError, is_full, room
from rallebench.core.locks import alone
from rallebench.core.types import digest
from rallebench.encoders import BulkEncoder, Encoder
from rallebench.workspace.indexes import _shards
from rallebench.workspace.indexes._encoding import Work
from rallebench.workspace.indexes._shards import (
    FORM,
    FORMAT,
    PROGRESS,
    VECTORS,
    Building,
    EncodedPassages,
    Passages,
    passages_in,
    read_progress,
)

LOCK = ".lock"
WAIT_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class CachedVectors:
    """A folder of cached vectors, as people see it."""

    key: str
    encoder: str
    corpus_sha256: str
    passages: int
    done: int
    dim: int
    dtype: str
    bytes: int

    @property
    def complete(self) -> bool:
        """Whether every passage is encoded."""
        return self.done == self.passages


def key_of(corpus_sha256: str, encoder: Encoder) -> str:
    """The folder's name: corpus, encoder, form of the text, and the numeric type that was asked for."""
    dtype = encoder.dtype if isinstance(encoder, BulkEncoder) else "float32"
    text = [FORMAT, FORM, _shards.SHARD, corpus_sha256, encoder.fingerprint, dtype]
    return digest(text)[:24]


def encode_passages(
    cache: Path, passages: Passages, corpus_sha256: str, encoder: Encoder
) -> Generator[Building, None, EncodedPassages]:
    """Yield progress; return the vectors of all passages, in order, encoding those that are not there yet.

    One process encodes at a time; another
    one that asks for the same vectors waits for it. Raises BackendError for a full disk and for a model
    that gives values which are no numbers.
    """
    folder = Path(cache) / key_of(corpus_sha256, encoder)
    with _disk_errors(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
    with turn(_lock_path(folder), partial(_others, folder)) as waiting:
        yield from waiting
        with _disk_errors(folder, 4 * encoder.dim * len(passages)):
            folder.mkdir(parents=True, exist_ok=True)
            work = Work(folder, passages, encoder, corpus_sha256)
            yield from work.run()
            return work.stored()


def kept_vectors(cache: Path) -> list[CachedVectors]:
    """The cached vectors, those of unfinished encodings too; damaged folders are left out."""
    folders = []
    for folder in sorted(p.parent for p in Path(cache).glob(f"*/{PROGRESS}")):
        with contextlib.suppress(OSError):
            header, finished = read_progress(folder)
            if header:
                size = sum(p.stat().st_size for p in folder.iterdir())
                names = ("encoder", "corpus_sha256", "passages", "dim", "dtype")
                done = passages_in(finished, header["passages"])
                values = {name: header[name] for name in names}
                folders.append(CachedVectors(folder.name, done=done, bytes=size, **values))
    return folders


def vectors_of(cache: Path, corpus_sha256: str, fingerprint: str) -> list[Path]:
    """The files with all vectors of a corpus by the encoder of that fingerprint, in whatever numeric type."""
    folders = [Path(cache) / v.key for v in kept_vectors(cache) if v.complete]
    same = (corpus_sha256, fingerprint)
    headers = ((folder / VECTORS, read_progress(folder)[0]) for folder in folders)
    return [
        path
        for path, header in headers
        if (header.get("corpus_sha256"), header.get("fingerprint")) == same and path.is_file()
    ]


def delete_vectors(cache: Path, key: str) -> int:
    """Delete one folder of cached vectors; return its bytes. Indexes keep what they hold.

    Raises UsageError if there is none of that key, or if another build is writing it.
    """
    folder = Path(cache) / key
    if not key or folder.parent != Path(cache) or not (folder / PROGRESS).exists():
        raise UsageError(f"There are no vectors {key!r} in {cache}.")
    refusal = f"The vectors {key!r} are being written; stop that build first."
    with alone(_lock_path(folder), refusal, stays=True):
        size = sum(p.stat().st_size for p in folder.iterdir())
        shutil.rmtree(folder)
    return size


def _lock_path(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}{LOCK}")


@contextlib.contextmanager
def turn(path: Path, progress: Callable[[float], Building]) -> Iterator[Iterator[Building]]:
    """Hold the lock ``path`` once the iterator has ended: it waits for the lock, with ``progress`` by the seconds so far."""
    from filelock import FileLock, Timeout

    lock = FileLock(path, thread_local=False)
    started = time.perf_counter()

    def waiting() -> Iterator[Building]:
        while True:
            try:
                lock.acquire(timeout=0)
                return
            except Timeout:
                yield progress(time.perf_counter() - started)
                time.sleep(WAIT_SECONDS)

    try:
        yield waiting()
    finally:
        lock.release()


def _others(folder: Path, seconds: float) -> Building:
    """How far another process is."""
    header, finished = read_progress(folder)
    total = header.get("passages", 0)
    done = passages_in(finished, total)
    stage = "waiting for another build that encodes the same passages"
    return Building(stage, done, total, seconds)


@contextlib.contextmanager
def _disk_errors(folder: Path, needed: int = 0) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DiskError(
            f"Could not write the vectors in {folder}: {error.strerror or error}; free space, or use another "
            "workspace, and run it again: what is encoded is kept."
            + (f" {room(folder, needed)}" if is_full(error) else "")
        ) from error
