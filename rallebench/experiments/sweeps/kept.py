"""What a workspace keeps of its sweeps: ``sweeps/<name>.json`` says what was asked, its runs say the rest."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from rallebench.core.errors import BadFileError, UsageError
from rallebench.core.files import read_json, write_json
from rallebench.core.locks import alone
from rallebench.engine.store import RunFolder
from rallebench.experiments.sweeps.results import Swept, swept
from rallebench.services.name_check import refuse_taken
from rallebench.services.workbench import Workbench
from rallebench.workspace.paths import Workspace

_NAME = re.compile(r"[\w\-.][\w\-.]{0,39}")


def folder_of(workspace: Workspace) -> Any:
    """Where sweeps are noted."""
    return workspace.path / "sweeps"


def _file(workspace: Workspace, name: str) -> Any:
    return folder_of(workspace) / f"{name}.json"


def kept(workspace: Workspace) -> list[str]:
    """The names of all sweeps, the newest first."""
    files = [path for path in folder_of(workspace).glob("*.json") if not path.name.startswith(".")]
    return [path.stem for path in sorted(files, key=lambda path: -path.stat().st_mtime)]


def _read(path: Path) -> dict[str, Any]:
    """A sweep's file. Raises BadFileError if it is damaged."""
    value = read_json(path)
    whole = isinstance(value, dict) and all(
        isinstance(value.get(key), list) for key in ("runs", "variants")
    )
    if not whole or not (
        all(isinstance(run, str) for run in value["runs"])
        and all(isinstance(one, dict) for one in value["variants"])
    ):
        raise BadFileError(
            f"{path} was damaged by another program; remove it and start the sweep under another name."
        )
    sweep: dict[str, Any] = value
    return sweep


def opened(workbench: Workbench, name: str, by: str = "") -> Swept:
    """A sweep that was run: those of its variants that have ended, and why the others have not. Raises UsageError if
    there is none."""
    path = _file(workbench.workspace, name)
    if not path.is_file():
        raise UsageError(
            f"There is no sweep {name!r} (sweeps: {', '.join(kept(workbench.workspace)[:10]) or 'none yet'})."
        )
    value = _read(path)
    labels = {
        run: ", ".join(f"{varied}={label}" for varied, label in changes.items()) or "base"
        for run, changes in zip(value["runs"], value["variants"])
    }
    ended: dict[str, str] = {}
    missing: dict[str, str] = {}
    for run, label in labels.items():
        if not (workbench.workspace.runs / run).exists():
            missing[label] = "It has no run; start the sweep again to make it."
        elif is_done(found := workbench.open_run(run)):
            ended[run] = label
        else:
            missing[label] = str(found.state().get("message") or "") or "Its run has not ended."
    return swept(workbench, name, ended, missing, by)


def checked_name(name: str) -> str:
    """The name, if a sweep can have it. Raises UsageError."""
    if not _NAME.fullmatch(name) or name.startswith("."):
        raise UsageError(
            f"The sweep's name {name!r} must be 1 to 40 letters, digits, '-', '_' or '.'."
        )
    return name


def working_on(workspace: Workspace, name: str) -> AbstractContextManager[None]:
    """Nobody else runs the sweep meanwhile. Raises UsageError if somebody does, or for a name that cannot be."""
    lock = folder_of(workspace) / f".{checked_name(name)}.lock"
    return alone(
        lock, f"The sweep {name!r} is being run by another process or page; wait for it or stop it."
    )


def keep(workspace: Workspace, name: str, content: Mapping[str, Any], runs: list[str]) -> list[str]:
    """The runs' names. Raises UsageError for a name that cannot be, or that another sweep, a run or a suite has."""
    path = _file(workspace, checked_name(name))
    if path.is_file():
        there = _read(path)
        if {key: there.get(key) for key in content} != content:
            raise UsageError(
                f"The sweep {name!r} exists already with another content; choose another name."
            )
    elif taken := [run for run in runs if (workspace.runs / run).exists()]:
        raise UsageError(
            f"The run {taken[0]!r} exists already and is of no sweep {name!r}; choose another name."
        )
    refuse_taken(workspace, "sweep", name)
    return runs


def note(workspace: Workspace, name: str, content: Mapping[str, Any], runs: list[str]) -> None:
    """Write what was asked, once it is known that it can be done."""
    write_json(_file(workspace, name), {"format": "rallebench-sweep/1", **content, "runs": runs})


def is_done(run: RunFolder) -> bool:
    """Whether all questions of a run are answered and scored."""
    report = run.report()
    return run.state()["state"] == "done" and bool(report and report["complete"])
