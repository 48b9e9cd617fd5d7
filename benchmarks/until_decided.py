"""Runs that end once they are decided: how often the sequential interval ever misses the truth, and what is saved.

Simulated differences of single right or wrong answers (−1, 0 or 1; a quarter of the questions change their answer), in
articles of 1, of 3, of 30 and of 1 to 30 questions, whose answers lean to one side together. The interval is looked at
40 times. A *miss*: at some look it excluded the true difference. *decided*: it lay on one side of −margin; *asked*: the
share of all questions that were put until then. The bare figure is one CR2 t interval at the end.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import _report
import numpy as np
from _report import Fact, Measure, Report
from numpy.typing import NDArray

from rallebench.core.deciding import Decision, StoppingRule
from rallebench.engine.sequential import watch
from rallebench.engine.statistics import difference

MARGIN, LOOKS, CHANGED, LEAN = 0.02, 40, 0.25, 0.1
RULE = StoppingRule("base", "em", margin=MARGIN)
SETS = {"1": 600, "3": 300, "30": 100, "1 to 30": 150}
"""Questions of an article → articles."""
TRUTHS = (0.0, 0.02, 0.05, 0.1, -0.02, -0.05, -0.1)


@dataclass(frozen=True)
class Played:
    """One simulated run. ``share``: of its questions that were asked."""

    missed: bool
    decided: Decision
    share: float


def draw(
    kind: str, truth: float, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """(the sum of differences, the number of questions) of each article."""
    count = SETS[kind]
    sizes = rng.integers(1, 31, count) if kind == "1 to 30" else np.full(count, int(kind))
    lean = truth + rng.choice((-LEAN, LEAN), count)
    up, down = (CHANGED + lean) / 2, (CHANGED - lean) / 2
    totals = [
        rng.choice((1.0, -1.0, 0.0), n, p=(a, b, 1 - a - b)).sum()
        for n, a, b in zip(sizes, up, down)
    ]
    return np.array(totals), sizes


def play(kind: str, truth: float, rng: np.random.Generator) -> Played:
    """Look at a run until its end; the first decision counts."""
    totals, sizes = draw(kind, truth, rng)
    largest, step = int(sizes.max()), max(1, len(sizes) // LOOKS)
    missed, decided, share = False, Decision.OPEN, 1.0
    for end in range(step, len(sizes) + 1, step):
        interval = watch(totals[:end], sizes[:end], largest)
        missed = missed or not interval.low <= truth <= interval.high
        if decided is Decision.OPEN and (decided := interval.decide(RULE)) is not Decision.OPEN:
            share = float(sizes[:end].sum() / sizes.sum())
    return Played(missed, decided, share)


def seconds_of_a_look(articles: int) -> tuple[float, float]:
    """(seconds of a look at graded scores, seconds of one fixed interval over the same articles)."""
    rng = np.random.default_rng(_report.SEED)
    totals, sizes = rng.uniform(-3, 3, articles), np.full(articles, 3)
    started = time.perf_counter()
    watch(totals, sizes, 3)
    middle = time.perf_counter()
    difference(np.repeat(totals / 3, 3), np.repeat(np.arange(articles), 3).tolist())
    return middle - started, time.perf_counter() - middle


def measure(simulations: int, rounds: int, articles: int) -> Report:
    """Simulate every kind of dataset at every true difference."""
    rng = np.random.default_rng(_report.SEED)
    measures, most = [], 0.0
    for kind in SETS:
        for truth in TRUTHS:
            played = [play(kind, truth, rng) for _ in range(simulations)]
            missed = sum(p.missed for p in played) / simulations
            ended = {d: sum(p.decided is d for p in played) / simulations for d in Decision}
            share = sum(p.share for p in played) / simulations
            most = max(most, missed)
            name = f"{SETS[kind]} articles of {kind}, true difference {100 * truth:+.0f} points"
            measures.append(Measure(f"{name}: missed", "%", [100 * missed]))
            measures.append(Measure(f"{name}: no worse", "%", [100 * ended[Decision.NO_WORSE]]))
            measures.append(Measure(f"{name}: worse", "%", [100 * ended[Decision.WORSE]]))
            measures.append(Measure(f"{name}: asked", "%", [100 * share]))
    looks = [seconds_of_a_look(articles) for _ in range(rounds)]
    ours, fixed = ([1000 * seconds for seconds in column] for column in zip(*looks))
    name = f"a look at {articles:,} articles"
    measures.append(Measure(name, "ms", ours, fixed, "one interval at the end", most=50.0))
    return Report(
        "until_decided",
        {"simulations": simulations, "looks": LOOKS, "margin": MARGIN},
        measures,
        [
            Fact(
                "the share that ever misses is at most 5 %, as far as noise allows",
                most <= 0.1,
                True,
            )
        ],
    )


def main() -> int:
    """Measure and print."""
    flags = _report.parser(__doc__, rounds=5)
    flags.add_argument("--simulations", type=int, default=500, metavar="N", help="default: 500")
    arguments = flags.parse_args()
    simulations = 20 if arguments.quick else arguments.simulations
    articles = 1000 if arguments.quick else 10_000
    return measure(simulations, arguments.rounds, articles).tell(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
