"""Choice of the answer span: the best over all windows, and its probability of being right.

A span's margin is the score of its start and end minus its window's "no answer here" score, so windows
of different passages share one scale, and the network itself would decline below 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rallebench.reader.windows import Window

MAX_SPAN = 30
"""Maximum tokens of a span."""

ROUNDING = 2
"""Decimals of a margin: smaller differences arise from batching, and must not change answers."""

COVERED = 8.0
"""Bonus, as a margin, of a passage with all content words of the question over one with none. Chosen on 400 five-passage
prompts of the development articles, where 0.85 instead of 0.81 of the spans came from the right paragraph.
"""


CONSIDERED = 20
"""Spans per paragraph that are examined closely; in nine of ten cases they include the right one."""


@dataclass(frozen=True, slots=True)
class Best:
    """The best span: characters ``start``..``end`` of passage ``passage``, with its features."""

    passage: int
    start: int
    end: int
    features: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Scored:
    """Margins of all candidate spans of a window: (tokens, MAX_SPAN), −inf elsewhere."""

    window: Window
    margins: NDArray[np.float32]
    none: float


def best_span(
    windows: Sequence[Window],
    scores: Sequence[NDArray[np.float32]],
    texts: Sequence[str],
    pieces: NDArray[np.bool_],
    max_words: int = 0,
    covered: Sequence[float] = (),
    weight: Callable[[int, int, int], float] = lambda passage, start, end: 0.0,
) -> Best | None:
    """Return the span with the largest margin plus weight; ties: the earlier window, the earlier and shorter span.

    ``scores``: for each window (tokens of its sequence, 2). ``pieces``: for each token id, True if it continues a word.
    ``max_words``: 0 means no limit. ``covered``: for each text, the share of the question's content words in it, 0..1,
    which favours passages about the question. ``weight``: additional margin of the span (passage, start, end). None if
    no span is allowed.
    """
    scored = [_margins(w, s, texts[w.passage], pieces, max_words) for w, s in zip(windows, scores)]
    if not scored:
        return None
    spans = []
    for number, scores_of in enumerate(scored):
        passage = scores_of.window.passage
        share = COVERED * covered[passage] if covered else 0.0
        margins = np.round(scores_of.margins, ROUNDING)
        for at in np.argsort(-margins, axis=None, kind="stable")[:CONSIDERED]:
            first, length = (int(i) for i in np.unravel_index(at, margins.shape))
            if math.isfinite(margins[first, length]):
                spans.append((float(margins[first, length]) + share, number, first, length))
    spans = sorted(spans, key=lambda span: -span[0])[:CONSIDERED]
    if not spans:
        return None
    weighed = [
        total + weight(scored[n].window.passage, *_characters(scored[n].window, a, b))
        for total, n, a, b in spans
    ]
    _, number, first, length = spans[int(np.argmax(np.round(weighed, ROUNDING)))]
    winner = scored[number]
    passage = winner.window.passage
    start, end = _characters(winner.window, first, length)
    margin = float(winner.margins[first, length])
    second = max(_best_elsewhere(s, passage, start, end) for s in scored)
    place = winner.window.context + first
    return Best(
        passage,
        start,
        end,
        {
            "margin": margin / 10,
            "probability": _log_probability(windows, scores, number, place, place + length),
            "gap": min(margin - second, 20.0) / 10,
            "none": winner.none / 10,
        },
    )


def confidence(features: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """Return the probability that the best span is right, 0..1: a logistic of its features; ``one`` is the constant.

    >>> round(confidence({"margin": 1.0}, {"one": -1.0, "margin": 1.0}), 2)
    0.5
    """
    value = weights["one"] + sum(
        weights[name] * features[name] for name in weights if name != "one"
    )
    return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, value))))


def _margins(
    window: Window,
    scores: NDArray[np.float32],
    text: str,
    pieces: NDArray[np.bool_],
    max_words: int,
) -> _Scored:
    n = len(window.offsets)
    part = scores[window.context : window.context + n] - scores[0]
    ids = np.asarray(window.ids[window.context : window.context + n])
    goes_on = pieces[ids]
    start = np.where(goes_on, -np.inf, part[:, 0])
    # the first token of a later window may continue a word split by the cut
    end = np.where(np.append(goes_on[1:], False), -np.inf, part[:, 1])
    margins = start[:, None] + _from_each(end, -np.inf)
    # "1,388 (0.9%" is cut at the wrong place: a span must not contain a single bracket of a pair
    change = np.array([_BRACKETS.get(text[a:b], 0) for a, b in window.offsets], dtype=np.int64)
    after = np.cumsum(change)
    level = _from_each(after, 10**6) == (after - change)[:, None]
    margins = np.where(level, margins, -np.inf)
    if max_words:
        word = _word_numbers(window, text)
        spread = _from_each(word, 10**6) - word[:, None]
        margins = np.where(spread < max_words, margins, -np.inf)
    return _Scored(window, margins.astype(np.float32), float(scores[0].sum()))


def _from_each(values: NDArray[Any], beyond: float) -> NDArray[Any]:
    """Return (tokens, MAX_SPAN): the values of each token and of the next ones; ``beyond`` past the last."""
    padded = np.append(values, np.full(MAX_SPAN - 1, beyond, dtype=values.dtype))
    return np.lib.stride_tricks.sliding_window_view(padded, MAX_SPAN)


_BRACKETS = {"(": 1, "[": 1, ")": -1, "]": -1}


def _word_numbers(window: Window, text: str) -> NDArray[np.int64]:
    """Return for each token the index of its space-separated word in the text."""
    numbers, at, count, inside = [], 0, 0, False
    for start, _ in window.offsets:
        for character in text[at : start + 1]:
            space = character.isspace()
            count += inside and space
            inside = not space
        at = max(at, start + 1)
        numbers.append(count)
    return np.array(numbers, dtype=np.int64)


def _characters(window: Window, first: int, length: int) -> tuple[int, int]:
    return window.offsets[first][0], window.offsets[first + length][1]


def _best_elsewhere(scored: _Scored, passage: int, start: int, end: int) -> float:
    """Return the largest margin of a span that does not overlap the best one."""
    margins = scored.margins
    if scored.window.passage == passage:
        starts, ends = np.array(scored.window.offsets).T
        lasts = _from_each(ends, 10**9)
        margins = np.where((starts[:, None] < end) & (lasts > start), -np.inf, margins)
    return max(-30.0, float(margins.max(initial=-np.inf)))


def _log_probability(
    windows: Sequence[Window], scores: Sequence[Any], number: int, first: int, last: int
) -> float:
    """Return log P(span), normalised over all positions of all windows and over "no answer"."""
    total = 0.0
    for column, place in ((0, first), (1, last)):
        margins = [
            s[w.context : len(w.ids) - 1, column] - s[0, column] for w, s in zip(windows, scores)
        ]
        every = np.append(np.concatenate(margins), 0.0).astype(np.float64)
        top = every.max()
        own = float(scores[number][place, column] - scores[number][0, column])
        total += own - top - math.log(float(np.exp(every - top).sum()))
    return max(-10.0, total) / 2
