"""A judge's mean is corrected by labels as in PPI++, and its interval counts articles and covers the truth."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from rallebench.core.tables import ALL_EQUAL, TOO_FEW
from rallebench.engine.label_corrected import (
    LabelledScores,
    best_weight,
    corrected_difference,
    corrected_mean,
)

Floats = NDArray[np.float64]


def judged_questions(
    seed: int, labelled: int, others: int, mean: float = 0.6, right: float = 0.85
) -> LabelledScores:
    """Right and wrong answers, and a judge who sees ``right`` of them and guesses at the others."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(labelled + others) < mean).astype(float)
    guess = (rng.random(labelled + others) < 0.7).astype(float)
    judged = np.where(rng.random(labelled + others) < right, truth, guess)
    return LabelledScores(truth[:labelled], judged[:labelled], judged[labelled:])


def ppi_python(
    y: Floats, f: Floats, others: Floats, w: Floats, v: Floats
) -> tuple[float, float, float]:
    """(estimate, weight of the judge, standard error): ``ppi_mean_pointestimate``, ``_calc_lam_glm`` and ``ppi_mean_ci`` of
    ppi-python 0.2.3, transcribed for one dimension."""
    n, m = len(y), len(others)
    w, v = w / w.sum() * n, v / v.sum() * m
    at = (v * others).mean() + (w * (y - f)).mean()
    grads, grads_hat, grads_others = w * (y - at), w * (f - at), v * (others - at)
    centred, centred_hat = grads - grads.mean(), grads_hat - grads_hat.mean()
    covariance = (1 / n) * (centred @ centred_hat + centred_hat @ centred)
    variance = np.cov(np.concatenate([grads_hat, grads_others]))
    lam = float(np.clip(covariance / (2 * (1 + n / m) * variance), 0, 1))
    estimate = (v * lam * others).mean() + (w * (y - lam * f)).mean()
    imputed = (v * (lam * others)).std() / np.sqrt(m)
    rectifier = (w * (y - lam * f)).std() / np.sqrt(n)
    return float(estimate), lam, float(np.sqrt(imputed**2 + rectifier**2))


@pytest.mark.parametrize(("labelled", "others"), [(20, 200), (150, 40)])
@pytest.mark.parametrize("drawn", ["alike", "unlike"])
def test_estimate_weight_and_independent_error_are_ppi_pythons(
    labelled: int, others: int, drawn: str
) -> None:
    scores = judged_questions(1, labelled, others)
    w, v = np.ones(labelled), np.ones(others)
    if drawn == "unlike":
        rng = np.random.default_rng(2)
        w, v = rng.uniform(1, 4, labelled), rng.uniform(1, 2, others)
        scores = replace(scores, chances=1 / w, unlabelled_chances=1 / v)
    found = corrected_mean(scores)
    expected = ppi_python(scores.labels, scores.judged, scores.unlabelled, w, v)
    assert (found.value, found.weight, found.independent_error) == pytest.approx(expected, abs=1e-9)
    assert 0 < found.weight < 1 and best_weight(scores) == found.weight


def test_weight_0_is_the_mean_of_the_labels_and_weight_1_the_whole_correction() -> None:
    scores = judged_questions(3, 30, 300)
    alone, whole = (corrected_mean(scores, weight=weight) for weight in (0.0, 1.0))
    assert alone.value == pytest.approx(scores.labels.mean())
    assert alone.error == pytest.approx(scores.labels.std(ddof=1) / math.sqrt(30))
    error = (scores.labels - scores.judged).mean()
    assert whole.value == pytest.approx(scores.unlabelled.mean() + error)
    best = corrected_mean(scores)
    assert best.independent_error < min(alone.independent_error, whole.independent_error)


def test_a_judge_who_knows_nothing_counts_little_and_one_without_spread_not_at_all() -> None:
    scores = judged_questions(4, 200, 400, right=0.0)
    assert best_weight(scores) < 0.15
    constant = replace(scores, judged=np.ones(200), unlabelled=np.ones(400))
    assert best_weight(constant) == 0.0


def test_articles_and_not_questions_are_counted_also_across_labelled_and_unlabelled_ones() -> None:
    once = judged_questions(5, 40, 160, right=0.6)
    labelled, others = (
        np.repeat(np.arange(40), 3).tolist(),
        np.repeat(np.arange(40, 200), 3).tolist(),
    )
    several = LabelledScores(
        np.repeat(once.labels, 3),
        np.repeat(once.judged, 3),
        np.repeat(once.unlabelled, 3),
        clusters=labelled,
        unlabelled_clusters=others,
    )
    weight = best_weight(once)
    alone, repeated = corrected_mean(once, weight=weight), corrected_mean(several, weight=weight)
    assert (repeated.value, repeated.error) == pytest.approx((alone.value, alone.error))
    assert repeated.clusters == alone.clusters == 40
    assert repeated.independent_error == pytest.approx(alone.independent_error / math.sqrt(3))
    # An article on both sides of the sample: its deviations add up before they are squared.
    shared = replace(several, unlabelled_clusters=np.repeat(np.arange(160) % 40, 3).tolist())
    parts = []
    for values, articles in (
        (once.labels - weight * once.judged, np.arange(40)),
        (weight * once.unlabelled, np.arange(160) % 40),
    ):
        sums = np.bincount(articles, values - values.mean(), 40) / len(values)
        parts.append(sums / math.sqrt(1 - 1 / 40))
    expected = math.sqrt(float(((parts[0] + parts[1]) ** 2).sum()))
    assert corrected_mean(shared, weight=weight).error == pytest.approx(expected)


@pytest.mark.filterwarnings("error")
def test_without_unlabelled_questions_the_labels_have_students_interval() -> None:
    labels = np.random.default_rng(4).normal(size=30)
    for weight in (None, 1.0):
        found = corrected_mean(LabelledScores(labels, labels + 1, np.array([])), weight=weight)
        error = math.sqrt(labels.var(ddof=1) / 30)
        low, high = stats.t.interval(0.95, 29, labels.mean(), error)
        assert found.weight == 0
        assert (found.value, found.low, found.high) == pytest.approx((labels.mean(), low, high))


def test_few_labels_have_wide_intervals_and_too_few_have_none() -> None:
    few = corrected_mean(judged_questions(8, 10, 400, right=0.5), (0, 1))
    assert few.low is not None and few.high is not None and few.high - few.low > 0.3
    assert few.freedom < 15
    none = corrected_mean(judged_questions(6, 4, 400), (0, 1))
    assert (none.low, none.note) == (None, TOO_FEW)
    nine = judged_questions(6, 9, 400)
    assert corrected_difference(nine, judged_questions(7, 9, 400)).note == TOO_FEW
    right = LabelledScores(np.ones(20), np.ones(20), np.ones(90))
    assert corrected_mean(right, (0, 1)).note == ALL_EQUAL


def test_a_judge_who_agrees_with_ten_labels_is_not_taken_for_perfect() -> None:
    scores = judged_questions(6, 10, 4000)
    scores = replace(scores, judged=scores.labels)
    found = corrected_mean(scores, (0, 1))
    assert found.error > 0.09 > 5 * found.independent_error and found.freedom < 15
    assert found.low is not None and found.low < found.value - 0.15


def test_a_difference_excludes_0_if_and_only_if_p_is_below_five_percent() -> None:
    shown = 0
    for seed in range(40):
        first, second = judged_questions(seed, 60, 300), judged_questions(seed + 99, 60, 300, 0.8)
        pair = corrected_difference(first, second)
        assert pair.low is not None and pair.high is not None and pair.p is not None
        assert (pair.p < 0.05) == (pair.low > 0 or pair.high < 0)
        other = corrected_difference(second, first)
        assert (other.value, other.p) == pytest.approx((-pair.value, pair.p))
        shown += pair.p < 0.05
    assert 10 < shown < 40


@pytest.mark.slow
@pytest.mark.parametrize(("articles", "mean"), [(20, 0.2), (20, 0.6), (50, 0.9)])
def test_intervals_of_clustered_questions_cover_the_truth(articles: int, mean: float) -> None:
    rng = np.random.default_rng(articles)
    every = 6 * articles
    names = np.repeat(np.arange(every), 3)
    held = apart = 0
    for _ in range(800):
        share = np.repeat(rng.beta(mean * 7 / 3, (1 - mean) * 7 / 3, every), 3)
        runs = []
        for _ in range(2):
            truth = (rng.random(3 * every) < share).astype(float)
            guess = (rng.random(3 * every) < 0.7).astype(float)
            judged = np.where(rng.random(3 * every) < 0.8, truth, guess)
            cut = 3 * articles
            runs.append(
                LabelledScores(
                    *(truth[:cut], judged[:cut], judged[cut:]),
                    clusters=names[:cut].tolist(),
                    unlabelled_clusters=names[cut:].tolist(),
                )
            )
        one = corrected_mean(runs[0], (0, 1))
        assert one.low is not None and one.high is not None
        held += one.low <= mean <= one.high
        pair = corrected_difference(*runs)
        apart += pair.p is not None and pair.p < 0.05
    assert 0.92 <= held / 800 <= 0.98 and 0.025 <= apart / 800 <= 0.075
