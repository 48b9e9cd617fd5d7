"""Earlier versions of saved chains: whenever a chain is saved over another one of its name, that one is kept."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path

from rallebench.chains.saved import chain_from_json, chain_to_json, save_chain
from rallebench.core.errors import RalleError
from rallebench.core.files import read_json
from rallebench.core.types import Chain
from rallebench.services.workbench import Workbench

FOLDER = ".versions"
MOST = 50
"""Versions of a chain that are kept; of more the oldest goes."""


@dataclass(frozen=True, slots=True)
class Version:
    """An earlier version. ``time``: seconds since the epoch, when it was replaced."""

    chain: Chain
    time: float


def save(workbench: Workbench, chain: Chain, name: str) -> Path:
    """Save a chain of the workspace under ``name``, and keep the one that it replaces. Raises UsageError."""
    path = workbench.workspace.path / "chains" / f"{name.strip()}.json"
    old = path.read_bytes() if path.is_file() else None
    saved = workbench.asking.save_chain(chain, name)
    if old is not None and old != saved.read_bytes():
        folder = path.parent / FOLDER / name.strip()
        folder.mkdir(parents=True, exist_ok=True)
        version = folder / f"{time.time_ns()}.json"
        save_chain(chain_from_json(_read(old, path)), version)
        for file in sorted(folder.glob("*.json"))[:-MOST]:
            file.unlink()
    return saved


def _read(raw: bytes, path: Path) -> object:
    try:
        return json.loads(raw)
    except ValueError:
        return {"damaged": str(path)}


def versions(workbench: Workbench, name: str) -> list[Version]:
    """The earlier versions of a saved chain, the newest first; files that cannot be read are left out."""
    folder = workbench.workspace.path / "chains" / FOLDER / name
    listed = []
    for file in sorted(folder.glob("*.json"), reverse=True) if name else []:
        try:
            listed.append(Version(chain_from_json(read_json(file)), int(file.stem) / 1e9))
        except (RalleError, ValueError):
            continue
    return listed


def is_saved(workbench: Workbench, chain: Chain) -> bool:
    """Whether the workspace has a chain of this name with these very actions."""
    if chain.name not in workbench.workspace.chain_paths():
        return False
    try:
        known = workbench.workspace.chain(chain.name)
    except RalleError:
        return False
    return bool(chain_to_json(known)["actions"] == chain_to_json(chain)["actions"])
