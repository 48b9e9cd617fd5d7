"""The scripts of texts, which reveal without a model that a file is in an unexpected language."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache

CODES: Mapping[str, str] = {"en": "English", "zh": "Chinese"}
LATIN, CHINESE = "Latin letters", "Chinese or Japanese characters"
_CHINESE = frozenset(
    ("CJK", "HIRAGANA", "KATAKANA", "IDEOGRAPHIC", "KATAKANA-HIRAGANA", "BOPOMOFO")
)


def main_script(texts: Iterable[str]) -> str:
    """The script of most texts, each text counted by most of its letters; '' for texts without letters.

    >>> main_script(["Who wrote 三体?", "Why?"]), main_script(["谁写了三体?"]), main_script(["Кто?"]), main_script(["1 + 1?"])
    ('Latin letters', 'Chinese or Japanese characters', 'Cyrillic letters', '')
    """
    return _most(_most(map(_kind, text)) for text in texts)


def _most(kinds: Iterable[str]) -> str:
    counts = Counter(filter(None, kinds))
    return counts.most_common(1)[0][0] if counts else ""


@lru_cache(maxsize=4096)
def _kind(character: str) -> str:
    if not character.isalpha():
        return ""
    script = unicodedata.name(character, "").partition(" ")[0]
    if script in _CHINESE:
        return CHINESE
    return f"{script.capitalize()} letters" if script else ""
