"""The interval of a suite's own metric stays within its bounds."""

from __future__ import annotations

import pytest

from rallebench.engine.statistics import means
from rallebench.experiments.common import score_bounds
from rallebench.papers.barag.study import DEFINITIONS


@pytest.mark.parametrize("name", [*DEFINITIONS, "searches", "gold recall", "usable", "anything"])
def test_a_suites_own_metric_is_never_below_0(name: str) -> None:
    low, _ = score_bounds([name])[name]
    assert low is not None and low >= 0


def test_skewed_tokens_of_five_articles_have_an_interval_above_0() -> None:
    tokens = [210.0, 190.0, 205.0, 198.0, 3368.0]
    mean = means({"n": tokens}, None, {"n": score_bounds(["n_input_tokens"])["n_input_tokens"]})[
        "n"
    ]
    assert mean.low and mean.value and mean.high and 0 < mean.low < mean.value < mean.high
