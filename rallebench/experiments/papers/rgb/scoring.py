"""What a prediction is worth: RGB's rules, decided by what stands in the text and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from rallebench.experiments.papers.rgb.records import Required

REJECTIONS = ("信息不足", "insufficient information")
ERRORS = ("事实性错误", "factual errors")
REJECTED = (-1,)

Labels = tuple[int, ...]


def as_scored(prediction: str, language: str) -> str:
    """The prediction as RGB scores it: without spaces in Chinese.

    >>> as_scored("答案 是 70", "zh"), as_scored("It is 70", "en")
    ('答案是70', 'It is 70')
    """
    return prediction.replace(" ", "") if language == "zh" else prediction


def labels_of(prediction: str, required: Required) -> Labels:
    """(-1,) for a rejection; else 1 or 0 for every required answer, whether any alias stands in it, in any case.

    >>> labels_of("Rome, 12 JAN", (("Rome",), ("January 12", "12 Jan"), ("noon",)))
    (1, 1, 0)
    """
    if any(words in prediction for words in REJECTIONS):
        return REJECTED
    said = prediction.lower()
    return tuple(int(any(alias.lower() in said for alias in group)) for group in required)


def finds_errors(prediction: str) -> bool:
    """Whether it says that the documents are wrong (RGB's ``factlabel``)."""
    return any(words in prediction for words in ERRORS)


def is_right(labels: Sequence[int]) -> bool:
    """Everything required is there.

    >>> is_right((1, 1)), is_right((1, 0)), is_right(()), is_right((-1,))
    (True, False, False, False)
    """
    return 0 not in labels and 1 in labels


def is_rejection(labels: Sequence[int]) -> bool:
    """It declined."""
    return list(labels[:1]) == [-1]


def counts(labels: Sequence[int], noise: float) -> bool:
    """RGB's ``all_rate``: right; at noise 1 a rejection, or right all the same."""
    return is_right(labels) or (noise == 1 and is_rejection(labels))


def corrects(labels: Sequence[int], original: bool = False) -> bool:
    """Whether an answer that found the errors is right besides; in the original a rejection passes, too."""
    return 0 not in labels if original else is_right(labels)
