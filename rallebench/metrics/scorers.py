"""Registered metrics as scorers: a value for each question, or the reason why there is none, and scores of the whole
corpus.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rallebench.core.registry import Entry
from rallebench.core.scoring import Pair, ScoreColumn, Scorer, ScoreRow
from rallebench.core.types import Episode, Gold
from rallebench.metrics import Counted, metric, read_card
from rallebench.metrics.recorded import IMPORTED, RunEvidence, missing_evidence

_ALONE = frozenset({"batch", "over_all", "support"})
"""Traits of a metric that needs a scorer of its own."""


def metric_scorers(names: Sequence[str]) -> tuple[Scorer, ...]:
    """Return the scorers of registered metrics, each metric once. Raises as ``metric`` does.

    Metrics of one answer at a time share a scorer, because they share the processing of its text. The columns are in the
    order of the scorers, not of the names.
    """
    entries = list({entry.name: entry for entry in map(metric, names)}.values())
    together = tuple(entry for entry in entries if _ALONE.isdisjoint(entry.traits))
    alone = (
        (entry,)
        for entry in entries
        if not _ALONE.isdisjoint(entry.traits) and "support" not in entry.traits
    )
    by_model: dict[str, list[Entry[Any]]] = {}
    for entry in entries:
        if "support" in entry.traits:
            by_model.setdefault(entry.traits.get("chosen", ""), []).append(entry)
    plain = (MetricScorer(group) for group in (together, *alone) if group)
    return (*plain, *(_support_scorer(group, model) for model, group in by_model.items()))


def _support_scorer(entries: Sequence[Entry[Any]], model: str) -> Scorer:
    """The scorer of the support metrics of one model, which share a matrix."""
    from rallebench.metrics.support.scorer import SupportScorer  # not needed by a list of metrics

    return SupportScorer(tuple(entries), model)


@dataclass(frozen=True, slots=True)
class MetricScorer:
    """Registered metrics: several that score one answer at a time, or one that scores all at once or the whole corpus."""

    entries: tuple[Entry[Any], ...]

    @property
    def name(self) -> str:
        """The metrics' names."""
        return ",".join(entry.name for entry in self.entries)

    @property
    def columns(self) -> tuple[ScoreColumn, ...]:
        """One column per metric."""
        return tuple(
            ScoreColumn(entry.name, entry.about, tuple(entry.traits.get("range", (None, None))))
            for entry in self.entries
        )

    @property
    def needs(self) -> frozenset[str]:
        """Parts of the gold that all metrics need."""
        return frozenset.intersection(*(frozenset(_needs(entry)) for entry in self.entries))

    @property
    def llms(self) -> tuple[str, ...]:
        """Empty: no model is asked."""
        return ()

    @property
    def settings(self) -> Mapping[str, Any]:
        """Empty: a metric's options are part of its name."""
        return {}

    def text(self, episode: Episode) -> None:
        """Return None: no answer is judged."""

    def flow(self, pair: Pair) -> None:
        """Return None: no model is asked."""

    def values(self, pairs: Sequence[Pair], judgements: Sequence[Episode | None]) -> list[ScoreRow]:
        """Return the values of each answer. A value that is not a finite number is not scored."""
        run = RunEvidence.of(pair.episode for pair in pairs)
        if "batch" in self.entries[0].traits:
            return self._all_at_once(pairs, run)
        metrics = [(entry, _needs(entry)) for entry in self.entries]
        rows = []
        for example, episode in pairs:
            values: dict[str, float | None] = {}
            notes: dict[str, str] = {}
            for entry, needs in metrics:
                lacks = missing_evidence(episode, entry, run)
                value = None if lacks else entry.value(episode, example.gold)
                values[entry.name] = _finite(value)
                if note := _note(entry, needs, episode, example.gold, value, lacks):
                    notes[entry.name] = note
            rows.append(ScoreRow(values, notes))
        return rows

    def _all_at_once(self, pairs: Sequence[Pair], run: RunEvidence) -> list[ScoreRow]:
        (entry,) = self.entries
        lacks = [missing_evidence(pair.episode, entry, run) for pair in pairs]
        full = [(p.episode, p.example.gold) for p, reason in zip(pairs, lacks) if not reason]
        scored = entry.traits["batch"](full, entry.traits.get("chosen", ""))
        if len(scored) != len(full):
            raise ValueError(
                f"The metric {entry.name!r} gave {len(scored)} values for {len(full)} answers."
            )
        rest, needs, rows = iter(scored), _needs(entry), []
        for (example, episode), reason in zip(pairs, lacks):
            value = None if reason else next(rest)
            note = _note(entry, needs, episode, example.gold, value, reason)
            rows.append(ScoreRow({entry.name: _finite(value)}, {entry.name: note} if note else {}))
        return rows

    def corpus_level(self, pairs: Sequence[Pair]) -> Mapping[str, float]:
        """Return the scores of the metrics that are defined over all answers at once."""
        both = [(episode, example.gold) for example, episode in pairs]
        return {
            entry.name: sum_counts(over_all(both, entry.traits.get("chosen", "")))
            for entry in self.entries
            if (over_all := entry.traits.get("over_all"))
        }


def _needs(entry: Entry[Any]) -> tuple[str, ...]:
    return tuple(part for part in entry.traits.get("needs", "").split("+") if part)


def _finite(value: float | None) -> float | None:
    return float(value) if value is not None and math.isfinite(value) else None


def _note(
    entry: Entry[Any],
    needs: Sequence[str],
    episode: Episode,
    gold: Gold,
    value: float | None,
    lacks: str,
) -> str:
    """Return the reason why an answer has no value, or the missing gold if it has a value anyway, as KILT's own metrics
    give 0 there.

    ``lacks``: the evidence missing in the episode, '' if it is complete.
    """
    if value is None and lacks and episode.workflow == IMPORTED:
        return lacks
    if value is not None and not math.isfinite(value):
        return f"not scored: the value is not a number ({value})"
    declining = gold.unanswerable and entry.traits.get("declining", False)
    missing = [part for part in needs if not getattr(gold, part)]
    if declining:
        missing = [part for part in missing if part != "answers"]
    if missing:
        return f"no gold {' or '.join(missing)}"
    return "" if value is not None else lacks or f"not scored: {read_card(entry.name).not_scored}"


def sum_counts(counted: Counted) -> float:
    """Return the score over all answers from the counts of each."""
    counts, figure = counted
    return figure([sum(column) for column in zip(*counts)])
