"""Presets: open models and servers that are known to work here, as data (``presets.json``).

A preset is a backend with settings, and what is known of the model: its size, window and licence. A server's
preset names no model; the server does (see ``rallebench.http.model_list``).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rallebench.core.errors import BadFileError, NotFoundError
from rallebench.core.files import read_json
from rallebench.core.registry import unknown
from rallebench.llms._memory.folders import BITS
from rallebench.workspace.entries import LLMEntry, problem

PRESETS_FILE = Path(__file__).with_name("presets.json")

GROUPS: Mapping[str, str] = {
    "small": "Small models",
    "larger": "Larger models",
    "servers": "Servers",
}
"""The groups as people read them, in the order in which they are offered; small: below two billion weights."""


class Preset(BaseModel):
    """One line of the file. ``parameters``: how many weights; ``embeddings``: those of them that quantisation
    leaves whole; ``stored``: their number format in the hub's files; ``context``: tokens of the window. 0, '' and
    None: not known for certain. ``start``: how a server is started.
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
    """Id → preset, those of a group together. Raises BadFileError if the file was damaged."""
    return read_presets(PRESETS_FILE)


def read_presets(path: Path) -> dict[str, Preset]:
    """Id → preset of a file. Raises BadFileError."""
    value = read_json(path)
    if not isinstance(value, dict):
        raise BadFileError(f"{path} should hold a JSON object of presets.")
    found: dict[str, Preset] = {}
    for name, given in value.items():
        try:
            found[name] = Preset.model_validate(given)
        except ValidationError as error:
            raise BadFileError(problem(error, f"{path}, preset {name!r}")) from None
    return found


def preset(name: str) -> Preset:
    """A preset by its id. Raises NotFoundError."""
    if name not in presets():
        raise NotFoundError(unknown("preset", name, list(presets())))
    return presets()[name]


def entry_of(name: str, settings: Mapping[str, Any] | None = None) -> LLMEntry:
    """What a preset stands for, with ``settings`` of the user's over its own; null takes one of its own away."""
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


def weight_bytes(chosen: Preset, settings: Mapping[str, Any]) -> int:
    """Bytes that the weights take with ``settings`` (dtype, quantization); 0 if that is not known.

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
    """The preset of a hub id, None if there is none."""
    return next((found for found in presets().values() if model and found.model == model), None)
