"""What the scorers of prediction files have in common: the file, the means, the sentences on counts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rallebench.core.errors import NotFoundError
from rallebench.engine.statistics import means
from rallebench.experiments.runs import bounds_of


def check_file(path: Path, what: str, flag: str = "--guess") -> None:
    """Raise NotFoundError unless ``path`` is a file; ``what`` it should hold."""
    if path.is_dir():
        names = sorted(file.name for file in path.iterdir() if file.is_file())
        held = f" It holds {', '.join(names[:3])}{' …' * (len(names) > 3)}." if names else ""
        raise NotFoundError(
            f"{path} is a folder; name the file that holds {what}: {flag} {path / 'FILE'}.{held}"
        )
    if not path.is_file():
        raise NotFoundError(f"{path} does not exist; it should hold {what}.")


def means_of(columns: Mapping[str, Sequence[float | None]]) -> dict[str, dict[str, Any]]:
    """Metric → its mean with interval as JSON, of the values of all rows."""
    return {name: asdict(mean) for name, mean in means(columns, ranges=bounds_of(columns)).items()}


def sentences(*pairs: tuple[Any, str]) -> tuple[str, ...]:
    """The sentences whose count, or condition, holds.

    >>> sentences((2, "2 rows failed."), (0, "0 rows differ."))
    ('2 rows failed.',)
    """
    return tuple(sentence for count, sentence in pairs if count)


def json_lines(rows: Iterable[Any]) -> str:
    """Rows as JSON lines."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
