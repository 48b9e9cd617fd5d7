"""The window of an encoder: how many tokens of a passage it reads. Longer passages are cut by the encoder without a word.

The tokenizer is read alone, without the model and without torch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from rallebench.encoders import DEFAULT_ENCODER
from rallebench.encoders.references import resolved

STRETCH = 100_000
"""Characters that are tokenized at once: a whole book would take gigabytes."""
PREFIX = 8
"""Characters a token at the beginning of a text, by which nearly every longer text is recognised."""
_GAP = re.compile(r"\s")


class WindowSource(NamedTuple):
    """The trait ``window`` of an encoder. ``tokens``: with special tokens and the ``prompt`` before each passage."""

    tokenizer: Path
    tokens: int
    prompt: str = ""


@dataclass(frozen=True, slots=True)
class EncoderWindow:
    """``tokens``: the most of a passage that the encoder reads, without special tokens and prompt."""

    encoder: str
    tokens: int
    tokenizer: Any

    def starts(self, text: str) -> list[int]:
        """The first character of each token of a text.

        >>> window_of("minilm").starts("Titan orbits.")
        [0, 6, 12]
        """
        starts: list[int] = []
        for begin, end in _stretches(text):
            # JSON may hold lone surrogates, which tokenizers refuse.
            clean = text[begin:end].encode("utf-8", "replace").decode("utf-8")
            encoded = self.tokenizer.encode(clean, add_special_tokens=False)
            starts += [begin + start for start, stop in encoded.offsets if stop > start]
        return starts

    def exceeded_by(self, text: str) -> bool:
        """Return whether a text is longer than the encoder reads."""
        if len(text) <= self.tokens:
            return False
        beginning = text[: PREFIX * self.tokens]
        if len(self.starts(beginning)) > self.tokens:
            return True
        return len(beginning) < len(text) and len(self.starts(text)) > self.tokens

    def count_longer(self, texts: Sequence[str]) -> int:
        """Number of texts that are longer than the encoder reads."""
        return sum(map(self.exceeded_by, texts))


def window_of(reference: str) -> EncoderWindow | None:
    """The window of an encoder; None where it is unknown, such as for a server or for a model not yet downloaded.

    Raises UsageError for an invalid reference.
    """
    entry, settings = resolved(reference)
    trait = entry.traits.get("window")
    source: WindowSource | None = trait(**settings) if trait else None
    if source is None:
        return None
    tokenizer = _tokenizer(source.tokenizer)
    prompt = len(tokenizer.encode(source.prompt, add_special_tokens=False)) if source.prompt else 0
    tokens = source.tokens - tokenizer.num_special_tokens_to_add(False) - prompt
    return EncoderWindow(reference, max(1, tokens), tokenizer)


def passage_window(reference: str) -> EncoderWindow:
    """The window by which passages are cut for an encoder: its own, else that of the default encoder."""
    own = window_of(reference or DEFAULT_ENCODER)
    window = own or window_of(DEFAULT_ENCODER)
    assert window is not None
    return window


@lru_cache(maxsize=8)
def _tokenizer(folder: Path) -> Any:
    """The tokenizer of a model, with no limit of its own."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _stretches(text: str) -> Iterator[tuple[int, int]]:
    """Parts of a long text that end at white space if there is any."""
    begin = 0
    while len(text) - begin > STRETCH:
        gap = _GAP.search(text, begin + STRETCH, begin + 2 * STRETCH)
        end = gap.start() if gap else begin + STRETCH
        yield begin, end
        begin = end
    yield begin, len(text)
