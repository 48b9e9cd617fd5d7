"""Texts cut between sentences, and texts grouped by shared words."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from rallebench.metrics.words import has_cjk, jieba_words
from rallebench.metrics.words import words as words_of

END = re.compile(r"[。！？；…]+[”’」』）》]*|[.!?]+[\"'”’)\]]*(?=\s|$)|\n\s*\n")
LEAST = 10
"""The fewest characters in a part of a text."""
TERMS, OPENING, CHANGED = 30, 120, 240
RELATED, SAME = 0.15, 0.8


def halves(text: str) -> tuple[str, str] | None:
    """The text cut at the sentence end nearest to its middle; None if a part would be too short.

    >>> halves("第一句话说了很多内容。第二句话。第三句话也说了很多的内容。")
    ('第一句话说了很多内容。第二句话。', '第三句话也说了很多的内容。')
    """
    text = text.strip()
    ends = [end for end in _ends(text) if LEAST <= end <= len(text) - LEAST]
    if not ends:
        return None
    cut = min(ends, key=lambda end: abs(end - len(text) / 2))
    return text[:cut].strip(), text[cut:].strip()


def opening(text: str) -> tuple[str, str] | None:
    """(the first sentences, up to 120 characters and half the text; the next sentences, up to 240 characters); None for a text
    with only one sentence."""
    text = text.strip()
    ends, most = _ends(text), min(OPENING, len(text) // 2)
    first = next(
        (end for end in reversed(ends) if LEAST <= end <= most),
        next((end for end in ends if end > most), 0),
    )
    last = next((end for end in reversed(ends) if first + LEAST <= end <= first + CHANGED), 0)
    if not first or not last:
        return None
    return text[:first].strip(), text[first:last].strip()


def _ends(text: str) -> list[int]:
    return [match.end() for match in END.finditer(text)]


def is_changed(text: str, true: str) -> bool:
    """Return whether two texts differ by a few words: they are unequal but share at least half of their words.

    >>> is_changed("投资4.2亿元", "投资2.4亿元"), is_changed("投资2.4亿元", "投资2.4亿元"), is_changed("对不起", "投资2.4亿元")
    (True, False, False)
    """
    changed_words, true_words = Counter(_words(text)), Counter(_words(true))
    most = max(changed_words.total(), true_words.total())
    return changed_words != true_words and 2 * (changed_words & true_words).total() >= most


def groups(texts: Mapping[str, str], size: int) -> list[tuple[str, ...]]:
    """Groups of ``size`` articles (id → text) with shared rare words, most similar first. Each article is in at most one
    group.

    Two articles are related if they share at least 15 % of their 30 rarest words, weighted by rarity; words in only one
    article do not count. Two articles that share most words of the shorter one are treated as the same report and not grouped.
    """
    bags = {name: frozenset(_words(text.lower())) for name, text in texts.items()}
    often = Counter(word for bag in bags.values() for word in bag)
    weights = {
        word: math.log(len(texts) / count)
        for word, count in often.items()
        if 1 < count < len(texts)
    }
    rare = {
        name: sorted((w for w in bag if w in weights), key=lambda w: (-weights[w], w))[:TERMS]
        for name, bag in bags.items()
    }
    holders: dict[str, list[str]] = defaultdict(list)
    for name, terms in rare.items():
        for term in terms:
            holders[term].append(name)
    near = {name: _near(name, terms, holders, weights, bags) for name, terms in rare.items()}

    def distance(name: str) -> float:
        return -near[name][size - 2][1] if len(near[name]) >= size - 1 else 0.0

    free, chosen = set(texts), []
    for name in sorted(texts, key=lambda name: (distance(name), name)):
        others = [other for other, _ in near[name] if other in free][: size - 1]
        if name in free and len(others) == size - 1:
            chosen.append((name, *others))
            free -= {name, *others}
    return chosen


def _near(
    name: str,
    terms: Sequence[str],
    holders: Mapping[str, Sequence[str]],
    weights: Mapping[str, float],
    bags: Mapping[str, frozenset[str]],
) -> list[tuple[str, float]]:
    """(article, share of the rare words), most similar first."""
    scores: dict[str, float] = defaultdict(float)
    for term in terms:
        for other in holders[term]:
            scores[other] += weights[term]
    own = scores.pop(name, 0.0)
    close = sorted(
        (pair for pair in scores.items() if pair[1] >= RELATED * own > 0),
        key=lambda pair: (-pair[1], pair[0]),
    )[:TERMS]
    bag = bags[name]
    return [
        (other, score / own)
        for other, score in close
        if len(bag & bags[other]) < SAME * min(len(bag), len(bags[other]))
    ]


def _words(text: str) -> list[str]:
    """All numbers, and all words of more than one character."""
    parts = jieba_words(text) if has_cjk(text) else words_of(text, "words")
    return [word for word in parts if len(word.strip()) > 1 or word.isdigit()]
