"""Encoders: text → vectors. Each file registers a factory ``(**settings) -> Encoder``.

``encoders/references.py`` resolves texts such as ``minilm`` or
``sentence_transformers:/models/e5?query_prompt=query: ``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from rallebench.core.registry import Registry

Vectors = NDArray[np.float32]
Batches = Iterator[tuple[NDArray[np.int64], Vectors]]

Role = Literal["query", "passage"]

DEFAULT_ENCODER = "minilm"
"""Installed with the package; makes the vectors where no encoder is named."""

DTYPES = ("auto", "float32", "bfloat16")
"""The values of ``dtype``, the numeric type for passages. Queries are always float32."""


class Encoder(Protocol):
    """``name`` is the reference that opens it again. ``fingerprint`` covers everything that changes a vector: model,
    revision, prompts, length limits; not the numeric type, which is in the manifest of an index.

    An encoder that counts tokens also has ``count_tokens(queries)``: per query with its prompt and after truncation, or
    None if unknown.
    """

    name: str
    dim: int
    fingerprint: str

    def encode(self, texts: Sequence[str], *, role: Literal["query", "passage"]) -> Vectors:
        """Return float32 (len(texts), dim), each row of unit length."""
        ...


@runtime_checkable
class BulkEncoder(Protocol):
    """An encoder that can encode many passages in another numeric type than float32.

    ``dtype``: the user's choice, one of DTYPES. ``fast_dtypes``: the types besides float32 that this machine computes
    natively.
    """

    dtype: str

    @property
    def fast_dtypes(self) -> tuple[str, ...]: ...

    def bulk(self, dtype: str) -> Callable[[Sequence[str]], Batches]:
        """A function from passages to (rows, float32 unit vectors), batch by batch, every row once.

        It may hold a copy of the model in ``dtype``, as long as the function lives. The same texts give the same batches
        and, with the same number of threads on one machine, the same bits.
        """
        ...


ENCODERS: Registry[Callable[..., Any]] = Registry(
    "encoder",
    "rallebench.encoders",
    traits={
        "dim": "the dimensions of its vectors, where they are always the same",
        "needs_model": "whether the setting model is required",
        "need": "(**settings) → the memory that it will take, without loading it",
        "window": "(**settings) → the tokenizer and the tokens that it reads (``windows.WindowSource``), None if unknown",
        "libraries": "(**settings) → None: import what a load needs, which stays at an unload",
        "to_fetch": "(**settings) → the hub id that must be downloaded before it opens, '' if it is here",
    },
)
