"""BM25, Lucene's variant, k1 0.9 and b 0.4, in the files of bm25s (Lù 2024, arXiv:2407.03618): numpy, no Java.

bm25s builds in memory (3.4 KB a passage); here the postings are made in pieces and merged on disk, with equal scores.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rallebench.core.errors import BadFileError, MismatchError
from rallebench.core.settings import Setting
from rallebench.core.text import TOKENIZERS, TOKENS
from rallebench.core.types import Hit, Json
from rallebench.core.versions import optional
from rallebench.corpora.store import PassageStore
from rallebench.retrievers import INDEX_KINDS, Passages
from rallebench.retrievers._parts import Indexed
from rallebench.retrievers._postings import Postings

K1, B = 0.9, 0.4
FOLDER, PIECES = "bm25", "pieces"
PIECE = 1000
MEMORY, MB = "memory", 2**20
DATA, ROWS, STARTS = "data.csc.index.npy", "indices.csc.index.npy", "indptr.csc.index.npy"
BLOCKS_PER_HIT, WIDEST_BLOCK = 4, 256

SETTINGS = {
    "k1": Setting(
        float, K1, 0, 1000, about="how quickly a repeated word stops adding to the score"
    ),
    "b": Setting(float, B, 0, 1, about="how strongly long passages are penalised"),
    "tokens": Setting(
        str,
        TOKENS,
        choices=tuple(TOKENIZERS),
        about="how texts are split into words: folded, so that all Unicode spellings of a word match, or only lower-cased",
    ),
    MEMORY: Setting(
        int,
        256,
        1,
        about="MB for the postings of a piece while the index is built; pieces are merged on disk",
        advanced=True,
        lasting=False,
    ),
}


def _bm25s() -> Any:
    return optional("bm25s", "bm25s", "and BM25 needs it")


class BM25(Indexed):
    """A loaded BM25 index; memory-mapped."""

    titled = True
    prefix_stable = True
    no_match = 0.0
    """Score of a passage that shares no word with the query."""

    def __init__(self, name: str, folder: Path, fingerprint: str, parameters: Json) -> None:
        tokens = str(parameters.get("tokens"))
        if tokens not in TOKENIZERS:
            raise MismatchError(
                f"The index {name!r} was built with the tokens {tokens!r}, this version knows "
                f"{' and '.join(map(repr, TOKENIZERS))}; build it again."
            )
        super().__init__(name, fingerprint, PassageStore(folder))
        self.scale = f"bm25 {parameters}"
        self._tokenize = TOKENIZERS[tokens]
        self._scores, self._rows, self._starts, self._vocabulary = _open(
            folder / FOLDER, len(self.passages)
        )

    def search(self, queries: Sequence[str], k: int) -> list[tuple[Hit, ...]]:
        """Return hits best first; ties go to the earlier passage. A query without any word of the corpus has no hits; for any other
        query, passages without a common word come last with score 0, so that k beyond the corpus returns all.
        """
        return [self._search(query, k) for query in queries]

    def _search(self, query: str, k: int) -> tuple[Hit, ...]:
        tokens = self._tokenize(query)
        known = [self._vocabulary[token] for token in tokens if token in self._vocabulary]
        if not known:
            return ()
        scores = self._all_scores(known)
        best = best_rows(scores, min(k, len(scores)))
        return tuple(
            Hit(self.passages[row], score)
            for row, score in zip(best.tolist(), scores[best].tolist())
        )

    def _all_scores(self, tokens: Sequence[int]) -> Any:
        """Return float32 (passages,): the scores of the tokens in each passage, added in the order of the tokens."""
        total = np.zeros(len(self.passages), dtype=np.float32)
        for token in tokens:
            some = slice(self._starts[token], self._starts[token + 1])
            np.add.at(total, self._rows[some], self._scores[some])
        return total


def _open(folder: Path, passages: int) -> tuple[Any, Any, list[int], dict[str, int]]:
    """Return scores, passage rows, start of each token's entries, and token → number, memory-mapped.

    bm25s stores each token's scores together, including idf and length, so a query only adds them up.
    """
    try:
        model = _bm25s().BM25.load(str(folder), mmap=True, show_progress=False)
        scores, rows = (np.asarray(model.scores[name]) for name in ("data", "indices"))
        starts = model.scores["indptr"].tolist()
        whole = starts[-1] == len(scores) == len(rows) and model.scores["num_docs"] == passages
    except Exception as error:  # numpy parses a damaged header as Python, bm25s accepts any JSON
        raise BadFileError(f"{folder} is damaged ({error}); build the index again.") from None
    if not whole:
        raise BadFileError(
            f"{folder} is truncated or belongs to another corpus; build the index again."
        )
    return scores, rows, starts, model.vocab_dict


def best_rows(scores: Any, k: int) -> Any:
    """Return the rows of the k best of float32 (n,) scores ≥ 0, 1 ≤ k ≤ n, best first; ties go to the smaller row.

    The best of each block are examined first: the k-th of these is a lower bound of the k-th of all, which
    few scores reach. That takes a tenth of the time of partitioning all scores.
    """
    width = min(WIDEST_BLOCK, len(scores) // (BLOCKS_PER_HIT * k))
    bound = np.float32(0.0)
    if width > 1:
        blocks = scores[: len(scores) // width * width].reshape(-1, width).max(axis=1)
        bound = np.partition(blocks, -k)[-k]
    rows = np.flatnonzero(scores >= bound) if bound > 0 else np.flatnonzero(scores)
    if len(rows) < k:
        rows = np.concatenate([rows, np.flatnonzero(scores == 0)[: k - len(rows)]])
    elif len(rows) > 4 * k:
        # all ties with the k-th are candidates, so that ties are cut in corpus order
        rows = rows[scores[rows] >= np.partition(scores[rows], -k)[-k]]
    return rows[np.argsort(-scores[rows], kind="stable")][:k]


class _Numbers(dict[str, int]):
    """Numbers of words, in the order of their first occurrence."""

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self)
        return number


class BM25Kind:
    """Words indexed with bm25s."""

    def build(
        self, folder: Path, passages: Passages, vectors: Any, settings: Json
    ) -> Generator[tuple[int, int], None, dict[str, Any]]:
        """Index ``"{title}, {text}"`` of the passages into ``folder``; return the parameters."""
        k1, b, tokens, memory = map(settings.__getitem__, SETTINGS)
        tokenize, numbers = TOKENIZERS[tokens], _Numbers()
        postings = Postings(folder / PIECES, memory * MB)
        for row, passage in enumerate(passages):
            if row % PIECE == 0:
                yield row, len(passages)
            words = tokenize(f"{passage.title}, {passage.text}")
            # the text itself is not kept in memory
            postings.add([*map(numbers.__getitem__, words)])
        postings.write_piece()
        if not numbers:
            numbers["\0"] = 0
        (folder / FOLDER).mkdir()
        writing = write_scores(folder / FOLDER, postings, numbers, k1, b)
        for _ in writing:
            yield len(passages), len(passages)
        shutil.rmtree(folder / PIECES)
        return {name: settings[name] for name, setting in SETTINGS.items() if setting.lasting}

    def open(self, name: str, folder: Path, manifest: Any, encoder: Any = None) -> BM25:
        return BM25(name, folder, manifest.fingerprint, manifest.parameters)


def write_scores(
    folder: Path, postings: Postings, vocabulary: Mapping[str, int], k1: float, b: float
) -> Iterator[None]:
    """Write the index as bm25s does, sorted by token, yielding after each block. Raises OSError.

    A posting's score, idf · tf / (k1 (1 - b + b · length / mean length) + tf), is rounded to float32 at each step as
    by bm25s, so that equal passages have equal scores whatever built the index.
    """
    lengths = np.frombuffer(postings.lengths, dtype=np.int32)
    mean = lengths.sum(dtype=np.int64) / len(lengths) or 1.0
    norms = (k1 * ((1 - b) + b * lengths / mean)).astype(np.float32)
    frequencies = np.zeros(len(vocabulary), dtype=np.int64)
    frequencies[: len(postings.frequencies)] = postings.frequencies[: len(vocabulary)]
    idf = np.array([_idf(int(count), len(lengths)) for count in frequencies], dtype=np.float32)
    total = int(frequencies.sum())
    with open(folder / DATA, "wb") as scores, open(folder / ROWS, "wb") as rows:
        for handle, kind in ((scores, "<f4"), (rows, "<i4")):
            header = {"descr": kind, "fortran_order": False, "shape": (total,)}
            np.lib.format.write_array_header_1_0(handle, header)  # type: ignore[no-untyped-call]
        for block in postings.blocks():
            weights = block.counts / (norms[block.rows] + block.counts)
            scores.write((idf[block.tokens] * weights).data)
            rows.write(np.ascontiguousarray(block.rows).data)
            yield
    np.save(folder / STARTS, np.r_[0, np.cumsum(frequencies)])
    known = json.dumps(vocabulary, ensure_ascii=False, separators=(",", ":"))
    (folder / "vocab.index.json").write_text(known, encoding="utf-8")
    about = {
        "k1": k1,
        "b": b,
        "delta": 0.5,
        "method": "lucene",
        "idf_method": "lucene",
        "dtype": "float32",
        "int_dtype": "int32",
        "num_docs": len(lengths),
        "version": _bm25s().__version__,
        "backend": "numpy",
    }
    (folder / "params.index.json").write_text(json.dumps(about, indent=4), encoding="utf-8")


def _idf(count: int, passages: int) -> float:
    return math.log(1 + (passages - count + 0.5) / (count + 0.5)) if count else 0.0


def _building_bytes(settings: Json, passages: int) -> int:
    """Return the most memory of a build: a piece, and what is held of each passage."""
    return int(settings[MEMORY]) * MB * 6 // 5 + 20 * passages


INDEX_KINDS.register(
    "bm25",
    about="BM25 (Lucene variant, k1 0.9, b 0.4)",
    form=SETTINGS,
    needs_encoder=False,
    packages=("bm25s", "numpy"),
    memory_factors=(4.0, 1.0),
    memory_bound=_building_bytes,
)(BM25Kind())
