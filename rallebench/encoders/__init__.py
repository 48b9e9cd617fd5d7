"""Encoders: text → vectors. Each file registers a factory ``(**settings) -> Encoder``.

``encoders/references.py`` resolves texts such as ``minilm`` or
``sentence_transformers:/models/e5?query_prompt=query: ``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from rallebench.core.registry import Registry

if TYPE_CHECKING:  # a list of names imports no numpy
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]
    Batches = Iterator[tuple[NDArray[np.int64], Vectors]]
else:
    Vectors = Batches = Any

Role = Literal["query", "passage"]

DEFAULT_ENCODER = "minilm"
"""Installed with the package; used if no encoder is named."""

DTYPES = ("auto", "float32", "bfloat16")
"""Values of ``dtype``, the numeric type for passages. Queries are always float32."""


class Encoder(Protocol):
    """``name``: the reference that opens it again. ``fingerprint`` covers everything that changes a vector: model, revision, prompts,
    length limits; not the numeric type, which is in the manifest of an index.

    An encoder that counts tokens also has ``count_tokens(queries)``: tokens per query with its prompt and after truncation,
    or None if unknown.
    """

    name: str
    dim: int
    fingerprint: str

    def encode(self, texts: Sequence[str], *, role: Literal["query", "passage"]) -> Vectors:
        """Return float32 (len(texts), dim), each row of unit length."""
        ...


@runtime_checkable
class BulkEncoder(Protocol):
    """An encoder that can encode many passages in a numeric type other than float32.

    ``dtype``: the user's choice, one of DTYPES. ``fast_dtypes``: the types besides float32 that this machine computes
    natively.
    """

    dtype: str

    @property
    def fast_dtypes(self) -> tuple[str, ...]: ...

    def bulk(self, dtype: str) -> Callable[[Sequence[str]], Batches]:
        """Return a function from passages to (rows, float32 unit vectors), batch by batch, every row once.

        The function may hold a copy of the model in ``dtype`` as long as it exists. The same texts give the same batches
        and, with the same number of threads on one machine, the same bits.
        """
        ...


ENCODERS: Registry[Callable[..., Any]] = Registry(
    "encoder",
    "rallebench.encoders",
    expects="a function (**settings) → an Encoder: name, dim, fingerprint, encode(texts, *, role)",
    traits={
        "dim": "number of dimensions, if it is always the same",
        "needs_model": "True if the setting model is required",
        "need": "(**settings) → estimated memory, without loading it",
        "window": "(**settings) → tokenizer and number of tokens read (``windows.WindowSource``), None if unknown",
        "libraries": "(**settings) → None: import the packages that a load needs; they stay imported after an unload",
        "to_fetch": "(**settings) → hub id to download before it opens, '' if it is already here",
    },
)
