"""Calibration of confidences against independent computations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, stats

from rallebench.engine.calibration import (
    NO_ANSWER,
    ONE_CONFIDENCE,
    calibrate,
    cut_bins,
    expected_calibration_error,
)

RNG = np.random.default_rng(5)
SURE = RNG.uniform(size=300)
RIGHT = (RNG.uniform(size=300) < SURE**2).astype(float)


def plain_error(confidences: np.ndarray, truth: np.ndarray, count: int) -> float:
    """The adaptive calibration error as published, over bins of consecutive answers (Nixon et al. 2019)."""
    order = np.argsort(confidences)
    parts = np.array_split(order, count)
    return float(
        sum(len(p) * abs(truth[p].mean() - confidences[p].mean()) for p in parts) / len(truth)
    )


def test_the_error_is_that_of_bins_of_equal_size() -> None:
    found = calibrate(SURE, RIGHT)
    assert len(found.bins) == 15 and {x.right.n for x in found.bins} == {20}
    assert found.error.value == pytest.approx(plain_error(SURE, RIGHT, 15))
    again = expected_calibration_error(SURE, RIGHT, cut_bins(SURE, 15))
    assert again == pytest.approx(found.error.value)


def test_a_worked_example() -> None:
    # Twenty answers of each confidence, of which so many are right.
    sure, rights = [0.1, 0.3, 0.5, 0.7, 0.9], [4, 6, 6, 16, 16]
    truth = np.concatenate([[1.0] * right + [0.0] * (20 - right) for right in rights])
    found = calibrate(np.repeat(sure, 20), truth)
    assert [x.right.value for x in found.bins] == pytest.approx([0.2, 0.3, 0.3, 0.8, 0.8])
    assert found.error.value == pytest.approx((0.1 + 0.0 + 0.2 + 0.1 + 0.1) / 5)
    assert found.brier.value == pytest.approx(((np.repeat(sure, 20) - truth) ** 2).mean())
    assert found.brier_constant == pytest.approx(0.48 * 0.52)
    assert found.gap.value == pytest.approx(0.5 - 0.48)


@pytest.mark.parametrize("n", [10, 59, 60, 99])
def test_below_100_answers_there_is_no_error_and_this_is_said(n: int) -> None:
    found = calibrate(SURE[:n], RIGHT[:n])
    assert found.error.value is None and found.by_chance is None and found.gap.value is not None
    said = f"{n} answers are too few for a calibration error; that takes 100."
    assert found.sentences[1:] == (said,)
    assert calibrate(SURE[:100], RIGHT[:100]).error.value is not None


def test_equal_confidences_that_leave_fewer_than_5_bins_have_no_error() -> None:
    found = calibrate((SURE > 0.5).astype(float), RIGHT)
    assert found.error.value is None and len(found.bins) == 2
    assert "only 2 bins, too few for a calibration error; that takes 5" in found.sentences[1]


def test_the_brier_score_is_that_of_scikit_learn() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    found = calibrate(SURE, RIGHT)
    assert found.brier.value == pytest.approx(metrics.brier_score_loss(RIGHT, SURE))


def test_chance_is_the_mean_of_a_folded_normal_in_each_bin() -> None:
    found = calibrate(SURE, RIGHT)
    gaps, order = SURE - RIGHT, np.argsort(SURE)
    expected = 0.0
    for part in np.array_split(order, 15):
        error = math.sqrt(gaps[part].var(ddof=1) / len(part))
        folded, _ = integrate.quad(
            lambda x, s=error: 2 * x * stats.norm.pdf(x, scale=s), 0, 9 * error
        )
        expected += len(part) / 300 * folded
    assert found.by_chance == pytest.approx(expected, rel=1e-6)


def test_a_calibrated_grader_has_an_interval_that_begins_at_0_and_an_uncalibrated_one_has_not() -> (
    None
):
    rng = np.random.default_rng(1)
    fair = (rng.uniform(size=300) < SURE).astype(float)
    assert calibrate(SURE, fair).error.low == 0
    assert (calibrate(SURE, RIGHT).error.low or 0) > 0.05
    said = " ".join(calibrate(SURE, RIGHT).sentences)
    assert "It is too sure" in said and "Miscalibration is shown" in said


def test_articles_are_the_units() -> None:
    copies = np.repeat(np.arange(60), 5)
    alone, copied = calibrate(SURE[:60], RIGHT[:60]), calibrate(SURE[copies], RIGHT[copies], copies)
    assert copied.error.units == 60
    for name in ("gap", "brier", "right"):
        own, other = getattr(alone, name), getattr(copied, name)
        assert other.high - other.low == pytest.approx(own.high - own.low, rel=0.12), name


def test_no_result_depends_on_the_order_or_the_names_of_articles() -> None:
    order = RNG.permutation(300)
    articles = [f"a{i // 3}" for i in range(300)]
    first = calibrate(SURE, RIGHT, articles)
    second = calibrate(SURE[order], RIGHT[order], [articles[i] for i in order])
    for name in ("error", "gap", "brier"):
        own, other = getattr(first, name), getattr(second, name)
        assert (own.low, own.value, own.high) == pytest.approx((other.low, other.value, other.high))


@pytest.mark.parametrize(
    ("confidences", "truth", "words"),
    [
        ([], [], NO_ANSWER),
        ([0.5, 0.6], [1.0, 1.0], "All answers are right, so the confidences cannot be audited."),
        ([0.5, 0.6], [0.0, 0.0], "All answers are wrong, so the confidences cannot be audited."),
        ([0.5, 0.5], [1.0, 0.0], ONE_CONFIDENCE),
    ],
)
def test_what_cannot_be_audited_is_said_in_a_sentence(
    confidences: list[float], truth: list[float], words: str
) -> None:
    found = calibrate(np.array(confidences), np.array(truth))
    assert found.note == words and found.sentences == (words,)


def test_few_articles_have_no_interval() -> None:
    found = calibrate(SURE[:100], RIGHT[:100], [0, 1] * 50)
    assert found.error.value is not None and found.error.low is None
    assert found.error.note == "too few articles" == found.gap.note


def test_equal_confidences_share_a_bin() -> None:
    sure = np.array([0.1] * 30 + [0.9] * 10)
    assert len(set(cut_bins(sure, 4)[:30].tolist())) == 1
    assert cut_bins(sure, 4).max() == 1
