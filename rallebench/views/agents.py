"""Agents for a front end: workflows, environments, their settings, and how an episode ended."""

from __future__ import annotations

from collections.abc import Sequence

from rallebench.core.settings import Setting
from rallebench.core.types import Episode, Example, Step
from rallebench.engine.score import score_episode
from rallebench.environments import environment_entry, environment_names
from rallebench.workflows import REASONS, WORKFLOWS, agent_workflows
from rallebench.workflows.trees import Node, read_tree
from rallebench.workspace.paths import WorkspaceFolder


def workflows() -> dict[str, str]:
    """Workflow → description, without the workflows of published suites."""
    return {name: WORKFLOWS.entry(name).about for name in agent_workflows()}


def environments(workspace: WorkspaceFolder) -> tuple[str, ...]:
    """Return the names of all environments, with those of the configured servers."""
    return environment_names(workspace.mcp_servers.servers)


def needs_environment(workflow: str) -> bool:
    return bool(WORKFLOWS.entry(workflow).traits.get("needs_env"))


def needs_python(workflow: str) -> bool:
    """Return whether a workflow runs programs written by the model."""
    return bool(WORKFLOWS.entry(workflow).traits.get("needs_python"))


def forms(workflow: str, environment: str) -> dict[str, Setting]:
    """Return the settings of a workflow, and its environment's settings as ``env.NAME``."""
    own = dict(WORKFLOWS.entry(workflow).form)
    theirs = environment_entry(environment).form if needs_environment(workflow) else {}
    return {**own, **{f"env.{name}": setting for name, setting in theirs.items()}}


def meaning(stop_reason: str) -> str:
    """Describe a stop reason."""
    return REASONS.get(stop_reason, stop_reason.replace("_", " "))


def is_right(episode: Episode | None, example: Example) -> bool | None:
    """Return whether an episode's answer equals an accepted one; None if unknown."""
    if episode is None or episode.error or not example.gold.answers:
        return None
    value = score_episode(episode, example, ["em"])[0].value
    return None if value is None else bool(value)


def search_tree(steps: Sequence[Step]) -> tuple[Node, ...]:
    """Return the nodes of a search workflow, in search order; () for other workflows."""
    return read_tree(steps)
