"""Weighted kappa equals published values and its interval covers the truth; the labels that halve an interval halve it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from rallebench.core.tables import TOO_FEW
from rallebench.engine.grader_agreement import (
    AGREED,
    EQUAL_LABELS,
    EQUAL_SCORES,
    labels_to_halve,
    weighted_kappa,
)
from rallebench.engine.label_corrected import LabelledScores, corrected_mean

Floats = NDArray[np.float64]

MAMMOGRAMS = np.array([[21, 12, 0, 0], [4, 17, 1, 0], [3, 9, 15, 2], [0, 0, 0, 1]])
"""85 mammograms read by two radiologists (Boyd et al. 1982), the example of Stata's manual for ``kap``: with squared
distances the agreement is 94.77 %, kappa 0.6714."""


def two_readers() -> tuple[Floats, Floats]:
    a, b = np.indices(MAMMOGRAMS.shape)
    return tuple(np.repeat(x.ravel() / 3, MAMMOGRAMS.ravel()) for x in (a, b))  # type: ignore[return-value]


def test_kappa_is_that_of_the_published_example() -> None:
    a, b = two_readers()
    found = weighted_kappa(a, b, np.ones(85), range(85))
    assert found.value == pytest.approx(0.6714, abs=5e-5)
    assert found.low is not None and found.high is not None and found.low < 0.6714 < found.high


def test_weights_count_as_copies_and_articles_as_units() -> None:
    a, b = two_readers()
    weights = np.tile([1.0, 3.0], 43)[:85]
    copied = [np.repeat(x, weights.astype(int)) for x in (a, b)]
    numbers = np.repeat(np.arange(85), weights.astype(int))
    weighted = weighted_kappa(a, b, weights, range(85))
    copies = weighted_kappa(*copied, np.ones(len(numbers)), numbers.tolist())
    assert (weighted.value, weighted.low) == pytest.approx((copies.value, copies.low))
    assert copies.units == 85


def test_the_interval_is_a_jackknife_on_fishers_scale() -> None:
    from scipy import stats

    a, b = two_readers()
    found = weighted_kappa(a, b, np.ones(85), range(85))
    without = []
    for i in range(85):
        x, y = np.delete(a, i), np.delete(b, i)
        chance = float(((x[:, None] - y[None, :]) ** 2).mean())
        without.append(np.arctanh(1 - float(((x - y) ** 2).mean()) / chance))
    error = np.sqrt(84 / 85 * ((np.array(without) - np.mean(without)) ** 2).sum())
    half = stats.t.ppf(0.975, 84) * error
    expected = np.tanh([np.arctanh(found.value) - half, np.arctanh(found.value) + half])
    assert (found.low, found.high) == pytest.approx(tuple(expected))


@pytest.mark.parametrize(
    ("labels", "scores", "value", "note"),
    [
        ([1] * 20, [0, 1] * 10, None, EQUAL_LABELS),
        ([0, 1] * 10, [1] * 20, None, EQUAL_SCORES),
        ([0, 1] * 10, [0, 1] * 10, 1.0, AGREED),
        ([0, 1, 1, 0], [0, 1, 0, 0], 0.5, TOO_FEW),
    ],
)
def test_kappa_without_an_interval_says_why(
    labels: list[int], scores: list[int], value: float | None, note: str
) -> None:
    x, y = np.array(labels, float), np.array(scores, float)
    found = weighted_kappa(x, y, np.ones(len(x)), range(len(x)))
    assert (found.value, found.low, found.note) == (value, None, note)


def graded_questions(seed: int, labelled: int, every: int, right: float) -> LabelledScores:
    rng = np.random.default_rng(seed)
    truth = (rng.random(every) < 0.6).astype(float)
    guess = np.where(rng.random(every) < right, truth, rng.random(every) < 0.6).astype(float)
    return LabelledScores(truth[:labelled], guess[:labelled], guess[labelled:])


@pytest.mark.parametrize(("right", "labelled", "every"), [(0.4, 4000, 40000), (0.7, 3000, 60000)])
def test_the_named_number_of_labels_halves_the_error(
    right: float, labelled: int, every: int
) -> None:
    needed = labels_to_halve(graded_questions(1, labelled, every, right), alone=False)
    assert needed is not None and labelled < needed < every
    before, after = (
        corrected_mean(graded_questions(2, n, every, right)).independent_error
        for n in (labelled, needed)
    )
    assert after == pytest.approx(before / 2, rel=0.04)


def test_labels_alone_need_four_times_as_many_and_no_run_has_more_answers_than_it_has() -> None:
    assert labels_to_halve(graded_questions(3, 40, 400, 0.9), alone=True) == 160
    assert labels_to_halve(graded_questions(3, 40, 150, 0.9), alone=True) is None
    assert labels_to_halve(graded_questions(3, 100, 300, 0.95), alone=False) is None


@pytest.mark.slow
@pytest.mark.parametrize(("articles", "size", "right"), [(20, 1, 0.4), (30, 3, 0.7), (60, 2, 0.9)])
def test_the_interval_of_kappa_covers_the_truth(articles: int, size: int, right: float) -> None:
    rng = np.random.default_rng(articles)

    def draw(count: int) -> tuple[Floats, Floats]:
        share = np.repeat(rng.beta(2, 1.3, count), size)
        labels = (rng.random(len(share)) < share).astype(float)
        guess = (rng.random(len(share)) < 0.6).astype(float)
        return labels, np.where(rng.random(len(share)) < right, labels, guess)

    many = draw(200_000)
    truth = weighted_kappa(*many, np.ones(len(many[0])), [0] * len(many[0])).value
    assert truth is not None
    held = without = 0
    for _ in range(500):
        names = np.repeat(np.arange(articles), size).tolist()
        found = weighted_kappa(*draw(articles), np.ones(articles * size), names)
        if found.low is None or found.high is None:
            without += 1
        else:
            held += found.low <= truth <= found.high
    assert without < 50 and 0.93 <= held / (500 - without) <= 0.99
