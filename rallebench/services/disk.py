"""Delete experiments and runs, and prune the cache. Each operation reports the disk space it frees."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rallebench.checkpoints.gguf import CONVERTED
from rallebench.core import parts
from rallebench.core.errors import NotFoundError, UsageError
from rallebench.core.own_folders import list_files
from rallebench.engine.experiment_store import ExperimentStore
from rallebench.engine.store import list_runs
from rallebench.services.doctor import bytes_below
from rallebench.services.runs import Runs
from rallebench.workspace.indexes.cache import PASSAGES, TEXTS, cache_entries, delete_stored
from rallebench.workspace.indexes.vectors import delete_vectors, kept_vectors
from rallebench.workspace.paths import WorkspaceFolder


@dataclass(frozen=True, slots=True)
class DiskPart:
    """A part of a workspace that can be pruned. ``bytes``: size on disk; ``about``: its content and the cost of
    losing it.
    """

    name: str
    about: str
    bytes: int


PARTS: Mapping[str, str] = {
    "bin": "deleted runs; nothing brings them back",
    "vectors": "encoded passages; the next index over them is encoded anew",
    "passages": "corpora in passages, and their texts; cut and hashed anew by the next build",
    "replies": "replies of models and retrievers; the next run asks, and pays, again",
    "models": "converted copies of GGUF files; the next load converts again",
    "pages": "pages for agents; prepared anew by the next agent",
    "stages": "views of large runs; computed anew when a run is opened",
}
"""Part → its content and the cost of losing it."""


def list_parts(workspace: WorkspaceFolder) -> tuple[DiskPart, ...]:
    """Return all parts that can be pruned, with their sizes."""
    return tuple(
        DiskPart(name, about, sum(map(bytes_below, part_paths(workspace, name))))
        for name, about in PARTS.items()
    )


def part_paths(workspace: WorkspaceFolder, name: str) -> tuple[Path, ...]:
    """Return the existing files and folders of a part."""
    cache, replies = workspace.cache, workspace.reply_cache
    paths: dict[str, tuple[Path, ...]] = {
        "bin": (workspace.run_bin,),
        "vectors": (workspace.vectors,),
        "passages": (cache / PASSAGES, cache / TEXTS),
        "replies": tuple(replies.with_name(replies.name + end) for end in ("", "-wal", "-shm")),
        "models": (cache / CONVERTED,),
        "pages": (cache / "pages",),
        "stages": (workspace.stages,),
    }
    return tuple(path for path in paths[name] if path.exists())


def prune(workspace: WorkspaceFolder, runs: Runs, name: str) -> DiskPart:
    """Remove a part and return it with the bytes freed. Raises UsageError for an unknown part or one in use."""
    if name not in PARTS:
        raise UsageError(f"There is no part {name!r} to prune (there are: {', '.join(PARTS)}).")
    before = sum(map(bytes_below, part_paths(workspace, name)))
    pruners: dict[str, Callable[[], object]] = {
        "bin": runs.empty_bin,
        "vectors": lambda: _prune_vectors(workspace),
        "passages": lambda: _prune_passages(workspace),
    }
    pruners.get(name, lambda: _remove_part(workspace, name))()
    after = sum(map(bytes_below, part_paths(workspace, name)))
    return DiskPart(name, PARTS[name], before - after)


def _prune_vectors(workspace: WorkspaceFolder) -> None:
    for cached in kept_vectors(workspace.vectors):
        delete_vectors(workspace.vectors, cached.folder.name)


def _prune_passages(workspace: WorkspaceFolder) -> None:
    for entry in cache_entries(workspace):
        delete_stored(workspace, entry.key)


def _remove_part(workspace: WorkspaceFolder, name: str) -> None:
    """Remove a part that has no lock of its own. Raises UsageError during a run."""
    active = [run.name for run in list_runs(workspace.runs) if run.state().is_active]
    if active:
        raise UsageError(f"The run {active[0]!r} is running; stop it, or wait for its end.")
    for path in part_paths(workspace, name):
        parts.delete(path)


def delete_experiment(workspace: WorkspaceFolder, name: str) -> str:
    """Delete an experiment with its report; return a sentence. Its runs are kept.

    Raises NotFoundError for an unknown experiment, UsageError while it is running.
    """
    store = ExperimentStore(workspace.path)
    folder = store.folder(parts.check_name("experiment", name))
    if not folder.is_dir():
        known = ", ".join(store.names()[:10]) or "none yet"
        raise NotFoundError(f"There is no experiment {name!r} (there are: {known}).")
    with store.lock(name, store.find_noun(name) or "experiment"):
        parts.delete(folder)
    return f"Deleted the experiment {name}; its runs stay."


def delete_run(workspace: WorkspaceFolder, runs: Runs, name: str, *, for_good: bool) -> str:
    """Move a run to the bin, or delete it ``for_good``; return a sentence. Raises UsageError while it is running."""
    if for_good and name in binned_runs(workspace):
        shutil.rmtree(workspace.run_bin / name)
        return f"Deleted the run {name} in the bin for good."
    runs.delete(name)
    if not for_good:
        return f"The run {name} is in the bin, which holds the disk until it is emptied."
    shutil.rmtree(workspace.run_bin / name)
    return f"Deleted the run {name} for good. What MLflow knows of it stays there."


def binned_runs(workspace: WorkspaceFolder) -> frozenset[str]:
    """Return the names of the runs in the bin."""
    return frozenset(file.parent.name for file in list_files(workspace.run_bin, "*/run.json"))


def find_place(workspace: WorkspaceFolder, kind: str, name: str) -> Path:
    """Return the file or folder of a named item of a ``kind``. Raises UsageError if the name is not allowed."""
    parts.check_name(kind, name)
    if kind == "dataset":
        return workspace.dataset_paths().get(name, workspace.path / "datasets" / name)
    folders = {
        "run": workspace.runs,
        "experiment": workspace.path / "experiments",
        "index": workspace.indexes,
        "corpus": workspace.corpora,
    }
    return folders[kind] / name
