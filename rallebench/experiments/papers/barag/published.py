"""What BARAG's Tables I to III print (arXiv:2402.16874), and which published run each row is made from.

The whole runs' own figures stand in the manifest of the data, where there is one; a printed cell agrees with one if rounding it to
the cell's digits gives the cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal
from functools import cache
from typing import Any

from rallebench.core.experiments import Table
from rallebench.experiments.papers.barag.runs import Run, Summary
from rallebench.experiments.published import published_table

FIELDS = ("truthfulness", "relevance", "n_in", "n_out", "retrieved")


@dataclass(frozen=True, slots=True)
class Printed:
    """A row of a table as it is printed; ``cells``: field of ``FIELDS`` → the text of the cell. ``run``: '' if it was not
    released."""

    label: str
    run: str
    cells: Mapping[str, str]


RUNS: Mapping[str, Mapping[str, str]] = {
    "Table I": {
        "A_r": "A_r_first300_20240123_100214",
        "A_d": "A_d_20240123_100407",
        "A_f": "A_f_20240123_100424",
        "A_f_GT": "",
    },
    "Table II": {
        "Baseline": "A_r_first300_20240123_100214",
        "NRAG": "A_r_first300_20240123_150039",
        "BARAG": "A_r_first300_20240125_111901",
    },
    "Table III": {
        "Baseline": "A_f_20240123_100424",
        "NRAG": "A_f_20240123_100551",
        "BARAG": "A_f_20240125_112730",
    },
}
"""Table → label of a row → the released run that it is made from, '' if its answers were not released."""


@cache
def printed_rows(name: str) -> tuple[Printed, ...]:
    """The rows of Table I, II or III."""
    table, runs = published_table(f"barag_table{name.count('I')}"), RUNS[name]
    if name == "Table I":  # printed with a column for every set of articles
        cells = {
            label: {row.settings["metric"]: table.printed(row, label) for row in table.rows}
            for label in runs
        }
        return tuple(
            Printed(label.replace("_GT", " GT"), run, cells[label]) for label, run in runs.items()
        )
    columns = dict(zip(FIELDS, table.columns))
    return tuple(
        Printed(
            row.system, runs[row.system], {f: table.printed(row, c) for f, c in columns.items()}
        )
        for row in table.rows
    )


ABOUT = {
    "Table I": "BARAG, Table I: answers without retrieval",
    "Table II": "BARAG, Table II: 300 articles of A_r",
    "Table III": "BARAG, Table III: 256 articles of A_f",
}
HEAD = {
    "truthfulness": "Truthfulness",
    "relevance": "Relevance",
    "n_in": "Input tokens",
    "n_out": "Output tokens",
    "retrieved": "Retrieved",
}
ALWAYS = "retrieval is by definition, the file's own flag is 0"


Runs = Mapping[str, tuple[Run, Summary]]


def printed_table(name: str, runs: Runs) -> Table:
    """One printed table, three lines a row: over the rows present, of the whole run, as printed; and whether the last two agree."""
    rows: list[tuple[Any, ...]] = []
    fields = tuple(printed_rows(name)[0].cells)
    for printed in printed_rows(name):
        label, verdict = printed.label, "not to be compared"
        if printed.run in runs:
            run, summary = runs[printed.run]
            present = dict(zip(FIELDS, summary.cells))
            rows.append((label, f"present, {summary.n} rows", *(present[f] for f in fields), ""))
            if run.whole:
                values = (exact(run.whole.get(field)) for field in fields)
                rows.append((label, f"whole run, {run.whole['n']} rows", *values, ""))
                phrases = (
                    "Retrieved by definition"
                    if field == "retrieved" and not value
                    else f"{HEAD[field]} should be {rounded(cell, value)}"
                    for field, cell, value in _wrong(printed, run.whole)
                )
                verdict = "; ".join(phrases) or "agrees"
        rows.append((label, "printed", *(printed.cells[field] for field in fields), verdict))
    return Table(ABOUT[name], ("Row", "Source", *(HEAD[f] for f in fields), "Verdict"), tuple(rows))


def _wrong(printed: Printed, whole: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """(field, the printed cell, the whole run's value) of every cell that the whole run does not give."""
    for field, cell in printed.cells.items():
        value = whole.get(field)
        if value is not None and not agrees(cell, value):
            yield field, cell, value


def exact(value: Any) -> Any:
    """A mean with the four digits that the manifest has; a count as it is."""
    return f"{value:.4f}" if isinstance(value, float) else value


def disagreements(printed: Printed, runs: Runs) -> Iterator[str]:
    """What of a printed row the whole run does not give, one phrase each."""
    if printed.run not in runs:
        return
    run, _ = runs[printed.run]
    for field, cell, value in _wrong(printed, run.whole):
        if field == "retrieved" and value == 0:
            lost = int(cell) - int(run.whole["n"])
            yield ALWAYS + (f", and {lost} of {cell} answers is missing" if lost else "")
            continue
        others = (
            other.name
            for other, _ in runs.values()
            if other.name != run.name
            and other.dataset == run.dataset
            and agrees(cell, other.whole.get(field))
        )
        name = next(others, "")
        whose = f" and is that of another run, {name}" if name else ""
        yield f"{field} is printed {cell}; the run gives {rounded(cell, value)} ({value}){whose}"


def agrees(cell: str, value: Any) -> bool:
    """Whether a printed cell is the value, rounded either way at a half.

    >>> agrees("3.9", 3.9033), agrees("14k", 13883), agrees("2.48", 2.4863), agrees("4.67", 4.685)
    (True, True, False, False)
    """
    ways = (ROUND_HALF_UP, ROUND_HALF_EVEN)
    return value is not None and any(cell == rounded(cell, value, how) for how in ways)


def rounded(cell: str, value: Any, how: str = ROUND_HALF_UP) -> str:
    """The value with as many digits as the cell.

    >>> rounded("4.67", 4.685), rounded("14k", 13883)
    ('4.69', '14k')
    """
    number, thousands = Decimal(str(value)), cell.endswith("k")
    unit = Decimal(1).scaleb(-len(cell.removesuffix("k").partition(".")[2]))
    number = (number / 1000 if thousands else number).quantize(unit, rounding=how)
    return f"{number}{'k' if thousands else ''}"
