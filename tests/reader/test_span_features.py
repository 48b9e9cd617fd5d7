"""Features of a span in its sentence, worked out by hand."""

from __future__ import annotations

import pytest

from rallebench.reader.span_features import CROSSES, CUT, NEAR, VERB, Signs
from rallebench.reader.text import stem

TEXT = "Ada Lovelace was born in London. Her mother, Anne Isabella Milbanke, studied mathematics at home."
ASKED = {stem("born"): 0.5, stem("mother"): 1.0, stem("mathematics"): 0.5}


def weight(span: str, asked: dict[str, float] = ASKED) -> float:
    start = TEXT.index(span)
    return Signs(asked, TEXT).weight(start, start + len(span))


@pytest.mark.parametrize(
    ("span", "expected"),
    [
        ("London", NEAR * 0.25),
        ("Anne Isabella Milbanke", NEAR * 0.75),
        ("Her mother", NEAR * 0.25),
        ("Anne Isabella", NEAR * 0.75 + CUT),
        ("Ada", NEAR * 0.25 + CUT),
        ("Ada Lovelace was born", VERB),
        ("was born in London", 0.0),
        ("London. Her mother", NEAR * 0.5 + CROSSES),
        ("home.", NEAR * 0.75),
    ],
)
def test_a_span_is_weighed_by_sentence_its_ends_and_verbs(span: str, expected: float) -> None:
    assert weight(span) == pytest.approx(expected, abs=1e-9), span


def test_words_of_the_question_in_the_span_itself_do_not_speak_for_it() -> None:
    assert weight("mother") < weight("Anne Isabella Milbanke")


def test_a_comma_between_two_names_cuts_no_name() -> None:
    assert weight("Milbanke", {}) == 0.0
    assert Signs({}, "He saw Bath, London and York.").weight(7, 11) == 0.0


@pytest.mark.parametrize("text", ["", "   ", "…", "no full stop"])
def test_every_place_of_every_text_has_a_weight(text: str) -> None:
    signs = Signs(ASKED, text)
    for start in range(len(text) + 1):
        for end in range(start, len(text) + 1):
            assert signs.weight(start, end) == 0.0, (start, end)
