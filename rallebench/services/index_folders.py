"""Folders of built indexes: found, verified and deleted."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rallebench.core import parts
from rallebench.core.errors import NotFoundError
from rallebench.core.events import Operation, Progress
from rallebench.core.parts import check_name
from rallebench.core.starter import STARTER_INDEXES
from rallebench.encoders import Encoder
from rallebench.retrievers import needs_encoder
from rallebench.workspace.entries import read_manifest
from rallebench.workspace.indexes.checks import search_known, verify_index
from rallebench.workspace.paths import WorkspaceFolder


@dataclass(frozen=True, slots=True)
class VerifiedIndex:
    """An index whose files match the build. ``warnings``: passages that a search fails to find."""

    name: str
    files: int
    bytes: int
    seconds: float
    warnings: tuple[str, ...] = ()


def index_folder(workspace: WorkspaceFolder, name: str) -> Path:
    """Return the folder of an existing index, even if damaged. Raises NotFoundError."""
    folder = workspace.indexes / check_name("index", name)
    if not (folder / "manifest.json").exists():
        raise NotFoundError(f"There is no built index {name!r} in {workspace.indexes}.")
    return folder


def verify(folder: Path, encoders: Callable[[str], Encoder]) -> Operation[VerifiedIndex]:
    """Verify the files of an index and search for known passages in it."""
    started = time.perf_counter()
    manifest = read_manifest(folder)
    yield from verify_index(folder, manifest)
    yield Progress("", message="searching for known passages")
    encoder = encoders(manifest.encoder_name) if needs_encoder(manifest.kind) else None
    warnings = tuple(search_known(folder, manifest, encoder))
    seconds = time.perf_counter() - started
    return VerifiedIndex(folder.name, len(manifest.files), manifest.bytes, seconds, warnings)


def delete(workspace: WorkspaceFolder, folder: Path) -> str:
    """Delete the folder of an index; return a sentence. Raises UsageError if the operating system refuses."""
    name = folder.name
    size = sum(p.stat().st_size for p in folder.rglob("*") if p.is_file())
    parts.delete(folder)
    again = " It is built anew when it is next used." if name in STARTER_INDEXES else ""
    users = [other for other, entry in workspace.combinations().items() if name in entry.of]
    broken = f" {', '.join(users)} can no longer be loaded." if users and not again else ""
    return f"Deleted the index {name} ({size / 1e6:,.1f} MB).{again}{broken}"
