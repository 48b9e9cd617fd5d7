"""R-Eval's plots: radars, rings, bubbles, boxes and bars."""

from __future__ import annotations

from collections.abc import Sequence

from rallebench.analysis.agents.aspects import (
    DeploymentPoint,
    MatchingScores,
    NormalizedScores,
    OracleScore,
)
from rallebench.analysis.agents.errors import CLASSES, RIGHT, WRONG, ErrorBreakdown
from rallebench.analysis.agents.leaderboard import domain_name
from rallebench.core.tables import Figure, Mean

NOT_ASKED = "not asked"


def radar(scores: MatchingScores) -> Figure:
    """One workflow: a polygon per model over its groups, in percent; bars for fewer than three groups."""
    axes = [group.label for group in scores.groups]
    series = {
        llm: tuple(zip(axes, (None if value is None else 100 * value for value in row)))
        for llm, row in scores.values.items()
    }
    kind = "radar" if len(axes) >= 3 else "bar"
    return Figure(scores.workflow, "", "F1 (percent)", series, kind, high=100.0)


def rings(breakdown: ErrorBreakdown) -> Figure:
    """One system: right and wrong inside, the classes outside, in percent."""
    classes = [(name, breakdown.shares[name]) for name in CLASSES if breakdown.shares.get(name)]
    sides = [("ACC", breakdown.sum(RIGHT)), ("WA", breakdown.sum(WRONG))]
    rest = 100 - sum(share for _, share in classes)  # of R-Eval's hundred questions
    if classes and rest > 0.05:
        classes.append((NOT_ASKED, rest))
        sides.append((NOT_ASKED, rest))
    inside = tuple(part for part in sides if part[1] > 0 and classes)
    title = f"{breakdown.system.label} ({breakdown.n} questions)"
    series = {"right and wrong": inside, "classes": tuple(classes)}
    empty = "No question of this system is scored."
    return Figure(title, "", "percent", series, "rings", labels=CLASSES, empty=empty)


def bubbles(points: Sequence[DeploymentPoint], domain: str, across: str = "seconds") -> Figure:
    """F1 against seconds (or tokens) per question, a bubble per system. Its area is the model's size, or
    the memory of its models and indexes if no size is known."""
    known = [
        p
        for p in points
        if p.domain == domain and p.reward is not None and getattr(p, across) is not None
    ]
    by = "size" if any(p.size for p in known) else "memory"
    series = {
        p.system.label: (
            (getattr(p, across), 100 * (p.reward or 0.0), getattr(p, by), _size_text(p)),
        )
        for p in known
    }
    return Figure(
        domain_name(domain),
        f"{across} a question",
        "F1 (percent)",
        series,
        "bubble",
        empty=f"No system has both F1 and {across} here.",
    )


def _size_text(point: DeploymentPoint) -> str:
    if point.size:
        return f"{point.size:g} B parameters"
    return f"{point.memory / 1e6:,.0f} MB" if point.memory else "size not known"


def boxes(scores: NormalizedScores, by: str = "workflow") -> Figure:
    """Scores divided by a reference's: a box per workflow, or per model; 1 is the reference."""
    groups: dict[str, list[tuple[str, float]]] = {}
    for system, row in scores.ratios.items():
        name = (system.llm if by == "model" else system.workflow) or system.label
        groups.setdefault(name, []).extend(
            (f"{system.label}, {group.label}", ratio) for group, ratio in row.items()
        )
    series = {name: tuple(values) for name, values in groups.items()}
    return Figure(f"F1 by that of {scores.reference.label}", "", "ratio", series, "box")


def oracle(tasks: Sequence[OracleScore]) -> Figure:
    """By task: the best single system and the oracle, with the standard deviation per question."""
    known = [task for task in tasks if task.mean is not None]
    single, best = [], []
    for task in known:
        name = f"{task.task.order} {task.task.name}" if task.task.order != "~" else task.task.name
        of = f"{task.systems} systems, {task.n} questions"
        label = task.best.label if task.best else of
        single.append((name, _spread(task.best_mean, task.best_deviation, task.n), label))
        best.append((name, _spread(task.mean, task.deviation, task.n), of))
    series = {"best single system": tuple(single), "best of all, per question": tuple(best)}
    empty = "No task has questions that all systems answered."
    return Figure("Combination", "", "F1", series if known else {}, "bar", empty=empty)


def _spread(value: float | None, deviation: float | None, n: int) -> Mean:
    """A mean in percent whose interval is one standard deviation to both sides."""
    mean, away = 100 * (value or 0.0), 100 * (deviation or 0.0)
    return Mean(mean, mean - away, mean + away, n)
