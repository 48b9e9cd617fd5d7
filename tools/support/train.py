"""Train the support head, and measure it on articles that neither it nor the reader has seen.

``python -m tools.support.train --data FOLDER`` writes rallebench/metrics/support/head.json. The folder holds
``squad_dev.jsonl.gz``; its articles are split as for the reader. The area under the ROC curve says how often a true claim
scores above a false one with the same passage or another of the same article.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rallebench.metrics.support.features import FEATURES, claim_features
from tools.reader.sources import TEST_ARTICLES
from tools.support.claims import SwappedClaim, claims

OUT = Path(__file__).parents[2] / "rallebench" / "metrics" / "support" / "head.json"
SEED = 0
ELSEWHERE_WEIGHT = 0.5
SWAPS = ("number", "name", "date", "negation")
WORDINGS = ("statement", "fragment", "sentence")
DECIMALS = 5
SOURCE = "SQuAD 1.1 development set, Rajpurkar et al. 2016, arXiv:1606.05250, CC BY-SA 4.0"


def fit(rows: Any, labels: Any, weights: Any) -> tuple[list[float], float]:
    """Return the weights and the bias of a logistic regression over unscaled features (n, features)."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler().fit(rows)
    model = LogisticRegression(max_iter=3000).fit(scaler.transform(rows), labels, weights)
    slopes = model.coef_[0] / scaler.scale_
    bias = float(model.intercept_[0] - slopes @ scaler.mean_)
    return [round(float(slope), DECIMALS) for slope in slopes], round(bias, DECIMALS)


def area(
    claimed: Sequence[SwappedClaim], values: Any, chosen: Callable[[SwappedClaim], bool]
) -> dict[str, Any]:
    """Return the area under the ROC curve of the chosen claims, with the counts of true and false ones."""
    from sklearn.metrics import roc_auc_score

    rows = [(claim.true, value) for claim, value in zip(claimed, values) if chosen(claim)]
    truth = [true for true, _ in rows]
    figure = roc_auc_score(truth, [value for _, value in rows])
    return {"auroc": round(float(figure), 3), "true": sum(truth), "false": len(truth) - sum(truth)}


def figures(claimed: Sequence[SwappedClaim], values: Any) -> dict[str, Any]:
    """Return the areas over all test claims, by wording, and by wording and kind of swap."""

    def among(wordings: Sequence[str], swaps: Sequence[str]) -> Callable[[SwappedClaim], bool]:
        return lambda claim: claim.wording in wordings and (claim.true or claim.swapped in swaps)

    areas = {"swapped": area(claimed, values, among(WORDINGS, SWAPS))}
    for wording in WORDINGS:
        areas[wording] = area(claimed, values, among((wording,), SWAPS))
        for swap in SWAPS:
            if any(claim.wording == wording and claim.swapped == swap for claim in claimed):
                areas[f"{wording}, {swap}"] = area(claimed, values, among((wording,), (swap,)))
    areas["elsewhere"] = area(claimed, values, among(WORDINGS, ("elsewhere",)))
    return areas


def main() -> None:
    """Train, measure, write."""
    import numpy as np

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    every = claims(arguments.data / "squad_dev.jsonl.gz", SEED)
    rows = np.array([claim_features(c.text, c.passage, c.title) for c in every])
    truth = np.array([claim.true for claim in every])
    tested = np.array([claim.title in TEST_ARTICLES for claim in every])
    weights = np.where([claim.swapped == "elsewhere" for claim in every], ELSEWHERE_WEIGHT, 1.0)
    slopes, bias = fit(rows[~tested], truth[~tested], weights[~tested])
    values = rows @ np.array(slopes) + bias
    test = [claim for claim, held in zip(every, tested) if held]
    swapped = np.array([claim.swapped != "elsewhere" for claim in every]) & tested
    right = (values > 0) == truth
    balanced = (right[swapped & truth].mean() + right[swapped & ~truth].mean()) / 2
    document = {
        "about": {
            "source": SOURCE,
            "seed": SEED,
            "train_claims": int((~tested).sum()),
            "train_articles": len({c.title for c, held in zip(every, tested) if not held}),
            "test_articles": len({claim.title for claim in test}),
            "balanced_accuracy": round(float(balanced), 3),
            "areas": figures(test, values[tested]),
        },
        "bias": bias,
        "weights": dict(zip(FEATURES, slopes)),
    }
    arguments.out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(document["about"], indent=1))


if __name__ == "__main__":
    main()
