"""Words that mark a group of texts: log-odds ratios with an informative Dirichlet prior (Monroe, Colaresi and Quinn 2008).

The prior is the words of all texts together, a tenth as many; so a rare word needs more evidence than a common one. A word
counts once for each text. Words are those of ``metrics.words``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain

from rallebench.metrics.words import rule_for, words

PRIOR = 0.1
"""Weight of the prior, as a share of all words."""
MARKING = 1.96
"""The z-score from which a word marks a group."""


def log_odds(
    inside: Mapping[str, int], outside: Mapping[str, int], prior: float | None = None
) -> dict[str, float]:
    """Return word → z-score of its log-odds ratio in ``inside`` against ``outside``, both word → count. ``prior``: the
    number of words in the prior, by default PRIOR of all.

    >>> scores = log_odds({"moon": 30, "the": 50}, {"river": 30, "the": 50})
    >>> [word for word, z in sorted(scores.items(), key=lambda x: -x[1])]
    ['moon', 'the', 'river']
    """
    both = Counter(inside) + Counter(outside)
    total, in_group, in_rest = sum(both.values()), sum(inside.values()), sum(outside.values())
    prior = PRIOR * total if prior is None else prior
    scores = {}
    for word, count in both.items():
        weight = prior * count / total
        own, other = inside.get(word, 0) + weight, outside.get(word, 0) + weight
        own_rest, other_rest = in_group + prior - own, in_rest + prior - other
        if own_rest <= 0 or other_rest <= 0:  # one word only
            continue
        ratio = math.log(own / own_rest) - math.log(other / other_rest)
        scores[word] = ratio / math.sqrt(1 / own + 1 / other)
    return scores


def mark_groups(
    texts: Sequence[str], groups: Sequence[Sequence[int]], most: int = 5
) -> list[tuple[str, ...]]:
    """Return the words that mark each group, at most ``most``, the strongest first. ``groups``: positions of its texts."""
    distinct = [set(text_words(text)) for text in texts]
    every = Counter(chain.from_iterable(distinct))
    marks = []
    for group in groups:
        inside = Counter(chain.from_iterable(distinct[position] for position in group))
        scores = log_odds(inside, every - inside)
        best = sorted(
            ((z, word) for word, z in scores.items() if z >= MARKING and inside[word] > 1),
            key=lambda pair: (-pair[0], pair[1]),
        )
        marks.append(tuple(word for _, word in best[:most]))
    return marks


def text_words(text: str) -> list[str]:
    """Return the words of a text in lower case, without punctuation and single Latin letters."""
    split = words(text, rule_for("", text))
    lowered = (word.lower() for word in split)
    return [w for w in lowered if any(c.isalnum() for c in w) and (len(w) > 1 or not w.isascii())]
