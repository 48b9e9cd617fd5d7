"""Presets: tested open models and servers, as data (``presets.json``).

A preset is a backend with settings, and facts about the model: size, window and licence. The preset of a server names
no model; the server lists its models (see ``rallebench.http.model_list``).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rallebench.checkpoints.files import BITS
from rallebench.core.entries import LLMEntry, problem
from rallebench.core.errors import BadFileError, NotFoundError
from rallebench.core.files import read_json
from rallebench.core.registry import unknown
from rallebench.core.types import Json

PRESETS_FILE = Path(__file__).with_name("presets.json")


class Preset(BaseModel):
    """An entry of the file. ``parameters``: number of weights; ``embeddings``: number of unquantised weights; ``stored``: their
    number format in the hub's files; ``context``: tokens of the window. 0, '' and None: unknown. ``start``: command that starts
    a server. ``small``: below two billion weights.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str = Field(min_length=1)
    group: Literal["small", "larger", "servers"]
    backend: str
    settings: dict[str, Any]
    about: str = Field(min_length=1)
    parameters: int = Field(default=0, ge=0)
    embeddings: int = Field(default=0, ge=0)
    stored: Literal["", "float32", "float16", "bfloat16"] = ""
    context: int = Field(default=0, ge=0)
    licence: str = ""
    gated: bool | None = None
    start: str = ""

    @property
    def model(self) -> str:
        """The hub id, '' for a server."""
        return str(self.settings.get("model", ""))


@lru_cache(maxsize=1)
def presets() -> Mapping[str, Preset]:
    """Return id → preset, ordered by group. Raises BadFileError for a damaged file."""
    return read_presets(PRESETS_FILE)


def read_presets(path: Path) -> dict[str, Preset]:
    """Return id → preset of a file. Raises BadFileError."""
    value = read_json(path)
    if not isinstance(value, dict):
        raise BadFileError(f"{path} should hold a JSON object of presets.")
    by_id: dict[str, Preset] = {}
    for name, fields in value.items():
        try:
            by_id[name] = Preset.model_validate(fields)
        except ValidationError as error:
            raise BadFileError(problem(error, f"{path}, preset {name!r}")) from None
    return by_id


def preset(name: str) -> Preset:
    """Return a preset by its id. Raises NotFoundError."""
    if name not in presets():
        raise NotFoundError(unknown("preset", name, list(presets())))
    return presets()[name]


def preset_entry(name: str, settings: Json | None = None) -> LLMEntry:
    """Return the entry of a preset, with the user's ``settings`` over its own; null removes a setting of the preset."""
    chosen = preset(name)
    merged = {**chosen.settings, **(settings or {})}
    return LLMEntry(
        backend=chosen.backend,
        settings={
            key: value
            for key, value in merged.items()
            if value is not None or key not in chosen.settings
        },
    )


def weight_bytes(chosen: Preset, settings: Json) -> int:
    """Return the bytes of the weights with ``settings`` (dtype, quantization); 0 if unknown.

    >>> weight_bytes(preset("qwen2.5-0.5b"), {}), weight_bytes(preset("qwen2.5-0.5b"), {"quantization": "8bit"})
    (988065536, 630167424)
    """
    dtype = settings.get("dtype") or "auto"
    whole = BITS.get(chosen.stored if dtype == "auto" else dtype)
    if not chosen.parameters or whole is None:
        return 0
    shrunk = BITS.get(settings.get("quantization") or "none", whole)
    return int((chosen.embeddings * whole + (chosen.parameters - chosen.embeddings) * shrunk) / 8)


def known_model(model: str) -> Preset | None:
    """Return the preset of a hub id, or None."""
    return next((entry for entry in presets().values() if model and entry.model == model), None)
