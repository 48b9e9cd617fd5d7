"""A cross-encoder: query and passage read together, one number out (Nogueira and Cho 2019, arXiv:1901.04085)."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from rallebench.core.errors import (
    BackendError,
    BadFileError,
    MissingPackageError,
    NotFoundError,
    UsageError,
)
from rallebench.core.files import read_json, sha256_file

_HEAD = "ForSequenceClassification"
_CONTENT = (".safetensors", ".bin", "config.json", "tokenizer.json", "vocab.txt", ".model")

_loaded: WeakValueDictionary[tuple[str, str, str, int], CrossEncoder] = WeakValueDictionary()
_loading = threading.Lock()


class CrossEncoder:
    """A loaded model. ``fingerprint`` names its content, numeric type and length, not where it lies."""

    def __init__(self, model: Any, fingerprint: str, batch_size: int) -> None:
        self.fingerprint = fingerprint
        self._model, self._batch_size = model, batch_size
        self._lock = threading.Lock()

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """Logits, higher is better, in the order of ``texts``.

        The passages of one query are one batch, so that no score depends on what else is asked; the
        library sorts them by length.
        """
        if not texts:
            return []
        with self._lock:
            pairs = [(query, text) for text in texts]
            scores = self._model.predict(
                pairs, batch_size=self._batch_size, show_progress_bar=False
            )
        return [float(score) for score in scores]


def cross_encoder(
    model: str, dtype: str, device: str, max_length: int, batch_size: int
) -> CrossEncoder:
    """The cross-encoder in a folder or of a hub id; one that is loaded already is shared.

    Raises UsageError for a model that does not give one number per pair.
    """
    folder = Path(os.path.expanduser(model))
    where = str(folder.resolve()) if folder.is_dir() else model
    key = (where, dtype, device, max_length)
    with _loading:
        encoder = _loaded.get(key)
        if encoder is None:
            encoder = _loaded[key] = _load(where, dtype, device, max_length, batch_size)
        return encoder


def _load(model: str, dtype: str, device: str, max_length: int, batch_size: int) -> CrossEncoder:
    revision = _checked(model)
    try:
        import sentence_transformers
        import torch
    except ImportError:
        raise MissingPackageError("sentence-transformers", "and re-ranking needs it") from None
    chosen = device if device != "auto" else "cuda" if torch.cuda.is_available() else "cpu"
    try:
        loaded = sentence_transformers.CrossEncoder(
            model,
            device=chosen,
            max_length=max_length or None,
            activation_fn=torch.nn.Identity(),
            local_files_only=Path(model).is_dir(),
            model_kwargs={"dtype": getattr(torch, dtype)},
        )
    except Exception as error:  # each of four libraries has its own ways to refuse a damaged file
        reason = " ".join(str(error).split())[:300]
        raise BackendError(f"The cross-encoder {model} could not be loaded: {reason}") from None
    if loaded.num_labels != 1:
        raise UsageError(_wrong(model, f"gives {loaded.num_labels} numbers per pair"))
    most = _positions(loaded.config)
    if most and (loaded.max_seq_length or most) >= most:
        loaded.max_seq_length = most
    return CrossEncoder(loaded, f"{revision}/{dtype}/{loaded.max_seq_length}", batch_size)


def _positions(config: Any) -> int:
    """How many tokens a model has places for; 0 if it does not say."""
    places = int(getattr(config, "max_position_embeddings", 0) or 0)
    # RoBERTa and its kin count their places from behind the padding token.
    counted_on = places and "roberta" in config.model_type
    return places - 1 - int(config.pad_token_id or 0) if counted_on else places


def _checked(model: str) -> str:
    """What names the model's content: a hash over its files, or the hub's commit."""
    if Path(model).is_dir():
        if not (Path(model) / "config.json").is_file():
            raise BadFileError(
                f"{model} holds no model (config.json is missing); give a cross-encoder's folder."
            )
        config = read_json(Path(model) / "config.json")
        config = config if isinstance(config, dict) else {}
        content, kinds = content_hash(Path(model)), config.get("architectures") or []
    elif model.startswith(("/", ".", "~")) or model.count("/") > 1:
        raise NotFoundError(f"There is no cross-encoder {model!r}: no such folder.")
    else:
        try:
            from transformers import AutoConfig
        except ImportError:
            raise MissingPackageError("transformers", "and re-ranking needs it") from None
        try:
            hub = AutoConfig.from_pretrained(model)
        except (OSError, ValueError) as error:
            reason = " ".join(str(error).split())[:200]
            raise NotFoundError(
                f"There is no cross-encoder {model!r}: no such folder, and as a hub id it cannot be read ({reason})."
            ) from None
        content, kinds = f"{model}@{hub._commit_hash}", hub.architectures or []
    # The library would put a random head on any other model and score by chance.
    if not any(str(kind).endswith(_HEAD) for kind in kinds):
        raise UsageError(
            _wrong(model, f"is a {', '.join(map(str, kinds)) or 'model without a kind'}")
        )
    return content


def _wrong(model: str, what: str) -> str:
    return (
        f"{model} {what}, so it is no cross-encoder for re-ranking; give a sequence classification model with one "
        "label, such as BAAI/bge-reranker-base or cross-encoder/ms-marco-MiniLM-L6-v2."
    )


def content_hash(folder: Path) -> str:
    """16 hex digits over the files that decide a score."""
    total = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if path.name.endswith(_CONTENT) and path.is_file():
            total.update(f"{path.name}:{sha256_file(path)}\n".encode())
    return total.hexdigest()[:16]
