"""Tables printed in papers, by paper and number, with our runs next to them, as values for the page and for files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from rallebench.core.errors import NotFoundError, RalleError
from rallebench.core.experiment_reports import OwnRow, SuiteReport
from rallebench.core.experiments import StoredExperiment
from rallebench.core.json_values import JsonObject
from rallebench.core.registry import unknown
from rallebench.core.report import Estimate
from rallebench.core.tables import Column, Figure, Table
from rallebench.experiments.benchmarks import (
    Benchmark,
    benchmarks,
    published_names,
    published_table,
    table_figures,
)
from rallebench.experiments.published.plots import OURS
from rallebench.experiments.published.tables import PublishedRow, PublishedTable
from rallebench.workspace.paths import WorkspaceFolder

TEXT = "text"
"""Number of the table that collects figures from a paper's running text."""
MAX_EXPERIMENTS = 20
"""Maximum experiments, newest first, whose rows are shown with a table."""


@dataclass(frozen=True, slots=True)
class Beside:
    """A row of ours, with its experiment."""

    experiment: str
    row: OwnRow

    @property
    def name(self) -> str:
        """The name shown for the row; see ``is_ours``."""
        n = max((mean.n for mean in self.row.cells.values()), default=0)
        count = f", n = {n:,}" if n else ""
        return f"{OURS}{self.row.system} ({self.experiment}{count})"


def list_tables() -> dict[str, list[tuple[str, str]]]:
    """Paper → (reference, description) of each of its tables."""
    return {
        value.tables: [(reference(name), published_table(name).about) for name in names]
        for value in benchmarks().values()
        if (names := value.table_files())
    }


def title(paper: str) -> str:
    """Return the title above the tables of a paper; its first word is ``paper``."""
    value = _benchmark(paper)[1]
    return value.tables_title or value.title


def benchmark_name(table: str) -> str:
    """Return the name of a table's benchmark, given the table's short name."""
    return _benchmark(table.partition(":")[0])[0]


def _benchmark(tables: str) -> tuple[str, Benchmark]:
    return next(item for item in benchmarks().items() if item[1].tables == tables)


def abouts() -> dict[str, str]:
    """Reference → description of the table."""
    return {name: about for tables in list_tables().values() for name, about in tables}


def search_tables(words: str) -> dict[str, list[tuple[str, str]]]:
    """Return the tables of ``list_tables`` that have all ``words`` in their name, description, headings or rows. A
    number must match as a whole: table 1 is not table 10.
    """
    whole = (
        rf"(?<![\w.]){part}(?![\w.])" if part.isdecimal() else re.escape(part)
        for part in words.lower().split()
    )
    parts = [re.compile(pattern) for pattern in whole]
    return {
        paper: fitting
        for paper, tables in list_tables().items()
        if (
            fitting := [
                (name, about)
                for name, about in tables
                if all(part.search(_searchable_text(name)) for part in parts)
            ]
        )
    }


def _searchable_text(name: str) -> str:
    value = open_table(name)
    paper, number = name.split(":")
    kind = "running text" if number == TEXT else f"table {number}"
    settings = (_plain(v) for row in value.rows for v in row.settings.values())
    systems = (row.system for row in value.rows)
    parts = (title(paper), kind, value.about, value.split, *value.columns)
    return " ".join((*parts, *systems, *settings)).lower()


def reference(name: str) -> str:
    """Return the short name of a table.

    >>> reference("ralle_table2"), reference("rgb_text_facts")
    ('ralle:2', 'rgb:text')
    """
    paper, _, rest = name.partition("_")
    return f"{paper}:{rest.removeprefix('table') if rest.startswith('table') else TEXT}"


def open_table(table: str) -> PublishedTable:
    """Return a table by its short name, such as ``ralle:2``. Raises NotFoundError."""
    known = {reference(name): name for name in published_names()}
    if table not in known:
        raise NotFoundError(unknown("published table", table, list(known)))
    return published_table(known[table])


# our runs


def is_ours(system: str) -> bool:
    """Return whether a row's name marks it as ours."""
    return system.startswith(OURS)


def own_rows(
    workspace: WorkspaceFolder, table: PublishedTable, names: Sequence[str] = ()
) -> list[Beside]:
    """Return our rows for a table, from the experiments ``names`` or the newest that have any; damaged experiments
    are skipped.

    Raises UsageError if a named experiment has none.
    """
    from rallebench.engine.experiment_store import ExperimentStore

    store, rows = ExperimentStore(workspace.path), []
    for name in names:
        own = own_rows_in(store.open(name), table.name)
        if not own:
            raise NotFoundError(
                f"The experiment {name!r} has nothing of this table ({reference(table.name)}); name one of its benchmark."
            )
        rows += [Beside(name, row) for row in own]
    for name in store.names() if not names else ():
        with suppress(RalleError):
            rows += [Beside(name, row) for row in own_rows_in(store.open(name), table.name)]
        if len({row.experiment for row in rows}) == MAX_EXPERIMENTS:
            break
    return rows


def own_rows_in(stored: StoredExperiment, table: str = "") -> list[OwnRow]:
    """Return the rows of an experiment for one printed table, or for all."""
    rows = stored.report.rows if isinstance(stored.report, SuiteReport) else ()
    return [row for row in rows if table in ("", row.table)]


def counts(workspace: WorkspaceFolder) -> dict[str, int]:
    """Reference → number of our experiments shown with the table."""
    from rallebench.engine.experiment_store import ExperimentStore

    store = ExperimentStore(workspace.path)
    experiments: dict[str, set[str]] = {}
    for name in store.names():
        with suppress(RalleError):
            for row in own_rows_in(store.open(name)):
                if not row.why:
                    experiments.setdefault(reference(row.table), set()).add(name)
    return {table: len(names) for table, names in experiments.items()}


def as_table(value: PublishedTable, own: Sequence[Beside] = ()) -> Table:
    """Return the table as printed, each cell as text and its second value in brackets, followed by our comparable
    rows. The note explains differences, and why other rows are left out.
    """
    columns = value.columns or tuple(dict.fromkeys(c for row in value.rows for c in row.values))
    settings = list(dict.fromkeys(name for row in value.rows for name in row.settings))
    heads = [Column("System", "text"), *(Column(name, "text") for name in settings)]
    units = dict.fromkeys(map(value.unit, columns))
    several = len(units) > 1
    heads += [Column(c, "text", value.unit(c) if several else "") for c in columns]
    rows = []
    for row in value.rows:
        cells: list[Any] = [row.system, *(_plain(row.settings.get(name)) for name in settings)]
        for column in columns:
            figure = value.cell_text(row, column) if column in row.values else ""
            extra = row.brackets.get(column)
            cells.append(figure if extra is None else f"{figure} ({value.number(column, extra)})")
        rows.append(tuple(cells))
    for beside in own:
        if not beside.row.why:
            mine = (_plain(beside.row.settings.get(name)) for name in settings)
            means = (_mean(value, column, beside.row.cells.get(column)) for column in columns)
            rows.append((beside.name, *mine, *means))
    unit = "" if several or not columns else f"All in: {next(iter(units))}."
    note = " ".join(filter(None, (f"{value.source}.", unit, comparison(own))))
    return Table(value.about, tuple(heads), tuple(rows), note=note)


def _mean(value: PublishedTable, column: str, mean: Estimate | None) -> str:
    """Return one of our means with the paper's number of digits, and its interval."""
    if mean is None or mean.value is None:
        return ""
    words = value.number(column, mean.value)
    if mean.low is None or mean.high is None:
        return words
    return f"{words} [{value.number(column, mean.low)}, {value.number(column, mean.high)}]"


def comparison(own: Sequence[Beside]) -> str:
    """Return sentences about differences from the paper, and about experiments of ours that are left out."""
    return " ".join(_notes(own))


def _notes(own: Sequence[Beside]) -> Iterator[str]:
    differing: dict[str, list[str]] = {}
    absent: dict[str, list[str]] = {}
    for beside in own:
        names = (absent if beside.row.why else differing).setdefault(
            beside.row.why or beside.row.note, []
        )
        if beside.experiment not in names:
            names.append(beside.experiment)
    for sentences, names in differing.items():
        yield f"Ours ({', '.join(names)}): {sentences}"
    for why, names in absent.items():
        yield f"Not beside it: {', '.join(names)} ({why})."


def figures(value: PublishedTable, own: Sequence[Beside] = ()) -> list[Figure]:
    """Draw the table as in the paper, with our rows marked."""
    ours = (
        PublishedRow(f"{b.row.system} ({b.experiment})", b.row.settings, b.row.cells, own=True)
        for b in own
        if not b.row.why
    )
    rows = (*value.rows, *ours)
    drawn, plots = table_figures(value)
    beside = (_with_source(plot.figure(rows), value.source) for plot in plots)
    return [figure for figure in (*drawn, *beside) if figure.series]


def _with_source(figure: Figure, source: str) -> Figure:
    """The figure with its printed series marked, if it has ours too."""
    printed = [name for name in figure.series if not name.startswith(OURS)]
    ours = len(printed) < len(figure.series)
    return replace(figure, printed=dict.fromkeys(printed, source)) if ours else figure


def document(value: PublishedTable, own: Sequence[Beside] = ()) -> JsonObject:
    """Return the table as one JSON document: the printed cells as numbers, then our rows."""
    rows = [
        {
            "system": row.system,
            "settings": dict(row.settings),
            "values": dict(row.values),
            "brackets": dict(row.brackets),
        }
        for row in value.rows
    ]
    facts = {name: getattr(value, name) for name in ("about", "source", "split", "n", "units")}
    return {
        "table": reference(value.name),
        **facts,
        "columns": list(value.columns),
        "rows": rows,
        "doubts": list(value.doubts),
        "ours": [{"experiment": b.experiment, **b.row.to_json()} for b in own],
    }


def _plain(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)
