"""The confidence: a logistic regression that says how likely the best span is right, and where to decline.

Fitted on five-passage prompts of the development articles, half of them without the paragraph that
holds the answer.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rallebench.core.errors import UsageError
from rallebench.encoders import Encoder
from rallebench.reader.choice import confidence
from tools.reader import prompts
from tools.reader.sources import Context

if TYPE_CHECKING:
    from rallebench.reader.spans import SpanReader

QUESTIONS = 300
PENALTY = 0.3
RIGHT_SHARE = 0.9
"""The share of right answers that declining may not cut into: the threshold keeps at least so many."""

RIGHT_SHARE_PLAIN = 0.975
"""The same where the prompt does not ask to decline."""


@dataclass(frozen=True, slots=True)
class Observed:
    """A prompt's features, whether the best span was right, and whether the answer was there at all."""

    features: Mapping[str, float]
    right: bool
    present: bool


def observe(
    reader: SpanReader, contexts: Sequence[Context], encoder: Encoder, seed: int
) -> list[Observed]:
    """Read development questions with and without their paragraph among five. Raises UsageError for a reader that has
    none of them right."""
    paragraphs = [c.text.strip() for c in contexts]
    every = [
        prompts.ParagraphQuestion(q.text, tuple(t for t, _ in q.answers), number)
        for number, c in enumerate(contexts)
        for q in c.questions
        if q.answers
    ]
    questions = prompts.sampled(every, QUESTIONS, seed)
    rng = random.Random(seed)
    observed = []
    for question, ranking in zip(questions, prompts.rankings(questions, paragraphs, encoder)):
        for present in (True, False):
            numbers = (
                prompts.with_gold(question, ranking, rng)
                if present
                else prompts.without_gold(question, ranking, paragraphs)
            )
            best = reader.best(prompts.task_of(question, numbers, paragraphs))
            if best is not None:
                text = paragraphs[numbers[best.passage]][best.start : best.end]
                right = present and prompts.score(text, question.answers)[1] >= 0.5
                observed.append(Observed(best.features, right, present))
    if not any(o.right for o in observed):
        raise UsageError(
            "The reader has no development question right, so no confidence can be fitted; train longer."
        )
    return observed


def fit(observed: Sequence[Observed]) -> dict[str, float]:
    """Weights of the features by penalised maximum likelihood, Newton's method; ``one`` is the constant."""
    import numpy as np

    names = sorted(observed[0].features)
    x = np.array([[o.features[n] for n in names] + [1.0] for o in observed])
    y = np.array([float(o.right) for o in observed])
    penalty = np.diag([PENALTY] * len(names) + [0.0])
    weights = np.zeros(x.shape[1])
    for _ in range(50):
        p = 1 / (1 + np.exp(-np.clip(x @ weights, -30, 30)))
        gradient = x.T @ (y - p) - penalty @ weights
        step = np.linalg.solve((x * (p * (1 - p))[:, None]).T @ x + penalty, gradient)
        weights += step
        if np.abs(step).max() < 1e-8:
            break
    return {name: round(float(w), 4) for name, w in zip([*names, "one"], weights)}


def trade_off(observed: Sequence[Observed], weights: Mapping[str, float]) -> list[dict[str, float]]:
    """For thresholds from 0.05 to 0.6: the share of right answers kept, of prompts without an answer
    declined, and of answers given that are right."""
    sure = [confidence(o.features, weights) for o in observed]
    right = [s for s, o in zip(sure, observed) if o.right]
    absent = [s for s, o in zip(sure, observed) if not o.present]
    table = []
    for percent in range(5, 61, 5):
        border = percent / 100
        outcomes = [o.right for s, o in zip(sure, observed) if s >= border]
        table.append(
            {
                "below": border,
                "right_kept": _share(right, border),
                "absent_declined": 1 - _share(absent, border),
                "given_right": sum(outcomes) / (len(outcomes) or 1),
            }
        )
    return table


def threshold(table: Sequence[Mapping[str, float]], share: float = RIGHT_SHARE) -> float:
    """The largest threshold that keeps ``share`` of the right answers; the least one if none does."""
    return max(
        (row["below"] for row in table if row["right_kept"] >= share), default=table[0]["below"]
    )


def summary(observed: Sequence[Observed], weights: Mapping[str, float]) -> dict[str, Any]:
    """Return how well the confidence separates present from absent and right from wrong, and its calibration error (the mean
    difference between confidence and share of right answers, over tenths)."""
    sure = [confidence(o.features, weights) for o in observed]
    gap = 0.0
    for tenth in range(10):
        inside = [(s, o.right) for s, o in zip(sure, observed) if min(9, int(s * 10)) == tenth]
        if inside:
            gap += abs(sum(s for s, _ in inside) - sum(r for _, r in inside))
    return {
        "prompts": len(observed),
        "auroc_present": prompts.auroc(
            [s for s, o in zip(sure, observed) if o.present],
            [s for s, o in zip(sure, observed) if not o.present],
        ),
        "auroc_right": prompts.auroc(
            [s for s, o in zip(sure, observed) if o.right],
            [s for s, o in zip(sure, observed) if not o.right],
        ),
        "calibration_error": gap / len(observed),
    }


def _share(values: Sequence[float], border: float) -> float:
    return sum(v >= border for v in values) / (len(values) or 1)
