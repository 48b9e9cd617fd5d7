"""Judges by typed decisions: verdicts and their probabilities, and mean degrees, computed by hand."""

from __future__ import annotations

import pytest

from rallebench.core.backends import Backends
from rallebench.core.types import Episode, Question
from rallebench.engine.loop import run
from rallebench.llms.scripted import Scripted
from rallebench.metrics import METRICS
from rallebench.metrics.judges import VERDICT, Case, judge_named, read_judgement
from rallebench.metrics.judges.choosing import PROBABILITY

CASE = Case("Who wrote it?", "Ada wrote it.", "Ada\nAda wrote it.")


def play(name: str, *replies: object) -> Episode:
    """The episode of a judge with its shipped prompts and these replies."""
    judge = judge_named(f"{name}:m", lambda _: "mark")
    flow = METRICS[name](
        CASE,
        llm="m",
        prompt=METRICS.entry(name).traits["judge"].prompt(*judge.settings["prompts"].values()),
    )
    (episode,) = run(lambda _: flow, [Question("q", "?")], Backends(llms={"m": Scripted(replies)}))
    return episode


@pytest.mark.parametrize(
    ("name", "shares", "verdict", "probability"),
    [
        ("rgb-errors-choice", {"Yes": 0.6, "No": 0.2}, 1.0, 0.75),
        ("rgb-errors-choice", {"Yes": 0.2, "No": 0.6}, 0.0, 0.25),
        ("rgb-rejection-choice", {"Yes": 0.6, "No": 0.2}, 0.0, 0.25),
        ("rgb-rejection-choice", {"Yes": 0.2, "No": 0.6}, 1.0, 0.75),
    ],
)
def test_a_verdict_is_the_more_probable_one_with_its_probability(
    name: str, shares: dict[str, float], verdict: float, probability: float
) -> None:
    values = read_judgement(play(name, shares)).values
    assert values == {VERDICT: verdict, PROBABILITY: pytest.approx(probability)}


def test_a_degree_is_the_mean_weighted_by_the_probabilities() -> None:
    episode = play("truthfulness-choice", {"4": 0.25, "5": 0.5}, {"1": 0.1, "5": 0.1})
    scores = METRICS.entry("truthfulness-choice").traits["judge"].scores(episode)
    assert scores == {
        "truthfulness_choice": pytest.approx((4 * 0.25 + 5 * 0.5) / 0.75),
        "relevance_choice": pytest.approx(3.0),
        "perfect_choice": pytest.approx(2 / 3 * 1 / 2),
    }
    assert [step.reply.choice.covered for step in episode.steps if step.reply.choice] == [
        pytest.approx(0.75),
        pytest.approx(0.2),
    ]


def test_a_text_gives_a_verdict_without_a_probability() -> None:
    assert read_judgement(play("rgb-rejection-choice", "No, it is not.")).values == {VERDICT: 1.0}


def test_a_text_in_other_words_is_read_by_the_rules_of_the_judge() -> None:
    episode = play("rgb-rejection-choice", "The question is not addressed by the documents.")
    assert read_judgement(episode).values == {VERDICT: 1.0}
