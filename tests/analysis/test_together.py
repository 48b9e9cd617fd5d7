"""Figures over all answers at once: corpus BLEU and chrF beside each other, with intervals that resample questions."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from rallebench.analysis.corpus_level import corpus_level
from rallebench.core.comparison import CorpusScore
from rallebench.core.types import Episode, Example, Gold, Outcome, Question

WORDS = [
    "the",
    "a",
    "moon",
    "of",
    "titan",
    "saturn",
    "goes",
    "round",
    "its",
    "planet",
    "once",
    "every",
    "sixteen",
    "days",
]


def sentences(seed: int, count: int = 60) -> list[str]:
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS, k=rng.randint(4, 12))) for _ in range(count)]


def examples(texts: Sequence[str]) -> list[Example]:
    return [
        Example(Question(f"q{i}", "?"), Gold((text, text.upper()) if i % 3 else (text,)))
        for i, text in enumerate(texts)
    ]


def make_episodes(texts: Sequence[str]) -> dict[str, Episode]:
    return {f"q{i}": Episode(f"q{i}", "chain", (), Outcome(text)) for i, text in enumerate(texts)}


def nearly(texts: Sequence[str], seed: int, share: float) -> list[str]:
    rng = random.Random(seed)
    return [
        " ".join(rng.choice(WORDS) if rng.random() < share else word for word in text.split())
        for text in texts
    ]


@pytest.fixture
def gold() -> list[str]:
    return sentences(1)


@pytest.mark.parametrize("name", ["bleu", "chrf"])
def test_a_better_run_is_beyond_its_interval_and_a_copy_is_not(gold: list[str], name: str) -> None:
    worse, better = make_episodes(nearly(gold, 3, 0.5)), make_episodes(nearly(gold, 4, 0.1))
    first, second, copy = corpus_level(name, examples(gold), [worse, better, worse])
    assert first.difference is None
    assert (copy.difference, copy.difference_low, copy.difference_high) == (0.0, 0.0, 0.0)
    assert second.difference_low is not None and second.difference_low > 0
    assert second.value is not None and first.value is not None
    assert second.difference == second.value - first.value
    assert first.low is not None and first.high is not None and first.low < first.value < first.high


def test_a_metric_without_a_figure_has_none_and_one_question_no_interval(gold: list[str]) -> None:
    run = make_episodes(gold)
    assert corpus_level("em", examples(gold), [run, run]) == ()
    one = corpus_level("bleu", examples(gold)[:1], [run, run])
    assert one == (CorpusScore(1.0, None, None, 1), CorpusScore(1.0, None, None, 1, 0.0))
    assert corpus_level("bleu", [], [run]) == (CorpusScore(None, None, None, 0),)


def test_intervals_hold_the_true_difference_about_as_often_as_they_say() -> None:
    """Two systems of the same quality: the interval of their difference should nearly always contain 0."""
    held = 0
    for seed in range(20):
        gold = sentences(seed, 40)
        both = [make_episodes(nearly(gold, 100 * seed + i, 0.3)) for i in (1, 2)]
        _, other = corpus_level("bleu", examples(gold), both, seed=seed)
        assert other.difference_low is not None and other.difference_high is not None
        held += other.difference_low <= 0 <= other.difference_high
    assert held >= 17
