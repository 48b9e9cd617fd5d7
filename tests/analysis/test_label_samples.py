"""Samples of answers: their chances, their sizes, and means weighted by the chances."""

from __future__ import annotations

from collections import Counter
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rallebench.analysis.label_samples import draw_sample, share_out
from rallebench.core.errors import UsageError
from rallebench.core.labels import RunAnswer


def answers(count: int) -> list[RunAnswer]:
    return [RunAnswer("d", "x", f"q{n}", f"Question {n}?", f"A{n}") for n in range(count)]


@given(st.integers(1, 60), st.integers(0, 40), st.integers(0, 40))
def test_every_answer_has_a_chance_and_the_chances_add_up(
    size: int, apart: int, other: int
) -> None:
    if not apart + other:
        return
    first, second = share_out(min(size, apart + other), apart, other)
    assert first + second == min(size, apart + other) and first <= apart and second <= other
    if size > 1:
        assert (first > 0) == (apart > 0) and (second > 0) == (other > 0)


def test_the_same_seed_draws_the_same_and_equal_answers_are_drawn_once() -> None:
    many = answers(50)
    drawn = draw_sample(many, 10, seed=3)
    assert drawn == draw_sample(many, 10, seed=3) != draw_sample(many, 10, seed=4)
    assert len({x.key for x in drawn}) == 10 and {x.probability for x in drawn} == {0.2}
    again = [RunAnswer("d", "x", "other", "Question 0?", " a0 "), *many]
    assert len(draw_sample(again, 100)) == 50, "the same question with the same answer"


def test_drawn_shares_are_the_stored_chances() -> None:
    many, apart = answers(20), {f"q{n}" for n in range(4)}
    counts: Counter[str] = Counter()
    chances: dict[str, float] = {}
    for seed in range(2000):
        for drawn in draw_sample(many, 6, seed=seed, apart=apart):
            counts[drawn.qid] += 1
            chances[drawn.qid] = drawn.probability
            assert drawn.apart == (drawn.qid in apart)
    assert chances["q0"] == 1.0 and chances["q9"] == pytest.approx(2 / 16)
    for qid, chance in chances.items():
        assert counts[qid] / 2000 == pytest.approx(chance, abs=0.035)


def test_a_mean_weighted_by_the_chances_is_right_on_average() -> None:
    many, apart = answers(20), {f"q{n}" for n in range(6)}
    worth = {x.qid: float(x.qid in apart) for x in many}
    means = [
        sum(worth[x.qid] / x.probability for x in draw_sample(many, 8, seed=seed, apart=apart)) / 20
        for seed in range(500)
    ]
    assert fmean(means) == pytest.approx(0.3, abs=1e-9), "both groups have a fixed size"


def test_an_empty_sample_is_refused() -> None:
    with pytest.raises(UsageError, match="draw at least 1"):
        draw_sample(answers(3), 0)
