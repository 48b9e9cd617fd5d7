"""The passages of a corpus and the records of a dataset by position, filtered by words, for scrolling lists."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import lru_cache
from pathlib import Path

from rallebench.core.errors import NotFoundError, UsageError
from rallebench.core.folding import fold
from rallebench.core.types import Example, Passage
from rallebench.corpora.cards import read_card
from rallebench.corpora.store import PassageStore
from rallebench.engine import clusters
from rallebench.views.gold_coverage import STARTER_NAME
from rallebench.views.library import starter_passages
from rallebench.workspace.paths import WorkspaceFolder

MOST_FILTERED = 300_000
"""Maximum passages that a filter reads, because a user is waiting."""


def corpus_rows(
    workspace: WorkspaceFolder, corpus: str, words: str = ""
) -> range | tuple[int, ...]:
    """Return the rows of the passages with ``words`` in title, id or text; without words, all rows. Raises
    NotFoundError.
    """
    folder = _folder(workspace, corpus)
    if folder is None:
        passages = starter_passages()
        if not words:
            return range(len(passages))
        return tuple(row for row, passage in enumerate(passages) if _holds(passage, words))
    return _matching(folder, read_card(folder).sha256, fold(words))


@lru_cache(maxsize=16)
def _matching(folder: Path, sha256: str, words: str) -> range | tuple[int, ...]:
    with closing(PassageStore(folder)) as store:
        if not words:
            return range(len(store))
        reach = min(len(store), MOST_FILTERED)
        return tuple(row for row in range(reach) if _holds(store[row], words))


def passages_at(workspace: WorkspaceFolder, corpus: str, rows: list[int]) -> list[Passage]:
    """Return the passages of these rows, in the given order. Raises NotFoundError."""
    with open_passages(workspace, corpus) as passages:
        return [passages[row] for row in rows]


def load_passage(workspace: WorkspaceFolder, corpus: str, doc_id: str) -> Passage:
    """Return a passage by its id. Raises NotFoundError."""
    row = passage_row(workspace, corpus, doc_id)
    if row is None:
        raise NotFoundError(
            f"The corpus {corpus} has no passage {doc_id!r}; choose one of its list."
        )
    return passages_at(workspace, corpus, [row])[0]


def passage_row(workspace: WorkspaceFolder, corpus: str, doc_id: str) -> int | None:
    """Return the row of a passage by its id; None if there is none."""
    with open_passages(workspace, corpus) as passages:
        if isinstance(passages, PassageStore):
            return passages.find_row(doc_id)
        return next((n for n, passage in enumerate(passages) if passage.doc_id == doc_id), None)


@contextmanager
def open_passages(
    workspace: WorkspaceFolder, corpus: str
) -> Iterator[PassageStore | tuple[Passage, ...]]:
    """Open the passages of a corpus by row. Raises NotFoundError."""
    folder = _folder(workspace, corpus)
    if folder is None:
        yield starter_passages()
    else:
        with closing(PassageStore(folder)) as store:
            yield store


def _folder(workspace: WorkspaceFolder, corpus: str) -> Path | None:
    """Return the folder of an imported corpus; None for the shipped one. Raises NotFoundError."""
    cards = workspace.corpus_cards()
    if corpus in cards:
        return workspace.corpora / corpus
    if corpus == STARTER_NAME:
        return None
    names = ", ".join([STARTER_NAME, *cards])
    raise NotFoundError(f"There is no corpus {corpus!r} to read. There are: {names}.")


def _holds(passage: Passage, words: str) -> bool:
    words = fold(words)
    return any(words in fold(text) for text in (passage.title, passage.text, passage.doc_id))


def records(workspace: WorkspaceFolder, dataset: str, words: str = "") -> tuple[Example, ...]:
    """Return the questions of a dataset with ``words`` in question, id or answers; without words, all. Raises
    RalleError.
    """
    examples = workspace.questions(dataset)
    if not words:
        return examples
    words = fold(words)

    def holds(example: Example) -> bool:
        question = example.question
        return any(
            words in fold(text) for text in (question.text, question.qid, *example.gold.answers)
        )

    return tuple(filter(holds, examples))


def question_group(example: Example) -> str:
    """Return the group that a question belongs to; '' if its record names none."""
    return clusters.question_group(example)


def find_example(workspace: WorkspaceFolder, dataset: str, words: str) -> Example | None:
    """Return the question with that id, otherwise the first that contains the words; None without words. Raises
    UsageError.
    """
    if not words:
        return None
    questions = workspace.questions(dataset)
    for example in questions:
        if example.question.qid == words:
            return example
    for example in questions:
        if fold(words) in fold(example.question.text):
            return example
    raise UsageError(f"No question of {dataset} has the id or the words {words!r}.")
