"""Everything that a user can name in a workspace, with settings, cards and defaults."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rallebench.analysis.agents import logs
from rallebench.analysis.agents.aspects import ASPECTS
from rallebench.analysis.exporting import FORMS
from rallebench.analysis.prediction_files import READERS
from rallebench.core.registry import Entry, RegisteredForm, Registry
from rallebench.core.settings import Setting
from rallebench.core.starter import STARTER_INDEXES
from rallebench.corpora import CORPORA
from rallebench.corpora.chunking import PRESETS
from rallebench.datasets import DATASETS
from rallebench.encoders.references import encoders
from rallebench.engine.store import list_runs
from rallebench.environments import ENVIRONMENTS, environment_names
from rallebench.experiments import BUILDERS, SUITES, ExperimentGroup
from rallebench.experiments.scorers import SCORERS
from rallebench.experiments.sweeps import STRATEGIES
from rallebench.llms import LLMS
from rallebench.llms.presets import Preset, presets
from rallebench.metrics import METRICS
from rallebench.retrievers import COMBINATIONS, INDEX_KINDS, kinds, needs_encoder
from rallebench.views.lists import line
from rallebench.workflows import WORKFLOWS, agent_workflows
from rallebench.workspace.paths import WorkspaceFolder
from rallebench.workspace.scholar_tables import scholar_tables

REGISTRIES: Mapping[str, Registry[Any] | ExperimentGroup] = {
    registry.name: registry
    for registry in (
        COMBINATIONS,
        CORPORA,
        DATASETS,
        ENVIRONMENTS,
        INDEX_KINDS,
        BUILDERS,
        LLMS,
        METRICS,
        SCORERS,
        SUITES,
        WORKFLOWS,
    )
}
_LISTS: Mapping[str, Callable[[], tuple[str, ...]]] = {
    "aspects": lambda: tuple(ASPECTS),
    "chunk presets": PRESETS.names,
    "export formats": lambda: tuple(FORMS),
    "index kinds": lambda: tuple(kinds()),
    "prediction formats": lambda: (*READERS, logs.FORM),
    "strategies": lambda: tuple(STRATEGIES),
}


def names(kind: str) -> tuple[str, ...]:
    """Return the names in a registry or in one of the fixed lists."""
    return _LISTS[kind]() if kind in _LISTS else REGISTRIES[kind].names()


def entry(kind: str, name: str) -> Entry[object]:
    """Return a registered item with its description, traits and settings. Raises NotFoundError with the nearest
    names.
    """
    return REGISTRIES[kind].entry(name)


_NAMED: Mapping[str, Callable[[WorkspaceFolder], Iterable[str]]] = {
    "llm": WorkspaceFolder.llms,
    "retriever": WorkspaceFolder.retrievers,
    "index": lambda workspace: [*STARTER_INDEXES, *workspace.manifests()],
    "encoder": lambda _: encoders(),
    "dataset": WorkspaceFolder.dataset_paths,
    "corpus": lambda workspace: workspace.corpus_cards(),
    "table": scholar_tables,
    "chain": WorkspaceFolder.chain_paths,
    "workflow": lambda _: agent_workflows(),
    "environment": lambda workspace: environment_names(workspace.mcp_servers.servers),
    "run": lambda workspace: [run.name for run in list_runs(workspace.runs)],
    "metric": lambda _: METRICS.plain_names(),
}
"""Kind of setting → function that lists the names of that kind in a workspace; files and folders are not listed."""


def choices(workspace: WorkspaceFolder, form: Mapping[str, Setting]) -> dict[str, list[str]]:
    """Setting → values to offer: first values worth comparing, for lists, then the workspace's names of the
    setting's kind. Settings without any values to offer are left out.
    """
    nouns = {noun for setting in form.values() for noun in setting.kinds_named}
    names = {noun: list(_NAMED[noun](workspace)) for noun in nouns if noun in _NAMED}
    offered = {}
    for name, setting in form.items():
        values = [*map(str, setting.sweep)] if setting.many else []
        for noun in setting.kinds_named:
            values += names.get(noun, [])
        if values or (setting.names and not setting.is_path):
            offered[name] = list(dict.fromkeys(values))
    return offered


def encoder_lines() -> dict[str, str]:
    """Return the encoders that need no settings, each with a description."""
    return encoders()


def llm_presets() -> Mapping[str, Preset]:
    """Return the presets of language models by name, ordered by group. Raises BadFileError if a file is damaged."""
    return presets()


def takes_encoder(kind: str) -> bool:
    """Return whether an index of this kind is built from an encoder's vectors. Raises NotFoundError for an unknown kind."""
    return needs_encoder(kind)


def registry_entries(kind: str) -> list[RegisteredForm]:
    """Return every entry of a registry with its settings."""
    entries = (entry(kind, name) for name in names(kind))
    return [RegisteredForm(item.name, line(item.listing), item.form) for item in entries]
