"""Words that mark groups, by the formula of Monroe, Colaresi and Quinn 2008."""

from __future__ import annotations

import math

import pytest

from rallebench.analysis.marking_words import log_odds, mark_groups
from rallebench.analysis.question_words import question_word


def test_the_score_is_the_published_formula() -> None:
    inside, outside = {"moon": 12, "the": 40, "red": 1}, {"river": 9, "the": 60, "red": 4}
    prior = 50.0
    total = sum(inside.values()) + sum(outside.values())
    scores = log_odds(inside, outside, prior)
    for word in ("moon", "the", "red", "river"):
        y_i, y_j = inside.get(word, 0), outside.get(word, 0)
        n_i, n_j = sum(inside.values()), sum(outside.values())
        a_w = prior * (y_i + y_j) / total
        delta = math.log((y_i + a_w) / (n_i + prior - y_i - a_w)) - math.log(
            (y_j + a_w) / (n_j + prior - y_j - a_w)
        )
        assert scores[word] == pytest.approx(delta / math.sqrt(1 / (y_i + a_w) + 1 / (y_j + a_w)))


def test_groups_are_marked_by_their_own_words() -> None:
    texts = [f"Which moon of planet {i} is the largest?" for i in range(20)]
    texts += [f"Which river of land {i} is the longest?" for i in range(20)]
    moons, rivers = mark_groups(texts, [range(20), range(20, 40)], most=4)
    assert set(moons) == {"moon", "planet", "largest"} and set(rivers) == {
        "river",
        "land",
        "longest",
    }


def test_a_group_of_one_question_or_of_all_has_no_marks() -> None:
    texts = ["Which moon?", "Which river?", "Which sea?"]
    assert mark_groups(texts, [[0], [0, 1, 2], []]) == [(), (), ()]
    assert mark_groups([], []) == []


def test_chinese_questions_have_words() -> None:
    texts = ["土星最大的卫星是什么？"] * 10 + ["长江流入哪个海？"] * 10
    first, second = mark_groups(texts, [range(10), range(10, 20)])
    assert "卫星" in first and "长江" in second


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("Who found it?", "who"),
        ("To whom did he write?", "who"),
        ("How long is the Nile?", "how long"),
        ("Did Huygens find Titan?", "yes-no"),
        ("In what year was it?", "what"),
        ("Name it.", "other"),
        ("", "other"),
        ("泰坦是谁发现的？", "who"),
        ("有多少个卫星？", "how many"),
        ("它是红色的吗？", "yes-no"),
    ],
)
def test_question_words(text: str, word: str) -> None:
    assert question_word(text) == word
