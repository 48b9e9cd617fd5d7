"""Contract of every registered metric, on any episode. A new one is tested as soon as its file exists."""

from __future__ import annotations

import math
from itertools import product

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
from rallebench.metrics import METRICS, metric, read_card

NAMES = [name for name in METRICS.names() if not METRICS.entry(name).traits.get("tool")]
"""Metrics without a model; for the others see tests/metrics/test_embeddings_of_answers.py."""

ANSWERS = [
    "Titan",
    "",
    " ",
    "the",
    "北京市，2023年",
    "!?",
    "\ud83d",
    "a " * 300,
    "yes\n\x00",
    "Рим é 서울",
]
GOLDS = [
    Gold(),
    Gold(("Titan", "the moon Titan")),
    Gold(("the",), provenance=(frozenset({"p1"}),), titles={"p1": ""}),
    Gold(
        ("北京市", "!"),
        provenance=(frozenset({"p1", "p9"}), frozenset({"p2"})),
        passages=(frozenset({"d1"}),),
    ),
    Gold(unanswerable=True),
    Gold(unanswerable=True, provenance=(frozenset({"p1"}),), titles={"p1": "Titan"}),
    Gold(
        ("yes",),
        provenance=(frozenset({"p9"}),),
        titles={"p9": "Titan"},
        passages=(frozenset({"d9"}),),
    ),
]


def episodes() -> list[Episode]:
    hits = tuple(
        Hit(Passage(f"d{n}", f"Titan and 北京市 {n}", "Titan", f"p{n // 2}"), -n) for n in range(5)
    )
    steps = (
        Step(Retrieve("r", "q", 5), Reply("", hits), 0.1),
        Step(
            Generate("m", (Message("user", "hi"),)),
            Reply("x", prompt_tokens=3, completion_tokens=1),
            0.2,
        ),
    )
    return [
        *(
            Episode("q", "chain", taken, Outcome(answer))
            for answer in ANSWERS
            for taken in (steps, ())
        ),
        Episode("q", "chain", steps[:1], None, "far is down"),
    ]


PAIRS = list(product(episodes(), GOLDS))


@pytest.mark.parametrize("name", NAMES)
def test_a_value_is_a_number_in_its_cards_range_or_none_with_a_reason(name: str) -> None:
    low, high = read_card(name).range
    found = score([name], PAIRS)[name]
    assert len(found.values) == len(found.notes) == len(PAIRS)
    for value, note in zip(found.values, found.notes):
        assert value is not None or note
        if value is not None:
            assert math.isfinite(value)
            assert (low is None or value >= low) and (high is None or value <= high)


@pytest.mark.parametrize("name", NAMES)
def test_without_the_gold_it_needs_a_metric_of_answers_scores_nothing(name: str) -> None:
    if "answers" in read_card(name).needs:
        declining = metric(name).traits["declining"]
        pairs = [
            (episode, gold)
            for episode, gold in PAIRS
            if not (gold.answers or (gold.unanswerable and declining))
        ]
        assert set(score([name], pairs)[name].values) == {None}


@pytest.mark.parametrize("name", NAMES)
def test_a_column_is_what_single_calls_give_and_a_run_without_questions_is_empty(name: str) -> None:
    value = metric(name).value
    some = PAIRS[::7]
    single = tuple(None if episode.error else value(episode, gold) for episode, gold in some)
    assert score([name], some)[name].values == single
    empty = score([name], [])[name]
    assert (empty.values, empty.notes, empty.corpus_level) == ((), (), None)
