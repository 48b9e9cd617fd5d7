"""The recommendation between two runs: the better one, else the cheaper one, and nothing that is not shown."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rallebench.analysis.measures import measure
from rallebench.core.comparison import ComparedRun, Comparison, PairedComparison
from rallebench.core.report import Clusters, Estimate
from rallebench.views.recommending import RunCosts, recommend
from rallebench.views.run_views import RunPair

OLD, NEW = "old", "new"


def make_pair(metric: str, a: float, b: float, p: float) -> PairedComparison:
    gap = b - a
    wins, losses = (5, 0) if gap > 0 else (0, 5)
    ends = (gap - 0.01, gap + 0.01)
    return PairedComparison(
        *(metric, 222, a, b, gap, *ends, p, wins, 217, losses, (), (), None), corrected=p
    )


def make_runs(
    em: tuple[float, float, float],
    seconds: tuple[float, float, float] = (1.0, 1.0, 1.0),
    tokens: tuple[float, float, float] = (600, 600, 1.0),
    *,
    timed: bool = True,
) -> tuple[RunPair, tuple[RunCosts, RunCosts]]:
    """Two runs; each triple: the old mean, the new one, p of their difference."""
    triples = {"em": em, "seconds": seconds, "prompt_tokens": tokens}
    pairs = {name: {NEW: make_pair(name, *triple)} for name, triple in triples.items()}
    cells = {name: (Estimate(a), Estimate(b)) for name, (a, b, _) in triples.items()}
    sides = tuple(ComparedRun(name, 0, 0, 0) for name in (OLD, NEW))
    measures = {"em": measure("em", [])}
    runs = Comparison(sides, (), "em", cells, pairs, {}, measures, Clusters("question", {}))
    costs = tuple(
        RunCosts(name, triples["seconds"][i], triples["prompt_tokens"][i], None, "none", None)
        for i, name in enumerate((OLD, NEW))
    )
    return RunPair(runs, pairs["em"][NEW], (), timed), (costs[0], costs[1])


def test_the_better_run_is_recommended_with_what_it_costs_more() -> None:
    advice = recommend(*make_runs((0.5, 0.531, 0.01), (0.6, 1.2, 0.001)))
    assert advice is not None and (advice.run, advice.better) == (NEW, True)
    assert [(s.run, s.words) for s in advice.savings] == [(OLD, "it is twice as fast")]
    worse = recommend(*make_runs((0.531, 0.5, 0.01)))
    assert worse is not None and (worse.run, worse.better) == (OLD, True)


def test_without_a_difference_the_cheaper_run_is_recommended() -> None:
    advice = recommend(*make_runs((0.518, 0.505, 0.062), (0.63, 1.22, 0.001), (645, 1263, 0.001)))
    assert advice is not None and (advice.run, advice.better) == (OLD, False)
    assert [s.words for s in advice.savings] == [
        "it is twice as fast",
        "it takes half as many tokens",
    ]


@pytest.mark.parametrize(
    ("seconds", "timed"),
    [((0.6, 1.2, 0.3), True), ((0.6, 1.2, 0.001), False), ((1, 1.1, 0.001), True)],
)
def test_times_that_chance_explains_or_that_are_not_compared_recommend_nothing(
    seconds: tuple[float, float, float], timed: bool
) -> None:
    advice = recommend(*make_runs((0.5, 0.51, 0.5), seconds, timed=timed))
    assert advice is not None and advice.run == "" and advice.savings == ()


def test_runs_that_are_cheaper_in_different_costs_are_left_to_the_reader() -> None:
    advice = recommend(*make_runs((0.5, 0.51, 0.5), (0.6, 1.2, 0.001), (1200, 400, 0.001)))
    assert advice is not None and advice.run == ""
    assert {saving.run for saving in advice.savings} == {OLD, NEW}


def test_a_cheaper_run_that_scores_worse_by_more_than_the_margin_is_doubted() -> None:
    """EM −3.3 points with an interval of ±1 around it; the loss is its far end."""
    for old, new, tokens, doubted in (
        (0.5, 0.467, (1000, 100), NEW),
        (0.467, 0.5, (100, 1000), OLD),
    ):
        advice = recommend(*make_runs((old, new, 0.3), tokens=(*tokens, 0.001)))
        assert advice is not None and (advice.run, advice.doubted) == ("", doubted)
        assert advice.loss == pytest.approx(0.043) and len(advice.savings) == 1
    dearer = recommend(*make_runs((0.467, 0.5, 0.3), tokens=(1000, 100, 0.001)))
    assert dearer is not None and (dearer.run, dearer.doubted) == (NEW, "")


def test_without_an_interval_no_run_is_recommended_by_cost() -> None:
    compared, costs = make_runs((0.515, 0.011, 1.0), tokens=(1000, 70, 0.001))
    pair = replace(compared.pair, low=None, high=None, p=None, corrected=None, note="too few")
    advice = recommend(replace(compared, pair=pair), costs)
    assert advice is not None and (advice.run, advice.better, advice.doubted) == ("", False, "")
    assert [saving.run for saving in advice.savings] == [NEW]
