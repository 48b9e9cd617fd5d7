"""The window of an encoder: the number of tokens of a passage that it reads. Encoders cut longer passages silently.

The tokenizer is loaded alone, without the model and without torch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from rallebench.encoders import DEFAULT_ENCODER
from rallebench.encoders.references import resolve

STRETCH = 100_000
"""Characters tokenized at once: a whole book would take gigabytes."""
PREFIX = 8
"""Characters per token at the beginning of a text, which are enough to recognise nearly every longer text."""
_GAP = re.compile(r"\s")


class WindowSource(NamedTuple):
    """The trait ``window`` of an encoder. ``tokens``: including special tokens and the ``prompt`` before each passage."""

    tokenizer: Path
    tokens: int
    prompt: str = ""


@dataclass(frozen=True, slots=True)
class EncoderWindow:
    """``tokens``: maximum tokens of a passage that the encoder reads, without special tokens and prompt."""

    encoder: str
    tokens: int
    tokenizer: Any

    def starts(self, text: str) -> list[int]:
        """Return the first character of each token of a text.

        >>> encoder_window("minilm").starts("Titan orbits.")
        [0, 6, 12]
        """
        starts: list[int] = []
        for begin, end in _stretches(text):
            # JSON may contain lone surrogates, which tokenizers refuse
            clean = text[begin:end].encode("utf-8", "replace").decode("utf-8")
            encoded = self.tokenizer.encode(clean, add_special_tokens=False)
            starts += [begin + start for start, stop in encoded.offsets if stop > start]
        return starts

    def exceeded_by(self, text: str) -> bool:
        """Return whether the encoder would cut a text."""
        if len(text) <= self.tokens:
            return False
        beginning = text[: PREFIX * self.tokens]
        if len(self.starts(beginning)) > self.tokens:
            return True
        return len(beginning) < len(text) and len(self.starts(text)) > self.tokens

    def count_longer(self, texts: Sequence[str]) -> int:
        """Count the texts that the encoder would cut."""
        return sum(map(self.exceeded_by, texts))


def encoder_window(reference: str) -> EncoderWindow | None:
    """Return the window of an encoder; None if unknown, such as for a server or for a model not yet downloaded.

    Raises UsageError for an invalid reference.
    """
    entry, settings = resolve(reference)
    trait = entry.traits.get("window")
    source: WindowSource | None = trait(**settings) if trait else None
    if source is None:
        return None
    tokenizer = _tokenizer(source.tokenizer)
    prompt = len(tokenizer.encode(source.prompt, add_special_tokens=False)) if source.prompt else 0
    tokens = source.tokens - tokenizer.num_special_tokens_to_add(False) - prompt
    return EncoderWindow(reference, max(1, tokens), tokenizer)


def passage_window(reference: str) -> EncoderWindow:
    """Return the window for cutting passages: the encoder's own, else that of the default encoder."""
    own = encoder_window(reference or DEFAULT_ENCODER)
    window = own or encoder_window(DEFAULT_ENCODER)
    assert window is not None
    return window


@lru_cache(maxsize=8)
def _tokenizer(folder: Path) -> Any:
    """Load a model's tokenizer without its length limit."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _stretches(text: str) -> Iterator[tuple[int, int]]:
    """Yield parts of a long text, split at white space if there is any."""
    begin = 0
    while len(text) - begin > STRETCH:
        gap = _GAP.search(text, begin + STRETCH, begin + 2 * STRETCH)
        end = gap.start() if gap else begin + STRETCH
        yield begin, end
        begin = end
    yield begin, len(text)
