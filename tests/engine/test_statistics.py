"""Intervals and p count articles, come from one procedure, and never claim certainty."""

from __future__ import annotations

import importlib.util
import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from project import PROJECT
from scipy import stats

from rallebench.core.report import Estimate
from rallebench.core.tables import ALL_EQUAL, TOO_FEW
from rallebench.engine import statistics
from rallebench.engine.statistics import difference, means

GAPS = st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.0, 1 / 3, 1.0]), min_size=10, max_size=40)
SHARE = {"m": (0, 1)}


def clustered(seed: int, articles: int, each: int = 4) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(articles), each)
    gaps = rng.choice([-1.0, 0.0, 1.0], articles, p=[0.2, 0.5, 0.3])[labels]
    return np.where(rng.random(len(labels)) < 0.5, gaps, 0.0), labels


# ── differences ──────────────────────────────────────────────────────────────


@settings(max_examples=60)
@given(GAPS, st.integers(1, 3), st.integers(1, 6))
def test_zero_lies_outside_the_interval_if_and_only_if_p_is_below_five_percent(
    gaps: list[float], each: int, comparisons: int
) -> None:
    labels = [i // each for i in range(len(gaps))]
    pair = difference(np.array(gaps), labels, comparisons)
    if pair.low is None or pair.high is None:
        assert pair.note and (pair.p is None or pair.note in (ALL_EQUAL, TOO_FEW))
        return
    assert pair.corrected is not None and pair.low <= pair.value <= pair.high
    assert (pair.corrected < 0.05) == (pair.low > 0 or pair.high < 0)


@settings(max_examples=40)
@given(GAPS, st.randoms(use_true_random=False))
def test_order_and_names_of_clusters_change_nothing(gaps: list[float], random: object) -> None:
    labels = [i // 2 for i in range(len(gaps))]
    order = list(range(len(gaps)))
    random.shuffle(order)  # type: ignore[attr-defined]
    first = difference(np.array(gaps), labels)
    again = difference(np.array([gaps[i] for i in order]), [f"article {labels[i]}" for i in order])
    assert (again.p, again.note) == (first.p, first.note)
    assert (again.low, again.high) == pytest.approx((first.low, first.high))


def test_which_run_is_called_a_changes_only_the_sign() -> None:
    gaps, labels = clustered(1, 30)
    one, other = difference(gaps, labels), difference(-gaps, labels)
    assert one.p == other.p and (one.low, one.high) == (-other.high, -other.low)  # type: ignore[operator]


def test_p_is_the_share_of_all_sign_flips_with_half_of_the_ties_and_the_interval_is_where_it_is_five_percent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(statistics, "AMPLE", 0)  # without the widening for few articles
    totals = np.array([3.0, 1.0, -1.0, 2.0, 0.0, 2.5, -0.5, 1.0, 4.0, -2.0])
    gaps, labels = np.repeat(totals / 2, 2), np.repeat(np.arange(10), 2)

    def p(shift: float) -> float:
        moved = totals - 2 * shift
        sums = np.array(
            [np.array(signs) @ moved for signs in itertools.product((1, -1), repeat=10)]
        )
        seen = abs(moved.sum())
        ties = np.isclose(np.abs(sums), seen)
        # The unchanged signs and their opposite count in full.
        return float(
            ((np.abs(sums) > seen) & ~ties).mean()
            + (ties.sum() - 2) / 2 / len(sums)
            + 2 / len(sums)
        )

    pair = difference(gaps, labels)
    assert pair.p == pytest.approx(p(0.0)) and pair.low is not None and pair.high is not None
    assert p(pair.low - 0.05) < 0.05 < p(pair.low + 0.05) and p(pair.high + 0.05) < 0.05 < p(
        pair.high - 0.05
    )


def test_many_clusters_of_equal_size_agree_with_students_t_over_the_articles_means() -> None:
    gaps, labels = clustered(2, 400)
    averages = gaps.reshape(400, 4).mean(axis=1)
    theirs = stats.ttest_1samp(averages, 0)
    low, high = theirs.confidence_interval()
    pair = difference(gaps, labels)
    assert (pair.low, pair.high) == pytest.approx((low, high), abs=0.004)
    assert pair.p == pytest.approx(theirs.pvalue, abs=0.01)


def test_questions_of_one_article_say_less_than_as_many_articles() -> None:
    gaps, labels = clustered(3, 60)
    repeated, alone = difference(gaps, labels), difference(gaps)
    assert repeated.p is not None and alone.p is not None and repeated.p > alone.p
    assert repeated.high - repeated.low > alone.high - alone.low  # type: ignore[operator]


def test_an_article_that_is_asked_four_times_over_shows_no_more_than_once() -> None:
    gaps = np.random.default_rng(4).normal(0.1, 1, 20)
    once = difference(gaps)
    often = difference(np.repeat(gaps, 4), np.repeat(np.arange(20), 4))
    assert (often.p, often.low, often.high) == pytest.approx((once.p, once.low, once.high))


def test_fewer_than_ten_articles_have_no_interval_and_no_p_but_the_plain_words() -> None:
    pair = difference(np.array([0.1, 0.5, 0.9] * 30), [i % 9 for i in range(90)])
    assert (pair.low, pair.high, pair.p, pair.corrected) == (None,) * 4
    assert pair.note == "too few articles"


@pytest.mark.parametrize(("value", "p"), [(0.0, 1.0), (1.0, 2 / 2**12)])
def test_equal_differences_have_no_interval_and_that_is_said(value: float, p: float) -> None:
    pair = difference(np.full(12, value))
    assert (pair.value, pair.low, pair.high, pair.note) == (value, None, None, ALL_EQUAL)
    assert pair.p == pytest.approx(p)


def test_one_question_that_flipped_is_no_difference() -> None:
    pair = difference(np.array([1.0] + [0.0] * 59))
    assert pair.low is not None and pair.low <= 0 and pair.p is not None and pair.p > 0.4


def test_more_comparisons_widen_the_interval_and_multiply_p() -> None:
    gaps, labels = clustered(5, 50)
    alone, several = difference(gaps, labels), difference(gaps, labels, comparisons=5)
    assert several.corrected == pytest.approx(min(1, 5 * several.p))  # type: ignore[operator]
    assert several.low < alone.low and several.high > alone.high  # type: ignore[operator]


# ── means ────────────────────────────────────────────────────────────────────


def test_a_worked_example_by_hand_of_a_mean_without_bounds() -> None:
    # Articles of 1, 1, 1, 1 and 2 questions: mean 3, residual sums -2, -1, 0, 1, 2; 1 - size / n is 5/6 four times and 4/6.
    column, clusters = [1.0, 2.0, 3.0, 4.0, 3.0, 5.0], [0, 1, 2, 3, 4, 4]
    error = math.sqrt((4 + 1 + 0 + 1) / (5 / 6) + 4 / (4 / 6)) / 6
    sizes = np.array([1.0, 1, 1, 1, 2])
    found = means({"m": column}, clusters)["m"]
    values, totals = np.array(column), np.array([1.0, 2, 3, 4, 8])
    assert statistics._error(values, totals, sizes)[0] == pytest.approx(error)
    freedom = statistics._error(values, totals, sizes)[1]
    half = stats.t.ppf(0.975, freedom) * error
    assert (found.value, found.low, found.high) == pytest.approx((3, 3 - half, 3 + half))


def test_clusters_of_equal_size_are_students_t_over_their_means() -> None:
    values = np.random.default_rng(6).normal(10, 3, (12, 4)) + np.random.default_rng(7).normal(
        0, 2, (12, 1)
    )
    low, high = stats.ttest_1samp(values.mean(axis=1), 0).confidence_interval()
    found = means({"seconds": list(values.ravel())}, list(np.repeat(np.arange(12), 4)))["seconds"]
    assert (found.low, found.high) == pytest.approx((low, high))


@pytest.mark.parametrize("rho", [0.0, 0.3, 1.0])
def test_the_degrees_of_freedom_are_those_of_the_whole_matrix(rho: float) -> None:
    sizes = np.array([3, 1, 9, 4, 4, 2])
    n = sizes.sum()
    labels = np.repeat(np.arange(6), sizes)
    alike = (1 - rho) * np.eye(n) + rho * (labels[:, None] == labels[None, :])
    columns = [((labels == g) - sizes[g] / n) / math.sqrt(1 - sizes[g] / n) for g in range(6)]
    matrix = np.array([[a @ alike @ b for a in columns] for b in columns])
    expected = np.trace(matrix) ** 2 / np.sum(matrix * matrix)
    assert statistics._freedom(sizes.astype(float), rho) == pytest.approx(expected)


def test_the_interval_of_a_share_is_agrestis_and_coulls_if_questions_are_articles() -> None:
    mean = means({"m": [1.0] * 12 + [0.0] * 88}, ranges=SHARE)["m"]
    z = stats.norm.ppf(0.975)
    middle = (12 + z * z / 2) / (100 + z * z)
    half = z * math.sqrt(middle * (1 - middle) / (100 + z * z))
    assert (mean.low, mean.high) == pytest.approx((middle - half, middle + half), abs=0.003)


@pytest.mark.parametrize(("right", "bound"), [(1, 0.0), (99, 1.0)])
def test_the_interval_of_a_share_stays_within_its_bounds(right: int, bound: float) -> None:
    mean = means({"m": [1.0] * right + [0.0] * (100 - right)}, ranges=SHARE)["m"]
    assert mean.low is not None and mean.high is not None
    assert 0 <= mean.low < right / 100 < mean.high <= 1 and bound in (mean.low, mean.high)


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_all_right_or_all_wrong_is_no_certainty(value: float) -> None:
    found = means({"m": [value] * 20}, ranges=SHARE)["m"]
    bound = 1 - 0.025 ** (1 / 20)
    assert (found.low, found.high) == pytest.approx((1 - bound, 1.0) if value else (0.0, bound))


def test_four_questions_have_a_mean_and_no_interval() -> None:
    assert means({"m": [1.0] * 4}, ranges=SHARE)["m"] == Estimate(1.0, None, None, 4)
    assert means({"m": [1.0, 0.0] * 20}, [i % 4 for i in range(40)], SHARE)["m"] == Estimate(
        0.5, None, None, 40
    )


def test_articles_that_are_all_half_right_are_no_certainty() -> None:
    found = means({"m": [1.0, 0.0] * 10}, [i // 2 for i in range(20)], SHARE)["m"]
    assert found.low is not None and found.high is not None and found.high - found.low > 0.3


@pytest.mark.parametrize("column", [[], [None, None]])
def test_where_nothing_is_scored_there_is_no_number(column: list[float | None]) -> None:
    assert means({"m": column})["m"] == Estimate(None, None, None, 0)
    assert means({}) == {}


def test_a_metric_is_the_same_whatever_is_scored_beside_it_and_skips_what_is_not_scored() -> None:
    rng = np.random.default_rng(8)
    column = [None if i % 3 == 0 else float(rng.random() < 0.4) for i in range(90)]
    labels = [i // 3 for i in range(90)]
    scored = [i for i, value in enumerate(column) if value is not None]
    alone = means({"m": [column[i] for i in scored]}, [labels[i] for i in scored], SHARE)["m"]
    assert means({"m": column, "other": [1.0] * 90}, labels, SHARE)["m"] == alone


# ── size and coverage ────────────────────────────────────────────────────────


def test_ten_thousand_clustered_questions_make_no_table_of_clusters_by_clusters() -> None:
    import tracemalloc

    rng = np.random.default_rng(9)
    gaps, labels = rng.choice([-1.0, 0.0, 1.0], 10_000), rng.integers(0, 5_000, 10_000)
    tracemalloc.start()
    assert difference(gaps, labels).clusters > 4_000
    assert means({"m": list(gaps)}, labels, {"m": (-1, 1)})["m"].low is not None
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6, "5,000 x 5,000 numbers are 200 MB, 10,000 flips x 5,000 articles 400 MB"


@pytest.fixture
def coverage(monkeypatch: pytest.MonkeyPatch) -> Any:
    path = PROJECT / "benchmarks" / "coverage.py"
    monkeypatch.syspath_prepend(str(path.parent))
    spec = importlib.util.spec_from_file_location("coverage_of_intervals", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.parametrize(("mean", "icc"), [(0.1, 0.2), (0.5, 0.5), (0.9, 0.0)])
def test_a_means_interval_covers_93_to_97_percent(coverage: Any, mean: float, icc: float) -> None:
    held, _ = coverage.mean_row(50, "unequal", icc, mean, False, 2_000)
    assert 0.92 <= held <= 0.98


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["equal", "unequal"])
def test_a_true_null_is_significant_in_4_to_6_percent(coverage: Any, kind: str) -> None:
    held, low, _ = coverage.difference_row(50, kind, 0.1, 0.1, 0.3, 1_500)
    assert 0.03 <= low <= 0.07 and 0.93 <= held <= 0.97


# ── bounds of a metric ───────────────────────────────────────────────────────


def test_one_value_everywhere_that_is_no_bound_has_no_interval() -> None:
    """Precision@5 with one gold page that is always retrieved."""
    assert means({"m": [0.2] * 40}, None, SHARE)["m"] == Estimate(
        pytest.approx(0.2), None, None, 40
    )
    assert means({"m": [3.0] * 40}, None, {"m": (1, 5)})["m"].low is None
    right = means({"m": [1.0] * 40}, None, SHARE)["m"]
    assert right.high == 1.0 and right.low is not None and 0.9 < right.low < 1.0
    equal = means({"m": [0.999999995] * 40}, None, SHARE)["m"]
    assert equal.low is not None, "KILT's ROUGE-L of equal texts is the bound"
    halves = means({"m": [0.0, 1.0] * 20}, [i // 2 for i in range(40)], SHARE)["m"]
    assert halves.low is not None, "articles with equal means vary question by question"


@pytest.mark.parametrize(
    ("bounds", "low", "high"),
    [((0, None), True, False), ((None, 5000), False, True), ((0, 5000), True, True)],
)
def test_every_bound_that_a_metric_has_cuts_its_interval(
    bounds: tuple[float | None, float | None], low: bool, high: bool
) -> None:
    skewed = [10.0, 12.0, 8.0, 11.0, 4129.0]
    mirrored = [5000 - value for value in skewed]
    first = means({"m": skewed}, None, {"m": bounds})["m"]
    second = means({"m": mirrored}, None, {"m": bounds})["m"]
    assert first.low is not None and (first.low >= 0) == low
    assert second.high is not None and (second.high <= 5000) == high


def test_a_bound_that_a_value_lies_beyond_is_not_used_and_the_other_is() -> None:
    mean = means({"m": [10.0, 12.0, 8.0, 11.0, 4129.0]}, None, SHARE)["m"]
    assert mean.low == 0.0 and mean.high is not None and mean.high > 1.0
