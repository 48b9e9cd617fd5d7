"""Numbers from the matrix of an answer: ALCE's citations, RAGChecker's ratios, nuggets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rallebench.metrics.support.matrix import AnswerMatrix


class Noted(NamedTuple):
    """A value, and a remark; without a value, the reason."""

    value: float | None
    note: str = ""


def supported_share(matrix: AnswerMatrix) -> Noted:
    """Return the share of supported sentences."""
    return Noted(_mean(matrix.sentence_states))


def citation_recall(matrix: AnswerMatrix) -> Noted:
    """Return ALCE's citation recall: the share of sentences that their cited passages together support.

    A sentence without a citation, or with a wrong one, counts as not supported.
    """
    parts = matrix.parts
    return Noted(
        _mean(
            [
                bool(cited := parts.valid_citations(sentence)) and matrix.joint(row, cited)
                for row, sentence in enumerate(parts.sentences)
            ]
        )
    )


def citation_precision(matrix: AnswerMatrix) -> Noted:
    """Return ALCE's citation precision: the share of citations that are needed.

    A citation counts if its sentence is supported by the cited passages together, and the passage supports the sentence
    alone, or the others do not support it without the passage. Citations of a sentence with a wrong one are left out.
    """
    parts, precise, total = matrix.parts, 0, 0
    for row, sentence in enumerate(parts.sentences):
        cited = parts.valid_citations(sentence)
        total += len(cited)
        if not cited or not matrix.joint(row, cited):
            continue
        for place, number in enumerate(cited):
            left = cited[:place] + cited[place + 1 :]
            alone = matrix.holds(matrix.sentences[row][number - 1])
            precise += alone or not left or not matrix.joint(row, left)
    if not total:
        return Noted(0.0, "0 by ALCE's definition: the answer cites no passage")
    return Noted(precise / total)


def faithfulness(matrix: AnswerMatrix) -> Noted:
    """Return the share of sentences that a single passage supports."""
    return Noted(_mean([any(map(matrix.holds, row)) for row in matrix.sentences]))


def claim_recall(matrix: AnswerMatrix) -> Noted:
    """Return the share of gold claims that a passage supports."""
    return Noted(_mean(_claims_in_passages(matrix)))


def context_precision(matrix: AnswerMatrix) -> Noted:
    """Return the share of passages that support a gold claim."""
    return Noted(_mean(_relevant(matrix)))


def context_utilization(matrix: AnswerMatrix) -> Noted:
    """Return the share of the gold claims in the passages that the answer makes."""
    recalled = _claims_in_passages(matrix)
    if not any(recalled):
        return Noted(0.0, "0 by RAGChecker's definition: no passage supports a gold claim")
    used = [known and matrix.holds(score) for known, score in zip(recalled, matrix.in_answer)]
    return Noted(sum(used) / sum(recalled))


def claim_precision(matrix: AnswerMatrix) -> Noted:
    """Return the share of sentences that the gold text supports."""
    return Noted(_mean(_correct(matrix)))


def claim_f1(matrix: AnswerMatrix) -> Noted:
    """Return the harmonic mean of ``claim_precision`` and the share of gold claims in the answer."""
    precision = claim_precision(matrix).value or 0.0
    recall = nugget_recall(matrix).value or 0.0
    both = precision + recall
    return Noted(2 * precision * recall / both if both else 0.0)


def noise_sensitivity_relevant(matrix: AnswerMatrix) -> Noted:
    """Return the share of sentences that are wrong and supported by a passage with a gold claim."""
    by_relevant, _ = _by_relevance(matrix)
    return Noted(_mean([held and not right for held, right in zip(by_relevant, _correct(matrix))]))


def noise_sensitivity_irrelevant(matrix: AnswerMatrix) -> Noted:
    """Return the share of sentences that are wrong and supported by passages without a gold claim alone."""
    by_relevant, by_others = _by_relevance(matrix)
    rows = zip(by_relevant, by_others, _correct(matrix))
    return Noted(_mean([other and not held and not right for held, other, right in rows]))


def hallucination(matrix: AnswerMatrix) -> Noted:
    """Return the share of sentences that are wrong and that no passage supports."""
    return Noted(_mean([not f and not c for f, c in zip(_faithful(matrix), _correct(matrix))]))


def self_knowledge(matrix: AnswerMatrix) -> Noted:
    """Return the share of sentences that are right and that no passage supports."""
    return Noted(_mean([not f and c for f, c in zip(_faithful(matrix), _correct(matrix))]))


def nugget_recall(matrix: AnswerMatrix) -> Noted:
    """Return the share of gold claims that the answer supports."""
    return Noted(_mean(_in_answer(matrix)))


def vital_recall(matrix: AnswerMatrix) -> Noted:
    """Return the share of vital gold claims that the answer supports."""
    claims = matrix.parts.gold.claims
    vital = [held for held, claim in zip(_in_answer(matrix), claims) if claim.vital]
    return Noted(_mean(vital)) if vital else Noted(None, "no gold claim is vital")


def weighted_recall(matrix: AnswerMatrix) -> Noted:
    """Return the share of gold claims that the answer supports; others than vital ones weigh half."""
    weights = [1.0 if claim.vital else 0.5 for claim in matrix.parts.gold.claims]
    held = sum(weight for weight, holds in zip(weights, _in_answer(matrix)) if holds)
    return Noted(held / sum(weights))


def _faithful(matrix: AnswerMatrix) -> list[bool]:
    return [any(map(matrix.holds, row)) for row in matrix.sentences]


def _correct(matrix: AnswerMatrix) -> list[bool]:
    return [matrix.holds(score) for score in matrix.in_gold]


def _in_answer(matrix: AnswerMatrix) -> list[bool]:
    return [matrix.holds(score) for score in matrix.in_answer]


def _claims_in_passages(matrix: AnswerMatrix) -> list[bool]:
    return [any(map(matrix.holds, row)) for row in matrix.in_passages]


def _relevant(matrix: AnswerMatrix) -> list[bool]:
    return [any(map(matrix.holds, column)) for column in zip(*matrix.in_passages)]


def _by_relevance(matrix: AnswerMatrix) -> tuple[list[bool], list[bool]]:
    """Return whether a passage with a gold claim supports each sentence, and whether another one does."""
    relevant = _relevant(matrix)
    rows = [[matrix.holds(score) for score in row] for row in matrix.sentences]
    return (
        [any(held and good for held, good in zip(row, relevant)) for row in rows],
        [any(held and not good for held, good in zip(row, relevant)) for row in rows],
    )


def _mean(values: Sequence[bool]) -> float:
    return sum(values) / len(values)
