"""The files of a gate with names and ids that are markup themselves."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

import pytest
from scipy.stats import binomtest

from rallebench.core.errors import UsageError
from rallebench.core.gating import Gate, check_margin
from rallebench.core.tables import ALL_EQUAL, ONE_SIDED, TOO_FEW
from rallebench.render.gates import MOST_LISTED, junit, markdown
from rallebench.views.gating import units_needed

HOSTILE = "a|b\n<i>&*\x07"
GATE = Gate(
    *("new", "base", "em", 0.4, 0.5, -0.1, -0.2, -0.05, True, 0.02, 0.95, 200, 150),
    lost=tuple(f"{HOSTILE}{i}" for i in range(MOST_LISTED + 5)),
    warnings=(HOSTILE,),
)


def test_junit_holds_hostile_names_as_text() -> None:
    root = ElementTree.fromstring(junit(replace(GATE, metric=HOSTILE)))
    (case,) = root.iter("testcase")
    assert case.get("name") == r"new against base by a|b\n<i>&*\x07"
    output = root.findtext(".//system-out") or ""
    assert all(f"&*\\x07{i}" in output for i in range(MOST_LISTED + 5))


def test_markdown_escapes_hostile_names_and_lists_a_few_questions() -> None:
    text = markdown(replace(GATE, metric=HOSTILE))
    assert r"a\|b\\n\<i\>\&\*\\x07" in text and "<i>" not in text and "\x07" not in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert {line.replace(r"\|", "").count("|") for line in rows} == {9}
    assert text.endswith(" and 5 more\n")


def test_an_interval_at_the_margin_is_undecided() -> None:
    touching = replace(GATE, difference=0.0, low=-0.02, high=0.03)
    assert touching.outcome == "undecided"
    assert replace(touching, low=-0.0199).outcome == "passed"
    assert replace(touching, low=-0.05, high=-0.02).outcome == "undecided"
    assert replace(touching, low=-0.05, high=-0.0201).outcome == "worse"


def test_of_a_cost_the_interval_is_read_from_the_other_side() -> None:
    cost = replace(GATE, higher_is_better=False, difference=0.0, low=-0.5, high=0.01)
    assert cost.outcome == "passed" and cost.exit_code == 0
    assert replace(cost, low=0.03, high=0.5).outcome == "worse"
    assert replace(cost, low=0.01, high=0.5).outcome == "undecided"


def test_too_few_in_one_direction_have_no_number_that_would_decide() -> None:
    """1 of 60 better, 33 worse: a spread that misses the rarer side cannot tell how many are needed."""
    open_gate = replace(GATE, difference=-0.504, low=None, high=None, units=60, note=ONE_SIDED)
    assert units_needed(open_gate, 0.01) is None
    assert open_gate.outcome == "undecided" and "To decide it takes" not in str(open_gate)
    assert "too few articles change in one direction" in open_gate.mend


EQUAL = replace(GATE, difference=0.0, low=None, high=None, note=ALL_EQUAL, span=1.0, lost=())
"""All articles have the same score in both runs."""


def test_equal_runs_pass_only_if_enough_articles_rule_out_the_tolerated_loss() -> None:
    for units, confidence, outcome in (
        (10, 0.95, "undecided"),
        (182, 0.95, "undecided"),
        (183, 0.95, "passed"),
        (183, 0.99, "undecided"),
    ):
        gate = replace(EQUAL, units=units, confidence=confidence)
        share = binomtest(0, units).proportion_ci(confidence, method="exact").high
        assert gate.equal_ends == pytest.approx((-share, share))
        assert gate.outcome == outcome
    assert units_needed(replace(EQUAL, units=10), 0.0) == 173
    assert units_needed(replace(EQUAL, units=6, note=TOO_FEW), 0.0) == 177
    few = replace(EQUAL, units=10, needed=173)
    assert (
        "10 articles are equal in both; to decide it takes 173 more articles like them"
        in few.verdict
    )
    assert "all are equal: 95 % bounds −0.3085 to +0.3085" in few.figures


@pytest.mark.parametrize("difference", [0.03, -0.05, -0.5])
@pytest.mark.parametrize("upward", [True, False])
def test_the_articles_needed_are_the_fewest_that_decide(difference: float, upward: bool) -> None:
    gate = replace(EQUAL, units=10, span=4.0, difference=difference, higher_is_better=upward)
    needed = units_needed(gate, 0.0)
    assert needed is not None and gate.outcome == "undecided"
    decided = [replace(gate, units=10 + needed + more).outcome for more in (-1, 0)]
    assert decided[0] == "undecided" and decided[1] == ("passed" if gate.distance > 0 else "worse")


def test_equal_differences_of_a_metric_without_a_range_stay_undecided() -> None:
    gate = replace(EQUAL, span=None, units=100_000, metric="seconds")
    assert gate.outcome == "undecided" and units_needed(gate, 0.0) is None
    assert "seconds has no range" in gate.verdict


def test_a_margin_that_no_loss_can_exceed_is_refused() -> None:
    check_margin(0.99, "em", (0.0, 1.0))
    check_margin(3.9, "judge", (1.0, 5.0))
    check_margin(500.0, "seconds", (0.0, None))
    with pytest.raises(UsageError, match=r"em ranges from 0 to 1.*written 0\.02"):
        check_margin(1.0, "em", (0.0, 1.0))
    with pytest.raises(UsageError, match=r"judge ranges from 1 to 5.*choose a smaller one"):
        check_margin(4.0, "judge", (1.0, 5.0))
