"""A paired comparison says how large a difference is, how sure, and on which questions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rallebench.analysis.paired import compare, holm, interval, questions_needed, sign_flip_p


def test_wins_ties_losses_and_the_flipped_questions_are_named() -> None:
    a = {"q1": 0.0, "q2": 1.0, "q3": 1.0, "q4": 0.0}
    b = {"q1": 1.0, "q2": 1.0, "q3": 0.0, "q4": 1.0}
    found = compare("em", a, b)
    assert (found.n, found.a, found.b, found.difference) == (4, 0.5, 0.75, 0.25)
    assert (found.wins, found.ties, found.losses) == (2, 1, 1)
    assert (found.gained, found.lost) == (("q1", "q4"), ("q3",))
    assert found.flipped == ("q1", "q4", "q3")


def test_scores_that_were_rounded_on_different_ways_are_equal() -> None:
    third, other = 2 * (1 / 5) / (1 + 1 / 5), 1 / 3
    assert third != other
    found = compare("f1", {"a": third, "b": 0.0}, {"a": other, "b": 1.0})
    assert (found.wins, found.ties, found.losses) == (1, 1, 0)
    nothing = compare("f1", dict(zip("abc", (0.0, 0.0, 0.3))), dict(zip("abc", (0.1, 0.2, 0.0))))
    assert nothing.difference != 0 and nothing.needed is None and nothing.p == 1.0


def test_less_is_better_for_a_cost_but_the_difference_keeps_its_sign() -> None:
    found = compare("seconds", {"q": 2.0}, {"q": 1.0}, higher_is_better=False)
    assert (found.difference, found.wins, found.gained) == (-1.0, 1, ("q",))


def test_questions_that_one_run_lacks_or_has_not_scored_are_left_out() -> None:
    a = {"both": 1.0, "only a": 1.0, "failed": None, "broken": math.nan}
    b = {"both": 0.0, "only b": 1.0, "failed": 1.0, "broken": 1.0}
    found = compare("em", a, b)
    assert (found.n, found.a, found.b) == (1, 1.0, 0.0)


def test_nothing_in_common_is_no_number_at_all() -> None:
    found = compare("em", {"x": 1.0}, {"y": 1.0})
    assert (found.n, found.a, found.difference, found.p, found.needed) == (0, None, None, None, None)


@pytest.mark.parametrize("n", [1, 2, 50])
def test_equal_runs_differ_by_nothing(n: int) -> None:
    same = {f"q{i}": float(i % 2) for i in range(n)}
    found = compare("em", same, same)
    assert (found.difference, found.low, found.high, found.p, found.needed) == (0.0, 0.0, 0.0, 1.0, None)
    assert found.ties == n


def test_the_p_of_a_metric_of_0_and_1_is_the_exact_binomial_one() -> None:
    gaps = np.array([1.0] * 15 + [-1.0] * 5 + [0.0] * 80)
    assert sign_flip_p(gaps) == stats.binomtest(15, 20).pvalue


def test_the_p_of_other_metrics_agrees_with_scipy() -> None:
    gaps = np.random.default_rng(7).normal(0.08, 0.4, size=60)
    theirs = stats.permutation_test(
        (gaps,), np.mean, permutation_type="samples", n_resamples=20_000, random_state=np.random.default_rng(1)
    ).pvalue
    assert sign_flip_p(gaps, flips=20_000) == pytest.approx(theirs, abs=0.01)


def test_few_questions_give_the_exact_share_of_all_exchanges() -> None:
    gaps = np.array([0.5, 0.2, 0.9, -0.1])
    totals = [abs(sum(s * g for s, g in zip(signs, gaps))) for signs in _all_signs(4)]
    exact = sum(total >= abs(gaps.sum()) - 1e-12 for total in totals) / 16
    assert sign_flip_p(gaps) == pytest.approx(exact, abs=0.02)


def _all_signs(n: int) -> list[list[int]]:
    return [[1 if i >> bit & 1 else -1 for bit in range(n)] for i in range(2**n)]


def test_under_a_true_null_five_in_a_hundred_comparisons_look_significant() -> None:
    rng = np.random.default_rng(11)
    ps = [sign_flip_p(rng.normal(0, 1, size=40), seed=i, flips=400) for i in range(1000)]
    assert 0.03 <= np.mean([p < 0.05 for p in ps]) <= 0.07


def test_the_interval_agrees_with_the_normal_one_on_many_questions() -> None:
    gaps = np.random.default_rng(3).normal(0.1, 1.0, size=2000)
    low, high = interval(gaps)
    half = 1.96 * gaps.std() / math.sqrt(2000)
    assert low == pytest.approx(gaps.mean() - half, abs=0.01)
    assert high == pytest.approx(gaps.mean() + half, abs=0.01)


def test_a_difference_that_is_the_same_everywhere_needs_six_questions_the_fewest_that_show_anything() -> None:
    assert questions_needed(np.ones(40)) == 6 and sign_flip_p(np.ones(5)) > 0.05 > sign_flip_p(np.ones(6))


def test_the_questions_needed_really_have_the_power() -> None:
    gaps = np.random.default_rng(5).normal(0.2, 1.0, size=400)
    needed = questions_needed(gaps)
    assert needed is not None
    rng = np.random.default_rng(6)
    draws = [rng.choice(gaps, size=needed) for _ in range(400)]
    power = np.mean([stats.ttest_1samp(draw, 0).pvalue < 0.05 for draw in draws])
    assert power == pytest.approx(0.8, abs=0.07)


@given(st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.25, 1.0]), min_size=1, max_size=30))
def test_p_does_not_depend_on_which_run_is_called_a(gaps: list[float]) -> None:
    values = np.array(gaps)
    assert sign_flip_p(values, flips=200) == pytest.approx(sign_flip_p(-values, flips=200))
    assert 0 < sign_flip_p(values, flips=200) <= 1


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_a_correction_never_lowers_a_p_and_keeps_their_order(ps: list[float]) -> None:
    corrected = holm(ps)
    assert all(after >= before for before, after in zip(ps, corrected))
    ranked = sorted(zip(ps, corrected))
    assert [after for _, after in ranked] == sorted(corrected)
