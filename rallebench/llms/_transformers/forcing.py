"""Formats of replies, enforced during generation by permitting only the tokens that can come next.

llguidance computes these tokens from a grammar. A reply is text, so the tokenizer must reproduce every text that it
reads. Imported only with a loaded model, because it needs torch and transformers.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from transformers import LogitsProcessor

from rallebench.core.errors import BackendError

SAMPLE = '{"a b": [1.5, true, "ö\\n"]}\nAction: Search[Ada]'
"""A text that a tokenizer must reproduce unchanged."""

GRAMMARS = 64
"""Number of compiled grammars kept per model."""


class Matcher(NamedTuple):
    """The tokens permitted next in one reply. ``size``: tokens of the tokenizer; ``ends``: tokens that end a text."""

    state: Any
    size: int
    ends: Sequence[int]


class UnreadableTokenizer(Exception):
    """A tokenizer for which no format can be enforced."""


class Forcing:
    """One model's tokenizer for llguidance. Thread-safe. Raises UnreadableTokenizer."""

    def __init__(self, tokenizer: Any, ends: Collection[int]) -> None:
        try:
            from llguidance.hf import from_tokenizer
        except ImportError:
            raise UnreadableTokenizer("llguidance is not installed") from None
        self._ends = sorted(ends)
        if not ends:
            raise UnreadableTokenizer("the model has no token that ends a text")
        try:
            self._tokenizer = from_tokenizer(tokenizer, eos_token=self._ends)
            tokens = self._tokenizer.tokenize_str(SAMPLE)
            text = tokenizer.decode(
                tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False
            )
        except (
            Exception
        ) as error:  # the library raises various exceptions, depending on the tokenizer
            raise UnreadableTokenizer(" ".join(str(error).split())[:160]) from None
        if text != SAMPLE:
            raise UnreadableTokenizer("its tokens do not give the text back")
        self._size = int(self._tokenizer.vocab_size)
        self._lock = threading.Lock()
        self._matcher = lru_cache(maxsize=GRAMMARS)(self._compile)

    def matcher(self, name: str, grammar: str) -> Matcher:
        """Return the state of a reply that has not begun. Raises BackendError for a format that the model ``name`` cannot
        write.
        """
        with self._lock:
            start, fault = self._matcher(grammar)
        if fault:
            raise BackendError(
                f"{name!r} cannot write a reply of this form ({fault}); mend the form, or set forced_formats to false."
            )
        return Matcher(start.deep_copy(), self._size, self._ends)

    def _compile(self, grammar: str) -> tuple[Any, str]:
        from llguidance import LLMatcher

        start = LLMatcher(self._tokenizer, grammar, log_level=0)
        fault = " ".join(start.get_error().split())[:160]
        if not fault and not start.is_accepting():
            permitted = np.frombuffer(start.compute_bitmask(), dtype=np.uint8)
            bits = np.unpackbits(permitted, bitorder="little")
            bits[self._ends] = 0
            fault = "" if bits.any() else "no text has it"
        return start, fault


class ForceRows(LogitsProcessor):  # type: ignore[misc]
    """Permits only those next tokens of each row that its format allows.

    ``matchers``: one per row, None for a row without a format. Finished rows are left alone.
    """

    def __init__(self, matchers: Sequence[Matcher | None]) -> None:
        self._rows = {row: matcher for row, matcher in enumerate(matchers) if matcher is not None}
        self._count = len(matchers)
        self._begun = False

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        if self._begun:
            self._take(input_ids[:, -1].tolist())
        self._begun = True
        if not self._rows:
            return scores
        wide = scores.shape[-1]
        words = -(-max(wide, *(matcher.size for matcher in self._rows.values())) // 32)
        mask = np.full((self._count, words), -1, dtype=np.int32)
        for row, matcher in list(self._rows.items()):
            mask[row] = 0  # a model may have more tokens than its tokenizer
            matcher.state.unsafe_compute_mask_ptr(mask[row].ctypes.data, 4 * -(-matcher.size // 32))
            if (
                matcher.state.is_error()
            ):  # beyond the library's limits: the reply is checked at its end
                mask[row] = -1
                del self._rows[row]
        bits = np.unpackbits(mask.view(np.uint8), axis=1, count=wide, bitorder="little")
        refused = torch.from_numpy(bits == 0).to(scores.device)
        return scores.masked_fill_(refused, -torch.inf)

    def _take(self, tokens: Sequence[int]) -> None:
        for row, matcher in list(self._rows.items()):
            if tokens[row] in matcher.ends or not matcher.state.consume_token(tokens[row]):
                del self._rows[row]
