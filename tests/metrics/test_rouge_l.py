"""ROUGE-L equals that of PyPI rouge 1.0.1, on anything that this package can score."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rallebench.metrics.rouge_l import MAX_WORDS, rouge_l_score

# Few words, so that they repeat: then the choice between equally long subsequences matters.
WORDS = st.sampled_from(["a", "b", "c", "d", "A", "b,", "é", "中", "", "\n", "\u00a0", "."])
TEXTS = st.lists(WORDS, max_size=30).map(" ".join)
ANYTHING = st.text(alphabet=st.characters(codec="utf-8"), max_size=60)


def package_score(hypothesis: str, reference: str) -> float:
    from rouge import Rouge  # type: ignore[import-untyped]

    try:
        return float(Rouge().get_scores(hypothesis, reference, avg=True)["rouge-l"]["f"])
    except ValueError:
        return 0.0


@settings(database=None, max_examples=100)
@given(TEXTS, TEXTS)
def test_repetitive_texts_score_as_in_the_package(hypothesis: str, reference: str) -> None:
    assert rouge_l_score(hypothesis, reference) == package_score(hypothesis, reference)


@settings(database=None, max_examples=100)
@given(ANYTHING, ANYTHING)
def test_any_text_scores_as_in_the_package(hypothesis: str, reference: str) -> None:
    assert rouge_l_score(hypothesis, reference) == package_score(hypothesis, reference)


def test_real_long_answers_score_as_in_the_package(shared_data: object) -> None:
    from itertools import islice
    from pathlib import Path

    from rallebench.datasets.reading import read_examples

    assert isinstance(shared_data, Path)
    for example in islice(read_examples(shared_data / "kilt" / "squality_longform_kilt.jsonl"), 6):
        said, *others = example.gold.answers
        for wanted in others:
            assert rouge_l_score(said, wanted) == package_score(said, wanted)


@pytest.mark.parametrize(
    ("hypothesis", "reference", "expected"),
    [
        ("", "a", 0.0),
        ("a", "...", 0.0),
        (".", ".", 0.0),
        ("a b", "b a", 0.49999999500000003),
        ("a a a", "a", 0.999999995),
    ],
)
def test_edge_cases(hypothesis: str, reference: str, expected: float) -> None:
    assert rouge_l_score(hypothesis, reference) == pytest.approx(expected, abs=1e-12)


def test_a_text_that_breaks_the_package_is_scored_in_seconds() -> None:
    text = " ".join(f"w{i % 5000}" for i in range(3 * MAX_WORDS))
    started = time.monotonic()
    assert rouge_l_score(text, text[::-1]) < 1
    assert rouge_l_score(text, text) == pytest.approx(1)
    assert time.monotonic() - started < 20


def test_many_short_sentences_are_scored_in_seconds() -> None:
    said = ". ".join(f"x{i} y z" for i in range(500))
    wanted = ". ".join(f"x{i} z y" for i in range(500, 0, -1))
    started = time.monotonic()
    assert 0 < rouge_l_score(said, wanted) < 1
    assert time.monotonic() - started < 20
