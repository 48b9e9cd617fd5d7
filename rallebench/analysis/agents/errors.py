"""Classes of results of agents: R-Eval's six (Tu et al. 2024), and ours with one class per limit.

``original``: R-Eval's code looks for the gold as a substring of the whole scratchpad, the model's own
answer included, divides each count by 100 for any number of questions, and counts every limit as a
tool's error. By default the gold must occur in whole words in an observation, counts are divided by the
number of questions, and the step limit, the context limit and other limits are classes of their own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rallebench.analysis.agents import (
    EpisodeSummary,
    System,
    TaskGroup,
    TaskRun,
    groups_of,
    mean,
    systems_of,
)
from rallebench.core.answers import find_answers, normalize_answer

THRESHOLD = 0.05
"""R-Eval's minimal reward of a right answer."""
HUNDRED = 100
"""R-Eval's code divides every count by this."""

RIGHT: Mapping[str, str] = {
    "EM": "right, and the answer was found",
    "AM": "right, from what the model knows itself",
}
WRONG: Mapping[str, str] = {
    "GE": "wrong, though the answer was found (generation)",
    "ME": "the model failed",
    "TE": "a tool failed",
    "SL": "the step limit was reached",
    "CL": "the context limit was reached",
    "OL": "another limit was reached (tokens, time)",
    "RE": "wrong, and the answer was not found (reasoning)",
}
CLASSES: Mapping[str, str] = {**RIGHT, **WRONG}
ORIGINAL = ("EM", "AM", "GE", "ME", "TE", "RE")
"""The classes of R-Eval's code."""
_BY_REASON = {
    "model_error": "ME",
    "tool_error": "TE",
    "step_limit": "SL",
    "context_limit": "CL",
    "token_limit": "OL",
    "time_limit": "OL",
}
_NO_EVIDENCE = frozenset(
    {"yes", "no", "noanswer", "true", "false", "supports", "refutes", "not enough info"}
)
"""Verdicts (also FEVER's): such a word on a page is no evidence."""


def classify(row: EpisodeSummary, *, original: bool = False, threshold: float = THRESHOLD) -> str:
    """The class of a question with gold answers that did not fail."""
    is_evident = in_scratchpad(row) if original else has_evidence(row)
    if (row.reward or 0.0) >= threshold:
        return "EM" if is_evident else "AM"
    if is_evident:
        return "GE"
    if original:
        return ("ME" if row.failed else "TE") if row.halted else "RE"
    if not row.reason and row.halted:  # an imported log without a reason
        return "ME" if row.failed else "TE"
    return _BY_REASON.get(row.reason, "RE")


def in_scratchpad(row: EpisodeSummary) -> bool:
    """R-Eval's test: the first gold is a substring of the scratchpad, both normalised."""
    return bool(row.golds) and normalize_answer(row.golds[0]) in normalize_answer(row.scratchpad)


def has_evidence(row: EpisodeSummary) -> bool:
    """Whether an observation holds a gold answer in whole words; a verdict such as yes does not count."""
    golds = [gold for gold in row.golds if _can_be_evidence(gold)]
    return bool(golds) and bool(find_answers(row.observed, golds))


def _can_be_evidence(gold: str) -> bool:
    return normalize_answer(gold) not in (*_NO_EVIDENCE, "")


@dataclass(frozen=True, slots=True)
class ErrorBreakdown:
    """One system. ``shares``: class → percent, the mean over its ``groups``, each the mean over its tasks.
    ``counts``: class → questions; ``stops``: class → stop reason → questions; ``examples``: class → rows.

    ``n``: questions counted; ``failed``: questions left out as failed; ``unscored``: left out without
    gold answers; ``verdicts``: questions with only verdicts (yes, no …) as gold; ``blind``: other
    questions without an observation.
    """

    system: System
    shares: Mapping[str, float]
    counts: Mapping[str, int]
    stops: Mapping[str, Mapping[str, int]]
    examples: Mapping[str, tuple[EpisodeSummary, ...]]
    groups: tuple[TaskGroup, ...]
    n: int
    failed: int
    unscored: int
    verdicts: int
    blind: int

    def sum(self, classes: Mapping[str, str]) -> float:
        """The percentages of several classes together."""
        return sum(self.shares.get(name, 0.0) for name in classes)


def breakdowns(
    runs: Sequence[TaskRun],
    *,
    original: bool = False,
    threshold: float = THRESHOLD,
    examples: int = 3,
) -> tuple[ErrorBreakdown, ...]:
    """One per system, in the order of their runs."""
    return tuple(
        _breakdown(
            system, [run for run in runs if run.system == system], original, threshold, examples
        )
        for system in systems_of(runs)
    )


def _breakdown(
    system: System, runs: Sequence[TaskRun], original: bool, threshold: float, examples: int
) -> ErrorBreakdown:
    counts: Counter[str] = Counter()
    stops: dict[str, Counter[str]] = {}
    examples_of: dict[str, list[EpisodeSummary]] = {}
    shares: dict[TaskGroup, list[dict[str, float]]] = {}
    unscored = verdicts = blind = 0
    for run in runs:
        task_counts: Counter[str] = Counter()
        for row in run.rows:
            if row.reward is None:
                unscored += 1
                continue
            name = classify(row, original=original, threshold=threshold)
            task_counts[name] += 1
            stops.setdefault(name, Counter())[row.reason or "not recorded"] += 1
            examples_of.setdefault(name, []).append(row)
            checkable = any(map(_can_be_evidence, row.golds))
            verdicts += not checkable
            blind += checkable and not row.observed.strip()
        counts += task_counts
        denominator = HUNDRED if original else sum(task_counts.values())
        if denominator:
            shares.setdefault(run.task.group, []).append(
                {name: 100 * task_counts[name] / denominator for name in CLASSES}
            )
    groups = [
        {name: mean([task[name] for task in tasks]) or 0.0 for name in CLASSES}
        for tasks in shares.values()
    ]
    return ErrorBreakdown(
        system,
        {name: mean([group[name] for group in groups]) or 0.0 for name in CLASSES},
        {name: counts[name] for name in CLASSES if counts[name]},
        {name: dict(reasons.most_common()) for name, reasons in stops.items()},
        {name: tuple(rows[:examples]) for name, rows in examples_of.items()},
        groups_of(runs),
        sum(counts.values()),
        0 if original else sum(run.failed for run in runs),
        unscored,
        verdicts,
        blind,
    )
