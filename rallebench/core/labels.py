"""Labels: what people say of answers and passages, as values.

A label belongs to the text of a question and an answer, not to a run, so it holds for every run with the same answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, Literal

from rallebench.core.folding import fold
from rallebench.core.strict_numbers import Between, Count, Flag, Number, Whole
from rallebench.core.types import digest

Grade = Literal["right", "partly", "wrong", "gold-wrong", "skip"]
KEYS: Mapping[str, Grade] = {
    "1": "right",
    "2": "partly",
    "3": "wrong",
    "4": "gold-wrong",
    "0": "skip",
}
"""Key of the page → grade."""
GRADES: Mapping[Grade, str] = {
    "right": "Right",
    "partly": "Partly right",
    "wrong": "Wrong",
    "gold-wrong": "The gold is wrong",
    "skip": "Skipped",
}
"""Grade → its name for people. A skipped answer counts as not labelled."""
WORTH: Mapping[Grade, float] = {"right": 1.0, "partly": 0.5, "wrong": 0.0}
"""Grade → the score of the answer; an answer with wrong gold has none."""
LONGEST_NAME, LONGEST_NOTE, LONGEST_ANSWER = 60, 2000, 1000
"""The most characters of a person's name, of a note, and of a right answer that a person gives."""


@dataclass(frozen=True, slots=True)
class AnswerKey:
    """A question by the digest of its text, and an answer in its normal form."""

    question: str
    answer: str


def question_digest(text: str) -> str:
    """Return 16 hex digits for the text of a question."""
    return digest(text.strip())[:16]


def normal_answer(answer: str) -> str:
    """Return the form in which equal answers are compared: without differences of case, width and space. Punctuation stays,
    since "-5" is not "5".

    >>> normal_answer("  The  Black\\nSea "), normal_answer("-5") == normal_answer("5")
    ('the black sea', False)
    """
    return " ".join(fold(answer).split())


@lru_cache(maxsize=100_000)  # a label key asks for all answers of a run again
def answer_key(question: str, answer: str) -> AnswerKey:
    """Return the key of an answer to a question, given by their texts."""
    return AnswerKey(question_digest(question), normal_answer(answer))


@dataclass(frozen=True, slots=True)
class RunAnswer:
    """The answer of a run to a question. ``dataset``: of the run."""

    dataset: str
    run: str
    qid: str
    question: str
    answer: str

    @property
    def key(self) -> AnswerKey:
        return answer_key(self.question, self.answer)


@dataclass(frozen=True, slots=True)
class AnswerLabel:
    """A person's label of an answer. ``time``: seconds since the epoch; ``question``, ``answer``: see ``AnswerKey``; ``qid``,
    ``run``: where it was given; ``blind``: without sight of gold and scores; ``right``: right answers that the person gave.
    """

    time: Number
    who: str
    qid: str
    question: str
    answer: str
    grade: Grade
    note: str = ""
    run: str = ""
    blind: Flag = False
    right: tuple[str, ...] = ()

    @property
    def key(self) -> AnswerKey:
        return AnswerKey(self.question, self.answer)


@dataclass(frozen=True, slots=True)
class PassageLabel:
    """A person's label of a passage for a question. ``page_id``: its page; ``doc_id``: the passage, if it has no page."""

    time: Number
    who: str
    qid: str
    question: str
    relevant: Flag
    page_id: str = ""
    doc_id: str = ""
    title: str = ""
    run: str = ""


@dataclass(frozen=True, slots=True)
class SampledAnswer:
    """An answer of a sample. ``probability``: of being drawn, above 0; ``apart``: graders disagree about it."""

    qid: str
    question: str
    answer: str
    probability: Annotated[float, Between(0, 1)]
    apart: Flag = False

    @property
    def key(self) -> AnswerKey:
        return AnswerKey(self.question, self.answer)


@dataclass(frozen=True, slots=True)
class LabelSample:
    """Answers of a run to be labelled, drawn at random. ``graders``: the columns whose disagreements were drawn more often, ()
    if all answers had the same chance; ``total``: the distinct answers of the run.
    """

    time: Number
    who: str
    run: str
    seed: Whole
    total: Count
    answers: tuple[SampledAnswer, ...]
    graders: tuple[str, ...] = ()


Label = AnswerLabel | PassageLabel | LabelSample


@dataclass(frozen=True, slots=True)
class LabelBook:
    """The labels of a dataset. ``answers``: answer → person → the last label; ``passages``: (question, page, passage) → person →
    the last label; ``samples``: run → its last sample; ``problem``: a sentence about a damaged line, or ''.
    """

    answers: Mapping[AnswerKey, Mapping[str, AnswerLabel]] = field(default_factory=dict)
    passages: Mapping[tuple[str, str, str], Mapping[str, PassageLabel]] = field(
        default_factory=dict
    )
    samples: Mapping[str, LabelSample] = field(default_factory=dict)
    problem: str = ""

    def answer_labels(self, key: AnswerKey) -> tuple[AnswerLabel, ...]:
        """Return the labels of an answer by different people, oldest first; skipped ones are left out."""
        labels = self.answers.get(key, {}).values()
        return tuple(sorted((x for x in labels if x.grade != "skip"), key=lambda x: x.time))

    def relevance(self, question: str, page_id: str, doc_id: str = "") -> bool | None:
        """Return True if at least half of the people call a passage relevant; None without a label of it."""
        labels = self.passages.get((question, page_id, doc_id), {}).values()
        return 2 * sum(x.relevant for x in labels) >= len(labels) if labels else None


@dataclass(frozen=True, slots=True)
class LabelAgreement:
    """The agreement of people over the answers that two or more labelled. ``nominal``: Krippendorff's alpha of all grades;
    ``low``..``high``: its 95 % interval, None with too few answers; ``ordinal``: of right, partly and wrong in this order; None if
    it is not defined, then ``problem`` says why.
    """

    people: tuple[str, ...]
    answers: int
    nominal: float | None
    ordinal: float | None
    problem: str = ""
    low: float | None = None
    high: float | None = None
