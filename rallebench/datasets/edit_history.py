"""``datasets/history/NAME.jsonl``: the edits of a dataset, one a line, appended only; each can be undone."""

from __future__ import annotations

import contextlib
from pathlib import Path

from rallebench.core.dataset_edits import Edit, EditHistory
from rallebench.core.errors import RalleError
from rallebench.core.files import Appender, whole_lines
from rallebench.core.json_values import as_json
from rallebench.core.own_files import load_line, parse
from rallebench.core.streams import plain_name

FOLDER, MEND = "history", "remove that line"


def history_file(dataset: Path) -> Path:
    """Return the file with the history of a dataset.

    >>> history_file(Path("datasets/moons.jsonl")).as_posix()
    'datasets/history/moons.jsonl'
    """
    return dataset.parent / FOLDER / plain_name(dataset.name)


def append_edit(dataset: Path, edit: Edit) -> None:
    """Append an edit, before the dataset itself is written. If the disk is full, no new file is left. Raises BackendError."""
    path = history_file(dataset)
    is_new = not path.exists()
    try:
        with Appender(path) as file:
            file.write(as_json(edit))
    except RalleError:
        if is_new:
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
                path.parent.rmdir()
        raise


def read_history(dataset: Path, now: str) -> EditHistory:
    """Read the history of a dataset whose file has the digest ``now``. An edit that was recorded but never written is left out,
    as is a damaged line.
    """
    path, edits, problem = history_file(dataset), list[Edit](), ""
    for number, line in whole_lines(path):
        try:
            place = path.with_name(f"{path.name}, line {number}")
            edits.append(parse(load_line(line, place, MEND), Edit, place, MEND))
        except RalleError as error:
            problem = problem or str(error)
    following = [*(edit.before for edit in edits[1:]), now]
    done = [
        edit for edit, state in zip(edits, following) if state == edit.after or state != edit.before
    ]
    states = [*(edit.before for edit in done[1:]), now]
    continuous = not problem and all(edit.after == state for edit, state in zip(done, states))
    return EditHistory(tuple(done), problem, continuous)
