"""A paired comparison reports the size of a difference, its certainty, and the questions behind it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rallebench.analysis.paired import compare, with_holm


def test_wins_ties_losses_and_the_flipped_questions_are_named() -> None:
    a = {"q1": 0.0, "q2": 1.0, "q3": 1.0, "q4": 0.0}
    b = {"q1": 1.0, "q2": 1.0, "q3": 0.0, "q4": 1.0}
    found = compare("em", a, b)
    assert (found.n, found.a, found.b, found.difference) == (4, 0.5, 0.75, 0.25)
    assert (found.wins, found.ties, found.losses) == (2, 1, 1)
    assert (found.gained, found.lost) == (("q1", "q4"), ("q3",))
    assert found.flipped_ids == ("q1", "q4", "q3")


def test_scores_that_were_rounded_on_different_ways_are_equal() -> None:
    third, other = 2 * (1 / 5) / (1 + 1 / 5), 1 / 3
    assert third != other
    found = compare("f1", {"a": third, "b": 0.0}, {"a": other, "b": 1.0})
    assert (found.wins, found.ties, found.losses) == (1, 1, 0)
    nothing = compare("f1", dict(zip("abc", (0.0, 0.0, 0.3))), dict(zip("abc", (0.1, 0.2, 0.0))))
    assert nothing.difference is not None and abs(nothing.difference) < 1e-9 and nothing.p is None


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
    assert (found.n, found.a, found.difference, found.p, found.needed) == (
        0,
        None,
        None,
        None,
        None,
    )


@pytest.mark.parametrize(
    ("n", "p", "note"), [(1, None, "too few articles"), (50, 1.0, "all are equal: no interval")]
)
def test_equal_runs_differ_by_nothing_and_no_interval_claims_certainty(
    n: int, p: float | None, note: str
) -> None:
    same = {f"q{i}": float(i % 2) for i in range(n)}
    found = compare("em", same, same)
    assert (found.difference, found.low, found.high, found.p, found.needed) == (
        0.0,
        None,
        None,
        p,
        None,
    )
    assert found.note == note and not found.significant
    assert found.ties == n


def test_questions_of_one_article_count_together_and_a_table_counts_its_comparisons() -> None:
    rng = np.random.default_rng(9)
    b = {f"q{i}": float(value) for i, value in enumerate(np.repeat(rng.normal(0.3, 1, 40), 3))}
    a, clusters = dict.fromkeys(b, 0.0), {qid: number // 3 for number, qid in enumerate(b)}
    alone, grouped = compare("f1", a, b), compare("f1", a, b, clusters=clusters)
    assert (alone.clusters, grouped.clusters) == (120, 40)
    assert alone.p is not None and grouped.p is not None and alone.p < grouped.p
    several = compare("f1", a, b, clusters=clusters, comparisons=4)
    assert (several.p, several.corrected) == (grouped.p, pytest.approx(min(1, 4 * grouped.p)))
    assert several.significant == (several.low > 0)  # type: ignore[operator]


# ── several comparisons ──────────────────────────────────────────────────────


def holm(ps: list[float | None], corrected: float = 1.0) -> list[float | None]:
    pairs = [replace(compare("em", {"q": 0.0}, {"q": 1.0}), p=p, corrected=p) for p in ps]
    return [pair.corrected for pair in with_holm(pairs)]


def test_holms_p_steps_down_and_never_falls() -> None:
    # The example of Holm's paper has the same pattern: .01, .02, .03 of three.
    assert holm([0.02, 0.01, 0.03]) == pytest.approx([0.04, 0.03, 0.04])
    assert holm([0.04, 0.6, None]) == [pytest.approx(0.12), 1.0, None]
    assert holm([]) == []


@settings(max_examples=60)
@given(st.lists(st.floats(1e-6, 1), min_size=1, max_size=8))
def test_holm_lies_between_the_p_itself_and_bonferronis(ps: list[float]) -> None:
    found = holm(list(ps))
    for p, corrected in zip(ps, found):
        assert corrected is not None and p <= corrected + 1e-12
        assert corrected <= min(1.0, len(ps) * p) + 1e-12
    order = sorted(range(len(ps)), key=lambda i: ps[i])
    values = [found[i] for i in order]
    assert values == sorted(values)  # type: ignore[type-var]


def test_a_simultaneous_interval_beside_zero_is_a_difference_that_holm_shows_too() -> None:
    first = {f"q{n}": 0.0 for n in range(60)}
    others = [{f"q{n}": float(n % share == 0) for n in range(60)} for share in (2, 5, 9, 20)]
    pairs = with_holm([compare("em", first, other, comparisons=4) for other in others])
    outside = [pair.low is not None and pair.low > 0 for pair in pairs]
    assert any(outside) and all(pair.significant for pair, out in zip(pairs, outside) if out)


def test_the_interval_of_a_difference_stays_inside_the_metrics_range() -> None:
    a = {f"q{n}": 0.0 for n in range(12)}
    b = {f"q{n}": float(n < 11) for n in range(12)}
    clusters = {qid: n // 1 if n < 10 else 10 for n, qid in enumerate(a)}
    pair = compare("em", a, b, clusters=clusters)
    assert pair.high == 1.0
    free = compare("share", a, b, clusters=clusters)
    own = compare("share", a, b, clusters=clusters, bounds={"share": (0.0, 1.0)})
    assert free.high is not None and free.high > 1.0, "a suite's own metric has no range by itself"
    assert own.high == 1.0 and own.low == free.low


def test_right_and_wrong_answers_to_single_questions_are_tested_exactly() -> None:
    a = {f"q{n}": 0.0 for n in range(100)}
    pair = compare("em", a, a | {f"q{n}": 1.0 for n in range(5)})
    assert pair.p == 0.0625 and pair.low is not None and pair.low < 0
    more = compare("em", a, a | {f"q{n}": 1.0 for n in range(6)})
    assert more.p == 0.03125 and more.low is not None and more.low > 0


def test_graded_differences_with_few_in_one_direction_have_the_words_and_no_verdict() -> None:
    a = {f"q{n}": 0.5 for n in range(60)}
    pair = compare("f1", a, a | {f"q{n}": 0.3 for n in range(9)} | {"q20": 1.0})
    assert (pair.low, pair.high, pair.p, pair.corrected) == (None,) * 4
    assert pair.note == pair.verdict(True) == "too few in one direction"
    both = compare(
        "f1", a, a | {f"q{n}": 0.3 for n in range(9)} | {f"q{n}": 1.0 for n in range(20, 25)}
    )
    assert both.note == "" and both.p is not None
