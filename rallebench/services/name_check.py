"""A run, a sweep and a suite are all asked for by name alone, so what is new takes no name that another kind has."""

from __future__ import annotations

from collections.abc import Mapping

from rallebench.core.errors import UsageError
from rallebench.workspace.paths import Workspace

KINDS: Mapping[str, tuple[str, ...]] = {
    "run": ("runs/{}/run.json",),
    "sweep": ("sweeps/{}.json",),
    "suite": ("suites/{}/asked.json", "suites/{}/report.json"),
}
"""Kind → the files of which any says that the workspace has one of a name."""


def kinds_of(workspace: Workspace, name: str) -> list[str]:
    """The kinds that have this name here; an earlier version let several of them have it."""
    return [
        kind
        for kind, files in KINDS.items()
        if any((workspace.path / file.format(name)).is_file() for file in files)
    ]


def refuse_taken(workspace: Workspace, kind: str, name: str) -> None:
    """Raise UsageError if another kind has the name and ``kind`` itself has not: what is there already goes on under it."""
    have = kinds_of(workspace, name)
    if have and kind not in have:
        raise UsageError(
            f"The name {name!r} is that of a {have[0]} already; choose another --name for the {kind}."
        )
