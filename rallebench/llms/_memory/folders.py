"""The check of a model's folder, and its tensors, without torch."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

from rallebench.core.errors import BadFileError
from rallebench.core.files import read_json

BITS = {"float32": 32, "float16": 16, "bfloat16": 16, "8bit": 8, "4bit": 4.13}
"""Bits per weight in memory; nf4 with double quantisation: Dettmers et al. 2023, arXiv:2305.14314."""

# A tensor in one of these formats is loaded in the requested dtype; any other is quantised already and stays.
_PLAIN = {"F64", "F32", "F16", "BF16"}

# Bits of other formats; the default is 8.
_STORED = {"I64": 64, "U64": 64, "I32": 32, "U32": 32, "I16": 16, "U16": 16}

# Names of embeddings, output heads, and experts that transformers joins into one tensor; bitsandbytes does not
# quantise them.
_NOT_QUANTISED = ("embed", "lm_head", "shared.", "wte", "wpe", ".experts.")

_TEXTUAL = {".json", ".jinja", ".model", ".txt", ".tiktoken", ".py"}
_SAMPLE_BYTES = 65_536
_SAMPLES = 128


def model_folder(name: str, model: str) -> Path | None:
    """The model's folder, checked; None if ``model`` can only be a hub id. Raises BadFileError."""
    folder = Path(model).expanduser()
    if not folder.exists():
        if model.startswith(("/", ".", "~")) or "\\" in model or model.count("/") > 1:
            raise BadFileError(
                f"{name!r}: the folder {model} does not exist; give the folder that holds the model's "
                "config.json, or a Hugging Face id such as owner/model."
            )
        return None
    if not folder.is_dir():
        raise BadFileError(
            f"{name!r}: {folder} is a file; give the folder that holds the model's config.json."
        )
    if not (folder / "config.json").exists():
        adapter = (folder / "adapter_config.json").exists()
        mend = (
            "merge the adapter in it into its base model"
            if adapter
            else "give the model's own folder"
        )
        raise BadFileError(
            f"{name!r}: {folder} has no config.json, so it holds no whole model; {mend}."
        )
    config = read_json(folder / "config.json")
    if not isinstance(config, dict) or not config.get("model_type"):
        raise BadFileError(
            f"{folder / 'config.json'} names no model_type; give the folder of a language model."
        )
    weight_files(folder)
    return folder.resolve()


def weight_files(folder: Path) -> list[Path]:
    """The files of the weights, safetensors first. Raises BadFileError if a file is missing."""
    for stem in ("model.safetensors", "pytorch_model.bin"):
        if (folder / stem).is_file():
            return [folder / stem]
        index = folder / f"{stem}.index.json"
        if index.is_file():
            return _shards(folder, index)
    raise BadFileError(
        f"{folder} holds no weights (model.safetensors or pytorch_model.bin, or shards with their index); "
        "download the model again."
    )


def _shards(folder: Path, index: Path) -> list[Path]:
    value = read_json(index)
    places = value.get("weight_map") if isinstance(value, dict) else None
    if not isinstance(places, dict) or not places:
        raise BadFileError(f"{index} has no weight_map; download the model again.")
    shards = sorted({str(shard) for shard in places.values()})
    for shard in shards:
        if not (folder / shard).is_file():
            raise BadFileError(
                f"{index} names {shard}, which does not exist; copy all {len(shards)} shards."
            )
    return [folder / shard for shard in shards]


def content_hash(folder: Path) -> str:
    """``sha256:`` and 12 hex digits over the configuration, the tokenizer and the weights.

    A weight file over 8 MB counts with its size and 128 samples of 64 KB: this tells another training run of equal size
    apart in milliseconds, without reading 14 GB.
    """
    total = sha256()
    texts = sorted(file for file in folder.iterdir() if file.suffix in _TEXTUAL and file.is_file())
    for file in (*texts, *weight_files(folder)):
        length = file.stat().st_size
        total.update(f"\0{file.name}\0{length}\0".encode())
        with open(file, "rb") as handle:
            for piece in _samples(handle, length):
                total.update(piece)
    return f"sha256:{total.hexdigest()[:12]}"


def _samples(handle: BinaryIO, length: int) -> Iterator[bytes]:
    if length <= _SAMPLE_BYTES * _SAMPLES:
        yield handle.read()
        return
    for number in range(_SAMPLES):
        handle.seek((length - _SAMPLE_BYTES) * number // (_SAMPLES - 1))
        yield handle.read(_SAMPLE_BYTES)


def is_quantised(tensor: str, stored: str, dimensions: int) -> bool:
    """Whether bitsandbytes quantises a tensor: a matrix, but no embedding, output head or norm."""
    return (
        stored in _PLAIN and dimensions == 2 and not any(part in tensor for part in _NOT_QUANTISED)
    )


def bits_of(
    tensor: str, stored: str, dimensions: int, dtype: str, quantization: str = "none"
) -> float:
    """Bits of a tensor's weight in memory; ``dtype`` is for tensors that are not quantised."""
    if stored not in _PLAIN:
        return _STORED.get(stored, 8)
    return BITS[
        quantization
        if quantization != "none" and is_quantised(tensor, stored, dimensions)
        else dtype
    ]


def tensors(file: Path) -> Iterator[tuple[str, int, str, int]]:
    """(name, elements, dtype, dimensions) from a safetensors header; raises BadFileError."""
    try:
        with open(file, "rb") as handle:
            (length,) = struct.unpack("<Q", handle.read(8))
            if length > file.stat().st_size:
                raise ValueError("the header is longer than the file")
            header = json.loads(handle.read(length))
        for name, tensor in header.items():
            if name != "__metadata__":
                shape = tensor["shape"]
                yield name, math.prod(shape), tensor["dtype"], len(shape)
    except (ValueError, KeyError, TypeError, AttributeError, struct.error):
        raise damaged(file) from None


def damaged(where: Path | str) -> BadFileError:
    """The error for unreadable weights."""
    return BadFileError(
        f"The weights in {where} are damaged, cut short, or only a git-lfs pointer; download the model again."
    )
