"""The grid of workflows, models and tasks: which pairs can be, and why the others cannot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rallebench.analysis.agents import System
from rallebench.core.errors import UsageError
from rallebench.core.experiments import ExperimentRequest
from rallebench.core.registry import unknown
from rallebench.environments import ENVIRONMENTS
from rallebench.experiments.papers.reval.tasks import Asking
from rallebench.workflows import WORKFLOWS
from rallebench.workspace.flows import Agent, prepare_agent
from rallebench.workspace.paths import READER

COMPAT = "compat"


@dataclass(frozen=True, slots=True)
class Place:
    """A cell of the grid. ``agent``: None if it cannot be, and then ``why`` in one clause."""

    system: System
    asking: Asking
    env: str
    agent: Agent | None = None
    why: str = ""

    @property
    def label(self) -> str:
        """What its run is called."""
        return f"{self.system.workflow} {self.system.llm} {self.asking.task.name}"


def names_in(text: str) -> list[str]:
    """The names of a list with commas, each once.

    >>> names_in("react, pal,,react")
    ['react', 'pal']
    """
    return list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def grid(asked: ExperimentRequest, tasks: Sequence[Asking]) -> list[Place]:
    """Every cell, those of one model after another. Raises UsageError for what no cell can be made of."""
    s = asked.settings
    workflows, models = names_in(s["workflows"]), names_in(s["models"]) or names_in(asked.llm)
    if not models:
        raise UsageError(
            "The systems need language models; name them with --set models=A,B or one with --llm."
        )
    if not workflows:
        raise UsageError("The systems need workflows; name them with --set workflows=react,pal.")
    for name in workflows:
        if name not in WORKFLOWS:
            raise UsageError(unknown("workflow", name, acting_workflows()))
        if name not in acting_workflows():
            raise UsageError(
                f"The workflow {name!r} is run by a suite of its own; choose of {', '.join(acting_workflows())}."
            )
    for model in models:
        asked.workspace.llm(model)
    environments = names_in(s["env"])
    for name in environments:
        ENVIRONMENTS.entry(name)
    given = _given(s, workflows)
    found = [
        _place(asked, System(workflow, model), asking, environments, given)
        for model in models
        for asking in tasks
        for workflow in workflows
    ]
    if not any(place.agent for place in found):
        raise UsageError(
            f"No system can be run: {'; '.join(dict.fromkeys(f'{p.system.label} on {p.asking.task.name}: {p.why}' for p in found))}."
        )
    return found


def acting_workflows() -> list[str]:
    """The workflows that take part."""
    return [name for name in WORKFLOWS.names() if "prompts" in WORKFLOWS.entry(name).traits]


def _given(settings: Mapping[str, Any], workflows: Sequence[str]) -> dict[str, str]:
    """Settings for whichever workflow or environment has them."""
    given: dict[str, str] = {}
    for pair in filter(None, (part.strip() for part in settings["more"].split(";"))):
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise UsageError(
                f"--set more={settings['more']}: {pair!r} is not key=value; several are parted by semicolons."
            )
        given[key.strip()] = value.strip()
    given |= {name: settings[name] for name in ("retriever", "corpus", "table") if settings[name]}
    given |= {name: str(settings[name]) for name in ("steps",) if settings[name]}
    if settings["shots"] >= 0:
        given["shots"] = str(settings["shots"])
    if settings["protocol"] != "auto":
        given["protocol"] = settings["protocol"]
    known = {name for workflow in workflows for name in WORKFLOWS.entry(workflow).form}
    known |= {name for env in ENVIRONMENTS.names() for name in ENVIRONMENTS.entry(env).form}
    for name in given:
        if name.removeprefix("env.") not in known:
            raise UsageError(
                f"--set more={settings['more']}: {unknown('setting', name, sorted(known))}"
            )
    return given


def _place(
    asked: ExperimentRequest,
    system: System,
    asking: Asking,
    environments: Sequence[str],
    given: Mapping[str, str],
) -> Place:
    workflow = WORKFLOWS.entry(system.workflow)
    traits = workflow.traits
    env = _env(asking, environments) if traits["needs_env"] else ""
    why = _why_not(asked, system, traits, asking, env, environments)
    if why:
        return Place(system, asking, env, None, why)
    original = asked.settings[COMPAT] == "original"
    own = {name: value for name, value in given.items() if name in workflow.form}
    if original and COMPAT in workflow.form:
        own[COMPAT] = "original"
    if env:
        theirs: Mapping[str, Any] = ENVIRONMENTS.entry(env).form
        own |= {
            f"env.{n}": v
            for name, v in given.items()
            if (n := name.removeprefix("env.")) in theirs and (n != name or n not in workflow.form)
        }
        if original and COMPAT in theirs:
            own[f"env.{COMPAT}"] = "original"
    agent = prepare_agent(
        asked.workspace,
        system.workflow,
        env,
        system.llm,
        own,
        seed=asked.seed,
        allow_python=asked.allow_python,
    )
    return Place(system, asking, env, agent)


def _env(asking: Asking, environments: Sequence[str]) -> str:
    """The environment that a task is answered in, '' if none of those asked for fits."""
    if not environments:
        return asking.environments[0] if asking.environments else "wikipedia"
    return next(
        (name for name in environments if not asking.environments or name in asking.environments),
        "",
    )


def _why_not(
    asked: ExperimentRequest,
    system: System,
    traits: Mapping[str, Any],
    asking: Asking,
    env: str,
    environments: Sequence[str],
) -> str:
    """Why a cell cannot be, '' if it can."""
    if traits["needs_env"] and not env:
        return f"it takes the environment {' or '.join(asking.environments)}, not {', '.join(environments)}"
    if traits["needs_python"] and not asked.allow_python:
        return "it runs programs that the model writes, which is not allowed here (--allow-python)"
    backend = asked.workspace.llm(system.llm).backend
    if traits.get("calls") and asked.settings["protocol"] == "native" and backend == READER:
        return "it needs a model with function calls of its own (protocol=native)"
    return ""
