"""A text file as a stream of UTF-8 bytes: unpacked (gzip, bzip2, xz, Zstandard) and decoded, in one pass and constant memory.

Blocks of UTF-8 pass unchanged. The encoding is decided at the first block beyond ASCII (``encodings.guess_encoding``), so a
pipe can be read, too.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO

from rallebench.core.archives import MAX_RATIO, MAX_UNPACKED, unpacking
from rallebench.core.encodings import UTF8, guess_encoding, mark_encoding, sample_range
from rallebench.core.errors import BadFileError, MissingPackageError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

BLOCK = 2**18
ENDINGS = (".gz", ".bz2", ".xz", ".zst")
"""Ends of the names of packed files."""

MARKED = ("utf-16", "utf-32")
"""Encodings whose byte order is read from a mark."""
_DAMAGED = "rallebench-damaged"


def _mark_damage(error: UnicodeError) -> tuple[str | bytes, int]:
    """Turn bytes that are not of the encoding, and half surrogate pairs, into a byte that no UTF-8 has."""
    if isinstance(error, UnicodeEncodeError):
        return b"\xff", error.end
    assert isinstance(error, UnicodeDecodeError)
    return "\udcff", error.end


codecs.register_error(_DAMAGED, _mark_damage)


def plain_name(name: str) -> str:
    """Return a file's name without the ending of a packed file.

    >>> plain_name("Corpus.jsonl.GZ"), plain_name("a.tar.bz2"), plain_name("c.tsv")
    ('Corpus.jsonl', 'a.tar', 'c.tsv')
    """
    return next((name[: -len(end)] for end in ENDINGS if name.lower().endswith(end)), name)


def with_packed(*names: str) -> tuple[str, ...]:
    """Return the names, then those of the files packed.

    >>> with_packed("a.jsonl")[:2]
    ('a.jsonl', 'a.jsonl.gz')
    """
    return tuple(f"{name}{end}" for end in ("", *ENDINGS) for name in names)


class TextStream(io.RawIOBase):
    """UTF-8 bytes of a file. ``encoding``: of the file, '' until it is decided or if none fits; ``guessed``: True if nothing
    declares it; ``taken``: bytes of the file that were read; ``packed``: the kind of a packed file, or ''."""

    def __init__(self, path: Path, raw: io.BufferedReader, encoding: str = "") -> None:
        self._path, self._raw, self._named = path, raw, encoding
        self.packed, self._file = unpack_stream(raw)
        self.encoding, self.guessed, self.taken = "", False, 0
        self._unpacked, self._held, self._decided, self._begun = 0, b"", False, False
        self._decoder: codecs.IncrementalDecoder | None = None
        self._seekable = raw.seekable()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        while not self._held:
            block = self._read_block()
            if not self._decided:
                block = self._look(block)
            ended = not block
            if self._decoder:
                text = self._decoder.decode(block, final=ended)
                block = text.encode(UTF8, _DAMAGED)
            self._held = block
            if ended:
                break
        with memoryview(buffer) as room:
            count = min(len(room), len(self._held))
            room[:count] = self._held[:count]
        self._held = self._held[count:]
        return count

    def _read_block(self) -> bytes:
        """Return the next bytes of the file, unpacked; b'' at its end. Raises BadFileError for a damaged packed file."""
        if not self.packed:
            block = self._raw.read(BLOCK) if self._seekable else self._raw.read1(BLOCK)
            self.taken += len(block)
            return block
        with unpacking(self._path, f"{self.packed} file"):
            block = self._file.read(BLOCK)
        self._unpacked += len(block)
        self.taken = self._raw.tell() if self._seekable else self.taken
        if self._seekable and self._unpacked > max(MAX_UNPACKED, MAX_RATIO * self.taken):
            raise BadFileError(
                f"{self._path} is a {self.packed} file that unpacks to more than {MAX_RATIO} times its size and to more than "
                f"{MAX_UNPACKED // 2**20:,} MB; unpack it yourself if it is what you want."
            )
        return block

    def _look(self, block: bytes) -> bytes:
        """Decide on the encoding if ``block`` is not ASCII; return it, with further blocks if more bytes are needed."""
        first, self._begun = not self._begun, True
        mark = mark_encoding(block[:4]) if first else ""
        if mark and self._named in ("", *MARKED, mark):
            self._decide(mark)
        elif self._named and self._named not in MARKED:
            self._decide(self._named)
        if self._decided or (block.isascii() and (not first or b"\0" not in block)):
            return block
        more, (start, end) = b".", sample_range(block)
        while len(block) < end and more:
            more = self._read_block()
            block += more
        encoding = guess_encoding(block[start:end], ended=len(block) < end)
        if self._named:  # UTF-16 or UTF-32 without a mark
            encoding = encoding if encoding.startswith(self._named) else f"{self._named}-le"
        self._decide(encoding, guessed=not self._named and encoding not in ("", UTF8))
        return block

    def _decide(self, encoding: str, guessed: bool = False) -> None:
        self._decided, self.encoding, self.guessed = True, encoding, guessed
        if encoding not in ("", UTF8):
            self._decoder = codecs.getincrementaldecoder(encoding)(_DAMAGED)


@contextmanager
def open_text(
    path: Path, encoding: str = ""
) -> Iterator[tuple[io.BufferedReader[TextStream], TextStream]]:
    """Open a text file: (its UTF-8 bytes, the stream behind them). ``encoding``: see ``encodings.check_encoding``.

    Raises BadFileError if it cannot be read, MissingPackageError for Zstandard without its package.
    """
    try:
        with open(path, "rb") as raw:
            stream = TextStream(path, raw, encoding)
            with io.BufferedReader(stream, BLOCK) as handle:
                yield handle, stream
    except FileNotFoundError:
        raise BadFileError(f"{path} does not exist.") from None
    except OSError as error:
        raise BadFileError(f"{path} cannot be read: {error.strerror or error}.") from None


def unpack_stream(raw: io.BufferedReader) -> tuple[str, IO[bytes]]:
    """(kind of a packed file, its content); the kind is '' for a plain file."""
    head = raw.peek(10)[:10]
    for kind, mark, opener in _KINDS:
        if mark.match(head):
            return kind, opener(raw)
    return "", raw


def _open_zstd(raw: BinaryIO) -> Any:
    try:
        return _ZstdFile(raw)
    except ImportError:
        raise MissingPackageError("zstandard", "but is needed for Zstandard files") from None


class _ZstdFile:
    """A Zstandard file for reading; unlike ``zstandard.open``, it notices a file that is cut off."""

    PIECE = 2**11
    """Bytes that are unpacked at once, at most to 64 MB."""

    def __init__(self, raw: BinaryIO) -> None:
        import zstandard

        self._raw, self._held = raw, bytearray()
        self._make: Callable[[], Any] = zstandard.ZstdDecompressor(
            max_window_size=2**27
        ).decompressobj
        self._frame: Any = None

    def read(self, size: int) -> bytes:
        while len(self._held) < size and (piece := self._raw.read(self.PIECE)):
            while piece:
                self._frame = self._frame or self._make()
                self._held += self._frame.decompress(piece)
                piece = b""
                if self._frame.eof:  # a file may have several frames
                    piece, self._frame = self._frame.unused_data, None
        if not self._held and self._frame is not None:
            raise EOFError("it is cut off")
        block = bytes(self._held[:size])
        del self._held[:size]
        return block


_KINDS: tuple[tuple[str, re.Pattern[bytes], Callable[[Any], Any]], ...] = (
    ("gzip", re.compile(rb"\x1f\x8b"), lambda raw: gzip.GzipFile(fileobj=raw)),
    ("bzip2", re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)"), bz2.BZ2File),
    ("xz", re.compile(rb"\xfd7zXZ\0"), lzma.LZMAFile),
    ("Zstandard", re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"), _open_zstd),
)
