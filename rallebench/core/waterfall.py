"""The stages at which a chain loses questions, as values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from rallebench.core.types import Json

STAGES = {
    "failed": "the question failed, so nothing else is known",
    "not_in_corpus": "a gold page is not in the corpus",
    "not_retrieved": "the gold pages are in the corpus, but were not retrieved within k",
    "not_found": "the gold was not retrieved within k; it is unknown whether the corpus holds it",
    "not_given": "no passage that came with the question holds a gold answer",
    "not_in_prompt": "retrieved, but not word for word in a prompt: cut by template, k or context window",
    "not_in_answer": "in the prompt, or asked without passages, but the answer holds no gold answer",
    "lost_by_format": "the answer holds a gold answer and more, so exact match is 0",
    "right_without_support": "right, though no prompt held support (gold pages, or else a passage with an answer)",
    "right": "right, with its support in the prompt",
    "in_prompt": "in the prompt, or asked without passages; the gold answers are too long for exact match",
    "without_answers": "in the prompt; the gold has no answers",
    "unanswerable": "the gold accepts no answer",
    "declined": "the answer declines, which is right: the question has no answer",
    "not_declined": "answered, though the question has no answer and declining is right",
    "retrieved": "the gold pages were retrieved; no answer is produced, or an imported run records no prompt",
    "not_recorded": "imported: no retrieval is recorded, so it is unknown where the question was lost",
}
"""Stage → its meaning, in the order in which a question passes the stages."""

OF_UNANSWERABLE = frozenset({"declined", "not_declined"})
"""Stages of unanswerable questions, which are counted only in a set that has some."""

SHORT: Mapping[str, str] = {
    "failed": "failed",
    "not_in_corpus": "not in the corpus",
    "not_retrieved": "not retrieved",
    "not_found": "not retrieved, corpus unknown",
    "not_given": "not in the given passages",
    "not_in_prompt": "not in the prompt",
    "not_in_answer": "not in the answer",
    "lost_by_format": "lost by format",
    "right_without_support": "right without support",
    "right": "right",
    "in_prompt": "in the prompt",
    "without_answers": "in the prompt, no gold answers",
    "unanswerable": "no gold",
    "declined": "declined: right",
    "not_declined": "answered instead of declined",
    "retrieved": "retrieved",
    "not_recorded": "no retrieval recorded",
}
"""Stage → its name."""

VerdictKind = Literal["right", "wrong", "lost", "format", "failed", "none"]

AT_STAGE: Mapping[str, tuple[VerdictKind, int | None]] = {
    "failed": ("failed", None),
    "not_in_corpus": ("lost", 0),
    "not_retrieved": ("lost", 0),
    "not_found": ("lost", 0),
    "not_given": ("lost", 0),
    "not_in_prompt": ("wrong", 1),
    "not_in_answer": ("wrong", 2),
    "lost_by_format": ("format", 3),
    "right_without_support": ("right", None),
    "right": ("right", None),
    "declined": ("right", None),
    "not_declined": ("wrong", 2),
}
"""Stage of the waterfall → verdict and the position in the chain at which the question was lost. Other stages have
no gold answer.
"""
UNKNOWN: tuple[VerdictKind, None] = ("none", None)

UNTRACED = (
    "nothing was retrieved and no question names gold pages, so no question can be traced; the metrics "
    "measure the answers."
)
"""The note on a run without a waterfall."""


@dataclass(frozen=True, slots=True)
class QuestionStage:
    """The stage of one question. ``by``: the evidence, gold ``pages``; without these the gold ``answers`` in the retrieved
    passages, or in passages ``given`` with the question."""

    qid: str
    stage: str
    by: str = "pages"


@dataclass(frozen=True, slots=True)
class Waterfall:
    """All questions of a run in order. ``corpus_known``: True if the corpus could be read; ``imported``: True if the
    answers are another program's predictions, without prompts."""

    placed: tuple[QuestionStage, ...]
    corpus_known: bool
    retrieves: bool = True
    imported: bool = False

    @property
    def without_pages(self) -> int:
        """Questions without gold pages, traced by their gold answers in the retrieved passages."""
        return sum(question.by == "answers" for question in self.placed)

    @property
    def given_passages(self) -> int:
        """Questions with given passages, so no corpus was searched."""
        return sum(question.by == "given" for question in self.placed)

    @property
    def tells(self) -> bool:
        """True if questions can be traced: by a retrieval, given passages or gold pages."""
        return self.retrieves or self.imported or self.without_pages < len(self.placed)

    @property
    def misses_corpus(self) -> bool:
        """True if a corpus was searched but could not be read."""
        return self.retrieves and not (
            self.corpus_known or self.imported or self.given_passages == len(self.placed)
        )

    def counts(self) -> dict[str, int]:
        """Stage → number of questions, for all stages in order; those of unanswerable questions only if there are any."""
        numbers = Counter(question.stage for question in self.placed)
        stages = (s for s in STAGES if numbers[s] or s not in OF_UNANSWERABLE)
        return {stage: numbers[stage] for stage in stages}

    def questions(self, stage: str) -> list[str]:
        """The ids of the questions of a stage, in order."""
        return [question.qid for question in self.placed if question.stage == stage]

    def to_json(self, run: str) -> Json:
        """The waterfall of this run, with the ids of the questions of each stage."""
        questions = {stage: self.questions(stage) for stage in STAGES}
        return {
            "run": run,
            "n": len(self.placed),
            "waterfall": self.counts(),
            "questions": {stage: qids for stage, qids in questions.items() if qids},
            "corpus_known": self.corpus_known,
            "imported": self.imported,
            "without_pages": self.without_pages,
            "given": self.given_passages,
            "misses_corpus": self.misses_corpus,
            "tells": self.tells,
        }

    def within(self, qids: Collection[str]) -> Waterfall:
        return replace(
            self, placed=tuple(question for question in self.placed if question.qid in qids)
        )


def verdict_kind(error: str, em: float | None, stage: str = "") -> VerdictKind:
    """Return the verdict on an answer, from its exact match or else from its stage of the waterfall, if known."""
    if error:
        return "failed"
    if em == 1:
        return "right"
    if stage:
        return AT_STAGE.get(stage, UNKNOWN)[0]
    return "none" if em is None else "wrong"
