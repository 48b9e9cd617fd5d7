"""Jobs that ended with an earlier program, as far as their work is still missing."""

from __future__ import annotations

from rallebench.core.errors import RalleError
from rallebench.engine.experiment_store import ExperimentStore
from rallebench.engine.store import RunFolder
from rallebench.services import imports
from rallebench.services.index_builds import BUILD
from rallebench.services.job_records import JobRecord
from rallebench.services.jobs import JobManager
from rallebench.workspace.paths import WorkspaceFolder

ENDED = ("done", "failed")
"""States of a run that nothing needs to continue."""


def interrupted_jobs(
    workspace: WorkspaceFolder, jobs: JobManager, store: ExperimentStore
) -> tuple[JobRecord, ...]:
    """Return the interrupted jobs, oldest first; those whose work another program has done meanwhile are forgotten."""
    missing = []
    for record in jobs.list_interrupted():
        try:
            is_done = _is_done(workspace, store, record)
        except RalleError:  # its files were damaged or removed
            is_done = False
        if is_done:
            jobs.forget(record.id)
        else:
            missing.append(record)
    return tuple(missing)


def _is_done(workspace: WorkspaceFolder, store: ExperimentStore, record: JobRecord) -> bool:
    name = record.name
    if record.kind == imports.KIND:
        return not imports.find_missing(workspace, imports.read_record(record))
    if record.kind == BUILD:
        return name in workspace.manifests()
    if record.kind == "run":
        return RunFolder.open(workspace.runs, name).state().state in ENDED
    return store.find_noun(name) == record.kind and store.open(name).report is not None
