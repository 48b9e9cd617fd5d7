"""Questions as they are edited, and the edits of a dataset, as values."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Literal

from rallebench.core.numbers import plural
from rallebench.core.strict_numbers import Count, Number
from rallebench.core.types import Example


@dataclass(frozen=True, slots=True)
class GoldPage:
    """A page that holds the answer; ``doc_id``: the passage, if the gold names passages."""

    page_id: str = ""
    title: str = ""
    doc_id: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """The ids, which identify it."""
        return self.page_id, self.doc_id


Evidence = tuple[tuple[GoldPage, ...], ...]
"""Alternative sets of gold pages; the pages of a set are needed together."""


def toggle_page(evidence: Evidence, page: GoldPage, *, joined: bool = False) -> Evidence:
    """Remove a page that is gold; otherwise add it as a set of its own, or (``joined``) to the last set.

    >>> titan, saturn = GoldPage("p1"), GoldPage("p2")
    >>> [len(pages) for pages in toggle_page(((titan,),), saturn)]
    [1, 1]
    >>> toggle_page(((titan, saturn),), titan) == ((saturn,),)
    True
    """
    if any(own.key == page.key for pages in evidence for own in pages):
        left = (tuple(own for own in pages if own.key != page.key) for pages in evidence)
        return tuple(pages for pages in left if pages)
    if joined and evidence:
        return (*evidence[:-1], (*evidence[-1], page))
    return (*evidence, (page,))


@dataclass(frozen=True, slots=True)
class QuestionDraft:
    """The editable part of a question.

    ``answers``: each is right on its own. ``unanswerable``: True if declining is right. ``group``: the article or other group
    that the question belongs to.
    """

    text: str
    answers: tuple[str, ...] = ()
    evidence: Evidence = ()
    unanswerable: bool = False
    group: str = ""

    @property
    def pages(self) -> tuple[GoldPage, ...]:
        """The gold pages of all sets."""
        return tuple(page for pages in self.evidence for page in pages)

    def tidy(self) -> QuestionDraft:
        """Return the draft without surrounding spaces, empty and repeated answers, and empty or repeated sets."""
        answers = (answer.strip() for answer in self.answers)
        sets: dict[frozenset[tuple[str, str]], tuple[GoldPage, ...]] = {}
        for pages in self.evidence:
            own = {page.key: page for page in pages if any(page.key)}
            if own:
                sets.setdefault(frozenset(own), tuple(own.values()))
        return QuestionDraft(
            self.text.strip(),
            tuple(dict.fromkeys(filter(None, answers))),
            tuple(sets.values()),
            self.unanswerable,
            self.group.strip(),
        )


@dataclass(frozen=True, slots=True)
class LineChange:
    """A changed line. ``position``: its index, from 0; ``before``, ``after``: the line without its end, None if there is none."""

    position: Count
    qid: str
    before: str | None
    after: str | None

    @property
    def inverse(self) -> LineChange:
        return replace(self, before=self.after, after=self.before)


EditKind = Literal["add", "change", "delete", "undo", "return"]


@dataclass(frozen=True, slots=True)
class Edit:
    """An edit of a dataset. ``time``: in seconds since the epoch; ``about``: its cause, such as a run or the number of an undone
    edit; ``before``, ``after``: digests of the whole file, see ``question_lines.file_digest``.
    """

    time: Number
    kind: EditKind
    changes: tuple[LineChange, ...]
    before: str
    after: str
    about: str = ""


@dataclass(frozen=True, slots=True)
class EditHistory:
    """The edits of a dataset, oldest first. ``problem``: a sentence about a damaged line; '' if all can be read.
    ``continuous``: True if only these edits changed the file, so that every earlier version can be restored.
    """

    edits: tuple[Edit, ...] = ()
    problem: str = ""
    continuous: bool = True


@dataclass(frozen=True, slots=True)
class EditableQuestion:
    """A question as it was read to be edited. ``mark``: a digest of its record, by which a later edit notices a change."""

    qid: str
    draft: QuestionDraft
    mark: str


@dataclass(frozen=True, slots=True)
class AddedQuestions:
    """Result of adding questions: the ids of new ones, and the number of those that the dataset already had."""

    added: tuple[str, ...]
    present: int = 0


@dataclass(frozen=True, slots=True)
class DatasetChanges:
    """The questions of a run against their dataset as it is now. ``changed``: with another text or gold; ``deleted``: in the
    run only; ``added``: in the dataset only.
    """

    same: int
    changed: int = 0
    deleted: int = 0
    added: int = 0

    @property
    def words(self) -> str:
        """The counts in words; '' if nothing changed.

        >>> DatasetChanges(8, 3, 0, 1).words, DatasetChanges(8).words
        ('3 questions changed, 1 was added', '')
        """
        noun = plural(self.changed, "question") + " changed" if self.changed else ""
        parts = [noun, _count_words(self.deleted, "deleted"), _count_words(self.added, "added")]
        return ", ".join(filter(None, parts))


def _count_words(number: int, verb: str) -> str:
    return f"{number:,} {'was' if number == 1 else 'were'} {verb}" if number else ""


def question_key(example: Example) -> Hashable:
    """Everything of a question that its scores depend on: text, accepted answers and gold. Their order and titles do not count."""
    gold = example.gold
    return (
        example.question.text,
        frozenset(gold.answers),
        frozenset(map(frozenset, gold.required)),
        frozenset(gold.provenance),
        frozenset(gold.passages),
        frozenset(gold.grades.items()),
        gold.reference,
        gold.unanswerable,
    )


def compare_questions(
    before: Iterable[Example], now: Iterable[Example], *, part: bool = False
) -> DatasetChanges:
    """Compare the questions of a run with those of its dataset. ``part``: the run has a part of the dataset, so that further
    questions do not count as added.
    """
    keys = {example.question.qid: question_key(example) for example in now}
    old = {example.question.qid: question_key(example) for example in before}
    common = old.keys() & keys.keys()
    same = sum(old[qid] == keys[qid] for qid in common)
    added = 0 if part else len(keys) - len(common)
    return DatasetChanges(same, len(common) - same, len(old) - len(common), added)
