"""Coverage of the 95 % intervals and error rate under a true null, on simulated clustered questions.

Every row is ``--simulations`` data sets (10,000) with a fixed seed: so many articles, sizes equal (4 questions), unequal (by the
quantiles of a log-normal distribution, median 4, σ = 1) or with one article that holds 30 % of all questions. Right or wrong
answers: each article's share is beta-distributed around the mean, so that two questions of one article correlate by ICC. Differences
of two runs: each article's shares of wins, losses and ties are Dirichlet-distributed alike; 2,000 sign flips, not 10,000, for speed. Prints Markdown, as in docs/statistics.md:

    python benchmarks/coverage.py > table.md
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import _report  # sets the environment: before numpy
import numpy as np
from numpy.typing import NDArray

from rallebench.engine import statistics
from rallebench.engine.statistics import difference, means

Array = NDArray[Any]
SIMULATIONS, FLIPS = 10_000, 2_000
MEANS, CORRELATIONS = (0.1, 0.3, 0.5, 0.7, 0.9), (0.0, 0.2, 0.5)
WINS = ((0.1, 0.1, 0.0), (0.1, 0.1, 0.3), (0.25, 0.25, 0.5), (0.2, 0.1, 0.2), (0.3, 0.05, 0.3))
"""(share of wins, share of losses, ICC); the first three are true nulls."""
HEADS_MEAN = ("scores", "articles", "sizes", "ICC", "mean", "coverage", "mean width")
HEADS_DIFFERENCE = (
    "articles",
    "sizes",
    "ICC",
    "wins",
    "losses",
    "coverage",
    "p < .05",
    "no interval",
)


def sizes_of(kind: str, articles: int) -> Array:
    """Questions in each article, (articles,) whole numbers."""
    sizes = np.full(articles, 4)
    if kind == "unequal":
        from scipy import special

        places = (np.arange(articles) + 0.5) / articles
        sizes = np.maximum(1, np.round(4 * np.exp(special.ndtri(places)))).astype(int)
    if kind == "one of 30 %":
        sizes[0] = round(4 * (articles - 1) * 0.3 / 0.7)
    return sizes


def scores(rng: np.random.Generator, sizes: Array, mean: float, icc: float, graded: bool) -> Array:
    """One score per question, right or wrong, or between 0 and 1 as F1 is."""
    spread = (1 - icc) / icc if icc else 0.0
    share = (
        rng.beta(mean * spread, (1 - mean) * spread, len(sizes))
        if icc
        else np.full(len(sizes), mean)
    )
    each = np.repeat(share, sizes)
    if not graded:
        return (rng.random(len(each)) < each).astype(float)
    # Half of the answers are right or wrong, half partly right with the same mean.
    partly = rng.beta(np.maximum(1e-6, 2 * each), np.maximum(1e-6, 2 * (1 - each)))
    return np.where(rng.random(len(each)) < 0.5, rng.random(len(each)) < each, partly)


def gaps(rng: np.random.Generator, sizes: Array, wins: float, losses: float, icc: float) -> Array:
    """One difference per question: 1, 0 or -1."""
    shares = np.array([wins, losses, 1 - wins - losses])
    each = (
        rng.dirichlet(shares * (1 - icc) / icc, len(sizes))
        if icc
        else np.tile(shares, (len(sizes), 1))
    )
    each = np.repeat(each, sizes, axis=0)
    draw = rng.random(len(each))
    return np.where(draw < each[:, 0], 1.0, np.where(draw < each[:, 0] + each[:, 1], -1.0, 0.0))


def mean_row(
    articles: int, kind: str, icc: float, mean: float, graded: bool, simulations: int
) -> tuple[float, float]:
    """(share of intervals that hold the mean, their mean width)."""
    sizes = sizes_of(kind, articles)
    labels = np.repeat(np.arange(articles), sizes).tolist()
    rng = np.random.default_rng([_report.SEED, articles, round(100 * icc), round(100 * mean)])
    held, width = 0, 0.0
    for _ in range(simulations):
        column = scores(rng, sizes, mean, icc, graded).tolist()
        interval = means({"m": column}, labels, {"m": (0, 1)})["m"]
        assert interval.low is not None and interval.high is not None
        held += interval.low <= mean <= interval.high
        width += interval.high - interval.low
    return held / simulations, width / simulations


def difference_row(
    articles: int, kind: str, wins: float, losses: float, icc: float, simulations: int
) -> tuple[float, float, float]:
    """(share of intervals that hold the difference, share of p < .05, share without an interval: all differences equal)."""
    sizes = sizes_of(kind, articles)
    labels = np.repeat(np.arange(articles), sizes).tolist()
    rng = np.random.default_rng(
        [_report.SEED, articles, round(100 * wins), round(100 * losses), round(100 * icc)]
    )
    held = low = none = 0
    for _ in range(simulations):
        pair = difference(gaps(rng, sizes, wins, losses, icc), labels)
        if pair.low is None or pair.high is None:
            none += 1
        else:
            held += pair.low <= wins - losses <= pair.high
        low += pair.p is not None and pair.p < 0.05
    return held / max(1, simulations - none), low / simulations, none / simulations


def mean_rows(simulations: int) -> Iterator[Sequence[str]]:
    """The table of means."""
    cases = [
        (50, kind, icc, mean, False)
        for kind in ("equal", "unequal")
        for icc in CORRELATIONS
        for mean in MEANS
    ]
    cases += [(200, "unequal", 0.2, mean, False) for mean in MEANS]
    cases += [(50, kind, 0.2, mean, True) for kind in ("equal", "unequal") for mean in MEANS]
    cases += [(50, "one of 30 %", icc, mean, False) for icc in CORRELATIONS for mean in (0.1, 0.5)]
    cases += [
        (n, kind, icc, mean, False)
        for n in (5, 10, 20)
        for kind in ("equal", "unequal")
        for icc in (0.0, 0.5)
        for mean in (0.1, 0.5)
    ]
    for articles, kind, icc, mean, graded in cases:
        held, width = mean_row(articles, kind, icc, mean, graded, simulations)
        yield (
            "graded" if graded else "0 or 1",
            str(articles),
            kind,
            f"{icc:g}",
            f"{mean:g}",
            f"{100 * held:.1f} %",
            f"{width:.3f}",
        )


def difference_rows(simulations: int) -> Iterator[Sequence[str]]:
    """The table of paired differences."""
    cases = [(50, kind, *case) for kind in ("equal", "unequal") for case in WINS] + [
        (200, "unequal", *case) for case in WINS[1:4]
    ]
    cases += [
        (n, kind, *case)
        for n in (10, 20)
        for kind in ("equal", "unequal")
        for case in (WINS[1], WINS[3])
    ]
    for articles, kind, wins, losses, icc in cases:
        held, low, none = difference_row(articles, kind, wins, losses, icc, simulations)
        null = f"{100 * low:.1f} %" + (" (null)" if wins == losses else "")
        yield (
            str(articles),
            kind,
            f"{icc:g}",
            f"{wins:g}",
            f"{losses:g}",
            f"{100 * held:.1f} %",
            null,
            f"{100 * none:.1f} %",
        )


def main() -> int:
    """Simulate and print both tables."""
    flags = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    flags.add_argument(
        "--simulations",
        type=int,
        default=SIMULATIONS,
        metavar="N",
        help=f"a row; default: {SIMULATIONS}",
    )
    flags.add_argument("--only", choices=("means", "differences"), help="one of the two tables")
    flags.add_argument(
        "--quick",
        action="store_true",
        help="20 simulations a row, which only show that the script works",
    )
    arguments = flags.parse_args()
    statistics.FLIPS = FLIPS
    simulations = 20 if arguments.quick else arguments.simulations
    tables = {"means": (HEADS_MEAN, mean_rows), "differences": (HEADS_DIFFERENCE, difference_rows)}
    for name, (heads, rows) in tables.items():
        if arguments.only in (None, name):
            print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
            for row in rows(simulations):
                print(f"| {' | '.join(row)} |", flush=True)
            print()
    sys.stdout.flush()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
