"""The check that every encoder's vectors pass: finite, not all zero, not the same for every text."""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Callable, Sequence

import numpy as np

from rallebench.core.errors import BackendError
from rallebench.encoders import Vectors

COMPARED = 300
"""Number of letters and digits by which two texts are compared: encoders cut long texts, and may ignore everything else.
"""

ROUNDING = 1e-5
"""Largest difference of a number in equal vectors: other batch sizes change the seventh decimal."""

_OTHER = re.compile(r"[\W_]+")


def significant_letters(text: str) -> str:
    """Return the letters and digits that distinguish a text, without case and accents; '' if it has none.

    >>> significant_letters(" The Élysée, 2nd! "), significant_letters("—")
    ('theelysee2nd', '')
    """
    beginning = unicodedata.normalize("NFKD", text[: 4 * COMPARED].casefold())
    return _OTHER.sub("", re.sub(r"[\u0300-\u036f]", "", beginning))[:COMPARED]


class VectorCheck:
    """Checks one encoder's vectors, batch by batch. ``mend``: advice for the error message. Thread-safe.

    A damaged or overflowing model, or a server without the model's weights, gives vectors that can be indexed and searched,
    but every passage then scores the same.
    """

    def __init__(self, name: str, mend: str) -> None:
        self._name, self._mend = name, mend
        self._first: tuple[str, str, Vectors] | None = None
        self._differ = False
        self._lock = threading.Lock()

    def unit(
        self, texts: Sequence[str], vectors: Vectors, key: Callable[[int], str] | None = None
    ) -> Vectors:
        """Normalise the vectors of ``texts``; see ``fault``. Raises BackendError for broken ones."""
        if fault := self.find_fault(texts, vectors, key):
            raise BackendError(f"The encoder {self._name!r} gave {fault}. {self._mend}")
        return unit(vectors)

    def find_fault(
        self, texts: Sequence[str], vectors: Vectors, key: Callable[[int], str] | None = None
    ) -> str:
        """Return the ``fault`` of vectors with known texts; ``key``: by default the text's letters."""
        return self.fault(
            vectors,
            key or (lambda row: significant_letters(texts[row])),
            lambda row: _quote(texts[row]),
        )

    def fault(self, vectors: Vectors, key: Callable[[int], str], name: Callable[[int], str]) -> str:
        """Describe the fault of vectors (float32, any length), '' without one.

        ``key``: row → text as the encoder reads it, '' if it reads nothing; ``name``: row → its description for the sentence.
        Equal vectors are a fault until two rows had different vectors.
        """
        finite = np.isfinite(vectors).all(axis=1)
        if not finite.all():
            return f"a vector with values that are not numbers for {name(int(np.argmin(finite)))}"
        filled = vectors.any(axis=1)
        for row in map(int, np.flatnonzero(~filled)):
            if key(row):
                return f"a vector of zeros for {name(row)}"
        rows = list(map(int, np.flatnonzero(filled)))
        if self._differ or not rows:
            return ""
        with self._lock:
            directions = unit(vectors[rows])
            self._first = self._first or (key(rows[0]), name(rows[0]), directions[0])
            first, words, vector = self._first
            self._differ |= bool((np.abs(directions - vector) > ROUNDING).any())
            other = None if self._differ else next((row for row in rows if key(row) != first), None)
        return "" if other is None else f"the same vector for {words} and {name(other)}"


def unit(vectors: Vectors) -> Vectors:
    """Scale rows to unit length; a row of zeros becomes the first axis, a row that is not finite is left unchanged.

    >>> import numpy as np
    >>> unit(np.array([[3.0, 4.0], [0.0, 0.0]], dtype=np.float32)).tolist()
    [[0.6000000238418579, 0.800000011920929], [1.0, 0.0]]
    """
    vectors = vectors.astype(np.float32)
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors[norms[:, 0] == 0, 0] = norms[norms == 0] = 1.0
    with np.errstate(invalid="ignore"):
        rows: Vectors = vectors / norms
    return rows


def _quote(text: str) -> str:
    line = " ".join(text.split())
    return repr(line if len(line) <= 60 else f"{line[:59]}…")
