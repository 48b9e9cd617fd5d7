"""A run folder → one MLflow run: params, metrics, its question set, artifacts and a sample of traces.

Logging a folder again updates its run: ``mlflow.json`` in the folder remembers where it went.
A benchmark never depends on MLflow: whatever fails here is one sentence, and the folder is untouched.
"""

from __future__ import annotations

import contextlib
import json
import shlex
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rallebench.core.errors import BackendError, BadFileError, MissingPackageError, RalleError
from rallebench.core.files import read_json, write_json, write_text
from rallebench.engine.cost import recorded_prices
from rallebench.engine.record import episode_from_json
from rallebench.engine.store import COSTS, REPORT, RUN, RunFolder
from rallebench.tracking import content, prompts, table
from rallebench.tracking.connection import (
    connect,
    experiment_of,
    explained,
    tracking_uri_of,
    without_credentials,
)
from rallebench.tracking.costs import cost_tags
from rallebench.tracking.live import LiveStatus, flush_live, live_status, trace_later
from rallebench.tracking.traces import Trace, trace_episode, write_traces

__all__ = [
    "LiveStatus",
    "flush_live",
    "live_status",
    "log_run",
    "remembered",
    "trace_episode",
    "trace_later",
]

MEMORY = "mlflow.json"
TABLE = "per_question.json"
COPIED = (REPORT, COSTS, "output.jsonl", "output_reduced.jsonl", "results.json", "prompt.txt")
"""Files of a run folder that become artifacts as they are."""

_PARAMS_PER_BATCH, _METRICS_PER_BATCH = 100, 800
"""MLflow takes 100 params, 100 tags and 1,000 of everything in one batch."""


def log_run(
    run_folder: Path,
    *,
    workspace: Path,
    tracking_uri: str | None = None,
    experiment: str = "rallebench",
    waterfall: Mapping[str, float] | None = None,
) -> str:
    """Log a run folder and return the MLflow run's id; a folder logged before is updated, not doubled.

    ``tracking_uri`` None means ``MLFLOW_TRACKING_URI``, or else ``mlflow.db`` in the workspace. ``waterfall``: stage
    → questions that the run lost there; they become metrics (``waterfall_not_retrieved`` …).
    Raises BadFileError for a folder that holds no run and BackendError if MLflow cannot be reached
    or written; the folder's results are not touched by either.
    """
    folder = RunFolder(run_folder)
    run = folder.spec()
    folder.episodes()  # whole, or BadFileError; what is logged is read from the same lines
    try:
        uri = tracking_uri_of(workspace, tracking_uri)
        with _alone(folder):
            client = connect(uri)
            experiment_id = experiment_of(client, experiment, workspace, uri)
            with explained(uri):
                return _Logged(
                    folder, run, client, uri, experiment, experiment_id, waterfall or {}
                ).log()
    except (BadFileError, MissingPackageError):
        raise
    except RalleError as error:
        raise type(error)(
            f"{error} The results are safe in {folder.name}; send them with: rallebench track {shlex.quote(folder.name)}"
        ) from error


def remembered(run_folder: Path) -> dict[str, Any]:
    """Where a run folder was logged last: ``tracking_uri`` (no credentials), ``experiment``,
    ``experiment_id``, ``run_id``.

    {} if it was never logged.
    """
    try:
        value = read_json(Path(run_folder) / MEMORY)
    except BadFileError:
        return {}
    return value if isinstance(value, dict) and isinstance(value.get("run_id"), str) else {}


def logged_before(client: Any, memory: dict[str, Any], experiment: str) -> dict[str, Any] | None:
    """The entry of a folder's memory whose run is still in the experiment, None if there is none."""
    entries: list[dict[str, Any]] = [memory, *memory.get("earlier", ())]
    for entry in entries:
        if entry.get("experiment") == experiment and active(client, entry["run_id"]) is not None:
            return entry
    return None


def active(client: Any, run_id: str) -> Any:
    """A run of MLflow's, None if there is no such run or it was deleted."""
    try:
        found = client.get_run(run_id)
    except Exception as error:
        if getattr(error, "error_code", "") == "RESOURCE_DOES_NOT_EXIST":
            return None
        raise
    return found if found.info.lifecycle_stage == "active" else None


@contextlib.contextmanager
def _alone(folder: RunFolder) -> Iterator[None]:
    from filelock import FileLock, Timeout

    try:
        with FileLock(str(folder.path / "mlflow.lock"), timeout=60):
            yield
    except Timeout:
        raise BackendError(
            f"The run {folder.name!r} is being logged by another process; wait for it."
        ) from None


class _Logged:
    """One call of ``log_run``, with everything it needs in reach."""

    def __init__(
        self,
        folder: RunFolder,
        run: Mapping[str, Any],
        client: Any,
        uri: str,
        experiment: str,
        experiment_id: str,
        waterfall: Mapping[str, float],
    ) -> None:
        self.folder, self.run, self.client, self.uri = folder, run, client, uri
        self.experiment, self.experiment_id, self.waterfall = experiment, experiment_id, waterfall
        self.lines = folder.lines()
        self.records = folder.records()
        self.report: Mapping[str, Any] = folder.report() or {}
        self.memory = remembered(folder.path)

    def log(self) -> str:
        """Log everything; the MLflow run's id."""
        run_id, entry = self._find() or self._create()
        self._remember(entry)
        self._log_values(run_id)
        self._log_dataset(run_id)
        self._log_artifacts(run_id)
        traces = write_traces(self.uri, self.experiment_id, self._traces(run_id), entry["traces"])
        self._remember({**entry, "traces": [*entry["traces"], *traces]})
        self.client.set_terminated(run_id, self._status(), self._times()[1])
        return run_id

    # which MLflow run

    def _find(self) -> tuple[str, dict[str, Any]] | None:
        """The run that an earlier call made here. Run ids are unique, so a moved workspace finds its own."""
        entry = logged_before(self.client, self.memory, self.experiment)
        return (
            (entry["run_id"], self._entry(entry["run_id"], entry.get("traces", ())))
            if entry
            else None
        )

    def _create(self) -> tuple[str, dict[str, Any]]:
        made = self.client.create_run(
            self.experiment_id, start_time=self._times()[0], run_name=self.folder.name
        )
        return made.info.run_id, self._entry(made.info.run_id, ())

    def _entry(self, run_id: str, traces: Any) -> dict[str, Any]:
        return {
            "tracking_uri": without_credentials(self.uri),
            "experiment": self.experiment,
            "experiment_id": self.experiment_id,
            "run_id": run_id,
            "traces": list(traces),
        }

    def _remember(self, entry: Mapping[str, Any]) -> None:
        known = [
            {k: v for k, v in self.memory.items() if k != "earlier"},
            *self.memory.get("earlier", ()),
        ]
        earlier = [other for other in known if other and other["run_id"] != entry["run_id"]]
        write_json(
            self.folder.path / MEMORY, {**entry, **({"earlier": earlier} if earlier else {})}
        )

    def _times(self) -> tuple[int, int]:
        """Start and end of the run in milliseconds since 1970."""
        spans = [when for line in self.lines.values() if (when := _when(line))]
        now = time.time()
        start = min((begun for begun, _ in spans), default=now)
        return int(start * 1000), int(max((ended for _, ended in spans), default=now) * 1000)

    def _status(self) -> str:
        """MLflow's word for how the run ended: KILLED stands for stopped or not scored yet."""
        if not self.report.get("complete"):
            return "KILLED"
        return (
            "FAILED"
            if self.report["n"] and self.report["n_errors"] == self.report["n"]
            else "FINISHED"
        )

    # params, metrics, tags

    def _log_values(self, run_id: str) -> None:
        from mlflow.entities import Metric, Param, RunTag

        have = self.client.get_run(run_id).data.params
        params = content.params(self.run)
        tags = self._tags()
        # MLflow's params can never change; what differs since the first logging is told in tags.
        tags |= {
            f"changed.{key}": value
            for key, value in params.items()
            if have.get(key, value) != value
        }
        now = int(time.time() * 1000)
        values = content.metrics(self.report) | {
            f"waterfall_{stage}": n for stage, n in self.waterfall.items()
        }
        metrics = [Metric(key, value, now, 0) for key, value in values.items()]
        new = [Param(key, value) for key, value in params.items() if key not in have]
        marks = [RunTag(key, content.cut(content.clean(value), RUN)) for key, value in tags.items()]
        few, many = _PARAMS_PER_BATCH, _METRICS_PER_BATCH
        while metrics or new or marks:
            self.client.log_batch(
                run_id, metrics=metrics[:many], params=new[:few], tags=marks[:few]
            )
            metrics, new, marks = metrics[many:], new[few:], marks[few:]

    def _tags(self) -> dict[str, str]:
        spec = self.run.get("spec", {})
        asked = (
            f"{len(self.lines)} of {len(self.records)} questions of {spec.get('dataset')} answered"
        )
        note = f"{asked}, {self.report.get('n_errors', 0)} failed. {table.said_of_table(len(self.lines))}"
        chain = spec.get("settings", {}).get("chain") or {}
        return {
            "mlflow.source.name": "rallebench",
            "mlflow.note.content": note.strip(),
            "mlflow.loggedArtifacts": json.dumps([{"path": TABLE, "type": "table"}]),
            "rallebench.run": self.folder.name,
            "rallebench.fingerprint": str(self.run.get("fingerprint", "")),
            "rallebench.complete": str(bool(self.report.get("complete"))).lower(),
            **cost_tags(self.report.get("cost") or {}),
            **prompts.register(self.client, self.uri, self.experiment_id, chain),
        }

    def _log_dataset(self, run_id: str) -> None:
        """The question set as the run's input; MLflow keeps one of the same name and sum once."""
        from mlflow.entities import Dataset, DatasetInput, InputTag

        if about := table.dataset_of(self.run):
            asked = {"mlflow.data.context": "eval", "rallebench.questions": str(len(self.records))}
            tags = [InputTag(key, value) for key, value in asked.items()]
            self.client.log_inputs(run_id, [DatasetInput(Dataset(**about), tags)])

    # artifacts

    def _log_artifacts(self, run_id: str) -> None:
        with tempfile.TemporaryDirectory(prefix="rallebench-") as made:
            self._write_artifacts(Path(made))
            self.client.log_artifacts(run_id, made)
        for name in COPIED:
            if (self.folder.path / name).exists():
                self.client.log_artifact(run_id, str(self.folder.path / name))

    def _write_artifacts(self, target: Path) -> None:
        _write(target / RUN, content.without_secrets(self.run))
        if (self.folder.path / "config.json").exists():
            config = content.without_secrets(read_json(self.folder.path / "config.json"))
            _write(target / "config.json", config)
        chain = self.run.get("spec", {}).get("settings", {}).get("chain")
        if chain:
            _write(target / "chain.json", content.without_secrets(chain))
            for number, action in enumerate(chain.get("actions", ()), 1):
                write_text(
                    target / "templates" / f"action-{number}.txt",
                    content.clean(action.get("template", "")),
                )
        scores = self.folder.scores()
        _write(target / TABLE, table.per_question(self.records, self.lines, scores), indent=None)

    # traces

    def _traces(self, run_id: str) -> Iterator[Trace]:
        questions = {
            str(record.get("id")).strip(): str(record.get("input", "")) for record in self.records
        }
        spec = self.run.get("spec", {})
        name = (spec.get("settings", {}).get("chain") or {}).get("name", "")
        for qid in content.traced(self.lines, int(spec.get("seed") or 0)):
            line = self.lines[qid]
            when = _when(line)
            yield Trace(
                episode_from_json(line),
                questions.get(qid, ""),
                ended=when[1] if when else None,
                run_id=run_id,
                name=name,
                tags={"rallebench.source": "benchmark", "rallebench.run": self.folder.name},
                prices=recorded_prices(self.run),
            )


def _write(path: Path, value: Any, indent: int | None = 2) -> None:
    """Write JSON that every reader takes: a model may have said half a character."""
    write_text(path, content.clean(json.dumps(value, ensure_ascii=False, indent=indent)) + "\n")


def _when(line: Mapping[str, Any]) -> tuple[float, float] | None:
    """(start of its session, end of the episode) in seconds since 1970, if the line says so."""
    try:
        begun = float(line["session"])
        return begun, begun + float(line["elapsed"])
    except (KeyError, TypeError, ValueError):
        return None
