"""Answers as texts: KILT's normal form, the overlap of two answers, occurrences of an answer in a text, DPR's tokens.
Pure."""

from __future__ import annotations

import functools
import re
import string
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress

from rallebench.core.folding import fold, fold_with_offsets, is_ignorable

_DELETE_PUNCTUATION = str.maketrans("", "", string.punctuation)
_SIGNS = string.punctuation + "‘’‚‛ʼ′“”„‟«»‹›‐‒–—−"
"""ASCII punctuation, and the typeset quotation marks, apostrophes and dashes for it."""
_PUNCTUATION = frozenset(_SIGNS)
_DELETE_SIGNS = str.maketrans("", "", _SIGNS)
_ARTICLE = re.compile(r"\b(?:a|an|the)\b")
_GAP = re.compile(r"(?:\s|\b(?:a|an|the)\b)+")

# Scripts without spaces, and Hangul, where particles are attached to the noun: a word may end between any two
# characters if one of them belongs here.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]"
)

Span = tuple[int, int, int]
"""(start, end, index of the alias): a half-open range of characters of the original text."""


@functools.lru_cache(maxsize=64)  # several metrics in turn need the same answer and aliases
def normalize_answer(text: str) -> str:
    """KILT's normal form: lower-case, ASCII punctuation deleted, articles dropped, single spaces.

    Deleted punctuation leaves no space, and punctuation outside ASCII stays.

    >>> normalize_answer("  The well-known  Café—a bar! ")
    'wellknown café— bar'
    """
    return " ".join(_ARTICLE.sub(" ", text.lower().translate(_DELETE_PUNCTUATION)).split())


def answer_tokens(text: str) -> list[str]:
    """The whitespace tokens of the normal form.

    >>> answer_tokens("The U.S. Navy")
    ['us', 'navy']
    """
    return normalize_answer(text).split()


def f1_score(answer: str, alias: str) -> float:
    """F1 of the two bags of words; 0.0 if they share none (even if both are empty).

    >>> f1_score("the red red car", "red car")
    0.8
    """
    return bag_f1(answer_tokens(answer), answer_tokens(alias))


def bag_f1(words: Sequence[str], reference: Sequence[str]) -> float:
    """F1 of two bags of words; 0.0 if they share none."""
    common = sum((Counter(words) & Counter(reference)).values())
    return f_measure(common, len(words), len(reference))


def f_measure(common: int, size: int, reference: int) -> float:
    """The harmonic mean of precision, ``common / size``, and recall, ``common / reference``; 0.0 without common words."""
    if not common:
        return 0.0
    precision, recall = common / size, common / reference
    return 2 * precision * recall / (precision + recall)


# ── answers in a text, with offsets on the original ──────────────────────────


def find_answers(text: str, aliases: Sequence[str], *, overlapping: bool = False) -> list[Span]:
    """The places in ``text`` with one of ``aliases``, as (start, end, alias index), in order of appearance.

    The comparison uses the normal forms (see normalize_answer) of the folded texts (see core/folding.py), so case,
    Unicode's form, ASCII punctuation and its typeset forms, articles and white space may differ; ``text[start:end]`` is
    the original wording. A match starts and ends at the edge of a word: ``art`` is not in ``party``, nor ``10`` in
    ``10,000``. In scripts without spaces every character is an edge. An alias with an empty normal form is never found. Of
    overlapping matches only the first, and of those the longest, is kept, unless ``overlapping``. Time is proportional to
    the length of the text times the number of aliases.

    >>> find_answers("Party art; the Art of war.", ["art", "war"])
    [(6, 9, 0), (15, 18, 0), (22, 25, 1)]
    >>> find_answers("黑豹队丢了308分", ["308", "黑豹"])
    [(0, 2, 1), (5, 8, 0)]
    """
    folded = _normal_stream(text)
    spans: list[Span] = []
    seen: set[str] = set()
    for index, alias in enumerate(aliases):
        normal = _normal_stream(alias).text.strip()
        if not normal or normal in seen:
            continue
        seen.add(normal)
        spans += [(start, end, index) for start, end in _occurrences(text, folded, normal)]
    spans.sort(key=lambda span: (span[0], -span[1], span[2]))
    return spans if overlapping else _leftmost_longest(spans)


@dataclass(frozen=True, slots=True)
class _Stream:
    """A normal form, possibly with a space at an end; each of its characters was ``starts[i]:ends[i]`` of the original."""

    text: str
    starts: list[int]
    ends: list[int]


def _normal_stream(text: str) -> _Stream:
    folded, begins, stops = fold_with_offsets(text)
    stays = [character not in _PUNCTUATION for character in folded]
    lowered = folded.translate(_DELETE_SIGNS)
    begin, stop = list(compress(begins, stays)), list(compress(stops, stays))
    pieces: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    last = 0
    for gap in _GAP.finditer(lowered):
        pieces += [lowered[last : gap.start()], " "]
        starts += begin[last : gap.start() + 1]
        ends += stop[last : gap.start() + 1]
        last = gap.end()
    pieces.append(lowered[last:])
    return _Stream("".join(pieces), starts + begin[last:], ends + stop[last:])


def _occurrences(text: str, stream: _Stream, normal: str) -> list[tuple[int, int]]:
    """Non-overlapping ranges of ``text`` that equal ``normal`` and end at edges."""
    spans: list[tuple[int, int]] = []
    starts, ends = stream.starts, stream.ends
    at = stream.text.find(normal)
    while at >= 0:
        after = at + len(normal)
        start, end = starts[at], ends[after - 1]
        torn = (at > 0 and starts[at - 1] == start) or (after < len(starts) and starts[after] < end)
        if not torn and _is_edge(text, start) and _is_edge(text, end):
            spans.append((start, end))
            at = stream.text.find(normal, after)
        else:
            at = stream.text.find(normal, at + 1)
    return spans


def _is_edge(text: str, offset: int) -> bool:
    """Return whether a word may start or end at ``offset``; invisible characters do not separate a word."""
    before, behind = offset - 1, offset
    while before >= 0 and is_ignorable(text[before]):
        before -= 1
    while behind < len(text) and is_ignorable(text[behind]):
        behind += 1
    if before < 0 or behind >= len(text):
        return True
    left, right = text[before], text[behind]
    if _is_word(left) and _is_word(right):
        return bool(_UNSPACED.match(left) or _UNSPACED.match(right))
    return not _inside_number(text, offset)


def _is_word(character: str) -> bool:
    # Combining marks count: the vowel signs of Devanagari are not letters for str.isalnum.
    return character.isalnum() or character == "_" or unicodedata.category(character)[0] == "M"


def _inside_number(text: str, offset: int) -> bool:
    """Return whether the place is next to a ``.`` or ``,`` with a digit on each side, as in 10,000."""
    for mark in (offset - 1, offset):
        if 0 < mark < len(text) - 1 and text[mark] in ".,":
            return text[mark - 1].isdigit() and text[mark + 1].isdigit()
    return False


def _leftmost_longest(spans: list[Span]) -> list[Span]:
    chosen: list[Span] = []
    for span in spans:
        if not chosen or span[0] >= chosen[-1][1]:
            chosen.append(span)
    return chosen


# ── DPR's "has answer": a token sequence in a passage ────────────────────────


def dpr_tokens(text: str) -> list[str]:
    """DPR's tokens: NFD, lower-case; runs of letters, digits and marks, and every other visible character.

    Karpukhin et al. 2020, arXiv:2004.04906 (the tokenizer of its answer check).

    >>> dpr_tokens("Café, U.S.") == ["cafe\u0301", ",", "u", ".", "s", "."]
    True
    """
    tokens: list[str] = []
    run: list[str] = []
    for character in unicodedata.normalize("NFD", text):
        kind = unicodedata.category(character)[0]
        if kind in "LNM":
            run.append(character)
            continue
        if run:
            tokens.append("".join(run).lower())
            run = []
        if kind not in "ZC":
            tokens.append(character.lower())
    if run:
        tokens.append("".join(run).lower())
    return tokens


def passage_has_answer(passage: str, aliases: Sequence[str]) -> bool:
    """Return whether the tokens of any alias occur side by side in the passage (DPR's has_answer).

    >>> passage_has_answer("a party in Paris", ["art"]), passage_has_answer("modern Art.", ["art"])
    (False, True)
    """
    # No token holds a NUL (a control character), so it can separate the tokens in one string.
    fenced = _fence(dpr_tokens(passage))
    return any(tokens and _fence(tokens) in fenced for tokens in map(dpr_tokens, aliases))


def holds_answer(passage: str, aliases: Sequence[str]) -> bool:
    """Return ``passage_has_answer`` of the folded texts, so that equal words match; beyond ASCII also the matches of
    ``find_answers``.

    >>> holds_answer("黑豹队丢了308分", ["308"]), holds_answer("L’Aquila", ["L'Aquila"])
    (True, True)
    >>> holds_answer("Do\u00adnau", ["Donau"]), passage_has_answer("Do\u00adnau", ["Donau"])
    (True, False)
    """
    if passage_has_answer(fold(passage), [fold(alias) for alias in aliases]):
        return True
    # DPR's tokens do not end inside a script without spaces, and distinguish ’ from '.
    plain = passage.isascii() and all(alias.isascii() for alias in aliases)
    return not plain and bool(find_answers(passage, aliases))


def _fence(tokens: list[str]) -> str:
    return "\0" + "\0".join(tokens) + "\0"
