"""The entries of a workspace's files: language models, combinations of retrievers, index manifests."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

from rallebench.core.entries import Combination, LLMEntry, Manifest, Shape, parsed, sealed
from rallebench.core.errors import BadFileError
from rallebench.core.files import read_json, write_json
from rallebench.core.locks import alone

PATIENCE = 5.0
"""Seconds to wait for another change of the same file, which takes milliseconds."""


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


@contextlib.contextmanager
def changing(path: Path, read: Callable[[Path], dict[str, Shape]]) -> Iterator[dict[str, Shape]]:
    """The entries of ``llms.json`` or ``retrievers.json``. What the block makes of them is written at its end, whole or not at
    all; nobody else changes the file meanwhile.

    Raises UsageError if another process holds it for PATIENCE seconds, BadFileError if it is damaged.
    """
    refused = f"{path} is being changed by another process; try again."
    with alone(path.with_name(f".{path.name}.lock"), refused, patience=PATIENCE):
        entries = read(path)
        yield entries
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
