"""References to encoders: the name of an encoder or a preset, with settings.

::

    minilm
    minilm?dtype=float32
    e5-base-v2                                                   a preset (presets.json), from the hub
    e5-base-v2?model=/models/e5-base-v2                          the same model in a folder of one's own
    sentence_transformers:/models/mine?query_prompt=query: &passage_prompt=passage:
    openai_embeddings:nomic-embed?base_url=http://127.0.0.1:8000/v1

Settings stand after ``?``, joined by ``&``; a ``&`` inside a value is written %26.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from rallebench.checkpoints.failures import check_reachable
from rallebench.core.errors import NotFoundError, UsageError
from rallebench.core.registry import Entry, unknown
from rallebench.core.settings import check_values, parse_settings
from rallebench.core.types import Json
from rallebench.encoders import ENCODERS, Encoder

PRESETS_FILE = Path(__file__).with_name("presets.json")


@lru_cache(maxsize=1)
def presets() -> Mapping[str, Mapping[str, Any]]:
    """Return name → settings of ``sentence_transformers``, with ``about`` and ``dim``, for tested models."""
    settings: dict[str, dict[str, Any]] = json.loads(PRESETS_FILE.read_text(encoding="utf-8"))
    return settings


def encoders() -> dict[str, str]:
    """Return name → one line, for each encoder that opens by its name alone."""
    entries = ENCODERS.listings().values()
    registered = {e.name: e.about for e in entries if not e.traits.get("needs_model")}
    return registered | {name: str(preset["about"]) for name, preset in presets().items()}


def check_encoder(reference: str) -> None:
    """Raise UsageError unless ``reference`` names an encoder with valid settings; loads nothing."""
    resolve(reference)


def to_fetch(reference: str, *, demanded: bool = False) -> str:
    """Return the hub id to download before an encoder opens; '' if it is already here, or on a server.

    ``demanded``: raise BackendError if the hub is switched off. Raises UsageError, and BadFileError for a folder
    without a complete model.
    """
    entry, settings = resolve(reference)
    ask = entry.traits.get("to_fetch")
    model = str(ask(**settings)) if ask else ""
    if model and demanded:
        check_reachable(model)
    return model


def open_encoder(reference: str) -> Encoder:
    """Load the encoder of ``reference``, which becomes its ``name``.

    Raises NotFoundError for an unknown name, other UsageErrors for invalid settings and models.
    """
    entry, settings = resolve(reference)
    encoder: Encoder = entry.value(**settings)
    encoder.name = reference
    return encoder


def quantizations(reference: str) -> tuple[str, tuple[str, ...]]:
    """Return (the quantisation that ``reference`` chooses, all available ones, largest first)."""
    entry, settings = resolve(reference)
    setting = entry.form.get("quantization")
    if setting is None:
        return "none", ("none",)
    return str(settings.get("quantization", setting.default)), tuple(setting.choices)


def encoder_need(reference: str, quantization: str = "none") -> Any:
    """Estimate the memory of the encoder (``checkpoints.memory.MemoryNeed``), without loading it; None if unknown."""
    entry, settings = resolve(reference)
    if "quantization" in entry.form:
        settings = {**settings, "quantization": quantization}
    need = entry.traits.get("need")
    return need(**settings) if need else None


def with_settings(reference: str, **settings: Any) -> str:
    """Return ``reference`` with other settings: ``quantization="8bit"`` loads a query encoder in 8-bit.

    >>> with_settings("minilm?dtype=auto", dtype="float32")
    'minilm?dtype=float32'
    """
    head, _, query = reference.partition("?")
    merged = {**_settings(query), **settings}
    pairs = "&".join(f"{key}={_write_value(value)}" for key, value in merged.items())
    return f"{head}?{pairs}" if pairs else head


def _write_value(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text.replace("%", "%25").replace("&", "%26")


def resolve(reference: str) -> tuple[Entry[Callable[..., Any]], Json]:
    """Return the registry entry and the settings of a reference, both checked."""
    entry, settings = _entry_and_settings(reference)
    check_values(f"encoder {entry.name!r}", entry.form, settings)
    return entry, settings


def _entry_and_settings(reference: str) -> tuple[Entry[Callable[..., Any]], Json]:
    head, _, query = reference.partition("?")
    settings = _settings(query)
    name, colon, model = head.partition(":")
    if not colon and head in presets():
        return ENCODERS.entry("sentence_transformers"), {**_preset(head, settings), **settings}
    if not colon and head in ENCODERS:
        entry = ENCODERS.entry(head)
        if entry.traits.get("needs_model") and not settings.get("model"):
            raise UsageError(
                f"The encoder {head!r} needs a model: write {head}:MODEL, or {head}:MODEL?KEY=VALUE&…."
            )
        return entry, settings
    if colon and name in ENCODERS and ENCODERS.entry(name).traits.get("needs_model"):
        return ENCODERS.entry(name), {"model": model, **settings} if model else settings
    needy = [n for n in ENCODERS.names() if ENCODERS.entry(n).traits.get("needs_model")]
    raise NotFoundError(unknown("encoder", head, [*encoders(), *(f"{n}:MODEL" for n in needy)]))


def _preset(name: str, settings: Json) -> dict[str, Any]:
    preset = dict(presets()[name])
    if preset.get("remote_code") and settings.get("trust_remote_code") is not True:
        raise UsageError(
            f"The encoder {name!r} ({preset['model']}) contains Python code, which runs only with your consent; read "
            f"it, and if you trust it write {name}?trust_remote_code=true."
        )
    return {
        key: value for key, value in preset.items() if key not in ("about", "dim", "remote_code")
    }


def _settings(query: str) -> Json:
    return parse_settings(unquote(pair) for pair in query.split("&") if pair)
