"""The embedded support head: a logistic regression over the features of a claim beside its passages.

``head.json`` holds its weights and the areas under the ROC curve that it reached on articles it had not seen;
``python -m tools.support.train`` writes it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from rallebench.core.support import AnswerClaim
from rallebench.core.text import CJK_CHARACTER
from rallebench.metrics.support.checker import SupportPair
from rallebench.metrics.support.features import FEATURES, claim_features

FILE = Path(__file__).with_name("head.json")


class SupportHead:
    """The head; it reads English."""

    name, threshold = "", 0.5

    def __init__(self) -> None:
        document = json.loads(FILE.read_text(encoding="utf-8"))
        self._bias: float = document["bias"]
        self._weights: list[float] = [document["weights"][name] for name in FEATURES]

    def score(self, pairs: Sequence[SupportPair]) -> list[float]:
        """Return the probability of support of each pair."""
        return [self._score(pair) for pair in pairs]

    def _score(self, pair: SupportPair) -> float:
        text = "\n".join(passage.text for passage in pair.premise)
        title = "\n".join(passage.title for passage in pair.premise)
        values = claim_features(pair.claim.statement, text, title)
        total = self._bias + sum(map(float.__mul__, self._weights, map(float, values)))
        return 1 / (1 + math.exp(-max(-700.0, min(700.0, total))))

    def refuses(self, claim: AnswerClaim) -> str:
        """Return the reason for Chinese and Japanese text."""
        if CJK_CHARACTER.search(claim.text):
            return (
                "the embedded support head reads English only; name a model, as in support:FOLDER"
            )
        return ""


@lru_cache(maxsize=1)
def support_head() -> SupportHead:
    """Return the head, read once."""
    return SupportHead()
