"""Splitting of answers into words by the rules of their language. KILT's own metrics do not use this.

``auto`` looks at both texts of a comparison: a Chinese character (or kana) in either → ``jieba``; only Latin
letters → ``google``; any other script → ``words``.
"""

from __future__ import annotations

import functools
import re
import unicodedata
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Literal, cast

from rallebench.core.answers import normalize_answer
from rallebench.core.errors import MissingPackageError, UsageError
from rallebench.core.folding import fold, is_plain, mark_pattern
from rallebench.metrics._single import single

How = Literal["google", "words", "jieba", "char"]
HOW = ("google", "words", "jieba", "char")

_CJK = "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_IS_CJK = re.compile(f"[{_CJK}]")
_GOOGLE = re.compile(r"[a-z0-9]+")
_WORD = re.compile(r"\w+")
_CHAR = re.compile(rf"[{_CJK}]|[^\W{_CJK}]+")


def has_cjk(text: str) -> bool:
    """Return whether a text contains a Chinese character or Japanese kana. Hangul, written with spaces, does not count.

    >>> has_cjk("in 北京"), has_cjk("서울 Seoul")
    (True, False)
    """
    return bool(_IS_CJK.search(text))


def check_how(option: str) -> None:
    """Raise UsageError for an unknown rule."""
    if option not in HOW:
        raise UsageError(
            f"There is no rule {option!r} for words; choose {', '.join(HOW[:-1])} or {HOW[-1]}."
        )


def rule_for(option: str, *texts: str) -> How:
    """Return ``option``, or if that is '' the rule for the texts of one comparison.

    >>> rule_for("", "a café"), rule_for("", "Рим", "Rome"), rule_for("", "Rome", "罗马"), rule_for("char", "a")
    ('google', 'words', 'jieba', 'char')
    """
    if option:
        check_how(option)
        return cast(How, option)
    joined = " ".join(texts)
    if has_cjk(joined):
        return "jieba"
    return "google" if joined.isascii() or not any(map(_other_letter, set(joined))) else "words"


def words(text: str, how: How) -> list[str]:
    """Split a text into words.

    ``google``: lower-case runs of a–z and 0–9, as in rouge_score without stemming. ``words``: folded runs of letters,
    digits and marks of any script (core/folding.py). ``jieba``: see ``jieba_words``. ``char``: like ``words``, but every
    Chinese character or kana by itself.

    >>> words("Café 3.5", "google"), words("Café 3.5", "words"), words("10月 ok", "char")
    (['caf', '3', '5'], ['café', '3', '5'], ['10', '月', 'ok'])
    """
    if how == "jieba":
        return list(jieba_words(text))
    if how == "google":
        return _GOOGLE.findall(text.lower())
    folded = fold(text)
    patterns = (_WORD, _CHAR) if is_plain(folded) else _patterns()
    return patterns[how == "char"].findall(folded)


@functools.cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return ``_WORD`` and ``_CHAR``, with the marks of each letter."""
    mark = mark_pattern()
    word, other = rf"\w+(?:{mark}+\w*)*", rf"[^\W{_CJK}]"
    return re.compile(word), re.compile(rf"[{_CJK}]{mark}*|{other}+(?:{mark}+{other}*)*")


def answer_words(text: str, how: str = "") -> list[str]:
    """Split KILT's normal form (core/answers.py) of the folded text into words; CJK text into jieba's words without
    punctuation and spaces.

    Without CJK these are white-space tokens, as compared by KILT. ``how``: ``char`` for characters.

    >>> answer_words("The U.S. Navy"), answer_words("北京市。", "char")
    (['us', 'navy'], ['北', '京', '市'])
    """
    normal = normalize_answer(fold(text))
    if how == "char":
        return words(normal, "char")
    if how == "jieba" or (not how and has_cjk(normal)):
        return [word for word in jieba_words(normal) if any(c.isalnum() for c in word)]
    return words(normal, cast(How, how)) if how else normal.split()


@functools.lru_cache(maxsize=4096)  # several metrics in turn ask for the same answer and gold
def jieba_words(text: str) -> tuple[str, ...]:
    """Return all of jieba's words in its default mode: punctuation and spaces are words, case is kept."""
    return tuple(_jieba().cut(text))


def ngrams(tokens: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    """Count the n-grams of a text.

    >>> ngrams(["a", "b", "a", "b"], 2)
    Counter({('a', 'b'): 2, ('b', 'a'): 1})
    """
    return Counter(zip(*(tokens[start:] for start in range(n))))


def lcs_rows(first: Sequence[str], second: Sequence[str]) -> Iterator[int]:
    """Yield the rows of the table of longest common subsequences, one per word of ``second``, each as one integer: bit ``j - 1``
    is set if the row does not grow from column ``j - 1`` to ``j`` of ``first``. Bit-parallel: Hyyrö 2004.

    >>> [3 - row.bit_count() for row in lcs_rows(["a", "b", "c"], ["a", "c"])]
    [1, 2]
    """
    places: dict[str, int] = {}
    for column, word in enumerate(first):
        places[word] = places.get(word, 0) | (1 << column)
    full = (1 << len(first)) - 1
    flat = full
    for word in second:
        match = flat & places.get(word, 0)
        if match:
            flat = ((flat + match) | (flat - match)) & full
        yield flat


def count_words(text: str) -> int:
    """Count the words: jieba's for CJK text, else separated by white space; punctuation alone is not counted.

    >>> count_words("It's 3 o'clock - now."), count_words("北京市。")
    (4, 1)
    """
    pieces = jieba_words(text) if has_cjk(text) else text.split()
    return sum(any(c.isalnum() for c in piece) for piece in pieces)


@functools.lru_cache(maxsize=4096)
def _other_letter(character: str) -> bool:
    """Return whether a character is a letter of a non-Latin script."""
    return (
        character.isalpha()
        and "LATIN" not in unicodedata.name(character, "")
        and character not in "ªºµ"
    )


@single
def _jieba() -> Any:
    """Return jieba with its own dictionary, loaded silently and without a cache file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on newer Pythons its source causes warnings
        try:
            import jieba
        except ImportError:
            raise MissingPackageError("jieba", "and it splits Chinese text into words") from None
        tokenizer = jieba.Tokenizer()
        tokenizer.FREQ, tokenizer.total = tokenizer.gen_pfdict(tokenizer.get_dict_file())
        tokenizer.initialized = True
    return tokenizer
