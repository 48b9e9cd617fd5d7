"""Choose the chunking of documents in a form, and preview its cuts."""

from __future__ import annotations

from rallebench.core.chunking import Chunking
from rallebench.core.errors import UsageError
from rallebench.corpora import chunking

BY_ENCODER, WHOLE, OWN = "default", "whole", "own"
"""Choices besides the presets: sentences up to the encoder's limit, whole rows and documents, and the user's own
settings.
"""


def presets() -> dict[str, Chunking]:
    """Return the chunkings of published experiments by name."""
    return chunking.presets()


def preset_name(value: Chunking | None) -> str:
    """Return the choice that stands for this chunking."""
    if value is None:
        return WHOLE
    if value.tokenizer:
        return BY_ENCODER
    return next((name for name, preset in presets().items() if preset == value), OWN)


def read(
    choice: str, encoder: str, size: int | None, overlap: int | None, how: str, unit: str
) -> Chunking | None:
    """Return the chosen chunking; None for whole rows and documents. Raises UsageError."""
    if choice == WHOLE:
        return None
    if choice == BY_ENCODER:
        return chunking.default_chunking(encoder, size, overlap)
    if choice != OWN:
        return chunking.choose(preset=choice, size=size, overlap=overlap)
    if size is None:
        raise UsageError("The size of a chunk is empty; give a number.")
    unit = unit if how == "blocks" else ""
    return chunking.choose(how=how, size=size, overlap=overlap or 0, unit=unit)


def cuts(
    text: str, value: Chunking | None, document: str = "", title: str = ""
) -> list[tuple[int, int]]:
    """Return the (start, end) of every chunk of a text. Without a chunking, the text is one chunk."""
    spans = chunking.spans(text, value, document, title) if value else []
    return spans or [(0, len(text))]
