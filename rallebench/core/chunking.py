"""The splitting of documents into passages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Literal, get_args

from rallebench.core.errors import UsageError
from rallebench.core.types import Json

Unit = Literal["words", "tokens", "characters"]
How = Literal["blocks", "recursive", "sentences"]

UNIT_OF: Mapping[str, Unit] = {"recursive": "characters", "sentences": "tokens"}
"""Methods with a single unit → their unit."""


@dataclass(frozen=True, slots=True)
class Chunking:
    """``size`` and ``overlap`` in ``unit``s; 0 <= overlap < size. A token is a word, a punctuation mark or a
    CJK character, so counting needs no model; with ``tokenizer``, a reference to an encoder, it is a token of that
    encoder, and the title, which is embedded before each chunk, counts too.

    ``prefix`` precedes the text of every chunk and is not counted in ``size``; ``{title}`` in it is the
    document's title. ``compat`` "original" splits sentences as CRUD-RAG's code does (see ``_sentences``).
    Raises UsageError for invalid values.
    """

    size: int
    overlap: int = 0
    unit: Unit = "words"
    how: How = "blocks"
    prefix: str = ""
    compat: Literal["", "original"] = ""
    tokenizer: str = ""

    def __post_init__(self) -> None:
        wrong = ""
        if self.how not in get_args(How):
            wrong = f"chunking method {self.how!r} is unknown; use blocks, recursive or sentences."
        elif self.unit not in get_args(Unit):
            wrong = f"chunk unit {self.unit!r} is unknown; use words, tokens or characters."
        elif self.unit != UNIT_OF.get(self.how, self.unit):
            wrong = f"chunk unit {self.unit!r} does not fit {self.how!r}, which counts {UNIT_OF[self.how]}."
        elif self.compat not in ("", "original") or (self.compat and self.how != "sentences"):
            wrong = f"chunk compatibility {self.compat!r} is unknown for {self.how!r}; only sentences have 'original'."
        elif self.tokenizer and (self.how != "sentences" or self.compat):
            wrong = f"tokenizer {self.tokenizer!r} does not fit {self.how!r}; only sentences are counted in an encoder's tokens."
        elif self.size < 1:
            wrong = f"chunk size is {self.size}; it must be at least 1."
        elif not 0 <= self.overlap < self.size:
            wrong = f"chunk overlap is {self.overlap}; it must lie between 0 and {self.size - 1}."
        if wrong:
            raise UsageError(f"The {wrong}")

    def to_json(self) -> Json:
        """Return the value for a manifest; ``Chunking(**value)`` restores it."""
        return {name: value for name, value in asdict(self).items() if value != _PLAIN.get(name)}


_PLAIN: Mapping[str, str] = {"how": "blocks", "prefix": "", "compat": "", "tokenizer": ""}
"""Defaults that a manifest omits."""
