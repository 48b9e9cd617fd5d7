"""Encoded passages on disk: one memory-mapped file of vectors per corpus and encoder, for all vector indexes.

A folder ``<cache>/<key>/`` holds ``vectors.npy`` and ``progress.jsonl``: a header with the corpus, the numeric type
and the reason for it, and one line with rows and sha256 for each finished shard. While shards are missing, the
file is called ``vectors.part``. ``encoding`` writes them.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from rallebench.core.errors import BadFileError, UsageError
from rallebench.core.json_values import JsonValue
from rallebench.core.locks import alone
from rallebench.core.own_files import damage_error, parse
from rallebench.core.strict_numbers import Between, Count
from rallebench.core.types import Json, Passage, digest
from rallebench.encoders import BulkEncoder, Encoder

VECTORS, PART, PROGRESS = "vectors.npy", "vectors.part", "progress.jsonl"
FORMAT, FORM = "rallebench-vectors/1", "{title}, {text}"
MEND = "delete these vectors, and they are made again when they are next needed"
SHARD = 1024
"""Passages per shard, sorted by length inside: a larger shard pads less, a smaller one loses less when interrupted."""


STARTER_VECTORS = Path(__file__).resolve().parents[2] / "starter" / "vectors"
"""Starter passages encoded by the default encoder in float32, as a cache folder; ``python -m tools.starter_vectors`` writes it."""


@dataclass(frozen=True, slots=True)
class CachedVectors:
    """A folder of cached vectors. ``finished``: first row → sha256 of each finished shard. ``problem``: reason why it cannot
    be used; then only its size is known, and the other fields are '', 0 and {}."""

    folder: Path
    encoder: str
    fingerprint: str
    corpus_sha256: str
    passages: int
    dim: int
    dtype: str
    finished: Mapping[int, str]
    bytes: int
    problem: str = ""

    @property
    def key(self) -> str:
        return self.folder.name

    @property
    def passages_done(self) -> int:
        return passages_in(self.finished, self.passages)

    @property
    def complete(self) -> bool:
        return not self.problem and self.passages_done == self.passages


def vectors_key(corpus_sha256: str, encoder: Encoder) -> str:
    """Return the folder's name: corpus, encoder, form of the text, and requested numeric type."""
    return digest([FORMAT, FORM, SHARD, corpus_sha256, encoder.fingerprint, asked_dtype(encoder)])[
        :24
    ]


def asked_dtype(encoder: Encoder) -> str:
    """Return the requested numeric type."""
    return encoder.dtype if isinstance(encoder, BulkEncoder) else "float32"


def passage_text(passage: Passage) -> str:
    """Return the string that is embedded."""
    return FORM.format(title=passage.title, text=passage.text)


@dataclass(frozen=True, slots=True)
class VectorsHeader:
    """The first line of ``progress.jsonl``. ``form``: the form of the encoded text; ``measured``: the figures behind the
    choice of the numeric type."""

    encoder: str
    fingerprint: str
    corpus_sha256: str
    passages: Count
    dim: Annotated[int, Between(1, 2**20)]
    dtype: Annotated[str, Field(pattern="^(float32|bfloat16)$")]
    measured: Json
    form: str = ""
    format: Literal["rallebench-vectors/1"] = "rallebench-vectors/1"

    def to_json(self) -> dict[str, JsonValue]:
        """The line as JSON."""
        return {
            "format": self.format,
            "form": self.form,
            "encoder": self.encoder,
            "fingerprint": self.fingerprint,
            "corpus_sha256": self.corpus_sha256,
            "passages": self.passages,
            "dim": self.dim,
            "dtype": self.dtype,
            "measured": dict(self.measured),
        }

    @classmethod
    def from_json(cls, document: Any, *, path: Path) -> VectorsHeader:
        """The header in ``document``, the first line of the file ``path``. Raises BadFileError."""
        if isinstance(document, dict) and "format" not in document:
            raise damage_error(path, MEND)
        return parse(document, cls, path, MEND)


@dataclass(frozen=True, slots=True)
class _Shard:
    """A later line of ``progress.jsonl``."""

    first: Count
    sha256: str


def read_progress(folder: Path) -> tuple[VectorsHeader | None, dict[int, str]]:
    """Return the header (None if foreign or damaged) and first row → sha256 of the finished shards; torn lines are skipped.

    The result is not trusted: vectors are compared with their sha256 before use.
    """
    path, lines = folder / PROGRESS, list[JsonValue]()
    with contextlib.suppress(FileNotFoundError), open(folder / PROGRESS, "rb") as handle:
        for line in handle:
            try:
                lines.append(json.loads(line))
            except (ValueError, RecursionError):
                lines.append(None)
    try:
        header = VectorsHeader.from_json(lines[0] if lines else None, path=path)
    except BadFileError:
        return None, {}
    shards: dict[int, str] = {}
    for finished in lines[1:]:
        with contextlib.suppress(BadFileError):
            shard = parse(finished, _Shard, path, MEND)
            if shard.first in range(0, header.passages, SHARD):
                shards[shard.first] = shard.sha256
    return header, shards


def take_shipped(folder: Path, shipped: Path, corpus_sha256: str, encoder: Encoder) -> None:
    """Copy the vectors in ``shipped`` into the cache ``folder`` if that is empty and they are of exactly these passages, this
    encoder and its numeric type. Like all cached vectors, they are compared with their sha256 before use."""
    header, _ = read_progress(shipped)
    if header is None or asked_dtype(encoder) not in ("auto", header.dtype):
        return
    fits = (header.corpus_sha256, header.fingerprint, header.form) == (
        corpus_sha256,
        encoder.fingerprint,
        FORM,
    )
    if fits and not (folder / PROGRESS).exists():
        for name in (VECTORS, PROGRESS):  # in this order: without the second, the first is ignored
            shutil.copyfile(shipped / name, folder / name)


def passages_in(finished: Mapping[int, str], total: int) -> int:
    """Return the number of ``total`` passages that are in finished shards."""
    return sum(min(SHARD, total - first) for first in finished)


def kept_vectors(cache: Path) -> list[CachedVectors]:
    """Return all cached vectors, including unfinished ones, and damaged folders with their problem."""
    cached = []
    for folder in sorted(path.parent for path in Path(cache).glob(f"*/{PROGRESS}")):
        with contextlib.suppress(OSError):
            header, finished = read_progress(folder)
            size = sum(path.stat().st_size for path in folder.iterdir())
            if header:
                cached.append(
                    CachedVectors(
                        folder,
                        header.encoder,
                        header.fingerprint,
                        header.corpus_sha256,
                        header.passages,
                        header.dim,
                        header.dtype,
                        finished,
                        size,
                    )
                )
            else:
                problem = str(damage_error(folder / PROGRESS, MEND))
                cached.append(CachedVectors(folder, "", "", "", 0, 0, "", {}, size, problem))
    return cached


def complete_vectors(cache: Path, corpus_sha256: str, fingerprint: str) -> list[Path]:
    """Return the files with all vectors of a corpus from the encoder with that fingerprint, in any numeric type."""
    same = (corpus_sha256, fingerprint)
    return [
        cached.folder / VECTORS
        for cached in kept_vectors(cache)
        if cached.complete
        and (cached.corpus_sha256, cached.fingerprint) == same
        and (cached.folder / VECTORS).is_file()
    ]


def delete_vectors(cache: Path, key: str) -> int:
    """Delete one folder of cached vectors; return its bytes. Indexes keep what they hold.

    Raises UsageError for an unknown key, or if another build is writing it.
    """
    folder = Path(cache) / key
    if not key or folder.parent != Path(cache) or not (folder / PROGRESS).exists():
        raise UsageError(f"There are no vectors {key!r} in {cache}.")
    refusal = f"The vectors {key!r} are being written; stop that build first."
    with alone(lock_path(folder), refusal, stays=True):
        size = sum(path.stat().st_size for path in folder.iterdir())
        shutil.rmtree(folder)
    return size


def lock_path(folder: Path) -> Path:
    """Return the lock that a writer of ``folder`` holds."""
    return folder.with_name(f".{folder.name}.lock")
