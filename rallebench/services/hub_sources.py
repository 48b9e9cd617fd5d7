"""Sources of an import: files, folders, archives, and names of the Hugging Face hub, which are fetched only here."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rallebench.core.events import Operation, Progress
from rallebench.core.hub_names import HubName, is_hub_name, parse_hub_name
from rallebench.hub.fetching import Fetched, fetch, open_fetched
from rallebench.services import uploads
from rallebench.services.jobs import Job, JobManager
from rallebench.workspace.paths import WorkspaceFolder

KIND = "download"
"""Kind of the job that fetches a source for the page."""


@dataclass(frozen=True, slots=True)
class HubSource:
    """A source of the hub for the page. ``path``: a link to its file, or a folder of links; ``label``: a name for the import."""

    path: Path
    label: str
    fetched: Fetched


def fetch_source(
    source: Path | str | Fetched,
) -> Generator[Progress, None, Path | Fetched]:
    """Return a source as it is, or the files of a name of the hub, yielding progress. Raises UsageError for a wrong name."""
    if isinstance(source, Fetched):
        return source
    if not is_hub_name(source):
        return Path(source)
    return (yield from fetch(parse_hub_name(str(source))))


@contextmanager
def open_source(workspace: WorkspaceFolder, source: Path | Fetched) -> Iterator[Path]:
    """A file or folder: the source itself, or the content of an archive, or the files of the hub."""
    if isinstance(source, Path):
        with uploads.open_upload(workspace, source) as files:
            yield files
        return
    with open_fetched(source) as folder, uploads.open_upload(workspace, folder) as files:
        yield files


def start_fetch(workspace: WorkspaceFolder, jobs: JobManager, text: str) -> Job:
    """Fetch a name of the hub as a job, whose result is a HubSource. Raises UsageError for a wrong name at once."""
    name = parse_hub_name(text)
    return jobs.submit(KIND, str(name), name, lambda job: _fetch(workspace, name), record={})


def _fetch(workspace: WorkspaceFolder, name: HubName) -> Operation[HubSource]:
    fetched = yield from fetch(name)
    pinned = parse_hub_name(fetched.origin)
    path = uploads.link_files(workspace, pinned.label, fetched)
    return HubSource(path, pinned.label, fetched)
