"""Log a run folder as one MLflow run: params, metrics, dataset, artifacts, and a trace of each question with its gold
and scores.

``mlflow.json`` in the folder names the MLflow run, so logging again updates it. Benchmarks never depend on MLflow:
each failure is reported in one sentence, and the folder's results stay unchanged.
"""

from __future__ import annotations

import contextlib
import json
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rallebench.chains.saved import chain_to_json
from rallebench.core.errors import BadFileError, Hint, MissingPackageError, RalleError
from rallebench.core.files import read_json, write_text
from rallebench.core.locks import alone
from rallebench.core.report import RunReport
from rallebench.core.waterfall import Waterfall
from rallebench.engine.judging import judge_remarks
from rallebench.engine.label_book import book_of_run
from rallebench.engine.run_marks import read_marks
from rallebench.engine.store import COSTS, REPORT, RUN, RunFolder
from rallebench.tracking import content, prompts
from rallebench.tracking.assessments import COST_METRICS, Assessor, digest_all
from rallebench.tracking.connection import (
    EXPERIMENT,
    MlflowStore,
    mlflow_errors,
    open_store,
    without_credentials,
)
from rallebench.tracking.links import MlflowLink, read_link, write_link
from rallebench.tracking.metrics import cost_tags, headlines, metrics_table
from rallebench.tracking.trace_store import most_traces, write_traces
from rallebench.tracking.traces import Trace, TraceRecord, record
from rallebench.tracking.view import OUR_PAGE, our_address

TABLE, FIGURES = "per_question.json", "metrics.json"
"""The artifacts that MLflow shows as tables: the questions, and all figures of the run."""

STEP_CHARACTERS = 8_000_000
"""Roughly the most characters of steps in a run's traces, besides those that always have them. Further traces have the
question and the answer only."""

COPIED = (REPORT, COSTS, "output.jsonl", "output_reduced.jsonl", "results.json", "prompt.txt")
"""Files of a run folder that become artifacts unchanged."""

TITLE = "rallebench.title"
"""The tag with the title that was last logged."""

_PER_BATCH = {"metrics": 800, "params": 100, "tags": 100}
"""MLflow accepts 100 params, 100 tags and 1,000 values in total per batch."""


def log_run(
    run_folder: Path,
    *,
    workspace: Path,
    tracking_uri: str | None = None,
    title: str = "",
    waterfall: Waterfall | None = None,
    page: str = OUR_PAGE,
) -> str:
    """Log a run folder and return the MLflow run's id. Logging it again updates the same MLflow run.

    ``tracking_uri`` None means ``MLFLOW_TRACKING_URI``, or else ``mlflow.db`` in the workspace.
    ``title``: the name of the MLflow run; by default the folder's. ``waterfall``: the stage at which each question was lost.
    ``page``: the address of our page, to which the description links.
    Raises BadFileError for a folder without a run and BackendError if MLflow cannot be reached or
    written; the folder's results stay unchanged.
    """
    logger = _RunLogger(RunFolder(run_folder), title, waterfall, page)
    name = logger.folder.name
    refusal = f"The run {name!r} is being logged by another process; wait for it."
    try:
        with alone(logger.folder.path / "mlflow.lock", refusal, patience=60, stays=True):
            store = open_store(workspace, tracking_uri)
            with mlflow_errors(store.uri):
                return logger.log(store)
    except (BadFileError, MissingPackageError):
        raise
    except RalleError as error:
        raise error.saying(
            f"{error} The results are safe in {name}.", Hint("track", name)
        ) from error


def logged_before(store: MlflowStore, link: MlflowLink | None) -> MlflowLink | None:
    """Return the folder's link if its run is still in the store, otherwise None."""
    for entry in link.every if link else ():
        if active(store.client, entry.run_id) is not None:
            return entry
    return None


def active(client: Any, run_id: str) -> Any:
    """Return an MLflow run; None if it does not exist or was deleted."""
    try:
        run = client.get_run(run_id)
    except Exception as error:
        if getattr(error, "error_code", "") == "RESOURCE_DOES_NOT_EXIST":
            return None
        raise
    return run if run.info.lifecycle_stage == "active" else None


def log_values(
    client: Any,
    run_id: str,
    metrics: Mapping[str, float],
    tags: Mapping[str, str],
    params: Mapping[str, str] | None = None,
    artifact: str = RUN,
) -> None:
    """Log metrics, tags and params in batches; ``artifact`` has the full text of a shortened tag."""
    from mlflow.entities import Metric, Param, RunTag

    now = int(time.time() * 1000)
    entries = {
        "metrics": [Metric(key, value, now, 0) for key, value in metrics.items()],
        "params": [Param(key, value) for key, value in (params or {}).items()],
        "tags": [
            RunTag(key, content.cut(content.clean(value), artifact)) for key, value in tags.items()
        ],
    }
    while any(entries.values()):
        client.log_batch(run_id, **{kind: entries[kind][:n] for kind, n in _PER_BATCH.items()})
        entries = {kind: entries[kind][n:] for kind, n in _PER_BATCH.items()}


class _RunLogger:
    """One call of ``log_run``. Everything is read before MLflow is contacted."""

    store: MlflowStore

    def __init__(
        self, folder: RunFolder, title: str, waterfall: Waterfall | None, page: str
    ) -> None:
        self.folder, self.page = folder, page
        self.title = content.clean(title or folder.name)
        self.run = folder.description()
        self.chain = self.run.chain
        self.times = _session_times(folder)
        self.records, self.episodes = folder.records(), folder.episodes()
        scored = folder.report()
        self.report = scored or RunReport()
        self.metrics = headlines(scored) if scored else {}
        names, scores = content.by_question(folder.scores())
        _, of_traces = content.by_question(folder.own_scores())
        self.questions = content.per_question(self.records, self.episodes, names, scores)
        self.figures = metrics_table(self.report, waterfall)
        self.assessor = Assessor(
            self.run.dataset,
            [name for name in names if name not in COST_METRICS],
            of_traces,
            judge_remarks(folder, self.report),
            {place.qid: place.stage for place in waterfall.placed} if waterfall else {},
            labels=book_of_run(folder),
        )

    def log(self, store: MlflowStore) -> str:
        """Log everything and return the MLflow run's id. Run ids are unique, so a moved workspace finds its own
        runs.
        """
        self.store = store
        times = self.times.values()
        now = time.time()
        link = read_link(self.folder.path)
        logged = logged_before(store, link)
        if logged is None:
            start = int(min((start for start, _ in times), default=now) * 1000)
            run = store.client.create_run(
                store.experiment_id, start_time=start, run_name=self.title
            )
            logged = MlflowLink(str(run.info.run_id))
        run_id = logged.run_id
        place = without_credentials(store.uri)
        entry = replace(
            logged,
            tracking_uri=place,
            experiment=EXPERIMENT,
            experiment_id=store.experiment_id,
            earlier=(),
        )
        write_link(self.folder.path, entry, link)
        self._log_values(run_id)
        self._log_dataset(run_id)
        self._log_artifacts(run_id)
        write_link(self.folder.path, self._log_traces(entry), link)
        end = int(max((end for _, end in times), default=now) * 1000)
        store.client.set_terminated(run_id, self._status(), end)
        return run_id

    def _status(self) -> str:
        """Return MLflow's status: KILLED for runs that were stopped or have no scores."""
        if not self.report.complete:
            return "KILLED"
        failed = self.report.n and self.report.n_errors == self.report.n
        return "FAILED" if failed else "FINISHED"

    def _log_values(self, run_id: str) -> None:
        """Log metrics, tags and params. MLflow's params never change, so a changed value becomes a tag.

        The run's name follows the title unless it was changed in MLflow or by a group.
        """
        before = self.store.client.get_run(run_id)
        logged = before.data.params
        named = before.data.tags.get(TITLE, self.folder.name)
        if before.info.run_name == named != self.title:
            self.store.client.update_run(run_id, name=self.title)
        params = content.params(self.run)
        changed = {
            f"changed.{key}": value
            for key, value in params.items()
            if logged.get(key, value) != value
        }
        counts = (
            f"{len(self.episodes)} of {len(self.records)} questions of {self.run.dataset} "
            f"answered, {self.report.n_errors} failed."
        )
        notes = filter(None, [counts, content.cut_note(len(self.episodes))])
        link = f"[Open in rallebench]({our_address(self.page, self.folder.name)})"
        tags = {
            "mlflow.source.name": "rallebench",
            "mlflow.note.content": f"{' '.join(notes)}\n\n{link}",
            "mlflow.loggedArtifacts": json.dumps(
                [{"path": path, "type": "table"} for path in (FIGURES, TABLE)]
            ),
            "rallebench.run": self.folder.name,
            TITLE: self.title,
            "rallebench.fingerprint": self.run.fingerprint,
            "rallebench.complete": str(self.report.complete).lower(),
            **cost_tags(self.report.cost),
            **{
                key: value
                for key, value in _mark_tags(self.folder).items()
                if value or key in before.data.tags
            },
            **prompts.register(self.store, self.chain),
            **changed,
        }
        new = {key: value for key, value in params.items() if key not in logged}
        log_values(self.store.client, run_id, self.metrics, tags, new)

    def _log_dataset(self, run_id: str) -> None:
        """Log the dataset as the run's input. MLflow stores a dataset with the same name and digest only once."""
        from mlflow.entities import Dataset, DatasetInput, InputTag

        if fields := content.dataset_fields(self.run):
            tags = {"mlflow.data.context": "eval", "rallebench.questions": str(len(self.records))}
            input_tags = [InputTag(key, value) for key, value in tags.items()]
            self.store.client.log_inputs(run_id, [DatasetInput(Dataset(**fields), input_tags)])

    def _log_artifacts(self, run_id: str) -> None:
        config = self.folder.path / "config.json"
        with tempfile.TemporaryDirectory(prefix="rallebench-") as folder:
            target = Path(folder)
            content.write(target / RUN, content.without_secrets(self.run.to_json()))
            if config.exists():
                content.write(target / config.name, content.without_secrets(read_json(config)))
            if self.chain:
                saved = content.without_secrets(chain_to_json(self.chain))
                content.write(target / "chain.json", saved)
            for number, action in enumerate(self.chain.actions if self.chain else (), 1):
                text = content.clean(action.template)
                write_text(target / "templates" / f"action-{number}.txt", text)
            content.write(target / FIGURES, self.figures.to_json(), indent=None)
            content.write(target / TABLE, self.questions.to_json(), indent=None)
            self.store.client.log_artifacts(run_id, folder)
        for name in COPIED:
            if (self.folder.path / name).exists():
                self.store.client.log_artifact(run_id, str(self.folder.path / name))

    def _log_traces(self, link: MlflowLink) -> MlflowLink:
        """Write the traces that are new or have new assessments; return the run's link with them."""
        most = most_traces(self.store)
        traces = list(self._traces(link.run_id, most))
        assessed = digest_all((trace.trace_id, trace.assessments) for trace in traces)
        known = frozenset(link.traces) if assessed == link.assessed else frozenset()
        write_traces(self.store, [trace for trace in traces if trace.trace_id not in known])
        ids = dict.fromkeys([*link.traces, *(trace.trace_id for trace in traces)])
        return replace(link, traces=tuple(ids), assessed=assessed)

    def _traces(self, run_id: str, most: int) -> Iterator[TraceRecord]:
        seed, room = self.run.spec.seed, STEP_CHARACTERS
        records = {str(record["id"]).strip(): record for record in self.records}
        chosen = content.choose_traced(self.episodes, seed, most)
        sample = content.choose_traced({qid: self.episodes[qid] for qid in chosen}, seed)
        whole, ordered = frozenset(sample), dict.fromkeys([*sample, *chosen])
        assessor = self.assessor.within_limit({qid: records.get(qid, {}) for qid in ordered})
        for qid in chosen:
            times, question = self.times.get(qid), records.get(qid, {})
            trace = Trace(
                self.episodes[qid],
                content.question_text(question),
                ended=times[1] if times else None,
                run_id=run_id,
                name=self.chain.name if self.chain else "",
                tags={"rallebench.source": "benchmark", "rallebench.run": self.folder.name},
                prices=self.run.prices,
                assessments=assessor.assess(question, self.episodes[qid]),
            )
            traced = record(trace, steps=room > 0 or qid in whole)
            room -= 0 if qid in whole else sum(span.size for span in traced.spans)
            yield traced


def _mark_tags(folder: RunFolder) -> dict[str, str]:
    """Return the user's tags and note as MLflow's tags."""
    with contextlib.suppress(BadFileError):
        marks = read_marks(folder)
        return {"rallebench.tags": ", ".join(marks.tags), "rallebench.note": marks.note}
    return {}


def _session_times(folder: RunFolder) -> dict[str, tuple[float, float]]:
    """Question id → (start of its session, end of its episode) in seconds since 1970; imported answers have none."""
    times = {}
    for qid, head in folder.heads().items():
        with contextlib.suppress(ValueError):
            start = float(head.session)
            times[qid] = (start, start + head.elapsed)
    return times
