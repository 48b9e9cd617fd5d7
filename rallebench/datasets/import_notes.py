"""``datasets/NAME.import.json``: notes of an import about skipped rows, guesses and warnings; kept with the dataset."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from rallebench.core.errors import BadFileError
from rallebench.core.files import write_json
from rallebench.core.json_values import as_json
from rallebench.core.own_files import parse, read_sealed
from rallebench.core.streams import plain_name
from rallebench.core.strict_numbers import Count

MEND = "import the dataset again"


@dataclass(frozen=True, slots=True)
class ImportNotes:
    """Notes about an import. ``skipped``: number of bad rows; ``problems``: sentences about the first 20; ``columns``: role → column,
    as given; ``origin``: the name on a hub, with the commit, or ''.
    """

    origin: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)
    skipped: Count = 0
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def notes_file(dataset: Path) -> Path:
    """Return the notes file that belongs to a dataset.

    >>> notes_file(Path("datasets/moons.jsonl")).as_posix()
    'datasets/moons.import.json'
    """
    return dataset.with_name(f"{plain_name(dataset.name).removesuffix('.jsonl')}.import.json")


def write_notes(dataset: Path, notes: ImportNotes) -> None:
    """Write the notes beside the dataset, replacing other notes of an earlier import."""
    with suppress(BadFileError):
        if read_notes(dataset) == notes:
            return
    if notes == ImportNotes():
        notes_file(dataset).unlink(missing_ok=True)
    else:
        write_json(notes_file(dataset), as_json(notes))


def read_notes(dataset: Path) -> ImportNotes:
    """Return the notes of a dataset's import, empty if there are none. Raises BadFileError for a damaged file."""
    path = notes_file(dataset)
    if not path.is_file():
        return ImportNotes()
    return parse(read_sealed(path, MEND), ImportNotes, path, MEND)
