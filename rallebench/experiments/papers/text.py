"""Tables and plans of suites as plain text, from their JSON: for the command line, and the cells for the page."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
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
    rows = [
        list(table["columns"]),
        *([cell(one, table["percent"]) for one in row] for row in table["rows"]),
    ]
    unit = " (percent)" if table["percent"] else ""
    return [f"{table['title']}{unit}", *aligned(rows), *filter(None, [table.get("note", "")])]


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of cells as lines, columns below each other: the first to the left, the others to the right.

    >>> aligned([["", "EM"], ["closed book", "1.0"]])
    ['              EM', 'closed book  1.0']
    """
    count = max((len(row) for row in rows), default=0)
    wide = [max((_width(row[i]) for row in rows if i < len(row)), default=0) for i in range(count)]
    return [
        "  ".join(_padded(text, wide[i], i > 0) for i, text in enumerate(row)).rstrip()
        for row in rows
    ]


def _width(text: str) -> int:
    """Columns of a terminal: a Chinese character takes two."""
    return sum(
        2 if unicodedata.east_asian_width(one) in "WF" else 0 if unicodedata.combining(one) else 1
        for one in text
    )


def _padded(text: str, wide: int, right: bool) -> str:
    blanks = " " * (wide - _width(text))
    return blanks + text if right else text + blanks


def parts_tables(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A table for the parts that have the same metrics, in the form of the suite's own; ``definitions`` of their heads."""
    found: list[dict[str, Any]] = []
    for metrics in dict.fromkeys(tuple(part["metrics"]) for part in report["parts"]):
        own = [part for part in report["parts"] if tuple(part["metrics"]) == metrics]
        rows = [
            [
                part["label"],
                *(part["metrics"][name] for name in metrics),
                part["n"],
                part["n_errors"],
                part["seconds"],
            ]
            for part in own
        ]
        told = {name: report.get("definitions", {}).get(name, "") for name in metrics}
        columns = ["part", *metrics, "questions", "failed", "seconds"]
        title = f"Parts, by {', '.join(metrics)}" if found else "Parts"
        found.append(
            {
                "title": title,
                "columns": columns,
                "rows": rows,
                "percent": False,
                "note": "",
                "definitions": told,
            }
        )
    return found


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
    probe = value.get("probe")
    rows = [[*HEADS, *(COST_HEADS if probe else ())]]
    for i, part in enumerate(value["plan"]):
        about = "about " if part["depends"] else ""
        calls = [
            about * bool(part[name]["high"] != 0) + span(part[name])
            for name in ("generations", "retrievals")
        ]
        row = [part["label"], f"{about}{part['questions']:,}", f"{part['left']:,}", *calls]
        rows.append([*row, *(amounts(probe["parts"][i]) if probe else ())])
    total = value["total"]
    calls = [span(total[name]) for name in ("generations", "retrievals")]
    rows.append(
        [
            "all",
            f"{total['questions']:,}",
            f"{total['left']:,}",
            *calls,
            *(amounts(probe["total"]) if probe else ()),
        ]
    )
    return rows


def amounts(found: Mapping[str, Mapping[str, float | None]]) -> list[str]:
    """What is to be expected of a part: time, tokens, dollars, each with its bounds."""
    return [
        amount(found["seconds"], duration),
        *(amount(found[name], whole) for name in ("prompt_tokens", "completion_tokens")),
        amount(found["usd"], cost_text.usd),
    ]


def amount(value: Mapping[str, float | None], said: Any) -> str:
    """An expected amount.

    >>> amount({"value": 90.0, "low": 60.0, "high": 130.0}, duration), amount({"value": None, "low": None, "high": None}, whole)
    ('1 min 30 s (1 min to 2 min 10 s)', 'unknown')
    """
    if value["value"] is None:
        return cost_text.UNKNOWN
    low, high = value["low"], value["high"]
    if low is None or high is None or said(low) == said(high):
        return str(said(value["value"]))
    return f"{said(value['value'])} ({said(low)} to {said(high)})"


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
    many, unit, few, part = (
        (seconds // 60, "min", seconds % 60, "s")
        if seconds < 3600
        else (seconds // 3600, "h", seconds % 3600 // 60, "min")
    )
    return f"{many:,} {unit}" + (f" {few} {part}" if few else "")


def plan_text(value: Mapping[str, Any]) -> list[str]:
    """The lines of a plan."""
    notes = value["probe"]["notes"] if value.get("probe") else value["notes"]
    indexes = (
        [f"Indexes: {value['indexes']['costs']}"] if value.get("indexes", {}).get("costs") else []
    )
    return [
        f"{value.get('suite') or value['experiment']}: {value['name']} would run",
        *aligned(plan_rows(value)),
        *indexes,
        *(f"Note: {note}" for note in notes),
    ]
