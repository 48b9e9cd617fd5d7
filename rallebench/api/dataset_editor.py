"""Edits of a dataset from Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rallebench.api.listing import TableRepr
from rallebench.api.wording import in_python
from rallebench.core.dataset_edits import Edit, GoldPage, QuestionDraft
from rallebench.core.errors import UsageError
from rallebench.core.tables import Table
from rallebench.services.workbench import Workbench
from rallebench.views import run_questions
from rallebench.views.edit_histories import history_table


class DatasetEditor(TableRepr):
    """Adds, changes and deletes the questions of a dataset of the workspace; shown as the history of its edits.

    >>> editor = ws.edit_dataset("my-qa")  # doctest: +SKIP
    >>> editor.add("Which moon?", ["Titan"], pages=["42"])  # doctest: +SKIP
    'own-1'
    """

    def __init__(self, bench: Callable[[], Workbench], name: str) -> None:
        """``bench``: returns the open workbench."""
        self._bench, self.name = bench, name

    @property
    def table(self) -> Table:
        """The edits, oldest first."""
        return history_table(self.name, self._bench().edits.history(self.name))

    @property
    def history(self) -> tuple[Edit, ...]:
        """The edits, oldest first; each has the lines before and after it."""
        return self._bench().edits.history(self.name).edits

    @in_python
    def add(
        self,
        question: str,
        answers: Sequence[str] = (),
        *,
        pages: Sequence[str] = (),
        unanswerable: bool = False,
        group: str = "",
        id: str = "",
    ) -> str:
        """Add a question, in a new dataset if needed; return its id. ``answers``: each is right; ``pages``: ids of the pages that
        together hold the answer; ``group``: its article or other group.
        """
        gold = tuple(map(GoldPage, pages))
        draft = QuestionDraft(question, tuple(answers), (gold,), unanswerable, group)
        return self._bench().edits.add(self.name, draft, qid=id).added[0]

    @in_python
    def change(
        self,
        id: str,
        *,
        question: str | None = None,
        answers: Sequence[str] | None = None,
        pages: Sequence[str] | None = None,
        unanswerable: bool | None = None,
        group: str | None = None,
    ) -> bool:
        """Change the given parts of a question; return False if it was so already."""
        changed = self._bench().edits.edit(
            self.name,
            id,
            text=question,
            answers=answers,
            pages=pages,
            unanswerable=unanswerable,
            group=group,
        )
        return bool(changed)

    @in_python
    def delete(self, *ids: str) -> int:
        """Delete questions; return the number of those that are left."""
        return self._bench().edits.delete(self.name, ids)

    @in_python
    def add_from_run(self, run: str, only: str = "wrong") -> tuple[str, ...]:
        """Add questions of a run with their gold; return their ids. ``only``: wrong, lost, format, failed, right, or "" for all."""
        bench = self._bench()
        folder = bench.runs.open(run)
        ids = run_questions.question_ids(bench.workspace, folder, only)
        if not ids:
            raise UsageError(
                f"No question of the run {run!r} is {only or 'there'}, so nothing was added."
            )
        return bench.edits.add_from_run(self.name, folder, ids).added

    @in_python
    def undo(self, number: int | None = None) -> str:
        """Undo an edit, given by its number from 1, by default the last; return a sentence."""
        return self._bench().edits.undo(self.name, number or len(self.history))

    @in_python
    def return_to(self, number: int) -> str:
        """Return to the version after an edit; 0 for the version before all edits. Returns a sentence."""
        return self._bench().edits.restore(self.name, number)
