"""An inverted index made in pieces of bounded memory and merged on disk (single-pass in-memory indexing, Heinz and Zobel 2003).

A piece holds the postings of consecutive passages, sorted by token. The merge reads a range of tokens from all pieces
at a time, so its output is in order from front to back and neither step holds more than a piece.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

TOKEN_BYTES = 48
"""Peak memory for a token of a piece: its number, its sort key, and both again while equal keys are counted."""


class _Files(NamedTuple):
    """Contents of the temporary files: the distinct tokens of each piece, their numbers of postings, and the postings."""

    tokens: NDArray[np.int32]
    spans: NDArray[np.int32]
    rows: NDArray[np.int32]
    counts: NDArray[np.float32]


TYPES = {"tokens": "<i4", "spans": "<i4", "rows": "<i4", "counts": "<f4"}


@dataclass(frozen=True, slots=True)
class Block:
    """Postings sorted by token, then by row; arrays of one length.

    ``tokens``, ``rows``: int32; ``counts``: float32, occurrences of the token in the passage.
    """

    tokens: NDArray[np.int32]
    rows: NDArray[np.int32]
    counts: NDArray[np.float32]


@dataclass(slots=True)
class _Cursor:
    """Unread part of a piece: tokens from ``token`` up to ``end``, and their first posting."""

    token: int
    end: int
    posting: int


class Postings:
    """Postings of passages added in order.

    ``folder``: created for temporary files. ``memory``: bytes for a piece. Besides, the length of every passage (4 bytes) and
    the number of passages with each token (8 bytes) stay in memory.
    """

    def __init__(self, folder: Path, memory: int) -> None:
        folder.mkdir()
        self.lengths = array("i")
        self.frequencies = np.zeros(0, dtype=np.int64)
        """Number of passages with each token, of the pieces written so far."""
        self._folder, self._most = folder, max(1, memory // TOKEN_BYTES)
        self._tokens = array("i")
        self._unwritten = 0
        self._cursors: list[_Cursor] = []

    def add(self, tokens: Sequence[int]) -> None:
        """Add the next passage; ``tokens``: numbers from 0, repeated as often as they occur."""
        self._tokens.extend(tokens)
        self.lengths.append(len(tokens))
        self._unwritten += 1
        if len(self._tokens) >= self._most:
            self.write_piece()

    def write_piece(self) -> None:
        """Write the postings of the passages added since the last piece. Raises OSError."""
        first = len(self.lengths) - self._unwritten
        lengths = np.frombuffer(self.lengths, dtype=np.int32)[first:]
        rows = np.repeat(np.arange(first, len(self.lengths)), lengths)
        keys = np.frombuffer(self._tokens, dtype=np.int32).astype(np.int64) << 32 | rows
        del rows
        self._tokens, self._unwritten = array("i"), 0
        keys.sort()
        starts = np.flatnonzero(np.diff(keys, prepend=-1))
        counts = np.diff(starts, append=len(keys))
        keys = keys[starts]
        tokens, spans = np.unique(keys >> 32, return_counts=True)
        if len(tokens) and tokens[-1] >= len(self.frequencies):
            self.frequencies.resize(int(tokens[-1]) * 5 // 4 + 1, refcheck=False)
        self.frequencies[tokens] += spans
        token, posting = self._append("tokens", tokens), self._append("rows", keys & 0xFFFFFFFF)
        self._append("spans", spans)
        self._append("counts", counts)
        self._cursors.append(_Cursor(token, token + len(tokens), posting))

    def _append(self, name: str, numbers: NDArray[np.int64]) -> int:
        """Append numbers to a temporary file; return how many it held before."""
        kind = np.dtype(TYPES[name])
        with open(self._folder / name, "ab") as handle:
            before = handle.tell() // kind.itemsize
            handle.write(np.ascontiguousarray(numbers, dtype=kind).data)
        return before

    def blocks(self) -> Iterator[Block]:
        """Yield all postings in order of token, then of row. Postings of a token that exceed a piece come in several blocks."""
        self.write_piece()
        ends = np.cumsum(self.frequencies)
        if not ends.size or not ends[-1]:
            return
        files = _Files(
            *(np.memmap(self._folder / name, TYPES[name], "r") for name in _Files._fields)
        )
        first = 0
        while first < len(ends):
            room = self._most + (ends[first - 1] if first else 0)
            after = max(first + 1, int(np.searchsorted(ends, room, side="right")))
            parts = (self._read(cursor, after, files) for cursor in self._cursors)
            if after == first + 1:
                yield from (part for part in parts if len(part.rows))
            else:
                yield _join(list(parts))
            first = after

    def _read(self, cursor: _Cursor, after: int, files: _Files) -> Block:
        """Return a piece's postings of the tokens before ``after``, and move its cursor there."""
        ahead = files.tokens[cursor.token : cursor.end]
        some = slice(cursor.token, cursor.token + int(np.searchsorted(ahead, after)))
        spans = files.spans[some]
        postings = slice(cursor.posting, cursor.posting + int(spans.sum(dtype=np.int64)))
        cursor.token, cursor.posting = some.stop, postings.stop
        return Block(
            np.repeat(files.tokens[some], spans),
            files.rows[postings],
            files.counts[postings],
        )


def _join(parts: list[Block]) -> Block:
    """Merge pieces in order of passages into one block."""
    tokens = np.concatenate([part.tokens for part in parts])
    order = np.argsort(tokens, kind="stable")
    rows = np.concatenate([part.rows for part in parts])
    counts = np.concatenate([part.counts for part in parts])
    return Block(tokens[order], rows[order], counts[order])
