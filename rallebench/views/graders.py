"""Graders of a run's answers: metrics, columns of judges, and the model's own confidence, as scores from 0 to 1."""

from __future__ import annotations

from collections.abc import Sequence

from rallebench.analysis.measures import measure, own_metrics
from rallebench.analysis.paired import is_scored
from rallebench.analysis.ranking import read_scores
from rallebench.core.audits import CONFIDENCE
from rallebench.core.cards import Card
from rallebench.core.comparison import Measure
from rallebench.core.errors import NotFoundError, UsageError
from rallebench.core.types import Episode, Generate
from rallebench.engine.metric_choice import stored_metrics
from rallebench.engine.store import RunFolder

OWN_CONFIDENCE = Measure(
    CONFIDENCE,
    Card(
        CONFIDENCE,
        "Confidence",
        "The model's own confidence that its answer is right, of its last reply that has one.",
        higher_is_better=True,
        range=(0.0, 1.0),
    ),
    True,
)


def find_grader(name: str, runs: Sequence[RunFolder]) -> Measure:
    """Return a metric, a column of a judge, or the model's confidence. Raises NotFoundError, UsageError."""
    return OWN_CONFIDENCE if name.strip() == CONFIDENCE else measure(name, runs)


def read_grades(run: RunFolder, by: Measure) -> dict[str, float]:
    """Return question id → score from 0 to 1, 1 the best; failed and unscored questions are left out.

    Raises UsageError for a measure without a range or a better direction, and for a run without any score of it.
    """
    low, high = by.bounds
    values = _read_values(run, by)
    if low is None or high is None or any(not low <= x <= high for x in values.values()):
        raise UsageError(
            f"The values of {by.name!r} have no known lowest and highest, so they cannot be set against the truth; choose another column."
        )
    if not values:
        raise UsageError(
            f"The model of {run.name!r} gives no confidence; choose the column of a judge or a metric."
            if by is OWN_CONFIDENCE
            else f"No answer of {run.name!r} is scored by {by.name!r}; choose another column, or score the run by it."
        )
    down = by.higher_is_better is False
    return {qid: (high - x if down else x - low) / (high - low) for qid, x in values.items()}


def _read_values(run: RunFolder, by: Measure) -> dict[str, float]:
    if by is OWN_CONFIDENCE:
        own = ((qid, own_confidence(episode)) for qid, episode in run.episodes().items())
        return {qid: value for qid, value in own if value is not None}
    read = read_scores(run, (by.name,))[by.name]
    return {qid: value for qid, value in read.items() if value is not None and is_scored(value)}


def own_confidence(episode: Episode) -> float | None:
    """Return the confidence of the last reply of a model that has one; None for a failed question or without any."""
    if episode.error:
        return None
    replies = (x.reply.confidence for x in episode.steps if isinstance(x.request, Generate))
    known = [x for x in replies if x is not None]
    return known[-1] if known else None


def gives_confidence(run: RunFolder) -> bool:
    """Return whether the first answered question has a confidence, without reading the others."""
    for qid, head in run.heads().items():
        if not head.error:
            episode = run.find_episode(qid, head.at)
            return episode is not None and own_confidence(episode) is not None
    return False


def list_graders(run: RunFolder) -> tuple[str, ...]:
    """Return the graders of a run with a range: its own confidence first, then judges' columns, then metrics."""
    names = [*own_metrics(run), *stored_metrics(run)]
    ranged = []
    for name in names:
        try:
            if None not in (by := measure(name, [run])).bounds and by.higher_is_better is not None:
                ranged.append(name)
        except (NotFoundError, UsageError):
            continue
    return ((CONFIDENCE,) if gives_confidence(run) else ()) + tuple(dict.fromkeys(ranged))
