"""Marked answers of a conversation: their questions with right answers, a dataset of them, and the whole as teyt."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from rallebench.core.dataset_edits import GoldPage, QuestionDraft
from rallebench.core.errors import NotFoundError, UsageError
from rallebench.services.conversations import Correction, Talk, Turn
from rallebench.services.dataset_edits import DatasetEdits
from rallebench.workspace.environments import open_pages
from rallebench.workspace.paths import WorkspaceFolder

SOURCE = "chat"
"""Beginning of the ids of questions from Chat."""
MARKS = {"right": "Marked right", "wrong": "Marked wrong"}


@dataclass(frozen=True, slots=True)
class SavedMarks:
    """The result of saving a conversation's marked turns. ``present``: questions that the dataset already had;
    ``uncorrected``: wrong answers without a right one, which are left out.
    """

    dataset: str
    added: int
    present: int
    uncorrected: int


def right_answers(turn: Turn) -> Correction | None:
    """Return the question of a marked turn with its right answers and pages; None if they are not known."""
    if turn.correction is not None and turn.correction.answers:
        return turn.correction
    if turn.mark == "right" and turn.answer.strip():
        return Correction(turn.standalone, (turn.answer.strip(),), turn.cited_pages)
    return None


def marked_questions(talk: Talk) -> list[Correction]:
    """Return every question of a conversation with right answers once; branches add their answers and pages."""
    merged: dict[str, Correction] = {}
    for turn in talk.turns:
        gold = right_answers(turn) if turn.mark else None
        if gold is None:
            continue
        earlier = merged.get(gold.question, gold)
        answers = tuple(dict.fromkeys((*earlier.answers, *gold.answers)))
        merged[gold.question] = replace(
            gold, answers=answers, pages={**earlier.pages, **gold.pages}
        )
    return list(merged.values())


def save_question(edits: DatasetEdits, dataset: str, gold: Correction) -> Correction:
    """Add a question to a dataset, or change it if it was saved there; return it with its id. Raises UsageError."""
    pages = tuple(GoldPage(page_id, title) for page_id, title in gold.pages.items())
    draft = QuestionDraft(gold.question, gold.answers, (pages,))
    if gold.qid and gold.dataset == dataset:
        edits.change(dataset, {gold.qid: draft})
        return gold
    (qid,) = edits.add(dataset, draft, source=SOURCE).added
    return replace(gold, dataset=dataset, qid=qid)


def save_marked(
    workspace: WorkspaceFolder, edits: DatasetEdits, talk: Talk, dataset: str
) -> SavedMarks:
    """Add the questions of all marked turns to a dataset, creating it if needed. Raises UsageError if there are none."""
    questions = marked_questions(talk)
    wrong = [turn for turn in talk.with_mark("wrong") if right_answers(turn) is None]
    if not questions:
        raise UsageError(
            "No marked answer of this conversation can become a question; mark one as right, or correct a wrong one."
        )
    exists = dataset in workspace.dataset_paths()
    present = {x.question.text.strip() for x in workspace.questions(dataset)} if exists else set()
    new = [gold for gold in questions if gold.question.strip() not in present]
    for gold in new:
        save_question(edits, dataset, replace(gold, dataset="", qid=""))
    return SavedMarks(dataset, len(new), len(questions) - len(new), len(wrong))


def find_pages(
    workspace: WorkspaceFolder, retrievers: Sequence[str], names: Iterable[str]
) -> dict[str, str]:
    """Return id → title of pages named by id or title in the corpora behind the retrievers.

    Where these keep no passages here, a name counts as an id. Raises UsageError for an unknown page.
    """
    stores = []
    for name in retrievers:
        try:
            stores.append(open_pages(workspace, name))
        except (NotFoundError, UsageError):
            continue
    pages: dict[str, str] = {}
    for name in filter(None, map(str.strip, names)):
        match = next(
            (x for store in stores for x in (store.page(name), *store.with_title(name)[:1]) if x),
            None,
        )
        if match is None and stores:
            raise UsageError(
                f"No page of {' and '.join(retrievers)} has the id or the title {name!r}; copy one from Data.",
                "pages",
            )
        pages[match.page_id if match else name] = match.title if match else ""
    return pages


def to_markdown(talk: Talk) -> str:
    """Return the open branch of a conversation as Markdown, with its sources and marks."""
    began = datetime.fromtimestamp(talk.began)
    parts = [f"# Conversation of {began:%Y-%m-%d %H:%M}"]
    for turn in talk.path:
        parts.append(f"## {turn.question}")
        parts.append(turn.answer.strip() or f"({turn.error or turn.state})")
        pages = dict.fromkeys(hit.passage.title or hit.passage.doc_id for hit in turn.sources)
        if pages:
            parts.append(f"Sources: {'; '.join(pages)}")
        if turn.mark:
            parts.append(f"{MARKS[turn.mark]}.")
        if turn.correction is not None and turn.correction.answers:
            parts.append(f"Right: {' or '.join(turn.correction.answers)}")
    return "\n\n".join(parts) + "\n"
