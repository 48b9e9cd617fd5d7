"""The tokens of sparse retrieval and of length counts: words, and bigrams for CJK text."""

from __future__ import annotations

import re

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_RUN = re.compile(rf"[{_CJK}]+|[^\W_{_CJK}]+", re.UNICODE)
_IS_CJK = re.compile(rf"[{_CJK}]")

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
        if _IS_CJK.match(run):
            tokens += [run[i : i + 2] for i in range(len(run) - 1)] or [run]
        elif run not in STOPWORDS:
            tokens.append(run)
    return tokens
