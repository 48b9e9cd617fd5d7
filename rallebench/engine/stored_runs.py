"""Stored runs, read: whether each is complete, its request, its result and its judges' columns."""

from __future__ import annotations

import json
from collections.abc import Container, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rallebench.chains.saved import chain_from_json
from rallebench.core.errors import BadFileError, RalleError
from rallebench.core.own_files import damaged
from rallebench.core.runs import DatasetRef, Rates, RunRequest, RunResult, imported_flow
from rallebench.core.tables import Mean
from rallebench.core.types import Chain, Episode
from rallebench.engine.run_shapes import RUN_MEND
from rallebench.engine.score import examples_of
from rallebench.engine.store import JUDGES, RUN, RunFolder


def stored_request(run: RunFolder) -> RunRequest:
    """The request of a stored run as far as scoring needs it: its questions, and its own columns as they were scored."""
    spec = run.spec()
    rates = stored_rates(run, run.report() or {})
    inner = spec["spec"]
    return RunRequest(
        imported_flow(inner["workflow"], inner["settings"]),
        DatasetRef(inner["dataset"], spec.get("dataset_file", "")),
        examples_of(run),
        rates=rates,
        limit=inner["limit"],
        seed=inner["seed"],
        name=run.name,
    )


def chain_of(run: RunFolder, spec: Mapping[str, Any]) -> Chain | None:
    """The chain in a run's ``run.json``, None if it was not made by one. Raises BadFileError."""
    chain = spec["spec"]["settings"].get("chain")
    try:
        return chain_from_json(chain) if chain else None
    except RalleError as error:
        raise damaged(run.path / RUN, RUN_MEND, str(error).rstrip(".")) from None


def stored_rates(
    run: RunFolder, report: Mapping[str, Any], only: Container[str] | None = None
) -> Rates:
    """A run's own columns, or ``only`` some of them, as they were scored."""
    definitions = report.get("definitions") or {}
    columns = {c: text for c, text in definitions.items() if only is None or c in only}
    values: dict[str, dict[str, float | None]] = {}
    for line in run.scores() if columns else ():
        if line["metric"] in columns:
            values.setdefault(line["qid"], {})[line["metric"]] = line["value"]
    ranges = report.get("ranges") or {}
    return Rates(
        columns,
        lambda example, episode: values.get(episode.qid, {}),
        {c: (ranges[c][0], ranges[c][1]) for c in columns if c in ranges},
    )


def with_stored_judges(
    run: RunFolder, request: RunRequest, judges: Mapping[str, Any]
) -> tuple[RunRequest, dict[str, Any], tuple[str, ...]]:
    """The request and the report's judges with those of an earlier scoring, and a warning if theirs are damaged.

    Earlier judges are not asked again. Their scores stay, unless a judge of this request has the same columns, even if it failed.
    """
    own = {column for judge in request.judges for column in judge.columns}
    try:
        report = run.report() or {}
        earlier = {
            name: summary
            for name, summary in (report.get("judges") or {}).items()
            if name not in judges and own.isdisjoint(summary.get("columns", ()))
        }
        names = {c for of in earlier.values() for c in of.get("columns", ())}
        names -= request.rates.columns.keys()
        stored = stored_rates(run, report, names)
    except BadFileError as error:
        if not (run.path / JUDGES).exists():
            return request, dict(judges), ()
        lost = f"The earlier judges' scores are lost ({error}); score the run by its judges again."
        return request, dict(judges), (lost,)
    if names:
        request = replace(request, rates=request.rates.joined(stored))
    return request, {**earlier, **judges}, ()


def is_complete(run: RunFolder, request: RunRequest) -> bool:
    """Return whether a run has ended with an answer to each question of ``request``."""
    if run.state()["state"] != "done":
        return False
    answered = {qid for qid, head in run.heads().items() if not head.get("error")}
    return answered.issuperset(question.qid for question in request.questions)


def result_of(
    request: RunRequest,
    run: RunFolder,
    report: Mapping[str, Any],
    memory: Mapping[str, Any] | None = None,
) -> RunResult:
    """A scored run as a result. The episodes are read when they are first needed.

    Raises LookupError or TypeError for a report that lacks the request's own metrics.
    """
    columns = request.rates.columns
    values: dict[str, dict[str, float | None]] = {name: {} for name in columns}
    if columns:
        failed = {qid for qid, head in run.heads().items() if head.get("error")}
        for score in run.scores():
            if score["metric"] in values and score["qid"] not in failed:
                values[score["metric"]][score["qid"]] = score["value"]
    means = {name: Mean(**mean) for name, mean in report["suite"].items()} if columns else {}
    return RunResult(
        request,
        run.name,
        StoredEpisodes(run, request),
        values,
        means,
        report["n"],
        report["n_errors"],
        report.get("seconds", 0.0),
        report,
        memory={
            name: size["ram"] + size["vram"]
            for name in request.flow.names
            if (size := (memory or {}).get(name)) is not None
        },
        peak_memory=run.state().get("peak_memory"),
        judgements={
            name: StoredEpisodes(RunFolder(run.path / summary["run"]), request)
            for name, summary in (report.get("judges") or {}).items()
        },
    )


class StoredEpisodes(Mapping[str, Episode]):
    """The episodes of a run that did not fail, by question id, in the order asked; read at the first use."""

    def __init__(self, run: RunFolder, request: RunRequest) -> None:
        self._run, self._request = run, request
        self._episodes: dict[str, Episode] | None = None

    def _read(self) -> dict[str, Episode]:
        if self._episodes is None:
            stored = self._run.episodes()
            self._episodes = {
                question.qid: stored[question.qid]
                for question in self._request.questions
                if question.qid in stored and not stored[question.qid].error
            }
        return self._episodes

    def __getitem__(self, qid: str) -> Episode:
        return self._read()[qid]

    def __iter__(self) -> Iterator[str]:
        return iter(self._read())

    def __len__(self) -> int:
        return len(self._read())


def ended_result(runs: Path, request: RunRequest) -> RunResult | None:
    """The run of that name if all its questions are answered and scored, failed ones included; else None."""
    run = RunFolder(runs / request.name)
    if not run.path.exists() or not is_ended(run):
        return None
    report = run.report() or {}
    if report.get("n") != len(request.examples):  # it is to be grown
        return None
    return replace(result_of(request, run, report), reused=True)


def is_ended(run: RunFolder) -> bool:
    """Return whether all questions of a run are answered and scored, failed ones included."""
    report = run.report()
    return run.state()["state"] == "done" and bool(report and report["complete"])


def is_of(run: RunFolder, request: RunRequest) -> bool:
    """Return whether a stored run was made with the settings of ``request``; its models and indexes are not compared."""
    return request_spec(run) == spec_of(request)


def spec_of(request: RunRequest) -> dict[str, Any]:
    """The specification of a request as JSON, without the fingerprints of models and indexes."""
    return _without_backends(json.loads(json.dumps(request.spec({}).as_json())))


def request_spec(run: RunFolder) -> dict[str, Any]:
    """The same of a stored run."""
    return _without_backends(run.spec()["spec"])


def _without_backends(spec: Mapping[str, Any]) -> dict[str, Any]:
    settings = {key: value for key, value in spec["settings"].items() if key != "backends"}
    return {**spec, "settings": settings}


def stored_result(folder: RunFolder, request: RunRequest) -> RunResult | None:
    """A run as it is stored; None where it was never scored by the request's own metrics."""
    try:
        report = folder.report()
        return None if report is None else result_of(request, folder, report)
    except (RalleError, LookupError, TypeError):
        return None
