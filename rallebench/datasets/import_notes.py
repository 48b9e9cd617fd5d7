"""``datasets/NAME.import.json``: notes of an import about skipped rows, guesses and warnings; kept with the dataset."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from rallebench.core.files import write_json
from rallebench.core.own_files import Count, Stored, read_stored


class ImportNotes(Stored):
    """Notes about an import. ``skipped``: number of bad rows; ``problems``: sentences about the first 20."""

    skipped: Count = 0
    problems: list[str] = Field(default_factory=list)
    warnings: list[str] = Field(default_factory=list)
    notes: list[str] = Field(default_factory=list)


def notes_file(dataset: Path) -> Path:
    """Return the notes file that belongs to a dataset.

    >>> notes_file(Path("datasets/moons.jsonl")).as_posix()
    'datasets/moons.import.json'
    """
    return dataset.with_name(
        f"{dataset.name.removesuffix('.gz').removesuffix('.jsonl')}.import.json"
    )


def write_notes(dataset: Path, notes: ImportNotes) -> None:
    """Write the notes beside the dataset, replacing notes of an earlier import."""
    if notes == ImportNotes():
        notes_file(dataset).unlink(missing_ok=True)
    else:
        write_json(notes_file(dataset), notes.model_dump())


def read_notes(dataset: Path) -> ImportNotes:
    """Return the notes of a dataset's import, empty if there are none. Raises BadFileError for a damaged file."""
    path = notes_file(dataset)
    if not path.is_file():
        return ImportNotes()
    return ImportNotes(**read_stored(path, ImportNotes, "import the dataset again"))
