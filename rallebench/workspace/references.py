"""The reference run of each dataset, which the user has starred: ``references.json``, dataset → name of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rallebench.core.files import write_json
from rallebench.core.locks import alone
from rallebench.core.own_files import parse, read_sealed
from rallebench.workspace.entries import CHANGE_LOCK_SECONDS

REFERENCES, MEND = "references.json", "delete that file and star the reference runs again"


@dataclass(frozen=True, slots=True)
class References:
    """``references.json``."""

    runs: Mapping[str, str] = field(default_factory=dict)


def read_references(workspace: Path) -> Mapping[str, str]:
    """Return dataset → name of its reference run. Raises BadFileError."""
    path = workspace / REFERENCES
    if not path.exists():
        return {}
    return parse(read_sealed(path, MEND), References, path, MEND).runs


def set_reference(workspace: Path, dataset: str, run: str) -> None:
    """Make a run the reference of a dataset, in place of any other; "" leaves the dataset without one."""
    path = workspace / REFERENCES
    refused = f"{path} is being changed by another process; try again."
    with alone(path.with_name(f".{REFERENCES}.lock"), refused, patience=CHANGE_LOCK_SECONDS):
        runs = {**read_references(workspace), dataset: run}
        write_json(path, {"runs": {name: starred for name, starred in runs.items() if starred}})


def forget_run(workspace: Path, run: str) -> None:
    """Remove the star of a run that is deleted."""
    for dataset, starred in read_references(workspace).items():
        if starred == run:
            set_reference(workspace, dataset, "")
