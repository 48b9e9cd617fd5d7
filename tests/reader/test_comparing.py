"""Claims and titles, compared with the unchanged encoder, whose vectors are cached."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from rallebench.core.types import Passage
from rallebench.encoders.hashing import hashing
from rallebench.reader.similarity import Vectors, lead_name
from rallebench.reader.verdict import is_yes_or_no


class Counting:
    """The hashing encoder; counts its texts."""

    name, dim, fingerprint = "counting", 0, "counting"

    def __init__(self) -> None:
        self.asked = 0
        self._encoder = hashing()

    def encode(self, texts: Sequence[str], *, role: str = "passage") -> np.ndarray:
        self.asked += len(texts)
        return self._encoder.encode(texts)


def test_a_remembered_text_is_not_encoded_again_and_memory_stays_bounded() -> None:
    encoder = Counting()
    vectors = Vectors(encoder, capacity=8)  # type: ignore[arg-type]
    first = vectors.of(["a b", "c d"])
    again = vectors.of(["c d", "a b"])
    assert encoder.asked == 2
    assert all(np.array_equal(first[text], again[text]) for text in first)
    vectors.of([f"text {i}" for i in range(30)])
    assert len(vectors) <= 8


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("In 1843 Ada Lovelace wrote notes.", "Ada Lovelace"),
        ("However, Paris grew.", "Paris"),
        ("It is small.", ""),
        ("", ""),
    ],
)
def test_a_passage_without_a_title_goes_by_the_first_name_in_it(text: str, name: str) -> None:
    assert lead_name(Passage("1", text)) == name


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Was the bridge built before 1800?", True),
        ("Did she ever meet him?", True),
        ("is water wet", True),
        ("Who was it?", False),
        ("When was it built?", False),
        ("", False),
    ],
)
def test_a_question_for_yes_or_no_opens_with_an_auxiliary(question: str, expected: bool) -> None:
    assert is_yes_or_no(question) is expected
