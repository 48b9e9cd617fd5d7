"""Text → vectors. An encoder is a factory ``(**settings) -> Encoder``, one file each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

from rallebench.registry import Registry

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]


class Encoder(Protocol):
    """``fingerprint`` names model, revision and prefixes: all that changes a vector."""

    name: str
    dim: int
    fingerprint: str

    def encode(self, texts: Sequence[str], *, role: Literal["query", "passage"]) -> Vectors:
        """Return float32 (len(texts), dim), each row of unit length."""
        ...


ENCODERS: Registry[Callable[..., Any]] = Registry("encoder", "rallebench.encoders")
