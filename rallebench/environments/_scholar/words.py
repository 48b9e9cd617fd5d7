"""How names, organisations, topics and titles are compared: as plain words, and as words that are spelled nearly so."""

from __future__ import annotations

import re
import unicodedata

MAX_WORDS = 40
"""Words of a query that are looked at: a title has fewer, and a model may write a whole page."""

MAX_LETTERS = 24
_STOP_WORDS = "a an and as at by de der des di du et for from in la le of on or the to und von with"
STOP_WORDS = frozenset(_STOP_WORDS.split())

_CJK = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_WORD = re.compile(rf"[{_CJK}]+|[^\W_{_CJK}]+")

_BEGINS_CJK = re.compile(f"[{_CJK}]").match
_ASCII_WORD = re.compile(r"[a-z0-9]+")


def words(text: str, most: int = 0) -> list[str]:
    """The words of a text: one case, no accents; Chinese, Japanese and Korean as runs of single characters.

    >>> words("Müller-Sørensen, J."), words("王伟 (AI)")
    (['muller', 'sørensen', 'j'], ['王 伟', 'ai'])
    """
    text = text[: most * 60] if most else text
    if text.isascii():  # the same as below, in a fifth of the time
        found = _ASCII_WORD.findall(text.lower())
        return found[:most] if most else found
    folded = unicodedata.normalize("NFKD", text).casefold()
    plain = unicodedata.normalize("NFC", "".join(c for c in folded if not unicodedata.combining(c)))
    parted = [" ".join(word) if _BEGINS_CJK(word) else word for word in _WORD.findall(plain)]
    return parted[:most] if most else parted


def cuts(word: str) -> set[str]:
    """The word, and the word without each of its letters.

    Two words share one of these if one letter is wrong, missing, too many, or two neighbours are exchanged
    (and in a few other cases, see ``near``). Words of three letters and fewer are only themselves.

    >>> sorted(cuts("anna"))
    ['ana', 'ann', 'anna', 'nna']
    """
    if not 4 <= len(word) <= MAX_LETTERS or " " in word or word.isdecimal():
        return {word}
    return {word} | {word[:at] + word[at + 1 :] for at in range(len(word))}


def near(one: str, other: str) -> bool:
    """Whether one letter is wrong, missing or too many, or two neighbours are exchanged.

    >>> near("lovelace", "lovelase"), near("lovelace", "lovelcae"), near("abcd", "bcda")
    (True, True, False)
    """
    if one == other:
        return True
    if abs(len(one) - len(other)) > 1:
        return False
    start = 0
    while start < min(len(one), len(other)) and one[start] == other[start]:
        start += 1
    a, b = one[start:], other[start:]
    return (
        a[1:] == b[1:] or a == b[1:] or a[1:] == b or (a[1:2] + a[:1] + a[2:] == b and len(a) > 1)
    )
