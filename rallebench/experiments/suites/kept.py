"""What a workspace keeps of suites: ``suites/NAME`` with what was asked for, and the report once all parts have ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rallebench.core.errors import BadFileError, UsageError
from rallebench.core.files import read_json, write_json
from rallebench.experiments.suites import SUITES, Asked
from rallebench.workspace.paths import Workspace

ASKED, REPORT = "asked.json", "report.json"


@dataclass(frozen=True, slots=True)
class Kept:
    """A suite that was begun. ``asked``: ``llm``, ``settings``, ``limit`` and ``seed``, {} where an earlier version noted none.
    ``report``: None until it has ended."""

    name: str
    suite: str
    asked: Mapping[str, Any]
    report: Mapping[str, Any] | None


def changed(found: Kept) -> dict[str, Any]:
    """The settings that were asked for and are not the suite's defaults, as far as the suite is known here."""
    known = SUITES.entry(found.suite).traits["settings"] if found.suite in SUITES else {}
    settings = found.asked.get("settings") or {}
    return {
        name: value
        for name, value in settings.items()
        if name not in known or value != known[name].default
    }


def folder_of(workspace: Workspace, name: str = "") -> Path:
    """Where a suite's own files lie, or those of all suites."""
    return workspace.path / "suites" / name


def asked_json(asked: Asked) -> dict[str, Any]:
    """A request as it is noted."""
    return {
        "llm": asked.llm,
        "settings": dict(asked.settings),
        "limit": asked.limit,
        "seed": asked.seed,
    }


def note(workspace: Workspace, suite: str, name: str, asked: Asked) -> None:
    """Keep what was asked for, so that a suite that was stopped can be found and continued."""
    write_json(folder_of(workspace, name) / ASKED, {"suite": suite, "asked": asked_json(asked)})


def refuse_another(workspace: Workspace, suite: str, name: str) -> None:
    """Raise UsageError if the name is that of another suite, whose report would be lost."""
    folder = folder_of(workspace, name)
    if any((folder / file).is_file() for file in (ASKED, REPORT)):
        there = opened(workspace, name).suite
        if there != suite:
            raise UsageError(
                f"The name {name!r} is that of a run of the suite {there!r}; choose another name."
            )


def names(workspace: Workspace) -> list[str]:
    """The names of all suites that were begun, the newest first."""
    found: dict[Path, float] = {}
    for file in (ASKED, REPORT):
        for path in folder_of(workspace).glob(f"*/{file}"):
            found[path.parent] = max(found.get(path.parent, 0.0), path.stat().st_mtime)
    return [
        path.name
        for path in sorted(found, key=lambda path: (-found[path], path.name))
        if not path.name.startswith(".")
    ]


def opened(workspace: Workspace, name: str) -> Kept:
    """A suite by its name. Raises UsageError if there is none, BadFileError for damaged files."""
    folder = folder_of(workspace, name)
    if not name or (not (folder / REPORT).is_file() and not (folder / ASKED).is_file()):
        raise UsageError(
            f"There is no suite run {name!r} (there are: {', '.join(names(workspace)[:10]) or 'none yet'})."
        )
    report = (
        _read(folder / REPORT, ("suite", "name", "parts")) if (folder / REPORT).is_file() else None
    )
    begun = _read(folder / ASKED, ("suite", "asked")) if (folder / ASKED).is_file() else {}
    asked = begun.get("asked") or (report or {}).get("asked") or {}
    return Kept(name, str(begun.get("suite") or (report or {})["suite"]), asked, report)


def _read(path: Path, needed: tuple[str, ...]) -> dict[str, Any]:
    value = read_json(path)
    if not isinstance(value, dict) or not value.keys() >= {*needed}:
        raise BadFileError(
            f"{path} was damaged by another program; run the suite again under its name to write it anew."
        )
    return value
