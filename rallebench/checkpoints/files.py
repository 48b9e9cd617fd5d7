"""Checkpoints: checks of a model's folder, and the facts in its configuration and headers, read without torch.

If the weights are missing or pickled, tensors are taken from the empty model that transformers creates from the
configuration on torch's meta device.
"""

from __future__ import annotations

import json
import logging
import math
import struct
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from rallebench.core.errors import BadFileError
from rallebench.core.files import read_json

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

log = logging.getLogger(__name__)

BITS = {"float32": 32, "float16": 16, "bfloat16": 16, "8bit": 8, "4bit": 4.13}
"""Bits per weight in memory; nf4 with double quantisation: Dettmers et al. 2023, arXiv:2305.14314."""

# A tensor in one of these formats is loaded in the requested dtype; any other is already quantised and stays so.
_PLAIN = {"F64", "F32", "F16", "BF16"}

# bits of other formats; the default is 8
_STORED = {"I64": 64, "U64": 64, "I32": 32, "U32": 32, "I16": 16, "U16": 16}

# Names of embeddings, output heads, and experts that transformers joins into one tensor; bitsandbytes does not quantise
# these.
_NOT_QUANTISED = ("embed", "lm_head", "shared.", "wte", "wpe", ".experts.")

# names of a value in configurations, the most exact first
_LAYERS = (
    "num_decoder_layers",
    "decoder_layers",
    "num_hidden_layers",
    "n_layer",
    "n_layers",
    "num_layers",
)
_HEADS = ("num_attention_heads", "decoder_attention_heads", "n_head", "n_heads", "num_heads")
_WIDTH = ("hidden_size", "n_embd", "d_model")
WINDOW = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length")

Tensor = tuple[str, int, str, int]
"""Name, elements, dtype in the words of safetensors, dimensions."""

_TEXTUAL = {".json", ".jinja", ".model", ".txt", ".tiktoken", ".py"}
_SAMPLE_BYTES = 65_536
_SAMPLES = 128


def model_folder(name: str, model: str) -> Path | None:
    """Return the model's folder, checked; None if ``model`` can only be a hub id. Raises BadFileError."""
    folder = Path(model).expanduser()
    if not folder.exists():
        if model.startswith(("/", ".", "~")) or "\\" in model or model.count("/") > 1:
            raise BadFileError(
                f"{name!r}: the folder {model} does not exist; give the folder with the model's "
                "config.json, or a Hugging Face id such as owner/model."
            )
        return None
    if not folder.is_dir():
        raise BadFileError(
            f"{name!r}: {folder} is a file; give the folder with the model's config.json."
        )
    if not (folder / "config.json").exists():
        adapter = (folder / "adapter_config.json").exists()
        file = next(iter(sorted(folder.glob("*.gguf"))), None)
        mend = "give the model's own folder"
        if adapter:
            mend = "merge the adapter in it into its base model"
        elif file:
            mend = f"give the GGUF file in it ({file})"
        raise BadFileError(
            f"{name!r}: {folder} has no config.json, so it is not a complete model; {mend}."
        )
    config = read_json(folder / "config.json")
    if not isinstance(config, dict) or not config.get("model_type"):
        raise BadFileError(
            f"{folder / 'config.json'} lacks model_type; give the folder of a language model."
        )
    weight_files(folder)
    return folder.resolve()


def weight_files(folder: Path) -> list[Path]:
    """Return the files of the weights, preferably safetensors. Raises BadFileError if a file is missing."""
    for stem in ("model.safetensors", "pytorch_model.bin"):
        if (folder / stem).is_file():
            return [folder / stem]
        index = folder / f"{stem}.index.json"
        if index.is_file():
            return _shards(folder, index)
    raise BadFileError(
        f"{folder} contains no weights (model.safetensors or pytorch_model.bin, or shards with their index); "
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
    """Return ``sha256:`` and 12 hex digits over the configuration, the tokenizer and the weights.

    Of a weight file over 8 MB, only its size and 128 samples of 64 KB are hashed, which distinguish training runs of equal
    size in milliseconds, without reading 14 GB.
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


def tree_hash(folder: Path) -> str:
    """Return ``sha256:`` and 12 hex digits over the configurations, tokenizers and weights in a folder and its subfolders.

    Large files are sampled as by ``content_hash``.
    """
    total = sha256()
    suffixes = _TEXTUAL | {".safetensors", ".bin", ".metadata"}
    for file in sorted(folder.rglob("*")):
        if file.suffix in suffixes and file.is_file():
            length = file.stat().st_size
            total.update(f"\0{file.relative_to(folder).as_posix()}\0{length}\0".encode())
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
    """Return whether bitsandbytes quantises a tensor: a matrix other than an embedding, output head or norm."""
    return (
        stored in _PLAIN and dimensions == 2 and not any(part in tensor for part in _NOT_QUANTISED)
    )


def weight_bits(
    tensor: str, stored: str, dimensions: int, dtype: str, quantization: str = "none"
) -> float:
    """Return the bits per weight of a tensor in memory; ``dtype`` applies to tensors that are not quantised."""
    if stored not in _PLAIN:
        return _STORED.get(stored, 8)
    return BITS[
        quantization
        if quantization != "none" and is_quantised(tensor, stored, dimensions)
        else dtype
    ]


def tensors(file: Path) -> Iterator[Tensor]:
    """Yield the tensors in a safetensors header; raises BadFileError."""
    for name, (shape, dtype, _) in _header(file).items():
        yield name, math.prod(shape), dtype, len(shape)


def pickled_tensors(file: Path) -> list[str]:
    """Return the names of the tensors in a pickled file of weights; nothing but tensors is unpickled. Raises BadFileError."""
    import torch

    try:
        stored = torch.load(file, map_location="meta", weights_only=True)
    except Exception:  # torch raises almost anything for a damaged file
        raise damaged_weights(file) from None
    return list(stored) if isinstance(stored, dict) else []


def mapped_tensor(file: Path, name: str) -> NDArray[np.float32]:
    """Return a float32 tensor of a safetensors file, mapped by itself, so that only its pages use RAM. Raises BadFileError.

    Writes change the array, not the file.
    """
    import numpy as np  # a list of models imports none

    shape, _, offset = _header(file)[name]
    return np.memmap(file, dtype="<f4", mode="c", offset=offset, shape=shape)


def _header(file: Path) -> dict[str, tuple[tuple[int, ...], str, int]]:
    """Return name → (shape, dtype, offset in the file) of each tensor of a safetensors file."""
    try:
        with open(file, "rb") as handle:
            (length,) = struct.unpack("<Q", handle.read(8))
            if length > file.stat().st_size:
                raise ValueError("the header is longer than the file")
            header = json.loads(handle.read(length))
        return {
            name: (tuple(tensor["shape"]), tensor["dtype"], 8 + length + tensor["data_offsets"][0])
            for name, tensor in header.items()
            if name != "__metadata__"
        }
    except (ValueError, KeyError, TypeError, AttributeError, struct.error):
        raise damaged_weights(file) from None


def damaged_weights(where: Path | str) -> BadFileError:
    """Return the error for unreadable weights."""
    return BadFileError(
        f"The weights in {where} are damaged, truncated, or only a git-lfs pointer; download the model again."
    )


def cache_bytes(config: Mapping[str, Any], context: int, batch: int, dtype: str) -> int:
    """Return the bytes of the key-value cache; 0 if the configuration does not define it.

    An upper bound: layers with a sliding window or a state need less.

    >>> llama = {"num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64}
    >>> cache_bytes(llama, 2048, 1, "bfloat16")
    67108864
    """
    heads, layers = first_number(config, _HEADS), first_number(config, _LAYERS)
    width = first_number(config, ("head_dim", "d_kv")) or (
        first_number(config, _WIDTH) // heads if heads else 0
    )
    stored = first_number(config, ("num_key_value_heads",)) or (
        1 if config.get("multi_query") else heads
    )
    twice = 2 if config.get("is_encoder_decoder") else 1  # the cache of the encoder's output, too
    return int(2 * twice * layers * stored * width * context * batch * BITS[dtype] / 8)


def first_number(config: Mapping[str, Any], names: Iterable[str]) -> int:
    """Return the first positive integer under these names in a configuration or its text part; 0 if none."""
    inner = config.get("text_config")
    for part in (config, inner if isinstance(inner, dict) else {}):
        for name in names:
            if isinstance(part.get(name), int) and part[name] > 0:
                return int(part[name])
    return 0


def cached_folder(
    model: str, revision: str | None = None, file: str = "config.json"
) -> Path | None:
    """Return the folder of a hub id in the local Hugging Face cache, or None. ``file``: a file that must be in it."""
    try:
        from huggingface_hub import try_to_load_from_cache

        path = try_to_load_from_cache(model, file, revision=revision or "main")
    except (ImportError, ValueError, OSError):
        return None
    return Path(path).parent if isinstance(path, str) else None


def has_weights(folder: Path) -> bool:
    """Return whether a folder holds all weight files; a cached folder may hold only the configuration."""
    try:
        return bool(weight_files(folder))
    except BadFileError:
        return False


def token_positions(config: Any) -> int:
    """Return the number of token positions of a model; 0 if unknown."""
    places = int(getattr(config, "max_position_embeddings", 0) or 0)
    # RoBERTa and its relatives number positions from after the padding token.
    counted_on = places and "roberta" in config.model_type
    return places - 1 - int(config.pad_token_id or 0) if counted_on else places


@lru_cache(maxsize=16)
def model_tensors(folder: Path, mtime: int) -> tuple[Tensor, ...]:
    """Return the tensors of a model; () if unknown. ``mtime`` invalidates the cached result after a change of the folder."""
    try:
        files = weight_files(folder)
        if all(file.suffix == ".safetensors" for file in files):
            return tuple(tensor for file in files for tensor in tensors(file))
    except BadFileError:
        pass  # a cache with the configuration only
    return _empty_model(folder)


def _empty_model(folder: Path) -> tuple[Tensor, ...]:
    try:
        import torch
        from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM

        config = AutoConfig.from_pretrained(folder, local_files_only=True)
        auto = AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM
        with torch.device("meta"):
            model = auto.from_config(config)
        return tuple((name, p.numel(), "F32", p.dim()) for name, p in model.named_parameters())
    except Exception as error:  # loading will report the error in a sentence
        log.info("no estimate for %s: %s", folder, error)
        return ()


def resolve_dtype(dtype: str, stored: Any, device: str) -> str:
    """Return the dtype; 'auto' means that of the stored weights, but float32 instead of float16 on a CPU, where float16
    is slow.
    """
    if dtype != "auto":
        return dtype
    known = str(stored or "float32").removeprefix("torch.")
    if known not in ("float32", "bfloat16", "float16") or (known == "float16" and device == "cpu"):
        return "float32"
    return known
