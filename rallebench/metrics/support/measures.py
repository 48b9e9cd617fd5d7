"""The support metrics, each with its card. All of one model come from one matrix of sentences and passages."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from rallebench.core.scoring import Pair
from rallebench.core.types import Episode, Example, Gold, Question
from rallebench.metrics import METRICS
from rallebench.metrics._options import names_language_model
from rallebench.metrics.support import formulas
from rallebench.metrics.support.formulas import Noted
from rallebench.metrics.support.matrix import CITATIONS, CLAIMS, GOLD_TEXT, AnswerMatrix
from rallebench.metrics.support.models import check_support_model
from rallebench.metrics.support.scorer import READS, SupportScorer, SupportTraits

OPTION = (
    "a folder or hub id of a support model with settings, as in FOLDER?supported=LABEL, or a language model of the "
    "workspace; by default the embedded head, which reads English."
)


def check_option(option: str) -> None:
    """Raise an error for a folder that holds no support model. Language models are known to the workspace alone."""
    if not names_language_model(option):
        check_support_model(option)


def register_support(
    name: str, label: str, parts: Iterable[str] = (), **traits: Any
) -> Callable[[Callable[[AnswerMatrix], Noted]], Callable[[AnswerMatrix], Noted]]:
    """Return a decorator that registers ``function(matrix) -> Noted``. ``parts``: of the matrix, besides its sentences."""

    def file(compute: Callable[[AnswerMatrix], Noted]) -> Callable[[AnswerMatrix], Noted]:
        @functools.wraps(compute)
        def singly(episode: Episode, gold: Gold, option: str = "") -> float | None:
            pair = Pair(Example(Question(episode.qid, ""), gold), episode)
            full = f"{name}:{option}" if option else name
            from rallebench.metrics import metric

            (row,) = SupportScorer((metric(full),), option).values([pair], [None])
            return row.values[full]

        METRICS.register(
            name,
            **{
                "label": label,
                "needs": "",
                "reads": READS,
                "tool": "checker",
                "check": check_option,
                "support": SupportTraits(compute, frozenset(parts)),
                **traits,
            },
        )(singly)
        return compute

    return file


@register_support("support", "Supported")
def support(matrix: AnswerMatrix) -> Noted:
    """The share of the answer's sentences that a passage of the prompt supports, alone or the cited ones together.

    A short answer without a full stop is read behind its question. The embedded head compares words, numbers, names and
    their places; on articles that it had not seen it told 91 of 100 pairs of true and swapped claims apart.

    Normalisation: citation marks are removed; a passage is read with its title.
    Not scored: the answer is empty or declines, or the prompt holds no retrieved passage word for word.
    Option: a folder or hub id of a support model with settings, as in FOLDER?supported=LABEL, or a language model of the
    workspace; by default the embedded head, which reads English.
    Source: this project; the models' formats are those of MiniCheck (arXiv:2404.10774), LettuceDetect (arXiv:2502.17125), HHEM and TRUE
    (arXiv:2204.04991).
    Traps: Supported is not right: passages may be wrong. Values of different models cannot be compared. The embedded head
    does not infer, count or compare dates; two passages count together only where both are cited.
    """
    return formulas.supported_share(matrix)


@register_support("citation_recall", "Citation recall", [CITATIONS])
def citation_recall(matrix: AnswerMatrix) -> Noted:
    """The share of the answer's sentences that their cited passages together support; without a citation, or with a wrong one, 0.

    At most three citations of a sentence count, as in ALCE's command line.

    Normalisation: as of support.
    Not scored: as of support.
    Option: as of support.
    Source: ALCE, Gao et al. 2023, arXiv:2305.14627, which uses TRUE (arXiv:2204.04991).
    Traps: Sentences are cut by our rules, not nltk's, and all lines count, not the first alone. [1, 2] is two citations.
    """
    return formulas.citation_recall(matrix)


@register_support("citation_precision", "Citation precision", [CITATIONS])
def citation_precision(matrix: AnswerMatrix) -> Noted:
    """The share of citations whose sentence is supported, and that support it alone or are needed beside the others.

    0 for an answer that cites no passage, as in ALCE; the question's note says so. Citations in a sentence with a wrong one
    do not count.

    Normalisation: as of support.
    Not scored: as of support.
    Option: as of support.
    Source: ALCE, Gao et al. 2023, arXiv:2305.14627.
    Traps: As of citation_recall.
    """
    return formulas.citation_precision(matrix)


@register_support("faithfulness", "Faithfulness")
def faithfulness(matrix: AnswerMatrix) -> Noted:
    """The share of the answer's sentences that a single passage supports.

    Normalisation: as of support; a sentence stands for a claim.
    Not scored: as of support.
    Option: as of support.
    Source: RAGChecker, Ru et al. 2024, arXiv:2408.08067.
    Traps: RAGChecker has a language model cut the answer into claims; here they are its sentences.
    """
    return formulas.faithfulness(matrix)


@register_support("claim_recall", "Claim recall", [CLAIMS], needs="claims")
def claim_recall(matrix: AnswerMatrix) -> Noted:
    """The share of the gold claims that a passage of the prompt supports.

    Normalisation: as of support.
    Not scored: the gold has no claims, and as of support.
    Option: as of support.
    Source: RAGChecker, Ru et al. 2024, arXiv:2408.08067.
    Traps: Passages beyond the prompt do not count.
    """
    return formulas.claim_recall(matrix)


@register_support("context_precision", "Context precision", [CLAIMS], needs="claims")
def context_precision(matrix: AnswerMatrix) -> Noted:
    """The share of the passages of the prompt that support a gold claim.

    Normalisation: as of support.
    Not scored: the gold has no claims, and as of support.
    Option: as of support.
    Source: RAGChecker, Ru et al. 2024, arXiv:2408.08067.
    Traps: As of claim_recall.
    """
    return formulas.context_precision(matrix)


@register_support("context_utilization", "Context utilization", [CLAIMS], needs="claims")
def context_utilization(matrix: AnswerMatrix) -> Noted:
    """The share of the gold claims in the passages that the answer makes.

    0 if no passage supports a gold claim, as in RAGChecker; the question's note says so.

    Normalisation: as of support.
    Not scored: the gold has no claims, and as of support.
    Option: as of support.
    Source: RAGChecker, Ru et al. 2024, arXiv:2408.08067.
    Traps: As of claim_recall.
    """
    return formulas.context_utilization(matrix)


@register_support("claim_precision", "Claim precision", [GOLD_TEXT], needs="claims")
def claim_precision(matrix: AnswerMatrix) -> Noted:
    """The share of the answer's sentences that the gold text supports.

    The gold text is the reference; without one, the claims.

    Normalisation: as of support; a sentence stands for a claim.
    Not scored: the gold has no claims, and as of support.
    Option: as of support.
    Source: RAGChecker (precision), Ru et al. 2024, arXiv:2408.08067.
    Traps: A right sentence that the gold text leaves out counts as wrong.
    """
    return formulas.claim_precision(matrix)


@register_support("claim_f1", "Claim F1", [GOLD_TEXT, CLAIMS], needs="claims")
def claim_f1(matrix: AnswerMatrix) -> Noted:
    """The harmonic mean of claim precision and of the share of the gold claims in the answer.

    Normalisation: as of support; a sentence stands for a claim.
    Not scored: the gold has no claims, and as of support.
    Option: as of support.
    Source: RAGChecker (F1), Ru et al. 2024, arXiv:2408.08067.
    Traps: As of claim_precision.
    """
    return formulas.claim_f1(matrix)


@register_support(
    "noise_sensitivity_relevant",
    "Noise sensitivity (relevant)",
    [GOLD_TEXT, CLAIMS],
    needs="claims",
    higher_is_better=False,
)
def noise_sensitivity_relevant(matrix: AnswerMatrix) -> Noted:
    """The share of the answer's sentences that are wrong and supported by a passage that supports a gold claim.

    Normalisation: as of support; a sentence stands for a claim.
    Not scored: the gold has no claims, and as of support.
    Option: as of support.
    Source: RAGChecker, Ru et al. 2024, arXiv:2408.08067.
    Traps: As of claim_precision.
    """
    return formulas.noise_sensitivity_relevant(matrix)


@register_support(
    "noise_sensitivity_irrelevant",
    "Noise sensitivity (irrelevant)",
    [GOLD_TEXT, CLAIMS],
    needs="claims",
    higher_is_better=False,
)
def noise_sensitivity_irrelevant(matrix: AnswerMatrix) -> Noted:
    """The share of the answer's sentences that are wrong and supported only by passages that support no gold claim.

    Normalisation: as of support; a sentence stands for a claim.
    Not scored: the gold has no claims, and as of support.
    Option: as of support.
    Source: RAGChecker, Ru et al. 2024, arXiv:2408.08067.
    Traps: As of claim_precision.
    """
    return formulas.noise_sensitivity_irrelevant(matrix)


@register_support(
    "hallucination", "Hallucination", [GOLD_TEXT], needs="claims", higher_is_better=False
)
def hallucination(matrix: AnswerMatrix) -> Noted:
    """The share of the answer's sentences that neither a passage nor the gold text supports.

    Normalisation: as of support; a sentence stands for a claim.
    Not scored: the gold has no claims, and as of support.
    Option: as of support.
    Source: RAGChecker, Ru et al. 2024, arXiv:2408.08067.
    Traps: As of claim_precision.
    """
    return formulas.hallucination(matrix)


@register_support(
    "self_knowledge", "Self-knowledge", [GOLD_TEXT], needs="claims", higher_is_better=None
)
def self_knowledge(matrix: AnswerMatrix) -> Noted:
    """The share of the answer's sentences that the gold text supports and no passage does.

    Normalisation: as of support; a sentence stands for a claim.
    Not scored: the gold has no claims, and as of support.
    Option: as of support.
    Source: RAGChecker, Ru et al. 2024, arXiv:2408.08067.
    Traps: As of claim_precision.
    """
    return formulas.self_knowledge(matrix)


@register_support("nugget_recall", "Nugget recall", [CLAIMS], needs="claims")
def nugget_recall(matrix: AnswerMatrix) -> Noted:
    """The share of the gold claims, or nuggets, that the answer supports.

    ALCE's claim recall and RAGChecker's recall are the same.

    Normalisation: citation marks are removed.
    Not scored: the gold has no claims, and as of support.
    Option: as of support.
    Source: TREC RAG 2024, Pradeep et al. 2025, arXiv:2504.15068 (All); ALCE, Gao et al. 2023, arXiv:2305.14627.
    Traps: Partial support counts as none, so the strict and the plain score are equal.
    """
    return formulas.nugget_recall(matrix)


@register_support("nugget_recall_vital", "Nugget recall (vital)", [CLAIMS], needs="claims")
def nugget_recall_vital(matrix: AnswerMatrix) -> Noted:
    """The share of the vital gold claims, or nuggets, that the answer supports.

    Normalisation: citation marks are removed.
    Not scored: no gold claim is vital, and as of support.
    Option: as of support.
    Source: TREC RAG 2024, Pradeep et al. 2025, arXiv:2504.15068 (Vital).
    Traps: A claim without an importance is vital.
    """
    return formulas.vital_recall(matrix)


@register_support("nugget_recall_weighted", "Nugget recall (weighted)", [CLAIMS], needs="claims")
def nugget_recall_weighted(matrix: AnswerMatrix) -> Noted:
    """The share of the gold claims, or nuggets, that the answer supports; one that is not vital weighs half.

    Normalisation: citation marks are removed.
    Not scored: the gold has no claims, and as of support.
    Option: as of support.
    Source: TREC RAG 2024, Pradeep et al. 2025, arXiv:2504.15068 (Weighted).
    Traps: As of nugget_recall_vital.
    """
    return formulas.weighted_recall(matrix)
