"""Groups of the questions of a run, by meaning or by question word: their file in the cache, and the questions of each."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from rallebench.analysis.question_words import question_word
from rallebench.core.errors import NotFoundError, RalleError, UsageError
from rallebench.core.failures import MEANING, WORD, QuestionClusters
from rallebench.core.files import read_object
from rallebench.core.own_files import parse
from rallebench.core.types import digest
from rallebench.engine.score import stored_examples
from rallebench.engine.store import RunFolder
from rallebench.workspace.paths import WorkspaceFolder

VERSION = "minilm/1"
"""Changes with the method of grouping."""
FEWEST_GROUPED = 30
"""Questions below which there are no groups by meaning."""


def clusters_file(workspace: WorkspaceFolder, run: RunFolder) -> Path:
    """Return the file of the groups by meaning of a run's questions."""
    texts = sorted((x.question.qid, x.question.text) for x in stored_examples(run))
    mark = digest([VERSION, [list(pair) for pair in texts]])[:24]
    return workspace.stages / f"meaning-{mark}.json"


def stored_clusters(workspace: WorkspaceFolder, run: RunFolder) -> QuestionClusters | None:
    """Return the groups by meaning of a run's questions; None if they are not made yet, or their file is damaged."""
    file = clusters_file(workspace, run)
    try:
        stat = file.stat()
    except OSError:
        return None
    return _read_clusters(file, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=8)
def _read_clusters(file: Path, time_ns: int, size: int) -> QuestionClusters | None:
    try:
        return parse(read_object(file), QuestionClusters, file, "group the questions again")
    except RalleError:
        return None


def slice_ids(workspace: WorkspaceFolder, run: RunFolder, key: str) -> set[str]:
    """Return the ids of the questions of a group, "meaning-2" or "word-who". Raises UsageError, NotFoundError."""
    kind, _, name = key.partition("-")
    if kind == WORD:
        words = {x.question.qid: question_word(x.question.text) for x in stored_examples(run)}
        ids = {qid for qid, word in words.items() if word == name}
        known = [f"{WORD}-{word}" for word in dict.fromkeys(words.values())]
    elif kind == MEANING:
        clusters = stored_clusters(workspace, run)
        if clusters is None:
            raise UsageError(f"The questions of {run.name!r} are not grouped by meaning yet.")
        known = [f"{MEANING}-{number}" for number in range(1, len(clusters.groups) + 1)]
        ids = set(clusters.groups[known.index(key)]) if key in known else set()
    else:
        raise NotFoundError(
            f"There is no group {key!r}; name one such as {MEANING}-1 or {WORD}-who."
        )
    if not ids:
        raise NotFoundError(
            f"The questions of {run.name!r} have no group {key!r}. Groups: {', '.join(known) or 'none'}."
        )
    return ids
