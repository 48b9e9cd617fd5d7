"""Answer spans of a sentence, each with the features that speak for or against it.

A span begins and ends with a telling word, holds no strong punctuation, and is at most nine
words long. A leading article is left out: answers are compared without it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rallebench.reader.expect import THING, Expected
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
    word_set,
)

MAX_WORDS = 9
_YEAR = re.compile(r"^(?:1\d|20)\d\d$")
_QUOTES = frozenset("\"“”'‘’`«»")
_BREAKS = frozenset(".;:!?()[]{}—|") | _QUOTES
_NAME_LINKS = word_set("of the de la le du von van der den da di al bin and for in")
_PAST = word_set(
    "was were had did wrote began won made took gave went came led became got held ran saw knew grew "
    "drew fell fought met sat stood broke chose rose sank left kept sent spent said found built brought "
    "bought taught sold told lost put set wore spoke sang born written taken given known shown seen "
    "done made called named"
)
_UNITS = word_set(
    "percent per cent years year months month days day hours hour minutes seconds weeks centuries "
    "decades metres meters kilometres kilometers km miles feet ft inches cm mm m acres hectares people "
    "men women children members students times degrees celsius fahrenheit kg kilograms grams tons "
    "tonnes pounds dollars euros francs million billion trillion hundred thousand dozen square cubic "
    "mph nm hz"
)
# A place, a reason or a manner may open with its preposition: "after the war", "by bombarding boron".
_OPENERS = word_set("to by because about over under between nearly after during without from through")
_PREPS = word_set("of in at on by for with from to as near after during between into")
_INNER = ("aux", "verb", "conj", "prep", "det", "punct", "pron")


@dataclass(frozen=True, slots=True)
class Span:
    """Words ``first``..``last`` (inclusive) of a sentence, and its features (name → value)."""

    first: int
    last: int
    features: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Setting:
    """What a question makes of the words of a sentence, one entry per word.

    ``shared``: the word stands in the question. ``near``: how close the question's words are,
    0..1. ``fit``: how much the word resembles the kind of thing asked for, −1..1, None for
    function words.
    """

    words: Sequence[Word]
    classes: Sequence[str]
    shared: Sequence[bool]
    near: Sequence[float]
    fit: Sequence[float | None]


def word_classes(tokens: Sequence[Word]) -> tuple[str, ...]:
    """A rough part of speech per word: what closed lists, capitals and suffixes can tell."""
    return tuple(_word_class(word, initial=i == 0) for i, word in enumerate(tokens))


def _word_class(word: Word, *, initial: bool) -> str:
    low = word.low
    if not word.is_word:
        return "quote" if low in _QUOTES else "punct"
    for group, name in (
        (DETERMINERS, "det"),
        (AUXILIARIES, "aux"),
        (PREPOSITIONS, "prep"),
        (CONJUNCTIONS, "conj"),
        (PRONOUNS, "pron"),
    ):
        if low in group:
            return name
    if word.is_number:
        return "num"
    # The capital that opens a sentence says nothing about an adverb.
    if word.is_capital and not (initial and low in ADVERBS):
        return "cap"
    if low in ADVERBS or (low.endswith("ly") and len(low) > 4):
        return "adv"
    if low in _PAST or (low.endswith("ed") and len(low) > 4):
        return "verb"
    return "ing" if low.endswith("ing") and len(low) > 5 else "low"


def spans(at: Setting, expected: Expected) -> Iterator[Span]:
    """Every span of a sentence that does not merely repeat the question."""
    n = len(at.words)
    for first in range(n):
        if not _may_begin(at.words[first], at.classes[first]):
            continue
        for last in range(first, min(n, first + MAX_WORDS)):
            word = at.words[last]
            if word.low in _BREAKS or (word.low == "," and not _comma_joins(at.classes, last)):
                break
            if not _may_end(word, at.classes[last]):
                continue
            telling = [i for i in range(first, last + 1) if _tells(at.words[i])]
            repeated = sum(at.shared[i] for i in telling)
            if repeated < len(telling):
                features = _features(at, first, last, expected)
                features["question words inside"] = repeated / len(telling)
                yield Span(first, last, features)


def _may_begin(word: Word, kind: str) -> bool:
    return (
        word.is_word
        and kind not in ("det", "conj", "pron", "aux")
        and (kind != "prep" or word.low in _OPENERS)
    )


def _may_end(word: Word, kind: str) -> bool:
    return word.is_word and kind not in ("det", "conj", "prep", "aux") and word.low not in ("who", "which")


def _tells(word: Word) -> bool:
    return word.is_word and word.low not in FUNCTION_WORDS


def _comma_joins(classes: Sequence[str], at: int) -> bool:
    """A comma in a date, a place ('Tampa, Florida') or a list does not end a span."""
    joined = ("cap", "num", "low")
    return 0 < at < len(classes) - 1 and classes[at - 1] in joined and classes[at + 1] in (*joined, "conj")


def _features(at: Setting, first: int, last: int, expected: Expected) -> dict[str, float]:
    kind = span_kind(at.words, at.classes, first, last)
    group = _GROUPS.get(kind, "num")
    left = at.classes[first - 1] if first else "start"
    right = at.classes[last + 1] if last + 1 < len(at.words) else "end"
    f = {
        f"want {expected.kind} is {kind}": 1.0,
        f"{group} length {min(last - first + 1, 7)}": 1.0,
        f"{group} after {left}": 1.0,
        f"{group} before {right}": 1.0,
        "begins " + at.classes[first]: 1.0,
        "ends " + at.classes[last]: 1.0,
        "near": at.near[first],
        "near end": at.near[last],
    }
    if first < 2 and left in ("start", "det"):
        f[f"want {expected.kind} opens"] = 1.0
    if left == "prep":
        f[f"want {expected.kind} after {_preposition(at.words[first - 1])}"] = 1.0
    elif left == "det" and first > 1 and at.classes[first - 2] == "prep":
        f[f"want {expected.kind} after {_preposition(at.words[first - 2])} the"] = 1.0
    inner = at.classes[first + 1 : last]
    f.update((f"holds {name}", 1.0) for name in _INNER if name in inner)
    if left == right == "quote":
        f["quoted"] = 1.0
    # A name or number that goes on to the left or right was cut in two.
    if at.classes[first] in ("cap", "num") and left in ("cap", "num"):
        f["cut left"] = 1.0
    if at.classes[last] in ("cap", "num") and right in ("cap", "num"):
        f["cut right"] = 1.0
    if first and at.shared[first - 1]:
        f["match left"] = 1.0
    if last + 1 < len(at.words) and at.shared[last + 1]:
        f["match right"] = 1.0
    _add_focus(f, at.words, first, last, expected)
    _add_fit(f, at.fit[first : last + 1], expected)
    return f


_GROUPS = {"name": "name", "person-like": "name", "mixed": "text", "plain": "text"} | {
    "number unit": "text",
    "number text": "text",
}


def _preposition(word: Word) -> str:
    return word.low if word.low in _PREPS else "other"


def _add_focus(f: dict[str, float], words: Sequence[Word], first: int, last: int, expected: Expected) -> None:
    """Where the noun that the question asks for stands: 'Matagorda Bay' for 'which bay'."""
    if not expected.focus:
        return
    head = expected.focus[-1]
    if words[last].stem == head:
        f["focus ends"] = 1.0
    if last + 1 < len(words) and words[last + 1].stem == head:
        f["focus right"] = 1.0
    for back in (1, 2, 3):
        if first >= back and words[first - back].stem == head:
            f[f"focus left {back}"] = 1.0


def _add_fit(f: dict[str, float], fits: Sequence[float | None], expected: Expected) -> None:
    known = [value for value in fits if value is not None]
    if known:
        f["type fit"] = sum(known) / len(known)
        f["type fit best"] = max(known)
        if expected.kind == THING:
            f["type fit thing"] = max(known)


def span_kind(words: Sequence[Word], classes: Sequence[str], first: int, last: int) -> str:
    """What a span looks like: date, year, number, number unit, number text, money, percent,
    person-like (two or three capitals), name, mixed, plain."""
    part = words[first : last + 1]
    lows = [w.low for w in part]
    if len(part) == 1 and _YEAR.match(lows[0]):
        return "year"
    if any(low in MONTHS for low in lows) and any(c.isdigit() for w in part for c in w.text):
        return "date"
    if any(w.text[0] in "$£€" for w in part):
        return "money"
    if any(low.endswith("%") or low in ("percent", "per") for low in lows):
        return "percent"
    hedged = lows[0] in ("about", "nearly", "over", "between", "under") and any(w.is_number for w in part)
    if classes[first] == "num" or hedged:
        return "number" if len(part) == 1 else "number unit" if lows[-1] in _UNITS else "number text"
    telling = [i for i, w in enumerate(part) if w.is_word and w.low not in _NAME_LINKS]
    capitals = sum(classes[first + i] == "cap" for i in telling)
    if telling and capitals == len(telling):
        return "person-like" if 2 <= len(part) <= 3 and capitals == len(part) else "name"
    return "mixed" if capitals else "plain"
