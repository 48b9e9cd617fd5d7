"""Stored runs: completeness, request, result and judges' columns."""

from __future__ import annotations

import json
from collections.abc import Container, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from rallebench.core.errors import BadFileError, RalleError
from rallebench.core.memory import Memory
from rallebench.core.report import JudgeReport, RunReport
from rallebench.core.runs import DatasetRef, RunRequest, RunResult, RunSpec, imported_flow
from rallebench.core.scoring import AnswerScorer, Values
from rallebench.core.types import Episode, Example
from rallebench.engine.score import stored_examples
from rallebench.engine.store import JUDGES, QUESTIONS, RunFolder, list_runs


def stored_request(run: RunFolder) -> RunRequest:
    """The request of a stored run, as far as scoring needs it: its questions, and its own columns with their stored
    scores."""
    stored = run.description()
    return RunRequest(
        imported_flow(stored.spec.workflow, stored.spec.settings),
        DatasetRef(stored.dataset, stored.dataset_file),
        stored_examples(run),
        scorers=(stored_scorer(run, run.report()),),
        limit=stored.spec.limit,
        seed=stored.spec.seed,
        name=run.name,
    )


def stored_scorer(
    run: RunFolder, report: RunReport | None, only: Container[str] | None = None
) -> AnswerScorer:
    """Return a scorer that reads the stored scores of a run's own columns, or ``only`` some of them."""
    own = report.own.values() if report else ()
    columns = tuple(r.column for r in own if only is None or r.column.name in only)
    names = {column.name for column in columns}
    values: dict[str, dict[str, float | None]] = {}
    for line in run.own_scores() if columns else ():
        if line.metric in names:
            values.setdefault(line.qid, {})[line.metric] = line.value

    def score(example: Example, episode: Episode) -> Values:
        return values.get(episode.qid, {})

    return AnswerScorer(columns, score, "stored")


def with_stored_judges(
    run: RunFolder, request: RunRequest, judges: tuple[JudgeReport, ...]
) -> tuple[RunRequest, tuple[JudgeReport, ...], tuple[str, ...]]:
    """Add the judges of an earlier scoring. Returns the request, the report's judges and a warning if these are damaged.

    Earlier judges are not played again. Their scores stay, unless a judge of this request has the same columns, even if it
    failed.
    """
    of_judges = {column.name for judge in request.judges for column in judge.columns}
    present = {judge.name for judge in judges}
    try:
        report = run.report()
        earlier = tuple(
            judge
            for judge in (report.judges if report else ())
            if judge.name not in present and of_judges.isdisjoint(judge.columns)
        )
        names = {column for judge in earlier for column in judge.columns}
        names -= {column.name for column in request.columns}
        stored = stored_scorer(run, report, names)
    except BadFileError as error:
        if not (run.path / JUDGES).exists():
            return request, judges, ()
        lost = f"The earlier judges' scores are lost ({error}); score the run by its judges again."
        return request, judges, (lost,)
    if names:
        request = replace(request, scorers=(*request.scorers, stored))
    return request, (*earlier, *judges), ()


def is_complete(run: RunFolder, request: RunRequest) -> bool:
    """Return whether a run has ended with an answer for each question of ``request``."""
    if run.state().state != "done":
        return False
    answered = {qid for qid, head in run.heads().items() if not head.error}
    return answered.issuperset(question.qid for question in request.questions)


def make_result(
    request: RunRequest,
    run: RunFolder,
    report: RunReport,
    memory: Mapping[str, Memory | None] | None = None,
) -> RunResult:
    """Return a scored run as a result. Its episodes are read when first needed.

    Raises LookupError for a report without the request's own columns; judges' columns may be absent.
    """
    columns = tuple(result.column for result in report.own.values())
    values: dict[str, dict[str, float | None]] = {column.name: {} for column in columns}
    if own := {c.name for s in request.scorers if not s.llms for c in s.columns} - values.keys():
        raise LookupError(f"The report has no {', '.join(sorted(own))}.")
    if columns:
        failed = {qid for qid, head in run.heads().items() if head.error}
        for score in run.scores():
            if score.metric in values and score.qid not in failed:
                values[score.metric][score.qid] = score.value
    return RunResult(
        request,
        run.name,
        StoredEpisodes(run, request),
        values,
        {name: result.estimate for name, result in report.own.items()},
        report.n,
        report.n_errors,
        report.seconds or 0.0,
        report,
        memory={
            name: size.ram + size.vram
            for name in request.flow.names
            if (size := (memory or {}).get(name)) is not None
        },
        peak_memory=run.state().peak_memory,
        judgements={
            judge.name: StoredEpisodes(RunFolder(run.path / judge.run), request)
            for judge in report.judges
        },
        columns=columns,
    )


class StoredEpisodes(Mapping[str, Episode]):
    """The episodes of a run without failed ones, by question id, in the order asked; read at the first use."""

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
    report = run.report()
    if report is None or report.n != len(request.examples):  # this run is not complete yet
        return None
    return replace(make_result(request, run, report), reused=True)


def is_ended(run: RunFolder) -> bool:
    """Return whether all questions of a run are answered and scored, failed ones included."""
    report = run.report()
    return run.state().state == "done" and report is not None and report.complete


def is_of(run: RunFolder, request: RunRequest) -> bool:
    """Return whether a stored run was made with the settings of ``request``; its models and indexes are not compared."""
    return stored_spec(run) == requested_spec(request)


def requested_spec(request: RunRequest) -> RunSpec:
    """The specification of a request as stored, without the fingerprints of models and indexes."""
    spec = request.spec({})
    return _without_backends(replace(spec, settings=json.loads(json.dumps(dict(spec.settings)))))


def stored_spec(run: RunFolder) -> RunSpec:
    """The specification of a stored run, without the fingerprints of models and indexes."""
    return _without_backends(run.description().spec)


def _without_backends(spec: RunSpec) -> RunSpec:
    settings = {key: value for key, value in spec.settings.items() if key != "backends"}
    return replace(spec, settings=settings)


def stored_result(folder: RunFolder, request: RunRequest) -> RunResult | None:
    """Return a run as it is stored; None if it was never scored by the request's own metrics."""
    try:
        report = folder.report()
        return None if report is None else make_result(request, folder, report)
    except (RalleError, LookupError):
        return None


def lost_with_questions(runs: Path, name: str, path: Path) -> str:
    """One sentence on the runs over a dataset and what they lose with it; '' without such runs."""
    users, unfinished = [], []
    for run in list_runs(runs):
        # A damaged run has lost its questions anyway.
        with suppress(RalleError):
            stored = run.description()
            if stored.dataset == name and stored.dataset_file in ("", str(path)):
                users.append(run)
                unfinished += [run.name] if run.state().state != "done" else []
    if not users:
        return ""
    many = len(users) > 1
    counted = (
        f"{len(users)} runs that asked it keep their" if many else "1 run that asked it keeps its"
    )
    lost = f"; {', '.join(unfinished)} can no longer be resumed" if unfinished else ""
    files = [run.path / QUESTIONS for run in users]
    longest = max(files, key=lambda path: path.stat().st_size if path.exists() else 0)
    return f"{counted} questions, answers and scores{lost}. Those questions can still be asked: {longest}."


def is_agents(folder: RunFolder) -> bool:
    """Return whether an agent made the run. Raises BadFileError."""
    return folder.description().agent is not None
