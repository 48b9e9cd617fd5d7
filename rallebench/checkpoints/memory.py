"""Estimate of the memory that a model needs, before it is loaded and without a network.

The estimate uses the headers of the weights; if these are missing or pickled, the empty model that transformers creates
from the configuration on torch's meta device.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rallebench.checkpoints import gguf
from rallebench.checkpoints.files import (
    WINDOW,
    Tensor,
    cache_bytes,
    cached_folder,
    first_number,
    is_quantised,
    model_folder,
    model_tensors,
    resolve_dtype,
    weight_bits,
)
from rallebench.core.errors import BackendMemoryError
from rallebench.core.files import read_json
from rallebench.core.memory import Memory, free_ram_bytes, free_vram_bytes, size
from rallebench.core.versions import imported_module

LESS = "choose quantization 4bit or 8bit, unload another model, or choose a smaller one"
"""Advice for a model that does not fit."""

CONTEXT = 2048
"""Tokens of prompt and answer that determine the key-value cache, unless the model's window is smaller."""

SPREAD = ("auto", "balanced", "balanced_low_0", "sequential")
"""Device maps that spread a model over all devices."""

TIGHT = 0.85
"""Share of the free memory above which a model fits only tightly."""

SPARE = 100_000_000
"""Bytes of freed blocks that quantisation keeps for a while; measured."""

TEMPORARY = 32
"""Bytes per weight of the largest matrix while it is quantised: the original, the cast and the blocks."""

ENCODER, READER = "encoder", "reader"

FIRST_USE = {
    "none": 4_400_000,
    "8bit": 6_200_000,
    "4bit": 8_500_000,
    ENCODER: 8_500_000,
    READER: 16_000_000,
}
"""Bytes of RAM that the first load of a process takes and keeps besides the weights: the loader's thread, kernels read from
disk, tables of bitsandbytes. Measured on a CPU in fresh processes for Llamas of 1.5 to 103 million weights, for MiniLM and
for the reader (tests/checkpoints/test_memory_measured.py repeats the measurement); a second load takes only its weights.
"""

TOKEN = {ENCODER: 300, READER: 500}
"""Bytes of RAM per vocabulary entry: the tokenizer and, for the reader, a second word list. Measured."""

_used: set[str] = set()
"""Forms (quantisations, ENCODER, READER) in which this process has loaded a model."""


@dataclass(frozen=True, slots=True)
class MemoryNeed:
    """Bytes on ``device``: the weights, the key-value cache, and the temporary memory of loading.

    ``form``: quantisation and number format. The cache holds ``batch`` concurrent answers over ``context`` tokens.
    ``device``: cpu, cuda, cuda:1 … or auto (all devices). ``first_use``: bytes that libraries take at the first load.
    ``tokenizer``: bytes of RAM; 0 if not counted, as for language models of transformers.
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
    def resident(self) -> int:
        """Memory in use after loading."""
        return self.weights + self.tokenizer + self.first_use

    @property
    def as_memory(self) -> Memory:
        """Resident memory by kind; a model spread over several devices counts as VRAM."""
        return Memory(self.resident) if self.device == "cpu" else Memory(vram=self.resident)

    @property
    def to_load(self) -> int:
        """Peak memory during loading."""
        return self.resident + self.loading

    @property
    def total(self) -> int:
        """Peak memory during loading and answering."""
        return self.resident + max(self.cache, self.loading)

    @property
    def kind(self) -> str:
        """RAM, VRAM, or memory for both."""
        return {"cpu": "RAM", "auto": "memory"}.get(self.device, "VRAM")

    def __str__(self) -> str:
        return f"{size(self.total)} {self.kind} ({self.form})"


def memory_need(
    name: str,
    model: str,
    *,
    quantization: str = "none",
    dtype: str = "auto",
    device_map: Any = None,
    revision: str | None = None,
    gguf_file: str = "",
    context: int | None = None,
    batch: int | None = None,
) -> MemoryNeed | None:
    """Return the need of a model in a folder, a GGUF file or the local hub cache; None if unknown.

    Raises BadFileError if the folder or file does not hold a complete model.
    """
    if file := gguf.gguf_file(name, model, gguf_file):
        facts = gguf.gguf_model(file)
        config, listed = facts.config, facts.tensors
    else:
        folder = model_folder(name, model) or cached_folder(model, revision)
        if folder is None:
            return None
        config, listed = _describe(folder)
    if not listed:
        return None
    device = mapped_device(device_map)
    dtype = resolve_dtype(dtype, config.get("dtype") or config.get("torch_dtype"), device)
    return need_from(listed, config, quantization, dtype, device, context, batch)


def need_from(
    listed: Sequence[Tensor],
    config: Mapping[str, Any],
    quantization: str,
    dtype: str,
    device: str,
    context: int | None = None,
    batch: int | None = None,
) -> MemoryNeed:
    """Return the need of a model with these tensors. ``dtype`` applies to tensors that are not quantised."""
    weights = sum(
        count * weight_bits(name, stored, dims, dtype, quantization)
        for name, count, stored, dims in listed
    )
    largest = max((t[1] for t in listed if is_quantised(t[0], t[2], t[3])), default=0)
    context = context or min(CONTEXT, first_number(config, WINDOW) or CONTEXT)
    batch = batch or 1
    return MemoryNeed(
        int(weights / 8),
        cache_bytes(config, context, batch, dtype),
        0 if quantization == "none" else TEMPORARY * largest + SPARE,
        sum(tensor[1] for tensor in listed),
        dtype if quantization == "none" else quantization,
        device,
        context,
        batch,
        first_use(quantization) if device == "cpu" else 0,
    )


def first_use(form: str) -> int:
    """Return the bytes that the next load takes besides the weights: 0 once this process has loaded that form.

    ``form``: a quantisation, ENCODER or READER.
    """
    before = max((FIRST_USE[used] for used in _used), default=0)
    return max(0, FIRST_USE[form] - before)


def note_use(form: str) -> None:
    """Record that this process has loaded a model in that form."""
    _used.add(form)


def encoder_need(
    folder: Path, *, quantization: str = "none", device: str = "cpu"
) -> MemoryNeed | None:
    """Return the need of the sentence encoder in a folder, in float32; None if unknown."""
    config, listed = _describe(folder)
    if not listed:
        return None
    need = replace(need_from(listed, config, quantization, "float32", device), cache=0)
    if device != "cpu":
        return need
    words = first_number(config, ("vocab_size",))
    return replace(need, tokenizer=TOKEN[ENCODER] * words, first_use=first_use(ENCODER))


def _describe(folder: Path) -> tuple[Mapping[str, Any], tuple[Tensor, ...]]:
    """Return the configuration and the tensors of a model; no tensors if unknown."""
    file = folder / "config.json"
    config = read_json(file)
    if not isinstance(config, dict):
        return {}, ()
    return config, model_tensors(folder, file.stat().st_mtime_ns)


def mapped_device(device_map: Any) -> str:
    """Return the device of a ``device_map``; auto for several devices.

    >>> [mapped_device(value) for value in ("cpu", "cuda:1", {"": 0}, {"": "cpu"}, {"a": 0, "b": "cpu"})]
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
    """Return whether torch would find a CUDA device, without importing torch."""
    torch = imported_module("torch")
    if torch is not None:
        return bool(torch.cuda.is_available())
    try:
        built_for_it = "+cpu" not in importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return False
    return built_for_it and bool(free_vram_bytes())


def free_on(device: str) -> int | None:
    """Return the free bytes on a device of :func:`mapped_device`; None if unknown."""
    if device == "cpu":
        return free_ram_bytes()
    free = free_vram_bytes()
    if device == "auto":
        return sum(free.values()) + free_ram_bytes()
    kind, _, number = device.partition(":")
    return free.get(int(number or 0)) if kind == "cuda" else None


def check_fit(name: str, need: MemoryNeed) -> None:
    """Raise BackendMemoryError for a model that does not fit: too much RAM would kill the process silently."""
    free = free_on(need.device)
    if free is not None and need.to_load > free:
        raise BackendMemoryError(
            f"{name!r} needs about {size(need.to_load)} {need.kind} as {need.form}, but only "
            f"{size(free)} are free; {LESS}."
        )
