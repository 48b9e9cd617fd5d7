"""Common parts of suites: lists typed by users, scored runs, figures, and report sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from rallebench.core.errors import SettingError
from rallebench.core.runs import DatasetRef, FlowSpec, RunRequest, RunResult
from rallebench.core.scoring import AnswerScorer, ScoreColumn, Scorer, Values
from rallebench.core.settings import Setting
from rallebench.core.tables import Figure, FigureKind, Unit
from rallebench.core.text import split_names
from rallebench.core.types import Episode, Example
from rallebench.metrics import METRICS


def names_in(text: str) -> list[str]:
    """The distinct names in a comma-separated list.

    >>> names_in("react, pal,,react")
    ['react', 'pal']
    """
    return list(dict.fromkeys(split_names(text)))


def values_in(name: str, text: str, setting: Setting) -> list[Any]:
    """The distinct values in a comma-separated list, parsed by ``setting``. Raises SettingError, also for an empty required
    list.

    >>> values_in("noise", "0, 0.2,0.20", Setting(float, 0, 0, 1))
    [0.0, 0.2]
    """
    parts = names_in(text)
    try:
        if setting.required and not parts:
            raise ValueError(setting.must_be)
        return list(dict.fromkeys(map(setting.reads, parts)))
    except ValueError as must_be:
        raise SettingError(name, text, str(must_be)) from None


def bars(
    title: str,
    x: str,
    y: str,
    series: Mapping[str, Iterable[tuple[Any, Any]]],
    kind: FigureKind = "bar",
    *,
    unit: Unit = "",
    printed: Mapping[str, str] | None = None,
    runs: Mapping[str, Sequence[str]] | None = None,
) -> Figure:
    """A figure of the points with a value; series without points are omitted. ``unit``: of y; ``printed``: series of a
    paper → its source; ``runs``: series → the run of each of its points."""
    points: dict[str, tuple[Any, ...]] = {}
    doors: dict[str, tuple[str, ...]] = {}
    for name, all_of in series.items():
        named = zip_longest(all_of, (runs or {}).get(name, ()), fillvalue="")
        known = [(p, run) for p, run in named if p and getattr(p[1], "value", p[1]) is not None]
        if known:
            points[name] = tuple(point for point, _ in known)
            doors[name] = tuple(run for _, run in known)
    sources = {name: source for name, source in (printed or {}).items() if name in points}
    led = {name: names for name, names in doors.items() if any(names)}
    return Figure(title, x, y, points, kind, units=("", unit), printed=sources, runs=led)


def sentences(*pairs: tuple[Any, str]) -> tuple[str, ...]:
    """The sentences with a nonzero count or a true condition.

    >>> sentences((2, "2 rows failed."), (0, "0 rows differ."))
    ('2 rows failed.',)
    """
    return tuple(sentence for count, sentence in pairs if count)


def in_folder(folder: Path, names: Iterable[str]) -> Path | None:
    """The first of these names that exists as a file in the folder."""
    return next((folder / name for name in names if (folder / name).is_file()), None)


def failed_note(label: str, result: RunResult, where: str) -> tuple[str, ...]:
    """A sentence on the failed questions of a run; () without failures. ``where``: the figures that include or exclude
    them."""
    text = f"{result.n_errors} of {result.n} questions failed; they are {where}."
    return sentences((result.n_errors, f"{label}: {text}" if label else text))


COSTS = ("seconds", "prompt_tokens", "completion_tokens")
"""Cost metrics recorded for every run of an experiment."""
SCORES = ("truthfulness", "relevance")
"""Scores of a judge, from 1 to 5."""
SHARES = {"all_rate", "rejection_rate", "lucky_rate", "fact_check_rate", "correct_rate"}
SHARES |= {"perfect", "QA_avg_F1", "QA_recall", "mrr", "gold_found", "bleu-avg", "rouge-L"}
SHARES |= {"usable", "correct", "reward", "evidence recall", "gold recall"}
SHARES |= {"bleu-1", "bleu-2", "bleu-3", "bleu-4", "retrieved", "undecided", "declined", "grounded"}


Bounds = Mapping[str, tuple[float | None, float | None]]


def scored_run(
    label: str,
    flow: FlowSpec,
    dataset: DatasetRef,
    examples: tuple[Example, ...],
    score: Callable[[Example, Episode], Values],
    columns: Mapping[str, str],
    *,
    metrics: tuple[str, ...] = (),
    judges: tuple[Scorer, ...] = (),
    bounds: Bounds | None = None,
    on_result: Callable[[RunResult], None] | None = None,
) -> RunRequest:
    """Return the run of ``examples`` answered by ``flow`` and scored by ``score``.

    ``columns``: column of ``score`` → definition; ``bounds``: column → range, by default from ``score_bounds``. ``metrics``,
    ``judges``: registered metrics and judges to add.
    """
    bounds = score_bounds(columns) if bounds is None else bounds
    scored = tuple(ScoreColumn(name, text, bounds[name]) for name, text in columns.items())
    own = (AnswerScorer(scored, score),) if scored else ()
    return RunRequest(
        flow,
        dataset,
        examples,
        tuple(dict.fromkeys((*metrics, *COSTS))),
        (*own, *judges),
        label=label,
        on_result=on_result,
    )


def score_bounds(names: Iterable[str]) -> dict[str, tuple[float | None, float | None]]:
    """Metric → (lowest, highest) value, None for no bound. Unknown metrics are treated as counts or quantities, which are at
    least 0."""
    bounds: dict[str, tuple[float | None, float | None]] = {}
    for name in names:
        own = (0.0, 1.0) if name in SHARES else (1.0, 5.0) if name in SCORES else (0.0, None)
        bounds[name] = METRICS.entry(name).traits["range"] if name in METRICS else own
    return bounds
