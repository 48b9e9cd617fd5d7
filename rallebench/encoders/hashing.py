"""A bag-of-words encoder without a model, for tests and for a first try in any language."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Literal

import numpy as np

from rallebench.core.text import tokenize_unfolded
from rallebench.encoders import ENCODERS, Vectors
from rallebench.encoders.checking import unit


class Hashing:
    """Signed feature hashing (Weinberger et al. 2009, arXiv:0902.2206) of the sparse tokens."""

    name = "hashing"
    dim = 256
    fingerprint = "hashing/256/1"

    def encode(
        self, texts: Sequence[str], *, role: Literal["query", "passage"] = "passage"
    ) -> Vectors:
        """Return float32 (n, 256), unit length; a text without words gets the first axis."""
        out = np.zeros((len(texts), self.dim), dtype=np.float32)
        for row, text in enumerate(texts):
            for token in tokenize_unfolded(text):
                code = int.from_bytes(
                    hashlib.blake2b(token.encode(), digest_size=8).digest(), "big"
                )
                out[row, code % self.dim] += 1.0 if code >> 63 else -1.0
        return unit(out)

    def count_tokens(self, queries: Sequence[str]) -> list[int]:
        """Count the hashed words of each query."""
        return [len(tokenize_unfolded(query)) for query in queries]


@ENCODERS.register("hashing", dim=256)
def hashing() -> Hashing:
    """Hashed bag of words (256 dimensions), no model: for tests."""
    return Hashing()
