"""Cross-encoder: reads query and passage together, returns one number (Nogueira and Cho 2019, arXiv:1901.04085)."""

from __future__ import annotations

import hashlib
import math
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rallebench.checkpoints.files import model_folder, token_positions
from rallebench.checkpoints.memory import mapped_device
from rallebench.checkpoints.packages import need_packages
from rallebench.core.errors import BackendError, UsageError
from rallebench.core.files import sha256_file
from rallebench.retrievers._sentence_models import SharedModels

_HEAD = "ForSequenceClassification"
_CONTENT = (".safetensors", ".bin", "config.json", "tokenizer.json", "vocab.txt", ".model")

_loaded: SharedModels[CrossEncoder] = SharedModels()


class CrossEncoder:
    """A loaded model. ``fingerprint``: its content, numeric type and length, but not its location."""

    def __init__(
        self, name: str, dtype: str, model: Any, fingerprint: str, batch_size: int
    ) -> None:
        self.fingerprint = fingerprint
        self._name, self._dtype = name, dtype
        self._model, self._batch_size = model, batch_size
        self._lock = threading.Lock()

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return logits, higher is better, in the order of ``texts``.

        The passages of one query form one batch, so that scores do not depend on other queries; the library
        sorts them by length. Raises BackendError for scores that are not numbers.
        """
        if not texts:
            return []
        with self._lock:
            pairs = [(query, text) for text in texts]
            scores = self._model.predict(
                pairs, batch_size=self._batch_size, show_progress_bar=False
            )
        numbers = [float(score) for score in scores]
        if not all(map(math.isfinite, numbers)):
            raise BackendError(
                f"The re-ranker {self._name!r} gave scores that are not numbers: the model is damaged, or does not work in "
                f"{self._dtype}; choose dtype=float32, or download it again."
            )
        return numbers


def cross_encoder(
    name: str, model: str, dtype: str, device: str, max_length: int, batch_size: int
) -> CrossEncoder:
    """Return the cross-encoder in a folder or with a hub id; a loaded one is shared. ``name``: for messages.

    Raises UsageError unless the model returns one number per pair, other RalleErrors if it cannot be loaded.
    """
    need_packages(("sentence_transformers",), "none", "re-ranking needs it")
    folder = model_folder(name, model)
    where = str(folder or model)
    key = (where, dtype, device, max_length)
    return _loaded.get(
        key,
        name,
        where,
        lambda: _load(where, folder, dtype, device, max_length, batch_size),
    )


def _load(
    where: str, folder: Path | None, dtype: str, device: str, max_length: int, batch_size: int
) -> CrossEncoder:
    import sentence_transformers
    import torch
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(where)
    # The library would put a random head on any other model and give random scores.
    kinds = list(map(str, config.architectures or []))
    if not any(kind.endswith(_HEAD) for kind in kinds):
        raise _wrong(where, f"is a {', '.join(kinds) or 'model without a kind'}")
    loaded = sentence_transformers.CrossEncoder(
        where,
        device=mapped_device(None) if device == "auto" else device,
        max_length=max_length or None,
        activation_fn=torch.nn.Identity(),
        local_files_only=folder is not None,
        model_kwargs={"dtype": getattr(torch, dtype)},
    )
    if loaded.num_labels != 1:
        raise _wrong(where, f"gives {loaded.num_labels} numbers per pair")
    most = token_positions(loaded.config)
    if most and (loaded.max_seq_length or most) >= most:
        loaded.max_seq_length = most
    content = _content(folder) if folder else f"{where}@{config._commit_hash}"
    return CrossEncoder(
        where, dtype, loaded, f"{content}/{dtype}/{loaded.max_seq_length}", batch_size
    )


def _wrong(model: str, fault: str) -> UsageError:
    return UsageError(
        f"{model} {fault}, so it is not a cross-encoder for re-ranking; give a sequence classification model with one "
        "label, such as BAAI/bge-reranker-base or cross-encoder/ms-marco-MiniLM-L6-v2."
    )


def _content(folder: Path) -> str:
    """Return 16 hex digits over the files that affect a score."""
    total = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if path.name.endswith(_CONTENT) and path.is_file():
            total.update(f"{path.name}:{sha256_file(path)}\n".encode())
    return total.hexdigest()[:16]
