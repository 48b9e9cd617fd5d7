"""Labels of a run's answers from Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from rallebench.api.listing import TableRepr
from rallebench.api.wording import in_python
from rallebench.core.labels import AnswerLabel, Grade, LabelAgreement, LabelSample, PassageLabel
from rallebench.core.tables import Table
from rallebench.services.labels import CorrectedCopy
from rallebench.services.workbench import Workbench
from rallebench.views import labels as views

if TYPE_CHECKING:
    import pandas as pd


class LabelEditor(TableRepr):
    """Labels the answers of a run; shown as the labelled ones. A label holds for every run with the same answer.

    >>> run.labels.give("q7", "right", who="ann")  # doctest: +SKIP
    >>> run.labels.draw(40, graders=["em", "f1"])  # doctest: +SKIP
    >>> run.labels.agreement.nominal  # doctest: +SKIP
    0.743
    """

    def __init__(self, bench: Callable[[], Workbench], run: str) -> None:
        """``bench``: returns the open workbench."""
        self._bench, self.run = bench, run

    def _read(self) -> views.RunLabels:
        bench = self._bench()
        return views.run_labels(bench.workspace, bench.runs.open(self.run))

    @property
    def table(self) -> Table:
        """The labelled answers."""
        return views.label_table(self._read())

    @property
    def agreement(self) -> LabelAgreement:
        """The agreement of the people who labelled."""
        return self._read().agreement

    @property
    def sample(self) -> LabelSample | None:
        """The sample to be labelled, with the chance of each answer; None if none was drawn."""
        return self._read().sample

    def __iter__(self) -> Iterator[AnswerLabel]:
        """The labels that hold for the answers of the run, in the order of its questions."""
        return (label for answer in self._read().answers for label in answer.labels)

    @in_python
    def give(
        self,
        qid: str,
        grade: Grade,
        *,
        who: str = "",
        note: str = "",
        blind: bool = False,
        right: Sequence[str] = (),
    ) -> AnswerLabel:
        """Label the answer to a question. ``who``: by default the user of this machine; ``blind``: without sight of gold and
        scores; ``right``: right answers, of the grade gold-wrong. Raises UsageError.
        """
        bench = self._bench()
        answer = views.find_answer(bench.workspace, bench.runs.open(self.run), qid)
        return bench.labels.give(answer, grade, who=who, note=note, blind=blind, right=right)

    @in_python
    def give_passage(self, qid: str, page: str, relevant: bool, *, who: str = "") -> PassageLabel:
        """Label a page, or a passage without a page, that the run retrieved for a question. Raises UsageError."""
        bench = self._bench()
        run = bench.runs.open(self.run)
        passage = views.find_passage(bench.workspace, run, qid, page)
        answer = views.find_answer(bench.workspace, run, qid)
        return bench.labels.give_passage(answer, passage, relevant, who=who)

    @in_python
    def draw(
        self, size: int, *, graders: Sequence[str] = (), seed: int = 0, who: str = ""
    ) -> LabelSample:
        """Draw a sample of answers to label; ``graders``: columns of the run, whose disagreements are drawn more often."""
        bench = self._bench()
        run = bench.runs.open(self.run)
        apart = views.disagreements(run, graders) if graders else ()
        answers = views.run_answers(bench.workspace, run)
        return bench.labels.plan(answers, size, seed=seed, graders=graders, apart=apart, who=who)

    @in_python
    def corrected_copy(self, name: str) -> CorrectedCopy:
        """Copy the dataset of the run, with the right answers that people gave where the gold is wrong."""
        bench = self._bench()
        dataset = bench.runs.open(self.run).description().dataset
        *_, copy = bench.labels.corrected_copy(dataset, name)
        assert isinstance(copy, CorrectedCopy)
        return copy

    def to_pandas(self) -> pd.DataFrame:
        """Return one row per label: qid, answer, grade, who, note, blind, run, probability."""
        import pandas as pd

        rows = [
            {
                "qid": x.answer.qid,
                "answer": x.answer.answer,
                **{name: getattr(label, name) for name in ("grade", "who", "note", "blind", "run")},
                "probability": x.probability,
            }
            for x in self._read().labelled_answers
            for label in x.labels
        ]
        names = ["qid", "answer", "grade", "who", "note", "blind", "run", "probability"]
        return pd.DataFrame(rows, columns=names)
