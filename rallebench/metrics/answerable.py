"""SQuAD 2.0's scores by kind of question: those with an answer, and unanswerable ones, where declining is right."""

from __future__ import annotations

from rallebench.core.declining import declines
from rallebench.core.types import Episode, Gold
from rallebench.metrics import METRICS
from rallebench.metrics._reading import final_answer
from rallebench.metrics.exact_match import exact_match
from rallebench.metrics.token_f1 import token_f1


@METRICS.register("em_answerable", label="EM (answerable)")
def em_answerable(episode: Episode, gold: Gold) -> float | None:
    """EM over the questions that have an answer.

    Normalisation: lower-case, ASCII punctuation deleted, a/an/the dropped, single spaces.
    Not scored: the gold has no answers, or the question is unanswerable.
    Source: SQuAD 2.0 (HasAns), Rajpurkar et al. 2018, arXiv:1806.03822.
    Traps: Says nothing about declining; read it beside em_unanswerable.
    """
    return exact_match(episode, gold) if gold.answers else None


@METRICS.register("f1_answerable", label="F1 (answerable)")
def f1_answerable(episode: Episode, gold: Gold) -> float | None:
    """F1 over the questions that have an answer.

    Normalisation: lower-case, ASCII punctuation deleted, a/an/the dropped, single spaces.
    Not scored: the gold has no answers, or the question is unanswerable.
    Source: SQuAD 2.0 (HasAns), Rajpurkar et al. 2018, arXiv:1806.03822.
    Traps: Says nothing about declining; read it beside em_unanswerable.
    """
    return token_f1(episode, gold) if gold.answers else None


@METRICS.register("em_unanswerable", needs="unanswerable", label="EM (unanswerable)")
def em_unanswerable(episode: Episode, gold: Gold) -> float | None:
    """1 if the answer declines, else 0, over the unanswerable questions.

    An answer declines if it is empty, a word such as "unanswerable" or "unknown", or says at its beginning that there is no
    answer or not enough information, in English or Chinese.

    Normalisation: lower-case, ASCII punctuation deleted, a/an/the dropped, single spaces.
    Not scored: the question is not marked as unanswerable.
    Source: SQuAD 2.0 (NoAns), Rajpurkar et al. 2018, arXiv:1806.03822, where only an empty answer declines.
    Traps: A system that always declines scores 1; read it beside em_answerable. F1 is the same number.
    """
    return float(declines(final_answer(episode))) if gold.unanswerable else None
