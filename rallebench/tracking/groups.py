"""Log several runs below one parent run in MLflow."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rallebench.core.json_values import JsonValue
from rallebench.engine.store import RunFolder
from rallebench.tracking import content
from rallebench.tracking.connection import mlflow_errors, open_store
from rallebench.tracking.links import read_link
from rallebench.tracking.metrics import headlines
from rallebench.tracking.runs import TITLE, active, log_values, logged_before

TABLE = "variants.json"
_PARENT, _GROUP = "mlflow.parentRunId", "rallebench.group"


@dataclass(frozen=True, slots=True)
class Group:
    """A parent run. ``best``: the name of the run whose metrics it repeats; '' for none.

    ``rows``: a table for MLflow's page, one row per variant, all with the same keys. ``kind``: ``sweep``, ``batch``
    or ``suite``. ``labels``: run → its label in the group. ``files``: additional artifacts.
    """

    name: str
    kind: str
    runs: Sequence[Path]
    best: str = ""
    verdict: str = ""
    rows: Sequence[Mapping[str, JsonValue]] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    files: Sequence[Path] = ()


def log_group(
    group: Group,
    log_run: Callable[[Path], str],
    *,
    workspace: Path,
    tracking_uri: str | None = None,
) -> str:
    """Put the runs below one parent run, and return the parent's id. ``log_run`` logs a run that is not logged yet.

    Logging the same group again updates its parent, which is found through its runs. Raises BackendError if MLflow
    cannot be reached or written to; the run folders stay unchanged.
    """
    store = open_store(workspace, tracking_uri)
    client = store.client
    with mlflow_errors(store.uri):
        runs = []
        for path in group.runs:
            entry = logged_before(store, read_link(path))
            runs.append(client.get_run(entry.run_id if entry else log_run(path)))
        now = int(time.time() * 1000)
        parent = _find_parent(client, runs, group.name)
        if not parent:
            start = min((run.info.start_time for run in runs), default=now)
            parent = client.create_run(
                store.experiment_id,
                start_time=start,
                run_name=group.name,
                tags={_GROUP: group.name},
            ).info.run_id
        for run, path in zip(runs, group.runs):
            if run.data.tags.get(_PARENT) != parent:
                client.set_tag(run.info.run_id, _PARENT, parent)
            label = group.labels.get(path.name)
            if label and run.info.run_name == run.data.tags.get(TITLE):
                # the label first, because lists of runs show only the beginning of a name
                client.update_run(run.info.run_id, name=f"{content.clean(label)} · {group.name}")
        best = next((path for path in group.runs if path.name == group.best), None)
        report = RunFolder(best).report() if best else None
        _fill(client, parent, group, headlines(report) if report else {})
        ends = [run.info.end_time for run in runs if run.info.end_time]
        client.set_terminated(parent, "FINISHED", max(ends, default=now))
    return str(parent)


def _find_parent(client: Any, runs: Iterable[Any], name: str) -> str:
    """Find the parent called ``name`` of one of the runs; '' if there is none."""
    for parent_id in {run.data.tags[_PARENT]: None for run in runs if _PARENT in run.data.tags}:
        parent = active(client, parent_id)
        if parent is not None and parent.data.tags.get(_GROUP) == name:
            return str(parent_id)
    return ""


def _fill(client: Any, parent: str, group: Group, metrics: Mapping[str, float]) -> None:
    table = [{"path": TABLE, "type": "table"}] if group.rows else []
    tags = {
        "mlflow.source.name": "rallebench",
        "mlflow.note.content": group.verdict,
        "mlflow.loggedArtifacts": json.dumps(table),
        "rallebench.kind": group.kind,
        "rallebench.verdict": group.verdict,
        "rallebench.best": group.best,
        "rallebench.runs": str(len(group.runs)),
    }
    tags = {key: value for key, value in tags.items() if value}
    log_values(client, parent, metrics, tags, artifact=TABLE)
    for path in group.files:
        client.log_artifact(parent, str(path))
    if group.rows:
        columns = tuple(group.rows[0])
        cells = tuple(tuple(row.get(name) for name in columns) for row in group.rows)
        with tempfile.TemporaryDirectory(prefix="rallebench-") as folder:
            file = Path(folder) / TABLE
            content.write(file, content.MlflowTable(columns, cells).to_json(), indent=None)
            client.log_artifact(parent, str(file))
