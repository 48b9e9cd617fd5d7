"""Index folders of a workspace: listed, verified, deleted."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rallebench.core import parts
from rallebench.core.errors import NotFoundError, RalleError
from rallebench.core.events import Operation, Progress
from rallebench.core.parts import check_name
from rallebench.retrievers import needs_encoder
from rallebench.workspace.entries import Manifest, read_manifest
from rallebench.workspace.indexes.checks import search_known, verify_index
from rallebench.workspace.paths import STARTER_INDEXES, Workspace


@dataclass(frozen=True, slots=True)
class VerifiedIndex:
    """An index whose files are those that were built and that finds its own passages."""

    name: str
    files: int
    bytes: int
    seconds: float


def folder_of(workspace: Workspace, name: str) -> Path:
    """The folder of an index that exists, damaged or not. Raises NotFoundError."""
    folder = workspace.indexes / check_name("index", name)
    if not (folder / "manifest.json").exists():
        raise NotFoundError(f"There is no built index {name!r} in {workspace.indexes}.")
    return folder


def manifests_of(workspace: Workspace) -> tuple[dict[str, Manifest], dict[str, str]]:
    """(name → manifest, name → sentence of what is wrong) of the index folders of the workspace."""
    good, damaged = {}, {}
    for path in sorted(workspace.indexes.glob("*/manifest.json")):
        if path.parent.name.startswith("."):
            continue
        try:
            good[path.parent.name] = read_manifest(path.parent)
        except RalleError as error:
            damaged[path.parent.name] = str(error)
    return good, damaged


def verify(folder: Path, encoders: Callable[[str], Any]) -> Operation[VerifiedIndex]:
    """Compare every file with its sha256 and search for known passages."""
    started = time.perf_counter()
    manifest = read_manifest(folder)
    yield from verify_index(folder, manifest)
    yield Progress("", message="searching for known passages")
    encoder = encoders(manifest.encoder_name) if needs_encoder(manifest.kind) else None
    search_known(folder, manifest, encoder)
    seconds = time.perf_counter() - started
    return VerifiedIndex(folder.name, len(manifest.files), manifest.bytes, seconds)


def delete(workspace: Workspace, folder: Path) -> str:
    """Delete the folder of an index; returns a sentence. Raises UsageError where the system refuses."""
    name = folder.name
    size = sum(p.stat().st_size for p in folder.rglob("*") if p.is_file())
    parts.delete(folder)
    again = " It is built anew when it is next used." if name in STARTER_INDEXES else ""
    users = [other for other, entry in workspace.combinations().items() if name in entry.of]
    broken = f" {', '.join(users)} can no longer be loaded." if users and not again else ""
    return f"Deleted the index {name} ({size / 1e6:,.1f} MB).{again}{broken}"
