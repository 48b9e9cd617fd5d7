"""A recommendation between two compared runs: the better one, or else the cheaper one if it does not look worse."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rallebench.core.deciding import MARGIN
from rallebench.core.numbers import NOISE
from rallebench.core.report import RunReport
from rallebench.engine.store import RunFolder
from rallebench.views.run_views import RunPair, price_text
from rallebench.workspace.paths import WorkspaceFolder

LEAST = 1.25
"""Ratio of two costs above which it is worth a recommendation."""
NEAR_TWO = (1.8, 2.2)
SECONDS, TOKENS = "seconds", ("prompt_tokens", "completion_tokens")


@dataclass(frozen=True, slots=True)
class RunCosts:
    """The means of a run over the questions scored in both runs: seconds, None if times are not compared; tokens sent and
    written; dollars, ``price`` in words. ``memory``: bytes of its models and indexes. None: unknown."""

    run: str
    seconds: float | None
    tokens: float | None
    dollars: float | None
    price: str
    memory: int | None


@dataclass(frozen=True, slots=True)
class Saving:
    """A cost of the dearer run, ``ratio`` times that of ``run``. ``cost``: seconds, price or tokens."""

    run: str
    cost: str
    ratio: float

    @property
    def words(self) -> str:
        """The saving in words.

        >>> Saving("a", "seconds", 1.9).words, Saving("a", "seconds", 3.14).words, Saving("a", "price", 12.3).words
        ('it is twice as fast', 'it is 3.1 times as fast', 'it costs 92 % less')
        >>> Saving("a", "tokens", 2.0).words, Saving("a", "tokens", 1.6).words
        ('it takes half as many tokens', 'it takes 38 % fewer tokens')
        """
        double = NEAR_TWO[0] <= self.ratio <= NEAR_TWO[1]
        part = f"{100 * (1 - 1 / self.ratio):.0f} %"
        if self.cost == SECONDS:
            return f"it is {'twice' if double else f'{self.ratio:.1f} times'} as fast"
        if self.cost == "price":
            return "it costs half as much" if double else f"it costs {part} less"
        return f"it takes {'half as many' if double else f'{part} fewer'} tokens"

    @property
    def predicate(self) -> str:
        """The saving after the name of its run: "is twice as fast"."""
        return self.words.removeprefix("it ")


@dataclass(frozen=True, slots=True)
class Recommendation:
    """``run``: the recommended run, '' if nothing speaks for either. ``better``: whether a difference of the scores is
    shown; ``savings``: the costs that differ, of either run. ``doubted``: the cheaper run, if its score is lower by more than
    the usual margin, and ``loss``: the most that it may lose by the interval of the difference."""

    run: str
    better: bool
    savings: tuple[Saving, ...]
    doubted: str = ""
    loss: float = 0.0


def run_costs(workspace: WorkspaceFolder, compared: RunPair) -> tuple[RunCosts, RunCosts]:
    """The costs of both runs."""
    first, second = (_costs(workspace, compared, place) for place in (0, 1))
    return first, second


def _costs(workspace: WorkspaceFolder, compared: RunPair, place: int) -> RunCosts:
    name = compared.runs.sides[place].name
    cells = compared.runs.cells
    mean = {key: row[place].value for key, row in cells.items() if key in (SECONDS, *TOKENS)}
    known = [value for key in TOKENS if (value := mean.get(key)) is not None]
    tokens = sum(known) if len(known) == len(TOKENS) else None
    run = RunFolder.open(workspace.runs, name)
    report = run.report() or RunReport()
    total = report.cost.total if report.cost and report.cost.recorded else None
    dollars = total.usd / total.questions if total and total.usd and total.questions else None
    words = ""
    if total and report.cost:
        llms = [*total.usd_unknown_for, *report.cost.prices]
        words = price_text(workspace, total.usd, llms)[0]
    memory = report.memory.bytes if report.memory else None
    seconds = mean.get(SECONDS) if compared.timed else None
    return RunCosts(name, seconds, tokens, dollars, words, memory)


def recommend(compared: RunPair, costs: tuple[RunCosts, RunCosts]) -> Recommendation | None:
    """Recommend the run with the shown better score, else the one that is cheaper in all costs that differ.

    None if the metric has no better direction and a difference is shown. Times count only if they may be compared and the
    difference is shown. Nothing is recommended by cost if the difference of the scores has no interval, or if the cheaper
    run scores worse by more than MARGIN.
    """
    first, second = costs
    savings = tuple(_savings(compared, first, second))
    if compared.verdict in ("better", "worse"):
        best = second if compared.verdict == "better" else first
        return Recommendation(best.run, True, savings)
    if compared.verdict:
        return None
    cheaper = {saving.run for saving in savings}
    pair, upward = compared.pair, compared.runs.measure.higher_is_better
    if len(cheaper) != 1 or pair.difference is None or pair.low is None or pair.high is None:
        return Recommendation("", False, savings)
    run = cheaper.pop()
    falls = upward is (run == second.run)
    drop, loss = (-pair.difference, -pair.low) if falls else (pair.difference, pair.high)
    if upward is not None and drop > MARGIN + NOISE:
        return Recommendation("", False, savings, run, loss)
    return Recommendation(run, False, savings)


def _savings(compared: RunPair, first: RunCosts, second: RunCosts) -> Iterator[Saving]:
    same = not any(side.left_out for side in compared.runs.sides)
    pairs = compared.runs.pairs
    took = pairs.get(SECONDS, {}).get(second.run)
    if compared.timed and same and took and took.significant:
        yield from _saving(SECONDS, first, second, took.a, took.b)
    yield from _saving("price", first, second, first.dollars, second.dollars)
    lengths = [pair for key in TOKENS if (pair := pairs.get(key, {}).get(second.run))]
    if any(pair.significant for pair in lengths):
        yield from _saving("tokens", first, second, first.tokens, second.tokens)


def _saving(
    cost: str, first: RunCosts, second: RunCosts, a: float | None, b: float | None
) -> Iterator[Saving]:
    if a and b and max(a, b) / min(a, b) > LEAST:
        yield Saving(first.run if a < b else second.run, cost, max(a, b) / min(a, b))
