"""Trade-offs that were measured are kept in ``<workspace>/tradeoffs/`` and never replaced."""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rallebench.core.errors import BackendError, UsageError
from rallebench.core.files import read_json, write_json
from rallebench.core.locks import alone
from rallebench.core.types import Example
from rallebench.experiments.tradeoff import Point, Tradeoff, from_json
from rallebench.experiments.tradeoff.measure import TEXTS, measure
from rallebench.workspace.paths import Workspace

_NAME = re.compile(r"[\w\-.][\w\-. ()+=,@]{0,99}")


def folder(workspace: Workspace) -> Path:
    """Where they lie."""
    return workspace.path / "tradeoffs"


def kept(workspace: Workspace) -> dict[str, Path]:
    """Name → file, the newest first."""
    found = sorted(
        folder(workspace).glob("*.json"), key=lambda path: path.stat().st_mtime, reverse=True
    )
    return {path.stem: path for path in found if not path.name.startswith(".")}


def opened(workspace: Workspace, name: str) -> Tradeoff:
    """A kept trade-off. Raises UsageError if there is none, BadFileError if it is damaged."""
    path = kept(workspace).get(name)
    if path is None:
        raise UsageError(f"There is no trade-off {name!r} in {folder(workspace)}.")
    return from_json(read_json(path), str(path))


def free_name(workspace: Workspace, name: str) -> str:
    """``name``, checked, or one made from the time. Raises UsageError if it is taken or no file name."""
    name = name.strip() or time.strftime("tradeoff-%Y%m%d-%H%M%S")
    if not _NAME.fullmatch(name) or name.startswith("."):
        raise UsageError(
            f"The name {name!r} cannot be a file name; use letters, digits, '-' and '_'."
        )
    if (folder(workspace) / f"{name}.json").exists():
        raise UsageError(f"A trade-off {name!r} exists already; choose another name.")
    return name


def check_writable(place: Path) -> None:
    """Raise BackendError if no file could be made in ``place``, which need not exist; nothing stays there."""
    there = next(path for path in (place, *place.parents) if path.exists())
    try:
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        raise BackendError(
            f"Could not write {place}: {error.strerror or error}. Nothing was measured; choose another --workspace."
        ) from error


def measure_and_keep(
    workspace: Workspace,
    name: str,
    indexes: Sequence[str],
    dataset: str,
    examples: Sequence[Example],
    encoders: Callable[[str], Any],
    *,
    k: int = 10,
    limit: int = TEXTS,
    swept: Mapping[str, Sequence[Any]] | None = None,
) -> Generator[str | Point | Tradeoff, None, None]:
    """``measure``, and the whole as a file; the Tradeoff comes last.

    Before anything is measured it raises BackendError if the file could not be written, and UsageError if somebody
    measures under this name, or has done so meanwhile.
    """
    check_writable(folder(workspace))
    taken = f"A trade-off {name!r} is being measured by another process; wait for it, or choose another name."
    with alone(folder(workspace) / f".{name}.lock", taken):
        free_name(workspace, name)
        points: list[Point] = []
        for piece in measure(workspace, indexes, examples, encoders, k=k, limit=limit, swept=swept):
            if isinstance(piece, Point):
                points.append(piece)
            yield piece
        whole = Tradeoff(
            name, dataset, k, max((point.n for point in points), default=0), tuple(points)
        )
        write_json(folder(workspace) / f"{name}.json", whole.as_json())
        yield whole
