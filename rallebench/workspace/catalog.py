"""``rallebench list``: everything that can be named, from the registries' docstrings and the workspace."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rallebench.core.errors import NotFoundError
from rallebench.core.registry import Registry, unknown
from rallebench.corpora.imported import imported_corpora
from rallebench.datasets.tasks import described
from rallebench.encoders.references import encoders
from rallebench.environments import ENVIRONMENTS
from rallebench.llms import LLMS
from rallebench.llms.presets import presets
from rallebench.metrics import METRICS
from rallebench.retrievers import COMBINATIONS, INDEX_KINDS
from rallebench.workflows import WORKFLOWS
from rallebench.workspace.environments import scholar_tables
from rallebench.workspace.indexes.recipes import kinds
from rallebench.workspace.paths import Workspace

Rows = list[dict[str, str]]
Abouts = Mapping[str, str]
"""Name → one line about it."""


def _registry(registry: Registry[Any]) -> Callable[[Workspace], Abouts]:
    return lambda _: {name: registry.entry(name).about for name in registry.names()}


def _chains(workspace: Workspace) -> Abouts:
    abouts = {}
    for name in workspace.chain_paths():
        try:
            abouts[name] = workspace.chain(name).about
        except Exception as error:
            abouts[name] = f"cannot be read: {error}"
    return abouts


def _corpora(workspace: Workspace) -> Abouts:
    corpora = imported_corpora(workspace.corpora)
    return {name: f"{card.passages} passages of {card.source}" for name, card in corpora.items()}


def _llms(workspace: Workspace) -> Abouts:
    entries = workspace.llms().items()
    return {name: e.about or f"{e.backend} {e.settings.get('model', '')}" for name, e in entries}


def _metrics(names: Iterable[str]) -> Abouts:
    return {name: METRICS.entry(name).about for name in names}


KINDS: dict[str, Callable[[Workspace], Abouts]] = {
    "corpora": _corpora,
    "retrievers": lambda workspace: workspace.retrievers(),
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
    "tasks": lambda workspace: described(workspace.dataset_paths()),
    "scholars": lambda workspace: {n: str(path) for n, path in scholar_tables(workspace).items()},
}


def listing(
    workspace: Workspace, kind: str | None, more: Mapping[str, Registry[Any]] | None = None
) -> dict[str, Rows]:
    """``{kind: [{name, about}]}`` for one kind or all. ``more``: kinds that lie above this module, by their registries."""
    known = {**KINDS, **{name: _registry(registry) for name, registry in (more or {}).items()}}
    if kind is not None and kind not in known:
        raise NotFoundError(unknown("kind", kind, list(known)))
    return {
        name: [{"name": n, "about": about} for n, about in abouts(workspace).items()]
        for name, abouts in known.items()
        if kind in (None, name)
    }
