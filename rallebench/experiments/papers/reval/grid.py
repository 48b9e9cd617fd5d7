"""The grid of workflows, models and tasks: which pairs can be, and why the others cannot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rallebench.analysis.agents import System
from rallebench.core.errors import UsageError
from rallebench.core.experiments import ExperimentRequest
from rallebench.core.registry import unknown
from rallebench.environments import ENVIRONMENTS
from rallebench.experiments.papers.common import is_original, names_in
from rallebench.experiments.papers.reval.tasks import TaskQuestions
from rallebench.workflows import WORKFLOWS
from rallebench.workspace.flows import Agent, prepare_agent
from rallebench.workspace.paths import READER


@dataclass(frozen=True, slots=True)
class GridCell:
    """A cell of the grid. ``agent``: None if it cannot be, and then ``why`` in one clause."""

    system: System
    questions: TaskQuestions
    env: str
    agent: Agent | None = None
    why: str = ""

    @property
    def task(self) -> str:
        """The name of its task."""
        return self.questions.task.name

    @property
    def label(self) -> str:
        """What its run is called."""
        return f"{self.system.workflow} {self.system.llm} {self.task}"


def grid(request: ExperimentRequest, tasks: Sequence[TaskQuestions]) -> list[GridCell]:
    """Every cell, those of one model after another. Raises UsageError for what no cell can be made of."""
    s = request.settings
    workflows, models = names_in(s["workflows"]), names_in(s["models"]) or names_in(request.llm)
    if not models:
        raise UsageError(
            "The systems need language models; name them with --set models=A,B or one with --llm."
        )
    if not workflows:
        raise UsageError("The systems need workflows; name them with --set workflows=react,pal.")
    acting = [name for name in WORKFLOWS.names() if "prompts" in WORKFLOWS.entry(name).traits]
    for name in workflows:
        if name not in WORKFLOWS:
            raise UsageError(unknown("workflow", name, acting))
        if name not in acting:
            raise UsageError(
                f"The workflow {name!r} is run by a suite of its own; choose of {', '.join(acting)}."
            )
    for model in models:
        request.workspace.llm(model)
    environments = names_in(s["env"])
    for name in environments:
        ENVIRONMENTS.entry(name)
    agent_settings = _agent_settings(s, workflows)
    cells = [
        _cell(request, System(workflow, model), questions, environments, agent_settings)
        for model in models
        for questions in tasks
        for workflow in workflows
    ]
    if not any(cell.agent for cell in cells):
        whys = dict.fromkeys(f"{cell.system.label} on {cell.task}: {cell.why}" for cell in cells)
        raise UsageError(f"No system can be run: {'; '.join(whys)}.")
    return cells


def _agent_settings(s: Mapping[str, Any], workflows: Sequence[str]) -> dict[str, str]:
    """Settings for all workflows and environments that have them."""
    values: dict[str, str] = {}
    for pair in filter(None, (part.strip() for part in s["more"].split(";"))):
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise UsageError(
                f"--set more={s['more']}: {pair!r} is not key=value; several are parted by semicolons."
            )
        values[key.strip()] = value.strip()
    names = ("retriever", "corpus", "table", "steps")
    values |= {name: str(s[name]) for name in names if s[name]}
    if s["shots"] >= 0:
        values["shots"] = str(s["shots"])
    if s["protocol"] != "auto":
        values["protocol"] = s["protocol"]
    known = {name for workflow in workflows for name in WORKFLOWS.entry(workflow).form}
    known |= {name for env in ENVIRONMENTS.names() for name in ENVIRONMENTS.entry(env).form}
    for name in values:
        if name.removeprefix("env.") not in known:
            raise UsageError(f"--set more={s['more']}: {unknown('setting', name, sorted(known))}")
    return values


def _cell(
    request: ExperimentRequest,
    system: System,
    questions: TaskQuestions,
    environments: Sequence[str],
    values: Mapping[str, str],
) -> GridCell:
    """The cell with its agent, which gets those ``values`` that it has settings for."""
    workflow = WORKFLOWS.entry(system.workflow)
    env = _env(questions, environments) if workflow.traits["needs_env"] else ""
    cell = GridCell(system, questions, env)
    if why := _why_not(request, cell, environments):
        return replace(cell, why=why)
    original = {"compat": "original"} if is_original(request) else {}
    theirs = ENVIRONMENTS.entry(env).form if env else {}
    own = {n: v for n, v in {**values, **original}.items() if n in workflow.form}
    for key, value in values.items():  # those named env.…, and those that the workflow lacks
        name = key.removeprefix("env.")
        if name in theirs and (name != key or name not in workflow.form):
            own[f"env.{name}"] = value
    own |= {f"env.{name}": value for name, value in original.items() if name in theirs}
    agent = prepare_agent(
        request.workspace,
        system.workflow,
        env,
        system.llm,
        own,
        seed=request.seed,
        allow_python=request.allow_python,
    )
    return replace(cell, agent=agent)


def _env(questions: TaskQuestions, environments: Sequence[str]) -> str:
    """The environment that a task is answered in, '' if none of those asked for fits."""
    fitting = questions.environments
    if not environments:
        return fitting[0] if fitting else "wikipedia"
    return next((name for name in environments if not fitting or name in fitting), "")


def _why_not(request: ExperimentRequest, cell: GridCell, environments: Sequence[str]) -> str:
    """Why a cell cannot be, '' if it can."""
    traits = WORKFLOWS.entry(cell.system.workflow).traits
    if traits["needs_env"] and not cell.env:
        return f"it takes the environment {' or '.join(cell.questions.environments)}, not {', '.join(environments)}"
    if traits["needs_python"] and not request.allow_python:
        return "it runs programs that the model writes, which is not allowed here (--allow-python)"
    backend = request.workspace.llm(cell.system.llm).backend
    if traits.get("calls") and request.settings["protocol"] == "native" and backend == READER:
        return "it needs a model with function calls of its own (protocol=native)"
    return ""
