"""Bag-of-words F1: SQuAD's as used by KILT, HotpotQA's with its rule for yes and no, and one for any language."""

from __future__ import annotations

from rallebench.core.answers import bag_f1, f1_score, normalize_answer
from rallebench.core.types import Episode, Gold
from rallebench.metrics import METRICS
from rallebench.metrics._reading import best_or_declining, final_answer
from rallebench.metrics.words import answer_words, check_how, has_cjk


@METRICS.register("f1", label="F1", declining=True)
def token_f1(episode: Episode, gold: Gold) -> float | None:
    """The harmonic mean of word precision and recall against the best-fitting accepted answer.

    Words are counted with their multiplicities. An empty answer scores 0.

    Normalisation: lower-case, ASCII punctuation deleted, a/an/the dropped, single spaces.
    Not scored: the gold has no answers.
    Source: KILT, Petroni et al. 2021, arXiv:2009.02252.
    Traps: White space separates words, so it says little about Chinese (f1_words does); yes and no are plain words.
    Other Unicode forms of a word (NFD, full width, a soft hyphen, vowel marks) count as different words; f1_words folds them.
    """
    return best_or_declining(f1_score, final_answer(episode), gold)


_WHOLE = ("yes", "no", "noanswer")


@METRICS.register("f1_yes_no", label="F1 (yes/no rule)", declining=True)
def f1_yes_no(episode: Episode, gold: Gold) -> float | None:
    """F1, but 0 if the answer or the accepted one is yes, no or noanswer and the other is not the same.

    The best over the accepted answers; an empty answer scores 0.

    Normalisation: lower-case, ASCII punctuation deleted, a/an/the dropped, single spaces.
    Not scored: the gold has no answers.
    Source: HotpotQA, Yang et al. 2018, arXiv:1809.09600; R-Eval, Tu et al. 2024, which uses it as its reward.
    Traps: 'Yes, it is.' scores 0 against 'yes'. R-Eval uses the first accepted answer only.
    """
    return best_or_declining(yes_no_score, final_answer(episode), gold)


def yes_no_score(answer: str, alias: str) -> float:
    """Return F1 with HotpotQA's rule.

    >>> yes_no_score("yes they are", "yes"), yes_no_score("Yes.", "yes"), yes_no_score("no 5", "no 6")
    (0.0, 1.0, 0.5)
    """
    pair = {normalize_answer(answer), normalize_answer(alias)}
    if len(pair) == 2 and not pair.isdisjoint(_WHOLE):
        return 0.0
    return f1_score(answer, alias)


@METRICS.register("f1_words", label="F1 (words by language)", declining=True, check=check_how)
def f1_words(episode: Episode, gold: Gold, option: str = "") -> float | None:
    """F1 of the words by the rules of their language: KILT's, but with jieba's words for Chinese.

    Without Chinese characters and option it equals f1 of the folded texts; an empty answer scores 0.

    Normalisation: folded (NFKC, case, no format characters and no optional vowel marks), ASCII punctuation deleted,
    a/an/the dropped, single spaces. If one text contains a Chinese character, both are split into jieba's words without
    punctuation.
    Not scored: the gold has no answers.
    Option: google, words, jieba or char, for all texts alike.
    Source: this project, after KILT, Petroni et al. 2021, arXiv:2009.02252.
    Traps: Another word segmentation gives other numbers; state it when you compare them.
    """

    def score(answer: str, alias: str) -> float:
        how = option or ("jieba" if has_cjk(answer + alias) else "")
        return bag_f1(answer_words(answer, how), answer_words(alias, how))

    return best_or_declining(score, final_answer(episode), gold)
