"""Earlier versions of saved chains. Saving over an existing chain keeps the old one as a version."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

from rallebench.chains.saved import (
    VERSIONS,
    chain_from_json,
    chain_to_json,
    read_version_names,
    version_key,
)
from rallebench.core.errors import RalleError
from rallebench.core.files import read_json
from rallebench.core.types import Chain
from rallebench.workspace.paths import WorkspaceFolder


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a chain. ``time``: when it was saved or run, in seconds since the epoch; ``number``: for saved
    versions, counted from 1, the oldest kept.
    """

    chain: Chain
    time: float
    number: int = 0


def versions(workspace: WorkspaceFolder, name: str) -> list[Version]:
    """Return a saved chain and its earlier versions, newest first; unreadable files are left out."""
    chains = workspace.path / "chains"
    files = {f: f.stem for f in (chains / VERSIONS / name).glob("*.json")} if name else {}
    if (now := chains / f"{name}.json").is_file():
        files[now] = str(now.stat().st_mtime_ns)
    listed = []
    for file, since in files.items():
        with suppress(RalleError, ValueError):
            listed.append(Version(chain_from_json(read_json(file)), int(since) / 1e9))
    listed.sort(key=lambda version: version.time)
    return [replace(version, number=n) for n, version in enumerate(listed, 1)][::-1]


def version_name(workspace: WorkspaceFolder, name: str, version: Chain) -> str:
    """Return the name that a person gave to a version of the chain ``name``; '' without one."""
    if name not in workspace.chain_paths():
        return ""
    with suppress(RalleError):
        return read_version_names(workspace.path / "chains", name).get(version_key(version), "")
    return ""


def replaced_by(workspace: WorkspaceFolder, name: str, known: Chain | None) -> Version | None:
    """Return the saved chain that saving under ``name`` would replace; None if there is none or it is ``known``."""
    newest = (
        next(iter(versions(workspace, name)), None) if name in workspace.chain_paths() else None
    )
    if newest is None or (known is not None and newest.chain.actions == known.actions):
        return None
    return newest


def is_saved(workspace: WorkspaceFolder, chain: Chain) -> bool:
    """Return whether the workspace has a chain of this name with exactly these actions."""
    if chain.name not in workspace.chain_paths():
        return False
    try:
        known = workspace.chain(chain.name)
    except RalleError:
        return False
    return bool(chain_to_json(known)["actions"] == chain_to_json(chain)["actions"])
