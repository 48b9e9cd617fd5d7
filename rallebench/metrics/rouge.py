"""ROUGE-1, -2 and -L like Google's rouge_score, over words split by the rules of their language.

Lin 2004. The tests compare the results with rouge_score; the longest common subsequence uses one integer per row
(bit-parallel, Hyyrö 2004) where that package fills a table, because runs have thousands of long answers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial

from rallebench.core.answers import f_measure
from rallebench.core.types import Episode, Gold
from rallebench.metrics import METRICS
from rallebench.metrics._reading import best, final_answer
from rallebench.metrics.words import check_how, lcs_rows, ngrams, rule_for, words


def rouge_n_score(n: int, answer: Sequence[str], reference: Sequence[str]) -> float:
    """Return the F-measure of the n-grams, with their multiplicities; 0.0 if a side has none.

    >>> rouge_n_score(1, ["a", "b"], ["a", "c"]), rouge_n_score(2, ["a"], ["a"])
    (0.5, 0.0)
    """
    left, right = ngrams(answer, n), ngrams(reference, n)
    common = sum((left & right).values())
    return f_measure(common, sum(left.values()), sum(right.values()))


def rouge_lcs_score(answer: Sequence[str], reference: Sequence[str]) -> float:
    """Return the F-measure of the longest common subsequence.

    >>> rouge_lcs_score(["a", "x", "b"], ["a", "b", "c"])
    0.6666666666666666
    """
    return f_measure(lcs_length(answer, reference), len(answer), len(reference))


def lcs_length(first: Sequence[str], second: Sequence[str]) -> int:
    """Return the number of words of the longest common subsequence.

    >>> lcs_length("police killed the gunman".split(), "police kill the gunman".split())
    3
    """
    last = deque(lcs_rows(first, second), maxlen=1)
    return len(first) - last[0].bit_count() if last else 0


_DOC = """{what} shared with the best-fitting accepted answer: F-measure of precision and recall.

An empty answer scores 0.

Normalisation: lower-case; Latin text in runs of a–z and 0–9 without stemming, as in rouge_score; other scripts in
runs of their letters; text with a Chinese character in jieba's words, punctuation included and case kept, as in
CRUD-RAG.
Not scored: no accepted answer contains a word.
Option: google, words, jieba or char, for all texts alike.
Source: Lin 2004, ROUGE; Google's rouge_score 0.1.2; CRUD-RAG, Lyu et al. 2024, arXiv:2401.17043.
Traps: {traps}Accented letters split words, as in rouge_score. KILT's rougel is another measure."""


def _register(
    name: str,
    label: str,
    what: str,
    score: Callable[[Sequence[str], Sequence[str]], float],
    traps: str = "",
) -> None:
    def rouge(episode: Episode, gold: Gold, option: str = "") -> float | None:
        answer = final_answer(episode)

        def compare(text: str, alias: str) -> float:
            how = rule_for(option, text, alias)
            return score(words(text, how), words(alias, how))

        if not any(words(alias, rule_for(option, answer, alias)) for alias in gold.answers):
            return None
        return best(compare, answer, gold)

    rouge.__doc__ = _DOC.format(what=what, traps=traps)
    rouge.__name__ = rouge.__qualname__ = name.lower().replace("-", "_")
    METRICS.register(name, label=label, check=check_how)(rouge)


_register("rouge-1", "ROUGE-1", "Words", partial(rouge_n_score, 1), "Order is ignored. ")
_register(
    "rouge-2",
    "ROUGE-2",
    "Pairs of adjacent words",
    partial(rouge_n_score, 2),
    "An answer of one word always scores 0. ",
)
_register("rouge-L", "ROUGE-L (Lin)", "Words of the longest common subsequence", rouge_lcs_score)
