"""A run beside its baselines, and the ceiling of its retrieval."""

from __future__ import annotations

import pytest

from rallebench.analysis.baselines import ceiling
from rallebench.core.types import Episode, Gold, Hit, Outcome, Passage, Reply, Retrieve, Step
from rallebench.metrics import METRICS


def episode(*texts: str, answer: str = "no") -> Episode:
    hits = tuple(Hit(Passage(f"d{n}", text), 1.0) for n, text in enumerate(texts))
    return Episode("q", "chain", (Step(Retrieve("r", "q"), Reply("", hits)),), Outcome(answer))


@pytest.mark.parametrize(
    ("texts", "answers", "best"),
    [
        (["Rome is a city.", "Titan is a moon."], ("Titan",), "Titan"),
        (["The moon TITAN."], ("Saturn VI", "titan"), "titan"),
        (["He saw the U.S. flag."], ("U.S.",), "U.S."),
        (["a party"], ("art",), ""),
        (["New", "York"], ("New York",), ""),
        (["anything"], ("", "?"), ""),
        ([], ("Titan",), ""),
        (["Titan"], (), ""),
    ],
)
def test_the_ceiling_gives_the_first_gold_answer_that_a_passage_holds(
    texts: list[str], answers: tuple[str, ...], best: str
) -> None:
    gold = Gold(answers)
    made = ceiling(episode(*texts), gold)
    assert made.answer == best
    if answers:
        assert METRICS["em"](made, gold) == float(bool(best))
