"""Classes of agents' results: R-Eval's six (Tu et al. 2024), and ours with one class per limit.

``original`` follows R-Eval's code. It looks for the gold answer as a substring of the whole scratchpad, including the
model's own answer; it divides each count by 100, whatever the number of questions; and it counts every limit as a
tool error. By default, the gold answer must occur as whole words in an observation, counts are divided by the number
of questions, and the step limit, the context limit and other limits have their own classes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rallebench.analysis.agents import (
    Analysis,
    AnalysisOptions,
    EpisodeSummary,
    System,
    TaskGroup,
    TaskRun,
    list_groups,
    list_systems,
    mean,
)
from rallebench.core.answers import find_answers, normalize_answer
from rallebench.core.tables import Cell, Figure, Table

THRESHOLD = 0.05
"""R-Eval's minimum reward of a right answer."""
HUNDRED = 100
"""R-Eval's code divides every count by this number."""
EXAMPLES, MAX_TEXT = 3, 300
"""Maximum number of examples per class, and of characters per text in an example."""
NOT_ASKED = "not asked"

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
"""Verdicts (including FEVER's). Such a word on a page is not evidence."""


def classify(row: EpisodeSummary, *, original: bool = False) -> str:
    """Return the class of an answered question that has gold answers."""
    is_evident = in_scratchpad(row) if original else has_evidence(row)
    if (row.reward or 0.0) >= THRESHOLD:
        return "EM" if is_evident else "AM"
    if is_evident:
        return "GE"
    if original:
        return ("ME" if row.failed else "TE") if row.halted else "RE"
    if not row.reason and row.halted:  # an imported log without a reason
        return "ME" if row.failed else "TE"
    return _BY_REASON.get(row.reason, "RE")


def in_scratchpad(row: EpisodeSummary) -> bool:
    """Apply R-Eval's test: the first gold answer is a substring of the scratchpad, after normalising both."""
    return bool(row.golds) and normalize_answer(row.golds[0]) in normalize_answer(row.scratchpad)


def has_evidence(row: EpisodeSummary) -> bool:
    """Return whether an observation holds a gold answer as whole words; verdicts such as yes do not count."""
    golds = [gold for gold in row.golds if _can_be_evidence(gold)]
    return bool(golds) and bool(find_answers(row.observed, golds))


def _can_be_evidence(gold: str) -> bool:
    return normalize_answer(gold) not in (*_NO_EVIDENCE, "")


def _is_checkable(row: EpisodeSummary) -> bool:
    return any(map(_can_be_evidence, row.golds))


@dataclass(frozen=True, slots=True)
class ErrorBreakdown:
    """The results of one system. ``rows``: class → its questions. ``shares``: class → percent, averaged over
    ``groups``, each of which is averaged over its tasks. ``failed``: failed questions, which are left out;
    ``unscored``: questions left out because they have no gold answers.
    """

    system: System
    rows: Mapping[str, Sequence[EpisodeSummary]]
    shares: Mapping[str, float]
    groups: tuple[TaskGroup, ...]
    failed: int
    unscored: int

    @property
    def n(self) -> int:
        """Number of questions with a class."""
        return sum(map(len, self.rows.values()))

    @property
    def verdicts(self) -> int:
        """Number of questions whose gold answers are all verdicts (yes, no …)."""
        return sum(not _is_checkable(row) for rows in self.rows.values() for row in rows)

    @property
    def blind(self) -> int:
        """Number of other questions without an observation."""
        every = (row for rows in self.rows.values() for row in rows)
        return sum(_is_checkable(row) and not row.observed.strip() for row in every)

    def sum(self, classes: Iterable[str]) -> float:
        """Percentage of questions in any of these classes."""
        return sum(self.shares[name] for name in classes)

    def to_json(self, names: Sequence[str]) -> dict[str, Any]:
        """Return the breakdown by the classes ``names``, with examples of each."""
        filled = {name: self.rows[name] for name in CLASSES if self.rows[name]}
        return {
            "system": self.system.label,
            "n": self.n,
            "failed": self.failed,
            "unscored": self.unscored,
            "verdicts": self.verdicts,
            "blind": self.blind,
            "percent": {name: round(self.shares[name], 4) for name in names},
            "ACC": round(self.sum(RIGHT), 4),
            "WA": round(self.sum(WRONG), 4),
            "counts": {name: len(rows) for name, rows in filled.items()},
            "stop_reasons": {
                name: dict(Counter(row.reason or "not recorded" for row in rows).most_common())
                for name, rows in filled.items()
            },
            "averaged_over": [group.label for group in self.groups],
            "examples": {
                name: [_example(row) for row in rows[:EXAMPLES]] for name, rows in filled.items()
            },
        }


def breakdown(system: System, runs: Sequence[TaskRun], original: bool = False) -> ErrorBreakdown:
    """Classify the questions of a system; ``runs``: the runs of that system."""
    rows: dict[str, list[EpisodeSummary]] = {name: [] for name in CLASSES}
    by_group: dict[TaskGroup, list[dict[str, float]]] = {}
    for run in runs:
        scored = [row for row in run.rows if row.reward is not None]
        counts: Counter[str] = Counter()
        for row in scored:
            name = classify(row, original=original)
            rows[name].append(row)
            counts[name] += 1
        if denominator := HUNDRED if original else len(scored):
            shares = {name: 100 * counts[name] / denominator for name in CLASSES}
            by_group.setdefault(run.task.group, []).append(shares)
    return ErrorBreakdown(
        system,
        rows,
        _mean_shares([_mean_shares(tasks) for tasks in by_group.values()]),
        list_groups(runs),
        0 if original else sum(run.failed for run in runs),
        sum(row.reward is None for run in runs for row in run.rows),
    )


def _mean_shares(shares: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {name: mean([row[name] for row in shares]) or 0.0 for name in CLASSES}


def errors(runs: Sequence[TaskRun], options: AnalysisOptions) -> Analysis:
    """Return the classes of right and wrong answers, with examples."""
    original = options.original
    systems = [
        breakdown(system, [run for run in runs if run.system == system], original)
        for system in list_systems(runs)
    ]
    names = ORIGINAL if original else tuple(CLASSES)
    value = {
        "compat": "original" if original else "corrected",
        "classes": {name: CLASSES[name] for name in names},
        "systems": [system.to_json(names) for system in systems],
    }
    rows: list[tuple[Cell, ...]] = []
    for system in systems:
        percent = [system.sum(RIGHT), system.sum(WRONG), *(system.shares[name] for name in names)]
        rows.append((system.system.label, *(number / 100 for number in percent), system.n))
    note = (
        f"The mean over environments and levels. An answer is right from F1 {THRESHOLD} on, as in "
        "R-Eval; the class EM is not exact match. "
        + "; ".join(f"{name}: {CLASSES[name]}" for name in names)
        + "."
    )
    table = Table("Errors", ("system", "ACC", "WA", *names, "n"), tuple(rows), True, note)
    figures = {system.system.label: _rings(system) for system in systems}
    notes = tuple(_original_notes(systems) if original else _notes(systems))
    return Analysis("errors", value, (table,), figures, notes=notes)


def _original_notes(systems: Sequence[ErrorBreakdown]) -> Iterator[str]:
    labels = [row.system.label for row in systems if abs(row.sum(CLASSES) - 100) > 0.05]
    if labels:
        yield (
            "R-Eval's code counts out of 100 a task, so these shares are not shares of the "
            f"questions: {', '.join(labels)}."
        )


def _notes(systems: Sequence[ErrorBreakdown]) -> Iterator[str]:
    if verdicts := sum(row.verdicts for row in systems):
        yield (
            f"The gold of {verdicts} questions (all systems together) is a bare verdict (yes, no, "
            "SUPPORTS …), for which no observation is evidence: right answers count as AM, wrong ones "
            "never as GE."
        )
    if blind := sum(row.blind for row in systems):
        yield (
            f"The traces of {blind} questions have no observation: the environment was not asked, or a log "
            "does not mark its observations by 'Observation 1: …'. Right answers count as AM, wrong ones "
            "never as GE."
        )
    if unscored := sum(row.unscored for row in systems):
        yield f"{unscored} questions have no gold answer and are in no class."


def _example(row: EpisodeSummary) -> dict[str, Any]:
    def short(text: str) -> str:
        return text if len(text) <= MAX_TEXT else text[:MAX_TEXT] + "…"

    return {
        "qid": row.qid,
        "question": short(row.question),
        "gold": list(map(short, row.golds)),
        "answer": short(row.answer),
        "reward": row.reward,
        "stop_reason": row.reason,
        "observed": short(row.observed),
    }


def _rings(breakdown: ErrorBreakdown) -> Figure:
    classes = [(name, share) for name, share in breakdown.shares.items() if share]
    sides = [("ACC", breakdown.sum(RIGHT)), ("WA", breakdown.sum(WRONG))]
    rest = 100 - sum(share for _, share in classes)  # R-Eval assumes one hundred questions
    if classes and rest > 0.05:
        classes.append((NOT_ASKED, rest))
        sides.append((NOT_ASKED, rest))
    inside = tuple(part for part in sides if part[1] > 0 and classes)
    title = f"{breakdown.system.label} ({breakdown.n} questions)"
    series = {"right and wrong": inside, "classes": tuple(classes)}
    empty = "No question of this system is scored."
    return Figure(title, "", "percent", series, "rings", labels=CLASSES, empty=empty)
