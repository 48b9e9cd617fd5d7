"""Questions of a dataset by its name or path, or handed over as values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from rallebench.core.types import Example
from rallebench.datasets.given import read_values
from rallebench.datasets.reading import read_questions
from rallebench.workspace.paths import WorkspaceFolder

UNNAMED = "questions"
"""The name of a list of questions that was given none."""


def read_dataset(
    folder: Path, source: str | Path | Iterable[str | Mapping[str, object] | Example]
) -> tuple[str, tuple[Example, ...], str]:
    """Return (name, examples, reference) of a dataset; ``folder``: the workspace that knows the names.

    ``reference``: the name or absolute path of a stored dataset, '' for values. Raises NotFoundError, BadFileError.
    """
    if not isinstance(source, (str, Path)):
        return UNNAMED, read_values(source), ""
    workspace = WorkspaceFolder(folder)
    name, path = workspace.dataset(str(source))
    known = str(source) in workspace.dataset_paths()
    return name, read_questions(path), name if known else str(path)
