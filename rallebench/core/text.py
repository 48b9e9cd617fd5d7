"""Texts cut into parts: sentences, lists of names with brackets, the tokens of sparse retrieval and of length counts."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from rallebench.core.folding import fold, is_plain, mark_pattern

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_RUN = re.compile(rf"[{_CJK}]+|[^\W_{_CJK}]+", re.UNICODE)
CJK_CHARACTER = re.compile(rf"[{_CJK}]")
_SOUTHEAST_ASIAN = "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u0edc-\u0edf\u1000-\u103f\u1050-\u108f\u1780-\u17d3\u17d7\u17dc\u17dd"
"""Letters and marks of Thai, Lao, Burmese and Khmer, which put no spaces between words."""

_STOPWORDS = (
    "a an and are as at be but by for if in into is it no not of on or such that the their "
    "then there these they this to was will with"
)
STOPWORDS = frozenset(_STOPWORDS.split())
"""The 33 English stop words of Lucene's default analyser."""


def tokenize(text: str) -> list[str]:
    """Folded words without English stop words. Scripts without spaces give bigrams of characters.

    A mark belongs to the preceding letter, so it never splits a word.

    >>> tokenize("The Danube's mouth, 多瑙河!")
    ['danube', 's', 'mouth', '多瑙', '瑙河']
    >>> tokenize("हिन्दी में"), tokenize("ﬁnance ＧＰＵ")
    (['हिन्दी', 'में'], ['finance', 'gpu'])
    """
    folded = fold(text)
    if is_plain(folded):
        return _with_bigrams(_RUN.findall(folded))
    marked = marked_words()
    tokens: list[str] = []
    for run in marked.word.findall(folded):
        if marked.unspaced.match(run):
            letters = marked.letter.findall(run)
            tokens += map("".join, zip(letters, letters[1:])) if len(letters) > 1 else letters
        elif CJK_CHARACTER.match(run):
            tokens += _bigrams(run)
        elif run not in STOPWORDS:
            tokens.append(run)
    return tokens


def tokenize_unfolded(text: str) -> list[str]:
    """Lower-cased words, cut at every mark: the tokens of indexes built without folding.

    >>> tokenize_unfolded("Donau\u00addampf"), tokenize("Donau\u00addampf")
    (['donau', 'dampf'], ['donaudampf'])
    """
    return _with_bigrams(_RUN.findall(text.lower()))


def _with_bigrams(runs: Iterable[str]) -> list[str]:
    tokens: list[str] = []
    for run in runs:
        if CJK_CHARACTER.match(run):
            tokens += _bigrams(run)
        elif run not in STOPWORDS:
            tokens.append(run)
    return tokens


def _bigrams(run: str) -> list[str]:
    return [run[i : i + 2] for i in range(len(run) - 1)] or [run]


TOKENS = "words-folded+bigrams/stopwords-lucene33/no-stemming/2"
UNFOLDED = "words-lower+cjk-bigrams/stopwords-lucene33/no-stemming/1"
TOKENIZERS: Mapping[str, Callable[[str], list[str]]] = {
    TOKENS: tokenize,
    UNFOLDED: tokenize_unfolded,
}
"""Tokens of sparse indexes by name. Every index stores the name and is searched with these tokens."""


class MarkedWords(NamedTuple):
    """Patterns for text with marks. ``unspaced``: a run without spaces; ``letter``: one with its marks."""

    word: re.Pattern[str]
    unspaced: re.Pattern[str]
    letter: re.Pattern[str]


@functools.cache
def marked_words() -> MarkedWords:
    """The patterns, compiled at the first text that needs them."""
    mark, unspaced = mark_pattern(), f"[{_SOUTHEAST_ASIAN}]+"
    of_word = rf"[^\W_{_CJK}{_SOUTHEAST_ASIAN}]"
    word = rf"[{_CJK}]+|{unspaced}|{of_word}+(?:{mark}+{of_word}*)*"
    return MarkedWords(
        re.compile(word),
        re.compile(unspaced),
        re.compile(f".{mark}*"),
    )


ABBREVIATION = re.compile(
    r"(?:\b[A-Z]|\b(?:Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|vs|etc|cf|No|Fig|Vol|pp|approx|Inc|Ltd|Co|Gen|Col|Lt|Sgt|Rev"
    r"|Jan|Feb|Mar|Apr|Aug|Sept?|Oct|Nov|Dec)|\b(?:e\.g|i\.e|a\.m|p\.m|U\.S|U\.K))\.$"
)
LATIN_END = r"[.!?]+[\"'\u201d\u2019)\]]*(?=\s)"
SENTENCE_END = re.compile(rf"[。！？；…]+[”’」』）》]*|{LATIN_END}|\n\s*\n")
"""The end of a Chinese or English sentence."""
LOOK_BACK = 12
_SPACE = re.compile(r"\s*")


def find_sentence_ends(
    text: str, end: re.Pattern[str], start: int = 0, stop: int | None = None
) -> Iterator[int]:
    """The ends of sentences; abbreviations do not count."""
    for match in end.finditer(text, start, len(text) if stop is None else stop):
        look_back = max(start, match.end() - LOOK_BACK)
        if match[0] != "." or not ABBREVIATION.search(text, look_back, match.end()):
            yield match.end()


def sentences(text: str) -> list[str]:
    """The sentences of a text, each with its trailing space, so that together they give the text.

    >>> sentences("Dr. Li left. 他走了。她没有。")
    ['Dr. Li left. ', '他走了。', '她没有。']
    """
    parts, begin = [], 0
    for end in find_sentence_ends(text, SENTENCE_END):
        end = _SPACE.match(text, end).end()  # type: ignore[union-attr]  # it matches anywhere
        parts.append(text[begin:end])
        begin = end
    return [part for part in (*parts, text[begin:]) if part]


def split_outside(text: str, mark: str = ",") -> list[str]:
    """The texts between marks outside brackets; between all marks if the brackets do not match.

    >>> split_outside("a,(rrf:a,b),c"), split_outside("a,(b")
    (['a', '(rrf:a,b)', 'c'], ['a', '(b'])
    """
    depth, begin, parts = 0, 0, []
    for at, letter in enumerate(text):
        depth += (letter in "([{") - (letter in ")]}")
        if depth < 0:
            return text.split(mark)
        if letter == mark and not depth:
            parts.append(text[begin:at])
            begin = at + 1
    return text.split(mark) if depth else [*parts, text[begin:]]


def strip_brackets(text: str) -> str:
    """A text without round brackets that enclose all of it.

    >>> strip_brackets(" (rrf:(a,b),c) "), strip_brackets("(a)?b=(c)")
    ('rrf:(a,b),c', '(a)?b=(c)')
    """
    text = text.strip()
    whole = text.startswith("(") and split_outside(text, ")") == [text[:-1], ""]
    return text[1:-1].strip() if whole else text


def split_names(text: str) -> list[str]:
    """The names of a list. A name with commas is in brackets.

    >>> split_names("mine, (rrf:mine,other), graph?ef_search=64")
    ['mine', 'rrf:mine,other', 'graph?ef_search=64']
    """
    return [name for part in split_outside(text) if (name := strip_brackets(part))]
