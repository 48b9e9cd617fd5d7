"""Runs compared question by question, as values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from rallebench.core.cards import Card
from rallebench.core.numbers import LEVEL, NOISE, independence
from rallebench.core.report import Bounds, Clusters, Estimate
from rallebench.core.types import Example

TEST = (
    "question by question. Interval and p come from one test that counts articles, not questions."
)
WATCHED = "question by question. A run was to end once it was decided, so the interval is one that holds whenever one stops, and there is no p."
OF_SEVERAL = " Of {} comparisons p is corrected by Holm, and the intervals hold together at 95 % (Bonferroni)."


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure for comparing runs, with its card; ``own``: a suite's own measure, stored only in its runs."""

    name: str
    card: Card
    own: bool = False

    @property
    def higher_is_better(self) -> bool | None:
        """None if neither direction is better, or the direction is unknown."""
        return self.card.higher_is_better

    @property
    def bounds(self) -> Bounds:
        """The (lowest, highest) value; None: no bound."""
        return self.card.range

    @property
    def unit(self) -> str:
        """ "fraction" for a share of 1, else the unit of its values; '' if unknown."""
        is_share = self.bounds == (0, 1)
        return "fraction" if is_share else "" if self.card.unit == "fraction" else self.card.unit


@dataclass(frozen=True, slots=True)
class QuestionsNeeded:
    """The number of questions with which a comparison shows a difference of the measured size with 80 % power at the 5 %
    level. ``low``, ``high``: the numbers for the ends of the difference's interval; ``high`` is None if it holds 0."""

    value: int
    low: int
    high: int | None

    def __str__(self) -> str:
        """The number with its interval.

        >>> str(QuestionsNeeded(1200, 340, None)), str(QuestionsNeeded(120, 60, 900))
        ('1,200 (340 or more)', '120 (60–900)')
        """
        ends = f"{self.low:,} or more" if self.high is None else f"{self.low:,}–{self.high:,}"
        return f"{self.value:,} ({ends})"


@dataclass(frozen=True, slots=True)
class PairedComparison:
    """Run B against run A on the ``n`` questions that both runs have scored.

    ``difference`` = mean of B − mean of A. ``p`` and ``low``..``high``, 95 % for all ``comparisons`` of a table together,
    come from one test over ``clusters`` (``engine.statistics.Difference``). ``corrected``: p corrected for all
    comparisons; of one comparison 0 lies outside the interval if and only if it is below .05, of several see
    ``with_holm``. ``note``: the reason for a missing interval, or ''. All None if n is 0. ``wins``, ``ties``,
    ``losses``: questions on which B is better, equal, worse. ``flipped``: their ids, B's gains first. ``needed``:
    questions that a comparison would need to see this difference, or None. ``standard_error``: of the difference.
    ``watched``: a run ended once it was decided, so the interval is anytime-valid, and there is no p.
    """

    metric: str
    n: int
    a: float | None
    b: float | None
    difference: float | None
    low: float | None
    high: float | None
    p: float | None
    wins: int
    ties: int
    losses: int
    gained: tuple[str, ...]
    lost: tuple[str, ...]
    needed: QuestionsNeeded | None
    corrected: float | None = None
    comparisons: int = 1
    clusters: int = 0
    note: str = ""
    watched: bool = False
    standard_error: float = 0.0

    @property
    def has_verdict(self) -> bool:
        """True if there is a test or an interval to decide by."""
        return self.corrected is not None or (self.watched and self.low is not None)

    @property
    def significant(self) -> bool:
        """True if the difference exceeds chance, corrected for all comparisons."""
        if self.watched and self.low is not None and self.high is not None:
            return self.low > 0 or self.high < 0
        return self.corrected is not None and self.corrected < LEVEL

    def verdict(self, upward: bool | None) -> str:
        """The difference in words, by its sign: most questions may gain a little while the mean falls.

        ``upward``: True if higher is better; None if neither direction is.
        """
        if self.difference is None:
            return "no question is scored in both"
        if not self.has_verdict:
            return self.note
        if not self.significant:
            return "no difference shown"
        if upward is None:
            return "higher" if self.difference > 0 else "lower"
        return "better" if (self.difference > 0) == upward else "worse"

    def to_json(self) -> dict[str, object]:
        """The fields by name, with the interval of ``needed`` beside it."""
        needed = self.needed
        ends = (needed.value, needed.low, needed.high) if needed else (None, None, None)
        return asdict(self) | dict(zip(("needed", "needed_low", "needed_high"), ends))

    @property
    def gap(self) -> Estimate:
        """B − A with its interval."""
        return Estimate(self.difference, self.low, self.high, self.n)

    @property
    def flipped_ids(self) -> tuple[str, ...]:
        return self.gained + self.lost


@dataclass(frozen=True, slots=True)
class CorpusScore:
    """A run's score over the ``n`` answers that all runs have, and its ``difference`` from the first run's;
    both with 95 % percentile bootstrap intervals. None: no interval, or no difference (first run)."""

    value: float | None
    low: float | None
    high: float | None
    n: int
    difference: float | None = None
    difference_low: float | None = None
    difference_high: float | None = None


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """One run. ``left_out``: questions that another run does not share; ``failed``, ``unfinished``: shared questions that
    failed or have no answer yet; ``repeats``: how often each question was asked."""

    name: str
    left_out: int
    failed: int
    unfinished: int
    repeats: int = 1

    @property
    def gaps(self) -> str:
        """The shared questions without an answer, in words; '' if there are none."""
        counts = {"failed": self.failed, "are not answered yet": self.unfinished}
        return " and ".join(f"{count} {words}" for words, count in counts.items() if count)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Runs compared with the first.

    ``cells``: metric → one mean per run, over the questions that *all* runs have scored. ``pairs``: metric → each run
    after the first, compared with it over the same questions; of three or more runs by ``metric`` alone. ``corpus_level``:
    metric → one corpus-level score per run. ``measures``: the metrics that all runs share, and their cards.
    ``beyond_depth``: metrics with a cut-off beyond the passages that some run asked for. ``timing``: the reason why times
    are not compared; ``timed``: the metrics that are measured times. ``changed``: questions that all runs have, but with
    another text, answer or gold; ``total``: all questions of the runs together.
    """

    sides: tuple[ComparedRun, ...]
    common: tuple[Example, ...]
    metric: str
    cells: Mapping[str, tuple[Estimate, ...]]
    pairs: Mapping[str, Mapping[str, PairedComparison]]
    corpus_level: Mapping[str, tuple[CorpusScore, ...]]
    measures: Mapping[str, Measure]
    clusters: Clusters
    beyond_depth: frozenset[str] = frozenset()
    timing: tuple[str, ...] = ()
    timed: frozenset[str] = frozenset()
    changed: int = 0
    total: int = 0

    @property
    def measure(self) -> Measure:
        """The measure of the differences."""
        return self.measures[self.metric]

    @property
    def against(self) -> Mapping[str, PairedComparison]:
        """The differences by ``metric``."""
        return self.pairs[self.metric]

    def is_printed(self, name: str) -> bool:
        """Return whether a metric has a place in a table: every run scores some question by it, within the retrieved
        depth."""
        is_scored = any(mean.n for mean in self.cells[name])
        comparable = name not in self.beyond_depth and not (self.timing and name in self.timed)
        return name == self.metric or (is_scored and comparable)

    def best(self, name: str) -> frozenset[int]:
        """The indexes of the runs with the best mean; none if all are equal or no direction is better."""
        upward = self.measures[name].higher_is_better
        values = {i: m.value for i, m in enumerate(self.cells[name]) if m.value is not None}
        if not values or upward is None or _same(min(values.values()), max(values.values())):
            return frozenset()
        top = max(values.values()) if upward else min(values.values())
        return frozenset(i for i, value in values.items() if _same(value, top))

    @property
    def test(self) -> str:
        """The test behind the differences, and its correction for several runs."""
        several = len(self.against)
        if any(pair.watched for pair in self.against.values()):
            return WATCHED
        return f"{TEST}{OF_SEVERAL.format(several) if several > 1 else ''}"

    @property
    def versions(self) -> str:
        """A sentence about runs over different versions of a dataset; '' if no question changed."""
        if not self.changed:
            return ""
        both = len(self.sides) == 2
        rest, common = self.total - len(self.common), len(self.common)
        only = "in one only" if both else "not in all"
        return (
            f"{common:,} of {self.total:,} questions are the same in {'both' if both else 'all runs'}; "
            f"{rest:,} changed or are {only}, and are left out."
        )

    @property
    def warnings(self) -> list[str]:
        """The caveats of the table, one sentence each."""
        sentences = []
        left_out = [f"{side.left_out} of {side.name}" for side in self.sides if side.left_out]
        if self.changed:
            sentences.append(self.versions)
        elif left_out:
            sentences.append(
                f"The runs asked different questions; only the {len(self.common)} that all share are compared "
                f"(left out: {', '.join(left_out)})."
            )
        for side in self.sides:
            if side.gaps:
                sentences.append(
                    f"{side.name}: {side.gaps}; these questions are left out for every run."
                )
        if any(side.repeats > 1 for side in self.sides):
            times = ", ".join(f"{side.name} {side.repeats}" for side in self.sides)
            sentences.append(
                f"Scores are means over the repeats of a question (number of repeats: {times})."
            )
        if self.metric in self.timed:
            sentences += self.timing
        cluster_note = independence(self.clusters.counts, len(self.common))
        if "One article holds" in cluster_note:
            sentences.append(cluster_note)
        scored = self.cells[self.metric][0].n
        if scored < len(self.common) - sum(side.failed + side.unfinished for side in self.sides):
            sentences.append(
                f"Only {scored} of the {len(self.common)} shared questions are scored by {self.metric} in every run."
            )
        return sentences


def _same(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=NOISE, abs_tol=NOISE)
