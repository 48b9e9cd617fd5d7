"""What RGB's paper prints (Chen et al. 2023, arXiv:2309.01431), as shares: ChatGPT's rows, English and Chinese."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rallebench.experiments.published import published_table

SYSTEM = "ChatGPT"
MODEL = f"RGB's paper: {SYSTEM}"
TABLES: Mapping[str, str] = {"noise": "rgb_table1", "integration": "rgb_table5"}
"""Test → the table of its accuracy over shares of noise."""
COUNTERFACTUAL: Mapping[str, str] = {
    "acc": "Acc",
    "acc_doc": "Acc_doc",
    "fact_check_rate": "ED",
    "fact_check_rate_judge": "ED*",
    "correct_rate_judge": "CR",
}
"""Our metric → the paper's column; its correction rate is over the judge's detections."""
CATEGORIES: Mapping[str, tuple[str, ...]] = {
    "integration": ("merging", "ignoring", "misalignment"),
    "noise": ("long distance", "evidence uncertainty", "concept confusion"),
}
"""Test → what the paper's authors called its errors, by hand."""
ERRORS = "rgb_table6"


def accuracy(test: str, language: str, ratios: Sequence[float]) -> dict[float, float]:
    """Share of noise → accuracy, for those ``ratios`` that the paper prints."""
    table = published_table(TABLES[test])
    cells = table.shares(table.row(SYSTEM))
    return {
        ratio: cells[f"{language}_{ratio:g}"]
        for ratio in ratios
        if f"{language}_{ratio:g}" in cells
    }


def rejection(language: str) -> dict[str, float]:
    """Our metric → rate of rejections when nothing but noise is shown."""
    table = published_table("rgb_table3")
    cells = table.shares(table.row(SYSTEM))
    return {
        "rejection_rate": cells[f"{language}_Rej"],
        "rejection_rate_judge": cells[f"{language}_Rej*"],
    }


def counterfactual(language: str) -> dict[str, float]:
    """Our metric → rate when false documents are shown."""
    table = published_table("rgb_table7")
    cells = table.shares(table.row(SYSTEM, language=language))
    return {metric: cells[column] for metric, column in COUNTERFACTUAL.items()}


def errors() -> tuple[str, dict[str, float]]:
    """(whose errors of integration, category → share of them)."""
    table = published_table(ERRORS)
    return table.rows[0].system, {
        row.settings["error_type"]: table.shares(row)["share_of_errors"] for row in table.rows
    }
