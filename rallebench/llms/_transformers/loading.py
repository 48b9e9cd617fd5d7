"""Loading of a model from a folder or the hub: checked before, measured after."""

from __future__ import annotations

import contextlib
import importlib.util
import re
import tempfile
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rallebench.checkpoints.failures import loading_failed
from rallebench.checkpoints.files import content_hash, model_folder, resolve_dtype
from rallebench.checkpoints.gguf import GgufModel
from rallebench.checkpoints.memory import check_fit, mapped_device, note_use
from rallebench.checkpoints.packages import eight_bits, need_packages
from rallebench.core.errors import BadFileError, MissingPackageError, UsageError
from rallebench.core.memory import (
    Memory,
    copy_mapped,
    forget_frames,
    pages_of_their_own,
    read_mapped,
    release,
    size,
)
from rallebench.llms._transformers.converting import convert_model, model_in_file
from rallebench.llms._transformers.settings import TransformersSettings, need_of_settings
from rallebench.llms.load_progress import counting_tensors, download_bar

_FLASH = {"flash_attention_2": "flash_attn", "flash_attention_3": "flash_attn_interface"}

# Token settings of the model's generation config; the rest are sampling defaults.
_TOKEN_RULES = [
    "bos_token_id",
    "decoder_start_token_id",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "suppress_tokens",
    "begin_suppress_tokens",
    "bad_words_ids",
]

Steps = Generator[str, None, "LoadedModel"]


@dataclass(frozen=True)
class LoadedModel:
    """A model in memory. ``source``: identity of its content, a hub commit or a hash of its files."""

    model: Any
    tokenizer: Any
    source: str
    dtype: str
    device: str
    memory: Memory


def load(name: str, settings: TransformersSettings, cache: Path | None = None) -> Steps:
    """Yield a line per step, and return the model. Raises RalleError.

    A GGUF file is first converted into ``cache``, or, if that is None, for this load alone.
    """
    need_packages(
        ("torch", "transformers", "accelerate"),
        settings.quantization,
        "models in this process need it",
    )
    file = model_in_file(name, settings)
    folder = model_folder(name, settings.model) if file is None else None
    where = str(folder or settings.model)
    with contextlib.ExitStack() as stack:
        try:
            with pages_of_their_own():
                if file is not None:
                    where = str(file.path)
                    _check_hardware(name, settings)
                    place = cache or Path(stack.enter_context(tempfile.TemporaryDirectory()))
                    folder = yield from convert_model(file, place)
                return (yield from _load(name, settings, folder, where, file))
        except Exception as error:
            failed = loading_failed(error, name, where, settings.revision)
            forget_frames(error)
    release()
    raise failed


def _load(
    name: str,
    settings: TransformersSettings,
    folder: Path | None,
    where: str,
    file: GgufModel | None,
) -> Steps:
    """Load the files in ``folder``. ``where``: name of the model in messages; for a converted model, that of its
    ``file``.
    """
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer

    _check_hardware(name, settings)
    if settings.quantization != "none":
        import bitsandbytes  # noqa: F401 - now, so that its memory does not count as the model's
    yield f"Reading the configuration and the tokenizer of {where}"
    common = {
        "revision": settings.revision or "main",
        "trust_remote_code": settings.trust_remote_code,
    }
    place = str(folder or settings.model)
    config = AutoConfig.from_pretrained(place, **common)
    tokenizer = AutoTokenizer.from_pretrained(place, **common)
    _check_vocabulary(where, tokenizer, config)
    device_map = settings.device_map or ("cuda" if torch.cuda.is_available() else "cpu")
    dtype = resolve_dtype(settings.dtype, getattr(config, "dtype", None), mapped_device(device_map))
    form = dtype if settings.quantization == "none" else f"{settings.quantization} with {dtype}"
    needed = need_of_settings(name, settings)
    if needed is not None:
        check_fit(name, needed)
    message = f"Loading the weights of {where} as {form}" + (
        f" ({size(needed.weights)})" if needed else ""
    )
    yield message
    auto = AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM
    quantized = _quantization_arguments(settings, dtype)
    # Import the model's class and create it once without weights, so that neither counts as the model's memory: in a
    # fresh process this takes 45 MB (scipy, torch.distributed, transformers' quantizers …) for good.
    with contextlib.suppress(Exception), torch.device("meta"):  # a model's own code comes later
        auto.from_config(config)
    release()  # memory freed during the load would be subtracted from the model's
    before = Memory.now()
    with counting_tensors(message):
        model, report = auto.from_pretrained(
            place,
            dtype=getattr(torch, dtype),
            device_map=device_map,
            output_loading_info=True,
            tqdm_class=download_bar(),
            **quantized,
            **_placement(settings),
            **common,
        )
    if missing := sorted(report["missing_keys"]):
        # transformers only warns, and fills them with random numbers
        raise BadFileError(
            f"The weights of {where} lack {len(missing)} tensors of a {config.model_type} language model "
            f"(the first is {missing[0]}), so it would answer at random; give a complete language model."
        )
    if quantized:
        copy_mapped(model)
    read_mapped(model)
    release()
    source = _source(file, folder) or f"{where}@{config._commit_hash or common['revision']}"
    loaded = LoadedModel(model, tokenizer, source, dtype, _device(model), Memory.now() - before)
    note_use(settings.quantization)
    return loaded


def _source(file: GgufModel | None, folder: Path | None) -> str:
    """Return the identity of the weights, part of the fingerprint; '' for a model of the hub."""
    if file:
        return f"gguf:{file.sha256[:12]}"
    return content_hash(folder) if folder else ""


def _check_vocabulary(where: str, tokenizer: Any, config: Any) -> None:
    """Raise BadFileError for a tokenizer of another model."""
    words, known = getattr(tokenizer, "vocab_size", 0), vocabulary(config)
    # Added tokens may lie beyond it: many tokenizers have such a padding token.
    if known is not None and words > known:
        raise BadFileError(
            f"The tokenizer in {where} has {words} tokens, but the model knows only {known}, so they belong "
            "to different models; put the model's own tokenizer there."
        )


def _placement(settings: TransformersSettings) -> dict[str, Any]:
    """Return the attention and the memory of each device, as ``from_pretrained`` takes them."""
    values: dict[str, Any] = {}
    if settings.attn_implementation != "auto":
        values["attn_implementation"] = settings.attn_implementation
    if isinstance(settings.max_memory, Mapping):
        # accelerate numbers GPUs; JSON keys are always text
        values["max_memory"] = {
            int(d) if str(d).isdigit() else d: most for d, most in settings.max_memory.items()
        }
    return values


def vocabulary(config: Any) -> int | None:
    """Return the size of the model's vocabulary, None if its configuration does not say."""
    return getattr(config.get_text_config(), "vocab_size", None)


def _check_hardware(name: str, settings: TransformersSettings) -> None:
    """Raise UsageError for a missing device or attention implementation; imports torch."""
    import torch

    where = settings.device_map
    devices = list(where.values()) if isinstance(where, dict) else [where]
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    for device in devices:
        place = re.fullmatch(r"(?:cuda)?:?(\d*)", str(device))
        if place and int(place[1] or 0) >= count:
            have = (
                f"only {count} CUDA devices are here" if count else "there is no CUDA device here"
            )
            raise UsageError(
                f"{name!r}: device_map names {device!r}, but {have}; choose cpu, or leave device_map out."
            )
    attention = settings.attn_implementation
    if not attention.startswith("flash_attention"):
        return
    if not count or where == "cpu":
        raise UsageError(
            f"{name!r}: attn_implementation {attention} needs a CUDA device; set it to auto, or load the "
            "model on one."
        )
    package = _FLASH.get(attention)
    if package and not any(importlib.util.find_spec(known) for known in (package, "kernels")):
        raise MissingPackageError(
            package,
            f"and attn_implementation {attention} needs it (or set that to auto)",
            "flash-attn",
        )


def _quantization_arguments(settings: TransformersSettings, dtype: str) -> dict[str, Any]:
    """Return the arguments of ``from_pretrained`` for a quantisation."""
    if settings.quantization == "none":
        return {}
    if settings.quantization == "8bit":
        return {"quantization_config": eight_bits(settings.llm_int8_threshold)}
    import torch
    from transformers import BitsAndBytesConfig

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
    """Return the device of the inputs: that of the embedding, or its execution device if it is offloaded."""
    embedding = model.get_input_embeddings()
    if embedding.weight.device.type != "meta":
        return str(embedding.weight.device)
    device = getattr(getattr(embedding, "_hf_hook", None), "execution_device", None)
    return str(device if device is not None else "cpu")


def set_token_rules(model: Any, tokenizer: Any) -> tuple[int, frozenset[int]]:
    """Leave only token settings in the model's generation config; return (padding, end-of-text tokens)."""
    from transformers import GenerationConfig

    own = model.generation_config
    stated = own.eos_token_id if isinstance(own.eos_token_id, list) else [own.eos_token_id]
    ends = sorted({token for token in (*stated, tokenizer.eos_token_id) if token is not None})
    known = vocabulary(model.config) or max(ends, default=0) + 1
    choices = (tokenizer.pad_token_id, own.pad_token_id, *ends, 0)
    # a tokenizer may have a padding token beyond the model's vocabulary
    pad = next(token for token in choices if token is not None and token < known)
    rules = {rule: getattr(own, rule, None) for rule in _TOKEN_RULES}
    model.generation_config = GenerationConfig(**rules, eos_token_id=ends or None, pad_token_id=pad)
    return pad, frozenset(ends)


def places(model: Any, device: str) -> str:
    """Return all devices that hold a part of the model, for the user, since a part on disk is slow."""
    spread = getattr(model, "hf_device_map", None) or {}
    names = [f"cuda:{place}" if isinstance(place, int) else str(place) for place in spread.values()]
    return " and ".join(dict.fromkeys(names)) or device
