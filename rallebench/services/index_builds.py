"""Builds of indexes as jobs, which a later program can continue."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rallebench.core.experiments import IndexRecipe
from rallebench.core.json_values import object_json
from rallebench.core.own_files import parse
from rallebench.services.job_records import JobRecord
from rallebench.services.jobs import Job, JobManager
from rallebench.workspace.indexes.build import build_index
from rallebench.workspace.paths import WorkspaceFolder

BUILD = "build"
"""Kind of the job of a build."""


@dataclass(frozen=True, slots=True)
class IndexBuild:
    """A build as recorded. ``source``, ``ids``: vectors of another program, and the file of their ids."""

    recipe: IndexRecipe
    source: Path | None = None
    ids: Path | None = None


def start_build(workspace: WorkspaceFolder, jobs: JobManager, name: str, build: IndexBuild) -> Job:
    """Build an index as a job, or join the running one."""
    return jobs.submit(
        BUILD,
        name,
        build,
        lambda job: build_index(
            workspace.indexes, name, build.recipe, source=build.source, ids=build.ids
        ),
        record=object_json(build),
    )


def continue_build(workspace: WorkspaceFolder, jobs: JobManager, record: JobRecord) -> Job:
    """Build the index of an interrupted job; encoded passages are used again. Raises BadFileError."""
    build = parse(record.detail, IndexBuild, Path(record.name), "build the index again")
    return start_build(workspace, jobs, record.name, build)
