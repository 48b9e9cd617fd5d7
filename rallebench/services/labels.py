"""Labels of answers and passages: given, planned, and turned into a corrected copy of a dataset."""

from __future__ import annotations

import getpass
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from rallebench.analysis.label_samples import draw_sample
from rallebench.core.dataset_edits import QuestionDraft
from rallebench.core.errors import UsageError
from rallebench.core.events import Progress
from rallebench.core.labels import (
    GRADES,
    LONGEST_ANSWER,
    LONGEST_NAME,
    LONGEST_NOTE,
    AnswerLabel,
    Grade,
    Label,
    LabelBook,
    LabelSample,
    PassageLabel,
    RunAnswer,
    question_digest,
)
from rallebench.core.numbers import plural
from rallebench.core.types import Passage
from rallebench.datasets.label_file import append_labels, label_file
from rallebench.engine.label_book import read_book
from rallebench.services.dataset_edits import DatasetEdits
from rallebench.workspace.paths import WorkspaceFolder


@dataclass(frozen=True, slots=True)
class CorrectedQuestion:
    """A question of a corrected copy: its answers before and after."""

    qid: str
    text: str
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CorrectedCopy:
    """A copy of a dataset with corrected gold. ``uncorrected``: ids of questions whose gold is called wrong without a right answer;
    their gold is as before.
    """

    dataset: str
    copy_of: str
    questions: tuple[CorrectedQuestion, ...]
    uncorrected: tuple[str, ...] = ()


class Labels:
    """Reads and appends the labels of datasets. It is stateless, so threads may share it."""

    def __init__(self, workspace: WorkspaceFolder, edits: DatasetEdits) -> None:
        self._workspace, self._edits = workspace, edits

    def book(self, dataset: str) -> LabelBook:
        """Return the labels of a dataset."""
        return read_book(self._workspace.path, dataset)

    def give(
        self,
        answer: RunAnswer,
        grade: Grade,
        *,
        who: str = "",
        note: str = "",
        blind: bool = False,
        right: Sequence[str] = (),
    ) -> AnswerLabel:
        """Label an answer; a person's earlier label of it no longer counts. ``who``: the person, by default the user of this
        machine; ``right``: right answers, if the gold is wrong. Raises UsageError.
        """
        if grade not in GRADES:
            raise UsageError(f"There is no grade {grade!r}; choose one of {', '.join(GRADES)}.")
        answers = tuple(dict.fromkeys(filter(None, map(str.strip, right))))
        if answers and grade != "gold-wrong":
            raise UsageError("Right answers belong to the grade gold-wrong; leave them out.")
        if any(len(text) > LONGEST_ANSWER for text in answers):
            raise UsageError(
                f"A right answer has more than {LONGEST_ANSWER:,} characters; shorten it."
            )
        if len(note) > LONGEST_NOTE:
            raise UsageError(f"The note has more than {LONGEST_NOTE:,} characters; shorten it.")
        label = AnswerLabel(
            time.time(),
            _person(who),
            answer.qid,
            *(answer.key.question, answer.key.answer, grade, note.strip()),
            run=answer.run,
            blind=blind,
            right=answers,
        )
        self._append(answer.dataset, label)
        return label

    def give_passage(
        self, answer: RunAnswer, passage: Passage, relevant: bool, *, who: str = ""
    ) -> PassageLabel:
        """Label a passage that was retrieved for a question, by its page or, without one, by itself."""
        doc_id = "" if passage.page_id else passage.doc_id
        label = PassageLabel(
            time.time(),
            _person(who),
            answer.qid,
            answer.key.question,
            relevant,
            passage.page_id,
            doc_id,
            passage.title,
            answer.run,
        )
        self._append(answer.dataset, label)
        return label

    def plan(
        self,
        answers: Sequence[RunAnswer],
        size: int,
        *,
        seed: int = 0,
        graders: Sequence[str] = (),
        apart: Collection[str] = (),
        who: str = "",
    ) -> LabelSample:
        """Draw a sample of a run's answers to be labelled, which replaces an earlier one of the run. ``apart``: the ids of
        questions on which ``graders`` disagree. Raises UsageError.
        """
        if not answers:
            raise UsageError("The run has no answer, so there is nothing to label.")
        drawn, total = draw_sample(answers, size, seed=seed, apart=apart), {x.key for x in answers}
        sample = LabelSample(
            *(time.time(), _person(who), answers[0].run, seed, len(total), drawn, tuple(graders))
        )
        self._append(answers[0].dataset, sample)
        return sample

    def corrected_copy(self, dataset: str, name: str) -> Iterator[Progress | CorrectedCopy]:
        """Copy a dataset and change the answers of the questions whose gold people called wrong to the right ones that they
        gave, as one edit that can be undone. Yields progress, then the CorrectedCopy. Raises UsageError.
        """
        wrong = self._wrong_gold(dataset)
        examples = {question_digest(x.question.text): x for x in self._workspace.questions(dataset)}
        known = {question: labels for question, labels in wrong.items() if question in examples}
        if not known:
            raise UsageError(
                f"The labels with wrong gold in {label_file(self._workspace.path, dataset)} are of other questions than those of "
                f"{dataset!r}; they are of another dataset, or the questions were changed."
                if wrong
                else f"No label says that the gold of {dataset!r} is wrong, so there is nothing to correct."
            )
        right = {
            question: tuple(dict.fromkeys(text for label in labels for text in label.right))
            for question, labels in known.items()
        }
        if not any(right.values()):
            raise UsageError(
                f"No label has a right answer for the {plural(len(known), 'question')} with wrong gold; label again with one."
            )
        for piece in self._edits.copy(dataset, name):
            if isinstance(piece, Progress):
                yield piece
        changed, drafts = list[CorrectedQuestion](), dict[str, QuestionDraft]()
        for question, answers in right.items():
            if answers:
                qid = examples[question].question.qid
                before = self._edits.read(name, qid).draft
                drafts[qid] = replace(before, answers=answers, unanswerable=False)
                changed.append(CorrectedQuestion(qid, before.text, before.answers, answers))
        self._edits.change(name, drafts)
        left = tuple(examples[x].question.qid for x, answers in right.items() if not answers)
        yield CorrectedCopy(name, dataset, tuple(changed), left)

    def _wrong_gold(self, dataset: str) -> dict[str, list[AnswerLabel]]:
        """Return question → its labels that call the gold wrong."""
        wrong: dict[str, list[AnswerLabel]] = {}
        for key, labels in self.book(dataset).answers.items():
            for label in labels.values():
                if label.grade == "gold-wrong":
                    wrong.setdefault(key.question, []).append(label)
        return wrong

    def _append(self, dataset: str, label: Label) -> None:
        append_labels(label_file(self._workspace.path, dataset), [label])


def usual_person() -> str:
    """Return the name under which the user of this machine labels."""
    with suppress(OSError, KeyError, ImportError):
        return getpass.getuser()[:LONGEST_NAME]
    return "me"


def _person(who: str) -> str:
    name = " ".join(who.split()) or usual_person()
    if len(name) > LONGEST_NAME:
        raise UsageError(f"The name has more than {LONGEST_NAME} characters; shorten it.")
    return name
