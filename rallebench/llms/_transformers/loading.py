"""From a folder or a hub id to a model in memory: checked before, measured after."""

from __future__ import annotations

import importlib.util
import logging
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rallebench.checkpoints.failures import LESS, loading_failed
from rallebench.checkpoints.folders import BITS, content_hash, model_folder, needed_bytes
from rallebench.errors import BackendMemoryError, BadFileError, MissingPackageError
from rallebench.llms._transformers.settings import Settings
from rallebench.memory import Memory, free_ram_bytes, release, size


@dataclass(frozen=True)
class Loaded:
    """A model in memory. ``source`` names its content: a hub commit, or a hash over its files."""

    model: Any
    tokenizer: Any
    source: str
    dtype: str
    device: str
    memory: Memory


def load(name: str, settings: Settings) -> Iterator[str | Loaded]:
    """Yield what is being done, one line each, and finally the Loaded. Raises RalleError."""
    _need_packages(settings.quantization)
    folder = model_folder(name, settings.model)
    where = str(folder or settings.model)
    try:
        yield from _load(name, settings, folder, where)
    except Exception as error:
        sentence = loading_failed(error, name, where, settings.revision)
        error.with_traceback(None)  # its frames hold what was loaded so far
        release()
        raise sentence from None


def _load(name: str, settings: Settings, folder: Path | None, where: str) -> Iterator[str | Loaded]:
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer

    yield f"Reading the configuration and the tokenizer of {where}"
    common = {"revision": settings.revision or "main", "trust_remote_code": settings.trust_remote_code}
    config = AutoConfig.from_pretrained(where, **common)
    tokenizer = AutoTokenizer.from_pretrained(where, **common)
    device_map = settings.device_map or ("cuda" if torch.cuda.is_available() else "cpu")
    dtype = _dtype(settings.dtype, config, device_map)
    form = dtype if settings.quantization == "none" else f"{settings.quantization} with {dtype}"
    needed = needed_bytes(folder, dtype, settings.quantization) if folder else 0
    _check_room(name, needed, form, device_map)
    yield f"Loading the weights of {where} as {form}" + (f" ({size(needed)})" if needed else "")
    auto = AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM
    quantized = _quantized(settings.quantization, dtype)
    before = Memory.now()
    model, report = auto.from_pretrained(
        where,
        dtype=getattr(torch, dtype),
        device_map=device_map,
        output_loading_info=True,
        **quantized,
        **common,
    )
    if missing := sorted(report["missing_keys"]):
        # transformers fills them with random numbers and only warns.
        raise BadFileError(
            f"The weights of {where} lack {len(missing)} tensors that a {config.model_type} language model "
            f"has (the first is {missing[0]}), so it would answer at random; give a complete language model."
        )
    _read_mapped(model)
    release()
    source = content_hash(folder) if folder else f"{where}@{config._commit_hash or common['revision']}"
    yield Loaded(model, tokenizer, source, dtype, _device(model), Memory.now() - before)


def _need_packages(quantization: str) -> None:
    if "torch" not in sys.modules:
        # Threads that spin while they wait stall a shared machine; torch reads this once.
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    for package in ("torch", "transformers", "accelerate"):
        if importlib.util.find_spec(package) is None:
            raise MissingPackageError(package, "and models in this process need it")
    if quantization != "none" and importlib.util.find_spec("bitsandbytes") is None:
        raise MissingPackageError("bitsandbytes", f"and quantization {quantization} needs it")


def _quantized(quantization: str, dtype: str) -> dict[str, Any]:
    """The argument of ``from_pretrained`` that quantises while loading."""
    if quantization == "none":
        return {}
    import bitsandbytes  # noqa: F401 - now, so that its own memory is not counted as the model's
    import torch
    from transformers import BitsAndBytesConfig

    logging.getLogger("bitsandbytes.autograd._functions").addFilter(_is_no_cast_warning)
    if quantization == "8bit":
        return {"quantization_config": BitsAndBytesConfig(load_in_8bit=True)}
    four_bits = BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=getattr(torch, dtype),
    )
    return {"quantization_config": four_bits}


def _is_no_cast_warning(record: logging.LogRecord) -> bool:
    """int8 layers compute in float16 by design; bitsandbytes says so at every single call."""
    return "will be cast from" not in record.getMessage()


def _dtype(asked: str, config: Any, device_map: Any) -> str:
    """'auto' is what the weights are stored in, but float32 for float16 on a CPU, which is slow at it."""
    if asked != "auto":
        return asked
    stored = str(getattr(config, "dtype", None) or "float32").removeprefix("torch.")
    if stored not in BITS or (stored == "float16" and device_map == "cpu"):
        return "float32"
    return stored


def _read_mapped(model: Any) -> None:
    """Read weights that are only mapped from their file into RAM: measured now, and no slow first answer."""
    for parameter in model.parameters():
        if parameter.device.type == "cpu" and parameter.is_contiguous():
            parameter.data.view(-1)[:: 4096 // parameter.element_size()].max()


def _check_room(name: str, needed: int, form: str, device_map: Any) -> None:
    """Refuse what cannot fit: a process that takes too much RAM is killed without a word."""
    free = None
    if device_map == "cpu":
        free = free_ram_bytes()
    elif isinstance(device_map, str) and device_map.startswith("cuda"):
        import torch

        free = int(torch.cuda.mem_get_info(torch.device(device_map))[0])
    if free is not None and needed > free:
        raise BackendMemoryError(
            f"{name!r} needs about {size(needed)} as {form}, but only {size(free)} are free on {device_map}; "
            f"{LESS}."
        )


def _device(model: Any) -> str:
    """Where the inputs go: where the embedding is, unless that was moved out of memory."""
    device = model.get_input_embeddings().weight.device
    return str(model.device if device.type == "meta" else device)
