"""The paper's tables with ours above its own row, and lines over the shares of noise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rallebench.core.experiments import Figure, Table
from rallebench.core.runs import RunResult
from rallebench.engine.statistics import Mean
from rallebench.experiments.papers.rgb import published
from rallebench.experiments.papers.rgb.testing import Request, Test

Done = Mapping[str, "tuple[Test, RunResult]"]
KNOWS = 0.7
"""Error detection is reported for models that know more than this share of the answers without documents."""
SETS: Mapping[str, tuple[str, ...]] = {
    "noise": ("", "_refine"),
    "integration": ("_int",),
    "facts": ("_fact",),
}
"""Test → the ends of the names of the sets that the printed figures are of, or corrections of them."""


def over_noise(done: Done, test: str) -> tuple[Table, Figure]:
    """Accuracy and rejections at every share of noise. ``test``: ``noise`` or ``integration``."""
    request = _request(done)
    ratios = [one.noise for one, _ in done.values()]
    printed = published.accuracy(test, request.records.language, ratios)
    right = [answered.means.get("all_rate") for _, answered in done.values()]
    declined = [answered.means.get("rejection_rate") for _, answered in done.values()]
    rows: list[tuple[Any, ...]] = [
        (f"{request.asked.llm}: right", *right),
        (f"{request.asked.llm}: declined", *declined),
    ]
    series: dict[str, tuple[tuple[Any, Any], ...]] = {"right": _points(ratios, right)}
    series["declined"] = _points(ratios, declined)
    if printed:
        rows.append((published.MODEL, *(printed.get(ratio) for ratio in ratios)))
        series[published.MODEL] = tuple(printed.items())
    if any(one.other_noise for one, _ in done.values()):
        rows.insert(2, ("noise among the documents", *(one.noisy for one, _ in done.values())))
    title = "Accuracy over shares of noise" + (
        ", information integration" if test == "integration" else ""
    )
    table = Table(
        title,
        ("", *(f"noise {ratio:g}" for ratio in ratios)),
        tuple(rows),
        True,
        _note(request, bool(printed), test),
    )
    return table, Figure(title, "share of noise", "share of the answers", series)


def rejection(test: Test, answered: RunResult) -> tuple[Table, Figure]:
    """Rej, lucky hits and RGB's sum of the two, and Rej* where a judge was asked."""
    request = test.request
    names = {
        "rejection_rate": "Rej",
        "rejection_rate_judge": "Rej*",
        "lucky_rate": "lucky",
        "all_rate": "RGB's all_rate",
    }
    means = answered.means
    printed = published.rejection(request.records.language)
    rows: list[tuple[Any, ...]] = [(request.asked.llm, *(means.get(name) for name in names))]
    rows.append((published.MODEL, *(printed.get(name) for name in names)))
    table = Table(
        "Negative rejection, nothing but noise",
        ("", *names.values()),
        tuple(rows),
        True,
        _note(request, True, "noise"),
    )
    return table, _bars("Negative rejection", names, means, printed)


def counterfactual(alone: RunResult, test: Test, shown: RunResult) -> tuple[Table, Figure]:
    """What is known without documents and with false ones, errors found, and corrected: over those found by RGB's words and
    over those that the judge saw, which is the paper's."""
    request = test.request
    names = {
        "acc": "Acc",
        "acc_doc": "Acc_doc",
        "fact_check_rate": "ED",
        "fact_check_rate_judge": "ED*",
        "correct_rate": "CR of ED",
        "correct_rate_judge": "CR of ED*",
    }
    means: dict[str, Mean | None] = {
        **shown.means,
        "acc": alone.means.get("all_rate"),
        "acc_doc": shown.means.get("all_rate"),
    }
    known = alone.mean("all_rate")
    rows: list[tuple[Any, ...]] = [
        (request.asked.llm, *(means.get(name) for name in names), _rule(known))
    ]
    printed = published.counterfactual(request.records.language)
    rows.append((published.MODEL, *(printed.get(name) for name in names), _rule(printed["acc"])))
    columns = ("", *names.values(), f"Acc above {KNOWS:.0%}")
    note = f"RGB reports only models whose Acc is above {KNOWS:.0%}; its CR is of ED*. {_note(request, True, 'facts')}"
    table = Table("Counterfactual robustness, false documents", columns, tuple(rows), True, note)
    return table, _bars("Counterfactual robustness", names, means, printed)


def _rule(known: float | None) -> str:
    return "yes" if known is not None and known > KNOWS else "no: not to be compared"


def _request(done: Done) -> Request:
    return next(iter(done.values()))[0].request


def _note(request: Request, printed: bool, test: str) -> str:
    if not printed:
        return ""
    sets = [f"{request.records.language}{end}" for end in SETS[test]]
    ours = "" if request.records.name in sets else f"; ours are of {request.records.name}"
    return f"The paper's row is of {sets[0]}, five documents, temperature 0.7{ours}."


def _points(ratios: list[float], values: list[Mean | None]) -> tuple[tuple[float, Mean], ...]:
    return tuple(
        (ratio, value)
        for ratio, value in zip(ratios, values)
        if value is not None and value.value is not None
    )


def _bars(
    title: str,
    names: Mapping[str, str],
    means: Mapping[str, Mean | None],
    printed: Mapping[str, float],
) -> Figure:
    found = ((names[name], means.get(name)) for name in names)
    ours = tuple(
        (label, mean) for label, mean in found if mean is not None and mean.value is not None
    )
    series: dict[str, tuple[tuple[Any, Any], ...]] = {"ours": ours}
    series[published.MODEL] = tuple((names[name], value) for name, value in printed.items())
    return Figure(title, "rate", "share", series, "bar")
