"""BLEU as in CRUD-RAG: per answer, without brevity penalty and without smoothing, on jieba's words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from rallebench.core.types import Episode, Gold
from rallebench.metrics import METRICS
from rallebench.metrics._reading import best, final_answer
from rallebench.metrics.words import jieba_words, ngrams

ORDERS = 4


def ngram_precision(answer: str, reference: str, order: int) -> float:
    """Return the share of the answer's n-grams that the reference has, each at most as often as there.

    >>> ngram_precision("a b", "a c", 1)
    0.6666666666666666
    """
    left, right = ngrams(jieba_words(answer), order), ngrams(jieba_words(reference), order)
    total = sum(left.values())
    return sum((left & right).values()) / total if total else 0.0


def precisions(answer: str, reference: str) -> tuple[float, ...]:
    """Return the precisions of all orders, 1 to 4."""
    return tuple(ngram_precision(answer, reference, order) for order in range(1, ORDERS + 1))


def geometric_mean(values: Sequence[float]) -> float:
    """Return the geometric mean of precisions; 0.0 if one of them is 0."""
    return math.exp(sum(map(math.log, values)) / len(values)) if min(values) > 0 else 0.0


def bleu_average(answer: str, reference: str) -> float:
    """Return the geometric mean of the four precisions; 0.0 if one of them is 0."""
    return geometric_mean(precisions(answer, reference))


@METRICS.register("bleu-avg", label="BLEU (CRUD-RAG)")
def bleu_avg(episode: Episode, gold: Gold) -> float | None:
    """The geometric mean of the 1- to 4-gram precisions against the best-fitting accepted answer, without penalty.

    An empty answer scores 0.

    Normalisation: none; jieba's words in its default mode, including punctuation and spaces.
    Not scored: the gold has no answers.
    Source: CRUD-RAG, Lyu et al. 2024, arXiv:2401.17043; BLEU: Papineni et al. 2002.
    Traps: 0 if no four adjacent words are shared, so always for answers of three words. A short answer is not
    penalised. It is the mean over answers, not corpus BLEU; other tools print other numbers.
    """
    return best(bleu_average, final_answer(episode), gold)


def _register(order: int) -> None:
    def bleu_n(episode: Episode, gold: Gold) -> float | None:
        return best(partial(ngram_precision, order=order), final_answer(episode), gold)

    bleu_n.__doc__ = f"""The share of the answer's {order}-grams that the best-fitting accepted answer has.

A repeated n-gram counts at most as often as there; an empty answer scores 0.

Normalisation: none; jieba's words in its default mode, including punctuation and spaces.
Not scored: the gold has no answers.
Source: CRUD-RAG, Lyu et al. 2024, arXiv:2401.17043; BLEU: Papineni et al. 2002.
Traps: A precision: leaving out most of the answer costs nothing. An answer of fewer than {order} words scores 0."""
    bleu_n.__name__ = bleu_n.__qualname__ = f"bleu_{order}"
    METRICS.register(f"bleu-{order}", label=f"BLEU-{order} precision")(bleu_n)


for _order in range(1, ORDERS + 1):
    _register(_order)
