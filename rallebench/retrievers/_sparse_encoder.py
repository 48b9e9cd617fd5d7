"""Learned sparse encoders: a weight for each of a vocabulary's terms (SPLADE; Formal et al. 2021, arXiv:2109.10086)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rallebench.core.errors import BackendError, BadFileError, UsageError
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
    module_types,
    retrieval_folder,
    stored_tensors,
)

_HEADS = ("SpladePooling", "SparseAutoEncoder", "SparseStaticEmbedding", "Router")
_loaded: SharedModels[SparseEncoder] = SharedModels()


@dataclass(frozen=True, slots=True)
class SparseRows:
    """Sparse vectors in rows: ``starts`` int64 (n + 1), ``terms`` int32 and ``weights`` float32, by rising term."""

    starts: NDArray[np.int64]
    terms: NDArray[np.int32]
    weights: NDArray[np.float32]

    def row(self, n: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return the terms and weights of one vector."""
        some = slice(self.starts[n], self.starts[n + 1])
        return self.terms[some], self.weights[some]


class SparseEncoder:
    """A loaded model. ``dim``: terms of its vocabulary; ``fingerprint``: its content and length, not its location."""

    def __init__(
        self, name: str, model: Any, dim: int, identity: str, settings: PassageModelSettings
    ) -> None:
        own = int(model.max_seq_length or 512)
        self.name, self.dim = name, dim
        self._tokens = min(own, settings.max_tokens) if settings.max_tokens else own
        self.fingerprint = f"{identity}/{self._tokens}"
        self._model, self._device = model, settings.device_name
        self._batch = settings.batch_size
        self._cosine = model.similarity_fn_name == "cosine"
        self._turn = threading.Lock()

    def encode(self, texts: Sequence[str], *, role: Role) -> SparseRows:
        """Return one sparse vector for each text. Raises BackendError for weights that are not numbers."""
        rows: list[tuple[Any, Any]] = [(None, None)] * len(texts)
        for numbers, dense in self._dense(clean(texts), role):
            for number, vector in zip(numbers, dense):
                terms = np.flatnonzero(vector)
                rows[number] = terms.astype(np.int32), vector[terms]
        starts = np.zeros(len(texts) + 1, dtype=np.int64)
        np.cumsum([len(terms) for terms, _ in rows], out=starts[1:])
        if not rows:
            return SparseRows(starts, np.zeros(0, np.int32), np.zeros(0, np.float32))
        return SparseRows(starts, *(np.concatenate(part) for part in zip(*rows)))

    def _dense(
        self, texts: list[str], role: Role
    ) -> Iterator[tuple[list[int], NDArray[np.float32]]]:
        """Yield (rows, float32 (rows, dim)), batch by batch."""
        encode: Callable[..., Any] = (
            self._model.encode_query if role == "query" else self._model.encode_document
        )
        with self._turn:
            for numbers in batches(texts, self._count, self._device, self._batch):
                some = [texts[number] for number in numbers]
                try:
                    vectors = encode(
                        some,
                        batch_size=len(some),
                        convert_to_sparse_tensor=False,
                        show_progress_bar=False,
                    )
                except (RuntimeError, IndexError, MemoryError) as error:
                    raise encoding_failed(self.name, error) from None
                dense = vectors.float().cpu().numpy()
                if not np.isfinite(dense).all():
                    raise BackendError(
                        f"The model {self.name!r} gave weights that are not numbers: {BROKEN}."
                    )
                if self._cosine:
                    norms = np.linalg.norm(dense, axis=1, keepdims=True)
                    dense = dense / np.where(norms > 0, norms, 1)
                yield numbers, dense

    def _count(self, texts: list[str]) -> list[int]:
        return count_tokens(self._model, texts, self._tokens)


def sparse_encoder(name: str, settings: PassageModelSettings) -> SparseEncoder:
    """Return the encoder in a folder or with a hub id; a loaded one is shared. ``name``: for messages.

    Raises UsageError or BadFileError for a model without a sparse head, other RalleErrors if it cannot be loaded.
    """
    folder = retrieval_folder(name, settings.model)
    where = str(folder or settings.model)
    key = (where, settings.device_name, settings.max_tokens, settings.batch_size)
    return _loaded.get(key, name, where, lambda: _load(where, folder, settings))


def _load(where: str, folder: Path | None, settings: PassageModelSettings) -> SparseEncoder:
    import sentence_transformers
    import torch
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    model = sentence_transformers.SparseEncoder(
        where,
        device=settings.device_name,
        local_files_only=folder is not None,
        model_kwargs={"dtype": torch.float32},
    ).eval()
    files = content_folder(where, folder)
    if files is not None:
        _check_head(model, files)
    if model.similarity_fn_name not in ("dot", "cosine"):
        raise UsageError(
            f"{where} compares by {model.similarity_fn_name}, which an inverted index cannot; choose a model that compares "
            "by dot or cosine."
        )
    if settings.max_tokens:
        model.max_seq_length = min(int(model.max_seq_length or 512), settings.max_tokens)
    # the library knows the size of the vocabulary only after a first text
    sample = model.encode_document(["a"], convert_to_sparse_tensor=False, show_progress_bar=False)
    config = getattr(model.transformers_model, "config", None)
    commit = str(getattr(config, "_commit_hash", None) or "")
    identity = model_identity(where, folder, commit)
    return SparseEncoder(where, model, int(sample.shape[-1]), identity, settings)


def _check_head(model: Any, folder: Path) -> None:
    """Raise an error if the library made up the part of the model that gives terms their weights."""
    from sentence_transformers.base.modules import Transformer
    from sentence_transformers.sparse_encoder.modules import SparseAutoEncoder

    types = module_types(folder)
    invented = any(isinstance(part, SparseAutoEncoder) for part in model.modules())
    if (types and not any(head in types for head in _HEADS)) or (
        invented and "SparseAutoEncoder" not in types
    ):
        raise UsageError(
            f"{folder} has no head for sparse vectors, so its weights would be random; give the folder of a SPLADE model."
        )
    stored = stored_tensors(folder)
    for part in model.modules():
        if not isinstance(part, Transformer) or part.transformer_task != "fill-mask":
            continue
        network: Any = part.model
        base = f"{network.base_model_prefix}."
        tied = {id(parameter) for parameter in network.base_model.parameters()}
        missing = [
            name
            for name, parameter in network.named_parameters()
            if not name.startswith(base) and id(parameter) not in tied
            if not name.endswith(".bias") and name not in stored
        ]
        if missing:
            raise BadFileError(
                f"The weights in {folder} lack the head that gives each term its weight ({missing[0]}), so its vectors "
                "would be random; download the model again."
            )
