"""An unanswerable question scores 1 for an answer that declines and 0 for any other, as in SQuAD 2.0."""

from __future__ import annotations

from statistics import fmean

import pytest
from scored import score

from rallebench.core.types import (
    Episode,
    Generate,
    Gold,
    Hit,
    Message,
    Outcome,
    Passage,
    Reply,
    Retrieve,
    Step,
)
from rallebench.metrics import METRICS, read_card

NONE = Gold(unanswerable=True)
PREDICTIONS: list[tuple[Gold, str]] = [
    (Gold(("Titan", "the moon Titan")), "Titan!"),
    (Gold(("the Black Sea",)), "Black Sea coast"),
    (Gold(("1655",)), ""),
    (NONE, ""),
    (NONE, "Rhea"),
    (NONE, "the"),
]
"""SQuAD 2.0's script normalises (lower case, punctuation, articles), so "the" is an empty answer there, too."""
OFFICIAL = {
    "em": 3 / 6,
    "f1": (1 + 2 * (2 / 3) * 1 / (2 / 3 + 1) + 0 + 1 + 0 + 1) / 6,
    "em_answerable": 1 / 3,
    "f1_answerable": (1 + 0.8 + 0) / 3,
    "em_unanswerable": 2 / 3,
}
"""Computed by hand as its script does: exact, f1, HasAns_exact, HasAns_f1, and NoAns_exact, which equals NoAns_f1."""


def answer_episode(answer: str, page: str = "") -> Episode:
    """The episode of an answer; ``page``: the retrieved page."""
    steps = [Step(Generate("m", (Message("user", "?"),)), Reply(answer))]
    if page:
        hits = (Hit(Passage("d", "A moon.", "Titan", page), 1.0),)
        steps.insert(0, Step(Retrieve("r", "?", 1), Reply("", hits)))
    return Episode("q", "chain", tuple(steps), Outcome(answer))


def test_the_scores_are_those_of_squads_script() -> None:
    pairs = [(answer_episode(answer), gold) for gold, answer in PREDICTIONS]
    for name, series in score(list(OFFICIAL), pairs).items():
        values = [value for value in series.values if value is not None]
        assert fmean(values) == pytest.approx(OFFICIAL[name]), name


COUNTING = [name for name in METRICS.plain_names() if read_card(name).declining]


def test_the_metrics_that_count_declining_are_known() -> None:
    plain = {"accuracy", "em", "f1", "f1_words", "f1_yes_no", "has_answer", "has_answer_all"}
    combined = {f"KILT-{name}" for name in plain - {"f1_words", "f1_yes_no"}}
    assert set(COUNTING) == plain | combined


@pytest.mark.parametrize("name", COUNTING)
def test_declining_in_words_is_right_and_an_answer_wrong(name: str) -> None:
    gold = Gold(unanswerable=True, provenance=(frozenset({"p1"}),))
    pairs = [(answer_episode(text, "p1"), gold) for text in ("I do not know.", "Titan")]
    series = score([name], pairs)[name]
    assert series.values == (1.0, 0.0) and series.notes == ("", "")


def test_silence_is_right_but_not_in_ralles_denominator() -> None:
    series = score(["has_answer", "has_answer_all"], [(answer_episode(""), NONE)])
    assert series["has_answer"].values == (None,) and series["has_answer_all"].values == (1.0,)


def test_kilts_combined_metrics_need_the_page_also_here() -> None:
    gold = Gold(unanswerable=True, provenance=(frozenset({"p1"}),))
    pairs = [(answer_episode("unknown", "p2"), gold), (answer_episode("unknown", "p2"), NONE)]
    assert score(["KILT-em"], pairs)["KILT-em"].values == (0.0, None)


@pytest.mark.parametrize("name", ["rougel", "rouge-1", "bleu", "chrf", "answer_in_context@5"])
def test_a_metric_that_compares_texts_leaves_the_question_out_and_says_so(name: str) -> None:
    series = score([name], [(answer_episode("unknown", "p1"), NONE)])[name]
    assert series.values == (None,) and series.notes == ("no gold answers",)


def test_without_the_mark_a_question_without_answers_is_not_scored() -> None:
    names = ["em", "f1", "accuracy", "em_unanswerable"]
    for series in score(names, [(answer_episode("unknown"), Gold())]).values():
        assert series.values == (None,)


def test_the_card_says_how_unanswerable_questions_count() -> None:
    assert "Unanswerable:  1 for an answer that declines, else 0." in read_card("em").text()
    assert "Unanswerable" not in read_card("rougel").text()
