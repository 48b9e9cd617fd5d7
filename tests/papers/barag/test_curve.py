"""Quality against tokens: three questions whose sums can be checked by hand, and the worth of a published decision."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from rallebench.papers.barag import points
from rallebench.papers.barag.agreement import measure_agreement
from rallebench.papers.barag.points import (
    BranchedCase,
    always,
    as_good,
    choice_point,
    choice_table,
    held_out,
    model_asked,
    never,
    oracle,
    signal_auroc,
)
from rallebench.papers.barag.runs import AnswerRow, BaragRun, read_runs
from rallebench.papers.barag.tables import RUNS


def case(
    qid: str,
    draft: float,
    read: float,
    confidence: float | None,
    retrieval: float,
    wants: bool | None = None,
) -> BranchedCase:
    """A draft costs 10 + 1 tokens, an answer with passages 100 + 2, samples 20 + 2, a decision 15 + 1."""
    signals = {"confidence": confidence, "agreement": confidence, "retrieval": retrieval}
    return BranchedCase(qid, draft, read, (10, 1), (100, 2), (20, 2), (15, 1), signals, wants)


CASES = (
    case("a", 1, 1, 0.9, 3.0, False),
    case("b", 0, 1, 0.2, 9.0, True),
    case("c", 1, 0, 0.6, 1.0, None),
)


def test_the_ends_cost_one_answer_a_question() -> None:
    expected = (30, 3, pytest.approx(2 / 3))
    assert (never(CASES).n_in, never(CASES).n_out, never(CASES).quality.value) == expected
    assert (always(CASES).n_in, always(CASES).n_out, always(CASES).share) == (300, 6, 1.0)


def test_a_certainty_costs_its_draft_even_if_passages_are_read_but_a_score_does_not() -> None:
    low, high = points.curve(CASES, "confidence", (0.5, 0.7))
    expected = (pytest.approx(1 / 3), 130, 5, 1.0)
    assert (low.share, low.n_in, low.n_out, low.quality.value) == expected
    expected = (pytest.approx(2 / 3), 230, pytest.approx(2 / 3))
    assert (high.share, high.n_in, high.quality.value) == expected
    (samples,) = points.curve(CASES, "agreement", (0.5,))
    assert (samples.n_in, samples.n_out) == (190, 11)
    (score,) = points.curve(CASES, "retrieval", (9.0,))
    assert (score.n_in, score.n_out, score.quality.value) == (120, 4, 1.0)


def test_thresholds_that_read_the_same_are_one_point_and_automatic_ones_reach_ends() -> None:
    assert len(points.curve(CASES, "confidence", (0.3, 0.4, 0.5))) == 1
    for signal in ("confidence", "retrieval"):
        shares = [point.share for point in points.curve(CASES, signal)]
        assert shares == [0.0, pytest.approx(1 / 3), pytest.approx(2 / 3), 1.0]


def test_a_certainty_that_is_not_known_reads() -> None:
    unknown = [dataclasses.replace(one, signals={"confidence": None}) for one in CASES]
    (point,) = points.curve(unknown, "confidence")
    assert point.share == 1.0


def test_the_coin_reads_as_many_and_the_oracle_takes_the_better_and_then_the_cheaper() -> None:
    (point,) = points.curve(CASES, "confidence", (0.5,))
    assert point.coin == pytest.approx(2 / 3)
    expected = (pytest.approx(1 / 3), 120, 1.0)
    assert (oracle(CASES).share, oracle(CASES).n_in, oracle(CASES).quality.value) == expected


def test_the_model_asked_pays_for_its_decision_and_reads_where_it_said_nothing_clear() -> None:
    point = model_asked(CASES)
    assert (point.share, point.n_in, point.n_out) == (pytest.approx(2 / 3), 3 * 25 + 200, 3 * 2 + 4)
    assert choice_point(CASES).n_in == 10 + 100 + 10


def test_a_signal_is_told_from_chance() -> None:
    assert signal_auroc(CASES, "confidence") == 1.0 and signal_auroc(CASES, "retrieval") == 1.0
    assert signal_auroc([CASES[0], CASES[2]], "confidence") is None
    assert signal_auroc([*CASES, case("d", 0, 1, None, 2.0)], "confidence") is None


def test_a_point_is_as_good_only_if_it_is_cheaper() -> None:
    curve = points.curve(CASES, "confidence", (0.1, 0.5, 0.95))
    found = as_good(curve, always(CASES))
    assert found is not None and found.share == 0.0
    hard = [case(str(n), 0, 1, n / 4, 1.0) for n in range(4)]
    assert as_good(points.curve(hard, "confidence"), always(hard)) is None


def test_a_threshold_is_tried_on_the_questions_it_was_not_chosen_on() -> None:
    many = [
        case(str(n), float(n % 4 > 1), 1, 0.9 if n % 4 > 1 else 0.1 + n / 1000, 1.0)
        for n in range(40)
    ]
    found = held_out(many, "confidence")
    assert found is not None
    assert found[0].share == 0.5
    assert found[0].quality.value == 1.0
    assert found[1].n_in == 2000
    assert held_out(many[:19], "confidence") is None


def row(n: int, score: float, n_in: int, read: bool = False) -> AnswerRow:
    return AnswerRow(str(n), f"T{n}", "Q?", "A", n_in, 1, read, score, score, "")


def test_an_agents_choice_is_set_against_a_coin_and_the_better_answer() -> None:
    without = BaragRun("w", "", "", (row(1, 5, 10), row(2, 1, 10), row(3, 1, 10)), {})
    read = BaragRun("r", "", "", (row(1, 3, 100), row(2, 5, 100)), {})
    agent = BaragRun("a", "", "", (row(1, 4, 30), row(2, 4, 130, True), row(3, 5, 130, True)), {})
    table = choice_table("T", without, read, agent)
    assert table is not None and table.title == "T: 2 questions"
    cells = {line[0]: (line[1], line[2], line[4].value, line[5]) for line in table.rows}
    assert cells == {
        "never": ("0%", 20, 3.0, 3.0),
        "always": ("100%", 200, 4.0, 4.0),
        "agent": ("50%", 160, 4.0, 3.5),
        "its choice": ("50%", 110, 5.0, 3.5),
        "oracle": ("50%", 110, 5.0, 3.5),
    }
    assert (
        "Passages help 1 of 2 questions; the agent reads for 100% of these and 0% of the others."
        in table.note
    )
    assert choice_table("T", without, read, BaragRun("x", "", "", (row(9, 1, 1),), {})) is None


def test_the_published_agent_chooses_better_than_a_coin(shared_data: Path) -> None:
    runs = {run.name: run for run in read_runs(str(shared_data / "barag"))}
    table = choice_table("T", *(runs[name] for name in RUNS["Table II"].values()))
    assert table is not None
    assert (
        "Passages help 111 of 206 questions; the agent reads for 59% of these and 26% of the others."
        in table.note
    )
    agent = next(line for line in table.rows if line[0] == "agent")
    assert agent[4].low > agent[5]


# agreement with given scores


def test_agreement_by_hand() -> None:
    found = measure_agreement([1, 2, 3, 4, 5], [2, 2, 3, None, 5])
    actual = (found.n, found.unparsed, found.mae.value, found.bias.value, found.exact.value)
    assert actual == (4, 1, 0.25, 0.25, 0.75)
    expected = (0.9661, 0.9487)
    assert (round(found.pearson.value or 0, 4), round(found.spearman.value or 0, 4)) == expected
    assert found.pearson.low is not None
    assert found.pearson.low <= 0.9661 <= (found.pearson.high or 0)


@pytest.mark.parametrize(
    ("given", "judged"),
    [([], []), ([3], [None]), ([3, 4], [3, 4]), ([5, 5, 5], [1, 2, 3]), ([1, 2, 3], [4, 4, 4])],
)
def test_without_correlation_there_is_none(given: list[float], judged: list[float | None]) -> None:
    found = measure_agreement(given, judged)
    assert found.pearson.value is None and found.spearman.value is None
    assert (found.mae.value is None) is (found.n == 0)


def repeat3(values: Iterable[Any]) -> list[Any]:
    return [value for value in values for _ in range(3)]


def test_answers_of_one_article_are_resampled_together() -> None:
    given = [1.0, 2.0, 4.0, 5.0, 2.0, 3.0]
    judged = [2.0, 2.0, 3.0, 5.0, 1.0, 4.0]
    alone = measure_agreement(given, judged)
    three = measure_agreement(repeat3(given), repeat3(judged))
    together = measure_agreement(repeat3(given), repeat3(judged), repeat3("abcdef"))
    assert together.mae.value == three.mae.value == alone.mae.value

    def width(one: Any) -> float:
        return float(one.mae.high - one.mae.low)

    assert width(together) == pytest.approx(width(alone), rel=0.2)
    assert width(three) < 0.8 * width(together), (
        "a copy of an answer does not count as another answer"
    )
