"""Metrics over a whole run: each question's value, or why there is none, and figures over all answers at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rallebench.core.registry import Entry
from rallebench.core.types import Episode, Gold
from rallebench.metrics import Counted, Pairs, metric, read_card
from rallebench.metrics.recorded import IMPORTED, RunEvidence, missing_evidence


@dataclass(frozen=True, slots=True)
class ScoreSeries:
    """A metric over the questions of a run, in their order.

    ``values``: None is *not scored*, and then ``notes`` says why ('' beside a number). ``over_all``: the
    figure over all scored answers at once, such as corpus BLEU, which is no mean; None where a metric has none.
    """

    values: tuple[float | None, ...]
    notes: tuple[str, ...]
    over_all: float | None = None


def columns(names: Sequence[str], pairs: Pairs) -> dict[str, ScoreSeries]:
    """Canonical name → its scores, for ``pairs`` of an episode and its gold.

    A failed question is not scored, and a value that is no number (NaN, infinite) is none. Raises as ``metric`` does, and
    what a metric raises that cannot have its model.
    """
    entries = list({entry.name: entry for entry in map(metric, names)}.values())
    run = RunEvidence.of(episode for episode, _ in pairs)
    singly = [entry for entry in entries if "batch" not in entry.traits]
    # Question by question: the metrics of one answer share what they make of its text.
    rows = [
        [
            None if episode.error or missing_evidence(episode, e, run) else e.value(episode, gold)
            for e in singly
        ]
        for episode, gold in pairs
    ]
    values: dict[str, list[float | None]] = {
        e.name: [row[i] for row in rows] for i, e in enumerate(singly)
    }
    for entry in entries:
        if "batch" in entry.traits:
            values[entry.name] = _batch(entry, pairs, run)
    return {entry.name: _column(entry, pairs, values[entry.name], run) for entry in entries}


def why_not_scored(name: str, episode: Episode, gold: Gold, run: RunEvidence | None = None) -> str:
    """Why a question has no value under a metric: it failed, its ``run`` or its gold lacks something, or the card's reason.

    ``run``: by default a run of this question alone.
    """
    if episode.error:
        return episode.error
    reason = missing_evidence(episode, metric(name), run or RunEvidence.of((episode,)))
    if reason and episode.workflow == IMPORTED:
        return reason
    card = read_card(name)
    missing = [part for part in card.needs.split("+") if part and not getattr(gold, part)]
    return (
        f"no gold {' or '.join(missing)}" if missing else reason or f"not scored: {card.not_scored}"
    )


def _batch(entry: Entry[Any], pairs: Pairs, run: RunEvidence) -> list[float | None]:
    numbers = [
        number
        for number, (episode, _) in enumerate(pairs)
        if not (episode.error or missing_evidence(episode, entry, run))
    ]
    values: list[float | None] = [None] * len(pairs)
    scored = entry.traits["batch"]([pairs[n] for n in numbers], entry.traits.get("chosen", ""))
    if len(scored) != len(numbers):
        raise ValueError(
            f"The metric {entry.name!r} gave {len(scored)} values for {len(numbers)} answers."
        )
    for number, value in zip(numbers, scored):
        values[number] = value
    return values


def _column(
    entry: Entry[Any], pairs: Pairs, raw: Sequence[float | None], run: RunEvidence | None = None
) -> ScoreSeries:
    values: list[float | None] = []
    notes: list[str] = []
    for (episode, gold), value in zip(pairs, raw):
        is_number = value is not None and math.isfinite(value)
        values.append(float(value) if value is not None and is_number else None)
        if value is None:
            notes.append(why_not_scored(entry.name, episode, gold, run))
        else:
            notes.append("" if is_number else f"not scored: the value is no number ({value})")
    over_all, figure = entry.traits.get("over_all"), None
    scored = [pair for pair, value in zip(pairs, values) if value is not None]
    if over_all and scored:
        figure = summed(over_all(scored, entry.traits.get("chosen", "")))
    return ScoreSeries(tuple(values), tuple(notes), figure)


def summed(counted: Counted) -> float:
    """The figure of all answers, from the counts of each."""
    counts, figure = counted
    return figure([sum(column) for column in zip(*counts)])
