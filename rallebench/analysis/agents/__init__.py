"""Analyses of agents' runs as in R-Eval (Tu et al. 2024, arXiv:2406.11681). No model is called.

Run folders go in; values and figures come out. The aspects are scores and ranks by task and level, matching, errors,
deployment, normalisation and combination. ``compat=original`` counts as R-Eval's code does.
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
    """The result of one question. ``reward``: F1, with exact match for yes/no answers; ``correct``: EM;
    ``position``: position match. All three are None without gold answers. ``reason``: the stop reason; '' if an
    imported log has none.

    ``observed``: the environment's observations; ``scratchpad``: the observations and the model's text. ``halted``,
    ``failed``: as in R-Eval's log. ``error``: why a question failed; failed questions are not scored. ``seconds``,
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
    """A workflow combined with a language model; either may be '' in an imported log."""

    workflow: str
    llm: str

    @property
    def label(self) -> str:
        """Return ``workflow · llm``, leaving out an empty part."""
        return " · ".join(filter(None, (self.workflow, self.llm)))


@dataclass(frozen=True, slots=True)
class AgentTask:
    """A task. ``name``: one of R-Eval's twelve tasks, or the dataset's name. ``domain``: wiki, aminer or another
    environment; ``level``: KS, KU, KA or ''. ``order``: position in tables.
    """

    name: str
    domain: str
    level: str
    order: str = field(default="~", compare=False)

    @property
    def group(self) -> TaskGroup:
        return TaskGroup(self.domain, self.level)


@dataclass(frozen=True, slots=True)
class TaskGroup:
    """The tasks of one environment and level: one axis of R-Eval's plots. ``level``: '' for tasks without a level."""

    domain: str
    level: str

    @property
    def label(self) -> str:
        return f"{domain_name(self.domain)} {self.level or 'other'}"


@dataclass(frozen=True, slots=True)
class TaskRun:
    """One run of a system on a task. ``rows``: answered questions; ``failed``, ``missing``: numbers of failed and
    unanswered questions. ``memory``: bytes of its models and indexes; None if unknown.
    """

    name: str
    system: System
    task: AgentTask
    rows: tuple[EpisodeSummary, ...]
    failed: int = 0
    missing: int = 0
    memory: int | None = None

    @property
    def reward(self) -> float | None:
        """Mean reward, 0..1."""
        return mean([row.reward for row in self.rows])


def mean(values: Sequence[float | None]) -> float | None:
    """Mean of the values that are not None; None if there are none."""
    numbers = [value for value in values if value is not None]
    return sum(numbers) / len(numbers) if numbers else None


def domain_name(domain: str) -> str:
    """Display name of an environment, such as Wikipedia for ``wiki``; unknown names are returned unchanged."""
    return DOMAIN_NAMES.get(domain, domain)


def list_groups(runs: Sequence[TaskRun]) -> tuple[TaskGroup, ...]:
    """Return the groups of the runs: Wikipedia first, levels in R-Eval's order."""
    domains, levels = list(DOMAIN_NAMES), [*LEVELS, ""]

    def place(group: TaskGroup) -> tuple[int, str, int]:
        known = domains.index(group.domain) if group.domain in domains else len(domains)
        return known, group.domain, levels.index(group.level)

    return tuple(sorted({run.task.group for run in runs}, key=place))


def list_tasks(runs: Sequence[TaskRun]) -> tuple[AgentTask, ...]:
    """Return the tasks of the runs: R-Eval's in its order, then the others by name."""
    return tuple(
        sorted(
            {run.task for run in runs},
            key=lambda task: (task.domain != "wiki", task.domain, task.order, task.name),
        )
    )


def list_systems(runs: Sequence[TaskRun]) -> tuple[System, ...]:
    """Return each system once, in the order of the runs."""
    return tuple(dict.fromkeys(run.system for run in runs))


def group_mean(runs: Sequence[TaskRun], system: System, group: TaskGroup) -> float | None:
    """Unweighted mean reward of a system over the tasks of a group."""
    return mean([run.reward for run in runs if run.system == system and run.task.group == group])


@dataclass(frozen=True, slots=True)
class AnalysisOptions:
    """``original``: count as R-Eval's code does. ``reference``: the system to normalise by. ``sizes``: model →
    billions of parameters.
    """

    original: bool = False
    reference: str = ""
    sizes: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Analysis:
    """One aspect of runs. ``value``: the result as JSON. ``tex``: the paper's table, to be written as LaTeX."""

    aspect: str
    value: Mapping[str, Any]
    tables: tuple[Table, ...]
    figures: Mapping[str, Figure] = field(default_factory=dict)
    tex: Table | None = None
    notes: tuple[str, ...] = ()

    @property
    def document(self) -> dict[str, Any]:
        """Return ``value`` with the aspect and the notes."""
        return {"aspect": self.aspect, **self.value, "notes": list(self.notes)}
