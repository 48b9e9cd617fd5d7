"""Coverage of the 95 % intervals, error under a true null, and power, on simulated clustered questions.

Every figure is from ``--simulations`` data sets with a fixed seed. Sizes of articles: equal (3 questions), mild and strong (by
the quantiles of a log-normal distribution with median 3 and σ = .5 or 1), "one of 30 %" (one article holds 30 % of all
questions), or single questions. Right or wrong answers: each article's share is beta-distributed around the mean, so that two
questions of one article correlate by ICC; graded scores are half right or wrong, half between. Differences of two runs: each
article's shares of wins, losses and ties are Dirichlet-distributed alike. Prints Markdown, as in docs/statistics.md:

    python benchmarks/coverage.py > table.md
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import _report  # sets the environment: before numpy
import numpy as np
from numpy.typing import NDArray
from scipy import special

from rallebench.analysis.power import questions_needed
from rallebench.core.tables import ONE_SIDED
from rallebench.engine.label_corrected import LabelledScores, corrected_difference, corrected_mean
from rallebench.engine.statistics import Difference, difference, means

Array = NDArray[Any]
SIMULATIONS = 4_000
MEANS, CORRELATIONS = (0.1, 0.3, 0.5, 0.7, 0.9), (0.0, 0.2, 0.5)
KINDS = ("equal", "mild", "strong")
SPREADS = {"mild": 0.5, "strong": 1.0}
WINS = (
    *((0.1, 0.1, 0.0), (0.1, 0.1, 0.3), (0.25, 0.25, 0.5), (0.05, 0.05, 0.3)),
    *((0.2, 0.1, 0.2), (0.3, 0.1, 0.2), (0.3, 0.05, 0.3), (0.5, 0.2, 0.3)),
)
"""(share of wins, share of losses, ICC); the first four are true nulls."""
SKEWED = (
    ((1.0, -0.2), (0.03, 0.15)),
    ((1.0, -0.2), (0.1, 0.5)),
    ((1.0, -0.5), (0.1, 0.2)),
    ((1.0, -0.1), (0.05, 0.5)),
)
"""((a gain, a loss), (its share, its share)) of questions; the mean is 0."""
SETTLED = ((0.3, 0.1), (0.45, 0.1), (0.35, 0.05), (0.15, 0.05), (0.25, 0.1))


@dataclass(frozen=True, slots=True)
class Coverage:
    """Shares of data sets: the interval holds the difference, among those with one; p < .05; p < .05 by the plain t; too
    few in one direction."""

    held: float
    significant: float
    plain: float
    one_sided: float


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def sizes_of(kind: str, articles: int) -> Array:
    """Questions in each article, (articles,) whole numbers."""
    sizes = np.full(articles, 1 if kind == "single" else 3)
    if kind in SPREADS:
        places = (np.arange(articles) + 0.5) / articles
        drawn = 3 * np.exp(SPREADS[kind] * special.ndtri(places))
        sizes = np.maximum(1, np.round(drawn)).astype(int)
    if kind == "one of 30 %":
        sizes[0] = round(3 * (articles - 1) * 0.3 / 0.7)
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


def plain_t(values: Array, sizes: Array) -> tuple[float, float, float]:
    """(mean, CR2 standard error, Satterthwaite's degrees of freedom), from the matrices of Pustejovsky and Tipton (2018),
    written out article by article."""
    n, starts = sizes.sum(), np.concatenate([[0], np.cumsum(sizes)[:-1]])
    residuals = np.add.reduceat(values, starts) - values.mean() * sizes
    squares = float(((values - values.mean()) ** 2).sum())
    pairs = float((sizes * (sizes - 1)).sum())
    rho = 0.0
    if pairs and squares > 0:
        rho = min(1.0, max(0.0, (float(residuals @ residuals) - squares) * n / pairs / squares))
    q = sizes / n
    within = sizes * (1 + rho * (sizes - 1))
    # Covariances of the articles' adjusted residuals.
    table = np.diag(within) - np.outer(q, within) - np.outer(within, q)
    table = (table + np.outer(q, q) * within.sum()) / np.sqrt(np.outer(1 - q, 1 - q))
    freedom = float(np.trace(table) ** 2 / (table**2).sum())
    return float(values.mean()), math.sqrt(float((residuals**2 / (1 - q)).sum())) / n, freedom


def mean_row(
    articles: int, kind: str, icc: float, mean: float, graded: bool, simulations: int
) -> tuple[float, float]:
    """(share of intervals that hold the mean, their mean width)."""
    sizes = sizes_of(kind, articles)
    labels, held, width = np.repeat(np.arange(articles), sizes).tolist(), 0, 0.0
    rng = np.random.default_rng([_report.SEED, articles, round(100 * icc), round(100 * mean)])
    for _ in range(simulations):
        column = scores(rng, sizes, mean, icc, graded).tolist()
        interval = means({"m": column}, labels, {"m": (0, 1)})["m"]
        assert interval.low is not None and interval.high is not None
        held += interval.low <= mean <= interval.high
        width += interval.high - interval.low
    return held / simulations, width / simulations


def difference_row(
    draw: Callable[[], Array], true: float, sizes: Array, simulations: int
) -> Coverage:
    """The results over data sets of ``draw``, whose mean difference is ``true``."""
    labels = np.repeat(np.arange(len(sizes)), sizes).tolist()
    held = low = plain = few = some = 0
    for _ in range(simulations):
        values = draw()
        pair = difference(values, labels)
        if pair.low is not None and pair.high is not None:
            some += 1
            held += pair.low <= true + 1e-12 and true - 1e-12 <= pair.high
        low += pair.p is not None and pair.p < 0.05
        few += pair.note == ONE_SIDED
        mean, error, freedom = plain_t(values, sizes)
        at = abs(mean) / max(error, 1e-12) if abs(mean) > 1e-9 else 0.0
        plain += 2 * special.stdtr(freedom, -at) < 0.05
    return Coverage(held / max(1, some), low / simulations, plain / simulations, few / simulations)


def ternary_row(
    articles: int, kind: str, wins: float, losses: float, icc: float, simulations: int
) -> Coverage:
    """Differences of right and wrong answers."""
    sizes = sizes_of(kind, articles)
    seed = [_report.SEED, articles, round(100 * wins), round(100 * losses), round(100 * icc)]
    rng = np.random.default_rng(seed)

    def draw() -> Array:
        return gaps(rng, sizes, wins, losses, icc)

    return difference_row(draw, wins - losses, sizes, simulations)


def skewed_row(
    articles: int, kind: str, values: Sequence[float], shares: Sequence[float], simulations: int
) -> tuple[float, Coverage]:
    """(articles expected on the rarer side, results) of independent questions with a mean of 0."""
    sizes = sizes_of(kind, articles)
    rng = np.random.default_rng([_report.SEED, articles, *(round(100 * share) for share in shares)])
    several, weights = [*values, 0.0], [*shares, 1 - sum(shares)]

    def draw() -> Array:
        return rng.choice(several, int(sizes.sum()), p=weights)

    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    sides = [np.add.reduceat(draw(), starts) for _ in range(400)]
    rarer = min(np.mean([(sign * side > 1e-9).sum() for side in sides]) for sign in (1, -1))
    return float(rarer), difference_row(draw, 0.0, sizes, simulations)


def tail_row(
    articles: int, kind: str, icc: float, sigma: float, simulations: int
) -> tuple[float, float, float]:
    """(coverage of a mean of log-normal values, coverage of the plain t, lowest end over all data sets)."""
    sizes = sizes_of(kind, articles)
    labels = np.repeat(np.arange(articles), sizes).tolist()
    rng = np.random.default_rng([_report.SEED, articles, round(100 * icc), round(100 * sigma)])
    true, held, plain, least = math.exp(sigma**2 / 2), 0, 0, math.inf
    for _ in range(simulations):
        common = np.repeat(rng.standard_normal(articles), sizes)
        own = rng.standard_normal(len(common))
        values = np.exp(sigma * (math.sqrt(icc) * common + math.sqrt(1 - icc) * own))
        interval = means({"m": values.tolist()}, labels, {"m": (0, None)})["m"]
        assert interval.low is not None and interval.high is not None
        held += interval.low <= true <= interval.high
        least = min(least, interval.low)
        mean, error, freedom = plain_t(values, sizes)
        plain += abs(mean - true) <= special.stdtrit(freedom, 0.975) * error
    return held / simulations, plain / simulations, least


def mean_rows(simulations: int) -> Iterator[Sequence[str]]:
    """The table of means."""
    heads = [f"mean {mean:g}" for mean in MEANS]
    yield ("scores", "articles", "sizes", "ICC", "average", *heads, "width at .5")
    cases = [(n, kind, icc, False) for n in (10, 20, 50) for kind in KINDS for icc in CORRELATIONS]
    cases += [(n, kind, icc, True) for n in (10, 20) for kind in KINDS for icc in (0.2, 0.5)]
    cases += [(50, kind, 0.2, True) for kind in KINDS]
    cases += [(200, "strong", 0.2, False), (5, "equal", 0.0, False), (5, "equal", 0.5, False)]
    cases += [(50, "one of 30 %", icc, False) for icc in CORRELATIONS]
    cases += [(n, "single", 0.0, False) for n in (20, 50)]
    for articles, kind, icc, graded in cases:
        rows = [mean_row(articles, kind, icc, mean, graded, simulations) for mean in MEANS]
        held = [row[0] for row in rows]
        yield (
            "graded" if graded else "0 or 1",
            *(str(articles), kind, f"{icc:g}", percent(float(np.mean(held))), *map(percent, held)),
            f"{rows[2][1]:.3f}",
        )


def difference_rows(simulations: int) -> Iterator[Sequence[str]]:
    """The table of paired differences."""
    yield ("articles", "sizes", "ICC", "wins", "losses", "coverage", "p < .05", "of plain CR2 t")
    cases = [(n, kind, *case) for n in (10, 20, 50) for kind in KINDS for case in WINS]
    cases += [(200, "strong", *case) for case in WINS[1:5]]
    for articles, kind, wins, losses, icc in cases:
        row = ternary_row(articles, kind, wins, losses, icc, simulations)
        null = " (null)" if wins == losses else ""
        about = (str(articles), kind, f"{icc:g}", f"{wins:g}", f"{losses:g}")
        yield (*about, percent(row.held), percent(row.significant) + null, percent(row.plain))


def skewed_rows(simulations: int) -> Iterator[Sequence[str]]:
    """The table of skewed differences; the error of every row should be 5 %."""
    yield (
        *("gain, share", "loss, share", "articles", "sizes", "expected on the rarer side"),
        *("p < .05", "too few in one direction", "p < .05 of plain CR2 t"),
    )
    for values, shares in SKEWED:
        for articles in (20, 50, 100, 200):
            for kind in ("single", "equal", "strong"):
                rarer, row = skewed_row(articles, kind, values, shares, simulations)
                sides = [f"{v:g}, {100 * share:g} %" for v, share in zip(values, shares)]
                about = (*sides, str(articles), kind, f"{rarer:.1f}")
                yield (*about, *map(percent, (row.significant, row.one_sided, row.plain)))


def tail_rows(simulations: int) -> Iterator[Sequence[str]]:
    """The table of means of log-normal values above 0."""
    yield (
        "σ",
        "articles",
        "sizes",
        "ICC of logarithms",
        "coverage",
        "of plain CR2 t",
        "lowest end",
    )
    for sigma in (0.5, 1.0):
        for articles in (10, 20, 50):
            for kind, icc in (("single", 0.0), ("equal", 0.3), ("mild", 0.5), ("strong", 0.3)):
                held, plain, least = tail_row(articles, kind, icc, sigma, simulations)
                about = (f"{sigma:g}", str(articles), kind, f"{icc:g}")
                yield (*about, percent(held), percent(plain), f"{least:.3f}")


def single_rows(simulations: int) -> Iterator[Sequence[str]]:
    """The table of single questions, right or wrong, in two runs."""
    yield ("questions", "wins", "losses", "coverage", "p < .05")
    for questions in (30, 100):
        for wins, losses in ((0.05, 0.05), (0.2, 0.2), (0.2, 0.1), (0.3, 0.05)):
            row = ternary_row(questions, "single", wins, losses, 0.0, max(1, simulations // 4))
            about = (str(questions), f"{wins:g}", f"{losses:g}", percent(row.held))
            yield (*about, percent(row.significant) + (" (null)" if wins == losses else ""))


def needed_row(
    wins: float, losses: float, size: int, icc: float, simulations: int
) -> tuple[int, float]:
    """(questions needed by the true difference and spread, power with so many)."""
    mean, articles = wins - losses, 200
    variance = (wins + losses - mean**2) * (1 + (size - 1) * icc) / size
    questions = articles * size
    changed = (round(wins * questions), round(losses * questions)) if size == 1 else None
    error, ends = math.sqrt(variance / articles), (mean / 2, 1.5 * mean)
    pilot = Difference(mean, *ends, 0.0, 0.0, error, articles, "", articles - 1, changed)
    needed = questions_needed(pilot, questions)
    assert needed is not None
    sizes = np.full(math.ceil(needed.value / size), size)
    rng = np.random.default_rng([_report.SEED, size, round(100 * wins), round(100 * losses)])

    def draw() -> Array:
        return gaps(rng, sizes, wins, losses, icc)

    return needed.value, difference_row(draw, mean, sizes, simulations).significant


def needed_rows(simulations: int) -> Iterator[Sequence[str]]:
    """The table of questions needed."""
    yield ("questions an article", "ICC", "wins", "losses", "questions needed", "power")
    for size, icc in ((1, 0.0), (3, 0.2), (4, 0.4)):
        for wins, losses in SETTLED:
            needed, power = needed_row(wins, losses, size, icc, max(1, simulations // 4))
            yield (str(size), f"{icc:g}", f"{wins:g}", f"{losses:g}", str(needed), percent(power))


def labelled_scores(
    rng: np.random.Generator, share: Array, seen: float, drawn: Array
) -> LabelledScores:
    """One run: right or wrong answers with these chances, and a judge who sees ``seen`` of them and guesses the others.

    ``drawn``: labelled questions, if they were chosen beforehand; empty: a judge's yes is labelled with a chance of .3, a
    no with .1.
    """
    labels = np.repeat(np.arange(len(share) // 3), 3)
    truth = (rng.random(len(share)) < share).astype(float)
    guess = (rng.random(len(share)) < 0.6).astype(float)
    judged = np.where(rng.random(len(share)) < seen, truth, guess)
    chances: Array = np.where(judged > 0, 0.3, 0.1)
    others: Array = 1.0 - chances
    mask = drawn if len(drawn) else rng.random(len(share)) < chances
    scores = LabelledScores(
        *(truth[mask], judged[mask], judged[~mask]),
        clusters=labels[mask].tolist(),
        unlabelled_clusters=labels[~mask].tolist(),
    )
    if len(drawn):
        return scores
    return replace(scores, chances=chances[mask], unlabelled_chances=others[~mask])


def corrected_row(
    articles: int, seen: float, mean: float, unlike: bool, simulations: int
) -> tuple[float, float, float]:
    """(coverage of the mean, share of p < .05 of a difference of 0, mean weight of the judge)."""
    rng = np.random.default_rng([_report.SEED, articles, round(100 * seen), round(100 * mean)])
    every = 5 * articles if unlike else articles + (200 if articles > 10 else 100)
    drawn = np.zeros(0, dtype=bool) if unlike else np.arange(3 * every) < 3 * articles
    held = significant = weight = 0.0
    for _ in range(simulations):
        share = np.repeat(rng.beta(mean * 7 / 3, (1 - mean) * 7 / 3, every), 3)
        first = labelled_scores(rng, share, seen, drawn)
        corrected = corrected_mean(first, (0.0, 1.0))
        low, high = corrected.low, corrected.high  # None: all labels are equal
        held += low is not None and high is not None and low <= mean <= high
        weight += corrected.weight
        if not unlike:
            p = corrected_difference(first, labelled_scores(rng, share, seen, drawn)).p
            significant += p is not None and p < 0.05
    return held / simulations, significant / simulations, weight / simulations


def corrected_rows(simulations: int) -> Iterator[Sequence[str]]:
    """The table of label-corrected estimates."""
    yield (
        *("labelled articles", "drawn", "judge sees", "mean", "coverage of the mean"),
        *("error of the difference", "weight of the judge"),
    )
    for articles, unlike in ((10, False), (20, False), (50, False), (50, True)):
        for seen in (0.5, 0.8, 0.95):
            for mean in (0.2, 0.5, 0.8):
                fewer = max(1, simulations // 4)
                held, error, weight = corrected_row(articles, seen, mean, unlike, fewer)
                about = (str(articles), "by the judge's score" if unlike else "alike")
                figures = (percent(held), "–" if unlike else percent(error), f"{weight:.2f}")
                yield (*about, percent(seen), f"{mean:g}", *figures)


TABLES = {
    "means": mean_rows,
    "differences": difference_rows,
    "skewed": skewed_rows,
    "tails": tail_rows,
    "single": single_rows,
    "needed": needed_rows,
    "corrected": corrected_rows,
}


def main() -> int:
    """Simulate and print the tables."""
    flags = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    about = f"data sets a figure; default: {SIMULATIONS}"
    flags.add_argument("--simulations", type=int, default=SIMULATIONS, metavar="N", help=about)
    flags.add_argument("--only", choices=tuple(TABLES), help="one of the tables")
    about = "20 data sets a figure, which only show that the script works"
    flags.add_argument("--quick", action="store_true", help=about)
    arguments = flags.parse_args()
    simulations = 20 if arguments.quick else arguments.simulations
    for name, rows in TABLES.items():
        if arguments.only in (None, name):
            for number, row in enumerate(rows(simulations)):
                print(f"| {' | '.join(row)} |", flush=True)
                if not number:
                    print(f"|{'---|' * len(row)}")
            print(flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
