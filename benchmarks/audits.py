"""Coverage of the intervals of graders' audits by simulation, and of the contrasts of groups of failures.

``python benchmarks/audits.py [SAMPLES]``. Confidences are uniform, or gather at both ends (Beta(.6, .6)). The true chance of a right answer is the confidence
with its log-odds multiplied by a slope and shifted; the answers of one article correlate by ICC on the scale of a normal.
"""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import NDArray

from rallebench.engine.calibration import calibrate, cut_bins
from rallebench.engine.selective import area_under_risk, measure_risk, prove_threshold

Floats = NDArray[np.float64]

SHAPES = ((1.0, 1.0, 0.0), (1.0, 0.7, 0.1), (1.0, 0.5, 0.0), (1.0, 1.0, 0.7), (0.6, 0.3, 1.0))
"""Beta parameter, slope, shift."""
SIZES = ((20, 5), (50, 4), (180, 1), (100, 20))
"""Articles, answers of each."""


def draw(
    rng: np.random.Generator,
    articles: int,
    size: int,
    shape: tuple[float, float, float],
    icc: float,
) -> tuple[Floats, Floats, Floats, NDArray[np.intp]]:
    """Return confidences, true chances, truths and articles."""
    from scipy.special import expit, logit, ndtr

    beta, slope, shift = shape
    numbers = np.repeat(np.arange(articles), size)
    confidences = rng.beta(beta, beta, len(numbers))
    chances = expit(slope * logit(confidences) + shift)
    common = rng.normal(size=articles)[numbers]
    place = np.sqrt(icc) * common + np.sqrt(1 - icc) * rng.normal(size=len(numbers))
    return confidences, chances, (ndtr(place) < chances).astype(float), numbers


def main(samples: int) -> None:
    """Print one row per shape, size and correlation."""
    rng = np.random.default_rng(0)
    print(
        "| articles | answers each | slope, shift | ICC | true error | plain | coverage | AURC | proved at .8, false |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for articles, size in SIZES:
        for shape in SHAPES:
            for icc in (0.0, 0.2):
                print(row(rng, samples, articles, size, shape, icc))


def row(
    rng: np.random.Generator,
    samples: int,
    articles: int,
    size: int,
    shape: tuple[float, float, float],
    icc: float,
) -> str:
    """Return the coverages of one kind of data."""
    true_area = float(
        np.mean([area_under_risk(*draw(rng, articles, size, shape, icc)[:2]) for _ in range(400)])
    )
    errors, plains, held, areas, proofs, false = [], [], 0, 0, 0, 0
    for _ in range(samples):
        confidences, chances, truth, numbers = draw(rng, articles, size, shape, icc)
        audit = calibrate(confidences, truth, numbers.tolist())
        bins = cut_bins(confidences, len(audit.bins))
        error = float(np.abs(np.bincount(bins, confidences - chances)).sum() / len(truth))
        low, high = audit.error.low, audit.error.high
        held += low is not None and high is not None and low <= error <= high
        errors.append(error)
        plains.append(audit.error.value or 0.0)
        risk = measure_risk(confidences, truth, numbers.tolist()).area
        areas += (
            risk.low is not None and risk.high is not None and risk.low <= true_area <= risk.high
        )
        proof = prove_threshold(confidences, truth, 0.8, numbers.tolist())
        if proof.is_proved and proof.threshold is not None:
            proofs += 1
            # The precision over the population, by a large sample of confidences.
            far = rng.beta(shape[0], shape[0], 20_000)
            far = far[far >= proof.threshold]
            odds = shape[1] * np.log(far / (1 - far)) + shape[2]
            false += float((1 / (1 + np.exp(-odds))).mean()) < 0.8
    figures = (np.mean(errors), np.mean(plains), 100 * held / samples, 100 * areas / samples)
    text = "| {:.3f} | {:.3f} | {:.1f} % | {:.1f} % ".format(*figures)
    proved = f"| {100 * proofs / samples:.0f} %, {100 * false / samples:.1f} % |"
    return f"| {articles} | {size} | {shape[1]:g}, {shape[2]:g} | {icc:g} {text}{proved}"


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
