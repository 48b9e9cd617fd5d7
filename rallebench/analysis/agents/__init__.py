"""Runs of agents, looked at as R-Eval does (Tu et al. 2024, arXiv:2406.11681): scores and ranks by task and level, matching,
errors, deployment, normalisation, combination. Run folders in, values and figures out; nothing here asks a model.

``compat=original`` counts as R-Eval's code does, where that differs from good sense.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rallebench.datasets.tasks import LEVELS

DOMAIN_NAMES: Mapping[str, str] = {"wiki": "Wikipedia", "aminer": "scholar"}
"""R-Eval's word for an environment → as it is shown."""


@dataclass(frozen=True, slots=True)
class Told:
    """One question of one run. ``reward``: F1 with the rule for yes and no; ``correct``: EM; ``position``: position match;
    None where the gold names no answer. ``reason``: why the episode ended, '' where an imported log does not say.

    ``observed``: all that the environment answered; ``scratchpad``: that and all that the model wrote. ``halted``, ``failed``: as
    R-Eval's log has them. ``error``: of a question that failed; then nothing is scored. ``seconds``, ``tokens``: None if unknown.
    """

    qid: str
    question: str
    golds: tuple[str, ...]
    answer: str
    reward: float | None
    correct: float | None
    position: float | None
    reason: str
    scratchpad: str
    observed: str
    halted: bool = False
    failed: bool = False
    error: str = ""
    prompt: str = ""
    seconds: float | None = None
    tokens: int | None = None


@dataclass(frozen=True, slots=True)
class System:
    """A workflow with a language model; either may be '' in an imported log."""

    workflow: str
    llm: str

    @property
    def label(self) -> str:
        """What it is called."""
        return " · ".join(filter(None, (self.workflow, self.llm)))


@dataclass(frozen=True, slots=True)
class Task:
    """What was asked. ``name``: R-Eval's where it is one of its twelve, else the question set's. ``domain``: wiki, aminer or another
    environment; ``level``: KS, KU, KA or ''. ``order``: where it stands in a table."""

    name: str
    domain: str
    level: str
    order: str = field(default="~", compare=False)

    @property
    def place(self) -> Place:
        """Its environment and level."""
        return Place(self.domain, self.level)


@dataclass(frozen=True, slots=True)
class Place:
    """An environment and a level, the axes of R-Eval's plots; ``level`` is '' where a task has none."""

    domain: str
    level: str

    @property
    def label(self) -> str:
        """What it is called."""
        return f"{DOMAIN_NAMES.get(self.domain, self.domain)} {self.level or 'other'}".strip()


@dataclass(frozen=True, slots=True)
class Cell:
    """A system on a task: one run. ``rows``: the questions that did not fail; ``failed``: how many did; ``missing``: not asked yet.
    ``memory``: bytes that its model and indexes took, None if any is not known."""

    run: str
    system: System
    task: Task
    rows: tuple[Told, ...]
    failed: int = 0
    missing: int = 0
    memory: int | None = None

    @property
    def reward(self) -> float | None:
        """The mean reward, 0..1."""
        return mean([row.reward for row in self.rows])


def mean(values: Sequence[float | None]) -> float | None:
    """Over those that are known; None if none is."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def places_of(cells: Sequence[Cell]) -> tuple[Place, ...]:
    """The environments × levels of the runs: Wikipedia first, levels in R-Eval's order."""
    domains, levels = list(DOMAIN_NAMES), [*LEVELS, ""]
    found = {cell.task.place for cell in cells}
    return tuple(
        sorted(
            found,
            key=lambda p: (
                domains.index(p.domain) if p.domain in domains else 9,
                p.domain,
                levels.index(p.level) if p.level in levels else 9,
            ),
        )
    )


def tasks_of(cells: Sequence[Cell]) -> tuple[Task, ...]:
    """The tasks of the runs in R-Eval's order, others after them by name."""
    return tuple(
        sorted(
            {cell.task for cell in cells},
            key=lambda task: (task.domain != "wiki", task.domain, task.order, task.name),
        )
    )


def systems_of(cells: Sequence[Cell]) -> tuple[System, ...]:
    """The systems in the order of their runs."""
    return tuple(dict.fromkeys(cell.system for cell in cells))
