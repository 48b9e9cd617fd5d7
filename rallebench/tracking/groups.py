"""Several runs as one: a parent run in MLflow with the runs below it."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rallebench.core.files import write_text
from rallebench.tracking import content
from rallebench.tracking.connection import connect, experiment_of, explained, tracking_uri_of
from rallebench.tracking.mlflow import active, log_run, logged_before, remembered

TABLE = "variants.json"
_PARENT, _GROUP = "mlflow.parentRunId", "rallebench.group"


@dataclass(frozen=True, slots=True)
class Group:
    """What a parent run shows. ``best``: the run whose metrics it has, '' = none.

    ``rows``: one per variant, the same keys in each, a table of MLflow's page. ``kind``: ``sweep``, ``batch`` or
    ``suite``. ``files``: what else is logged with it.
    """

    name: str
    kind: str
    runs: Sequence[Path]
    best: str = ""
    verdict: str = ""
    rows: Sequence[Mapping[str, Any]] = ()
    files: Sequence[Path] = ()


def log_group(
    group: Group,
    *,
    workspace: Path,
    tracking_uri: str | None = None,
    experiment: str = "rallebench",
) -> str:
    """Log the runs that are not there yet, put all below one parent run, and return the parent's id.

    The same group again updates its parent: it is found by the runs that are below it. Raises BackendError
    if MLflow cannot be reached or written; the run folders are not touched.
    """
    uri = tracking_uri_of(workspace, tracking_uri)
    client = connect(uri)
    experiment_id = experiment_of(client, experiment, workspace, uri)
    with explained(uri):
        children = []
        for path in group.runs:
            before = logged_before(client, remembered(path), experiment)
            children.append(
                before["run_id"]
                if before
                else log_run(
                    path, workspace=workspace, tracking_uri=tracking_uri, experiment=experiment
                )
            )
        runs = [client.get_run(child) for child in children]
        parent = _parent(client, runs, group.name) or _created(
            client, experiment_id, runs, group.name
        )
        for run in runs:
            if run.data.tags.get(_PARENT) != parent:
                client.set_tag(run.info.run_id, _PARENT, parent)
        best = [run for run, path in zip(runs, group.runs) if path.name == group.best]
        _fill(client, parent, group, best[0].data.metrics if best else {})
        ends = [run.info.end_time for run in runs if run.info.end_time]
        client.set_terminated(parent, "FINISHED", max(ends, default=int(time.time() * 1000)))
    return parent


def _parent(client: Any, runs: Iterable[Any], name: str) -> str:
    """The parent of that name which one of the runs has already, '' if there is none."""
    for parent in {run.data.tags[_PARENT]: None for run in runs if _PARENT in run.data.tags}:
        found = active(client, parent)
        if found is not None and found.data.tags.get(_GROUP) == name:
            return str(parent)
    return ""


def _created(client: Any, experiment_id: str, runs: Iterable[Any], name: str) -> str:
    start = min((run.info.start_time for run in runs), default=int(time.time() * 1000))
    made = client.create_run(experiment_id, start_time=start, run_name=name, tags={_GROUP: name})
    return str(made.info.run_id)


def _fill(client: Any, parent: str, group: Group, values: Mapping[str, float]) -> None:
    from mlflow.entities import Metric, RunTag

    now = int(time.time() * 1000)
    metrics = [Metric(key, value, now, 0) for key, value in values.items()]
    tags = {
        "mlflow.source.name": "rallebench",
        "mlflow.note.content": group.verdict,
        "mlflow.loggedArtifacts": json.dumps(
            [{"path": TABLE, "type": "table"}] if group.rows else []
        ),
        "rallebench.kind": group.kind,
        "rallebench.verdict": group.verdict,
        "rallebench.best": group.best,
        "rallebench.runs": str(len(group.runs)),
    }
    marks = [
        RunTag(key, content.cut(content.clean(value), TABLE))
        for key, value in tags.items()
        if value
    ]
    client.log_batch(parent, metrics=metrics, tags=marks)
    for path in group.files:
        client.log_artifact(parent, str(path))
    if group.rows:
        columns = list(group.rows[0])
        shown = {
            "columns": columns,
            "data": [[row.get(name) for name in columns] for row in group.rows],
        }
        with tempfile.TemporaryDirectory(prefix="rallebench-") as made:
            write_text(
                Path(made) / TABLE, content.clean(json.dumps(shown, ensure_ascii=False)) + "\n"
            )
            client.log_artifact(parent, str(Path(made) / TABLE))
