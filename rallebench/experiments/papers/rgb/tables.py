"""The paper's tables (Chen et al. 2023, arXiv:2309.01431) with ours above its own row, and lines over the shares of noise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rallebench.core.experiments import Figure, Table
from rallebench.core.runs import RunResult
from rallebench.engine.statistics import Mean
from rallebench.experiments.papers.rgb.testing import Answered, Testbed
from rallebench.experiments.published import published_table

SYSTEM = "ChatGPT"
MODEL = f"RGB's paper: {SYSTEM}"
KNOWS = 0.7
"""Error detection is reported for models that know more than this share of the answers without documents."""
SETS: Mapping[str, tuple[str, ...]] = {
    "noise": ("", "_refine"),
    "integration": ("_int",),
    "facts": ("_fact",),
}
"""Test → the ends of the names of the sets that the printed figures are of, or corrections of them."""
NOISE = {"noise": "rgb_table1", "integration": "rgb_table5"}
"""Test → the paper's table of its accuracy over shares of noise."""
REJECTION = {
    "rejection_rate": ("Rej", "Rej"),
    "rejection_rate_judge": ("Rej*", "Rej*"),
    "lucky_rate": ("lucky", ""),
    "all_rate": ("RGB's all_rate", ""),
}
"""Metric → (our column, the paper's); so, too:"""
COUNTERFACTUAL = {
    "acc": ("Acc", "Acc"),
    "acc_doc": ("Acc_doc", "Acc_doc"),
    "fact_check_rate": ("ED", "ED"),
    "fact_check_rate_judge": ("ED*", "ED*"),
    "correct_rate": ("CR of ED", ""),
    "correct_rate_judge": ("CR of ED*", "CR"),
}
"""The paper's correction rate is over the judge's detections."""

Means = Mapping[str, "Mean | None"]
Columns = Mapping[str, tuple[str, str]]


def over_noise(answered: Answered, kind: str) -> tuple[Table, Figure]:
    """Accuracy and rejections at every share of noise. ``kind``: ``noise`` or ``integration``."""
    tests, results = zip(*answered.values())
    testbed, ratios = tests[0].testbed, [test.noise for test in tests]
    cells, language = _printed(NOISE[kind]), testbed.records.language
    printed = {r: cells[key] for r in ratios if (key := f"{language}_{r:g}") in cells}
    title = "Accuracy over shares of noise" + ", information integration" * (kind == "integration")
    rows: list[tuple[Any, ...]] = []
    series: dict[str, tuple[tuple[Any, Any], ...]] = {}
    for name, metric in (("right", "all_rate"), ("declined", "rejection_rate")):
        means = [result.means.get(metric) for result in results]
        rows.append((f"{testbed.request.llm}: {name}", *means))
        series[name] = _scored(zip(ratios, means))
    if any(test.other_noise for test in tests):
        rows.append(("noise among the documents", *(test.noisy for test in tests)))
    if printed:
        rows.append((MODEL, *map(printed.get, ratios)))
        series[MODEL] = tuple(printed.items())
    columns = ("", *(f"noise {ratio:g}" for ratio in ratios))
    note = _note(testbed, kind) if printed else ""
    figure = Figure(title, "share of noise", "share of the answers", series)
    return Table(title, columns, tuple(rows), True, note), figure


def rejection(testbed: Testbed, result: RunResult) -> tuple[Table, Figure]:
    """Rej, lucky hits and RGB's sum of the two, and Rej* where a judge was asked."""
    cells = _printed("rgb_table3")
    language = f"{testbed.records.language}_"
    own = {key.removeprefix(language): v for key, v in cells.items() if key.startswith(language)}
    ours, printed = _rows(testbed, REJECTION, result.means, own)
    columns = ("", *(head for head, _ in REJECTION.values()))
    title, note = "Negative rejection, nothing but noise", _note(testbed, "noise")
    table = Table(title, columns, (ours, printed), True, note)
    return table, _bars("Negative rejection", columns, ours, printed)


def counterfactual(testbed: Testbed, alone: RunResult, result: RunResult) -> tuple[Table, Figure]:
    """What is known without documents and with false ones, errors found, and corrected: over those found by RGB's words and
    over those that the judge saw, which is the paper's."""
    accuracies = {"acc": alone.means.get("all_rate"), "acc_doc": result.means.get("all_rate")}
    cells = _printed("rgb_table7", language=testbed.records.language)
    ours, printed = _rows(testbed, COUNTERFACTUAL, {**result.means, **accuracies}, cells)
    columns = ("", *(head for head, _ in COUNTERFACTUAL.values()))
    note = f"RGB reports only models whose Acc is above {KNOWS:.0%}; its CR is of ED*. {_note(testbed, 'facts')}"
    table = Table(
        "Counterfactual robustness, false documents",
        (*columns, f"Acc above {KNOWS:.0%}"),
        ((*ours, _rule(alone.mean("all_rate"))), (*printed, _rule(cells["Acc"]))),
        True,
        note,
    )
    return table, _bars("Counterfactual robustness", columns, ours, printed)


def reported(accuracy: float | None) -> bool:
    """Whether RGB reports error detection for a model that knows so much."""
    return accuracy is not None and accuracy > KNOWS


def _rule(accuracy: float | None) -> str:
    return "yes" if reported(accuracy) else "no: not to be compared"


def _printed(table: str, **settings: Any) -> dict[str, float]:
    """The paper's column → share, of its row of ``SYSTEM``."""
    published = published_table(table)
    return published.shares(published.row(SYSTEM, **settings))


def _rows(
    testbed: Testbed, columns: Columns, means: Means, cells: Mapping[str, float]
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Our row of a table, and the paper's."""
    ours = (testbed.request.llm, *(means.get(metric) for metric in columns))
    return ours, (MODEL, *(cells.get(theirs) for _, theirs in columns.values()))


def _note(testbed: Testbed, test: str) -> str:
    records = testbed.records
    sets = [f"{records.language}{end}" for end in SETS[test]]
    ours = "" if records.name in sets else f"; ours are of {records.name}"
    return f"The paper's row is of {sets[0]}, five documents, temperature 0.7{ours}."


def _scored(points: Iterable[tuple[Any, Mean | None]]) -> tuple[tuple[Any, Mean], ...]:
    """The points of a series that have a value."""
    return tuple((x, mean) for x, mean in points if mean is not None and mean.value is not None)


def _bars(
    title: str, columns: Sequence[str], ours: Sequence[Any], printed: Sequence[Any]
) -> Figure:
    theirs = tuple((x, value) for x, value in zip(columns[1:], printed[1:]) if value is not None)
    series = {"ours": _scored(zip(columns[1:], ours[1:])), MODEL: theirs}
    return Figure(title, "rate", "share", series, "bar")
