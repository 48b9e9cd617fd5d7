"""The questions of one run with verdict and answer, filtered and counted.

A list of twenty thousand questions must be fast, so answers and exact match are read from the beginning of each line,
without the steps. The stage of a wrong answer is known only after ``read_stages`` has read the steps; its results are
cached.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from rallebench.analysis.question_clusters import slice_ids
from rallebench.analysis.waterfall import run_waterfall
from rallebench.core.declining import accepted_answers
from rallebench.core.errors import RalleError, UsageError
from rallebench.core.failures import is_slice
from rallebench.core.files import read_object, write_json
from rallebench.core.folding import fold
from rallebench.core.memory import pause_collector
from rallebench.core.types import Episode, Example, Outcome, digest
from rallebench.core.waterfall import AT_STAGE, SHORT, STAGES, UNKNOWN, verdict_kind
from rallebench.datasets.kilt import read_gold, record_id
from rallebench.engine.metric_choice import stored_metrics
from rallebench.engine.score import read_example
from rallebench.engine.store import RunFolder, list_runs
from rallebench.metrics import METRICS
from rallebench.views.dataset_changes import changed_questions
from rallebench.workspace.coverage import MOST_PASSAGES
from rallebench.workspace.paths import WorkspaceFolder

WRONG = frozenset({"wrong", "lost", "format", "failed"})
TODO = "not_asked"
"""Stage of a question that has not been asked yet."""
LARGE = 5_000
"""With more questions than this, the steps are not read while a page is waiting."""


@dataclass(frozen=True, slots=True)
class QuestionRow:
    """A question of a run. ``kind``: the verdict; ``stage``: stage of the waterfall, TODO, or "" while unknown;
    ``gold``: the first accepted answer; ``at``: where its episode is stored, see ``EpisodeHead``.
    """

    qid: str
    text: str
    gold: str
    answer: str
    kind: str
    stage: str
    at: int | None = None


def answers_version(run: RunFolder) -> tuple[int, ...]:
    """Return numbers that change with the questions, answers or scores of a run."""
    files = ("episodes.jsonl", "scores.jsonl", "questions.jsonl")
    stats = [(run.path / name).stat() if (run.path / name).exists() else None for name in files]
    return tuple(x for s in stats for x in ((s.st_mtime_ns, s.st_size) if s else (0, 0)))


def _stages_file(workspace: WorkspaceFolder, run: RunFolder) -> Path:
    return workspace.stages / f"{digest([run.name, *answers_version(run)])[:24]}.json"


def questions(workspace: WorkspaceFolder, run: RunFolder) -> Sequence[QuestionRow]:
    """Return all answered, failed and remaining questions of a run, in order."""
    file = _stages_file(workspace, run)
    return _questions(str(run.path), answers_version(run), str(file), file.exists())


@lru_cache(maxsize=4)
def _records(path: str, version: tuple[int, ...]) -> Mapping[str, Mapping[str, Any]]:
    run = RunFolder(Path(path))
    where = str(run.questions_file)
    return {record_id(record, where): record for record in run.records()}


def example(run: RunFolder, qid: str) -> Example:
    """Return a question of a run with its gold. Raises UsageError if the run does not have it."""
    record = _records(str(run.path), answers_version(run)[-2:]).get(qid)
    if record is None:
        raise UsageError(f"The run {run.name!r} has no question {qid!r}; choose one of its list.")
    return read_example(record, run.questions_file)


@lru_cache(maxsize=4)
@pause_collector()
def _questions(
    path: str, version: tuple[int, ...], stages_file: str, known: bool
) -> tuple[QuestionRow, ...]:
    run = RunFolder(Path(path))
    heads = run.heads()
    right = {score.qid: score.value for score in run.own_scores("em")}
    stages: Mapping[str, str] = read_object(Path(stages_file)) if known else {}
    chain = run.description().chain
    answers = chain is None or chain.produces_answer
    # scored at the end of the run
    unscored = answers and run.state().state != "done" and "em" in stored_metrics(run)
    listed, where = [], str(run.questions_file)
    for qid, record in _records(path, version[-2:]).items():
        head, gold = heads.get(qid), read_gold(record, where)
        stage = stages.get(qid, "") if head else TODO
        error, answer = (head.error, head.answer) if head else ("", "")
        em = right.get(qid)
        if head and em is None and unscored:
            em = METRICS["em"](Episode(qid, "", (), Outcome(answer)), gold)
        kind = verdict_kind(error, em, stage) if head else "none"
        first = next(iter(accepted_answers(gold)), "")
        at = head.at if head else None
        listed.append(QuestionRow(qid, record["input"], first, answer or error, kind, stage, at))
    return tuple(listed)


def stages_known(workspace: WorkspaceFolder, run: RunFolder) -> bool:
    """Return whether the stages at which questions were lost are known."""
    return _stages_file(workspace, run).exists()


def read_stages(workspace: WorkspaceFolder, run: RunFolder) -> None:
    """Read the steps of all answers and cache the stage at which each question was lost."""
    result = run_waterfall(run, workspace, at_most=MOST_PASSAGES)
    file = _stages_file(workspace, run)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_json(file, {placed.qid: placed.stage for placed in result.placed})
    except (OSError, RalleError):  # a read-only workspace: nothing is cached
        return


def filter_questions(listed: Sequence[QuestionRow], only: str, words: str) -> list[QuestionRow]:
    """Return the questions of one verdict or stage with all words in question, gold or answer."""
    terms = fold(words).split()
    return [
        row
        for row in listed
        if (not only or only in (row.kind, row.stage) or (only == "wrong" and row.kind in WRONG))
        and all(w in fold(f"{row.qid} {row.text} {row.gold} {row.answer}") for w in terms)
    ]


def question_ids(
    workspace: WorkspaceFolder, run: RunFolder, only: str, words: str = ""
) -> list[str]:
    """Return the ids of the questions that pass a filter, a verdict, a stage or a group of questions; the steps are read if the
    filter needs them. Raises UsageError, NotFoundError for an unknown group."""
    if is_slice(only):
        return [row.qid for row in filter_slice(workspace, run, only, words)]
    if only not in ("", "wrong", "right", "failed") and not stages_known(workspace, run):
        read_stages(workspace, run)
    return [row.qid for row in filter_questions(questions(workspace, run), only, words)]


def filter_slice(
    workspace: WorkspaceFolder, run: RunFolder, key: str, words: str
) -> list[QuestionRow]:
    """Return the questions of a group with all words. Raises UsageError, NotFoundError for an unknown group."""
    ids = slice_ids(workspace, run, key)
    return [row for row in filter_questions(questions(workspace, run), "", words) if row.qid in ids]


def counts(listed: Sequence[QuestionRow]) -> dict[str, int]:
    """Verdict → number of questions; ``""`` counts all, ``wrong`` all that are not right."""
    kinds = Counter(row.kind for row in listed)
    return {"": len(listed), **kinds, "wrong": sum(kinds[kind] for kind in WRONG)}


def lost_parts(listed: Sequence[QuestionRow]) -> list[tuple[str, str, int]]:
    """Return (verdict, label, questions) for each part of the bar of lost questions, from left to right. ``unread``:
    wrong, stage still unknown; ``todo``: not asked yet.
    """
    by_stage = Counter(row.stage or row.kind for row in listed)
    parts: dict[str, list[str]] = {}
    sums: Counter[str] = Counter()
    names = {**SHORT, "wrong": "wrong", TODO: "not asked yet"}
    unplaced = {"wrong": "unread", TODO: "todo"}
    for stage in (*STAGES, *unplaced):
        kind = unplaced.get(stage) or AT_STAGE.get(stage, UNKNOWN)[0]
        if by_stage[stage]:
            sums[kind] += by_stage[stage]
            parts.setdefault(kind, []).append(f"{by_stage[stage]:,} {names[stage]}")
    order = ("failed", "lost", "unread", "wrong", "format", "none", "right", "todo")
    return [(kind, ", ".join(parts[kind]), sums[kind]) for kind in order if sums[kind]]


def run_lost_parts(workspace: WorkspaceFolder, run: RunFolder) -> Sequence[tuple[str, str, int]]:
    """Return ``lost_parts`` of a whole run; a list of runs asks for many of them again and again."""
    file = _stages_file(workspace, run)
    return _run_lost_parts(str(run.path), answers_version(run), str(file), file.exists())


@lru_cache(maxsize=20_000)
def _run_lost_parts(
    path: str, version: tuple[int, ...], stages_file: str, known: bool
) -> tuple[tuple[str, str, int], ...]:
    return tuple(lost_parts(_questions(path, version, stages_file, known)))


def open_question(
    workspace: WorkspaceFolder, run: RunFolder, qid: str
) -> tuple[Example, Episode | None]:
    """Return a question of a run with its episode, without reading the others. Raises UsageError."""
    places = (row.at for row in questions(workspace, run) if row.qid == qid)
    return example(run, qid), run.find_episode(qid, next(places, None))


def last_verdicts(
    workspace: WorkspaceFolder, dataset: str, chain: str
) -> Mapping[str, tuple[str, str]]:
    """Question id → (verdict, answer) of a chain's newest scored run on a dataset; {} if there is none. A question that
    changed since has no verdict.
    """
    for run in list_runs(workspace.runs):
        try:
            stored = run.description()
            own = stored.chain
            same = own is not None and (stored.dataset, own.name) == (dataset, chain)
            if same and run.report() is not None:
                changed = changed_questions(workspace, run)
                return {
                    row.qid: (row.kind, row.answer)
                    for row in questions(workspace, run)
                    if row.qid not in changed
                }
        except (RalleError, LookupError):
            continue
    return {}
