"""The settings of a transformers model, and their check before the load."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rallebench.core.errors import UsageError
from rallebench.llms import DEFAULT_MAX_TOKENS, DEFAULT_TEMPERATURE, checked_number
from rallebench.llms._memory.need import SPREAD
from rallebench.llms._structured import schema_of

DECODING = ("max_tokens", "temperature", "top_p", "top_k", "min_p", "repetition_penalty")
"""The fields of :class:`Decoding`, which are settings of the same names."""

OPTIONS = (*DECODING[2:], "chat_template_kwargs", "response_format", "logprobs")
"""The permitted ``options`` of a request; all are settings too."""

TEMPLATE_OURS = frozenset(
    {
        "conversation",
        "tools",
        "chat_template",
        "add_generation_prompt",
        "continue_final_message",
        "tokenize",
    }
    | {"padding", "truncation", "max_length", "return_tensors", "return_dict", "tokenizer_kwargs"}
)
"""Arguments of ``apply_chat_template`` that ``chat_template_kwargs`` may not set."""

QUANTIZATIONS = ("none", "8bit", "4bit")
"""The largest first."""

_CHOICES: Mapping[str, tuple[Any, ...]] = {
    "quantization": QUANTIZATIONS,
    "dtype": ("auto", "float32", "bfloat16", "float16"),
    "attn_implementation": (
        "auto",
        "eager",
        "sdpa",
        "flash_attention_2",
        "flash_attention_3",
        "flash_attention_4",
        "flex_attention",
    ),
    "chat_template": ("auto", "on", "off", True, False),
    "context_rule": ("refuse", "cut"),
    "trust_remote_code": (False, True),
    "logprobs": (False, True),
    "bnb_4bit_quant_type": ("nf4", "fp4"),
    "bnb_4bit_use_double_quant": (True, False),
    "bnb_4bit_compute_dtype": ("auto", "float32", "bfloat16", "float16"),
}


@dataclass(frozen=True)
class TransformersSettings:
    """``model``: a folder or a Hugging Face id. ``dtype``: auto, float32, bfloat16 or float16.

    ``quantization``: none, 8bit or 4bit, by bitsandbytes. ``bnb_4bit_quant_type``: nf4 or fp4;
    ``bnb_4bit_compute_dtype``: auto is ``dtype``; ``llm_int8_threshold``: above it a column of the inputs
    stays in ``dtype`` (8bit).

    ``device_map``: cpu, cuda, cuda:1, auto (or balanced, balanced_low_0, sequential) or a mapping from
    module to device; by default CUDA if available. ``max_memory``: the limit of a spread model on each device, such
    as {"0": "20GB", "cpu": "60GB"}. ``attn_implementation``: auto is the library's choice.

    ``chat_template``: auto, on or off; auto uses the tokenizer's own if the model is causal.
    ``chat_template_kwargs``: arguments of that template, such as {"enable_thinking": false}. ``system``: the system
    message for requests without their own. ``response_format``, ``logprobs``: as in OpenAI's API.

    ``context_window`` (tokens): by default that of the model's configuration. ``context_rule``: with refuse, a longer
    prompt is an error; with cut, its last passages are left out until prompt and ``max_tokens`` (at most a quarter of
    the window) fit, and the reply's note says so. ``batch_size``: at most so many rows at once. ``threads``: CPU
    threads of the whole process while this model works.
    """

    model: str
    quantization: str = "none"
    dtype: str = "auto"
    device_map: Any = None
    max_memory: Any = None
    attn_implementation: str = "auto"
    bnb_4bit_quant_type: str = "nf4"
    bnb_4bit_use_double_quant: bool = True
    bnb_4bit_compute_dtype: str = "auto"
    llm_int8_threshold: float = 6.0
    chat_template: str | bool = "auto"
    chat_template_kwargs: Mapping[str, Any] = field(default_factory=dict)
    system: str = ""
    max_tokens: int = DEFAULT_MAX_TOKENS
    temperature: float = DEFAULT_TEMPERATURE
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    seed: int | None = None
    stop: Sequence[str] = ()
    response_format: Any = None
    logprobs: bool = False
    context_rule: str = "refuse"
    context_window: int | None = None
    batch_size: int | None = None
    revision: str | None = None
    trust_remote_code: bool = False
    threads: int | None = None


@dataclass(frozen=True)
class DecodingRules:
    """The settings that requests of a batch share; ``max_tokens`` is reduced to the room in the window."""

    max_tokens: int
    temperature: float
    top_p: float | None
    top_k: int | None
    min_p: float | None
    repetition_penalty: float | None


def check(name: str, settings: TransformersSettings) -> None:
    """Raise UsageError for the first invalid setting."""
    for setting, allowed in _CHOICES.items():
        value = getattr(settings, setting)
        if not any(
            value is choice or (isinstance(choice, str) and value == choice) for choice in allowed
        ):
            known = ", ".join(str(choice).lower() for choice in allowed)
            raise UsageError(f"{name!r}: {setting} is {value!r}; it must be one of: {known}.")
    if not isinstance(settings.model, str) or not settings.model.strip():
        raise UsageError(
            f"{name!r}: model must be the folder of a model, or a Hugging Face id such as owner/model."
        )
    _check_quantization(name, settings)
    _check_devices(name, settings)
    if not isinstance(settings.system, str):
        raise UsageError(f"{name!r}: system must be a text.")
    if isinstance(settings.stop, str) or not all(isinstance(text, str) for text in settings.stop):
        raise UsageError(f"{name!r}: stop must be a list of texts.")
    for setting in ("batch_size", "threads", "context_window"):
        checked_number(
            name, setting, getattr(settings, setting), 1, 10_000_000, whole=True, optional=True
        )
    check_decoding(name, DecodingRules(*(getattr(settings, part) for part in DECODING)))
    check_options(name, {option: getattr(settings, option) for option in OPTIONS})
    checked_number(name, "seed", settings.seed, 0, 2**63 - 1, whole=True, optional=True)


def _check_quantization(name: str, settings: TransformersSettings) -> None:
    checked_number(name, "llm_int8_threshold", settings.llm_int8_threshold, 0, 1000)
    needs = {
        "4bit": ("bnb_4bit_quant_type", "bnb_4bit_use_double_quant", "bnb_4bit_compute_dtype"),
        "8bit": ("llm_int8_threshold",),
    }
    for form, names in needs.items():
        for setting in names:
            if settings.quantization != form and getattr(settings, setting) != getattr(
                TransformersSettings, setting
            ):
                raise UsageError(
                    f"{name!r}: {setting} is set, but quantization is {settings.quantization}; set that to {form}."
                )


def _check_devices(name: str, settings: TransformersSettings) -> None:
    where = settings.device_map
    known = isinstance(where, str) and (
        where in SPREAD or re.fullmatch(r"cpu|mps|(cuda|xpu)(:\d+)?", where)
    )
    if not known and not (isinstance(where, dict) and where) and where is not None:
        raise UsageError(
            f"{name!r}: device_map is {where!r}; it must be cpu, cuda, cuda:1, {', '.join(SPREAD)}, or an "
            "object from module to device."
        )
    room = settings.max_memory
    if room is None:
        return
    devices = (
        isinstance(room, Mapping)
        and room
        and all(
            re.fullmatch(r"cpu|disk|\d+", str(device)) and isinstance(most, (int, str))
            for device, most in room.items()
        )
    )
    if not devices or where not in SPREAD:
        raise UsageError(
            f'{name!r}: max_memory must name each device and its limit, such as {{"0": "20GB", "cpu": '
            '"60GB"}, and needs device_map auto.'
        )


def check_decoding(name: str, rules: DecodingRules) -> None:
    """Raise UsageError for the first number outside its range."""
    checked_number(name, "max_tokens", rules.max_tokens, 1, 10_000_000, whole=True)
    checked_number(name, "temperature", rules.temperature, 0, 5)
    checked_number(name, "top_p", rules.top_p, 0, 1, optional=True)
    checked_number(name, "top_k", rules.top_k, 0, 10_000_000, whole=True, optional=True)
    checked_number(name, "min_p", rules.min_p, 0, 1, optional=True)
    checked_number(name, "repetition_penalty", rules.repetition_penalty, 0.01, 100, optional=True)


def check_options(name: str, options: Mapping[str, Any]) -> None:
    """Raise UsageError for an invalid option that is no number."""
    if not isinstance(options["logprobs"], bool):
        raise UsageError(
            f"{name!r}: logprobs is {options['logprobs']!r}; it must be true or false."
        )
    extra = options["chat_template_kwargs"]
    try:
        json.dumps(extra)
    except (TypeError, ValueError):
        extra = None
    if not isinstance(extra, Mapping):
        raise UsageError(
            f'{name!r}: chat_template_kwargs must be an object such as {{"enable_thinking": false}}.'
        )
    if taken := sorted(TEMPLATE_OURS.intersection(extra)):
        raise UsageError(f"{name!r}: chat_template_kwargs may not set {', '.join(taken)}.")
    schema_of(name, options["response_format"])
