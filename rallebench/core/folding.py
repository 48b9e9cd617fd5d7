"""A common form for texts that look alike, so that equal words match. Pure.

The form is Unicode's NFKC_Casefold with four additions. Optional vowel marks (Arabic, Hebrew and Syriac points, and the
Arabic stretching line) are dropped. The Turkish dotted and dotless i become the Latin one. Letters with two spellings in
Thai, Lao and Malayalam become one. A trademark sign separates words. All other marks stay: accents, the matras of Hindi
and Tamil, the tones of Thai.

Format characters are dropped, even if they join or separate letters in Persian and Indic text (ZWJ, ZWNJ). They change the
shape of a word and are often left out in typing, so both spellings match.
"""

from __future__ import annotations

import functools
import re
import sys
import unicodedata
from collections.abc import Iterator, Sequence

_IGNORABLE = (
    "\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001345f"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Format characters (Cf), variation selectors and fillers: all invisible characters."""
_OPTIONAL = (
    "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u0652\u0656-\u065f\u0670"
    "\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u0711\u0730-\u074a\u0897-\u089f\u08ca-\u08e1\u08e3-\u08ff"
)
"""Optional marks: Hebrew points, Arabic vowel and reading marks, Syriac points."""

_PLAIN = (
    "\x00-\x7f\xa1-\xa7\xa9\xab\xac\xae\xb0\xb1\xb6\xb7\xbb\xbf-\u012f\u0134-\u013e\u0141-\u0148\u014a-\u017e"
    "\u0391-\u03a1\u03a3-\u03af\u03b1-\u03ce\u0400-\u0481\u048a-\u052f\u05d0-\u05ea\u0621-\u063a\u0641-\u064a\u2010\u2012-\u2016"
    "\u2018-\u2022\u2030\u2039\u203a\u20ac\u3001\u3002\u3008-\u3011\u3041-\u3096\u30a1-\u30fe\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7a3"
)
"""Common characters in which folding changes only the case. A quick check for others spares most texts the rest."""

_ELABORATE = re.compile(f"[^{_PLAIN}]")
_SHOWS_NOTHING = re.compile(f"[{_IGNORABLE}]")
_DROPPED = re.compile(f"[{_IGNORABLE}{_OPTIONAL}]+")
_MARKS = ("Mn", "Mc")
_SIGNS = re.compile("[\u2120\u2122]")  # NFKC turns them into the letters SM and TM
_LETTERS = str.maketrans(
    {
        "\u0131": "i",
        # Malayalam's final letters, which older texts write as letter, virama and joiner.
        **dict(zip("\u0d7a\u0d7b\u0d7c\u0d7d\u0d7e\u0d7f", ("ണ്", "ന്", "ര്", "ല്", "ള്", "ക്"))),
    }
)
_TONE_LAST = re.compile("(\u0e4d)([\u0e48-\u0e4b])|(\u0ecd)([\u0ec8-\u0ecb])")
"""A Thai or Lao tone after the ring of "am"; NFKC puts the ring first."""


def fold(text: str) -> str:
    """A text in the form for comparing words.

    >>> fold("ＧＰＵ１００"), fold("Donau\u00addampf"), fold("İSTANBUL"), fold("ISPARTA") == fold("ısparta")
    ('gpu100', 'donaudampf', 'istanbul', True)
    >>> fold("e\u0301") == fold("é"), fold("كِتَابٌ") == fold("كتاب")
    (True, True)
    """
    if is_plain(text):
        return text.casefold()
    low = unicodedata.normalize("NFKC", _DROPPED.sub("", _SIGNS.sub(" ", text))).casefold()
    if is_plain(low):
        return low
    low = low.replace("i\u0307", "i").translate(_LETTERS)
    low = _TONE_LAST.sub(_swap_marks, low) if "\u0e4d" in low or "\u0ecd" in low else low
    # Folding case takes some letters apart (ΐ), and NFKC puts marks into place that stood behind one now dropped.
    return _DROPPED.sub("", unicodedata.normalize("NFKC", low))


def _swap_marks(match: re.Match[str]) -> str:
    ring, tone = filter(None, match.groups())
    return f"{tone}{ring}"


def is_plain(text: str) -> bool:
    """Return whether folding changes only the case of a text: it has no marks and no unusual forms of characters."""
    return text.isascii() or not _ELABORATE.search(text)


def is_ignorable(character: str) -> bool:
    """Return whether a character is invisible by itself: a soft hyphen, a zero-width space, a variation selector …"""
    return character > "\x7f" and bool(_SHOWS_NOTHING.match(character))


@functools.cache
def mark_pattern() -> str:
    """The pattern of a mark that belongs to the preceding letter; enclosing marks do not."""
    every = (c for c in map(chr, range(sys.maxunicode + 1)) if unicodedata.category(c) in _MARKS)
    first: list[str] = []
    beyond: list[str] = []
    for character in every:
        (first if character <= "\uffff" else beyond).append(character)
    # The engine has a table for classes of the first plane. It compares other classes one by one, so they are tried rarely.
    return f"(?:[{''.join(first)}]|(?![\0-\uffff])[{''.join(beyond)}])"


@functools.cache
def _clusters() -> re.Pattern[str]:
    # Jamo, and halfwidth kana with their voice marks, are composed though none of their characters is a mark.
    inside = rf"[{_IGNORABLE}]*(?:{mark_pattern()}|[\uff9e\uff9f])"
    letter = rf"(?:[\u1100-\u11ff\ua960-\ua97f\ud7b0-\ud7ff]+|.)(?:{inside})*"
    # The last of several plain characters may have a mark after it.
    run = rf"([{_PLAIN}]+)(?=[{_PLAIN}]|\Z)".replace(
        "\xbf-", "\xbf-\xde\xe0-"
    )  # ß folds to two letters
    return re.compile(rf"{run}|{letter}", re.DOTALL)


def fold_with_offsets(text: str) -> tuple[str, Sequence[int], Sequence[int]]:
    """(folded text, start of each character's letter in the text, its end); marks belong to letters.

    >>> fold_with_offsets("e\u0301\u00ad\ufb01")
    ('éfi', [0, 3, 3], [2, 4, 4])
    """
    parts: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    for start, end, plain in _pieces(text):
        folded = text[start:end].casefold() if plain else _fold_cluster(text[start:end])
        parts.append(folded)
        if plain:
            starts += range(start, end)
            ends += range(start + 1, end + 1)
        else:
            starts += [start] * len(folded)
            ends += [end] * len(folded)
    return "".join(parts), starts, ends


def _pieces(text: str) -> Iterator[tuple[int, int, bool]]:
    """(start, end, True if its letters fold to one each) of runs of plain letters, and of single letters with their
    marks."""
    if is_plain(text) and "ß" not in text:
        yield 0, len(text), True
        return
    for match in _clusters().finditer(text):
        yield *match.span(), match[1] is not None


_fold_cluster = functools.lru_cache(maxsize=16384)(fold)
