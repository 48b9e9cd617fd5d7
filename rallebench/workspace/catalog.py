"""``rallebench list``: everything that can be named, from the registries' docstrings and the workspace."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
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
from rallebench.metrics.judges import JUDGES
from rallebench.retrievers import COMBINATIONS, INDEX_KINDS
from rallebench.workflows import WORKFLOWS
from rallebench.workspace.environments import scholar_tables
from rallebench.workspace.indexes.build import kinds
from rallebench.workspace.paths import Workspace

Rows = list[dict[str, str]]


def _rows(pairs: dict[str, str]) -> Rows:
    return [{"name": name, "about": about} for name, about in pairs.items()]


def _registry(registry: Registry[Any]) -> Rows:
    return [{"name": name, "about": registry.entry(name).about} for name in registry.names()]


def _kinds(workspace: Workspace) -> Rows:
    return _rows({kind: INDEX_KINDS.entry(kind).about for kind in kinds()})


def _datasets(workspace: Workspace) -> Rows:
    return _rows({name: str(path) for name, path in workspace.dataset_paths().items()})


def _chains(workspace: Workspace) -> Rows:
    rows = []
    for name in workspace.chain_paths():
        try:
            about = workspace.chain(name).about
        except Exception as error:
            about = f"cannot be read: {error}"
        rows.append({"name": name, "about": about})
    return rows


KINDS: dict[str, Callable[[Workspace], Rows]] = {
    "corpora": lambda workspace: _rows(
        {
            n: f"{c.passages} passages of {c.source}"
            for n, c in imported_corpora(workspace.corpora).items()
        }
    ),
    "retrievers": lambda workspace: _rows(workspace.retrievers()),
    "encoders": lambda workspace: _rows(encoders()),
    "combinations": lambda workspace: _registry(COMBINATIONS),
    "indexes": _kinds,
    "llms": lambda workspace: _rows(
        {
            n: e.about or f"{e.backend} {e.settings.get('model', '')}"
            for n, e in workspace.llms().items()
        }
    ),
    "presets": lambda workspace: _rows(
        {name: f"{p.title}: {p.about}" for name, p in presets().items()}
    ),
    "backends": lambda workspace: _registry(LLMS),
    "datasets": _datasets,
    "metrics": lambda workspace: _registry(METRICS),
    "chains": _chains,
    "workflows": lambda workspace: [
        *_rows({"chain": "A saved chain: its actions in order."}),
        *_registry(WORKFLOWS),
    ],
    "environments": lambda workspace: _registry(ENVIRONMENTS),
    "judges": lambda workspace: _registry(JUDGES),
    "tasks": lambda workspace: _rows(described(workspace.dataset_paths())),
    "scholars": lambda workspace: _rows(
        {name: str(path) for name, path in scholar_tables(workspace).items()}
    ),
}


def listing(
    workspace: Workspace, kind: str | None, more: Mapping[str, Registry[Any]] | None = None
) -> dict[str, Rows]:
    """``{kind: [{name, about}]}`` for one kind or all. ``more``: kinds that lie above this module, by their registries."""
    known: dict[str, Callable[[Workspace], Rows]] = {**KINDS}
    known |= {name: partial(_of, registry) for name, registry in (more or {}).items()}
    if kind is not None and kind not in known:
        raise NotFoundError(unknown("kind", kind, list(known)))
    return {name: rows(workspace) for name, rows in known.items() if kind in (None, name)}


def _of(registry: Registry[Any], workspace: Workspace) -> Rows:
    return _registry(registry)
