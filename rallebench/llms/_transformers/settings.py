"""Settings of a transformers model, checked before the load."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from rallebench.checkpoints.memory import SPREAD, MemoryNeed, memory_need
from rallebench.core.errors import UsageError
from rallebench.core.formats import read_format
from rallebench.core.settings import dataclass_form, declare
from rallebench.core.types import Json, digest
from rallebench.llms import (
    DEFAULT_MAX_TOKENS,
    DEFAULT_TEMPERATURE,
    MOST_TOKENS,
    checked_value,
    settings_from,
)


class DecodingRules(NamedTuple):
    """Settings shared by the requests of a batch; ``max_tokens`` is reduced to the room in the window."""

    max_tokens: int
    temperature: float
    top_p: float | None
    top_k: int | None
    min_p: float | None
    repetition_penalty: float | None


DECODING = DecodingRules._fields

OPTIONS = (*DECODING[2:], "chat_template_kwargs", "response_format", "logprobs")
"""Permitted ``options`` of a request; all of them are settings too."""

TOOL_CHOICE = "tool_choice"
"""The option that only a request has."""

TEMPLATE_OURS = frozenset(
    [
        "conversation",
        "tools",
        "chat_template",
        "add_generation_prompt",
        "continue_final_message",
        "tokenize",
        "padding",
        "truncation",
        "max_length",
        "return_tensors",
        "return_dict",
        "tokenizer_kwargs",
    ]
)
"""Arguments of ``apply_chat_template`` that ``chat_template_kwargs`` may not set."""

QUANTIZATIONS = ("none", "8bit", "4bit")
"""Largest first."""

DTYPES = ("auto", "float32", "bfloat16", "float16")
CHAT_TEMPLATE = ("auto", "on", "off", True, False)
ATTENTION = ("auto", "eager", "sdpa", "flash_attention_2", "flash_attention_3", "flash_attention_4")
_WHOLE = (1, MOST_TOKENS)


@dataclass(frozen=True)
class TransformersSettings:
    """Settings of a model in this process."""

    model: str = declare(
        str,
        "",
        required=True,
        about="a folder, a GGUF file, or a Hugging Face id",
        names="checkpoint",
    )
    gguf_file: str = declare(
        str, "", about="the GGUF file in the folder; it is converted once into the cache"
    )
    quantization: str = declare(str, "none", choices=QUANTIZATIONS, about="by bitsandbytes")
    dtype: str = declare(str, "auto", choices=DTYPES, about="auto: as stored")
    device_map: Any = declare(
        object,
        None,
        about="cpu, cuda, cuda:1, auto (or balanced, balanced_low_0, sequential), or module → device; null: CUDA if "
        "available",
    )
    max_memory: Any = declare(
        object,
        None,
        about='memory limit per device for a distributed model: {"0": "20GB", "cpu": "60GB"}',
    )
    attn_implementation: str = declare(
        str, "auto", choices=(*ATTENTION, "flex_attention"), about="auto: the library's choice"
    )
    bnb_4bit_quant_type: str = declare(str, "nf4", choices=("nf4", "fp4"))
    bnb_4bit_use_double_quant: bool = declare(bool, True)
    bnb_4bit_compute_dtype: str = declare(str, "auto", choices=DTYPES, about="auto: dtype")
    llm_int8_threshold: float = declare(
        float, 6.0, 0, 1000, about="8bit: input columns above this stay in dtype"
    )
    chat_template: str | bool = declare(
        object,
        "auto",
        about="auto, on or off; auto: on if the tokenizer has one and the model is causal",
    )
    chat_template_kwargs: Mapping[str, Any] = declare(
        object, {}, about='arguments of the chat template: {"enable_thinking": false}'
    )
    system: str = declare(str, "", about="system message for requests without one")
    max_tokens: int = declare(int, DEFAULT_MAX_TOKENS, *_WHOLE, about="maximum tokens of an answer")
    temperature: float = declare(float, DEFAULT_TEMPERATURE, 0, 5, about="0: greedy")
    top_p: float | None = declare(float, None, 0, 1)
    top_k: int | None = declare(int, None, 0, MOST_TOKENS)
    min_p: float | None = declare(float, None, 0, 1)
    repetition_penalty: float | None = declare(float, None, 0.01, 100)
    seed: int | None = declare(int, None, 0, 2**63 - 1)
    stop: Sequence[str] = declare(object, (), about="a list of texts")
    response_format: Any = declare(
        object, None, about="as in OpenAI's API, and of type choice, regex or grammar"
    )
    forced_formats: bool = declare(
        bool,
        True,
        about="enforce the format of a reply during generation; false: describe it in the prompt and check the reply",
    )
    logprobs: bool = declare(bool, False, about="as in OpenAI's API")
    context_rule: str = declare(
        str,
        "refuse",
        choices=("refuse", "cut"),
        about="cut: leave out the last passages of a prompt until it and max_tokens (at most a quarter of the "
        "window) fit; the reply's note says so",
    )
    context_window: int | None = declare(
        int, None, *_WHOLE, about="in tokens; null: as in the model's configuration"
    )
    batch_size: int | None = declare(int, None, *_WHOLE, about="maximum number of rows")
    revision: str | None = declare(str, None, about="branch, tag or commit on the hub")
    trust_remote_code: bool = declare(bool, False, about="run the model's own Python code")
    threads: int | None = declare(
        int, None, *_WHOLE, about="CPU threads of the whole process while this model works"
    )


def read_settings(name: str, /, **values: Any) -> TransformersSettings:
    """Return the settings of the model ``name``. Raises UsageError for the first invalid one."""
    settings = settings_from(TransformersSettings, name, values)
    if not any(settings.chat_template is c or settings.chat_template == c for c in CHAT_TEMPLATE):
        raise UsageError(
            f"{name!r}: chat_template is {settings.chat_template!r}; it must be one of auto, on, off, true, false."
        )
    if not settings.model.strip():
        raise UsageError(
            f"{name!r}: model must be the folder of a model, or a Hugging Face id such as owner/model."
        )
    _check_quantization(name, settings)
    _check_devices(name, settings)
    if isinstance(settings.stop, str) or not all(isinstance(text, str) for text in settings.stop):
        raise UsageError(f"{name!r}: stop must be a list of texts.")
    check_options(name, {option: getattr(settings, option) for option in (*DECODING, *OPTIONS)})
    return settings


def _check_quantization(name: str, settings: TransformersSettings) -> None:
    forms = {setting: "4bit" for setting in vars(settings) if setting.startswith("bnb_4bit_")}
    for setting, form in {**forms, "llm_int8_threshold": "8bit"}.items():
        unset = getattr(settings, setting) == getattr(TransformersSettings, setting)
        if settings.quantization != form and not unset:
            raise UsageError(
                f"{name!r}: {setting} is set, but quantization is {settings.quantization}; set that to {form}."
            )


def _check_devices(name: str, settings: TransformersSettings) -> None:
    where, room = settings.device_map, settings.max_memory
    known = isinstance(where, str) and (
        where in SPREAD or re.fullmatch(r"cpu|mps|(cuda|xpu)(:\d+)?", where)
    )
    if not known and not (isinstance(where, dict) and where) and where is not None:
        raise UsageError(
            f"{name!r}: device_map is {where!r}; it must be cpu, cuda, cuda:1, {', '.join(SPREAD)}, or an "
            "object from module to device."
        )
    limits = room.items() if isinstance(room, Mapping) else ()
    good = [
        re.fullmatch(r"cpu|disk|\d+", str(device)) and isinstance(most, (int, str))
        for device, most in limits
    ]
    if room is not None and (not good or not all(good) or where not in SPREAD):
        raise UsageError(
            f'{name!r}: max_memory must name each device and its limit, such as {{"0": "20GB", "cpu": '
            '"60GB"}, and needs device_map auto.'
        )


def check_options(name: str, options: Json) -> None:
    """Raise UsageError for an invalid value of a setting in DECODING or OPTIONS."""
    form = dataclass_form(TransformersSettings)
    for option in (*DECODING, *OPTIONS):
        checked_value(name, option, form[option], options[option])
    extra = options["chat_template_kwargs"]
    good = isinstance(extra, Mapping)
    try:
        json.dumps(extra)
    except (TypeError, ValueError):
        good = False
    if not good:
        raise UsageError(
            f'{name!r}: chat_template_kwargs must be an object such as {{"enable_thinking": false}}.'
        )
    if taken := sorted(TEMPLATE_OURS.intersection(extra)):
        raise UsageError(f"{name!r}: chat_template_kwargs may not set {', '.join(taken)}.")
    read_format(repr(name), options["response_format"])


def need_of_settings(
    name: str, settings: TransformersSettings, context: int | None = None, batch: int | None = None
) -> MemoryNeed | None:
    """Return the model's memory need with these settings, without loading it; None if unknown.

    ``context`` tokens and ``batch`` answers at once: by default those of the settings.
    """
    return memory_need(
        name,
        settings.model,
        quantization=settings.quantization,
        dtype=settings.dtype,
        device_map=settings.device_map,
        revision=settings.revision,
        gguf_file=settings.gguf_file,
        context=context or settings.context_window,
        batch=batch or settings.batch_size,
    )


def quantization(settings: TransformersSettings) -> str:
    """Return the quantisation in a few words, without defaults."""
    if settings.quantization == "8bit":
        usual = settings.llm_int8_threshold == TransformersSettings.llm_int8_threshold
        return "8bit" if usual else f"8bit threshold {settings.llm_int8_threshold:g}"
    if settings.quantization == "none":
        return "none"
    parts = [settings.bnb_4bit_quant_type] if settings.bnb_4bit_quant_type != "nf4" else []
    parts += [] if settings.bnb_4bit_use_double_quant else ["single"]
    compute = settings.bnb_4bit_compute_dtype
    return " ".join(["4bit", *parts, *([f"computed in {compute}"] if compute != "auto" else [])])


def fingerprint(settings: TransformersSettings, source: str, dtype: str, chat: bool) -> str:
    """Return the identity of everything that changes an answer; not the device, the batch size or the number of threads."""
    window = ("context_window", "context_rule")
    names = (*DECODING, *OPTIONS, "forced_formats", "system", "seed", "stop", *window)
    defaults = {name: value for name, value in asdict(settings).items() if name in names}
    if settings.attn_implementation != "auto":
        defaults["attn_implementation"] = settings.attn_implementation
    form = f"{quantization(settings)}/{dtype}/chat-{'on' if chat else 'off'}"
    return f"transformers/{source}/{form}/{digest(defaults)[:12]}"
