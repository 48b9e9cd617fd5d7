"""ALCE's scores of answers that must hold several things, computed by hand as its program does."""

from __future__ import annotations

import pytest
from scored import score

from rallebench.core.types import Episode, Generate, Gold, Message, Outcome, Reply, Step

GOLD = Gold(required=(("1655", "25 March 1655"), ("1846",), ("the Moon",)))


def answer_episode(answer: str) -> Episode:
    step = Step(Generate("m", (Message("user", "?"),)), Reply(answer))
    return Episode("q", "chain", (step,), Outcome(answer))


@pytest.mark.parametrize(
    ("answer", "share", "hit", "f1"),
    [
        ("Titan in 1655, Triton in 1846.", 2 / 3, 0.0, 0.0),
        ("25 March, 1655; 1846; a moon.", 1.0, 1.0, 0.0),
        ("1655, 1846, Moon.", 1.0, 1.0, 1.0),
        ("1655, Titan", 1 / 3, 0.0, 2 * (1 / 2) * (1 / 3) / (1 / 2 + 1 / 3)),
        ("1655, 25 March 1655,", 1 / 3, 0.0, 2 * 1 * (1 / 3) / (1 + 1 / 3)),
        ("", 0.0, 0.0, 0.0),
        (" , .", 0.0, 0.0, 0.0),
    ],
)
def test_required_answers_are_counted_in_the_answer_and_in_its_list(
    answer: str, share: float, hit: float, f1: float
) -> None:
    columns = score(["str_em", "str_hit", "list_f1"], [(answer_episode(answer), GOLD)])
    values = [columns[name].values[0] for name in ("str_em", "str_hit", "list_f1")]
    assert values == pytest.approx([share, hit, f1])


def test_without_required_answers_they_are_not_scored() -> None:
    for series in score(
        ["str_em", "str_hit", "list_f1"], [(answer_episode("x"), Gold(("x",)))]
    ).values():
        assert (series.values, series.notes) == ((None,), ("no gold required",))
