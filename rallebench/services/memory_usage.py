"""What the models and indexes of a run took in memory when they were loaded: recorded beside its fingerprint, for its cost."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from rallebench.core.errors import RalleError
from rallebench.retrievers.composites import needs
from rallebench.workspace.paths import Workspace


@dataclass(frozen=True, slots=True)
class LoadedBackend:
    """A retriever or language model that is loaded. ``ram`` and ``vram`` in bytes, measured around the load.

    ``expected``: bytes as they were estimated before, 0 if they were not.
    """

    name: str
    kind: str
    about: str
    ram: int
    vram: int
    seconds: float
    expected: int = 0


ELSEWHERE = frozenset({"openai_compatible"})
"""Backends whose model is held by another program."""

Footprint = dict[str, "dict[str, int] | None"]
"""Name → bytes of ``ram`` and ``vram``; None where they are not known."""


def footprint(
    workspace: Workspace, status: Iterable[LoadedBackend], requested: Iterable[str]
) -> Footprint:
    """What the loaded ones of ``requested`` took, and all that they are made of.

    Not known is the memory of what another program or server holds, and of what took less than could be measured.
    What two share, such as an encoder, is counted with the one that was loaded first.
    """
    lines = {line.name: line for line in status}
    parts = {name: [part for part, _ in _needed(workspace, name, lines)] for name in lines}
    names, todo = dict[str, None](), [name for name in requested if name in lines]
    while todo:
        name = todo.pop(0)
        if name not in names:
            names[name] = None
            todo += parts[name]
    return {name: _held(workspace, lines[name], bool(parts[name])) for name in names}


def _needed(
    workspace: Workspace, name: str, lines: dict[str, LoadedBackend]
) -> list[tuple[str, str]]:
    if lines[name].kind == "language model":
        return []
    with suppress(RalleError):
        entry = workspace.retriever(name)
        return [(part, kind) for part, kind in needs(entry) if part in lines] if entry else []
    return []


def _held(workspace: Workspace, line: LoadedBackend, combined: bool) -> dict[str, int] | None:
    with suppress(RalleError):
        if line.kind == "language model" and workspace.llm(line.name).backend in ELSEWHERE:
            return None
    manifest = workspace.manifests().get(line.name) if line.kind != "language model" else None
    if manifest is not None and "uri" in manifest.parameters:
        return None
    ram, vram = max(line.ram, 0), max(line.vram, 0)
    return {"ram": ram, "vram": vram} if ram + vram or combined else None
