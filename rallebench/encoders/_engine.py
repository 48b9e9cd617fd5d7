"""Encoding with a transformer: batches of similar lengths under a token budget, in float32 or bfloat16.

A plain ``encode`` loses time that this engine saves: padding (texts are sorted by tokens, not by characters), batches
whose activations exceed the processor's cache (the budget counts tokens, not texts), and float32 products where
bfloat16 leaves the ranking unchanged.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from rallebench.core.errors import BackendError, BackendMemoryError
from rallebench.encoders import Batches, Role, Vectors
from rallebench.encoders.batches import cuts
from rallebench.encoders.checking import VectorCheck
from rallebench.encoders.half_precision import has_bfloat16, to_half_precision

CPU_TOKENS, GPU_TOKENS = 1024, 32768
"""Tokens per batch. On a CPU, more exceed the cache; on a GPU, fewer leave it idle."""
MAX_BATCH = 512
BROKEN = (
    "The model is damaged, or does not work in this numeric type: choose dtype=float32 and no quantization, or download "
    "it again."
)
NO_PROMPTS: Mapping[str, str] = {"query": "", "passage": ""}


class TransformerEncoder:
    """A tokenizer and a model on one device. ``pooled(model, features)`` returns (n, dim) of any length.

    ``features``: ``input_ids`` and ``attention_mask``, int64 (n, tokens). ``prompts``: role → text before each text.
    ``dtype``: the user's choice for passages, see DTYPES. Thread-safe.
    """

    def __init__(
        self,
        name: str,
        tokenizer: Any,
        model: Any,
        pooled: Callable[[Any, dict[str, Any]], Any],
        max_tokens: int,
        dim: int,
        *,
        dtype: str = "auto",
        prompts: Mapping[str, str] = NO_PROMPTS,
        batch: int = MAX_BATCH,
    ) -> None:
        self.name, self.dim, self.dtype, self.prompts = name, dim, dtype, prompts
        self.tokenizer, self.model = tokenizer, model
        self._pooled, self._max_tokens, self._batch = pooled, max_tokens, batch
        self._lock = threading.Lock()
        self._check = VectorCheck(name, BROKEN)

    @property
    def fast_dtypes(self) -> tuple[str, ...]:
        """Types besides float32 that this device computes natively."""
        return ("bfloat16",) if has_bfloat16(self._device()) else ()

    def encode(self, texts: Sequence[str], *, role: Role = "passage") -> Vectors:
        """Return float32 (n, dim), unit length, in the order of ``texts``, each encoded with the prompt of the role."""
        return collect_rows(len(texts), self.dim, self.batches(texts, self.model, role))

    def count_tokens(self, queries: Sequence[str]) -> list[int]:
        """Count the tokens of each query with its prompt, including the model's special tokens, after truncation."""
        texts = [self.prompts["query"] + text for text in queries]
        return [len(ids) for ids in self._tokens(texts)] if texts else []

    def bulk(self, dtype: str) -> Callable[[Sequence[str]], Batches]:
        """See ``BulkEncoder``."""
        model = self.model if dtype == "float32" else to_half_precision(self.model)
        return lambda texts: self.batches(texts, model, "passage")

    def batches(self, texts: Sequence[str], model: Any, role: Role) -> Batches:
        """Yield (rows, float32 unit vectors), longest texts first, so that a lack of memory shows at once."""
        if not texts:
            return
        tokens = self._tokens([self.prompts[role] + text for text in texts])
        lengths = np.array([max(1, len(ids)) for ids in tokens])
        order = np.argsort(-lengths, kind="stable")
        for start, stop in cuts(lengths[order], self._budget(), self._batch):
            rows = order[start:stop]
            yield rows, self._check_rows(texts, rows, [tokens[row] for row in rows], model)

    def _check_rows(
        self, texts: Sequence[str], rows: Any, tokens: Sequence[Sequence[int]], model: Any
    ) -> Vectors:
        """Return unit vectors of some rows of ``texts``. Raises BackendError for broken ones."""
        vectors = self._vectors(tokens, model)
        # the tokens distinguish texts, since equal tokens have equal vectors
        return self._check.unit([texts[row] for row in rows], vectors, lambda n: str(tokens[n]))

    def _device(self) -> Any:
        return next(self.model.parameters()).device

    def _budget(self) -> int:
        return CPU_TOKENS if self._device().type == "cpu" else GPU_TOKENS

    def _tokens(self, texts: Sequence[str]) -> list[list[int]]:
        # JSON may contain lone surrogates, which tokenizers refuse
        clean = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        with self._lock:  # a fast tokenizer stores its truncation in itself
            tokens: list[list[int]] = self.tokenizer(
                clean,
                add_special_tokens=True,
                padding=False,
                truncation=True,
                max_length=self._max_tokens,
                return_attention_mask=False,
                return_token_type_ids=False,
                verbose=False,
            )["input_ids"]
        return tokens

    def _vectors(self, tokens: Sequence[Sequence[int]], model: Any) -> Vectors:
        import torch

        width = max(1, *map(len, tokens))
        ids = np.full((len(tokens), width), self.tokenizer.pad_token_id or 0, dtype=np.int64)
        mask = np.zeros_like(ids)
        left = self.tokenizer.padding_side == "left"
        for row, text_ids in enumerate(tokens):
            place = slice(width - len(text_ids), width) if left else slice(len(text_ids))
            ids[row, place], mask[row, place] = text_ids, 1
        device = self._device()
        features = {
            "input_ids": torch.from_numpy(ids).to(device),
            "attention_mask": torch.from_numpy(mask).to(device),
        }
        try:
            with torch.inference_mode():
                vectors: Vectors = self._pooled(model, features).float().cpu().numpy()
        except (torch.OutOfMemoryError, MemoryError):
            raise BackendMemoryError(
                f"The encoder {self.name!r} ran out of memory with {ids.size} tokens at once; "
                "choose a smaller max_tokens or batch, or device=cpu."
            ) from None
        except (RuntimeError, IndexError) as error:
            reason = " ".join(str(error).split())[-200:]
            raise BackendError(
                f"The encoder {self.name!r} failed on a text of {width} tokens ({reason}); "
                "if the model takes fewer, set max_tokens."
            ) from None
        return vectors


def collect_rows(count: int, dim: int, batches: Batches) -> Vectors:
    """Collect (rows, vectors) in any order into one float32 array (count, dim)."""
    vectors = np.zeros((count, dim), dtype=np.float32)
    for rows, batch in batches:
        vectors[rows] = batch
    return vectors
