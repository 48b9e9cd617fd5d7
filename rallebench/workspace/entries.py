"""The entries of a workspace's files: language models, combinations of retrievers, index manifests."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel

from rallebench.core.entries import Combination, LLMEntry, Manifest, Shape, parsed, sealed
from rallebench.core.errors import BadFileError
from rallebench.core.files import read_json, write_json


def read_manifest(folder: Path) -> Manifest:
    """The manifest of an index folder; BadFileError if the folder holds no whole index."""
    path = Path(folder) / "manifest.json"
    if not path.exists():
        raise BadFileError(
            f"{folder} holds no index (manifest.json is missing); build the index again."
        )
    value = read_json(path)
    manifest = parsed(Manifest, value, str(path))
    if manifest.seal and manifest.seal != sealed(value)["seal"]:
        raise BadFileError(
            f"{path} was edited after the index was built; undo that, or build the index again."
        )
    return manifest


def read_llm_entries(path: Path) -> dict[str, LLMEntry]:
    """Read a workspace's ``llms.json``: name → {backend, settings}; {} if it has none."""
    return _entries(path, LLMEntry, "model")


def read_combinations(path: Path) -> dict[str, Combination]:
    """Read a workspace's ``retrievers.json``: name → {kind, of, settings}; {} if it has none."""
    return _entries(path, Combination, "retriever")


def write_entries(path: Path, entries: Mapping[str, BaseModel]) -> None:
    """Write ``llms.json`` or ``retrievers.json``, whole or not at all."""
    write_json(
        path, {name: entry.model_dump(exclude_defaults=True) for name, entry in entries.items()}
    )


def _entries(path: Path, shape: type[Shape], noun: str) -> dict[str, Shape]:
    value = read_json(path) if path.exists() else {}
    if not isinstance(value, dict):
        raise BadFileError(f"{path} should hold a JSON object: {noun} name → entry.")
    fields = f" An entry has {', '.join(shape.model_fields)}."
    return {
        name: parsed(shape, entry, f"{path}, {noun} {name!r}", fields)
        for name, entry in value.items()
    }
