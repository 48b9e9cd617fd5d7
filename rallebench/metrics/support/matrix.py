"""The matrix of an answer: each sentence beside each passage of the prompt, and gold claims beside both.

``fill_matrix`` is a generator that asks for the scores of pairs and is sent them, so a model in a folder, the embedded head
and a language model fill the same matrix. Only the parts that the chosen metrics read are asked for.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rallebench.core.citing import (
    MarkedSentence,
    find_quotations,
    marked_sentences,
    prompt_passages,
)
from rallebench.core.declining import declines
from rallebench.core.scoring import Pair
from rallebench.core.support import AnswerClaim, AnswerSupport, Quotation, SentenceSupport
from rallebench.core.types import Generate, Gold, Passage
from rallebench.metrics.support.checker import SupportPair

SENTENCES, CITATIONS, CLAIMS, GOLD_TEXT = "sentences", "citations", "claims", "gold text"
IN_PASSAGES, IN_ANSWER = "claims in passages", "claims in the answer"
"""Parts of a matrix: sentences × passages; cited passages together; gold claims × passages and answer; sentences × gold."""
SHOWN_DIGITS = 4
MOST_CITATIONS = 3
"""Citations of a sentence that count, as in ALCE."""

Scores = Generator[list[SupportPair], list[float], "AnswerMatrix"]


@dataclass(frozen=True, slots=True)
class AnswerParts:
    """The parts of an answer and its gold. ``note``: why the answer cannot be checked, ''."""

    question: str
    answer: str
    sentences: tuple[MarkedSentence, ...]
    passages: tuple[Passage, ...]
    quotations: tuple[Quotation, ...]
    gold: Gold
    note: str = ""

    @property
    def gold_text(self) -> str:
        """The reference, else a long accepted answer, else the claims as a text; '' without any."""
        long = max(self.gold.answers, key=len, default="") if not self.gold.claims else ""
        return self.gold.reference or long or "\n".join(claim.text for claim in self.gold.claims)

    def claim(self, sentence: MarkedSentence) -> AnswerClaim:
        """Return a sentence as a claim."""
        return AnswerClaim(sentence.text, self.question)

    def valid_citations(self, sentence: MarkedSentence) -> tuple[int, ...]:
        """Return the citations that count for ALCE: at most three, none if one of the sentence is wrong."""
        if any(not 1 <= number <= len(self.passages) for number in sentence.numbers):
            return ()
        return sentence.numbers[:MOST_CITATIONS]


@dataclass(frozen=True, slots=True)
class AnswerMatrix:
    """The scores of an answer. ``sentences``: sentence × passage; ``together``: (sentence, numbers of passages) → their
    joint support; ``in_passages``: gold claim × passage; ``in_answer``: of each gold claim; ``in_gold``: of each sentence.
    """

    parts: AnswerParts
    threshold: float = 0.5
    sentences: tuple[tuple[float, ...], ...] = ()
    together: Mapping[tuple[int, tuple[int, ...]], float] = field(default_factory=dict)
    in_passages: tuple[tuple[float, ...], ...] = ()
    in_answer: tuple[float, ...] = ()
    in_gold: tuple[float, ...] = ()

    def holds(self, score: float) -> bool:
        """Return whether a score means support."""
        return score >= self.threshold

    def joint(self, row: int, numbers: tuple[int, ...]) -> bool:
        """Return whether passages together support a sentence."""
        if len(set(numbers)) == 1:
            return self.holds(self.sentences[row][numbers[0] - 1])
        return self.holds(self.together.get((row, numbers), 0.0))

    @property
    def sentence_states(self) -> list[bool]:
        """True for each sentence that a passage, or its cited passages together, support."""
        rows = []
        for row, (sentence, scores) in enumerate(zip(self.parts.sentences, self.sentences)):
            cited = self.parts.valid_citations(sentence)
            alone = any(map(self.holds, scores))
            rows.append(alone or (len(cited) > 1 and self.joint(row, cited)))
        return rows

    def support(self, qid: str, checker: str) -> AnswerSupport:
        """Return the support of the answer for the page."""
        parts, count = self.parts, len(self.parts.passages)
        states = self.sentence_states if self.sentences else [None] * len(parts.sentences)
        scores = self.sentences or ((),) * len(parts.sentences)
        sentences = tuple(
            SentenceSupport(
                sentence.text,
                tuple(number for number in sentence.numbers if 1 <= number <= count),
                tuple(number for number in sentence.numbers if not 1 <= number <= count),
                tuple(round(score, SHOWN_DIGITS) for score in row),
                state,
            )
            for sentence, row, state in zip(parts.sentences, scores, states)
        )
        return AnswerSupport(qid, checker, sentences, parts.quotations, self.threshold, parts.note)


def read_answer(pair: Pair) -> AnswerParts:
    """Return the parts of an answer, with the reason if nothing can be checked."""
    answer, passages = pair.episode.answer.strip(), prompt_passages(pair.episode)
    sentences = marked_sentences(answer)
    return AnswerParts(
        pair.example.question.text,
        answer,
        sentences,
        passages,
        find_quotations(answer, passages),
        pair.example.gold,
        _why_unchecked(pair, answer, sentences, passages),
    )


def _why_unchecked(
    pair: Pair, answer: str, sentences: Sequence[MarkedSentence], passages: Sequence[Passage]
) -> str:
    if not any(isinstance(step.request, Generate) for step in pair.episode.steps):
        return "no prompt of a language model is recorded"
    if not answer:
        return "the answer is empty"
    if not sentences:
        return "the answer has no sentence"
    if declines(answer):
        return "the answer declines"
    if not passages:
        return "the prompt holds no retrieved passage word for word"
    return ""


def fill_matrix(answer: AnswerParts, needed: frozenset[str], threshold: float) -> Scores:
    """Ask for the scores of the needed parts, then of cited passages together, then of the citations that may be superfluous;
    return the matrix. Without ``CITATIONS``, only sentences that no passage supports alone need the second round.
    """
    passages, claims = answer.passages, [AnswerClaim(c.text) for c in answer.gold.claims]
    own = [answer.claim(sentence) for sentence in answer.sentences]
    alone = [(passage,) for passage in passages]
    groups = {
        SENTENCES: [SupportPair(premise, claim) for claim in own for premise in alone],
        IN_PASSAGES: [],
        IN_ANSWER: [],
        GOLD_TEXT: [],
    }
    if CLAIMS in needed:
        whole = (Passage("answer", " ".join(sentence.text for sentence in answer.sentences)),)
        groups[IN_PASSAGES] = [SupportPair(premise, c) for c in claims for premise in alone]
        groups[IN_ANSWER] = [SupportPair(whole, claim) for claim in claims]
    if GOLD_TEXT in needed and answer.gold_text:
        gold = (Passage("gold", answer.gold_text),)
        groups[GOLD_TEXT] = [SupportPair(gold, claim) for claim in own]
    scores = iter((yield [pair for group in groups.values() for pair in group]))
    read = {name: tuple(next(scores) for _ in group) for name, group in groups.items()}
    matrix = AnswerMatrix(
        answer,
        threshold,
        _rows(read[SENTENCES], len(passages)),
        {},
        _rows(read[IN_PASSAGES], len(passages)),
        read[IN_ANSWER],
        read[GOLD_TEXT],
    )
    matrix = yield from _fill_together(matrix, _cited_together(matrix, CITATIONS in needed))
    if CITATIONS not in needed:
        return matrix
    return (yield from _fill_together(matrix, _superfluous(matrix)))


def _fill_together(matrix: AnswerMatrix, sets: Sequence[tuple[int, tuple[int, ...]]]) -> Scores:
    """Ask for the support of sentences by sets of passages, and return the matrix with it."""
    parts = matrix.parts
    pairs = [
        SupportPair(
            tuple(parts.passages[n - 1] for n in numbers), parts.claim(parts.sentences[row])
        )
        for row, numbers in sets
    ]
    scores = (yield pairs) if pairs else []
    return replace(matrix, together={**matrix.together, **dict(zip(sets, scores))})


def _cited_together(matrix: AnswerMatrix, every: bool) -> list[tuple[int, tuple[int, ...]]]:
    """Return the sentences that cite several passages, with their numbers."""
    return [
        (row, numbers)
        for row, sentence in enumerate(matrix.parts.sentences)
        if len(set(numbers := matrix.parts.valid_citations(sentence))) > 1
        and (every or not any(map(matrix.holds, matrix.sentences[row])))
    ]


def _superfluous(matrix: AnswerMatrix) -> list[tuple[int, tuple[int, ...]]]:
    """Return, for each citation of a supported sentence that does not support it alone, the sentence and the others."""
    rest: dict[tuple[int, tuple[int, ...]], None] = {}
    for row, cited in matrix.together:
        if not matrix.joint(row, cited):
            continue
        for place, number in enumerate(cited):
            left = cited[:place] + cited[place + 1 :]
            alone = matrix.holds(matrix.sentences[row][number - 1])
            if not alone and len(set(left)) > 1:
                rest[row, left] = None
    return list(rest)


def _rows(scores: Sequence[float], width: int) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(scores[i : i + width]) for i in range(0, len(scores), width or 1))


def play(matrices: Sequence[Scores], score: Any) -> list[AnswerMatrix]:
    """Fill many matrices together: ``score`` gets all pairs of a round at once, in any number of rounds."""
    done: dict[int, AnswerMatrix] = {}
    waiting = {i: next(matrix) for i, matrix in enumerate(matrices)}
    while waiting:
        scores = iter(score([pair for pairs in waiting.values() for pair in pairs]))
        after: dict[int, list[SupportPair]] = {}
        for i, pairs in waiting.items():
            try:
                after[i] = matrices[i].send([next(scores) for _ in pairs])
            except StopIteration as end:
                done[i] = end.value
        waiting = after
    return [done[i] for i in range(len(matrices))]
