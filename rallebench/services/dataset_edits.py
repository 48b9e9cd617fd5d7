"""Edits of the workspace's datasets: add, change and delete questions, undo an edit, return to an earlier version."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from rallebench.core.dataset_edits import (
    AddedQuestions,
    Edit,
    EditableQuestion,
    EditHistory,
    EditKind,
    GoldPage,
    LineChange,
    QuestionDraft,
)
from rallebench.core.errors import NotFoundError, UsageError
from rallebench.core.events import Progress
from rallebench.core.locks import alone
from rallebench.core.numbers import plural
from rallebench.core.parts import check_name
from rallebench.core.types import Json, digest
from rallebench.datasets.drafts import ID, make_record, read_draft
from rallebench.datasets.edit_history import append_edit, read_history
from rallebench.datasets.importing import ImportedDataset, import_dataset
from rallebench.datasets.question_lines import (
    QuestionLines,
    file_digest,
    read_lines,
    reverse,
)
from rallebench.datasets.reading import DEFAULT, dataset_form
from rallebench.engine.score import stored_examples
from rallebench.engine.store import RunFolder
from rallebench.workspace.paths import WorkspaceFolder

PATIENCE_SECONDS = 5.0
"""Seconds that an edit waits for another one to finish."""


class ChangedQuestionError(UsageError):
    """A question was changed or deleted since it was read. ``record``: its present record; None if it is deleted."""

    def __init__(self, message: str, record: Json | None) -> None:
        super().__init__(message)
        self.record = record


class DatasetEdits:
    """Edits the datasets in the workspace's own folder. It is stateless, so threads may share it.

    A dataset that comes with the product, lies elsewhere or has another format than KILT's is copied first and never changed.
    """

    def __init__(self, workspace: WorkspaceFolder) -> None:
        self._workspace = workspace
        self._folder = workspace.path / "datasets"

    def refusal(self, name: str) -> str:
        """Return why a dataset cannot be edited in place, as a sentence; '' if it can. Raises NotFoundError if there is none."""
        path = self._workspace.dataset(name)[1]
        if path.parent != self._folder or name not in self._workspace.own_datasets():
            return f"The dataset {name!r} does not lie in this workspace, so it cannot be changed; edit a copy of it."
        if path.name != f"{name}.jsonl":
            return f"The dataset {name!r} is compressed; edit a copy of it."
        if (form := dataset_form(path)) != DEFAULT:
            return f"The dataset {name!r} is in the format {form}, and only KILT's format can be edited; edit a copy of it."
        return ""

    def copy(self, reference: str, name: str) -> Iterator[Progress | ImportedDataset]:
        """Copy a dataset, given by name or path, into the workspace under a new name, to be edited there. Yields progress, then
        the ImportedDataset. Raises UsageError if the name is taken.
        """
        if name in self._workspace.dataset_paths():
            raise UsageError(f"A dataset {name!r} exists already; choose another name.")
        source = self._workspace.dataset(reference)[1]
        origin = f"the dataset {reference}"
        yield (yield from import_dataset(self._folder, name, source, origin=origin))

    def read(self, name: str, qid: str) -> EditableQuestion:
        """Return a question of any dataset as it is edited. Raises NotFoundError if there is none."""
        for example in self._workspace.questions(name):
            if example.question.qid == qid:
                return EditableQuestion(
                    qid, read_draft(example.record), question_mark(example.record)
                )
        raise _missing(name, qid)

    def add(
        self, name: str, draft: QuestionDraft, *, qid: str = "", source: str = "own"
    ) -> AddedQuestions:
        """Add a question to a dataset, which is created if needed. ``qid``: its id, by default ``source`` and a number.

        Raises UsageError if the dataset already has the question or the id. If an error is raised, nothing is written.
        """
        with self._editing(name, new=True) as lines:
            qid = qid.strip() or _free_id(lines.places, source, len(lines.places) + 1)
            if qid in lines.places:
                raise UsageError(
                    f"The dataset {name!r} already has a question with the id {qid!r}; choose another id."
                )
            record = make_record(draft, qid)
            _refuse_doubled(name, lines, draft.text)
            self._record(lines, "add", [lines.addition(qid, record)])
        return AddedQuestions((qid,))

    def add_from_run(self, name: str, run: RunFolder, qids: Iterable[str]) -> AddedQuestions:
        """Add questions of a run, with their gold, to a dataset, which is created if needed. A question keeps its id unless
        another one has it.

        Raises UsageError if the run does not have a question, or none of them is new.
        """
        of_run = {example.question.qid: example for example in stored_examples(run)}
        with self._editing(name, new=True) as lines:
            texts = {example.question.text.strip() for example in lines.examples}
            ids, changes, present = set(lines.places), list[LineChange](), 0
            for qid in dict.fromkeys(qids):
                if qid not in of_run:
                    raise UsageError(
                        f"The run {run.name!r} has no question {qid!r}; choose questions of that run."
                    )
                example = of_run[qid]
                if example.question.text.strip() in texts:
                    present += 1
                    continue
                texts.add(example.question.text.strip())
                own = qid if qid not in ids else _free_id(ids, qid, 2)
                ids.add(own)
                changes.append(lines.addition(own, {**example.record, ID: own}, len(changes)))
            if not changes:
                known = f"already has {'it' if present == 1 else f'all {present} of them'}"
                raise UsageError(
                    f"The dataset {name!r} {known}, so nothing was added."
                    if present
                    else "No question is chosen, so nothing was added; choose at least one."
                )
            self._record(lines, "add", changes, f"the run {run.name}")
        return AddedQuestions(tuple(change.qid for change in changes), present)

    def change(
        self, name: str, drafts: Mapping[str, QuestionDraft], known: Mapping[str, str] | None = None
    ) -> int:
        """Change questions, given by id, in one step; return the number of changed ones.

        ``known``: id → mark of the record that was read, see ``question_mark``. Raises ChangedQuestionError if a question has
        another record by now, UsageError for a draft without question or gold. If an error is raised, nothing is written.
        """
        with self._editing(name) as lines:
            changes = []
            for qid, draft in drafts.items():
                before = self._present(name, lines, qid, (known or {}).get(qid, ""))
                record = make_record(draft, qid, before)
                if record == before:
                    continue
                if draft.text.strip() != read_draft(before).text:
                    _refuse_doubled(name, lines, draft.text)
                changes.append(lines.change(qid, record))
            if changes:
                self._record(lines, "change", changes)
        return len(changes)

    def delete(self, name: str, qids: Sequence[str], known: Mapping[str, str] | None = None) -> int:
        """Delete questions; return the number of those that are left. ``known``: see ``change``. The last question stays: a
        dataset holds at least one.
        """
        with self._editing(name) as lines:
            for qid in qids:
                self._present(name, lines, qid, (known or {}).get(qid, ""))
            changes = [lines.change(qid, None) for qid in dict.fromkeys(qids)]
            if not changes:
                raise UsageError("No question is chosen, so there is nothing to delete.")
            # From the last line to the first, so that the positions hold.
            self._record(lines, "delete", sorted(changes, key=lambda change: -change.position))
            return len(lines.places) - len(changes)

    def edit(
        self,
        name: str,
        qid: str,
        *,
        text: str | None = None,
        answers: Sequence[str] | None = None,
        pages: Sequence[str] | None = None,
        unanswerable: bool | None = None,
        group: str | None = None,
    ) -> int:
        """Change the given parts of a question; see ``change``. ``pages``: ids of the pages that together hold the answer. A
        question with answers is answerable, and one marked as unanswerable has none.
        """
        draft = self.read(name, qid).draft
        titles = {page.page_id: page for page in draft.pages}
        if unanswerable is None and answers:
            unanswerable = False
        if answers is None and unanswerable:
            answers = ()
        changed = QuestionDraft(
            draft.text if text is None else text,
            draft.answers if answers is None else tuple(answers),
            draft.evidence
            if pages is None
            else (tuple(titles.get(page, GoldPage(page)) for page in pages),),
            draft.unanswerable if unanswerable is None else unanswerable,
            draft.group if group is None else group,
        )
        return self.change(name, {qid: changed})

    def history(self, name: str) -> EditHistory:
        """Return the edits of a dataset, oldest first; none of a dataset from elsewhere."""
        if name not in self._workspace.own_datasets():
            return EditHistory()
        path = self._workspace.dataset_paths()[name]
        return read_history(path, file_digest(path))

    def undo(self, name: str, number: int) -> str:
        """Undo an edit, given by its number from 1; return a sentence. Raises UsageError if a later edit changed the same
        questions.
        """
        edit = self._edit(name, number)
        with self._editing(name) as lines:
            changes = [*reverse(edit.changes)]
            _refuse_taken_ids(name, lines, changes)
            self._record(lines, "undo", changes, str(number))
        return f"Undid edit {number} of {name}: {plural(len(edit.changes), 'question')} as before."

    def restore(self, name: str, number: int) -> str:
        """Return to the version of a dataset after an edit, given by its number; 0 for the version before all edits. Returns
        a sentence. Raises UsageError if another program changed the file meanwhile.
        """
        history = self.history(name)
        later = history.edits[number:]
        if not 0 <= number <= len(history.edits):
            raise UsageError(
                f"The dataset {name!r} has no edit {number}; it has {len(history.edits)}."
            )
        if not later:
            raise UsageError(f"The dataset {name!r} is at its version {number} already.")
        if not history.continuous:
            raise UsageError(
                f"Another program changed the dataset {name!r} between its edits, so no earlier version can be restored; undo single edits."
            )
        with self._editing(name) as lines:
            changes = [change for edit in reversed(later) for change in reverse(edit.changes)]
            self._record(lines, "return", changes, str(number))
        return (
            f"{name} is as it was {f'after edit {number}' if number else 'before its first edit'}."
        )

    def _edit(self, name: str, number: int) -> Edit:
        edits = self.history(name).edits
        if not 1 <= number <= len(edits):
            raise UsageError(f"The dataset {name!r} has no edit {number}; it has {len(edits)}.")
        return edits[number - 1]

    @contextmanager
    def _editing(self, name: str, *, new: bool = False) -> Iterator[QuestionLines]:
        """Hold the lock of a dataset and read its lines; ``new``: a dataset that does not exist is created. Raises UsageError
        if it cannot be edited in place.
        """
        path = self._folder / f"{check_name('dataset', name)}.jsonl"
        is_known = not new or name in self._workspace.dataset_paths()
        if sentence := self.refusal(name) if is_known else "":
            raise UsageError(sentence)
        refused = f"The dataset {name!r} is being written by another process; try again."
        lock = path.with_name(f".{path.name}.lock")
        with alone(lock, refused, patience=PATIENCE_SECONDS):
            if not new and not path.exists():
                raise NotFoundError(f"There is no dataset {name!r} in {self._folder} any more.")
            yield read_lines(path)

    def _present(self, name: str, lines: QuestionLines, qid: str, known: str) -> Json:
        """Return the record of a question. Raises ChangedQuestionError if it is not the known one."""
        record = lines.record(qid)
        if record is None and not known:
            raise _missing(name, qid)
        if record is None:
            raise ChangedQuestionError(
                f"The question {qid!r} of {name} was deleted meanwhile; add it again, or leave it deleted.",
                None,
            )
        if known and question_mark(record) != known:
            raise ChangedQuestionError(
                f"The question {qid!r} of {name} was changed meanwhile; look at it before you save over it.",
                record,
            )
        return record

    def _record(
        self, lines: QuestionLines, kind: EditKind, changes: Sequence[LineChange], about: str = ""
    ) -> None:
        """Write an edit into the history, then the dataset. Raises UsageError if no question would be left."""
        after = lines.apply(changes)
        if not after.examples:
            raise UsageError(
                f"The dataset {lines.path.stem!r} would hold no question; delete the dataset instead."
            )
        edit = Edit(time.time(), kind, tuple(changes), lines.digest, after.digest, about)
        append_edit(lines.path, edit)
        after.write()


def _missing(name: str, qid: str) -> NotFoundError:
    return NotFoundError(f"The dataset {name!r} has no question {qid!r}; choose one of its list.")


def question_mark(record: Json) -> str:
    """16 hex digits over a record, by which an edit notices that another window changed it."""
    return digest(dict(record))[:16]


def _free_id(ids: Collection[str], stem: str, number: int) -> str:
    """Return the first free id of the form STEM-NUMBER."""
    while f"{stem}-{number}" in ids:
        number += 1
    return f"{stem}-{number}"


def _refuse_taken_ids(name: str, lines: QuestionLines, changes: Iterable[LineChange]) -> None:
    """Raise UsageError if a question that comes back has an id that another one has by now."""
    ids = set(lines.places)
    for change in changes:
        if change.before is None and change.qid in ids:
            raise UsageError(
                f"The dataset {name!r} has another question {change.qid!r} by now; delete that one first."
            )
        (ids.discard if change.after is None else ids.add)(change.qid)


def _refuse_doubled(name: str, lines: QuestionLines, text: str) -> None:
    for example in lines.examples:
        if example.question.text.strip() == text.strip():
            raise UsageError(
                f"The dataset {name!r} already contains this question, with the id {example.question.qid!r}."
            )
