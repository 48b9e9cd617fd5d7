"""ROUGE-L exactly as PyPI ``rouge`` 1.0.1 computes it, without its recursion and quadratic table.

The tests compare this file with that package. It differs from Lin's (2004) ROUGE-L: the lengths count *distinct*
words, and the longest common subsequences of all sentence pairs are pooled into one set of words.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import islice

from rallebench.core.types import Episode, Gold
from rallebench.metrics import METRICS
from rallebench.metrics._reading import best, final_answer
from rallebench.metrics.words import lcs_rows

MAX_WORDS = 20_000
"""Maximum words read of a text: a bound on time and memory (about 50 MB)."""


@METRICS.register("rougel", label="ROUGE-L")
def rouge_l(episode: Episode, gold: Gold) -> float | None:
    """The F-measure of longest common word subsequences with the best-fitting accepted answer, on raw text.

    Full stops separate sentences. An empty answer, or one of full stops only, scores 0.

    Normalisation: none; white space separates words.
    Not scored: the gold has no answers.
    Source: KILT, Petroni et al. 2021, arXiv:2009.02252; PyPI rouge 1.0.1.
    Traps: Raw text: case and punctuation count, and equal texts score 0.999999995. It counts distinct words, so it
    is not Lin's ROUGE-L (that is rouge-L). It says little about Chinese. Words beyond the first 20,000 of a
    text are not read.
    """
    return best(rouge_l_score, final_answer(episode), gold)


@lru_cache(maxsize=256)  # KILT-ROUGE-L asks again for the same episode
def rouge_l_score(hypothesis: str, reference: str) -> float:
    """Return rouge-l f of ``Rouge().get_scores(hypothesis, reference, avg=True)``; 0.0 if that raises.

    >>> rouge_l_score("the cat sat", "the cat sat")
    0.999999995
    """
    sentences, references = _sentences(hypothesis), _sentences(reference)
    if not sentences or not references:
        return 0.0
    holders: dict[str, list[int]] = {}  # word → hypothesis sentences that contain it
    for number, words in enumerate(sentences):
        for word in set(words):
            holders.setdefault(word, []).append(number)
    pooled: set[str] = set()
    for words in references:
        # a common subsequence contains common words only, so a pair without a new one adds nothing
        new = set(words) - pooled
        for number in sorted({number for word in new for number in holders.get(word, ())}):
            if not new.isdisjoint(sentences[number]):
                pooled |= _common_subsequence(words, sentences[number])
                new -= pooled
    recall = len(pooled) / len({word for words in references for word in words})
    precision = len(pooled) / len(holders)
    return 2.0 * ((precision * recall) / (precision + recall + 1e-8))


def _sentences(text: str) -> list[list[str]]:
    """Return the words of each sentence; a blank sentence is one empty word."""
    pieces: list[list[str]] = []
    budget = MAX_WORDS
    for piece in text.split("."):
        if piece and budget > 0:
            words = list(islice(piece.split(), budget)) or [""]
            budget -= len(words)
            pieces.append(words)
    return pieces


def _common_subsequence(reference: list[str], hypothesis: list[str]) -> set[str]:
    """Return the words of the longest common subsequence that the package picks among equally long ones.

    Walking back through the rows, at differing words, the package goes up exactly if the cell above is larger than the
    one on the left, that is, if the row's bit is not set.
    """
    flat = list(lcs_rows(hypothesis, reference))
    words: set[str] = set()
    row, column = len(reference), len(hypothesis)
    while row and column:
        if reference[row - 1] == hypothesis[column - 1]:
            words.add(reference[row - 1])
            row, column = row - 1, column - 1
        elif not flat[row - 1] >> (column - 1) & 1:
            row -= 1
        else:
            column -= 1
    return words
