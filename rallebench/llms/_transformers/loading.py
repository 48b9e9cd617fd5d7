"""Loading of a model from a folder or the hub: checked before, measured after."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rallebench.checkpoints.failures import loading_failed
from rallebench.checkpoints.files import content_hash, model_folder
from rallebench.checkpoints.memory import (
    MemoryNeed,
    check_fit,
    device_of,
    dtype_of,
    need_of,
    note_use,
)
from rallebench.checkpoints.packages import need_packages, silence_casts
from rallebench.core.errors import BadFileError, RalleError
from rallebench.core.memory import (
    Memory,
    copy_mapped,
    forget_frames,
    pages_of_their_own,
    read_mapped,
    release,
    size,
)
from rallebench.llms._transformers.hardware import (
    check_hardware,
    check_vocabulary,
    from_pretrained_arguments,
)
from rallebench.llms._transformers.progress import counting_tensors, download_bar
from rallebench.llms._transformers.settings import TransformersSettings, settings_of


@dataclass(frozen=True)
class LoadedModel:
    """A model in memory. ``source`` names its content: a hub commit, or a hash of its files."""

    model: Any
    tokenizer: Any
    source: str
    dtype: str
    device: str
    memory: Memory


def load(name: str, settings: TransformersSettings) -> Iterator[str | LoadedModel]:
    """Yield a line per step, and finally the LoadedModel. Raises RalleError."""
    need_packages(
        ("torch", "transformers", "accelerate"),
        settings.quantization,
        "models in this process need it",
    )
    folder = model_folder(name, settings.model)
    where = str(folder or settings.model)
    failed: RalleError | None = None
    try:
        with pages_of_their_own():
            yield from _load(name, settings, folder, where)
    except Exception as error:
        failed = loading_failed(error, name, where, settings.revision)
        forget_frames(error)
    if failed is not None:
        release()
        raise failed


def need(
    name: str, context: int | None = None, batch: int | None = None, /, **settings: Any
) -> MemoryNeed | None:
    """The memory need of the model in these settings, without loading it; None if unknown.

    ``context`` tokens and ``batch`` answers at once: by default those of the settings.
    """
    own = settings_of(name, **settings)
    return need_of(
        name,
        own.model,
        quantization=own.quantization,
        dtype=own.dtype,
        device_map=own.device_map,
        revision=own.revision,
        context=context or own.context_window,
        batch=batch or own.batch_size,
    )


def _load(
    name: str, settings: TransformersSettings, folder: Path | None, where: str
) -> Iterator[str | LoadedModel]:
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer

    check_hardware(name, settings)
    if settings.quantization != "none":
        import bitsandbytes  # noqa: F401 - now, so that its memory does not count as the model's
    yield f"Reading the configuration and the tokenizer of {where}"
    common = {
        "revision": settings.revision or "main",
        "trust_remote_code": settings.trust_remote_code,
    }
    config = AutoConfig.from_pretrained(where, **common)
    tokenizer = AutoTokenizer.from_pretrained(where, **common)
    check_vocabulary(where, tokenizer, config)
    device_map = settings.device_map or ("cuda" if torch.cuda.is_available() else "cpu")
    dtype = dtype_of(settings.dtype, getattr(config, "dtype", None), device_of(device_map))
    form = dtype if settings.quantization == "none" else f"{settings.quantization} with {dtype}"
    needed = need(name, **{**vars(settings), "dtype": dtype, "device_map": device_map})
    if needed is not None:
        check_fit(name, needed)
    message = f"Loading the weights of {where} as {form}" + (
        f" ({size(needed.weights)})" if needed else ""
    )
    yield message
    auto = AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM
    quantized = _quantized(settings, dtype)
    _import_class(auto, config)
    before = Memory.now()
    with counting_tensors(message):
        model, report = auto.from_pretrained(
            where,
            dtype=getattr(torch, dtype),
            device_map=device_map,
            output_loading_info=True,
            tqdm_class=download_bar(),
            **quantized,
            **from_pretrained_arguments(settings),
            **common,
        )
    if missing := sorted(report["missing_keys"]):
        # transformers only warns, and fills them with random numbers.
        raise BadFileError(
            f"The weights of {where} lack {len(missing)} tensors of a {config.model_type} language model "
            f"(the first is {missing[0]}), so it would answer at random; give a complete language model."
        )
    if quantized:
        copy_mapped(model)
    read_mapped(model)
    release()
    source = (
        content_hash(folder) if folder else f"{where}@{config._commit_hash or common['revision']}"
    )
    loaded = LoadedModel(model, tokenizer, source, dtype, _device(model), Memory.now() - before)
    note_use(settings.quantization)
    yield loaded


def _import_class(auto: Any, config: Any) -> None:
    """Import the model's class and create it once without weights, so that neither counts as the model's memory.

    In a fresh process this takes 45 MB (scipy, torch.distributed, transformers' quantizers …) for good.
    """
    import torch

    with contextlib.suppress(Exception), torch.device("meta"):  # a model's own code comes later
        auto.from_config(config)


def _quantized(settings: TransformersSettings, dtype: str) -> dict[str, Any]:
    """The argument of ``from_pretrained`` for a quantisation."""
    if settings.quantization == "none":
        return {}
    import torch
    from transformers import BitsAndBytesConfig

    silence_casts()
    if settings.quantization == "8bit":
        eight_bits = BitsAndBytesConfig(
            load_in_8bit=True, llm_int8_threshold=float(settings.llm_int8_threshold)
        )
        return {"quantization_config": eight_bits}
    compute = (
        dtype if settings.bnb_4bit_compute_dtype == "auto" else settings.bnb_4bit_compute_dtype
    )
    four_bits = BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type=settings.bnb_4bit_quant_type,
        bnb_4bit_use_double_quant=settings.bnb_4bit_use_double_quant,
        bnb_4bit_compute_dtype=getattr(torch, compute),
    )
    return {"quantization_config": four_bits}


def _device(model: Any) -> str:
    """The device of the inputs: that of the embedding, or its execution device if it is offloaded."""
    embedding = model.get_input_embeddings()
    if embedding.weight.device.type != "meta":
        return str(embedding.weight.device)
    device = getattr(getattr(embedding, "_hf_hook", None), "execution_device", None)
    return str(device if device is not None else "cpu")
