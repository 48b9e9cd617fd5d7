"""Late interaction: a vector for each token, compared by MaxSim (ColBERT; Khattab and Zaharia 2020, arXiv:2004.12832)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rallebench.core.errors import BackendError, BadFileError, UsageError
from rallebench.core.files import read_json
from rallebench.encoders import Role
from rallebench.retrievers._sentence_models import (
    BROKEN,
    PassageModelSettings,
    SharedModels,
    batches,
    clean,
    content_folder,
    count_tokens,
    encoding_failed,
    model_identity,
    own_config,
    retrieval_folder,
    stored_tensors,
)

Tokens = NDArray[np.float32]
"""Vectors of a text's tokens: float32 (tokens, dim)."""

_KINDS = ("MultiVectorEncoder", "ColBERT")
_loaded: SharedModels[LateEncoder] = SharedModels()


class LateEncoder:
    """A loaded model. ``dim``: of a token's vector; ``fingerprint``: its content and length, not its location."""

    def __init__(
        self, name: str, model: Any, dim: int, identity: str, settings: PassageModelSettings
    ) -> None:
        transformer = model[0]
        own = int(getattr(transformer, "document_length", None) or model.max_seq_length or 512)
        self.name, self.dim = name, dim
        self._most = min(own, settings.max_tokens) if settings.max_tokens else own
        self.fingerprint = f"{identity}/{self._most}"
        self._model, self._device = model, settings.device_name
        self._batch = settings.batch_size
        self.averages = model.similarity_fn_name == "meanmaxsim"
        self._turn = threading.Lock()

    def encode(self, texts: Sequence[str], *, role: Role) -> list[Tokens]:
        """Return the token vectors of each text. Raises BackendError for values that are not numbers."""
        encode: Callable[..., Any] = (
            self._model.encode_query if role == "query" else self._model.encode_document
        )
        prepared, vectors = clean(texts), [np.zeros((0, self.dim), np.float32)] * len(texts)
        with self._turn:
            for numbers in batches(prepared, self.count_tokens, self._device, self._batch):
                some = [prepared[number] for number in numbers]
                try:
                    encoded = encode(
                        some, batch_size=len(some), convert_to_numpy=True, show_progress_bar=False
                    )
                except (RuntimeError, IndexError, MemoryError) as error:
                    raise encoding_failed(self.name, error) from None
                for number, array in zip(numbers, encoded):
                    vectors[number] = np.asarray(array, dtype=np.float32)
        if not all(np.isfinite(array).all() for array in vectors):
            raise BackendError(
                f"The model {self.name!r} gave vectors with values that are not numbers: {BROKEN}."
            )
        return vectors

    def count_tokens(self, texts: list[str]) -> list[int]:
        """Count the tokens of passages, as far as the model reads them."""
        return count_tokens(self._model, texts, self._most)

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return the MaxSim of a query and each text. The texts form batches of their own, so scores do not depend on
        other queries."""
        if not texts:
            return []
        (tokens,) = self.encode([query], role="query")
        passages = self.encode(texts, role="passage")
        lengths = np.array(list(map(len, passages)))
        scores = maxsim(tokens, np.concatenate(passages), lengths)
        return [float(score) for score in self.scale_scores(scores, tokens)]

    def scale_scores(self, scores: NDArray[np.float32], tokens: Tokens) -> NDArray[np.float32]:
        """Return scores on the model's own scale: for some models the mean over the query's tokens, not the sum."""
        return scores / np.float32(max(1, len(tokens))) if self.averages else scores


def maxsim(query: Tokens, tokens: Tokens, lengths: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return float32 (passages,): Σ over the query's tokens of the greatest inner product with a token of the passage.

    ``tokens``: those of all passages, one after the other; ``lengths``: their number in each. A passage without tokens
    gets the lowest possible score of unit vectors.

    >>> import numpy as np
    >>> query, tokens = np.eye(2, dtype=np.float32), np.array([[1, 0], [0, 1], [0.6, 0.8]], dtype=np.float32)
    >>> maxsim(query, tokens, np.array([2, 1, 0])).round(3).tolist()
    [2.0, 1.399999976158142, -2.0]
    """
    scores = np.full(len(lengths), -float(len(query)), dtype=np.float32)
    filled = np.flatnonzero(lengths)
    if len(filled) and len(query):
        starts = np.cumsum(lengths) - lengths
        products = query @ tokens.T
        scores[filled] = np.maximum.reduceat(products, starts[filled], axis=1).sum(axis=0)
    return scores


def late_encoder(name: str, settings: PassageModelSettings) -> LateEncoder:
    """Return the encoder in a folder or with a hub id; a loaded one is shared. ``name``: for messages.

    Raises UsageError for a model that is not made for late interaction, other RalleErrors if it cannot be loaded.
    """
    folder = retrieval_folder(name, settings.model)
    where = str(folder or settings.model)
    key = (where, settings.device_name, settings.max_tokens, settings.batch_size)
    return _loaded.get(key, name, where, lambda: _load(where, folder, settings))


def _load(where: str, folder: Path | None, settings: PassageModelSettings) -> LateEncoder:
    import sentence_transformers
    import torch
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    if folder is not None:
        _check_kind(folder)
    model = sentence_transformers.MultiVectorEncoder(
        where,
        device=settings.device_name,
        local_files_only=folder is not None,
        model_kwargs={"dtype": torch.float32},
    ).eval()
    files = content_folder(where, folder)
    if files is not None:
        _check_kind(files)
        _check_projection(model, files)
    if settings.max_tokens:
        most = min(int(model.max_seq_length or 512), settings.max_tokens)
        model.max_seq_length = most
        if getattr(model[0], "document_length", None):
            model[0].document_length = min(model[0].document_length, most)
    (sample,) = model.encode_document(["a"], convert_to_numpy=True, show_progress_bar=False)
    config = getattr(model.transformers_model, "config", None)
    commit = str(getattr(config, "_commit_hash", None) or "")
    identity = model_identity(where, folder, commit)
    return LateEncoder(where, model, int(sample.shape[1]), identity, settings)


def _check_kind(folder: Path) -> None:
    """Raise UsageError for a model to which the library would add a random projection."""
    own, path = own_config(folder), folder / "config.json"
    config = read_json(path) if path.is_file() else {}
    kinds = config.get("architectures") if isinstance(config, dict) else None
    kinds = list(map(str, kinds)) if isinstance(kinds, list) else []
    published = any(kind == "HF_ColBERT" or kind.endswith("ForRetrieval") for kind in kinds)
    if own.get("model_type") not in _KINDS and "query_prefix" not in own and not published:
        raise UsageError(
            f"{folder} is not a model for late interaction, so its vectors would be random; give the folder of a ColBERT "
            "model."
        )


def _check_projection(model: Any, folder: Path) -> None:
    """Raise BadFileError if the weights of the projection are missing, which the library would replace by random ones."""
    from sentence_transformers.base.modules import Dense

    projected = any(isinstance(part, Dense) for part in model)
    if projected and "linear.weight" not in stored_tensors(folder):
        raise BadFileError(
            f"{folder} lacks the weights of the projection to token vectors, so they would be random; download the model "
            "again."
        )
