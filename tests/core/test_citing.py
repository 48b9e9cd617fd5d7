"""Citation marks, passages of prompts and quotations."""

from __future__ import annotations

import pytest
from tiny_support import answer_pair, passage

from rallebench.core.citing import find_quotations, marked_sentences, prompt_passages
from rallebench.core.types import Episode, Note, Outcome, Reply, Step


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("One [1]. Two [2, 3].", [("One.", (1,)), ("Two.", (2, 3))]),
        ("One.[1][2] Two.", [("One.", (1, 2)), ("Two.", ())]),
        ("一是[1]。二是【2】。", [("一是。", (1,)), ("二是。", (2,))]),
        ("One [1–3].", [("One.", (1, 2, 3))]),
        ("In [2020] it rose.", [("In [2020] it rose.", ())]),
        ("See [1](http://example.org).", [("See [1](http://example.org).", ())]),
        ("One.\n\n[4]\n\nTwo.", [("One.", (4,)), ("Two.", ())]),
        ("[1]", []),
        ("", []),
    ],
)
def test_marks_belong_to_their_sentence(
    answer: str, expected: list[tuple[str, tuple[int, ...]]]
) -> None:
    assert [(s.text, s.numbers) for s in marked_sentences(answer)] == expected


def test_passages_are_numbered_in_their_order_in_the_prompt() -> None:
    pair = answer_pair(
        "So.", ["first text", "second text", "unused"], prompt="second text, first text"
    )
    assert [p.text for p in prompt_passages(pair.episode)] == ["second text", "first text"]


def test_without_a_model_s_prompt_there_are_no_passages() -> None:
    steps = (Step(Note("first text"), Reply("first text")),)
    assert prompt_passages(Episode("q", "imported", steps, Outcome("So."))) == ()


TEXT = "The river froze at night — the town’s \u201cgreat frost\u201d of 1709, and the ferries stopped."


@pytest.mark.parametrize(
    ("answer", "numbers"),
    [
        ('It says "the river froze at night" there.', [1]),
        ("It says “The River  froze at night,” there.", [1]),
        ('It says "the river froze … and the ferries stopped".', [1]),
        ('It says "and the ferries stopped ... the river froze".', [0]),
        ('It says "the town\'s \u2018great frost\u2019 of 1709".', [0]),
        ('It says "the river froze at noon".', [0]),
        ('The "great frost" was cold.', []),
        ("他说：「河流在夜里结了冰」。", [2]),
        ("«the ferries stopped» and „The river froze at night“.", [1]),
    ],
)
def test_quotations_are_checked_word_for_word(answer: str, numbers: list[int]) -> None:
    passages = [passage(1, TEXT), passage(2, "河流在夜里结了冰。")]
    assert [quoted.passage for quoted in find_quotations(answer, passages)] == numbers
