"""Passages that exceed their encoder's window; the rest of each is not searched."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from rallebench.core.entries import Manifest
from rallebench.core.types import Passage
from rallebench.encoders.windows import encoder_window
from rallebench.workspace.indexes.vectors import passage_text

MAX_PASSAGES_READ = 2000
"""Maximum number of passages read, spread evenly over the corpus."""


@dataclass(frozen=True, slots=True)
class LongPassages:
    """Number (``longer``) of ``passages`` with more tokens than the ``window`` of ``encoder``; estimated from ``counted``
    of them."""

    encoder: str
    window: int
    longer: int
    passages: int
    counted: int

    @property
    def count(self) -> str:
        """Return the number of passages that are too long, as the beginning of a sentence.

        >>> LongPassages("minilm", 254, 46, 70, 70).count
        '46 of 70 passages (66 %) are longer than the 254 tokens that minilm reads'
        """
        about = "" if self.counted == self.passages else "About "
        share = max(1, round(100 * self.longer / self.passages))
        noun = "passage" if self.passages == 1 else "passages"
        verb = "is" if self.longer == 1 else "are"
        numbers = f"{about}{self.longer:,} of {self.passages:,} {noun} ({share} %)"
        return f"{numbers} {verb} longer than the {self.window} tokens that {self.encoder} reads"

    @property
    def sentence(self) -> str:
        """Return a sentence about text that an index does not search; '' if no passage is too long."""
        return f"{self.count}; the rest of each is not searched." if self.longer else ""


def long_passages(
    encoder: str, passages: int, passage: Callable[[int], Passage], most: int = MAX_PASSAGES_READ
) -> LongPassages | None:
    """Return the passages that exceed the encoder's window; None without an encoder or if its window is unknown."""
    window = encoder_window(encoder) if encoder and passages else None
    if window is None:
        return None
    counted = min(passages, most)
    texts = [passage_text(passage(row * passages // counted)) for row in range(counted)]
    longer = window.count_longer(texts)
    if counted < passages:
        longer = round(longer * passages / counted)
    return LongPassages(encoder, window.tokens, longer, passages, counted)


def long_rows(encoder: str, rows: Sequence[Passage], passages: int = 0) -> LongPassages | None:
    """Return ``long_passages`` of a corpus with its first ``rows`` in memory; ``passages``: their total number (0: these)."""
    long = long_passages(encoder, len(rows), rows.__getitem__)
    if long is None or passages <= len(rows):
        return long
    longer = round(long.longer * passages / len(rows))
    return replace(long, longer=longer, passages=passages)


def recorded_long_passages(manifest: Manifest) -> LongPassages | None:
    """Return the long passages recorded for a built index; None if they were not counted."""
    if not manifest.window:
        return None
    return LongPassages(
        manifest.encoder_name,
        manifest.window,
        manifest.longer,
        manifest.passages,
        manifest.longer_counted,
    )
