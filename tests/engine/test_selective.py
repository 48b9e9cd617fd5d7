"""Risk against coverage and proved thresholds against independent computations."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest

from rallebench.core.audits import ProvenThreshold
from rallebench.core.errors import UsageError
from rallebench.engine.selective import area_under_risk, measure_risk, prove_threshold

RNG = np.random.default_rng(3)
SURE = RNG.uniform(size=400)
RIGHT = (RNG.uniform(size=400) < SURE).astype(float)


def published_area(confidences: list[float], truth: list[float]) -> float:
    """AURC as its authors compute it (Geifman et al. 2019): the mean of the risks of the first 1, 2 … n answers."""
    order = sorted(range(len(truth)), key=lambda i: -confidences[i])
    wrong, risks = 0.0, []
    for rank, i in enumerate(order, 1):
        wrong += 1 - truth[i]
        risks.append(wrong / rank)
    return sum(risks) / len(risks)


def test_the_area_is_that_of_its_authors() -> None:
    assert area_under_risk(SURE, RIGHT) == pytest.approx(published_area([*SURE], [*RIGHT]))


def test_equal_confidences_count_as_if_in_random_order() -> None:
    sure, truth = [0.9, 0.5, 0.5, 0.5, 0.2], [1.0, 0.0, 1.0, 1.0, 0.0]
    orders = [
        published_area([0.9, *(0.5 - i / 100 for i in order), 0.2], truth)
        for order in itertools.permutations(range(3))
    ]
    assert area_under_risk(np.array(sure), np.array(truth)) == pytest.approx(np.mean(orders))


def test_the_best_area_has_every_right_answer_first_and_the_random_one_is_the_share_of_wrong() -> (
    None
):
    found = measure_risk(SURE, RIGHT)
    best = published_area([*RIGHT], [*RIGHT])
    assert found.area_best == pytest.approx(best) and found.area_random == 1 - RIGHT.mean()
    assert found.area.value is not None and best < found.area.value < found.area_random


def test_the_interval_is_that_of_a_bootstrap_over_articles() -> None:
    articles = np.repeat(np.arange(100), 4)
    found = measure_risk(SURE, RIGHT, articles.tolist()).area
    rng = np.random.default_rng(0)
    drawn = []
    for _ in range(800):
        chosen = np.concatenate([np.flatnonzero(articles == a) for a in rng.integers(0, 100, 100)])
        drawn.append(area_under_risk(SURE[chosen], RIGHT[chosen]))
    assert found.low is not None and found.high is not None
    assert (found.high - found.low) / (2 * 1.984) == pytest.approx(np.std(drawn), rel=0.12)


def test_points_tell_coverage_and_risk_of_the_most_confident() -> None:
    for point in measure_risk(SURE, RIGHT).points:
        given = float(point.threshold) <= SURE
        assert point.coverage == given.mean() and point.risk.n == given.sum()
        assert point.risk.value == pytest.approx(1 - RIGHT[given].mean())


def halves_of(seed: int) -> ProvenThreshold:
    """A threshold for 80 % of answers that are right in .95 above a confidence of .5, in .4 below."""
    rng = np.random.default_rng(seed)
    sure = rng.uniform(size=1000)
    truth = (rng.uniform(size=1000) < np.where(sure > 0.5, 0.95, 0.4)).astype(float)
    return prove_threshold(sure, truth, 0.8, seed=seed)


def true_precision(threshold: float) -> float:
    """The share of right answers above a threshold in the population of ``halves_of``."""
    low = max(0.0, 0.5 - threshold)
    high = 1 - max(0.5, threshold)
    return (0.95 * high + 0.4 * low) / (high + low)


def test_a_threshold_is_chosen_on_one_half_and_proved_on_the_other() -> None:
    results = [halves_of(seed) for seed in range(40)]
    assert all(x.threshold is not None and 0.25 < x.threshold < 0.6 for x in results)
    proved = [x for x in results if x.is_proved]
    assert len(proved) >= 24, "the margin of the first half is confirmed in most cases"
    assert all(true_precision(x.threshold or 0.0) >= 0.8 for x in proved)
    assert "this is proved" in proved[0].sentences[0]
    assert halves_of(1) == halves_of(1) and halves_of(1).proved.n != halves_of(2).proved.n


def test_no_article_lies_in_both_halves() -> None:
    # Whole articles are right or wrong: if one lay in both halves, each half would know the other.
    articles = np.repeat(np.arange(40), 10)
    found = prove_threshold(SURE, RIGHT, 0.6, articles.tolist())
    assert found.chosen.units is not None and found.proved.units is not None
    assert found.chosen.units <= 20 and found.proved.units <= 20


def test_a_confidence_without_information_is_hardly_ever_proved() -> None:
    rng = np.random.default_rng(8)
    proved = 0
    for _ in range(100):
        truth = (rng.uniform(size=200) < 0.7).astype(float)
        proved += prove_threshold(rng.uniform(size=200), truth, 0.8).is_proved
    assert proved <= 5


@pytest.mark.parametrize("precision", [0, 1, 2, -0.5, float("nan")])
def test_a_precision_that_no_share_has_is_refused(precision: float) -> None:
    with pytest.raises(UsageError, match=r"it must lie between 0 and 1, such as 0\.9"):
        prove_threshold(SURE, RIGHT, precision)


def test_what_has_no_threshold_says_why() -> None:
    equal = prove_threshold(SURE, np.ones(400), 0.9)
    assert equal.sentences == (
        "No threshold for 90 % right answers: all answers are right, so the confidences cannot be audited.",
    )
    few = prove_threshold(SURE, RIGHT, 0.9, [i % 3 for i in range(400)])
    assert few.note == "3 articles are too few to halve"
    unreached = prove_threshold(SURE, RIGHT, 0.999)
    assert unreached.threshold is None and "none reaches it" in unreached.note


def test_a_precision_that_only_few_answers_reach_names_their_number() -> None:
    sure = np.array([1.0] * 26 + [0.0] * 34)
    truth = np.array([1.0] * 26 + [0.0] * 34)
    for seed in range(10):
        found = prove_threshold(sure, truth, 0.8, seed=seed)
        if found.threshold is None:
            assert "none reaches it with at least 20 answers" in found.note
            assert "what reaches it has at most 1" in found.note
        else:
            assert found.chosen.n >= 20
    few = prove_threshold(sure[20:36], 1 - truth[20:36] / 2, 0.8)
    assert few.threshold is None and "–" not in few.sentences[0]
    assert few.note.endswith("what reaches it has at most 8 answers, too few to choose by")


def test_20000_answers_are_measured_in_3_seconds() -> None:
    rng = np.random.default_rng(0)
    sure = rng.uniform(size=20_000)
    truth = (rng.uniform(size=20_000) < sure).astype(float)
    start = time.process_time()
    measure_risk(sure, truth)
    prove_threshold(sure, truth, 0.8)
    assert time.process_time() - start < 3
