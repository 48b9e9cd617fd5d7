"""Questions of a run in groups, by meaning and by question word, with the share that each gets wrong, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from rallebench.core.corrections import cell
from rallebench.core.json_values import JsonObject, object_json
from rallebench.core.numbers import plural
from rallebench.core.run_results import MetricEstimate
from rallebench.core.tables import Column, Figure, Table
from rallebench.core.waterfall import SHORT

MEANING, WORD = "meaning", "word"
"""Kinds of groups: questions of similar meaning, and questions with the same question word."""


@dataclass(frozen=True, slots=True)
class QuestionClusters:
    """Questions grouped by meaning. ``groups``: the ids of each, the largest first; ``left_out``: questions beyond those that are
    encoded; ``silhouette``: mean silhouette by number of groups that was tried; ``encoder``: its fingerprint."""

    groups: tuple[tuple[str, ...], ...]
    left_out: int = 0
    silhouette: Mapping[str, float] | None = None
    encoder: str = ""
    seed: int = 0


@dataclass(frozen=True, slots=True)
class QuestionGroup:
    """A group of questions. ``key``: its name in addresses and flags, "meaning-2" or "word-who"; ``words``: those that mark it.

    ``share``: the share of its ``n`` scored questions that is wrong; ``difference``: that less the share of the rest, with an
    interval simultaneous with those of all groups of its kind, and ``p`` corrected alike. ``stages``: stage of the waterfall → wrong
    questions; ``question_words``: question word → wrong questions; ``examples``: texts of wrong questions.
    """

    key: str
    words: tuple[str, ...]
    n: int
    wrong: int
    share: MetricEstimate
    difference: MetricEstimate
    p: float | None
    stages: Mapping[str, int]
    question_words: Mapping[str, int]
    examples: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        return self.key.partition("-")[0]

    @property
    def title(self) -> str:
        """Its words, or its question word."""
        return ", ".join(self.words) or self.key.partition("-")[2]

    @property
    def is_harder(self) -> bool:
        """True if it is shown to be wrong more often than the rest."""
        return self.difference.low is not None and self.difference.low > 0

    @property
    def is_easier(self) -> bool:
        return self.difference.high is not None and self.difference.high < 0


@dataclass(frozen=True, slots=True)
class FailureReport:
    """The groups of a run's questions, most wrong answers above the rest's share first. ``n``: scored questions, ``wrong``: those
    with a score below the middle of ``metric``; ``problem``: why there are no groups, or ''."""

    run: str
    metric: str
    n: int
    wrong: int
    groups: tuple[QuestionGroup, ...] = ()
    notes: tuple[str, ...] = ()
    problem: str = ""

    @property
    def sentences(self) -> tuple[str, ...]:
        """The groups that are shown to differ, then the notes."""
        if self.problem:
            return (self.problem,)
        harder = [x for x in self.groups if x.is_harder]
        first = f"No group of questions is shown to be wrong more often than the rest ({self.wrong:,} of {self.n:,} are wrong)."
        if harder:
            names = "; ".join(
                f"{x.key} ({x.title}): {x.wrong:,} of {x.n:,} wrong, {points(x.difference)} against the rest"
                for x in harder
            )
            first = f"Wrong more often than the rest: {names}."
        return first, *self.notes

    def group(self, key: str) -> QuestionGroup | None:
        """The group of a key; None if there is none."""
        return next((x for x in self.groups if x.key == key), None)

    def to_json(self) -> JsonObject:
        """The groups with the sentences."""
        return {**object_json(asdict(self)), "said": list(self.sentences)}


def points(estimate: MetricEstimate) -> str:
    """Return a difference of shares in points with its interval.

    >>> points(MetricEstimate("d", 0.125, 0.01, 0.24))
    '+12.5 points [+1.0, +24.0]'
    """
    scaled = {
        name: None if value is None else 100 * value
        for name, value in (
            ("value", estimate.value),
            ("low", estimate.low),
            ("high", estimate.high),
        )
    }
    if scaled["value"] is None:
        return "–"
    own, low, high = ("" if x is None else f"{x:+.1f}".replace("-", "−") for x in scaled.values())
    ends = f" [{low}, {high}]" if low and high else f" ({estimate.note})" if estimate.note else ""
    return f"{own} points{ends}"


def group_table(report: FailureReport, kind: str) -> Table:
    """Return one row per group of a kind."""
    heads = (
        Column("group", "text"),
        Column("words", "text", "Words that mark the group: log-odds with a Dirichlet prior."),
        Column("n", "count"),
        Column("wrong", "count"),
        Column("share wrong", "text"),
        Column("against the rest", "text", "Simultaneous intervals by article."),
        Column("mostly lost", "text"),
        Column("example", "text"),
    )
    rows = tuple(
        (
            x.key,
            ", ".join(x.words),
            x.n,
            x.wrong,
            cell(x.share),
            points(x.difference),
            common(x.stages, SHORT),
            x.examples[0][:70] if x.examples else "",
        )
        for x in report.groups
        if x.kind == kind
    )
    title = {MEANING: "by meaning", WORD: "by question word"}[kind]
    return Table(f"{report.run}, {title}: {plural(report.wrong, 'wrong answer')}", heads, rows)


def common(counts: Mapping[str, int], names: Mapping[str, str]) -> str:
    """Return the two most frequent entries with their counts.

    >>> common({"a": 3, "b": 5, "c": 1}, {"a": "first"})
    'b 5, first 3'
    """
    most = sorted(counts.items(), key=lambda item: -item[1])[:2]
    return ", ".join(f"{names.get(key, key)} {count:,}" for key, count in most if count)


def stage_figure(report: FailureReport, kind: str) -> Figure:
    """Draw one bar per group, divided by the stages at which its wrong questions were lost."""
    order = [stage for stage in SHORT if any(x.stages.get(stage) for x in report.groups)]
    series = {
        f"{x.key}: {x.title}" if x.words else x.title: tuple(
            (stage, x.stages.get(stage, 0)) for stage in order
        )
        for x in report.groups
        if x.kind == kind and x.wrong
    }
    return Figure("Where wrong questions were lost", "", "questions", series, "waterfall", SHORT)


def is_slice(key: str) -> bool:
    """Return whether a filter names a group of questions."""
    return key.startswith((f"{MEANING}-", f"{WORD}-"))
