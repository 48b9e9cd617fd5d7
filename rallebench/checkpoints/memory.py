"""The memory that a model will need, before it is loaded and without a network.

It is counted from the headers of the weights; if they are missing or pickled, from the empty model that transformers
creates from the configuration on torch's meta device.
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
    bits_of,
    cache_bytes,
    cached_folder,
    dtype_of,
    first_number,
    is_quantised,
    model_folder,
    tensors_of,
)
from rallebench.core.errors import BackendMemoryError
from rallebench.core.files import read_json
from rallebench.core.memory import Memory, free_ram_bytes, free_vram_bytes, size
from rallebench.core.versions import imported

LESS = "choose quantization 4bit or 8bit, unload another model, or take a smaller one"
"""The mend for a model that does not fit."""

CONTEXT = 2048
"""Tokens of prompt and answer for the size of the cache, unless the model's window is smaller."""

SPREAD = ("auto", "balanced", "balanced_low_0", "sequential")
"""Device maps that spread a model over all devices."""

TIGHT = 0.85
"""A model that needs more than this share of the free memory fits only tightly."""

SPARE = 100_000_000
"""Bytes of freed blocks that a quantisation keeps for a while; measured."""

TEMPORARY = 32
"""Bytes for each weight of the largest matrix during its quantisation: the original, the cast and the blocks."""

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
103 million weights, for MiniLM and for the reader (tests/checkpoints/test_memory_measured.py measures it again); a second load
takes its weights alone."""

TOKEN = {ENCODER: 300, READER: 500}
"""Bytes of RAM for each entry of the vocabulary: the tokenizer, and for the reader a second list of the words. Measured."""

_used: set[str] = set()
"""The forms in which this process has loaded a model."""


@dataclass(frozen=True, slots=True)
class MemoryNeed:
    """Bytes on ``device``: the weights, the cache of keys and values, and the temporary memory of loading.

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
    def as_memory(self) -> Memory:
        """Memory once it is loaded, by its kind; a model that is spread over devices counts as VRAM."""
        return Memory(self.loaded) if self.device == "cpu" else Memory(vram=self.loaded)

    @property
    def to_load(self) -> int:
        """The most memory during loading."""
        return self.loaded + self.loading

    @property
    def total(self) -> int:
        """The most memory during loading or answering."""
        return self.loaded + max(self.cache, self.loading)

    @property
    def kind(self) -> str:
        """RAM, VRAM, or memory for both."""
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
    gguf_file: str = "",
    context: int | None = None,
    batch: int | None = None,
) -> MemoryNeed | None:
    """The need of the model in a folder or a GGUF file, or of a hub id in the local cache; None if unknown.

    Raises BadFileError for what holds no whole model.
    """
    if file := gguf.gguf_file(name, model, gguf_file):
        facts = gguf.gguf_model(file)
        config, listed = facts.config, facts.tensors
    else:
        folder = model_folder(name, model) or cached_folder(model, revision)
        if folder is None:
            return None
        config, listed = _described(folder)
    if not listed:
        return None
    device = device_of(device_map)
    dtype = dtype_of(dtype, config.get("dtype") or config.get("torch_dtype"), device)
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
    """The need of a model with these tensors. ``dtype`` is for tensors that are not quantised."""
    weights = sum(
        count * bits_of(name, stored, dims, dtype, quantization)
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
    """Bytes that the next load of this process takes beside the weights: 0 once a model was loaded in that form.

    ``form``: a quantisation, ENCODER or READER.
    """
    before = max((FIRST_USE[used] for used in _used), default=0)
    return max(0, FIRST_USE[form] - before)


def note_use(form: str) -> None:
    """This process has loaded a model in that form."""
    _used.add(form)


def encoder_need(
    folder: Path, *, quantization: str = "none", device: str = "cpu"
) -> MemoryNeed | None:
    """What the sentence encoder of a folder takes in float32; None if nothing there says so."""
    config, listed = _described(folder)
    if not listed:
        return None
    need = replace(need_from(listed, config, quantization, "float32", device), cache=0)
    if device != "cpu":
        return need
    words = first_number(config, ("vocab_size",))
    return replace(need, tokenizer=TOKEN[ENCODER] * words, first_use=first_use(ENCODER))


def _described(folder: Path) -> tuple[Mapping[str, Any], tuple[Tensor, ...]]:
    """The configuration and the tensors of a model; no tensors if it is unknown."""
    file = folder / "config.json"
    config = read_json(file)
    if not isinstance(config, dict):
        return {}, ()
    return config, tensors_of(folder, file.stat().st_mtime_ns)


def device_of(device_map: Any) -> str:
    """The device of a ``device_map``; auto for several devices.

    >>> [device_of(value) for value in ("cpu", "cuda:1", {"": 0}, {"": "cpu"}, {"a": 0, "b": "cpu"})]
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
    """Return whether torch would find a CUDA device; this imports no torch."""
    torch = imported("torch")
    if torch is not None:
        return bool(torch.cuda.is_available())
    try:
        built_for_it = "+cpu" not in importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return False
    return built_for_it and bool(free_vram_bytes())


def free_on(device: str) -> int | None:
    """Free bytes on a device of :func:`device_of`; None if unknown."""
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
