"""Texts cut into parts: sentences, lists of names with brackets, the tokens of sparse retrieval and of length counts."""

from __future__ import annotations

import re
from collections.abc import Iterator

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_RUN = re.compile(rf"[{_CJK}]+|[^\W_{_CJK}]+", re.UNICODE)
CJK_CHARACTER = re.compile(rf"[{_CJK}]")

_STOPWORDS = (
    "a an and are as at be but by for if in into is it no not of on or such that the their "
    "then there these they this to was will with"
)
STOPWORDS = frozenset(_STOPWORDS.split())
"""The 33 English stop words of Lucene's default analyser."""

FINGERPRINT = "words-lower+cjk-bigrams/stopwords-lucene33/no-stemming/1"
"""Stored in every sparse index: an index with other tokens is refused."""


def tokenize(text: str) -> list[str]:
    """Lower-cased words without English stop words; a CJK run gives its character bigrams.

    >>> tokenize("The Danube's mouth, 多瑙河!")
    ['danube', 's', 'mouth', '多瑙', '瑙河']
    """
    tokens: list[str] = []
    for run in _RUN.findall(text.lower()):
        if CJK_CHARACTER.match(run):
            tokens += [run[i : i + 2] for i in range(len(run) - 1)] or [run]
        elif run not in STOPWORDS:
            tokens.append(run)
    return tokens


ABBREVIATION = re.compile(
    r"(?:\b[A-Z]|\b(?:Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|vs|etc|cf|No|Fig|Vol|pp|approx|Inc|Ltd|Co|Gen|Col|Lt|Sgt|Rev"
    r"|Jan|Feb|Mar|Apr|Aug|Sept?|Oct|Nov|Dec)|\b(?:e\.g|i\.e|a\.m|p\.m|U\.S|U\.K))\.$"
)
LATIN_END = r"[.!?]+[\"'\u201d\u2019)\]]*(?=\s)"
SENTENCE_END = re.compile(rf"[。！？；…]+[”’」』）》]*|{LATIN_END}|\n\s*\n")
"""The end of a sentence, Chinese or English."""
LOOK_BACK = 12
_SPACE = re.compile(r"\s*")


def ends_of(
    text: str, end: re.Pattern[str], start: int = 0, stop: int | None = None
) -> Iterator[int]:
    """The ends of sentences, except after abbreviations."""
    for match in end.finditer(text, start, len(text) if stop is None else stop):
        look_back = max(start, match.end() - LOOK_BACK)
        if match[0] != "." or not ABBREVIATION.search(text, look_back, match.end()):
            yield match.end()


def sentences(text: str) -> list[str]:
    """The sentences of a text, each with the space behind it, so that they join to the text.

    >>> sentences("Dr. Li left. 他走了。她没有。")
    ['Dr. Li left. ', '他走了。', '她没有。']
    """
    parts, begin = [], 0
    for end in ends_of(text, SENTENCE_END):
        end = _SPACE.match(text, end).end()  # type: ignore[union-attr]  # it matches anywhere
        parts.append(text[begin:end])
        begin = end
    return [part for part in (*parts, text[begin:]) if part]


def split_outside(text: str, mark: str = ",") -> list[str]:
    """The texts between the marks that stand in no bracket; between all marks where brackets do not close.

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


def unwrapped(text: str) -> str:
    """A text without the round brackets around the whole of it.

    >>> unwrapped(" (rrf:(a,b),c) "), unwrapped("(a)?b=(c)")
    ('rrf:(a,b),c', '(a)?b=(c)')
    """
    text = text.strip()
    whole = text.startswith("(") and split_outside(text, ")") == [text[:-1], ""]
    return text[1:-1].strip() if whole else text


def split_names(text: str) -> list[str]:
    """The names of a list; one that holds commas of its own stands in brackets.

    >>> split_names("mine, (rrf:mine,other), graph?ef_search=64")
    ['mine', 'rrf:mine,other', 'graph?ef_search=64']
    """
    return [name for part in split_outside(text) if (name := unwrapped(part))]
