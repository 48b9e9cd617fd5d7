"""How much memory a model will take, told before any of it is loaded and without asking the network.

Counted from the headers of its weights; where these are not here (or say nothing, as pickled ones), from the
empty model that transformers makes of its configuration on torch's meta device.
"""

from __future__ import annotations

import importlib.metadata
import logging
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from rallebench.core.errors import BackendMemoryError, BadFileError
from rallebench.core.files import read_json
from rallebench.core.memory import free_ram_bytes, free_vram_bytes, size
from rallebench.llms._memory.failures import LESS
from rallebench.llms._memory.folders import (
    BITS,
    bits_of,
    is_quantised,
    model_folder,
    tensors,
    weight_files,
)

log = logging.getLogger(__name__)

CONTEXT = 2048
"""Tokens of prompt and answer that the cache is told for, unless the model's window is smaller."""

SPREAD = ("auto", "balanced", "balanced_low_0", "sequential")
"""Device maps by which a model is spread over what is there."""

TIGHT = 0.85
"""A model that takes more than this share of what is free fits, but tightly."""

SPARE = 100_000_000
"""Bytes that freed blocks of a quantisation keep for a while; measured."""

TEMPORARY = 32
"""Bytes for each weight of the largest matrix while it is being quantised: whole, cast, and its blocks."""

ENCODER, READER = "encoder", "reader"

FIRST_USE = {
    "none": 4_400_000,
    "8bit": 6_200_000,
    "4bit": 8_500_000,
    ENCODER: 8_500_000,
    READER: 16_000_000,
}
"""Bytes of RAM that the first load of a process takes beside the weights, and keeps: the loader's thread, the code of the
libraries' kernels that is read in from disk, tables of bitsandbytes. Measured on CPU in fresh processes for Llamas of 1.5 to
103 million weights, for MiniLM and for the reader (tests/llms/test_memory_measured.py measures it again); a second load
takes its weights alone."""

TOKEN = {ENCODER: 300, READER: 500}
"""Bytes of RAM for each entry of the vocabulary: the tokenizer, and for the reader a second list of the words. Measured."""

_used: set[str] = set()
"""The forms in which this process has loaded a model."""

# Names that configurations have for one thing, the most exact first.
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
_WINDOW = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length")

Tensor = tuple[str, int, str, int]
"""Name, elements, stored dtype as safetensors calls it, dimensions."""


@dataclass(frozen=True, slots=True)
class Need:
    """Bytes on ``device``: the weights, the cache of keys and values, what loading takes beside the weights.

    ``form``: quantisation and number format. The cache is that of ``batch`` answers at once over ``context``
    tokens. ``device``: cpu, cuda, cuda:1 … or auto: all there is. ``first_use``: what libraries take at the first load.
    ``tokenizer``: bytes of RAM, 0 where they are not counted, as for language models of transformers.
    """

    weights: int
    cache: int
    loading: int
    parameters: int
    form: str
    device: str
    context: int
    batch: int
    first_use: int = 0
    tokenizer: int = 0

    @property
    def loaded(self) -> int:
        """What is measured once it is loaded."""
        return self.weights + self.tokenizer + self.first_use

    @property
    def to_load(self) -> int:
        """At most, in loading."""
        return self.loaded + self.loading

    @property
    def total(self) -> int:
        """At most, in loading or in answering."""
        return self.loaded + max(self.cache, self.loading)

    @property
    def kind(self) -> str:
        """RAM or VRAM; memory if it is both."""
        return {"cpu": "RAM", "auto": "memory"}.get(self.device, "VRAM")

    def __str__(self) -> str:
        return f"{size(self.total)} {self.kind} ({self.form})"


def need_of(
    name: str,
    model: str,
    *,
    quantization: str = "none",
    dtype: str = "auto",
    device_map: Any = None,
    revision: str | None = None,
    context: int | None = None,
    batch: int | None = None,
) -> Need | None:
    """What the model of a folder, or of a hub id in the local cache, will take; None if nothing here says so.

    Raises BadFileError for a folder that holds no whole model.
    """
    folder = model_folder(name, model) or cached_folder(model, revision)
    if folder is None:
        return None
    config = read_json(folder / "config.json")
    found = _tensors(folder, (folder / "config.json").stat().st_mtime_ns)
    if not isinstance(config, dict) or not found:
        return None
    device = device_of(device_map)
    dtype = dtype_of(dtype, config.get("dtype") or config.get("torch_dtype"), device)
    return need_from(found, config, quantization, dtype, device, context, batch)


def need_from(
    found: Iterable[Tensor],
    config: Mapping[str, Any],
    quantization: str,
    dtype: str,
    device: str,
    context: int | None = None,
    batch: int | None = None,
) -> Need:
    """The same for tensors that are known. ``dtype``: what is not quantised is loaded in."""
    found = list(found)
    weights = sum(
        count * bits_of(name, stored, dims, dtype, quantization)
        for name, count, stored, dims in found
    )
    largest = max((t[1] for t in found if is_quantised(t[0], t[2], t[3])), default=0)
    context = context or min(CONTEXT, _first(config, _WINDOW) or CONTEXT)
    batch = batch or 1
    return Need(
        int(weights / 8),
        cache_bytes(config, context, batch, dtype),
        0 if quantization == "none" else TEMPORARY * largest + SPARE,
        sum(tensor[1] for tensor in found),
        dtype if quantization == "none" else quantization,
        device,
        context,
        batch,
        first_use(quantization) if device == "cpu" else 0,
    )


def first_use(form: str) -> int:
    """Bytes that the next load of this process takes beside the weights: 0 once a model was loaded in that form.

    ``form``: a quantisation, ENCODER or READER.
    """
    before = max((FIRST_USE[used] for used in _used), default=0)
    return max(0, FIRST_USE[form] - before)


def note_use(form: str) -> None:
    """This process has loaded a model in that form."""
    _used.add(form)


def encoder_need(folder: Path, *, quantization: str = "none", device: str = "cpu") -> Need | None:
    """What the sentence encoder of a folder takes in float32; None if nothing there says so."""
    config = read_json(folder / "config.json")
    found = _tensors(folder, (folder / "config.json").stat().st_mtime_ns)
    if not isinstance(config, dict) or not found:
        return None
    need = need_from(found, config, quantization, "float32", device)
    return replace(
        need,
        cache=0,
        tokenizer=TOKEN[ENCODER] * _first(config, ("vocab_size",)) if device == "cpu" else 0,
        first_use=first_use(ENCODER) if device == "cpu" else 0,
    )


def cache_bytes(config: Mapping[str, Any], context: int, batch: int, dtype: str) -> int:
    """Bytes of keys and values: two for each layer, key head and token; 0 if the configuration does not say.

    An upper bound: layers that look back over a window only, or keep a state, take less.

    >>> llama = {"num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64}
    >>> cache_bytes(llama, 2048, 1, "bfloat16")
    67108864
    """
    heads, layers = _first(config, _HEADS), _first(config, _LAYERS)
    width = _first(config, ("head_dim", "d_kv")) or (
        _first(config, _WIDTH) // heads if heads else 0
    )
    stored = _first(config, ("num_key_value_heads",)) or (1 if config.get("multi_query") else heads)
    twice = 2 if config.get("is_encoder_decoder") else 1  # to what was read, beside what is written
    return int(2 * twice * layers * stored * width * context * batch * BITS[dtype] / 8)


def _first(config: Mapping[str, Any], names: Iterable[str]) -> int:
    inner = config.get("text_config")
    for part in (config, inner if isinstance(inner, dict) else {}):
        for name in names:
            if isinstance(part.get(name), int) and part[name] > 0:
                return int(part[name])
    return 0


def cached_folder(model: str, revision: str | None = None) -> Path | None:
    """Where the local Hugging Face cache keeps the configuration of a hub id; None if it does not."""
    try:
        from huggingface_hub import try_to_load_from_cache

        found = try_to_load_from_cache(model, "config.json", revision=revision or "main")
    except (ImportError, ValueError, OSError):
        return None
    return Path(found).parent if isinstance(found, str) else None


@lru_cache(maxsize=16)
def _tensors(folder: Path, mtime: int) -> tuple[Tensor, ...]:
    """The tensors of a model; () if nothing says what they are. ``mtime`` tells a folder from its earlier self."""
    try:
        files = weight_files(folder)
        if all(file.suffix == ".safetensors" for file in files):
            return tuple(tensor for file in files for tensor in tensors(file))
    except BadFileError:
        pass  # a cache that holds the configuration alone
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
    except Exception as error:  # whatever is wrong with it, loading says it in a sentence
        log.info("no estimate for %s: %s", folder, error)
        return ()


def dtype_of(asked: str, stored: Any, device: str) -> str:
    """'auto' is what the weights are stored in, but float32 for float16 on a CPU, which is slow at it."""
    if asked != "auto":
        return asked
    known = str(stored or "float32").removeprefix("torch.")
    if known not in ("float32", "bfloat16", "float16") or (known == "float16" and device == "cpu"):
        return "float32"
    return known


def device_of(device_map: Any) -> str:
    """The device that a ``device_map`` means; auto if it is several.

    >>> [device_of(said) for said in ("cpu", "cuda:1", {"": 0}, {"": "cpu"}, {"a": 0, "b": "cpu"})]
    ['cpu', 'cuda:1', 'cuda:0', 'cpu', 'auto']
    """
    if isinstance(device_map, Mapping):
        places = {
            f"cuda:{place}" if isinstance(place, int) else str(place)
            for place in device_map.values()
        }
        return places.pop() if len(places) == 1 else "auto"
    if device_map is None:
        return "cuda" if has_cuda() else "cpu"
    if str(device_map) in SPREAD:
        return "auto" if has_cuda() else "cpu"
    return str(device_map)


def has_cuda() -> bool:
    """Whether torch would find a CUDA device; torch is asked only if it is imported already."""
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "cuda"):
        return bool(torch.cuda.is_available())
    try:
        built_for_it = "+cpu" not in importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return False
    return built_for_it and bool(free_vram_bytes())


def free_on(device: str) -> int | None:
    """Bytes that are free on a device of :func:`device_of`; None if nothing says so."""
    if device == "cpu":
        return free_ram_bytes()
    free = free_vram_bytes()
    if device == "auto":
        return sum(free.values()) + free_ram_bytes()
    kind, _, number = device.partition(":")
    return free.get(int(number or 0)) if kind == "cuda" else None


def check_room(name: str, need: Need) -> None:
    """Refuse what cannot be loaded: a process that takes too much RAM is killed without a word."""
    free = free_on(need.device)
    if free is not None and need.to_load > free:
        raise BackendMemoryError(
            f"{name!r} needs about {size(need.to_load)} {need.kind} as {need.form}, but only "
            f"{size(free)} are free; {LESS}."
        )
