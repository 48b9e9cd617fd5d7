"""R-Eval's analyses beside the errors: matching, deployment, normalisation, combination. Cells in, plain values out."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rallebench.analysis.agents import (
    Cell,
    Place,
    System,
    Task,
    mean,
    places_of,
    systems_of,
    tasks_of,
)
from rallebench.core.errors import UsageError

TIMED, SEED = 100, 42
"""R-Eval takes the time of so many records, drawn at random."""
SIZES: Mapping[str, float] = {"gpt-4": 50.0, "gpt-3.5": 20.0}
"""Billions of parameters as R-Eval's plot has them, for models that do not tell."""

_BILLIONS = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)\s*([bm])(?![a-z0-9])", re.IGNORECASE)


# matching


@dataclass(frozen=True, slots=True)
class Matching:
    """A workflow: ``values``: model → the mean reward on each of ``places``, None where it answered none of its tasks."""

    workflow: str
    places: tuple[Place, ...]
    values: Mapping[str, tuple[float | None, ...]]


def matching(cells: Sequence[Cell]) -> tuple[Matching, ...]:
    """One per workflow, one line of values per model. A place's value is the unweighted mean over its tasks."""
    places = places_of(cells)
    found = []
    for workflow in dict.fromkeys(cell.system.workflow for cell in cells):
        own = [cell for cell in cells if cell.system.workflow == workflow]
        models = dict.fromkeys(cell.system.llm for cell in own)
        values = {
            llm or workflow: tuple(
                _place_mean(own, System(workflow, llm), place) for place in places
            )
            for llm in models
        }
        found.append(Matching(workflow, places, values))
    return tuple(found)


def _place_mean(cells: Sequence[Cell], system: System, place: Place) -> float | None:
    return mean(
        [cell.reward for cell in cells if cell.system == system and cell.task.place == place]
    )


# deployment


@dataclass(frozen=True, slots=True)
class Deployed:
    """A system in one environment. ``seconds`` and ``tokens`` of a question, ``reward`` 0..1, ``size`` in billions of parameters,
    ``memory`` in bytes; None: not known. ``n``: questions whose time was taken."""

    system: System
    domain: str
    reward: float | None
    seconds: float | None
    tokens: float | None
    size: float | None
    n: int
    memory: int | None = None


def deployment(
    cells: Sequence[Cell], sizes: Mapping[str, float] | None = None, *, timed: int = TIMED
) -> tuple[Deployed, ...]:
    """A point per environment and system. The reward is over all questions; time and tokens are of ``timed`` of them at most,
    drawn with a fixed seed (0: of all). ``sizes``: model → billions of parameters, over what its name tells."""
    found = []
    for domain in dict.fromkeys(task.domain for task in tasks_of(cells)):
        for system in systems_of(cells):
            own = [cell for cell in cells if cell.system == system and cell.task.domain == domain]
            rows = [row for cell in own for row in cell.rows]
            if not rows:
                continue
            drawn = random.Random(SEED).sample(rows, timed) if 0 < timed < len(rows) else rows
            found.append(
                Deployed(
                    system,
                    domain,
                    mean([row.reward for row in rows]),
                    mean([row.seconds for row in drawn]),
                    mean([row.tokens for row in drawn]),
                    (sizes or {}).get(system.llm, size_of(system.llm)),
                    sum(row.seconds is not None for row in drawn),
                    max((cell.memory for cell in own if cell.memory), default=None),
                )
            )
    return tuple(found)


def size_of(llm: str) -> float | None:
    """Billions of parameters as a model's name tells them, or as R-Eval assumes; None if neither does.

    >>> size_of("llama-2-13b-chat"), size_of("smollm2-135m"), size_of("gpt-4-turbo"), size_of("reader")
    (13.0, 0.135, 50.0, None)
    """
    found = _BILLIONS.search(llm.replace("_", "-").replace("-", " ").replace("/", " "))
    if found:
        return float(found[1]) * (1.0 if found[2].lower() == "b" else 0.001)
    return next((size for name, size in SIZES.items() if name in llm.lower()), None)


# normalisation


@dataclass(frozen=True, slots=True)
class Normalised:
    """``ratios``: system → place → its mean reward by that of ``reference``. ``without``: places where the reference has
    no reward, or 0, which nothing can be divided by."""

    reference: System
    ratios: Mapping[System, Mapping[Place, float]]
    without: tuple[Place, ...]


def normalised(cells: Sequence[Cell], reference: str = "") -> Normalised:
    """Every system by a reference, given by its label or its run; default: the first. Raises UsageError for one that is not there."""
    systems, places = systems_of(cells), places_of(cells)
    named = {cell.run: cell.system for cell in cells} | {system.label: system for system in systems}
    if reference and reference not in named:
        raise UsageError(
            f"The reference {reference!r} is none of the systems; they are {', '.join(s.label for s in systems)}."
        )
    base = named[reference] if reference else systems[0]
    below = {place: _place_mean(cells, base, place) for place in places}
    ratios: dict[System, dict[Place, float]] = {}
    for system in systems:
        for place in places:
            value, by = _place_mean(cells, system, place), below[place]
            if value is not None and by:
                ratios.setdefault(system, {})[place] = value / by
    return Normalised(base, ratios, tuple(place for place in places if not below[place]))


# combination


@dataclass(frozen=True, slots=True)
class Combined:
    """A task: the best of all systems question by question. ``mean`` and ``deviation`` (of one question, population) 0..1;
    ``best``: the one system with the highest mean over the same questions; None where ``tied`` systems share it. ``n``: questions that all systems answered."""

    task: Task
    n: int
    mean: float | None
    deviation: float | None
    best: System | None
    best_mean: float | None
    best_deviation: float | None
    systems: int
    tied: int = 0


def combination(cells: Sequence[Cell]) -> tuple[Combined, ...]:
    """What an oracle would score that knows for each question which system to ask."""
    return tuple(
        _combined(task, [cell for cell in cells if cell.task == task]) for task in tasks_of(cells)
    )


def _combined(task: Task, cells: Sequence[Cell]) -> Combined:
    columns = {
        cell.system: {row.qid: row.reward for row in cell.rows if row.reward is not None}
        for cell in cells
    }
    shared = [
        qid
        for qid in next(iter(columns.values()))
        if all(qid in column for column in columns.values())
    ]
    if not shared:
        return Combined(task, 0, None, None, None, None, None, len(columns))
    per_system = {system: [column[qid] for qid in shared] for system, column in columns.items()}
    oracle = [max(values) for values in zip(*per_system.values())]
    sums = {system: math.fsum(values) for system, values in per_system.items()}
    first, *others = [system for system in sums if sums[system] == max(sums.values())]
    return Combined(
        task,
        len(shared),
        mean(oracle),
        _deviation(oracle),
        None if others else first,
        mean(per_system[first]),
        _deviation(per_system[first]),
        len(columns),
        len(others) + 1 if others else 0,
    )


def _deviation(values: Sequence[float]) -> float:
    middle = sum(values) / len(values)
    return float((sum((value - middle) ** 2 for value in values) / len(values)) ** 0.5)
