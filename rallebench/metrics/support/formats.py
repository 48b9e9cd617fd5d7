"""The inputs and outputs of support models, by their published formats."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rallebench.core.support import AnswerClaim, Premise
from rallebench.core.types import Passage
from rallebench.metrics.support.models import AUTOAIS, HHEM, LETTUCEDETECT, MINICHECK

Layout = Callable[[Sequence[str], AnswerClaim], tuple[str, "str | None"]]
"""Texts of the passages, and a claim → the model's one or two texts."""

HHEM_PROMPT = (
    "<pad> Determine if the hypothesis is true given the premise?\n\nPremise: {premise}\n\n"
    "Hypothesis: {claim}"
)
RAGTRUTH_PROMPT = (
    "Briefly answer the following question:\n{question}\nBear in mind that your response should be strictly based on the "
    "following {count} passages:\n{passages}\nIn case the passages do not contain the necessary information to answer the "
    'question, please reply with: "Unable to answer based on given passages."\noutput:'
)
"""The prompt of RAGTruth (Niu et al. 2024, arXiv:2401.00396), on which LettuceDetect was trained."""
SUMMARY_PROMPT = "Summarize the following text:\n{text}\noutput:"


def passage_text(passage: Passage) -> str:
    """Return title and text, as ALCE gives them to its NLI model."""
    return f"Title: {passage.title}\n{passage.text}" if passage.title else passage.text


def premise_texts(premise: Premise) -> tuple[str, ...]:
    """Return the text of each passage."""
    return tuple(map(passage_text, premise))


def choose_layout(kind: str, *, writes: bool, end: str) -> Layout:
    """Return the layout of a format. ``writes``: the model is a T5 with a decoder; ``end``: its token of the end."""
    if kind == LETTUCEDETECT:
        return _ragtruth
    if kind == HHEM:
        return lambda texts, claim: (
            HHEM_PROMPT.format(premise="\n".join(texts), claim=claim.statement),
            None,
        )
    if kind == MINICHECK:
        start = "predict: " if writes else ""
        return lambda texts, claim: (f"{start}{chr(10).join(texts)}{end}{claim.statement}", None)
    if kind == AUTOAIS:
        return lambda texts, claim: (
            f"premise: {chr(10).join(texts)} hypothesis: {claim.statement}",
            None,
        )
    return lambda texts, claim: ("\n".join(texts), claim.statement)


def _ragtruth(texts: Sequence[str], claim: AnswerClaim) -> tuple[str, str]:
    if not claim.question:
        return SUMMARY_PROMPT.format(text="\n".join(texts)), claim.text
    numbered = "\n".join(f"passage {i}: {text}" for i, text in enumerate(texts, 1))
    prompt = RAGTRUTH_PROMPT.format(question=claim.question, count=len(texts), passages=numbered)
    return prompt, claim.text


def label_probability(logits: Any, place: int) -> Any:
    """Return the probability of a label (n,) from logits (n, labels); of one label its logistic value."""
    if logits.shape[-1] == 1:
        return logits[..., 0].sigmoid()
    return logits.softmax(-1)[..., place]


def weakest_token(logits: Any, answer: Any, place: int) -> Any:
    """Return the least probability of support over the tokens of each claim (n,).

    ``logits``: (n, tokens, labels); ``answer``: a mask (n, tokens) of the claim's tokens.
    """
    return label_probability(logits, place).masked_fill(~answer, 2.0).amin(-1).clamp(max=1.0)


def first_word(logits: Any, no: int, yes: int) -> Any:
    """Return the probability of the token ``yes`` against ``no`` as the first one written (n,); logits: (n, 1, vocabulary)."""
    return logits[:, 0, [no, yes]].softmax(-1)[:, 1]
