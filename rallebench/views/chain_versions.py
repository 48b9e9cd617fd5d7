"""Earlier versions of saved chains: a chain that is saved over another one of its name keeps it as a version."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from rallebench.chains.saved import chain_from_json, chain_to_json, save_chain
from rallebench.core.errors import RalleError
from rallebench.core.files import read_json
from rallebench.core.types import Chain
from rallebench.services.workbench import Workbench

FOLDER = ".versions"
MOST = 50
"""The most versions of a chain; then the oldest goes."""


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a chain. ``time``: seconds since the epoch, when it was saved or executed; ``number``: of a saved one,
    from 1, the oldest that is kept."""

    chain: Chain
    time: float
    number: int = 0


def save(workbench: Workbench, chain: Chain, name: str) -> Path:
    """Save a chain of the workspace under ``name``, and keep the one that it replaces. Raises UsageError."""
    path = workbench.workspace.path / "chains" / f"{name.strip()}.json"
    old = path.read_bytes() if path.is_file() else None
    since = path.stat().st_mtime_ns if old is not None else 0
    saved = workbench.asking.save_chain(chain, name)
    if old is not None and old != saved.read_bytes():
        folder = path.parent / FOLDER / name.strip()
        folder.mkdir(parents=True, exist_ok=True)
        version = folder / f"{since}.json"
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
    """A saved chain and its earlier versions, the newest first; files that cannot be read are left out."""
    chains = workbench.workspace.path / "chains"
    files = {f: f.stem for f in (chains / FOLDER / name).glob("*.json")} if name else {}
    if (now := chains / f"{name}.json").is_file():
        files[now] = str(now.stat().st_mtime_ns)
    listed = []
    for file, since in files.items():
        with suppress(RalleError, ValueError):
            listed.append(Version(chain_from_json(read_json(file)), int(since) / 1e9))
    listed.sort(key=lambda version: version.time)
    return [replace(version, number=n) for n, version in enumerate(listed, 1)][::-1]


def replaced_by(workbench: Workbench, name: str, known: Chain | None) -> Version | None:
    """The saved chain that saving under ``name`` would replace, None where there is none or it is ``known``."""
    newest = (
        next(iter(versions(workbench, name)), None)
        if name in workbench.workspace.chain_paths()
        else None
    )
    if newest is None or (known is not None and newest.chain.actions == known.actions):
        return None
    return newest


def is_saved(workbench: Workbench, chain: Chain) -> bool:
    """Return whether the workspace has a chain of this name with these very actions."""
    if chain.name not in workbench.workspace.chain_paths():
        return False
    try:
        known = workbench.workspace.chain(chain.name)
    except RalleError:
        return False
    return bool(chain_to_json(known)["actions"] == chain_to_json(chain)["actions"])
