"""Analyses of agents' runs as in R-Eval (Tu et al. 2024, arXiv:2406.11681). Asks no model.

Scores and ranks by task and level, matching, errors, deployment, normalisation, combination: run
folders in, values and figures out. ``compat=original`` counts as R-Eval's code does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rallebench.core.tables import Figure, Table
from rallebench.datasets.tasks import LEVELS

DOMAIN_NAMES: Mapping[str, str] = {"wiki": "Wikipedia", "aminer": "scholar"}
"""R-Eval's word for an environment → its display name."""


@dataclass(frozen=True, slots=True)
class EpisodeSummary:
    """The result of one question. ``reward``: F1 with the rule for yes and no; ``correct``: EM;
    ``position``: position match; all None without gold answers. ``reason``: the stop reason, '' in an
    imported log without one.

    ``observed``: the environment's observations; ``scratchpad``: these and the model's text. ``halted``,
    ``failed``: as in R-Eval's log. ``error``: of a failed question, which is not scored. ``seconds``,
    ``tokens``: None if unknown.
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
        """``workflow · llm``, without a part that is ''."""
        return " · ".join(filter(None, (self.workflow, self.llm)))


@dataclass(frozen=True, slots=True)
class AgentTask:
    """``name``: one of R-Eval's twelve tasks, or the dataset's. ``domain``: wiki, aminer or another
    environment; ``level``: KS, KU, KA or ''. ``order``: sorts tables."""

    name: str
    domain: str
    level: str
    order: str = field(default="~", compare=False)

    @property
    def group(self) -> TaskGroup:
        return TaskGroup(self.domain, self.level)


@dataclass(frozen=True, slots=True)
class TaskGroup:
    """The tasks of one environment and level, an axis of R-Eval's plots. ``level``: '' for tasks without."""

    domain: str
    level: str

    @property
    def label(self) -> str:
        return f"{domain_name(self.domain)} {self.level or 'other'}"


@dataclass(frozen=True, slots=True)
class TaskRun:
    """One run: a system on a task. ``rows``: questions that did not fail; ``failed``, ``missing``: numbers of
    failed and of unanswered questions. ``memory``: bytes of its models and indexes, None if unknown."""

    name: str
    system: System
    task: AgentTask
    rows: tuple[EpisodeSummary, ...]
    failed: int = 0
    missing: int = 0
    memory: int | None = None

    @property
    def reward(self) -> float | None:
        """The mean reward, 0..1."""
        return mean([row.reward for row in self.rows])


def mean(values: Sequence[float | None]) -> float | None:
    """The mean of the values that are not None; None without one."""
    numbers = [value for value in values if value is not None]
    return sum(numbers) / len(numbers) if numbers else None


def domain_name(domain: str) -> str:
    """The word for an environment in tables, as Wikipedia for ``wiki``; an unknown name is returned as it is."""
    return DOMAIN_NAMES.get(domain, domain)


def list_groups(runs: Sequence[TaskRun]) -> tuple[TaskGroup, ...]:
    """The groups of the runs: Wikipedia first, levels in R-Eval's order."""
    domains, levels = list(DOMAIN_NAMES), [*LEVELS, ""]

    def place(group: TaskGroup) -> tuple[int, str, int]:
        known = domains.index(group.domain) if group.domain in domains else len(domains)
        return known, group.domain, levels.index(group.level)

    return tuple(sorted({run.task.group for run in runs}, key=place))


def list_tasks(runs: Sequence[TaskRun]) -> tuple[AgentTask, ...]:
    """The tasks of the runs in R-Eval's order, then others by name."""
    return tuple(
        sorted(
            {run.task for run in runs},
            key=lambda task: (task.domain != "wiki", task.domain, task.order, task.name),
        )
    )


def list_systems(runs: Sequence[TaskRun]) -> tuple[System, ...]:
    """Each system once, in the order of the runs."""
    return tuple(dict.fromkeys(run.system for run in runs))


def group_mean(runs: Sequence[TaskRun], system: System, group: TaskGroup) -> float | None:
    """The unweighted mean reward of a system over the tasks of a group."""
    return mean([run.reward for run in runs if run.system == system and run.task.group == group])


@dataclass(frozen=True, slots=True)
class AnalysisOptions:
    """``original``: count as R-Eval's code does. ``reference``: the system of normalisation. ``sizes``: model → billions of
    parameters."""

    original: bool = False
    reference: str = ""
    sizes: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Analysis:
    """One aspect of runs. ``value``: the document. ``tex``: the table of the paper, which is written as LaTeX."""

    aspect: str
    value: Mapping[str, Any]
    tables: tuple[Table, ...]
    figures: Mapping[str, Figure] = field(default_factory=dict)
    tex: Table | None = None
    notes: tuple[str, ...] = ()

    @property
    def document(self) -> dict[str, Any]:
        """The analysis as JSON: ``value`` with the aspect and the notes."""
        return {"aspect": self.aspect, **self.value, "notes": list(self.notes)}
