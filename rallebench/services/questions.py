"""Read the questions of a dataset, given by name or path or as values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from rallebench.core.columns import Columns
from rallebench.core.errors import UsageError
from rallebench.core.events import Operation
from rallebench.core.hub_names import is_hub_name, parse_hub_name
from rallebench.core.types import Example
from rallebench.datasets.given import read_values
from rallebench.datasets.reading import read_questions, read_table
from rallebench.hub.fetching import fetch, open_fetched
from rallebench.workspace.paths import WorkspaceFolder

UNNAMED = "questions"
"""Name of a list of questions given without one."""


def read_dataset(
    folder: Path,
    source: str | Path | Iterable[str | Mapping[str, object] | Example],
    columns: Columns | None = None,
) -> Operation[tuple[str, tuple[Example, ...], str]]:
    """Return (name, examples, reference) of a dataset; ``folder``: the workspace in which names are looked up.

    ``source``: a name, a path, a name of the hub, which is fetched, or values. ``columns``: role → column of a table whose names do
    not tell. ``reference``: the name or absolute path of a stored dataset; '' for anything else. Raises NotFoundError, BadFileError,
    BackendError if the hub does not answer.
    """
    if not isinstance(source, (str, Path)):
        if columns:
            raise UsageError(
                "Columns belong to a file; the records of a list have names of their own."
            )
        return UNNAMED, read_values(source), ""
    if is_hub_name(source):
        fetched = yield from fetch(parse_hub_name(str(source)))
        with open_fetched(fetched) as path:
            examples = read_table(path, columns) if columns else read_questions(path)
        return parse_hub_name(fetched.origin).label, examples, ""
    workspace = WorkspaceFolder(folder)
    name, path = workspace.dataset(str(source))
    if columns:
        return name, read_table(path, columns), ""
    known = str(source) in workspace.dataset_paths()
    return name, read_questions(path), name if known else str(path)
