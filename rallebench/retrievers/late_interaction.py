"""Late interaction over a whole corpus: the vectors of all tokens, compared with the query's exactly (MaxSim).

Khattab and Zaharia 2020, arXiv:2004.12832. Every search reads all vectors, so the corpus has to fit in memory; a larger
one is searched by another index and re-ranked (``rerank_late``).
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from rallebench.core.arrays import load_array
from rallebench.core.errors import BackendMemoryError
from rallebench.core.memory import free_ram_bytes, size
from rallebench.core.settings import dataclass_form, declare
from rallebench.core.types import Hit, Json
from rallebench.corpora.store import PassageStore
from rallebench.retrievers import INDEX_KINDS, Passages
from rallebench.retrievers._late_encoder import LateEncoder, Tokens, late_encoder, maxsim
from rallebench.retrievers._parts import Indexed
from rallebench.retrievers._sentence_models import (
    MODEL,
    PassageModelSettings,
    check_dimension,
    check_model,
    damaged_array,
    read_model_settings,
)
from rallebench.retrievers.splade import ranked_hits

FOLDER = "late"
PIECE = 256
"""Passages encoded at once."""

SAMPLE = 2000
"""Passages whose tokens are counted before anything is encoded."""

BLOCK = 8192
"""Tokens compared at once with a query."""

HEAD = 128
"""Bytes before the vectors in their file."""


@dataclass(frozen=True, slots=True)
class LateSettings(PassageModelSettings):
    """Settings of an index over the vectors of tokens."""

    vectors: str = declare(
        str,
        "float32",
        choices=("float32", "float16"),
        about="numeric type of the stored vectors; float16 takes half the memory",
    )
    most_gb: float = declare(
        float,
        8.0,
        0.001,
        1e6,
        about="largest size of all vectors in GB; a larger corpus is refused",
    )


class LateInteraction(Indexed):
    """A loaded index: every passage is scored."""

    titled = True
    prefix_stable = True

    def __init__(
        self, name: str, folder: Path, fingerprint: str, encoder: LateEncoder, vectors: TokenVectors
    ) -> None:
        super().__init__(name, fingerprint, PassageStore(folder))
        self.scale = f"maxsim {encoder.fingerprint}"
        self._encoder, self._vectors = encoder, vectors

    def search(self, queries: Sequence[str], k: int) -> list[tuple[Hit, ...]]:
        """Return hits best first; ties go to the earlier passage."""
        filled = [number for number, query in enumerate(queries) if query.strip()]
        results: list[tuple[Hit, ...]] = [()] * len(queries)
        encoded = self._encoder.encode([queries[number] for number in filled], role="query")
        for number, tokens in zip(filled, encoded):
            scores = self._encoder.scale_scores(self._vectors.scores(tokens), tokens)
            results[number] = ranked_hits(self.passages, scores, k)
        return results


@dataclass(frozen=True, slots=True)
class TokenVectors:
    """Vectors of all tokens (tokens, dim), memory-mapped; ``starts`` int64 (passages + 1): the first of each passage."""

    vectors: NDArray[Any]
    starts: NDArray[np.int64]

    def scores(self, query: Tokens) -> NDArray[np.float32]:
        """Return float32 (passages,): the MaxSim of a query and each passage."""
        scores = np.empty(len(self.starts) - 1, dtype=np.float32)
        first = 0
        while first < len(scores):
            # whole passages, at least one
            last = int(np.searchsorted(self.starts, self.starts[first] + BLOCK, side="right")) - 1
            last = min(max(last, first + 1), len(scores))
            block = self.vectors[self.starts[first] : self.starts[last]]
            tokens = block.astype(np.float32, copy=False)
            lengths = np.diff(self.starts[first : last + 1])
            scores[first:last] = maxsim(query, tokens, lengths)
            first = last
        return scores


def _open(folder: Path, passages: int, dtype: str) -> TokenVectors:
    scalar = np.float16 if dtype == "float16" else np.float32
    vectors: Any = load_array(folder / "tokens.npy", scalar, 2)
    starts = load_array(folder / "starts.npy", np.int64, 1)
    if len(starts) != passages + 1 or starts[-1] != len(vectors):
        raise damaged_array(folder)
    return TokenVectors(vectors, starts)


class LateKind:
    """Passages by the vectors of their tokens."""

    def build(
        self, folder: Path, passages: Passages, vectors: Any, settings: Json
    ) -> Generator[tuple[int, int], None, dict[str, Any]]:
        """Encode ``"{title}, {text}"`` of the passages into ``folder``; return the parameters.

        Raises BackendMemoryError for a corpus whose vectors do not fit in memory, before it is encoded.
        """
        chosen = LateSettings(**settings)
        encoder = late_encoder(folder.name, read_model_settings(settings))
        yield 0, len(passages)
        width = encoder.dim * (2 if chosen.vectors == "float16" else 4)
        check_room(_expected_tokens(passages, encoder) * width, len(passages), chosen.most_gb)
        own = folder / FOLDER
        own.mkdir()
        starts = np.zeros(len(passages) + 1, dtype=np.int64)
        with open(own / "tokens.npy", "wb") as file:
            file.write(bytes(HEAD))
            for start in range(0, len(passages), PIECE):
                yield start, len(passages)
                stop = min(start + PIECE, len(passages))
                texts = [_text(passages, row) for row in range(start, stop)]
                piece = encoder.encode(texts, role="passage")
                for row, tokens in enumerate(piece, start):
                    starts[row + 1] = starts[row] + len(tokens)
                    file.write(tokens.astype(chosen.vectors).tobytes())
                check_room(int(starts[stop]) * width, len(passages), chosen.most_gb)
            _write_head(file, (int(starts[-1]), encoder.dim), chosen.vectors)
        np.save(own / "starts.npy", starts)
        yield len(passages), len(passages)
        return {**asdict(chosen), MODEL: encoder.fingerprint}

    def open(self, name: str, folder: Path, manifest: Any, encoder: Any = None) -> LateInteraction:
        """Open the index with the model it was built with. Raises MismatchError for another one."""
        model = late_encoder(name, read_model_settings(manifest.parameters))
        dtype = str(manifest.parameters.get("vectors", "float32"))
        stored = _open(folder / FOLDER, manifest.passages, dtype)
        check_dimension(name, "dimensions", stored.vectors.shape[1], model.name, model.dim)
        check_model(name, model.name, model.fingerprint, manifest.parameters)
        return LateInteraction(name, folder, manifest.fingerprint, model, stored)


def _text(passages: Passages, row: int) -> str:
    passage = passages[row]
    return f"{passage.title}, {passage.text}"


def _expected_tokens(passages: Passages, encoder: LateEncoder) -> int:
    """Return the number of tokens in all passages, estimated from some spread evenly over them."""
    counted = min(len(passages), SAMPLE)
    texts = [_text(passages, row * len(passages) // counted) for row in range(counted)]
    return round(sum(encoder.count_tokens(texts)) * len(passages) / max(1, counted))


def check_room(needed: int, passages: int, most_gb: float, free: int | None = None) -> None:
    """Raise BackendMemoryError if vectors of ``needed`` bytes exceed the setting or the free memory."""
    most = round(most_gb * 1e9)
    free = free_ram_bytes() if free is None else free
    if needed <= min(most, free):
        return
    limit = (
        f"at most {size(most)} are allowed (most_gb)" if most <= free else f"{size(free)} are free"
    )
    raise BackendMemoryError(
        f"The token vectors of {passages:,} passages take about {size(needed)}, and {limit}, because every search reads "
        "them all; build another index and re-rank its hits with late-rerank, choose vectors=float16, or a smaller corpus."
    )


def _write_head(file: BinaryIO, shape: tuple[int, int], dtype: str) -> None:
    """Write the header of an .npy file in front of vectors that were written before."""
    file.seek(0)
    head = {"descr": np.dtype(dtype).newbyteorder("<").str, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, head)  # type: ignore[no-untyped-call]
    assert file.tell() == HEAD


INDEX_KINDS.register(
    "late-interaction",
    about="vectors of all tokens of a ColBERT model, compared exactly, for corpora that fit in memory",
    form=dataclass_form(LateSettings),
    needs_encoder=False,
    needs_model=True,
    packages=("sentence-transformers", "numpy"),
    memory_factors=(0.1, 1.0),
)(LateKind())
