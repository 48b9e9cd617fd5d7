"""Published benchmarks: titles, papers, printed tables, and digests of their questions.

A paper's benchmark is registered by ``benchmark.py`` in its folder of ``rallebench/papers``. The benchmarks in this package
use data that users download. A suite names its benchmark in the trait ``benchmark``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from rallebench.core.errors import NotFoundError
from rallebench.core.files import read_object
from rallebench.core.registry import Registry, unknown
from rallebench.core.tables import Figure
from rallebench.experiments import EXPERIMENTS, ExperimentFactory
from rallebench.experiments.published.plots import Plot, fit_plots
from rallebench.experiments.published.tables import PublishedTable, read_table

Drawing = Callable[[PublishedTable], Iterator[Figure]]


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A published benchmark.

    ``name``: its key in the registry; ``title``: its printed name; ``paper``: its arXiv id. ``folder`` contains
    ``published/``, with a JSON file for each printed table, and ``official.json``, the digests of its questions. ``tables``:
    the first word of its tables' names; ``tables_title``: the heading above them, if it differs from ``title``.
    ``first_suite``, ``first_table``: the initial choices on the page. ``ready``: a sentence on use without a download, which
    names each of ``languages``. ``needs_llm``: true if its suites need a model. ``order``: its position in lists. ``plots``:
    table → plots; ``drawings``: table → figures of printed values, without our rows.
    """

    name: str
    title: str
    paper: str
    folder: Path
    tables: str
    first_suite: str
    ready: str
    first_table: str = ""
    tables_title: str = ""
    languages: tuple[str, ...] = ("English",)
    needs_llm: bool = True
    order: int = 100
    plots: Mapping[str, tuple[Plot, ...]] = field(default_factory=dict)
    drawings: Mapping[str, Drawing] = field(default_factory=dict)

    def suite(
        self, name: str, **registered: Any
    ) -> Callable[[ExperimentFactory], ExperimentFactory]:
        """Decorator: register a suite of this benchmark; ``registered`` as in ``EXPERIMENTS``."""
        own = {"benchmark": self.name, "ready": self.ready, "needs_llm": self.needs_llm}
        return EXPERIMENTS.register(name, place="suites", **{**own, **registered})

    def table_files(self) -> dict[str, Path]:
        """Name → file of each table, by number; figures from the running text come last."""
        files = (self.folder / "published").glob(f"{self.tables}_*.json")
        return {path.stem: path for path in sorted(files, key=lambda path: (len(path.stem), path))}

    def question_sets(self) -> Mapping[str, Mapping[str, str]]:
        """Set → kind of digest → digest; {} if none is known."""
        path = self.folder / "official.json"
        sets: Mapping[str, Mapping[str, str]] = read_object(path)["sets"] if path.is_file() else {}
        return sets


BENCHMARKS: Registry[Benchmark] = Registry(
    "benchmark",
    "rallebench.experiments.benchmarks",
    expects="a Benchmark: its titles, its folder and its first suite",
    has=("title", "folder", "first_suite"),
    rooms=("benchmark",),
)


def benchmarks() -> dict[str, Benchmark]:
    """Name → benchmark, in display order."""
    known = {name: BENCHMARKS[name] for name in BENCHMARKS.names()}
    return dict(sorted(known.items(), key=lambda item: (item[1].order, item[1].title)))


def published_names() -> tuple[str, ...]:
    """Names of all printed tables, by benchmark and number: ``rgb_table1``, ``rgb_text_facts`` …"""
    return tuple(name for value in benchmarks().values() for name in value.table_files())


def table_file(name: str) -> Path:
    """The file of a printed table. Raises NotFoundError."""
    for value in benchmarks().values():
        if path := value.table_files().get(name):
            return path
    raise NotFoundError(unknown("published table", name, published_names()))


def published_table(name: str) -> PublishedTable:
    """The printed table with this name. Raises NotFoundError."""
    return _read(table_file(name))


_read = cache(read_table)


def table_figures(table: PublishedTable) -> tuple[tuple[Figure, ...], tuple[Plot, ...]]:
    """(figures of the printed values only, plots to which our rows can be added) of a printed table."""
    drawn: list[Figure] = []
    plots: list[Plot] = []
    for value in benchmarks().values():
        if draw := value.drawings.get(table.name):
            drawn += draw(table)
        plots += fit_plots(value.plots.get(table.name, ()), table)
    return tuple(drawn), tuple(plots)
