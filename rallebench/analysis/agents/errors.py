"""How questions ended, in R-Eval's six classes (Tu et al. 2024), and in those that keep their limits apart.

R-Eval's code looks for the gold in the whole scratchpad, the model's own answer included, as a part of words, counts out of 100
whatever the number of questions, and calls every limit a tool's error: ``original``. By default the gold must stand, in whole
words, in what the environment answered; shares are of the questions there are; step limit, context limit and others have names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rallebench.analysis.agents import Cell, Place, System, Told, mean, places_of, systems_of
from rallebench.metrics.text import find_answers, normalize_answer

THRESHOLD = 0.05
"""From this reward on an answer counts as right; R-Eval's."""
HUNDRED = 100
"""What R-Eval's code divides every count by."""

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
"""Verdicts (FEVER's among them): that a page holds such a word says nothing."""


def classify(row: Told, *, original: bool = False, threshold: float = THRESHOLD) -> str:
    """The class of one question that has a gold and did not fail."""
    found = in_scratchpad(row) if original else evident(row)
    if (row.reward or 0.0) >= threshold:
        return "EM" if found else "AM"
    if found:
        return "GE"
    if original:
        return ("ME" if row.failed else "TE") if row.halted else "RE"
    if not row.reason and row.halted:  # a log says that, but not why
        return "ME" if row.failed else "TE"
    return _BY_REASON.get(row.reason, "RE")


def in_scratchpad(row: Told) -> bool:
    """R-Eval's test: the first gold is a part of the scratchpad, both normalised."""
    return bool(row.golds) and normalize_answer(row.golds[0]) in normalize_answer(row.scratchpad)


def evident(row: Told) -> bool:
    """Whether the environment showed an accepted answer, in whole words. A bare verdict, as yes or no, is evidence of nothing."""
    golds = [gold for gold in row.golds if _tellable(gold)]
    return bool(golds) and bool(find_answers(row.observed, golds))


def _tellable(gold: str) -> bool:
    return normalize_answer(gold) not in (*_NO_EVIDENCE, "")


@dataclass(frozen=True, slots=True)
class Breakdown:
    """One system. ``shares``: class → percent, the mean over its ``places`` (environment × level), each the mean over its tasks.
    ``counts``: class → questions; ``stops``: class → why its episodes ended → questions; ``examples``: class → the first rows.

    ``n``: questions counted; ``failed``: left out, because they failed; ``unscored``: because the gold names no answer;
    ``verdicts``: questions whose gold is yes, no or another verdict, for which no observation is evidence; ``blind``: other
    questions in whose traces nothing was observed.
    """

    system: System
    shares: Mapping[str, float]
    counts: Mapping[str, int]
    stops: Mapping[str, Mapping[str, int]]
    examples: Mapping[str, tuple[Told, ...]]
    places: tuple[Place, ...]
    n: int
    failed: int
    unscored: int
    verdicts: int
    blind: int

    def sum(self, classes: Mapping[str, str]) -> float:
        """Percent of several classes."""
        return sum(self.shares.get(name, 0.0) for name in classes)


def breakdowns(
    cells: Sequence[Cell],
    *,
    original: bool = False,
    threshold: float = THRESHOLD,
    examples: int = 3,
) -> tuple[Breakdown, ...]:
    """A breakdown per system, in the order of their runs."""
    return tuple(
        _breakdown(
            system, [cell for cell in cells if cell.system == system], original, threshold, examples
        )
        for system in systems_of(cells)
    )


def _breakdown(
    system: System, cells: Sequence[Cell], original: bool, threshold: float, examples: int
) -> Breakdown:
    counts: Counter[str] = Counter()
    stops: dict[str, Counter[str]] = {}
    kept: dict[str, list[Told]] = {}
    shares: dict[Place, list[dict[str, float]]] = {}
    unscored = verdicts = blind = 0
    for cell in cells:
        here: Counter[str] = Counter()
        for row in cell.rows:
            if row.reward is None:
                unscored += 1
                continue
            name = classify(row, original=original, threshold=threshold)
            here[name] += 1
            stops.setdefault(name, Counter())[row.reason or "not recorded"] += 1
            kept.setdefault(name, []).append(row)
            told = any(map(_tellable, row.golds))
            verdicts += not told
            blind += told and not row.observed.strip()
        counts += here
        of = HUNDRED if original else sum(here.values())
        if of:
            shares.setdefault(cell.task.place, []).append(
                {name: 100 * here[name] / of for name in CLASSES}
            )
    places = [
        {name: mean([task[name] for task in tasks]) or 0.0 for name in CLASSES}
        for tasks in shares.values()
    ]
    return Breakdown(
        system,
        {name: mean([place[name] for place in places]) or 0.0 for name in CLASSES},
        {name: counts[name] for name in CLASSES if counts[name]},
        {name: dict(found.most_common()) for name, found in stops.items()},
        {name: tuple(rows[:examples]) for name, rows in kept.items()},
        places_of(cells),
        sum(counts.values()),
        0 if original else sum(cell.failed for cell in cells),
        unscored,
        verdicts,
        blind,
    )
