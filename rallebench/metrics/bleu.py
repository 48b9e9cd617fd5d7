"""BLEU and chrF by sacrebleu, per answer and over all answers."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from rallebench.core.errors import MissingPackageError, UsageError
from rallebench.core.types import Episode, Gold
from rallebench.metrics import METRICS, Counted, Pairs
from rallebench.metrics._reading import final_answer
from rallebench.metrics.words import has_cjk, jieba_words

TOKENIZERS = ("13a", "zh", "char", "jieba")


def check_tokenizer(option: str) -> None:
    """Raise UsageError for an unknown tokenizer."""
    if option not in TOKENIZERS:
        raise UsageError(
            f"There is no tokenizer {option!r} for BLEU; choose {', '.join(TOKENIZERS[:-1])} or jieba."
        )


Rows = list["tuple[str, list[str]]"]
"""The answers, each with its accepted answers."""


def _over_all(
    measure: Callable[[], Any], rows_of: Callable[[Pairs, str], Rows]
) -> Callable[[Pairs, str], Counted]:
    def count(pairs: Pairs, option: str = "") -> Counted:
        # as in sacrebleu's own significance tests, its counts of single texts add up
        rows, score = rows_of(pairs, option), measure()
        counts = score._extract_corpus_statistics([answer for answer, _ in rows], _streams(rows))
        return counts, lambda total: _fraction(score._compute_score_from_stats(total))

    return count


def _raw(pairs: Pairs, option: str) -> Rows:
    return [(final_answer(episode), list(gold.answers)) for episode, gold in pairs]


def _in_tokens(pairs: Pairs, option: str) -> Rows:
    return [_tokenize(final_answer(episode), gold.answers, option) for episode, gold in pairs]


@functools.lru_cache(maxsize=1)
def _bleu() -> Any:
    return _sacrebleu().BLEU(tokenize="none", effective_order=True, force=True)


@functools.lru_cache(maxsize=1)
def _chrf() -> Any:
    return _sacrebleu().CHRF()


@METRICS.register(
    "bleu", label="BLEU", check=check_tokenizer, over_all=_over_all(_bleu, _in_tokens)
)
def bleu(episode: Episode, gold: Gold, option: str = "") -> float | None:
    """Sentence BLEU of the answer against all accepted answers at once: 1- to 4-grams with brevity penalty.

    As in sacrebleu for one sentence: exponential smoothing; orders longer than the answer are left out.
    An empty answer scores 0.

    Normalisation: none. Tokens are sacrebleu's 13a, or zh (each Chinese character by itself) if the answer or an accepted
    one contains a Chinese character. Case counts.
    Not scored: the gold has no answers.
    Over all answers: corpus BLEU, as printed in papers; the n-grams of all answers are counted together.
    Option: 13a, zh, char or jieba, for all texts alike.
    Source: Papineni et al. 2002; sacrebleu 2.6, Post 2018, arXiv:1804.08771.
    Traps: From 0 to 1 here, from 0 to 100 in papers. The mean over answers is not corpus BLEU. With several
    accepted answers, n-grams of all of them count.
    """
    if not gold.answers:
        return None
    answer, references = _tokenize(final_answer(episode), gold.answers, option)
    return _fraction(_bleu().sentence_score(answer, references)) if answer else 0.0


@METRICS.register("chrf", label="chrF", over_all=_over_all(_chrf, _raw))
def chrf(episode: Episode, gold: Gold) -> float | None:
    """F-score of the 1- to 6-grams of characters with the best-fitting accepted answer; recall has double weight.

    An empty answer scores 0.

    Normalisation: white space is removed; case and punctuation count.
    Not scored: the gold has no answers.
    Over all answers: corpus chrF; the n-grams of all answers are counted together.
    Source: Popović 2015; sacrebleu 2.6, Post 2018, arXiv:1804.08771.
    Traps: From 0 to 1 here, from 0 to 100 in papers. Unrelated texts of one language share characters and score
    about 0.1 to 0.2, not 0.
    """
    if not gold.answers:
        return None
    answer = final_answer(episode)
    return _fraction(_chrf().sentence_score(answer, list(gold.answers))) if answer else 0.0


def _fraction(score: Any) -> float:
    return min(1.0, float(score.score) / 100)  # a sum of logarithms may give 100.00000000000004


def _streams(rows: Sequence[tuple[str, list[str]]]) -> list[list[str | None]]:
    width = max(len(references) for _, references in rows)
    return [
        [references[i] if i < len(references) else None for _, references in rows]
        for i in range(width)
    ]


def _tokenize(answer: str, references: Sequence[str], option: str) -> tuple[str, list[str]]:
    """Return the texts with a space between tokens."""
    rule = option or ("zh" if any(map(has_cjk, (answer, *references))) else "13a")
    tokenize = _tokenizer(rule)
    return tokenize(answer), [tokenize(text) for text in references]


@functools.lru_cache(maxsize=8)
def _tokenizer(name: str) -> Callable[[str], str]:
    check_tokenizer(name)
    if name == "jieba":
        return lambda text: " ".join(word for word in jieba_words(text) if not word.isspace())
    _sacrebleu()
    from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
    from sacrebleu.tokenizers.tokenizer_char import TokenizerChar
    from sacrebleu.tokenizers.tokenizer_zh import TokenizerZh

    kinds: dict[str, Any] = {"13a": Tokenizer13a, "zh": TokenizerZh, "char": TokenizerChar}
    tokenizer = kinds[name]()
    # sacrebleu strips the white space at the end of a text before it tokenizes
    return lambda text: str(tokenizer(text.rstrip()))


def _sacrebleu() -> Any:
    try:
        from sacrebleu import metrics
    except ImportError:
        raise MissingPackageError("sacrebleu", "and BLEU and chrF need it") from None
    return metrics
