"""RGB's rules, applied to the words of a reply only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rallebench.papers.rgb.records import Required

REJECTIONS = ("信息不足", "insufficient information")
ERRORS = ("事实性错误", "factual errors")
REJECTED = (-1,)
DEFINITIONS: Mapping[str, str] = {
    "all_rate": "RGB's accuracy: every required answer stands in the reply, by one of its aliases, in any case; at noise 1 "
    "a rejection counts, too. Over the questions that did not fail.",
    "rejection_rate": "Rej: the reply holds 'insufficient information' or 信息不足. Over the questions that did not fail.",
    "lucky_rate": "Every required answer stands in the reply though no document holds it. Over the questions that did not fail.",
    "fact_check_rate": "ED: the reply holds 'factual errors' or 事实性错误. Over the questions that did not fail.",
    "correct_rate": "CR: every required answer stands in the reply as well. Over the replies that ED counts "
    "(compat=original: a rejection passes, too).",
    "rejection_rate_judge": "Rej*: the judge says that the question is not addressed. Over the verdicts that could be read.",
    "rejection_probability": "The judge's probability that the question is not addressed. Over the answers with probabilities.",
    "fact_check_probability": "The judge's probability that the errors were identified. Over the answers with probabilities.",
    "fact_check_rate_judge": "ED*: the judge says that the errors were identified. Over the verdicts that could be read.",
    "correct_rate_judge": "CR*: every required answer stands in the reply as well. Over the replies that ED* counts, as in "
    "RGB's paper.",
}

Labels = tuple[int, ...]


def metric_definitions(*metrics: str) -> dict[str, str]:
    """The definitions of these metrics, in this order."""
    return {metric: DEFINITIONS[metric] for metric in metrics}


@dataclass(frozen=True, slots=True)
class Assessment:
    """A scored prediction. ``text``: without spaces if Chinese; ``labels``: see ``label_prediction``; ``errors``: true if it
    says that the documents are wrong (RGB's ``factlabel``)."""

    text: str
    labels: Labels
    errors: bool

    @property
    def right(self) -> bool:
        return is_right(self.labels)

    @property
    def rejects(self) -> bool:
        """True if the prediction declines to answer, with RGB's phrases."""
        return self.labels == REJECTED

    def rates(self, noise: float, original: bool = False) -> dict[str, float | None]:
        """All rates of one answer; None for rates that do not apply. ``original``: a rejection that found the errors also
        counts as corrected."""
        corrected = 0 not in self.labels if original else self.right
        return {
            "all_rate": float(counts(self.labels, noise)),
            "rejection_rate": float(self.rejects),
            "lucky_rate": float(self.right) if noise == 1 else None,
            "fact_check_rate": float(self.errors),
            "correct_rate": float(corrected) if self.errors else None,
        }


def assess(prediction: str, required: Required, language: str) -> Assessment:
    """The text, labels and error flag of a prediction."""
    text = as_scored(prediction, language)
    return Assessment(
        text, label_prediction(text, required), any(words in text for words in ERRORS)
    )


def as_scored(prediction: str, language: str) -> str:
    """The prediction as scored by RGB; in Chinese, spaces are removed.

    >>> as_scored("答案 是 70", "zh"), as_scored("It is 70", "en")
    ('答案是70', 'It is 70')
    """
    return prediction.replace(" ", "") if language == "zh" else prediction


def label_prediction(prediction: str, required: Required) -> Labels:
    """(-1,) for a rejection. Otherwise, 1 for each required answer with an alias in the prediction (ignoring case), else 0.

    >>> label_prediction("Rome, 12 JAN", (("Rome",), ("January 12", "12 Jan"), ("noon",)))
    (1, 1, 0)
    """
    if any(words in prediction for words in REJECTIONS):
        return REJECTED
    text = prediction.lower()
    return tuple(int(any(alias.lower() in text for alias in group)) for group in required)


def is_right(labels: Sequence[int]) -> bool:
    """Return whether all required answers were found.

    >>> is_right((1, 1)), is_right((1, 0)), is_right(()), is_right((-1,))
    (True, False, False, False)
    """
    return 0 not in labels and 1 in labels


def counts(labels: Sequence[int], noise: float) -> bool:
    """RGB's ``all_rate``: true for a right answer and, at noise 1, for a rejection."""
    return is_right(labels) or (noise == 1 and tuple(labels[:1]) == REJECTED)
