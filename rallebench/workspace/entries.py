"""Entries in a workspace's files: language models, combinations of retrievers, index manifests."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from rallebench.core.entries import (
    Combination,
    LLMEntry,
    Manifest,
    Shape,
    parse_entry,
    seal_manifest,
)
from rallebench.core.errors import BadFileError
from rallebench.core.files import read_json, read_object, write_json
from rallebench.core.locks import alone
from rallebench.core.own_files import is_too_deep

CHANGE_LOCK_SECONDS = 5.0
"""Seconds to wait for another process to change the same file, which takes milliseconds."""


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of an index folder. Raises BadFileError if the index is incomplete."""
    path = Path(folder) / "manifest.json"
    if not path.exists():
        raise BadFileError(
            f"{folder} holds no index (manifest.json is missing); build the index again."
        )
    value = read_object(path)
    manifest = parse_entry(Manifest, value, str(path))
    if manifest.seal and manifest.seal != seal_manifest(value)["seal"]:
        raise BadFileError(
            f"{path} was edited after the index was built; undo that, or build the index again."
        )
    return manifest


def read_llm_entries(path: Path) -> dict[str, LLMEntry]:
    """Read a workspace's ``llms.json``: name → {backend, settings}; {} if it has none."""
    return _entries(path, LLMEntry, "model")


def usable_llm_entries(path: Path) -> tuple[dict[str, LLMEntry], dict[str, str]]:
    """Return the readable entries of ``llms.json``, and name → error of the others; see ``_usable``."""
    return _usable(path, LLMEntry, "model")


def usable_combinations(path: Path) -> tuple[dict[str, Combination], dict[str, str]]:
    """Return the readable entries of ``retrievers.json``, and name → error of the others; see ``_usable``."""
    return _usable(path, Combination, "retriever")


def read_combinations(path: Path) -> dict[str, Combination]:
    """Read a workspace's ``retrievers.json``: name → {kind, of, settings}; {} if it has none."""
    return _entries(path, Combination, "retriever")


@contextlib.contextmanager
def changing(path: Path, read: Callable[[Path], dict[str, Shape]]) -> Iterator[dict[str, Shape]]:
    """Lend the entries of ``llms.json`` or ``retrievers.json`` for a change, which is written atomically at the end of the
    block; no other process can change the file meanwhile.

    Raises UsageError if another process holds it for CHANGE_LOCK_SECONDS, BadFileError if it is damaged.
    """
    refused = f"{path} is being changed by another process; try again."
    with alone(path.with_name(f".{path.name}.lock"), refused, patience=CHANGE_LOCK_SECONDS):
        entries = read(path)
        yield entries
        write_json(
            path, {name: entry.model_dump(exclude_defaults=True) for name, entry in entries.items()}
        )


def _entries(path: Path, shape: type[Shape], noun: str) -> dict[str, Shape]:
    return {name: _entry(path, name, value, shape, noun) for name, value in _object(path, noun)}


def _usable(path: Path, shape: type[Shape], noun: str) -> tuple[dict[str, Shape], dict[str, str]]:
    """Return name → entry, and name → error of an invalid entry; the error of an unreadable file is under the file's name."""
    good: dict[str, Shape] = {}
    wrong: dict[str, str] = {}
    try:
        for name, value in _object(path, noun):
            try:
                good[name] = _entry(path, name, value, shape, noun)
            except BadFileError as error:
                wrong[name] = str(error)
    except BadFileError as error:
        wrong[path.name] = str(error)
    return good, wrong


def _object(path: Path, noun: str) -> Iterable[tuple[str, Any]]:
    value = read_json(path) if path.exists() else {}
    if not isinstance(value, dict):
        raise BadFileError(f"{path} should hold a JSON object: {noun} name → entry.")
    return value.items()


def _entry(path: Path, name: str, value: Any, shape: type[Shape], noun: str) -> Shape:
    place = f"{path}, {noun} {name!r}"
    if is_too_deep(value):
        raise BadFileError(f"{place} is too deeply nested.")
    return parse_entry(shape, value, place, f" An entry has {', '.join(shape.model_fields)}.")
