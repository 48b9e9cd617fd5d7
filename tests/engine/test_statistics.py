"""Intervals and p count articles, come from one procedure, and never claim certainty."""

from __future__ import annotations

import importlib.util
import math
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from project import PROJECT
from scipy import stats

from rallebench.core.report import Estimate
from rallebench.core.tables import ALL_EQUAL, ONE_SIDED, TOO_FEW
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
        assert pair.note and (pair.p is None) == (pair.note in (TOO_FEW, ONE_SIDED))
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


def test_symmetric_differences_of_equal_articles_are_students_t_over_their_means() -> None:
    averages = np.array([-0.5, -0.3, -0.1, 0.1, 0.3, 0.5, 0.7, 0.9, 0.2, 0.2])
    gaps, labels = np.repeat(averages, 3), np.repeat(np.arange(10), 3)
    theirs = stats.ttest_1samp(averages, 0)
    pair = difference(gaps, labels)
    assert pair.p == pytest.approx(theirs.pvalue)
    assert (pair.low, pair.high) == pytest.approx(tuple(theirs.confidence_interval()))


def test_skewed_differences_have_the_less_certain_of_students_and_halls_p() -> None:
    # Hall 1992, transcribed: g(t) = t + s t² / 3 + s² t³ / 27 + s / 6, with the skewness s of the mean.
    gaps = np.array([0.9] * 6 + [-0.1] * 60 + [0.05] * 4)
    error = gaps.std(ddof=1) / math.sqrt(70)
    residuals = gaps - gaps.mean()
    third, sixth = (residuals**3).sum(), (residuals**6).sum()
    s = third / (residuals**2).sum() ** 1.5 * (1 - sixth / third**2)
    assert s > 0.2

    def p(true: float) -> float:
        t = (gaps.mean() - true) / error
        hall = t + s * t**2 / 3 + s**2 * t**3 / 27 + s / 6
        return max(2 * stats.t.sf(abs(x), 69) for x in (t, hall))

    pair = difference(gaps)
    assert pair.p == pytest.approx(p(0.0)) and pair.p > stats.ttest_1samp(gaps, 0).pvalue
    assert pair.low is not None and pair.high is not None
    assert p(pair.low) == pytest.approx(0.05) and p(pair.high) == pytest.approx(0.05)
    low, high = stats.ttest_1samp(gaps, 0).confidence_interval()
    assert pair.high > high and pair.low == pytest.approx(low)


def test_a_skewness_that_one_article_makes_changes_nothing() -> None:
    gaps = np.array([1.0] + [0.01 * (-1) ** i for i in range(29)])
    assert difference(gaps).p == pytest.approx(stats.ttest_1samp(gaps, 0).pvalue)


@pytest.mark.parametrize(("wins", "losses"), [(5, 0), (6, 0), (17, 6), (18, 6), (3, 3)])
def test_single_right_or_wrong_questions_are_mcnemars_exact_test(wins: int, losses: int) -> None:
    gaps = np.array([1.0] * wins + [-1.0] * losses + [0.0] * (100 - wins - losses))
    pair = difference(gaps)
    p = stats.binomtest(wins, wins + losses).pvalue
    assert pair.p == pytest.approx(p) and pair.changed == (wins, losses)
    assert pair.low is not None and (pair.low > 0) == (p < 0.05)
    points = difference(4 * gaps, bounds=(1, 5))
    assert points.p == pair.p and points.high == pytest.approx(4 * (pair.high or 0.0))
    assert difference(gaps, bounds=(None, None)).changed is None, "tokens may differ by more than 1"


@pytest.mark.parametrize(
    ("wins", "losses", "n"), [(5, 0, 100), (20, 5, 60), (3, 4, 30), (0, 7, 12)]
)
def test_the_interval_of_mcnemars_test_is_the_melded_one(wins: int, losses: int, n: int) -> None:
    """Fay and Lumbard 2021, by drawing from both confidence distributions."""
    rng, draws = np.random.default_rng(3), 400_000

    def lower(wins: int, losses: int) -> float:
        won = rng.beta(wins, losses + 1, draws) if wins else np.zeros(draws)
        changed = wins + losses
        few = rng.beta(changed, n - changed + 1, draws)
        many = rng.beta(changed + 1, n - changed, draws)
        return float(np.quantile((2 * won - 1) * np.where(won > 0.5, few, many), 0.025))

    gaps = np.array([1.0] * wins + [-1.0] * losses + [0.0] * (n - wins - losses))
    pair = difference(gaps)
    assert (pair.low, pair.high) == pytest.approx(
        (lower(wins, losses), -lower(losses, wins)), abs=0.003
    )


@pytest.mark.parametrize(("rare", "note"), [(4, ONE_SIDED), (5, "")])
def test_graded_differences_with_many_ties_need_five_articles_on_the_rarer_side(
    rare: int, note: str
) -> None:
    gaps = np.array([0.3] * rare + [-0.2] * 15 + [0.0] * 40)
    pair = difference(gaps)
    assert pair.note == note and (pair.p is None) == (pair.low is None) == bool(note)
    assert difference(gaps[: rare + 15]).note == "", "without ties both sides show their spread"
    several = np.sign(gaps)
    assert difference(several, np.arange(len(gaps)) // 2).note == "", "all changes are of one size"


@pytest.mark.parametrize(
    ("far", "rare", "note"), [(0.4, 4, ONE_SIDED), (0.39, 4, ""), (0.4, 5, ""), (0.4, 0, "")]
)
def test_few_articles_that_reach_twice_as_far_as_the_others_are_too_few(
    far: float, rare: int, note: str
) -> None:
    gaps = np.array([far] * rare + [-0.1 - 0.01 * i for i in range(11)])
    assert difference(gaps).note == difference(-gaps).note == note


def test_questions_of_one_article_say_less_than_as_many_articles() -> None:
    gaps, labels = clustered(6, 60)
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


@pytest.mark.parametrize(("value", "p"), [(0.0, 1.0), (0.5, 2 / 2**12)])
def test_equal_differences_have_no_interval_and_that_is_said(value: float, p: float) -> None:
    pair = difference(np.full(12, value))
    assert (pair.value, pair.low, pair.high, pair.note) == (value, None, None, ALL_EQUAL)
    assert pair.p == pytest.approx(p)


def test_one_question_that_flipped_is_no_difference() -> None:
    pair = difference(np.array([1.0] + [0.0] * 59))
    assert pair.low is not None and pair.low <= 0 and pair.p == 1.0


def test_more_comparisons_widen_the_interval_and_multiply_p() -> None:
    gaps, labels = clustered(5, 50)
    alone, several = difference(gaps, labels), difference(gaps, labels, comparisons=5)
    assert several.corrected == pytest.approx(min(1, 5 * several.p))  # type: ignore[operator]
    assert several.low < alone.low and several.high > alone.high  # type: ignore[operator]


@pytest.mark.parametrize("level", [0.2, 0.1, 0.01])
def test_the_interval_of_any_confidence_agrees_with_students_t(level: float) -> None:
    gaps, labels = clustered(2, 400)
    theirs = stats.ttest_1samp(gaps.reshape(400, 4).mean(axis=1), 0).confidence_interval(1 - level)
    pair = difference(gaps, labels, level=level)
    assert (pair.low, pair.high) == pytest.approx(tuple(theirs), abs=0.006)


# ── means ────────────────────────────────────────────────────────────────────


def test_a_worked_example_by_hand_of_a_mean_without_bounds() -> None:
    # Articles of 1, 1, 1, 1 and 2 questions: mean 0, residual sums -2, -1, 0, 1, 2; 1 - size / n is 5/6 four times and 4/6.
    column, clusters = [-2.0, -1.0, 0.0, 1.0, 0.0, 2.0], [0, 1, 2, 3, 4, 4]
    error = math.sqrt((4 + 1 + 0 + 1) / (5 / 6) + 4 / (4 / 6)) / 6
    sizes = np.array([1.0, 1, 1, 1, 2])
    found = means({"m": column}, clusters)["m"]
    values, totals = np.array(column), np.array([-2.0, -1, 0, 1, 2])
    moments = statistics._moments(values, totals, sizes)
    assert moments.error == pytest.approx(error)
    jackknife = math.sqrt((4 + 1 + 0 + 1) / (5 / 6) ** 2 + 4 / (4 / 6) ** 2) / 6
    assert moments.jackknife == pytest.approx(jackknife)
    half = stats.t.ppf(0.975, moments.freedom) * error
    assert (found.value, found.low, found.high) == pytest.approx((0, -half, half))


def test_clusters_of_equal_size_are_students_t_over_their_means() -> None:
    values = np.random.default_rng(6).normal(0, 3, (12, 4)) + np.random.default_rng(7).normal(
        0, 2, (12, 1)
    )
    low, high = stats.ttest_1samp(values.mean(axis=1), 0).confidence_interval()
    found = means({"free": list(values.ravel())}, list(np.repeat(np.arange(12), 4)))["free"]
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


def test_the_interval_of_a_share_of_articles_is_agrestis_and_coulls() -> None:
    values = np.random.default_rng(8).binomial(1, 0.2, (40, 3)).astype(float)
    averages = values.mean(axis=1)
    mean, error, t = averages.mean(), averages.std(ddof=1) / math.sqrt(40), stats.t.ppf(0.975, 39)
    trials = mean * (1 - mean) / error**2
    middle = (mean * trials + t * t / 2) / (trials + t * t)
    half = t * math.sqrt(middle * (1 - middle) / (trials + t * t))
    found = means({"m": list(values.ravel())}, list(np.repeat(np.arange(40), 3)), SHARE)["m"]
    assert (found.low, found.high) == pytest.approx((middle - half, middle + half))


def test_graded_scores_near_a_bound_count_like_right_or_wrong_ones() -> None:
    column = [0.001 * (1 + i % 3) for i in range(40)]
    mean, t = np.mean(column), stats.t.ppf(0.975, 39)
    middle = (mean * 40 + t * t / 2) / (40 + t * t)
    half = t * math.sqrt(middle * (1 - middle) / (40 + t * t))
    found = means({"m": column}, None, SHARE)["m"]
    assert (found.low, found.high) == pytest.approx((max(0.0, middle - half), middle + half))
    away = means({"m": [0.5 + value for value in column]}, None, SHARE)["m"]
    assert away.high is not None and away.high < 0.51


@pytest.mark.parametrize("right", [0, 1, 12, 58, 100])
def test_the_interval_of_single_right_or_wrong_questions_is_clopper_and_pearsons(
    right: int,
) -> None:
    found = means({"m": [1.0] * right + [0.0] * (100 - right)}, ranges=SHARE)["m"]
    theirs = stats.binomtest(right, 100).proportion_ci(method="exact")
    assert (found.low, found.high) == pytest.approx(tuple(theirs))


def test_the_interval_of_values_above_a_bound_is_that_of_their_logarithm_or_halls() -> None:
    values = np.random.default_rng(8).lognormal(3, 1, 25)
    mean, error, t = (
        values.mean(),
        stats.sem(values) / math.sqrt(1 - 1 / 25),
        stats.t.ppf(0.975, 24),
    )
    s = stats.skew(values, bias=False) / math.sqrt(25)
    # Hall 1992: the t at which his transformed t is −t.
    hall = mean - error * 3 / s * (np.cbrt(1 + s * (-t - s / 6)) - 1)
    factor = math.exp(t * error / mean)
    found = means({"m": list(values)}, None, {"m": (0, None)})["m"]
    assert hall > mean * factor
    assert (found.low, found.high) == pytest.approx((mean / factor, hall))
    assert means({"m": list(values)})["m"] == found, "amounts without a known bound"
    mirrored = means({"m": list(7 - values)}, None, {"m": (None, 7)})["m"]
    assert (mirrored.low, mirrored.high) == pytest.approx((7 - hall, 7 - mean / factor))


@pytest.mark.parametrize(("right", "bound"), [(1, 0.0), (99, 1.0)])
def test_the_interval_of_a_share_stays_within_its_bounds(right: int, bound: float) -> None:
    column, articles = [1.0] * right + [0.0] * (100 - right), [i // 2 for i in range(100)]
    mean = means({"m": column}, articles, SHARE)["m"]
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
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.parametrize(("articles", "kind"), [(10, "equal"), (20, "strong"), (50, "mild")])
@pytest.mark.parametrize(("mean", "icc"), [(0.1, 0.2), (0.5, 0.5), (0.9, 0.0)])
def test_the_interval_of_a_mean_covers_92_to_99_percent(
    coverage: Any, articles: int, kind: str, mean: float, icc: float
) -> None:
    held, _ = coverage.mean_row(articles, kind, icc, mean, False, 1_000)
    assert 0.92 <= held <= 0.99


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["equal", "strong"])
def test_a_true_null_is_significant_in_at_most_six_percent(coverage: Any, kind: str) -> None:
    row = coverage.ternary_row(50, kind, 0.25, 0.25, 0.5, 1_500)
    assert row.significant <= 0.065 and row.held >= 0.935


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["equal", "strong"])
def test_the_power_is_within_five_points_of_the_plain_t(coverage: Any, kind: str) -> None:
    row = coverage.ternary_row(10, kind, 0.3, 0.1, 0.2, 1_500)
    assert row.plain - 0.02 <= row.significant <= row.plain + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize(("articles", "kind"), [(50, "single"), (100, "equal"), (200, "single")])
def test_skewed_differences_of_no_mean_are_significant_in_at_most_six_percent(
    coverage: Any, articles: int, kind: str
) -> None:
    rarer, row = coverage.skewed_row(articles, kind, (1.0, -0.2), (0.03, 0.15), 1_500)
    assert row.significant <= 0.07 and row.plain > row.significant
    assert (row.one_sided > 0.9) == (rarer < 2)


@pytest.mark.slow
def test_means_of_lognormal_values_are_covered_and_never_reach_below_0(coverage: Any) -> None:
    held, plain, least = coverage.tail_row(20, "single", 0.0, 1.0, 2_000)
    assert held >= 0.92 > plain and least > 0


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
    assert mean.low is not None and mean.low > 0 and mean.high is not None and mean.high > 1.0
