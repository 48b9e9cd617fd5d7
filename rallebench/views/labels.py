"""The labels of a run's answers: who gave which, what is still to be labelled, how far people agree, and files of them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from rallebench.analysis.agreement import measure_agreement
from rallebench.analysis.ranking import read_scores
from rallebench.analysis.trec import encode
from rallebench.core.errors import RalleError, UsageError
from rallebench.core.json_values import JsonObject, object_json
from rallebench.core.labels import (
    GRADES,
    AnswerKey,
    AnswerLabel,
    Grade,
    LabelAgreement,
    LabelBook,
    LabelSample,
    RunAnswer,
    question_digest,
)
from rallebench.core.numbers import plural
from rallebench.core.report import RunReport
from rallebench.core.table_files import csv_lines
from rallebench.core.tables import Cell, Column, Table
from rallebench.core.types import Example, Passage
from rallebench.datasets.label_file import label_file
from rallebench.engine.label_book import book_of_run, read_book
from rallebench.engine.score import stored_examples
from rallebench.engine.store import RunFolder, list_runs
from rallebench.metrics import read_card
from rallebench.views.run_questions import QuestionRow, answers_version, open_question, questions
from rallebench.workspace.paths import WorkspaceFolder

UNLABELLED, LABELLED, SAMPLE = "unlabelled", "labelled", "sample"
"""Filters of a run's questions: answers without and with a label, and answers of the sample that have none."""
TITLES = {UNLABELLED: "unlabelled", LABELLED: "labelled", SAMPLE: "unlabelled sampled"}
CHIPS = {UNLABELLED: "Unlabelled", LABELLED: "Labelled", SAMPLE: "Sample"}
"""Filter → its name on the page."""
MOST_POOLED = 10
"""Other runs whose passages are pooled."""
MOST_LISTED = 200
"""Answers that a table lists."""


@dataclass(frozen=True, slots=True)
class LabelledAnswer:
    """An answer of a run with the labels that hold for it. ``gold``: the first accepted answer; ``probability``: the chance with
    which the sample has it, None if it is not in the sample.
    """

    answer: RunAnswer
    key: AnswerKey
    gold: str
    labels: tuple[AnswerLabel, ...]
    probability: float | None = None

    @property
    def is_carried(self) -> bool:
        """True if all its labels were given in other runs."""
        return bool(self.labels) and all(x.run != self.answer.run for x in self.labels)


@dataclass(frozen=True, slots=True)
class RunLabels:
    """The labels of a run. ``holes``: passages that people call relevant and the gold does not name; ``problem``: a sentence about
    labels that cannot be used, or ''.
    """

    run: str
    dataset: str
    answers: tuple[LabelledAnswer, ...]
    agreement: LabelAgreement
    sample: LabelSample | None = None
    passages: int = 0
    holes: int = 0
    problem: str = ""

    @property
    def labelled_answers(self) -> tuple[LabelledAnswer, ...]:
        return tuple(x for x in self.answers if x.labels)

    def filter_answers(self, which: str) -> tuple[LabelledAnswer, ...]:
        """Return the answers for a filter: UNLABELLED, LABELLED or SAMPLE."""
        if which == SAMPLE:
            return tuple(x for x in self.answers if x.probability is not None and not x.labels)
        return tuple(x for x in self.answers if bool(x.labels) is (which == LABELLED))

    @property
    def counts(self) -> Mapping[Grade, int]:
        """Grade → number of labels."""
        counts = Counter(label.grade for x in self.answers for label in x.labels)
        return {grade: counts[grade] for grade in GRADES if counts[grade]}

    @property
    def sample_progress(self) -> tuple[int, int]:
        """The answers of the sample that are labelled, and all of them."""
        if self.sample is None:
            return 0, 0
        done = {x.key for x in self.labelled_answers}
        return sum(x.key in done for x in self.sample.answers), len(self.sample.answers)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The counts, the sample and the agreement in words."""
        carried = sum(x.is_carried for x in self.answers)
        first = f"{len(self.labelled_answers):,} of {plural(len(self.answers), 'answer')} labelled"
        first += f", {carried:,} of them in other runs." if carried else "."
        sentences = [first]
        if self.counts:
            words = (f"{GRADES[grade].lower()} {count:,}" for grade, count in self.counts.items())
            sentences.append(f"Labels by grade: {', '.join(words)}.")
        if self.sample:
            done, size = self.sample_progress
            sentences.append(f"{done:,} of {plural(size, 'answer')} of the sample labelled.")
        if self.passages:
            holes = plural(self.holes, "passage")
            sentences.append(
                f"{plural(self.passages, 'passage')} labelled; the gold lacks {holes} called relevant."
            )
        if self.agreement.people:
            sentences.append(agreement_sentence(self.agreement))
        return (*sentences, *filter(None, [self.problem]))

    def to_json(self) -> JsonObject:
        done, size = self.sample_progress
        return {
            "run": self.run,
            "dataset": self.dataset,
            "answers": len(self.answers),
            "labelled": len(self.labelled_answers),
            "grades": object_json(self.counts),
            "sample": {"labelled": done, "answers": size},
            "passages": {"labelled": self.passages, "holes": self.holes},
            "agreement": object_json(self.agreement),
            "problem": self.problem,
        }


def agreement_sentence(agreement: LabelAgreement) -> str:
    """Return the agreement of people in words."""
    if agreement.nominal is None:
        return agreement.problem
    ordinal = "" if agreement.ordinal is None else f", {agreement.ordinal:.3f} of ordered grades"
    people = " and ".join(agreement.people)
    ends = ""
    if agreement.low is not None and agreement.high is not None:
        ends = f" ({agreement.low:.2f} to {agreement.high:.2f})"
    return f"Krippendorff's alpha of {people} over {plural(agreement.answers, 'answer')}: {agreement.nominal:.3f}{ends}{ordinal}."


def run_answers(workspace: WorkspaceFolder, run: RunFolder) -> list[RunAnswer]:
    """Return the answers of a run that can be labelled, in order: none of failed or remaining questions."""
    dataset = run.description().dataset
    return [as_answer(dataset, run, row) for row in questions(workspace, run) if is_answered(row)]


def is_answered(row: QuestionRow) -> bool:
    return row.at is not None and row.kind != "failed"


def as_answer(dataset: str, run: RunFolder, row: QuestionRow) -> RunAnswer:
    return RunAnswer(dataset, run.name, row.qid, row.text, row.answer)


def find_answer(workspace: WorkspaceFolder, run: RunFolder, qid: str) -> RunAnswer:
    """Return the answer of a run to a question. Raises UsageError if it has none."""
    row = next((row for row in questions(workspace, run) if row.qid == qid), None)
    if row is None:
        raise UsageError(f"The run {run.name!r} has no question {qid!r}; choose one of its list.")
    if not is_answered(row):
        raise UsageError(
            f"The question {qid!r} of {run.name!r} has no answer to label; choose another one."
        )
    return as_answer(run.description().dataset, run, row)


def pooled_passages(workspace: WorkspaceFolder, run: RunFolder, qid: str) -> list[Passage]:
    """Return the passages that the newest other runs of the dataset retrieved for the same question, at most MOST_POOLED runs."""
    question, dataset = find_answer(workspace, run, qid).key.question, run.description().dataset
    passages: list[Passage] = []
    used = 0
    for other in list_runs(workspace.runs):
        with suppress(RalleError):  # the list of runs names the damage
            if used == MOST_POOLED or other.name == run.name:
                continue
            if other.description().dataset == dataset:
                same = (x.question for x in stored_examples(other) if x.question.qid == qid)
                text = next((x.text for x in same), "")
                episode = other.find_episode(qid) if question_digest(text) == question else None
                used += episode is not None
                passages += [hit.passage for hit in episode.hits] if episode else []
    return passages


def find_passage(workspace: WorkspaceFolder, run: RunFolder, qid: str, name: str) -> Passage:
    """Return a passage that a run, or another one of the same dataset, retrieved for a question, by the id of its page or its
    own. Raises UsageError.
    """
    _, episode = open_question(workspace, run, qid)
    passages = [hit.passage for hit in episode.hits] if episode else []
    passage = next((x for x in passages if name in (x.page_id, x.doc_id)), None)
    if passage is None:
        pool = pooled_passages(workspace, run, qid)
        passage = next((x for x in pool if name in (x.page_id, x.doc_id)), None)
    if passage is None:
        raise UsageError(
            f"The run {run.name!r} did not retrieve {name!r} for {qid!r}; name a page that it retrieved."
        )
    return passage


def run_labels(workspace: WorkspaceFolder, run: RunFolder) -> RunLabels:
    """Return the labels that hold for the answers of a run, whichever run they were given in."""
    dataset = run.description().dataset
    book = book_of_run(run)
    sample = book.samples.get(run.name)
    chances = {x.key: x.probability for x in sample.answers} if sample else {}
    answers = tuple(
        LabelledAnswer(answer, key, row.gold, book.answer_labels(key), chances.get(key))
        for row in questions(workspace, run)
        if is_answered(row)
        for answer in [as_answer(dataset, run, row)]
        for key in [answer.key]
    )
    distinct = {x.key: x.labels for x in answers if x.labels}
    judged = labelled_passages(book, stored_examples(run)) if book.passages else {}
    holes = sum(
        relevant and page not in example.gold.judgements
        for example, pages in judged.values()
        for page, relevant in pages.items()
    )
    digests = {x.answer.key.question for x in answers}
    return RunLabels(
        run.name,
        dataset,
        answers,
        measure_agreement(distinct.values()),
        sample,
        sum(len(pages) for _, pages in judged.values()),
        holes,
        book.problem or foreign_labels(workspace.path, dataset, digests),
    )


def foreign_labels(workspace: Path, dataset: str, questions: Collection[str]) -> str:
    """Say in one sentence that no label of a dataset fits the questions of a run; '' if some do. ``questions``: their digests."""
    book = read_book(workspace, dataset)
    if not book.answers or any(key.question in questions for key in book.answers):
        return ""
    file = label_file(workspace, dataset)
    return f"None of the {plural(len(book.answers), 'labelled answer')} in {file} belongs to a question of this run; they are of another dataset."


def disagreements(run: RunFolder, graders: Sequence[str]) -> set[str]:
    """Return the ids of questions on which columns of a run disagree: some say right, others wrong, by the middle of their range.

    Raises UsageError for fewer than two columns or one without a range, NotFoundError for an unknown one.
    """
    if len({*graders}) < 2:
        raise UsageError("Graders disagree only if there are two; name at least two columns.")
    report = run.report() or RunReport(run.name)
    middles = {name: _middle(report, name) for name in graders}
    scores = read_scores(run, list(middles))
    sides: dict[str, set[bool]] = {}
    for name, (middle, up) in middles.items():
        for qid, value in scores[name].items():
            if value is not None:
                sides.setdefault(qid, set()).add((value >= middle) is up)
    return {qid for qid, own in sides.items() if len(own) > 1}


def _middle(report: RunReport, name: str) -> tuple[float, bool]:
    """Return the middle of the range of a column, and whether values above it are the better ones."""
    result, up = report[name], True
    low, high = result.column.range
    if not result.own:
        card = read_card(name)
        (low, high), up = card.range, card.higher_is_better is not False
    if low is None or high is None:
        raise UsageError(
            f"The column {name!r} has no lowest and highest value, so it calls no answer right; choose another one."
        )
    return (low + high) / 2, up


def labelled_passages(
    book: LabelBook, examples: Sequence[Example]
) -> dict[str, tuple[Example, dict[str, bool]]]:
    """Return question id → the question, and its labelled pages, or passages without a page, with their relevance."""
    of_question: dict[str, dict[str, bool]] = {}
    for question, page_id, doc_id in book.passages:
        relevant = book.relevance(question, page_id, doc_id)
        of_question.setdefault(question, {})[page_id or doc_id] = bool(relevant)
    keyed = ((example, question_digest(example.question.text)) for example in examples)
    return {
        example.question.qid: (example, of_question[question])
        for example, question in keyed
        if question in of_question
    }


def version(run: RunFolder) -> str:
    """Return a text that changes with the labels of a run's dataset."""
    path = label_file(run.path.parents[1], run.description().dataset)
    return str(path.stat().st_size) if path.exists() else ""


def fits(workspace: WorkspaceFolder, run: RunFolder, which: str) -> set[str]:
    """Return the ids of a run's questions for a filter: UNLABELLED, LABELLED or SAMPLE."""
    book, ids = book_of_run(run), _answered_ids(workspace, str(run.path), answers_version(run))
    labelled = {qid for key in book.answers if book.answer_labels(key) for qid in ids.get(key, ())}
    if which == LABELLED:
        return labelled
    if which == SAMPLE:
        sample = book.samples.get(run.name)
        keys = [x.key for x in sample.answers] if sample else []
        return {qid for key in keys for qid in ids.get(key, ())} - labelled
    return {qid for own in ids.values() for qid in own} - labelled


def sample_size(workspace: WorkspaceFolder, run: RunFolder) -> int:
    """Return the number of a run's questions with an answer of its sample, labelled or not; 0 without a sample."""
    sample = book_of_run(run).samples.get(run.name)
    ids = _answered_ids(workspace, str(run.path), answers_version(run))
    return sum(len(ids.get(x.key, ())) for x in sample.answers) if sample else 0


def open_to(workspace: WorkspaceFolder, run: RunFolder, person: str) -> set[str]:
    """Return the ids of a run's questions whose answers a person has neither labelled nor skipped."""
    book, ids = book_of_run(run), _answered_ids(workspace, str(run.path), answers_version(run))
    return {
        qid
        for key, own in ids.items()
        if person not in {label.who for label in book.answers.get(key, {}).values()}
        for qid in own
    }


@lru_cache(maxsize=4)
def _answered_ids(
    workspace: WorkspaceFolder, path: str, answers: tuple[int, ...]
) -> Mapping[AnswerKey, tuple[str, ...]]:
    """Return answer → the ids of the questions with it."""
    ids: dict[AnswerKey, tuple[str, ...]] = {}
    for answer in run_answers(workspace, RunFolder(Path(path))):
        ids[answer.key] = (*ids.get(answer.key, ()), answer.qid)
    return ids


# tables and files


def label_table(labels: RunLabels, only: str = LABELLED) -> Table:
    """Return one row for each answer that passes a filter, see ``fits``, with all its labels."""
    answers = labels.filter_answers(only)
    rows = [
        (
            x.answer.qid,
            x.answer.question[:60],
            x.answer.answer[:40],
            x.gold[:40],
            ", ".join(f"{GRADES[label.grade].lower()} ({label.who})" for label in x.labels),
        )
        for x in answers[:MOST_LISTED]
    ]
    left = len(answers) - len(rows)
    names = ("question", "text", "answer", "gold", "labels")
    return Table(
        f"{labels.run}: {plural(len(answers), f'{TITLES[only]} answer')}",
        tuple(Column(name, "text") for name in names),
        tuple(rows),
        note=f"{left:,} more." if left else "",
    )


CSV_HEADS = ("id", "question", "answer", "gold", "label", "who", "note", "time", "blind", "run")


def csv_of_labels(labels: RunLabels) -> Iterator[str]:
    """Yield the labels of a run as CSV, one a line. ``probability``: the chance with which the sample has the answer."""
    yield csv_lines([[*CSV_HEADS, "right answers", "probability"]])
    for x in labels.labelled_answers:
        for label in x.labels:
            when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(label.time))
            cells: list[Cell | list[str]] = [
                *(x.answer.qid, x.answer.question, x.answer.answer, x.gold),
                *(label.grade, label.who, label.note, when, int(label.blind), label.run),
                list(label.right),
                x.probability,
            ]
            yield csv_lines([cells])


def qrels_of_labels(run: RunFolder) -> Iterator[str]:
    """Yield ``qid 0 page grade`` for the gold of the run's questions as people corrected it: a labelled page has the grade 1 or 0,
    another judged page the grade of the gold.
    """
    book = book_of_run(run)
    examples = stored_examples(run)
    judged = labelled_passages(book, examples)
    for example in examples:
        _, pages = judged.get(example.question.qid, (example, {}))
        grades = {
            **example.gold.judgements,
            **{page: float(relevant) for page, relevant in pages.items()},
        }
        for page, grade in sorted(grades.items()):
            yield f"{encode(example.question.qid)} 0 {encode(page)} {grade:.15g}\n"
