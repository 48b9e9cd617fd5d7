"""Runs whose dataset was edited since: the number of changed questions, and which they are."""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from rallebench.core.dataset_edits import DatasetChanges, compare_questions, question_key
from rallebench.core.errors import RalleError
from rallebench.core.files import sha256_file
from rallebench.core.sources import stamps
from rallebench.datasets.reading import read_questions
from rallebench.engine.score import stored_examples
from rallebench.engine.store import RunFolder
from rallebench.workspace.paths import WorkspaceFolder

Version = tuple[tuple[str, int, int], ...]
NO_CHANGES = DatasetChanges(0)


def dataset_changes(workspace: WorkspaceFolder, run: RunFolder) -> DatasetChanges:
    """Compare the questions of a run with its dataset as it is now; no changes if the dataset cannot be read."""
    with suppress(RalleError, OSError):
        stored = run.description()
        path = workspace.dataset(stored.dataset_source)[1]
        version = tuple(stamps(path))
        if path.is_file() and _sha256(path, version) != stored.dataset_sha256:
            is_part = stored.spec.limit is not None or stored.is_sampled
            changes = _compare(
                str(run.path), _size(run), path, version, is_part or not stored.dataset_sha256
            )
            # Questions given as values may share only the name of a dataset.
            return changes if stored.dataset_sha256 or changes.same else NO_CHANGES
    return NO_CHANGES


def changed_questions(workspace: WorkspaceFolder, run: RunFolder) -> frozenset[str]:
    """Return the ids of a run's questions that have another text or gold in the dataset by now."""
    if not dataset_changes(workspace, run).changed:
        return frozenset()
    examples = workspace.questions(run.description().dataset_source)
    keys = {example.question.qid: question_key(example) for example in examples}
    old = {example.question.qid: question_key(example) for example in stored_examples(run)}
    return frozenset(qid for qid, key in old.items() if keys.get(qid, key) != key)


def _size(run: RunFolder) -> tuple[int, int]:
    """Key that changes when a run gets further questions."""
    state = run.questions_file.stat()
    return state.st_mtime_ns, state.st_size


@lru_cache(maxsize=256)
def _sha256(path: Path, version: Version) -> str:
    return sha256_file(path)


@lru_cache(maxsize=1024)
def _compare(
    run: str,
    size: tuple[int, int],
    path: Path,
    version: Version,
    part: bool,
) -> DatasetChanges:
    return compare_questions(stored_examples(RunFolder(Path(run))), read_questions(path), part=part)
