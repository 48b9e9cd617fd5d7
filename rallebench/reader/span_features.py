"""Features that distinguish an answer from other spans in its sentence.

The network scores start and end independently, so its best pair may cross a full stop or end within a name. Four
features correct the order of its best spans.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping

from rallebench.reader.text import AUXILIARIES, sentences, weight_share, words

NEAR = 3.0
"""Bonus, as a margin, of a span in a sentence with all content words of the question. This and the
other weights are rounded from a fit on the questions of the development articles (n = 1258, one paragraph each),
where they raised exact match by any annotator from 55.5 to 58.5 %."""

CROSSES = -4.0
"""Weight of a span that crosses the end of a sentence."""

CUT = -3.0
"""Weight of a span whose capitalised end is followed by a capitalised word, as "San" in "San Marino"."""

VERB = -1.0
"""Weight of a span with an auxiliary after its first word, as in "the sonata was written"."""


class Signs:
    """Features of the spans of one text. ``telling``: the stems of the question's content words, with weights."""

    def __init__(self, telling: Mapping[str, float], text: str) -> None:
        self._telling = telling
        self._text = text
        self._sentences = sentences(text)
        self._words = [w for w in words(text) if w.is_word]
        self._starts = [w.start for w in self._words]

    def weight(self, start: int, end: int) -> float:
        """Return the margin to add (or, below 0, to subtract) for characters ``start``..``end`` as an answer."""
        first, last = self._places(start, end)
        inside, after = self._words[first:last], self._words[last : last + 1]
        around = [(a, b) for a, b in self._sentences if a < end and start < b] or [(start, end)]
        low, high = self._places(around[0][0], around[-1][1])
        beside = {w.stem for w in (*self._words[low:first], *self._words[last:high])}
        weight = (
            NEAR * weight_share(self._telling, beside)
            + CROSSES * (len(around) > 1)
            + VERB * any(w.low in AUXILIARIES for w in inside[1:])
        )
        if inside and after and inside[-1].is_capital and after[0].is_capital:
            weight += CUT * self._text[inside[-1].end : after[0].start].isspace()
        return weight

    def _places(self, start: int, end: int) -> tuple[int, int]:
        """Return the range of the words that begin in ``start``..``end``."""
        return bisect_left(self._starts, start), bisect_left(self._starts, end)
