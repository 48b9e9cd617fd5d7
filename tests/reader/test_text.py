"""Words and their stems: words that match, and words that stay apart."""

from __future__ import annotations

import pytest

from rallebench.reader.text import stem


@pytest.mark.parametrize(("word", "shorter"), [("toy", "to"), ("bee", "be")])
def test_a_word_of_three_letters_keeps_its_last_one(word: str, shorter: str) -> None:
    assert stem(word) != stem(shorter)
    assert stem(word) == stem(f"{word}s")
