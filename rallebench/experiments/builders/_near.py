"""Questions that ask nearly the same: shared words over all words of two (Jaccard), found without comparing all with all."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from rallebench.metrics.words import words as words_of


def near_duplicates(questions: Sequence[tuple[str, str]], least: float) -> Mapping[str, str]:
    """Id → id of the first earlier question whose words overlap by ``least`` (0..1, more than 0) or more; each kept one only.

    >>> near_duplicates([("a", "Who wrote Emma?"), ("b", "Who wrote Emma"), ("c", "Who wrote Persuasion?")], 0.8)
    {'b': 'a'}
    """
    words = {name: frozenset(words_of(text.lower(), "char")) for name, text in questions}
    often = Counter(word for bag in words.values() for word in bag)
    # Two bags that overlap by t share one of the rarest |a| - ceil(t |a|) + 1 words of each.
    by_word: dict[str, list[str]] = defaultdict(list)
    places = {name: place for place, (name, _) in enumerate(questions)}
    near: dict[str, str] = {}
    for name, _ in questions:
        bag = words[name]
        rare = sorted(bag, key=lambda word: (often[word], word))[
            : len(bag) - math.ceil(least * len(bag)) + 1
        ]
        candidates = {other for word in rare for other in by_word[word]}
        alike = [o for o in candidates if len(bag & words[o]) >= least * len(bag | words[o])]
        if bag and alike:
            near[name] = min(alike, key=places.__getitem__)
            continue
        for word in rare:
            by_word[word].append(name)
    return near
