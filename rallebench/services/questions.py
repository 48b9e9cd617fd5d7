"""Read the questions of a dataset, given by name or path or as values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from rallebench.core.types import Example
from rallebench.datasets.given import read_values
from rallebench.datasets.reading import read_questions
from rallebench.workspace.paths import WorkspaceFolder

UNNAMED = "questions"
"""Name of a list of questions given without one."""


def read_dataset(
    folder: Path, source: str | Path | Iterable[str | Mapping[str, object] | Example]
) -> tuple[str, tuple[Example, ...], str]:
    """Return (name, examples, reference) of a dataset; ``folder``: the workspace in which names are looked up.

    ``reference``: the name or absolute path of a stored dataset; '' for values. Raises NotFoundError, BadFileError.
    """
    if not isinstance(source, (str, Path)):
        return UNNAMED, read_values(source), ""
    workspace = WorkspaceFolder(folder)
    name, path = workspace.dataset(str(source))
    known = str(source) in workspace.dataset_paths()
    return name, read_questions(path), name if known else str(path)
