"""Tables and plans of suites as plain text, from their JSON: for the command line, and the cells for the page."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from rallebench.engine import cost_text

ABSENT = "–"
"""A cell that was not measured."""
HEADS = ("Part", "questions", "left", "model calls", "retrievals")
COST_HEADS = ("time", "prompt tokens", "completion tokens", "US $")


def is_mean(value: Any) -> bool:
    """Whether a cell is a Mean as JSON has it."""
    return isinstance(value, Mapping) and {"value", "low", "high", "n"} <= value.keys()


def figure(value: float, percent: bool = False, digits: int = 0) -> str:
    """A number with as many digits as mean something; shares ×100 in a table of percentages; ``digits`` fewer than usual.

    >>> figure(0.9633, True), figure(0.12345), figure(12.345), figure(1234.6), figure(300, True), figure(2.0)
    ('96.33', '0.1235', '12.35', '1,235', '300', '2.00')
    """
    if isinstance(value, int):
        return f"{value:,}"
    if percent:
        return f"{100 * value:.{2 - digits}f}"
    if abs(value) < 1:
        return f"{value:.{4 - digits}f}"
    return f"{value:.{2 - digits}f}" if abs(value) < 1000 else f"{value:,.0f}"


def cell(value: Any, percent: bool = False) -> str:
    """A cell in words; a mean with its interval and its number of questions.

    >>> cell({"value": 0.5, "low": 0.4, "high": 0.6, "n": 30}, True), cell(None), cell("k=1")
    ('50.00 [40.0, 60.0] n=30', '–', 'k=1')
    """
    if is_mean(value):
        if value["value"] is None:
            return "not scored"
        return f"{figure(value['value'], percent)} {bounds(value, percent)}n={value['n']:,}"
    if value is None:
        return ABSENT
    if isinstance(value, bool):
        return "yes" if value else "no"
    return figure(value, percent) if isinstance(value, (int, float)) else str(value)


def bounds(mean: Mapping[str, Any], percent: bool = False) -> str:
    """The interval of a mean, with a blank behind it; '' where it has none."""
    if mean["low"] is None or mean["high"] is None:
        return ""
    return f"[{figure(mean['low'], percent, 1)}, {figure(mean['high'], percent, 1)}] "


def table_text(table: Mapping[str, Any]) -> list[str]:
    """The lines of a table: its title, heads, rows, note."""
    percent = table["percent"]
    rows = [[cell(value, percent) for value in row] for row in table["rows"]]
    unit = " (percent)" if percent else ""
    lines = aligned([list(table["columns"]), *rows])
    return [f"{table['title']}{unit}", *lines, *filter(None, [table.get("note", "")])]


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of cells as lines, columns below each other: the first to the left, the others to the right.

    >>> aligned([["", "EM"], ["closed book", "1.0"]])
    ['              EM', 'closed book  1.0']
    """
    widths = [max(map(_width, column)) for column in zip_longest(*rows, fillvalue="")]
    return ["  ".join(_padded(row, widths)).rstrip() for row in rows]


def _padded(row: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    for number, (text, width) in enumerate(zip(row, widths)):
        blanks = " " * (width - _width(text))
        yield blanks + text if number else text + blanks


def _width(text: str) -> int:
    """Columns of a terminal: a Chinese character takes two, a combining mark none."""
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)
    return len(text) + wide - sum(bool(unicodedata.combining(letter)) for letter in text)


def parts_tables(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A table for the parts that have the same metrics, in the form of the suite's own; ``definitions`` of their heads."""
    by_metrics: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for part in report["parts"]:
        by_metrics.setdefault(tuple(part["metrics"]), []).append(part)
    definitions = report.get("definitions", {})
    counts = {"questions": "n", "failed": "n_errors", "seconds": "seconds"}
    return [
        {
            "title": f"Parts, by {', '.join(metrics)}" if number else "Parts",
            "columns": ["part", *metrics, *counts],
            "rows": [
                [part["label"], *part["metrics"].values(), *(part[key] for key in counts.values())]
                for part in parts
            ],
            "percent": False,
            "note": "",
            "definitions": {name: definitions.get(name, "") for name in metrics},
        }
        for number, (metrics, parts) in enumerate(by_metrics.items())
    ]


# what it would run and cost


def span(value: Mapping[str, Any]) -> str:
    """A number of calls, or what is known of it.

    >>> span({"low": 1200, "high": 1200}), span({"low": 5, "high": 10}), span({"low": 5, "high": None})
    ('1,200', '5 to 10', 'at least 5')
    """
    low, high = value["low"], value["high"]
    if high is None:
        return f"at least {low:,}"
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def plan_rows(value: Mapping[str, Any]) -> list[list[str]]:
    """The heads, a row for each part, and the sum; with what was measured, where it was."""
    pilot, parts = value.get("probe"), value["plan"]
    measured = [*pilot["parts"], pilot["total"]] if pilot else [None] * (len(parts) + 1)
    lines = [*parts, {**value["total"], "label": "all", "depends": False}]
    rows = [[*HEADS, *(COST_HEADS if pilot else ())]]
    for line, costs in zip(lines, measured):
        about = "about " if line["depends"] else ""
        calls = [
            about * bool(line[name]["high"] != 0) + span(line[name])
            for name in ("generations", "retrievals")
        ]
        row = [line["label"], f"{about}{line['questions']:,}", f"{line['left']:,}", *calls]
        rows.append([*row, *(amounts(costs) if costs else ())])
    return rows


def amounts(costs: Mapping[str, Mapping[str, float | None]]) -> list[str]:
    """What is to be expected of a part: time, tokens, dollars, each with its bounds."""
    return [
        amount(costs["seconds"], duration),
        *(amount(costs[name], whole) for name in ("prompt_tokens", "completion_tokens")),
        amount(costs["usd"], cost_text.usd),
    ]


def amount(value: Mapping[str, float | None], worded: Callable[[float], str]) -> str:
    """An expected amount.

    >>> amount({"value": 90.0, "low": 60.0, "high": 130.0}, duration), amount({"value": None, "low": None, "high": None}, whole)
    ('1 min 30 s (1 min to 2 min 10 s)', 'unknown')
    """
    if value["value"] is None:
        return cost_text.UNKNOWN
    low, high = value["low"], value["high"]
    if low is None or high is None or worded(low) == worded(high):
        return worded(value["value"])
    return f"{worded(value['value'])} ({worded(low)} to {worded(high)})"


def whole(value: float) -> str:
    """A number of tokens."""
    return f"{value:,.0f}"


def duration(seconds: float) -> str:
    """Seconds as people say them.

    >>> duration(0.02), duration(5.4), duration(120), duration(7300)
    ('0.02 s', '5 s', '2 min', '2 h 1 min')
    """
    if seconds < 2:
        return f"{seconds:.2f} s" if seconds >= 0.01 else "< 0.01 s" if seconds else "0 s"
    seconds = round(seconds)
    if seconds < 60:
        return f"{seconds} s"
    many, rest = divmod(seconds, 60) if seconds < 3600 else divmod(seconds // 60, 60)
    unit, part = ("min", "s") if seconds < 3600 else ("h", "min")
    return f"{many:,} {unit}" + (f" {rest} {part}" if rest else "")


def plan_text(value: Mapping[str, Any]) -> list[str]:
    """The lines of a plan."""
    notes = value["probe"]["notes"] if value.get("probe") else value["notes"]
    costs = value.get("indexes", {}).get("costs")
    return [
        f"{value.get('suite') or value['experiment']}: {value['name']} would run",
        *aligned(plan_rows(value)),
        *([f"Indexes: {costs}"] if costs else []),
        *(f"Note: {note}" for note in notes),
    ]
