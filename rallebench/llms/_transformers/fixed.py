"""The properties of a loaded model: token rules, devices, and the fingerprint."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rallebench.core.types import digest
from rallebench.llms._transformers.settings import DECODING, OPTIONS, TransformersSettings

if TYPE_CHECKING:
    from rallebench.llms._transformers.loading import LoadedModel

# The parts of a model's generation config about its tokens; the rest are sampling defaults.
_TOKEN_RULES = (
    "bos_token_id",
    "decoder_start_token_id",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "suppress_tokens",
    "begin_suppress_tokens",
    "bad_words_ids",
)


def set_token_rules(model: Any, tokenizer: Any) -> tuple[int, frozenset[int]]:
    """Leave only token rules in the model's generation config; return (padding, end-of-text tokens)."""
    from transformers import GenerationConfig

    own = model.generation_config
    stated = own.eos_token_id if isinstance(own.eos_token_id, list) else [own.eos_token_id]
    ends = sorted({token for token in (*stated, tokenizer.eos_token_id) if token is not None})
    known = getattr(model.config.get_text_config(), "vocab_size", None) or max(ends, default=0) + 1
    choices = (tokenizer.pad_token_id, own.pad_token_id, *ends, 0)
    # A tokenizer may have a padding token beyond the model's vocabulary.
    pad = next(token for token in choices if token is not None and token < known)
    rules = {rule: getattr(own, rule, None) for rule in _TOKEN_RULES}
    model.generation_config = GenerationConfig(**rules, eos_token_id=ends or None, pad_token_id=pad)
    return pad, frozenset(ends)


def places(model: Any, device: str) -> str:
    """Every device that holds a part of the model; a part on disk is slow, so the user should know."""
    spread = getattr(model, "hf_device_map", None) or {}
    names = [f"cuda:{place}" if isinstance(place, int) else str(place) for place in spread.values()]
    return " and ".join(dict.fromkeys(names)) or device


def quantization(settings: TransformersSettings) -> str:
    """The quantisation in a few words; defaults are not named."""
    if settings.quantization == "8bit":
        usual = settings.llm_int8_threshold == TransformersSettings.llm_int8_threshold
        return "8bit" if usual else f"8bit threshold {settings.llm_int8_threshold:g}"
    if settings.quantization == "none":
        return "none"
    parts = [settings.bnb_4bit_quant_type] if settings.bnb_4bit_quant_type != "nf4" else []
    parts += [] if settings.bnb_4bit_use_double_quant else ["single"]
    compute = settings.bnb_4bit_compute_dtype
    return " ".join(["4bit", *parts, *([f"computed in {compute}"] if compute != "auto" else [])])


def fingerprint(settings: TransformersSettings, loaded: LoadedModel, chat: bool) -> str:
    """A name for everything that changes an answer; not the device, the batch size or the number of threads."""
    names = (*DECODING, *OPTIONS, "system", "seed", "stop", "context_window", "context_rule")
    defaults = {name: value for name, value in asdict(settings).items() if name in names}
    if settings.attn_implementation != "auto":
        defaults["attn_implementation"] = settings.attn_implementation
    form = f"{quantization(settings)}/{loaded.dtype}/chat-{'on' if chat else 'off'}"
    return f"transformers/{loaded.source}/{form}/{digest(defaults)[:12]}"
