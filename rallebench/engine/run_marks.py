"""The user's tags and note of a run, in ``marks.json`` in the run's folder; nothing else of the run depends on them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from rallebench.core.errors import UsageError
from rallebench.core.files import write_json
from rallebench.core.own_files import parse, read_sealed
from rallebench.engine.store import RunFolder

MARKS, MARKS_MEND = "marks.json", "tag the run again"
MOST_TAGS, LONGEST_TAG, LONGEST_NOTE = 20, 40, 2000

Tag = Annotated[str, Field(max_length=LONGEST_TAG)]


@dataclass(frozen=True, slots=True)
class RunMarks:
    """``marks.json``."""

    tags: Annotated[tuple[Tag, ...], Field(max_length=MOST_TAGS)] = ()
    note: Annotated[str, Field(max_length=LONGEST_NOTE)] = ""


def read_marks(run: RunFolder) -> RunMarks:
    """Return the tags and the note of a run. Raises BadFileError."""
    path = run.path / MARKS
    if not path.exists():
        return RunMarks()
    return parse(read_sealed(path, MARKS_MEND), RunMarks, path, MARKS_MEND)


def write_marks(run: RunFolder, marks: RunMarks) -> None:
    """Replace the tags and the note of a run; empty ones remove the file."""
    path = run.path / MARKS
    if marks == RunMarks():
        path.unlink(missing_ok=True)
    else:
        write_json(path, {"tags": list(marks.tags), "note": marks.note})


def checked_tags(words: Iterable[str]) -> tuple[str, ...]:
    """Return distinct tags without surrounding spaces, in order. Raises UsageError.

    >>> checked_tags(["night ", "", "best of  May", "night"])
    ('night', 'best of May')
    """
    tags = tuple(dict.fromkeys(filter(None, (" ".join(word.split()) for word in words))))
    if long := next((tag for tag in tags if len(tag) > LONGEST_TAG), ""):
        raise UsageError(
            f"The tag {long[:30]!r}… has more than {LONGEST_TAG} characters; shorten it.", "tags"
        )
    if len(tags) > MOST_TAGS:
        raise UsageError(
            f"A run has at most {MOST_TAGS} tags; leave {len(tags) - MOST_TAGS} out.", "tags"
        )
    return tags


def checked_note(text: str) -> str:
    """Return a note without surrounding spaces. Raises UsageError."""
    note = text.strip()
    if len(note) > LONGEST_NOTE:
        raise UsageError(f"The note has more than {LONGEST_NOTE:,} characters; shorten it.", "note")
    return note
