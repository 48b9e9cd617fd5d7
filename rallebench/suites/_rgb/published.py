"""What RGB's paper prints for ChatGPT on its English sets (Chen et al. 2023, arXiv:2309.01431), as shares."""

from __future__ import annotations

from collections.abc import Mapping

MODEL = "RGB's paper: ChatGPT"
NOISE: Mapping[float, float] = {0.0: 0.9633, 0.2: 0.9467, 0.4: 0.94, 0.6: 0.90, 0.8: 0.76}
"""Share of noise → accuracy, 300 records."""
INTEGRATION: Mapping[float, float] = {0.0: 0.55, 0.2: 0.51, 0.4: 0.34}
"""The same, 100 records."""
REJECTION: Mapping[str, float] = {"rejection_rate": 0.2467, "rejection_rate_judge": 0.45}
COUNTERFACTUAL: Mapping[str, float] = {
    "acc": 0.89, "acc_doc": 0.09, "fact_check_rate": 0.08, "fact_check_rate_judge": 0.07, "correct_rate_judge": 0.5714,
}  # fmt: skip
"""100 records. The correction rate is over the judge's detections: 4 of 7."""

CATEGORIES: Mapping[str, tuple[str, ...]] = {
    "integration": ("merging", "ignoring", "misalignment"),
    "noise": ("long distance", "evidence uncertainty", "concept confusion"),
}
"""Test → what the paper's authors called its errors, by hand."""
ERRORS: Mapping[str, float] = {"merging": 0.28, "ignoring": 0.28, "misalignment": 0.06}
"""Category → share of the errors of integration."""
