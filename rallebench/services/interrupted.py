"""Jobs that ended with an earlier program, as far as their work is still missing."""

from __future__ import annotations

from rallebench.core.errors import RalleError
from rallebench.services import imports
from rallebench.services.data import BUILD
from rallebench.services.job_records import JobRecord
from rallebench.services.workbench import Workbench

ENDED = ("done", "failed")
"""States of a run that nothing needs to continue."""


def interrupted_jobs(workbench: Workbench) -> tuple[JobRecord, ...]:
    """Return the interrupted jobs, oldest first; those whose work another program has done meanwhile are forgotten."""
    missing = []
    for record in workbench.jobs.interrupted():
        try:
            is_done = _is_done(workbench, record)
        except RalleError:  # its files were damaged or removed
            is_done = False
        if is_done:
            workbench.jobs.forget(record.id)
        else:
            missing.append(record)
    return tuple(missing)


def _is_done(workbench: Workbench, record: JobRecord) -> bool:
    space, name = workbench.workspace, record.name
    if record.kind == imports.KIND:
        return not imports.find_missing(space, imports.read_record(record))
    if record.kind == BUILD:
        return name in space.manifests()
    if record.kind == "run":
        return workbench.runs.open(name).state().state in ENDED
    store = workbench.experiments.store
    return store.find_noun(name) == record.kind and store.open(name).report is not None
