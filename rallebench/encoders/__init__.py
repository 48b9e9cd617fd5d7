"""Text → vectors. An encoder is a factory ``(**settings) -> Encoder``, one file each.

Which one a text such as ``minilm`` or ``sentence_transformers:/models/e5?query_prompt=query: `` names
is decided in ``encoders/references.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from rallebench.core.registry import Registry

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]
    Batches = Iterator[tuple[NDArray[np.int64], Vectors]]

Role = Literal["query", "passage"]

DTYPES = ("auto", "float32", "bfloat16")
"""What ``dtype`` may be: in which numeric type passages are encoded. Queries are always float32."""


class Encoder(Protocol):
    """``name`` is the reference that opens it again. ``fingerprint`` names model, revision, prompts and
    cuts: all that changes a vector, but not the numeric type, which an index's manifest names.

    One that has tokens to count has ``count_tokens(queries)`` too: per query, as it encodes it with its prompt
    and cut to its length, or None where that is not known.
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

    ``dtype``: what the user chose, one of DTYPES. ``fast_dtypes``: the types besides float32 that this
    machine computes natively.
    """

    dtype: str

    @property
    def fast_dtypes(self) -> tuple[str, ...]: ...

    def bulk(self, dtype: str) -> Callable[[Sequence[str]], Batches]:
        """A function from passages to (rows, float32 unit vectors), batch by batch, every row once.

        It may hold a copy of the model in ``dtype``, which goes when the function goes. The same texts
        give the same batches and, in one thread count on one machine, the same bits.
        """
        ...


ENCODERS: Registry[Callable[..., Any]] = Registry("encoder", "rallebench.encoders")
"""Traits: ``settings``, name → Setting, of what a factory takes; ``needs_model``: not without ``model``."""
