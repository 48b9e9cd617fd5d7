"""Models of sentence-transformers that a retriever loads by itself: checked, loaded once, identified by their content."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Generic, TypeVar
from weakref import WeakValueDictionary

from rallebench.checkpoints.failures import loading_failed
from rallebench.checkpoints.files import (
    cached_folder,
    model_folder,
    pickled_tensors,
    tensors,
    tree_hash,
)
from rallebench.checkpoints.memory import mapped_device
from rallebench.checkpoints.packages import need_packages
from rallebench.core.errors import (
    BackendError,
    BackendMemoryError,
    BadFileError,
    MismatchError,
)
from rallebench.core.files import read_json
from rallebench.core.settings import declare
from rallebench.core.types import Json
from rallebench.encoders.batches import cuts

MODULES = "modules.json"
OWN_CONFIG = "config_sentence_transformers.json"
CPU_TOKENS, GPU_TOKENS = 1024, 16_384
"""Tokens per batch, including padding. On a CPU, more exceed the cache."""

BROKEN = (
    "the model is damaged, or is not made for retrieval; download it again, or choose another one"
)

MODEL = "model_fingerprint"
"""Parameter in the manifest of an index with the identity of its model."""

M = TypeVar("M")


class SharedModels(Generic[M]):
    """Loaded models by key; each is loaded once, shared, and released with its last user."""

    def __init__(self) -> None:
        self._loaded: WeakValueDictionary[Hashable, M] = WeakValueDictionary()
        self._one_load = threading.Lock()

    def __len__(self) -> int:
        return len(self._loaded)

    def get(self, key: Hashable, name: str, where: str, load: Callable[[], M]) -> M:
        """Return the model of ``key``, loading it if needed. Raises RalleError with the name and place of the model."""
        with self._one_load:
            model = self._loaded.get(key)
            if model is None:
                try:
                    model = self._loaded[key] = load()
                except Exception as error:
                    raise loading_failed(error, name, where) from None
            return model


@dataclass(frozen=True, slots=True)
class PassageModelSettings:
    """Settings of a model that reads queries and passages apart. Its prompts are those of its own configuration."""

    model: str = declare(
        str, "", required=True, about="folder or hub id of the model", names="checkpoint"
    )
    device: str = declare(str, "auto", about="auto, cpu, cuda, cuda:1 …")
    max_tokens: int = declare(
        int, 0, 0, 1_000_000, about="longer passages are cut; 0 = the model's own limit"
    )
    batch_size: int = declare(int, 32, 1, 4096, about="maximum number of texts at once")

    @property
    def device_name(self) -> str:
        """The device in torch's words."""
        return mapped_device(None) if self.device == "auto" else self.device


def retrieval_folder(name: str, model: str) -> Path | None:
    """Return the model's folder, checked; None for a hub id. Raises BadFileError.

    A model whose parts are all in subfolders, such as one with different parts for queries and passages, has no
    config.json of its own.
    """
    need_packages(("sentence_transformers",), "none", "this retriever needs it")
    folder = Path(model).expanduser()
    if (folder / MODULES).is_file() and not (folder / "config.json").exists():
        return folder.resolve()
    return model_folder(name, model)


def content_folder(model: str, folder: Path | None) -> Path | None:
    """Return the folder with the files of a loaded model, which may be the hub's cache; None if unknown."""
    return folder or cached_folder(model) or cached_folder(model, file=MODULES)


def model_identity(model: str, folder: Path | None, commit: str) -> str:
    """Return the identity of a model's content, but not of its location."""
    return tree_hash(folder) if folder else f"{model}@{commit or 'main'}"


def own_config(folder: Path) -> dict[str, Any]:
    """Return the configuration that sentence-transformers wrote; empty if there is none. Raises BadFileError."""
    path = folder / OWN_CONFIG
    value = read_json(path) if path.is_file() else {}
    return value if isinstance(value, dict) else {}


def module_types(folder: Path) -> str:
    """Return the text that names the modules of a model, of all its parts."""
    names = (MODULES, "router_config.json")
    files = sorted(path for name in names for path in folder.rglob(name))
    return "\n".join(path.read_text(encoding="utf-8", errors="replace") for path in files)


def stored_tensors(folder: Path) -> frozenset[str]:
    """Return the names of all tensors in a model's folder, also without up to two leading parts. Raises BadFileError."""
    names: set[str] = set()
    for file in sorted(folder.rglob("*")):
        if file.suffix == ".safetensors":
            names.update(name for name, *_ in tensors(file))
        elif file.suffix == ".bin":
            names.update(pickled_tensors(file))
    # old checkpoints have TensorFlow's names of a layer norm
    plain = {
        name.replace("LayerNorm.gamma", "LayerNorm.weight").replace(
            "LayerNorm.beta", "LayerNorm.bias"
        )
        for name in names
    }
    return frozenset(".".join(name.split(".")[start:]) for name in plain for start in range(3))


def batches(
    texts: Sequence[str], count_tokens: Callable[[list[str]], list[int]], device: str, most: int
) -> Iterator[list[int]]:
    """Yield the rows of each batch: texts of similar length, the longest first, under a budget of tokens."""
    if not texts:
        return
    import numpy as np

    lengths = np.maximum(1, count_tokens(list(texts)))
    order = np.argsort(-lengths, kind="stable")
    budget = CPU_TOKENS if device == "cpu" else GPU_TOKENS
    for start, stop in cuts(lengths[order], budget, most):
        yield order[start:stop].tolist()


def clean(texts: Sequence[str]) -> list[str]:
    """Return the texts without lone surrogates, which JSON may contain and tokenizers refuse."""
    return [text.encode("utf-8", "replace").decode("utf-8") for text in texts]


def count_tokens(model: Any, texts: list[str], most: int) -> list[int]:
    """Return the number of tokens of each text, at most ``most``; its length in characters if there is no tokenizer."""
    tokenizer = getattr(model, "tokenizer", None)
    if tokenizer is None:
        return [len(text) for text in texts]
    ids = tokenizer(texts, truncation=True, max_length=most, verbose=False)["input_ids"]
    return list(map(len, ids))


def encoding_failed(name: str, error: Exception) -> BackendError:
    """Return the error of a model that failed on a batch."""
    import torch

    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return BackendMemoryError(
            f"The model {name!r} ran out of memory; choose a smaller batch_size or max_tokens, or device=cpu."
        )
    reason = " ".join(str(error).split())[-200:]
    return BackendError(
        f"The model {name!r} failed on a text ({reason}); if it reads fewer tokens, set max_tokens."
    )


def damaged_array(path: Path) -> BadFileError:
    """Return the error for files of an index that do not fit together."""
    return BadFileError(f"{path} is truncated or belongs to another corpus; build the index again.")


def read_model_settings(parameters: Json) -> PassageModelSettings:
    """Return the settings of the model of a built index."""
    known = {field.name for field in fields(PassageModelSettings)}
    return PassageModelSettings(**{key: value for key, value in parameters.items() if key in known})


def check_dimension(name: str, noun: str, stored: int, model: str, dim: int) -> None:
    """Raise MismatchError if a model's vectors do not have the dimensions of those in the index ``name``."""
    if stored != dim:
        raise MismatchError(
            f"The index {name!r} holds vectors of {stored:,} {noun}, the model {model} gives {dim:,}; put the index's own "
            "model back, or build the index again."
        )


def check_model(name: str, model: str, fingerprint: str, parameters: Json) -> None:
    """Raise MismatchError if the model of an index was replaced by another one."""
    if parameters.get(MODEL) != fingerprint:
        raise MismatchError(
            f"The index {name!r} was built with the model {parameters.get(MODEL)}, but {model} now holds {fingerprint}; "
            "put its own model back, or build the index again."
        )
