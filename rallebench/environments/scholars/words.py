"""Comparison of names, organisations, topics and titles, by plain words and by similar spelling."""

from __future__ import annotations

import re
import unicodedata

MAX_WORDS = 40
"""Maximum words of a query. A title has fewer, but a model may write a whole page."""

MAX_LETTERS = 24
_STOP_WORDS = "a an and as at by de der des di du et for from in la le of on or the to und von with"
STOP_WORDS = frozenset(_STOP_WORDS.split())

_CJK = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_WORD = re.compile(rf"[{_CJK}]+|[^\W_{_CJK}]+")

_BEGINS_CJK = re.compile(f"[{_CJK}]").match
_ASCII_WORD = re.compile(r"[a-z0-9]+")


def words(text: str, most: int = 0) -> list[str]:
    """Split a text into words: one case, no accents; Chinese, Japanese and Korean as runs of single characters.

    >>> words("Müller-Sørensen, J."), words("王伟 (AI)")
    (['muller', 'sørensen', 'j'], ['王 伟', 'ai'])
    """
    text = text[: most * 60] if most else text
    if text.isascii():  # the same result as below, in a fifth of the time
        matches = _ASCII_WORD.findall(text.lower())
        return matches[:most] if most else matches
    folded = unicodedata.normalize("NFKD", text).casefold()
    plain = unicodedata.normalize("NFC", "".join(c for c in folded if not unicodedata.combining(c)))
    parted = [" ".join(word) if _BEGINS_CJK(word) else word for word in _WORD.findall(plain)]
    return parted[:most] if most else parted


def cuts(word: str) -> set[str]:
    """Return the word, and the word without each of its letters.

    Two words share one of these if a letter is wrong, missing or added, or if two neighbours are exchanged
    (and in a few other cases, see ``near``). A word of at most three letters has no others.

    >>> sorted(cuts("anna"))
    ['ana', 'ann', 'anna', 'nna']
    """
    if not 4 <= len(word) <= MAX_LETTERS or " " in word or word.isdecimal():
        return {word}
    return {word} | {word[:at] + word[at + 1 :] for at in range(len(word))}


def near(word: str, other: str) -> bool:
    """Return whether at most one letter is wrong, missing or added, or two neighbours are exchanged.

    >>> near("lovelace", "lovelase"), near("lovelace", "lovelcae"), near("abcd", "bcda")
    (True, True, False)
    """
    if word == other:
        return True
    if abs(len(word) - len(other)) > 1:
        return False
    start = 0
    while start < min(len(word), len(other)) and word[start] == other[start]:
        start += 1
    a, b = word[start:], other[start:]
    return (
        a[1:] == b[1:] or a == b[1:] or a[1:] == b or (a[1:2] + a[:1] + a[2:] == b and len(a) > 1)
    )
