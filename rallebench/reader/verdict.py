"""Does a sentence bear out a claim? Words, numbers, names and negations compared; no inference.

A claim counts as supported when its telling words are met near its best sentence, and as refuted
when a number, a name or a negation differs or too much of it is met nowhere. What it can not
see (paraphrase without shared words, arithmetic) it gets wrong: see the measured figures in the
tests.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rallebench.reader.similarity import Ranked
from rallebench.reader.text import Word

_NEGATIONS = frozenset(
    ["not", "never", "no", "none", "nobody", "nothing", "neither", "nor", "without", "incapable", "unable", "failed", "refused", "fails", "barely", "hardly", "cannot", "isn't", "wasn't", "didn't", "doesn't", "won't", "couldn't", "only"]
)
_OPPOSITES = tuple(
    (frozenset(a.split()), frozenset(b.split()))
    for a, b in (
        ("first earliest oldest", "last latest second third youngest"),
        ("before earlier", "after later"),
        ("north northern", "south southern"),
        ("east eastern", "west western"),
        ("younger younger's", "older elder"),
        ("father", "mother son brother uncle"),
        ("son", "daughter father"),
        ("sister", "brother mother wife"),
        ("male", "female"),
        ("mother", "father"),
        ("larger largest biggest most more", "smaller smallest least fewer less"),
        ("higher highest", "lower lowest"),
        ("both", "alone"),
        ("won", "lost"),
        ("same", "different"),
        ("alive", "dead"),
    )
)
_WORDS_AS_NUMBERS = {
    w: str(i)
    for i, w in enumerate(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"])
} | {"thirteen": "13", "fourteen": "14", "fifteen": "15", "twenty": "20", "thirty": "30", "forty": "40", "fifty": "50", "hundred": "100"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was compared, each 0..1 or a count: for the verdict and for its explanation."""

    similarity: float
    covered: float
    numbers_missing: int
    names_missing: int
    negated: bool
    opposite: bool


def compare(
    claim: Sequence[Word], weights: Mapping[str, float], ranked: Sequence[Ranked], soft: Mapping[str, float]
) -> Evidence:
    """Compare a claim with its two best sentences. ``soft``: stem of the claim → its best match, 0..1."""
    best = ranked[0].sentence
    near = [r.sentence for r in ranked[:3] if r.sentence.passage == best.passage]
    said = [word for sentence in near for word in sentence.words]
    shown = {w.stem for w in said} | set(re.findall(r"\w+", best.title.lower()))
    numbers = {_number(w.low) for w in said if w.is_number}
    claimed = {_number(w.low) for w in claim if w.is_number and w.low != "one"}
    everywhere = {w.stem for r in ranked for w in r.sentence.words} | shown
    names = {w.stem for i, w in enumerate(claim) if i and w.is_capital and w.is_word and w.stem in weights}
    total = sum(weights.values()) or 1.0
    covered = sum(v * max(soft.get(s, 0.0), float(s in shown)) for s, v in weights.items()) / total
    lows, best_lows = {w.low for w in claim}, {w.low for w in best.words}
    return Evidence(
        similarity=ranked[0].similarity,
        covered=covered,
        numbers_missing=len(claimed - numbers),
        names_missing=len(names - everywhere),
        negated=bool(lows & _NEGATIONS) != bool(best_lows & _NEGATIONS),
        opposite=any(
            (lows & a and best_lows & b and not best_lows & a) or (lows & b and best_lows & a and not best_lows & b)
            for a, b in _OPPOSITES
        ),
    )


def support(found: Evidence) -> float:
    """The probability that the claim is borne out, 0..1."""
    value = (
        4.0 * (found.covered - 0.62)
        + 2.0 * (found.similarity - 0.65)
        - 1.6 * min(found.numbers_missing, 2)
        - 0.8 * min(found.names_missing, 2)
        - 0.7 * found.negated
        - 0.8 * found.opposite
    )
    return 1.0 / (1.0 + math.exp(-value))


def _number(low: str) -> str:
    bare = re.sub(r"[$£€,%]|(?<=\d)(?:st|nd|rd|th|s)$", "", low)
    return _WORDS_AS_NUMBERS.get(bare, bare)
