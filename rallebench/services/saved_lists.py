"""Filters of lists that the user has saved under a name: ``lists.json``, list → name → the query of its address."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import Field

from rallebench.core.errors import UsageError
from rallebench.core.files import write_json
from rallebench.core.locks import alone
from rallebench.core.own_files import parse, read_sealed
from rallebench.workspace.entries import CHANGE_LOCK_SECONDS

SAVED, MEND = "lists.json", "delete that file and save the filters again"
LONGEST_NAME, MOST_SAVED = 60, 100

Queries = Mapping[str, Annotated[str, Field(max_length=20_000)]]


@dataclass(frozen=True, slots=True)
class SavedLists:
    """``lists.json``."""

    lists: Mapping[str, Queries] = field(default_factory=dict)


def read_saved_lists(workspace: Path, list_name: str) -> Mapping[str, str]:
    """Return name → query of the saved filters of a list, by name. Raises BadFileError."""
    path = workspace / SAVED
    if not path.exists():
        return {}
    saved = parse(read_sealed(path, MEND), SavedLists, path, MEND).lists
    return dict(sorted(saved.get(list_name, {}).items()))


def save_list(workspace: Path, list_name: str, name: str, query: str) -> None:
    """Save a filter under a name, in place of an earlier one; an empty query removes it. Raises UsageError."""
    name = " ".join(name.split())
    if not name or len(name) > LONGEST_NAME:
        raise UsageError(f"Give the filter a name of 1 to {LONGEST_NAME} characters.", "as")
    path = workspace / SAVED
    refused = f"{path} is being changed by another process; try again."
    with alone(path.with_name(f".{SAVED}.lock"), refused, patience=CHANGE_LOCK_SECONDS):
        lists: dict[str, Mapping[str, str]] = {}
        if path.exists():
            lists = dict(parse(read_sealed(path, MEND), SavedLists, path, MEND).lists)
        of_list = {**lists.get(list_name, {}), name: query}
        lists[list_name] = {key: value for key, value in of_list.items() if value}
        if len(lists[list_name]) > MOST_SAVED:
            raise UsageError(f"A list has at most {MOST_SAVED} saved filters; remove one first.")
        write_json(path, {"lists": {key: dict(value) for key, value in lists.items()}})
