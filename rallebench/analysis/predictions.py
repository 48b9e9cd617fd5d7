"""Import another program's predictions as a run, which is then scored and compared like any other run.

``prediction_files`` has the forms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rallebench.analysis import trec
from rallebench.analysis.prediction_files import (
    COLUMNS,
    READERS,
    RUNS,
    Prediction,
    detect_form,
)
from rallebench.core.errors import BadFileError, Hint, UsageError
from rallebench.core.files import sha256_file
from rallebench.core.numbers import plural
from rallebench.core.readers import naming
from rallebench.core.runs import RunRequest, imported_flow
from rallebench.core.sources import Problems, Source
from rallebench.core.types import (
    Episode,
    Example,
    Hit,
    Note,
    Outcome,
    Passage,
    Reply,
    Retrieve,
    Step,
)
from rallebench.datasets.reading import read_questions
from rallebench.engine.execute import write_run
from rallebench.engine.experiment_store import check_free
from rallebench.engine.metric_choice import choose_metrics
from rallebench.engine.store import RunFolder, checked_run_name
from rallebench.metrics import metric
from rallebench.metrics.recorded import IMPORTED, RunEvidence, missing_evidence
from rallebench.workspace.paths import WorkspaceFolder

MAX_EXAMPLES, MAX_ID = 5, 60
"""Maximum number of identifiers in a sentence, and of characters in each."""


@dataclass(frozen=True, slots=True)
class ImportedRun:
    """A run made from a file. ``silent``: number of questions without a row in a run of pages; ``source``: the file with its
    bad rows and warnings."""

    run: RunFolder
    silent: int
    source: Source


def import_run(
    workspace: WorkspaceFolder,
    file: Path,
    dataset: str,
    name: str,
    *,
    form: str = "",
    skip_bad: bool = False,
) -> ImportedRun:
    """Import ``file`` as the run ``name`` and score it.

    ``skip_bad``: leave out bad rows, also with an unknown or repeated id. A question without a prediction counts as failed; in
    a run of pages it counts as answered with no hits and scores 0. Raises UsageError and BadFileError before anything is
    written.
    """
    name = checked_run_name(name)
    check_free(workspace.path, "run", name)
    dataset_name, path = workspace.dataset(dataset)
    examples = read_questions(path)
    form = form or detect_form(file)
    if form not in READERS:
        raise UsageError(f"There is no form {form!r} of predictions; known: {', '.join(READERS)}.")
    source = Source(file, Problems(skip=skip_bad, offered=True))
    with naming(file, form):
        rows = list(READERS[form](source))
    if form in COLUMNS:
        rows = _decode_ids(rows, examples)
    qids = {example.question.qid for example in examples}
    predictions = _check_predictions(rows, qids, source, dataset_name)
    silent = [qid for qid in qids if qid not in predictions] if form in RUNS else []
    predictions |= {qid: Prediction(0, qid, None, ()) for qid in silent}
    # If all lists are empty, nothing was retrieved.
    any_pages = any(prediction.pages for prediction in predictions.values())
    episodes = [
        _episode(example, predictions.get(example.question.qid), file.name, any_pages)
        for example in examples
    ]
    settings = {"file": file.name, "sha256": sha256_file(file)}
    request = RunRequest(
        imported_flow(IMPORTED, settings),
        workspace.dataset_ref(dataset),
        examples,
        _metrics(episodes, examples, dataset_name),
        name=name,
    )
    return ImportedRun(write_run(workspace.runs, request, episodes), len(silent), source)


def _decode_ids(rows: Sequence[Prediction], examples: Sequence[Example]) -> list[Prediction]:
    """Return the rows of a run with their ids as the dataset writes them."""
    qids = {example.question.qid for example in examples}
    golds = [example.gold for example in examples]
    known = frozenset[str]().union(*(ids for gold in golds for ids in (gold.pages, *gold.passages)))
    return [
        replace(
            row,
            qid=trec.decode_id(row.qid, qids),
            pages=tuple((trec.decode_id(page, known), score) for page, score in row.pages or ()),
        )
        for row in rows
    ]


def _check_predictions(
    rows: list[Prediction], qids: set[str], source: Source, dataset: str
) -> dict[str, Prediction]:
    """Question → its first prediction. Others are refused, or named in a warning if bad rows are left out."""
    file, problems = source.path, source.problems
    accepted: dict[str, Prediction] = {}
    bad: dict[str, list[Prediction]] = {f"that {dataset} does not have": [], "repeated": []}
    unknown, repeated = bad.values()
    for row in rows:
        if row.qid not in qids:
            unknown.append(row)
        elif accepted.setdefault(row.qid, row) is not row:
            repeated.append(row)
    if not rows:
        first = f"only bad rows, the first: {problems.first[0].message}" if problems.first else ""
        mend = first or "give a file with one prediction a line."
        raise UsageError(f"{file} holds no prediction; {mend}")
    if not accepted:
        raise UsageError(
            f"No id of {file} is a question of {dataset}; give the dataset that it answers."
        )
    for fault, refused in bad.items():
        if not refused:
            continue
        named = [
            f"{row.qid[:MAX_ID]!r} in {source.unit} {row.line}" for row in refused[:MAX_EXAMPLES]
        ]
        more = len(refused) - len(named)
        examples = ", ".join(named) + (f" and {more:,} more" if more else "")
        ids = f"{plural(len(refused), 'id')} {fault}: {examples}"
        if not problems.skip:
            raise BadFileError(f"{file} has {ids}; mend them.", hint=Hint("skip-bad"))
        problems.warnings.append(f"{file.name} has {ids}; left out.")
    return accepted


def _metrics(
    episodes: Sequence[Episode], examples: tuple[Example, ...], dataset: str
) -> tuple[str, ...]:
    """Return the metrics that the predictions can be scored by."""
    answered = [episode for episode in episodes if not episode.error]
    run = RunEvidence.of(answered)
    names = tuple(
        name
        for name in choose_metrics(None, examples, dataset)
        if any(not missing_evidence(episode, metric(name), run) for episode in answered)
    )
    if not names:
        raise UsageError(f"The file holds neither answers nor pages that {dataset} has a gold for.")
    return names


def _episode(
    example: Example, prediction: Prediction | None, file: str, any_pages: bool
) -> Episode:
    qid = example.question.qid
    pages = prediction.pages if prediction is not None and any_pages else None
    if prediction is None or (prediction.answer is None and pages is None):
        return Episode(qid, IMPORTED, (), None, f"{file} holds no prediction for this question.")
    steps = []
    if pages is not None:
        hits = tuple(Hit(Passage(page, "", "", page), score) for page, score in pages)
        request = Retrieve(file, example.question.text, len(hits))
        steps.append(Step(request, Reply("; ".join(page for page, _ in pages), hits)))
    if prediction.answer is not None:
        steps.append(Step(Note(prediction.answer), Reply(prediction.answer)))
    return Episode(qid, IMPORTED, tuple(steps), Outcome(prediction.answer or ""))
