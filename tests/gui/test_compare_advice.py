"""The headline of two compared runs: no run that looks worse is recommended for its price."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from rallebench.gui.places._runs_advice import sentence
from rallebench.views.recommending import Recommendation, Saving

FIRST: Any = SimpleNamespace(name="base60", title="base60")
SECOND: Any = SimpleNamespace(name="cb", title="cb")
CHEAP = Recommendation("", False, (Saving("cb", "tokens", 14.0),))


def words(advice: Recommendation, gap: float, ends: tuple[float | None, float | None]) -> str:
    pair = SimpleNamespace(difference=gap, low=ends[0], high=ends[1])
    runs = SimpleNamespace(measure=SimpleNamespace(higher_is_better=True))
    compared: Any = SimpleNamespace(pair=pair, runs=runs, unit="fraction", verdict="")
    text = sentence(compared, advice, FIRST, SECOND)
    return str(text).replace("<b>", "").replace("</b>", "")


@pytest.mark.parametrize(
    ("advice", "gap", "ends", "head"),
    [
        (
            *(CHEAP, -0.504, (None, None)),
            "Undecided: cb looks worse by 50.4 points, but the difference has no interval.",
        ),
        (
            *(replace(CHEAP, doubted="cb", loss=0.1), -0.033, (-0.1, 0.034)),
            "No difference shown, but cb may be worse by up to 10.0 points; keep base60 until more questions decide.",
        ),
        (
            *(replace(CHEAP, doubted="base60", loss=0.1), 0.033, (-0.034, 0.1)),
            "No difference shown, but base60 may be worse by up to 10.0 points.",
        ),
        (CHEAP, 0.0, (None, None), "No difference shown."),
    ],
)
def test_a_cheaper_run_that_may_be_worse_is_not_recommended(
    advice: Recommendation, gap: float, ends: tuple[float | None, float | None], head: str
) -> None:
    assert words(advice, gap, ends) == f"{head} cb takes 93 % fewer tokens."


def test_a_cheaper_run_that_does_not_look_worse_is_taken() -> None:
    taken = words(replace(CHEAP, run="cb"), -0.01, (-0.05, 0.03))
    assert taken == "No difference shown. Take cb: it takes 93 % fewer tokens."
