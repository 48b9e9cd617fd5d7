"""Krippendorff's alpha against the figures that Krippendorff printed, and against a computation by pairs."""

from __future__ import annotations

import random
from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rallebench.analysis.agreement import (
    ALL_EQUAL,
    NO_LABEL,
    ONE_PERSON,
    krippendorff_alpha,
    measure_agreement,
    nominal_interval,
    ordinal_distance,
)
from rallebench.core.labels import AnswerLabel, Grade
from rallebench.views.labels import agreement_sentence


def columns(*rows: str) -> list[list[str]]:
    """The values of each unit; a row has the values of one observer, "." for none."""
    return [[value for value in of if value != "."] for of in zip(*(row.split() for row in rows))]


def nominal(counts: object) -> object:
    return lambda a, b: float(a != b)


TWO_OBSERVERS = columns("0 1 0 0 0 0 0 0 1 0", "1 1 1 0 0 1 0 0 0 0")
FIVE_NAMES = columns("a a b b d c c c e d d a", "b a b b b c c c e d d d")
FOUR_OBSERVERS = columns(
    "1 2 3 3 2 1 4 1 2 . . .",
    "1 2 3 3 2 2 4 1 2 5 . 3",
    ". 3 3 3 2 3 4 2 2 5 1 .",
    "1 2 3 3 2 4 4 1 2 5 1 .",
)
"""The examples A, B and C of Krippendorff 2011."""


@pytest.mark.parametrize(
    ("units", "printed"), [(TWO_OBSERVERS, 0.095), (FIVE_NAMES, 0.692), (FOUR_OBSERVERS, 0.743)]
)
def test_alpha_of_names_is_the_printed_one(units: list[list[str]], printed: float) -> None:
    assert krippendorff_alpha(units, nominal) == pytest.approx(printed, abs=5e-4)


def test_alpha_of_ranks_is_the_printed_one() -> None:
    units = [[int(value) for value in unit] for unit in FOUR_OBSERVERS]
    assert krippendorff_alpha(units, ordinal_distance) == pytest.approx(0.815, abs=5e-4)
    squares = krippendorff_alpha(units, lambda counts: lambda a, b: float((a - b) ** 2))
    assert squares == pytest.approx(0.849, abs=5e-4), "of intervals"


@given(st.lists(st.lists(st.sampled_from("abc"), max_size=4), max_size=8))
def test_alpha_equals_a_computation_by_pairs(units: list[list[str]]) -> None:
    of_units = [unit for unit in units if len(unit) > 1]
    observed = sum(
        sum(a != b for a, b in permutations(unit, 2)) / (len(unit) - 1) for unit in of_units
    )
    values = [value for unit in of_units for value in unit]
    expected = sum(a != b for a, b in permutations(values, 2)) / max(1, len(values) - 1)
    alpha = krippendorff_alpha(units, nominal)
    assert alpha is None if not expected else alpha == pytest.approx(1 - observed / expected)


def label(who: str, grade: Grade) -> AnswerLabel:
    return AnswerLabel(1.0, who, "q", "d", "a", grade)


def of(*grades: Grade) -> list[AnswerLabel]:
    return [label(who, grade) for who, grade in zip("ab", grades)]


def test_answers_of_two_people_give_both_alphas() -> None:
    labels = [of("right", "right"), of("wrong", "partly"), of("wrong", "wrong"), of("right")]
    agreement = measure_agreement(labels)
    assert (agreement.people, agreement.answers, agreement.problem) == (("a", "b"), 3, "")
    grades = [[x.grade for x in pair] for pair in labels]
    assert agreement.nominal == krippendorff_alpha(grades, nominal)
    ranks = [[{"wrong": 0, "partly": 1, "right": 2}[g] for g in pair] for pair in grades]
    assert agreement.ordinal == krippendorff_alpha(ranks, ordinal_distance)
    assert agreement.ordinal and agreement.nominal and agreement.ordinal > agreement.nominal


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        ([], NO_LABEL),
        ([of("skip", "skip")], NO_LABEL),
        ([of("right"), of("wrong")], ONE_PERSON),
        ([of("right", "skip")], ONE_PERSON),
        ([of("right", "right"), of("right", "right")], ALL_EQUAL),
    ],
)
def test_where_alpha_is_not_defined_a_sentence_says_why(
    labels: list[list[AnswerLabel]], sentence: str
) -> None:
    agreement = measure_agreement(labels)
    assert agreement.problem == sentence and agreement.nominal is None


def test_skipped_answers_and_wrong_gold_have_no_rank() -> None:
    labels = [of("gold-wrong", "right"), of("right", "wrong"), of("gold-wrong", "gold-wrong")]
    assert measure_agreement(labels).ordinal == krippendorff_alpha([[2, 0]], ordinal_distance)
    assert Counter(x.grade for pair in labels for x in pair)["gold-wrong"] == 3


def test_the_interval_of_alpha_is_a_bootstrap_of_whole_answers() -> None:
    chosen = random.Random(3)
    units = [
        [first, first if chosen.random() < 0.8 else chosen.choice(["right", "wrong"])]
        for first in (chosen.choice(["right", "wrong", "partly"]) for _ in range(60))
    ]
    low, high = nominal_interval(units)
    own = krippendorff_alpha(units, nominal)
    draws = [
        krippendorff_alpha([chosen.choice(units) for _ in units], nominal) for _ in range(1_000)
    ]
    expected = np.percentile([x for x in draws if x is not None], (2.5, 97.5))
    assert low is not None and high is not None and own is not None and low < own < high
    assert [low, high] == pytest.approx(expected, abs=0.03)
    agreement = measure_agreement([of(*unit) for unit in units])  # type: ignore[arg-type]
    assert (agreement.low, agreement.high) == (low, high)
    assert f"({low:.2f} to {high:.2f})" in agreement_sentence(agreement)


def test_few_answers_or_full_agreement_have_no_interval_of_alpha() -> None:
    assert nominal_interval([["right", "wrong"]] * 9) == (None, None)
    assert nominal_interval([["right", "right"], ["wrong", "wrong"]] * 10) == (None, None)
