"""Means and differences of a grader's scores beside those corrected by people's labels, as values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rallebench.core.json_values import JsonObject, object_json
from rallebench.core.numbers import plural
from rallebench.core.run_results import MetricEstimate, number
from rallebench.core.tables import Column, Table

FEWEST_CORRECTED = 50
"""Labelled articles below which a mean is that of the labels alone."""

ALL_LABELLED = "every answer is labelled"
"""A reason of labels alone."""

Method = Literal["corrected", "labels alone"]


@dataclass(frozen=True, slots=True)
class LabelCorrection:
    """The mean of a grader's scores from 0 to 1, raw and corrected by labels; of two ``runs``, the second less the first.

    ``bias``: the mean score less the mean label of the labelled answers; ``kappa``: Cohen's weighted kappa of scores and
    labels, with squared distances. ``weight``: of the grader in the corrected mean, 0 to 1; ``reason``: why the labels count
    alone, or ''. ``labels``: labelled answers, of two runs questions labelled in both. ``needed``: the labels with which the
    corrected interval would be half as wide, None if the run has too few answers. ``p``: of a difference of 0, None for a mean and for runs that ended once
    they were decided. ``notes``: what
    limits the correction, in sentences.
    """

    grader: str
    runs: tuple[str, ...]
    raw: MetricEstimate
    corrected: MetricEstimate
    bias: MetricEstimate
    kappa: MetricEstimate
    labels: int
    articles: int
    weight: float
    method: Method
    reason: str = ""
    needed: int | None = None
    p: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The run, or the two runs as a difference."""
        return " − ".join(reversed(self.runs))

    @property
    def sentences(self) -> tuple[str, ...]:
        """The method, the labels that would narrow the interval, and the notes."""
        counted = f"{plural(self.labels, 'label')} in {plural(self.articles, 'article')}"
        how = f"labels alone ({self.reason})" if self.reason else "corrected by labels"
        more = "no number of labels halves the interval: the run has too few answers"
        if self.reason == ALL_LABELLED:
            more = "more questions would narrow the interval, more labels cannot"
        if self.needed is not None:
            more = f"{self.needed:,} labels would halve the interval"
        p = "" if self.p is None else f"p {'< 0.001' if self.p < 0.001 else f'= {self.p:.3f}'}; "
        return f"{self.name}: {how}; {counted}; {p}{more}.", *self.notes


@dataclass(frozen=True, slots=True)
class Corrections:
    """The corrections of compared runs: each run, then each difference from the first. ``problem``: why there are none although
    answers are labelled, or ''."""

    corrections: tuple[LabelCorrection, ...] = ()
    problem: str = ""

    def __bool__(self) -> bool:
        return bool(self.corrections or self.problem)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The sentences of all, each once."""
        every = (sentence for x in self.corrections for sentence in x.sentences)
        return *dict.fromkeys(every), *filter(None, [self.problem])

    def to_json(self) -> JsonObject:
        return {"corrections": [object_json(x) for x in self.corrections], "problem": self.problem}


def correction_table(corrections: Sequence[LabelCorrection]) -> Table:
    """Return one row per correction, raw and corrected side by side."""
    grader = corrections[0].grader
    heads = (
        Column("run", "text"),
        Column("raw", "text", f"The mean of {grader} over all answers."),
        Column("corrected", "text", f"The mean of {grader}, corrected by people's labels."),
        Column("bias", "text", f"{grader} less the labels, over the labelled answers."),
        Column("weighted kappa", "text", f"Agreement of {grader} with the labels beyond chance."),
        Column("labels", "count"),
        Column("articles", "count"),
    )
    rows = tuple(
        (
            x.name,
            cell(x.raw, signed=len(x.runs) > 1),
            cell(x.corrected, signed=len(x.runs) > 1),
            cell(x.bias, signed=True),
            cell(x.kappa),
            x.labels,
            x.articles,
        )
        for x in corrections
    )
    return Table(f"{grader} and people's labels, 0 to 1", heads, rows)


def cell(estimate: MetricEstimate, *, signed: bool = False) -> str:
    """Return a value with its interval, or with the reason for a missing one.

    >>> cell(MetricEstimate("em", 0.5, 0.25, 0.75), signed=True), cell(MetricEstimate("em", None, note="too few"))
    ('+0.500 [+0.250, +0.750]', '– (too few)')
    """
    value = "–" if estimate.value is None else number(estimate.value, signed)
    if estimate.low is None or estimate.high is None:
        return f"{value} ({estimate.note})" if estimate.note else value
    return f"{value} [{number(estimate.low, signed)}, {number(estimate.high, signed)}]"
