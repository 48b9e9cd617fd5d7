"""Tables I to III of the boolean-agent study (arXiv:2403.00820) from run files, without asking a model.

The published data may contain only part of each run. The means over the available rows are shown beside the printed figures
and, if a manifest provides them, the figures of the whole run. A printed cell agrees with a figure if it equals the figure
rounded to the cell's digits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal
from itertools import combinations
from typing import Any, NamedTuple

from rallebench.analysis.paired import Sides
from rallebench.core.experiments import Experiment, ExperimentRequest, Report
from rallebench.core.settings import dataclass_form, declare_text
from rallebench.core.tables import Figure, Table
from rallebench.experiments.benchmarks import published_table
from rallebench.experiments.common import SCORES
from rallebench.experiments.significance import test_table
from rallebench.papers.barag.benchmark import BARAG
from rallebench.papers.barag.points import choice_table
from rallebench.papers.barag.runs import (
    COLUMNS,
    BaragRun,
    Summary,
    WholeRun,
    by_question,
    histogram_plot,
    read_runs,
    runs_table,
    summarize,
)
from rallebench.workspace.paths import WorkspaceFolder

HEAD = dict(zip((*SCORES, "n_in", "n_out", "retrieved"), COLUMNS))
"""Printed figure → its column."""
ABOUT = {
    "Table I": "BARAG, Table I: answers without retrieval",
    "Table II": "BARAG, Table II: 300 articles of A_r",
    "Table III": "BARAG, Table III: 256 articles of A_f",
}
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
"""Table → row label → the released run behind it; '' if its answers were not released."""


ALWAYS = "retrieval is by definition, the file's own flag is 0"
Runs = Mapping[str, tuple[BaragRun, Summary]]


class Printed(NamedTuple):
    """A printed row. ``run``: its released run, or ''; ``cells``: key of ``HEAD`` → the text of the cell."""

    label: str
    run: str
    cells: Mapping[str, str]


def printed_rows(name: str) -> tuple[Printed, ...]:
    """The rows of a printed table, such as ``Table II``."""
    table, runs = published_table(f"barag_table{name.count('I')}"), RUNS[name]
    if name == "Table I":  # printed with one column for each article set
        cells = {
            label: {row.settings["metric"]: table.cell_text(row, label) for row in table.rows}
            for label in runs
        }
    else:
        columns = dict(zip(HEAD, table.columns))
        cells = {
            row.system: {field: table.cell_text(row, column) for field, column in columns.items()}
            for row in table.rows
        }
    return tuple(
        Printed(label.replace("_GT", " GT"), runs[label], of_row) for label, of_row in cells.items()
    )


def printed_table(name: str, runs: Runs) -> Table:
    """One printed table. Each row has three lines (available rows, whole run, printed) and a verdict on the last two."""
    rows: list[tuple[Any, ...]] = []
    fields = tuple(printed_rows(name)[0].cells)
    for printed in printed_rows(name):
        label, verdict = printed.label, "not to be compared"
        if printed.run in runs:
            run, summary = runs[printed.run]
            present = dict(zip(HEAD, summary.cells))
            rows.append((label, f"present, {summary.n} rows", *(present[f] for f in fields), ""))
            if run.whole:
                values = (exact(run.whole.figure(field)) for field in fields)
                rows.append((label, f"whole run, {run.whole.n} rows", *values, ""))
                phrases = (
                    "Retrieved by definition"
                    if field == "retrieved" and not value
                    else f"{HEAD[field]} should be {round_like(cell, value)}"
                    for field, cell, value in _wrong(printed, run.whole)
                )
                verdict = "; ".join(phrases) or "agrees"
        rows.append((label, "printed", *(printed.cells[field] for field in fields), verdict))
    return Table(ABOUT[name], ("Row", "Source", *(HEAD[f] for f in fields), "Verdict"), tuple(rows))


def _wrong(printed: Printed, whole: WholeRun) -> Iterator[tuple[str, str, float]]:
    """(field, printed cell, value of the whole run) of each cell that disagrees with the whole run."""
    for field, cell in printed.cells.items():
        value = whole.figure(field)
        if value is not None and not agrees(cell, value):
            yield field, cell, value


def exact(value: float | None) -> str | int | None:
    """A mean with the manifest's four digits; a count unchanged."""
    return f"{value:.4f}" if isinstance(value, float) else value


def disagreements(printed: Printed, runs: Runs) -> Iterator[str]:
    """A phrase for each printed cell that disagrees with the whole run."""
    if printed.run not in runs:
        return
    run, _ = runs[printed.run]
    if run.whole is None:
        return
    for field, cell, value in _wrong(printed, run.whole):
        if field == "retrieved" and value == 0:
            lost = int(cell) - run.whole.n
            yield ALWAYS + (f", and {lost} of {cell} answers is missing" if lost else "")
            continue
        others = (
            other.name
            for other, _ in runs.values()
            if other.name != run.name
            and other.dataset == run.dataset
            and other.whole
            and agrees(cell, other.whole.figure(field))
        )
        name = next(others, "")
        whose = f" and is that of another run, {name}" if name else ""
        yield f"{field} is printed {cell}; the run gives {round_like(cell, value)} ({value}){whose}"


def agrees(cell: str, value: float | None) -> bool:
    """Return whether a printed cell equals the value, with halves rounded either way.

    >>> agrees("3.9", 3.9033), agrees("14k", 13883), agrees("2.48", 2.4863), agrees("4.67", 4.685)
    (True, True, False, False)
    """
    ways = (ROUND_HALF_UP, ROUND_HALF_EVEN)
    return value is not None and any(cell == round_like(cell, value, how) for how in ways)


def round_like(cell: str, value: float, how: str = ROUND_HALF_UP) -> str:
    """The value with as many digits as the cell.

    >>> round_like("4.67", 4.685), round_like("14k", 13883)
    ('4.69', '14k')
    """
    number, thousands = Decimal(str(value)), cell.endswith("k")
    unit = Decimal(1).scaleb(-len(cell.removesuffix("k").partition(".")[2]))
    number = (number / 1000 if thousands else number).quantize(unit, rounding=how)
    return f"{number}{'k' if thousands else ''}"


@dataclass(frozen=True, slots=True)
class TablesSettings:
    """The settings of ``barag-tables``."""

    runs: str = declare_text(
        "folder of run files (JSON lines); a runs_manifest.json beside or above is read",
        names="file folder",
    )


@BARAG.suite(
    "barag-tables",
    ready="Without a download: all of it, for run files in English and in Chinese.",
    needs_llm=False,
    asks=False,
    named_by=("runs",),
    form=dataclass_form(TablesSettings),
)
def tables(request: ExperimentRequest[WorkspaceFolder]) -> Experiment:
    """BARAG, Tables I to III from run files: means, tokens and retrievals beside the figures of whole runs and of the paper."""
    files = read_runs(request.read(TablesSettings).runs)
    read = (replace(run, rows=run.rows[: request.limit]) for run in files)
    runs = {run.name: (run, summarize(run.rows)) for run in read}
    printed = [name for name, rows in RUNS.items() if runs.keys() & set(rows.values())]
    summaries = {name: summary for name, (_, summary) in runs.items()}
    whole = any(run.whole for run, _ in runs.values())
    yield from ()
    return Report(
        {
            "runs": {
                name: {
                    **summary.to_json(),
                    "description": run.description,
                    "whole": dict(run.whole.document) if run.whole else {},
                }
                for name, (run, summary) in runs.items()
            }
        },
        (*_notes(runs), *_costs(runs)),
        tables=(
            *(printed_table(name, runs) for name in printed),
            *_choices(runs),
            runs_table("All runs, over the rows present", summaries),
            *_tests(runs),
            *[_whole_table(runs)] * whole,
        ),
        figures=_plots(runs),
    )


def _tests(runs: Runs) -> tuple[Table, ...]:
    """Comparisons of the ways to answer in Tables II and III, on the questions in both files."""
    sides: dict[tuple[str, str], Sides] = {}
    for table in ("Table II", "Table III"):
        rows = {
            label: {
                f"{title}\t{question}\t{repetition}": row
                for (title, question, repetition), row in by_question(runs[name][0].rows).items()
            }
            for label, name in RUNS[table].items()
            if name in runs
        }
        for first, other in combinations(rows, 2):
            clusters = {key: row.title for key, row in rows[first].items()}
            for score in SCORES:
                a, b = (
                    {key: getattr(row, score) for key, row in rows[side].items()}
                    for side in (first, other)
                )
                sides[f"{table}: {other} less {first}", HEAD[score]] = score, a, b, clusters
    return test_table(sides)


def _whole_table(runs: Runs) -> Table:
    fields = ("n", "truthfulness", "relevance", "n_in", "n_out", "retrieved", "both_5")
    rows = tuple(
        (name, *(exact(run.whole.figure(field)) for field in fields), run.description)
        for name, (run, _) in runs.items()
        if run.whole
    )
    head = ("Run", "Answers", *COLUMNS[:4], "Retrieved (flag)", "Perfect", "What it is")
    return Table("All runs, whole, as the manifest has them", head, rows)


def _notes(runs: Runs) -> Iterator[str]:
    parts = [run for run, summary in runs.values() if run.whole and run.whole.n != summary.n]
    if parts:
        yield f"{len(parts)} of {len(runs)} files hold a part of their run; its whole figures are the manifest's."
    for table in RUNS:
        rows = printed_rows(table)
        for row in rows:
            yield from (f"{table}, {row.label}: {text}." for text in disagreements(row, runs))
            if not row.run and any(other.run in runs for other in rows):
                yield f"{table}, {row.label}: its answers were not released."
    drafts = [
        name for name, (run, _) in runs.items() if any(r.context and not r.read for r in run.rows)
    ]
    if drafts:
        yield f"Where nothing was retrieved, {', '.join(drafts)} keep the draft as the context; it is not counted as retrieved."
    for name, (_, summary) in runs.items():
        if summary.scored < summary.n:
            yield f"{name}: {summary.n - summary.scored} of {summary.n} answers have no scores; they are in no mean."


def _costs(runs: Runs) -> Iterator[str]:
    """A sentence on the agent's tokens compared with always retrieving, for whole runs if known."""
    for table, label in (("Table II", "A_r"), ("Table III", "A_f")):
        names = [RUNS[table][way] for way in ("NRAG", "BARAG")]
        if not runs.keys() >= set(names):
            continue
        always, own = (runs[name][0].whole or runs[name][1] for name in names)
        sums = {"input": (own.n_in, always.n_in), "output": (own.n_out, always.n_out)}
        parts = [
            f"{mine / theirs - 1:+.1%} {kind} tokens ({mine:,} against {theirs:,})"
            for kind, (mine, theirs) in sums.items()
            if theirs and mine is not None
        ]
        yield f"On {label} the agent needs {' and '.join(parts)} compared with retrieving always."


def _choices(runs: Runs) -> Iterator[Table]:
    """The published agents compared with random reading and with the better answer each time."""
    for table in ("Table II", "Table III"):
        names = list(RUNS[table].values())
        if all(name in runs for name in names):
            title = f"What the decision is worth, {table}"
            if choice := choice_table(title, *(runs[name][0] for name in names)):
                yield choice


def _plots(runs: Runs) -> tuple[Figure, ...]:
    groups: dict[str, dict[str, Summary]] = {}
    for name, (run, summary) in runs.items():
        groups.setdefault(run.dataset, {})[name.removeprefix(f"{run.dataset}_") or name] = summary
    title = "Truthfulness + relevance"
    plots = (histogram_plot(f"{title} on {d}" if d else title, of) for d, of in groups.items())
    return tuple(plot for plot in plots if plot.series)
