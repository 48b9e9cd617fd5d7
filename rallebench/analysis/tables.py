"""Reports and comparisons of runs, as tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rallebench.analysis.changes import Change
from rallebench.core.comparison import Comparison, PairedComparison
from rallebench.core.numbers import independence
from rallebench.core.report import Estimate, RunReport
from rallebench.core.tables import Column, Table
from rallebench.core.types import Chain
from rallebench.engine.headline import not_printed, table_metrics
from rallebench.metrics import read_card


def metrics(report: RunReport, chain: Chain | None = None) -> Table:
    """Return every column of a report with its interval and definition: those of judges and of the suite, then metrics."""
    rows: list[tuple[Any, ...]] = [
        (name, name, result.estimate, result.column.definition)
        for name, result in report.own.items()
    ]
    figures = {r.column.name: r.corpus_level for r in report.columns}
    for name, mean in table_metrics(report, chain).items():
        about = read_card(name)
        caveats = f" Beware: {about.traps}" if about.traps else ""
        rows.append((about.label, name, mean, f"{about.definition}{caveats}"))
        if (over_all := figures.get(name)) is not None:
            rows.append((f"{about.label}, over all answers", name, over_all, about.over_all))
    columns = ("metric", "name", "mean and 95 % interval", Column("definition", "text"))
    clusters = independence(report.clusters, report.n_done)
    note = " ".join(filter(None, [clusters, *not_printed(report, chain)]))
    return Table("", columns, tuple(rows), note=note)


def comparison(compared: Comparison) -> Table:
    """Return a table of metrics by runs, over the questions that all runs have scored. The best value of a row is
    bold. With two runs, the table also has the differences, and a value is bold only if it is significantly better.
    """
    two = len(compared.sides) == 2
    rows: list[tuple[Any, ...]] = []
    best: set[tuple[int, int]] = set()
    units: dict[int, str] = {}
    for name, means in compared.cells.items():
        if not compared.is_printed(name):
            continue
        about, unit = compared.measures[name].card, compared.measures[name].unit
        units[len(rows)] = unit
        pair = next(iter(compared.pairs[name].values())) if two else None
        if pair is None or pair.significant:
            best |= {(len(rows), i + 1) for i in compared.best(name)}
        less = " ↓" if about.higher_is_better is False else ""
        rows.append((f"{about.label}{less}", *means, *_gaps(pair), means[0].n))
        if scores := compared.corpus_level.get(name, ()):
            label = f"{about.label}, over all answers"
            units[len(rows)] = unit
            over_all = (Estimate(score.value, score.low, score.high, score.n) for score in scores)
            rows.append((label, *over_all, *([None] * two), scores[0].n))
    names = (side.name for side in compared.sides)
    remark = ", where a difference is shown; no interval is corrected for the other metrics" * two
    note = (
        f"{len(compared.common)} questions that all runs share. Mean, 95 % interval and number of questions; bold: the best mean of the row{remark}. "
        f"{independence(compared.clusters.counts, len(compared.common))}"
    )
    columns: tuple[Column | str, ...] = ("metric", *names)
    columns += (Column("difference", "delta"),) * two + (Column("n", "count"),)
    return Table("", columns, tuple(rows), note=note, best=frozenset(best), units=units)


def differences(compared: Comparison) -> Table:
    """Compare every run with the first by the chosen metric."""
    about, upward = compared.measure.card, compared.measure.higher_is_better
    more, less = ("higher", "lower") if upward is None else ("better", "worse")
    rows = tuple(
        (
            run,
            pair.verdict(upward),
            *_gaps(pair),
            pair.p,
            pair.corrected,
            *(pair.wins, pair.ties, pair.losses),
            str(pair.needed) if pair.needed else None,
        )
        for run, pair in compared.against.items()
    )
    caveats = f" Beware: {about.traps}" if about.traps else ""
    note = (
        f"{about.label} against {compared.sides[0].name}, {compared.test} Questions needed: to see this difference with 80 % "
        f"power at the 5 % level, and for both ends of its interval. {about.label}: {about.definition}{caveats}"
    )
    columns: tuple[Column | str, ...] = (
        "run",
        "verdict",
        Column("difference", "delta"),
        Column("p", "p"),
        Column("p, corrected", "p"),
        *(Column(label, "count") for label in (more, "equal", less)),
        Column("questions needed", "text"),
    )
    units = dict.fromkeys(range(len(rows)), compared.measure.unit)
    return Table("", columns, rows, note=note, units=units)


def _gaps(pair: PairedComparison | None) -> tuple[Estimate | None, ...]:
    """Return the cell of a difference; no cell without a pair."""
    if pair is None:
        return ()
    return (None if pair.difference is None else pair.gap,)


def changes(differences: Sequence[Change], first: str, other: str) -> Table:
    """Return the settings that differ, one per row; ``first`` and ``other`` head the columns of values."""
    rows = tuple((change.where, change.a, change.b) for change in differences)
    return Table("", ("what", first, other), rows)
