"""Variants of a chain that compete with it question by question, over the articles that all of them have answered."""

from __future__ import annotations

from collections.abc import Sequence

from rallebench.analysis.paired import Scores, compare, shared_scores
from rallebench.analysis.ranking import read_scores
from rallebench.core.comparison import PairedComparison
from rallebench.core.numbers import NOISE
from rallebench.core.report import Estimate
from rallebench.core.run_titles import plain_label
from rallebench.core.runs import RunResult
from rallebench.core.tables import Cell, Column, Table
from rallebench.core.types import Example
from rallebench.engine.clusters import find_clusters
from rallebench.engine.score import score_episode
from rallebench.engine.store import RunFolder
from rallebench.experiments.sweeps import Variant
from rallebench.metrics import metric
from rallebench.workspace.paths import WorkspaceFolder

MOST_LOST = 0.05
"""Share of the chain's scored questions on which a variant may fail."""


def scores_of_run(workspace: WorkspaceFolder, result: RunResult, name: str) -> Scores:
    """Return question id → score of a run by a registered metric, the mean of its repeats if there are any."""
    if result.run and not result.simulated:
        return read_scores(RunFolder.open(workspace.runs, result.run), (name,))[name]
    return {
        qid: score_episode(result.episodes[qid], example, (name,))[0].value
        for example in result.request.examples
        if (qid := example.question.qid) in result.episodes
    }


class Contest:
    """``metric``: a registered metric with a better direction; ``variants``: the contenders."""

    def __init__(self, metric_name: str, variants: Sequence[Variant]) -> None:
        traits = metric(metric_name).traits
        self.metric = metric_name
        self.metric_label = str(traits["label"])
        self.is_share = traits.get("range") == (0, 1)
        self.higher_is_better = traits.get("higher_is_better", True) is not False
        self.failed: dict[str, str] = {}
        self._variants = list(variants)
        self._examples: list[Example] = []
        self._chain: dict[str, float | None] = {}
        self._scores: dict[str, dict[str, float | None]] = {v.label: {} for v in variants}
        self._rounds: dict[str, int] = dict.fromkeys(self._scores, 0)
        self._simulated = False

    @staticmethod
    def label(variant: Variant) -> str:
        """Return the changes of a variant in words."""
        return plain_label(variant.label)

    def add_chain(
        self, examples: Sequence[Example], scores: Scores, *, simulated: bool = False
    ) -> None:
        """Add the scores of the chain itself in a further round. ``simulated``: of a dry run."""
        self._examples += examples
        self._chain |= scores
        self._simulated = self._simulated or simulated

    @property
    def is_scored(self) -> bool:
        """True if the chain has a score; in a dry run always."""
        return self._simulated or any(value is not None for value in self._chain.values())

    def add(self, variant: Variant, scores: Scores, number: int) -> None:
        """Add the scores of a variant in round ``number``; one that fails too often is dropped."""
        label = variant.label
        self._scores[label] |= scores
        self._rounds[label] = number
        scored = sum(value is not None for value in self._chain.values())
        lost = scored - len(shared_scores(self._chain, self._scores[label]))
        if lost > MOST_LOST * scored and not self._simulated:
            self.drop(
                variant, f"It failed on {lost} of {scored} questions that the chain answered."
            )

    def drop(self, variant: Variant, reason: str) -> None:
        """Take a variant out of the contest."""
        self.failed[self.label(variant)] = reason
        self._variants.remove(variant)

    def compare(
        self, own: Scores, new: Scores, examples: Sequence[Example], comparisons: int = 1
    ) -> PairedComparison:
        """Compare the scores of a variant with those of the chain."""
        return compare(
            self.metric,
            own,
            new,
            higher_is_better=self.higher_is_better,
            clusters=find_clusters(examples).of,
            comparisons=comparisons,
        )

    def best_first(self, most: int) -> list[Variant]:
        """Return the best variants among those of the last round, at most ``most``; equal ones in their first order."""
        last = max((self._rounds[v.label] for v in self._variants), default=0)
        left = [v for v in self._variants if self._rounds[v.label] == last]
        return sorted(left, key=lambda v: -self._gain(v))[:most]

    @property
    def best(self) -> Variant | None:
        """The best variant of the last round; None unless it is better than the chain. In a dry run, any."""
        first = next(iter(self.best_first(1)), None)
        if first is None or self._simulated:
            return first
        return first if self._gain(first) > NOISE else None

    def _gain(self, variant: Variant) -> float:
        """The mean gain over the chain on the questions that both have scored."""
        scores = self._scores[variant.label]
        gaps = [
            (scores[q] or 0.0) - (self._chain[q] or 0.0) for q in shared_scores(self._chain, scores)
        ]
        sign = 1 if self.higher_is_better else -1
        return sign * sum(gaps) / len(gaps) if gaps else 0.0

    @property
    def articles(self) -> int:
        """The number of articles that the last round has reached."""
        return len(set(find_clusters(self._examples).of.values()))

    @property
    def table(self) -> Table:
        """The variants with their differences from the chain, the longest in the contest first."""
        rows: list[tuple[Cell, ...]] = []
        ranked = sorted(
            (v for v in self._variants if self._rounds[v.label]),
            key=lambda v: (-self._rounds[v.label], -self._gain(v)),
        )
        for variant in ranked:
            pair = self.compare(self._chain, self._scores[variant.label], self._examples)
            gap: Estimate = pair.gap
            rows.append(
                (self.label(variant), self._rounds[variant.label], pair.n, pair.a, pair.b, gap)
            )
        note = "On the articles to choose with: the best of many looks better than it is, so only the unseen articles prove it."
        if any(isinstance(last := row[-1], Estimate) and last.low is not None for row in rows):
            note += " Intervals are not corrected for the number of variants."
        counts = (Column("rounds", "count"), Column("questions", "count"))
        heads = ("variant", *counts, "the chain", "with it", Column("difference", "delta"))
        return Table(f"Variants by {self.metric_label}", heads, tuple(rows), self.is_share, note)
