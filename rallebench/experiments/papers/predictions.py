"""What the scorers of prediction files have in common: the file, the means, the sentences on counts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rallebench.core.errors import BadFileError, NotFoundError
from rallebench.engine.statistics import means
from rallebench.experiments.papers.common import sentences
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


def not_in_gold(guess: Path, gold: Path, question: str) -> BadFileError:
    """The error of predictions for a question that the gold lacks."""
    return BadFileError(
        f"{guess} answers {question!r}, which {gold} does not hold; give the file that was asked."
    )


def gold_notes(changed: int, gold: Path, missing: int, n: int, where: str) -> tuple[str, ...]:
    """Sentences on rows whose answer was ``changed`` by the gold, and on ``missing`` of its ``n`` records, which are in no
    ``where``."""
    return sentences(
        (changed, f"{changed} rows have another answer than {gold.name}; the latter's counts."),
        (missing, f"{missing} of {n} records have no row; they are in no {where}."),
    )


def json_lines(rows: Iterable[Any]) -> str:
    """Rows as JSON lines."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
