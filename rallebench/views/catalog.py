"""Everything that a user can name in a workspace, with its settings, card and defaults."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rallebench.analysis.agents import logs
from rallebench.analysis.agents.aspects import ASPECTS
from rallebench.analysis.exporting import FORMS
from rallebench.analysis.predictions import READERS
from rallebench.core.errors import NotFoundError, RalleError
from rallebench.core.registry import Entry, Registry, unknown
from rallebench.core.settings import Setting
from rallebench.corpora import CORPORA
from rallebench.corpora.chunking import PRESETS
from rallebench.datasets import DATASETS, tasks
from rallebench.encoders.references import encoders
from rallebench.engine.store import list_runs
from rallebench.environments import ENVIRONMENTS
from rallebench.experiments import BUILDERS, SUITES, ExperimentGroup
from rallebench.experiments.scorers import SCORERS
from rallebench.experiments.sweeps import STRATEGIES
from rallebench.llms import LLMS
from rallebench.llms.presets import presets
from rallebench.metrics import METRICS, card, read_card
from rallebench.retrievers import COMBINATIONS, INDEX_KINDS, needs_encoder
from rallebench.views import published
from rallebench.workflows import WORKFLOWS, agent_workflows
from rallebench.workspace.environments import scholar_tables
from rallebench.workspace.indexes.recipes import kinds
from rallebench.workspace.paths import (
    DEFAULT_DATASET,
    STARTER_INDEXES,
    WorkspaceFolder,
    nothing_left,
)

__all__ = ["DEFAULT_DATASET", "encoders", "needs_encoder", "nothing_left", "presets"]

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
    """The names of a registry, or of one of the fixed lists."""
    return _LISTS[kind]() if kind in _LISTS else REGISTRIES[kind].names()


def entry(kind: str, name: str) -> Entry[Any]:
    """A registered thing: its line, traits and settings. Raises NotFoundError with the nearest names."""
    return REGISTRIES[kind].entry(name)


Abouts = Mapping[str, str]
"""Name → one line about it."""


def _registry(registry: Registry[Any]) -> Callable[[WorkspaceFolder], Abouts]:
    return lambda _: {name: registry.entry(name).about for name in registry.names()}


def _chains(workspace: WorkspaceFolder) -> Abouts:
    abouts: dict[str, str] = {}
    for name in workspace.chain_paths():
        try:
            abouts[name] = workspace.chain(name).about
        except RalleError as error:
            abouts |= _unreadable({name: str(error)})
    return abouts


def _corpora(workspace: WorkspaceFolder) -> Abouts:
    corpora = workspace.corpus_cards()
    abouts = {name: f"{card.passages} passages of {card.source}" for name, card in corpora.items()}
    return {**abouts, **_unreadable(workspace.damaged_corpora())}


def _retrievers(workspace: WorkspaceFolder) -> Abouts:
    damaged = workspace.all_manifests()[1] | workspace.damaged_combinations()
    return {**workspace.retrievers(), **_unreadable(damaged)}


def _unreadable(damaged: Abouts) -> dict[str, str]:
    return {name: f"cannot be read: {sentence}" for name, sentence in damaged.items()}


def _llms(workspace: WorkspaceFolder) -> Abouts:
    entries = workspace.llms().items()
    abouts = {name: e.about or f"{e.backend} {e.settings.get('model', '')}" for name, e in entries}
    return {**abouts, **_unreadable(workspace.damaged_llms())}


def _metrics(names: Iterable[str]) -> Abouts:
    return {name: METRICS.entry(name).about for name in names}


_LISTINGS: dict[str, Callable[[WorkspaceFolder], Abouts]] = {
    "corpora": _corpora,
    "retrievers": _retrievers,
    "encoders": lambda _: encoders(),
    "combinations": _registry(COMBINATIONS),
    "indexes": lambda _: {kind: INDEX_KINDS.entry(kind).about for kind in kinds()},
    "llms": _llms,
    "presets": lambda _: {name: f"{p.title}: {p.about}" for name, p in presets().items()},
    "backends": _registry(LLMS),
    "datasets": lambda workspace: {n: str(path) for n, path in workspace.dataset_paths().items()},
    "metrics": lambda _: _metrics(METRICS.plain_names()),
    "chains": _chains,
    "workflows": lambda workspace: {
        "chain": "A saved chain: its actions in order.",
        **_registry(WORKFLOWS)(workspace),
    },
    "environments": _registry(ENVIRONMENTS),
    "judges": lambda _: _metrics(METRICS.judge_names()),
    "tasks": lambda workspace: tasks.describe_tasks(workspace.dataset_paths()),
    "scholars": lambda workspace: {n: str(path) for n, path in scholar_tables(workspace).items()},
    "published": lambda _: published.abouts(),
    "suites": lambda _: {name: line(SUITES.entry(name)) for name in SUITES.names()},
}


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
    "environment": lambda _: ENVIRONMENTS.names(),
    "run": lambda workspace: [run.name for run in list_runs(workspace.runs)],
    "metric": lambda _: METRICS.plain_names(),
}
"""Kind that a setting may name → the names of that kind in a workspace; files and folders are in no list."""


def choices(workspace: WorkspaceFolder, form: Mapping[str, Setting]) -> dict[str, list[str]]:
    """Setting → the values to offer: of a list those worth comparing, then the names that the workspace has of the
    setting's kind. Settings that name nothing, and paths for which nothing is there, are left out."""
    nouns = {noun for setting in form.values() for noun in setting.named}
    names = {noun: list(_NAMED[noun](workspace)) for noun in nouns if noun in _NAMED}
    offered = {}
    for name, setting in form.items():
        values = [*map(str, setting.sweep)] if setting.many else []
        for noun in setting.named:
            values += names.get(noun, [])
        if values or (setting.names and not setting.is_path):
            offered[name] = list(dict.fromkeys(values))
    return offered


def abouts(workspace: WorkspaceFolder, kind: str) -> Abouts:
    """Return the names of a kind, each with one line about it. Raises NotFoundError."""
    if kind not in _LISTINGS:
        raise NotFoundError(unknown("kind", kind, [*_LISTINGS]))
    return _LISTINGS[kind](workspace)


def listing(workspace: WorkspaceFolder, kind: str | None = None) -> dict[str, list[dict[str, str]]]:
    """``{kind: [{name, about}]}`` for one kind or all. Raises NotFoundError."""
    return {
        name: [{"name": n, "about": about} for n, about in abouts(workspace, name).items()]
        for name in (_LISTINGS if kind is None else (kind,))
    }


def whole_card(metric: str) -> tuple[dict[str, Any], str]:
    """The card of a metric: as JSON, and whole as text. Raises NotFoundError."""
    return card(metric), read_card(metric).text()


def line(item: Entry[Any]) -> str:
    """The line about an entry; for a suite with the part that works without a download."""
    return " ".join(filter(None, (item.about, str(item.traits.get("ready", "")))))


def described(kind: str) -> list[dict[str, Any]]:
    """Every entry of a registry with its settings, JSON-able."""
    return [_described(entry(kind, name)) for name in names(kind)]


def _described(item: Entry[Any]) -> dict[str, Any]:
    settings = [_setting(name, setting) for name, setting in item.form.items()]
    return {"name": item.name, "about": line(item), "settings": settings}


def _setting(name: str, setting: Setting) -> dict[str, Any]:
    about = {"about": setting.about, "must_be": setting.must_be, "takes": setting.takes}
    return {"name": name, "default": setting.default, **about}
