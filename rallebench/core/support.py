"""Support of an answer by the passages of its prompt: claims, the matrix of sentences and passages, quotations.

``support.jsonl`` in a run's folder holds one ``AnswerSupport`` a line, for the page; the scores are in ``scores.jsonl``.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass

from rallebench.core.strict_numbers import Count, Flag, Number, Whole
from rallebench.core.text import CJK_CHARACTER
from rallebench.core.types import Json, Passage

Premise = tuple[Passage, ...]
"""Passages that are read together."""

SHORT_WORDS, SHORT_CHARACTERS = 8, 16
"""Most words, or Chinese characters, of a short answer without a full stop."""
_STOP = re.compile(r"[.!?。！？][\"'”’)\]」』]*$")


@dataclass(frozen=True, slots=True)
class AnswerClaim:
    """A sentence to check. ``question``: the question that it answers."""

    text: str
    question: str = ""

    @property
    def statement(self) -> str:
        """The sentence, preceded by the question if it is too short to state anything alone, as ALCE does for lists.

        >>> AnswerClaim("1890", "When was it built?").statement, AnswerClaim("It was built in 1890.", "When?").statement
        ('When was it built? 1890', 'It was built in 1890.')
        """
        return (
            f"{self.question} {self.text}"
            if self.question and is_fragment(self.text)
            else self.text
        )


def is_fragment(text: str) -> bool:
    """Return whether a text is a short answer and not a sentence."""
    bare = text.strip()
    if _STOP.search(bare):
        return False
    if CJK_CHARACTER.search(bare):
        return len(bare) <= SHORT_CHARACTERS
    return len(bare.split()) <= SHORT_WORDS


@dataclass(frozen=True, slots=True)
class SentenceSupport:
    """A sentence of an answer without its citation marks.

    ``cited``: numbers of the passages that it cites, from 1, in order, repetitions included; ``wrong``: cited numbers that
    no passage has. ``scores``: its support by each passage, 0..1; () if there are none. ``supported``: whether a passage,
    or its cited passages together, support it; None if unknown.
    """

    text: str
    cited: tuple[Whole, ...] = ()
    wrong: tuple[Whole, ...] = ()
    scores: tuple[Number, ...] = ()
    supported: Flag | None = None

    @property
    def best(self) -> int:
        """The number of the passage with the highest score, 0 without scores."""
        return max(range(len(self.scores)), key=self.scores.__getitem__) + 1 if self.scores else 0


@dataclass(frozen=True, slots=True)
class Quotation:
    """Quoted words of an answer. ``passage``: the number of a passage that holds them word for word, 0 for none."""

    text: str
    passage: Count


@dataclass(frozen=True, slots=True)
class AnswerSupport:
    """The support of one answer. ``checker``: the metric's option, '' for the default. ``note``: why there are no scores."""

    qid: str
    checker: str
    sentences: tuple[SentenceSupport, ...]
    quotations: tuple[Quotation, ...] = ()
    threshold: Number = 0.5
    note: str = ""

    def to_json(self) -> Json:
        """Return a line of ``support.jsonl``."""
        return asdict(self)
