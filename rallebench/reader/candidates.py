"""Answer spans of a sentence, each with the features that speak for or against it.

A span begins and ends with a telling word, holds no strong punctuation, and is at most nine
words long. A leading article is left out: answers are compared without it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rallebench.reader.expect import Expected
from rallebench.reader.text import (
    ADVERBS,
    AUXILIARIES,
    CONJUNCTIONS,
    DETERMINERS,
    FUNCTION_WORDS,
    MONTHS,
    PREPOSITIONS,
    PRONOUNS,
    Word,
)

MAX_WORDS = 9
_YEAR = re.compile(r"^(?:1\d|20)\d\d$")
_QUOTES = frozenset("\"“”'‘’`«»")
_BREAKS = frozenset(".;:!?()[]{}—|") | _QUOTES
_NAME_LINKS = frozenset("of the de la le du von van der den da di al bin and for in".split())
_VERB = re.compile(r"(?:ed|ized|ised)$")
_PAST = frozenset(
    "was were had did wrote began won made took gave went came led became got held ran saw knew grew drew fell fought met "
    "sat stood broke chose rose sank left kept sent spent said found built brought bought taught sold told lost put set "
    "wore spoke sang born written taken given known shown seen done made called named".split()
)
UNITS = frozenset(
    "percent per cent years year months month days day hours hour minutes seconds weeks centuries decades metres meters "
    "kilometres kilometers km miles feet ft inches cm mm m acres hectares people men women children members students "
    "times degrees celsius fahrenheit kg kilograms grams tons tonnes pounds dollars euros francs million billion trillion "
    "hundred thousand dozen square cubic mph nm hz".split()
)


@dataclass(frozen=True, slots=True)
class Span:
    """Words ``first``..``last`` (inclusive) of a sentence, and its features (name → value)."""

    first: int
    last: int
    features: Mapping[str, float]


def word_class(word: Word, *, initial: bool) -> str:
    """A rough part of speech: what a closed list and a suffix can tell.

    ``initial``: the word opens its sentence, so that its capital says nothing by itself.
    """
    low = word.low
    if not word.is_word:
        return "quote" if low in _QUOTES else "punct"
    if low in DETERMINERS:
        return "det"
    if low in AUXILIARIES:
        return "aux"
    if low in PREPOSITIONS:
        return "prep"
    if low in CONJUNCTIONS:
        return "conj"
    if low in PRONOUNS:
        return "pron"
    if word.is_number:
        return "num"
    if word.is_capital and not (initial and low in ADVERBS):
        return "cap"
    if low in ADVERBS or (low.endswith("ly") and len(low) > 4):
        return "adv"
    if low in _PAST or (_VERB.search(low) and len(low) > 4):
        return "verb"
    if low.endswith("ing") and len(low) > 5:
        return "ing"
    return "low"


def spans(
    sentence: Sequence[Word], classes: Sequence[str], stems: Mapping[str, float], expected: Expected,
    nearness: Sequence[float], fit: Sequence[float | None], title: frozenset[str] = frozenset(),
) -> list[Span]:
    """Every span of a sentence. ``stems``: stem of a question word → how much it tells."""
    n = len(sentence)
    matched = [stems.get(word.stem, 0.0) if word.is_word else 0.0 for word in sentence]
    found: list[Span] = []
    for first in range(n):
        if not _may_begin(sentence[first], classes[first]):
            continue
        for last in range(first, min(n, first + MAX_WORDS)):
            word, kind = sentence[last], classes[last]
            if word.low in _BREAKS or (word.low == "," and not _comma_joins(sentence, classes, last)):
                break
            if not _may_end(word, kind):
                continue
            features = _features(sentence, classes, first, last, matched, nearness, expected)
            if features is not None:
                kinds = [v for v in fit[first : last + 1] if v is not None]
                if kinds:
                    features["type fit"] = sum(kinds) / len(kinds)
                    features["type fit best"] = max(kinds)
                    if expected.kind == "thing": features["type fit thing"] = max(kinds)
                telling = [w.stem for w in sentence[first : last + 1] if w.is_word and w.low not in FUNCTION_WORDS]
                features["title inside"] = sum(w in title for w in telling) / len(telling)
                found.append(Span(first, last, features))
    return found


def _may_begin(word: Word, kind: str) -> bool:
    return word.is_word and kind not in ("det", "conj", "pron", "aux") and (kind != "prep" or word.low in _OPENERS)


# "after the war", "by bombarding …": places, reasons and manners may open with their preposition.
_OPENERS = frozenset("to by because about over under between nearly after during without from through".split())


def _may_end(word: Word, kind: str) -> bool:
    return word.is_word and kind not in ("det", "conj", "prep", "aux") and word.low not in ("who", "that", "which")


def _comma_joins(sentence: Sequence[Word], classes: Sequence[str], at: int) -> bool:
    """A comma inside a date, a place ('Tampa, Florida') or a list of names or things does not end a span."""
    return 0 < at < len(sentence) - 1 and classes[at - 1] in ("cap", "num", "low") and classes[at + 1] in ("cap", "num", "low", "conj")


def _features(
    sentence: Sequence[Word],
    classes: Sequence[str],
    first: int,
    last: int,
    matched: Sequence[float],
    nearness: Sequence[float],
    expected: Expected,
) -> dict[str, float] | None:
    content = [i for i in range(first, last + 1) if sentence[i].is_word and sentence[i].low not in FUNCTION_WORDS]
    inside = sum(1 for i in content if matched[i] > 0)
    if not content or (inside == len(content) and not _is_focus_only(sentence, content, expected)):
        return None
    kind = span_kind(sentence, classes, first, last)
    want = expected.kind
    length = last - first + 1
    left = classes[first - 1] if first else "start"
    right = classes[last + 1] if last + 1 < len(sentence) else "end"
    left_word = sentence[first - 1].low if first else ""
    group = "name" if kind in ("name", "person-like") else "num" if kind in ("date", "year", "number", "money", "percent") else "text"
    f: dict[str, float] = {
        f"want {want} is {kind}": 1.0,
        f"{group} length {min(length, 7)}": 1.0,
        f"{group} after {left}": 1.0,
        f"{group} before {right}": 1.0,
        "near": nearness[first] if first else nearness[last],
        "near end": nearness[last],
        "question words inside": inside / len(content),
    }
    if left == "prep":
        f[f"want {want} after {left_word if left_word in _PREPS else 'other'}"] = 1.0
    if left == "det" and first > 1 and classes[first - 2] == "prep":
        f[f"want {want} after {sentence[first - 2].low if sentence[first - 2].low in _PREPS else 'other'} the"] = 1.0
    inner = classes[first + 1 : last]
    for what in ("aux", "verb", "conj", "prep", "det", "punct", "pron"):
        if what in inner:
            f[f"holds {what}"] = 1.0
    f["begins " + classes[first]] = 1.0
    f["ends " + classes[last]] = 1.0
    if left == "quote" and right == "quote":
        f["quoted"] = 1.0
    # A name or number that goes on to the left or right was cut in two.
    if classes[first] in ("cap", "num") and left in ("cap", "num"):
        f["cut left"] = 1.0
    if classes[last] in ("cap", "num") and right in ("cap", "num"):
        f["cut right"] = 1.0
    f.update(_focus_features(sentence, first, last, expected))
    if first and matched[first - 1] > 0:
        f["match left"] = 1.0
    if last + 1 < len(sentence) and matched[last + 1] > 0:
        f["match right"] = 1.0
    if first <= 1 and left in ("start", "det"):
        f[f"want {want} opens"] = 1.0
    return f


_PREPS = frozenset("of in at on by for with from to as near after during between into".split())


def _is_focus_only(sentence: Sequence[Word], content: Sequence[int], expected: Expected) -> bool:
    return False


def _focus_features(sentence: Sequence[Word], first: int, last: int, expected: Expected) -> dict[str, float]:
    if not expected.focus:
        return {}
    head = expected.focus[-1]
    f: dict[str, float] = {}
    if sentence[last].stem == head:
        f["focus ends"] = 1.0
    elif any(sentence[i].stem == head for i in range(first, last)):
        f["focus inside"] = 1.0
    if last + 1 < len(sentence) and sentence[last + 1].stem == head:
        f["focus right"] = 1.0
    for back in (1, 2, 3):
        if first - back >= 0 and sentence[first - back].stem == head:
            f[f"focus left {back}"] = 1.0
    return f


def span_kind(sentence: Sequence[Word], classes: Sequence[str], first: int, last: int) -> str:
    """What a span looks like: date, year, number, money, percent, person-like, name, mixed, plain."""
    part = sentence[first : last + 1]
    lows = [w.low for w in part]
    if len(part) == 1 and _YEAR.match(lows[0]):
        return "year"
    if any(low in MONTHS for low in lows) and any(c.isdigit() for w in part for c in w.text):
        return "date"
    if any(w.text[0] in "$£€" for w in part):
        return "money"
    if any(low.endswith("%") or low in ("percent", "per") for low in lows):
        return "percent"
    if classes[first] == "num" or (lows[0] in ("about", "nearly", "over", "between", "under") and any(w.is_number for w in part)):
        return "number" if len(part) == 1 else "number unit" if lows[-1] in UNITS else "number text"
    telling = [i for i in range(first, last + 1) if part[i - first].is_word and lows[i - first] not in _NAME_LINKS]
    capitals = [i for i in telling if classes[i] == "cap"]
    if telling and len(capitals) == len(telling):
        if 2 <= len(part) <= 3 and len(capitals) == len(part):
            return "person-like"
        return "name"
    return "mixed" if capitals else "plain"
