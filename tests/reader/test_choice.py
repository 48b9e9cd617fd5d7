"""The choice of the span, worked out by hand on invented scores."""

from __future__ import annotations

import numpy as np
import pytest

from rallebench.reader.choice import Best, best_span, confidence
from rallebench.reader.windows import Window

TEXT = "Ada Lovelace was born in London in 1815"
WORDS = TEXT.split()
PIECES = np.zeros(100, dtype=bool)


def window(text: str = TEXT, passage: int = 0, pieces: tuple[str, ...] = ()) -> Window:
    """One token per word: ids count from 10, those of ``pieces`` (continued words) from 50."""
    words, at, offsets = text.split(), 0, []
    for word in words:
        at = text.index(word, at)
        offsets.append((at, at + len(word)))
        at += len(word)
    body = [50 + i if word in pieces else 10 + i for i, word in enumerate(words)]
    return Window(passage, 0, (1, 7, 2, *body, 2), 3, tuple(offsets))


def scores(text: str = TEXT, none: float = 0.0, **spots: tuple[float, float]) -> np.ndarray:
    """Start and end scores: −5 everywhere except at the named words, ``none`` for both at the first token."""
    words = text.split()
    found = np.full((len(words) + 4, 2), -5.0, dtype=np.float32)
    found[0] = none
    for word, pair in spots.items():
        found[3 + words.index(word)] = pair
    return found


def pick(
    *pairs: tuple[Window, np.ndarray], texts: tuple[str, ...] = (TEXT,), **more: object
) -> Best:
    best = best_span([w for w, _ in pairs], [s for _, s in pairs], texts, PIECES, **more)  # type: ignore[arg-type]
    assert best is not None
    return best


def said(best: Best, texts: tuple[str, ...] = (TEXT,)) -> str:
    return texts[best.passage][best.start : best.end]


def test_what_else_speaks_for_a_span_counts_like_its_margin_which_stays_as_it_is() -> None:
    two = (window(), scores(Ada=(4, 0), Lovelace=(0, 3), London=(3, 3)))
    liked = TEXT.index("London")
    for weight, wins in ((0.9, "Ada Lovelace"), (1.1, "London")):
        best = pick(two, weight=lambda passage, start, end, w=weight: w * (start == liked))
        assert said(best) == wins
    assert best.features["margin"] == pytest.approx(0.6), "the confidence is of the span alone"


def test_the_span_with_the_largest_sum_of_start_and_end_wins() -> None:
    best = pick((window(), scores(Ada=(4, 0), Lovelace=(0, 3), London=(3, 3))))
    assert said(best) == "Ada Lovelace"
    assert best.features["margin"] == pytest.approx(0.7)
    assert best.features["gap"] == pytest.approx(0.1)


def test_a_span_never_ends_before_it_starts() -> None:
    assert said(pick((window(), scores(London=(9, 0), Ada=(-5, 9))))) == "London"


def test_windows_are_compared_by_what_they_score_above_saying_nothing() -> None:
    other = "Bath lies on the Avon"
    texts = (TEXT, other)
    sure = (window(), scores(London=(3, 3), none=2.0))
    surer = (window(other, 1), scores(other, Bath=(2, 2), none=-3.0))
    assert said(pick(sure, surer, texts=texts), texts) == "Bath"


def test_equal_windows_leave_it_to_the_earlier_passage() -> None:
    best = pick(
        (window(passage=0), scores(Ada=(2, 2))),
        (window(passage=1), scores(Ada=(2, 2))),
        texts=(TEXT, TEXT),
    )
    assert best.passage == 0


def test_of_two_passages_the_one_that_speaks_of_what_is_asked_is_preferred_but_not_at_any_price() -> (
    None
):
    other = "Bath lies on the Avon"
    texts = (TEXT, other)
    two = ((window(), scores(London=(3, 3))), (window(other, 1), scores(other, Bath=(4, 4))))
    assert said(pick(*two, texts=texts, covered=(0.5, 0.5)), texts) == "Bath"
    assert said(pick(*two, texts=texts, covered=(0.9, 0.5)), texts) == "London"
    assert said(pick(*two, texts=texts, covered=(0.6, 0.5)), texts) == "Bath"
    best = pick(*two, texts=texts, covered=(0.9, 0.5))
    assert best.features["margin"] == pytest.approx(0.6), "the confidence is of the span alone"


def test_a_word_limit_is_kept_by_the_best_span_that_fits() -> None:
    pair = (window(), scores(Ada=(4, 0), London=(3, 3), Lovelace=(0, 5)))
    assert said(pick(pair)) == "Ada Lovelace"
    assert said(pick(pair, max_words=1)) == "London"


def test_no_span_begins_or_ends_within_a_word() -> None:
    text = "Love lace left"
    pieces = PIECES.copy()
    pieces[51] = True
    split = window(text, pieces=("lace",))
    found = best_span(
        [split], [scores(text, lace=(9, 9), Love=(1, 8), left=(0, 0))], [text], pieces
    )
    assert found is not None
    assert text[found.start : found.end] == "Love lace"


def test_a_bracket_is_never_opened_without_being_closed() -> None:
    text = "about 1,388 ( 0.9 percent ) couples"
    pair = (window(text), scores(text, **{"1,388": (5, 0), "percent": (0, 5), "0.9": (1, 0)}))
    assert said(pick(pair, texts=(text,)), (text,)) == "0.9 percent"


def test_without_a_window_there_is_no_span() -> None:
    assert best_span([], [], [], PIECES) is None


def test_the_same_answer_in_an_overlapping_window_is_no_rival() -> None:
    alone = pick((window(), scores(London=(4, 4))))
    twice = pick((window(), scores(London=(4, 4))), (window(), scores(London=(3, 3))))
    assert twice.features["gap"] == alone.features["gap"]


def test_confidence_grows_with_its_features_and_stays_between_0_and_1() -> None:
    weights = {"one": -1.0, "margin": 2.0, "gap": 1.0}
    low, high = ({"margin": m, "gap": 0.1} for m in (-0.5, 1.5))
    assert 0 < confidence(low, weights) < 0.5 < confidence(high, weights) < 1
    assert confidence({"margin": 1e6, "gap": 0}, weights) == pytest.approx(1)
