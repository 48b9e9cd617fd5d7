"""What a transformers model can be told, checked before anything is loaded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rallebench.errors import UsageError
from rallebench.llms import DEFAULT_MAX_TOKENS, DEFAULT_TEMPERATURE, checked_number

OPTIONS = ("top_p", "top_k", "repetition_penalty")
"""What a request's ``options`` may set."""

DECODING = ("max_tokens", "temperature", *OPTIONS)
"""The fields of :class:`Decoding`, which are settings of the same names."""


@dataclass(frozen=True)
class Settings:
    """``model``: a folder or a Hugging Face id. ``quantization``: none, 8bit or 4bit (nf4, doubly
    quantised). ``dtype``: auto, float32, bfloat16 or float16. ``device_map``: cpu, cuda, auto or a
    mapping; by default CUDA where there is any. ``chat_template``: auto, on or off; auto uses the
    tokenizer's own if the model is causal. ``system``: sent first where a request has no system message.

    ``context_window`` (tokens): by default what the model's configuration says. ``context_rule``:
    refuse, the only one: a longer prompt is an error, never cut. ``batch_size``: at most so many
    rows at once. ``threads``: CPU threads of the whole process while this model works.
    """

    model: str
    quantization: str = "none"
    dtype: str = "auto"
    device_map: Any = None
    chat_template: str | bool = "auto"
    system: str = ""
    max_tokens: int = DEFAULT_MAX_TOKENS
    temperature: float = DEFAULT_TEMPERATURE
    top_p: float | None = None
    top_k: int | None = None
    repetition_penalty: float | None = None
    seed: int | None = None
    stop: Sequence[str] = ()
    context_rule: str = "refuse"
    context_window: int | None = None
    batch_size: int | None = None
    revision: str | None = None
    trust_remote_code: bool = False
    threads: int | None = None


def check(name: str, given: Settings) -> None:
    """Raise UsageError for the first setting that cannot be."""
    choices = {
        "quantization": ("none", "8bit", "4bit"),
        "dtype": ("auto", "float32", "bfloat16", "float16"),
        "chat_template": ("auto", "on", "off", True, False),
        "context_rule": ("refuse",),
        "trust_remote_code": (False, True),
    }
    for setting, allowed in choices.items():
        if getattr(given, setting) not in allowed:
            known = ", ".join(str(choice).lower() for choice in allowed)
            raise UsageError(
                f"{name!r}: {setting} is {getattr(given, setting)!r}; it must be one of: {known}."
            )
    if not isinstance(given.model, str) or not given.model.strip():
        raise UsageError(
            f"{name!r}: model must be the folder of a model, or a Hugging Face id such as owner/model."
        )
    if not isinstance(given.device_map, (str, dict, type(None))):
        raise UsageError(
            f"{name!r}: device_map must be cpu, cuda, cuda:1, auto, or an object from module to device."
        )
    if not isinstance(given.system, str):
        raise UsageError(f"{name!r}: system must be a text.")
    if isinstance(given.stop, str) or not all(isinstance(text, str) for text in given.stop):
        raise UsageError(f"{name!r}: stop must be a list of texts.")
    for setting in ("batch_size", "threads", "context_window"):
        checked_number(name, setting, getattr(given, setting), 1, 10_000_000, whole=True, optional=True)
    check_decoding(name, Decoding(*(getattr(given, part) for part in DECODING)))
    checked_number(name, "seed", given.seed, 0, 2**63 - 1, whole=True, optional=True)


@dataclass(frozen=True)
class Decoding:
    """What requests must share to be one batch; ``max_tokens`` is then what fits into the window."""

    max_tokens: int
    temperature: float
    top_p: float | None
    top_k: int | None
    repetition_penalty: float | None


def check_decoding(name: str, asked: Decoding) -> None:
    """Raise UsageError for the first number out of its range."""
    checked_number(name, "max_tokens", asked.max_tokens, 1, 10_000_000, whole=True)
    checked_number(name, "temperature", asked.temperature, 0, 5)
    checked_number(name, "top_p", asked.top_p, 0, 1, optional=True)
    checked_number(name, "top_k", asked.top_k, 0, 10_000_000, whole=True, optional=True)
    checked_number(name, "repetition_penalty", asked.repetition_penalty, 0.01, 100, optional=True)
