"""Registered experiments: sweeps, batches, baselines, trade-offs, the papers' suites, and dataset builders.

``EXPERIMENTS`` holds them all by their ``kind``, as written in ``experiment.json``. ``SUITES`` and ``BUILDERS`` each hold one
place, by the names that users write. :mod:`rallebench.core.experiments` defines an experiment.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rallebench.core.errors import NotFoundError
from rallebench.core.experiments import Experiment, ExperimentRequest
from rallebench.core.registered import Listed
from rallebench.core.registry import Entry, Registry, unknown
from rallebench.core.settings import check_values
from rallebench.core.types import Json

if TYPE_CHECKING:
    from rallebench.workspace.paths import WorkspaceFolder

ExperimentFactory = Callable[[ExperimentRequest["WorkspaceFolder"]], Experiment]

EXPERIMENTS: Registry[ExperimentFactory] = Registry(
    "experiment",
    "rallebench.experiments",
    expects="a generator (request) that yields requests of core.experiments and returns a Report",
    required={
        "place": ("suites", "builders", "sweeps", "runs", "batches", "tradeoffs", "improvements")
    },
    rooms=("*",),
    traits={
        "place": "where it is offered: suites, builders, sweeps, runs, batches, tradeoffs or improvements",
        "needs_llm": "whether it cannot do without a model; default true",
        "asks": "whether it asks models at all; default true",
        "named_by": "settings that are part of the default name of its runs",
        "articles": "whether a builder reads articles; default true",
        "competes": "whether its runs are alternatives of which one can win; default false: they are conditions or datasets",
        "benchmark": "of a suite, the name of its benchmark in BENCHMARKS",
        "ready": "of a suite: what works without a download, in which language",
        "error_categories": "of a suite that lists its errors in a file: the categories that a person may give them",
        "sets": "of a folder, the names of the sets that its setting set may name",
    },
)


@dataclass(frozen=True, slots=True)
class ExperimentGroup:
    """The experiments with the trait ``place`` = ``name``. ``noun``: the word for one experiment; ``prefix``: the start of
    their kinds, dropped from their names."""

    name: str
    noun: str
    prefix: str = ""

    def names(self) -> tuple[str, ...]:
        """The names without ``prefix``, in alphabetical order."""
        return tuple(
            kind.removeprefix(self.prefix)
            for kind in EXPERIMENTS.names()
            if EXPERIMENTS.listing(kind).traits["place"] == self.name
        )

    def kind(self, name: str) -> str:
        """The kind of the experiment with this name.

        >>> BUILDERS.kind("crud"), SUITES.kind("crud")
        ('build-crud', 'crud')
        """
        return self.prefix + name

    def strip_prefix(self, kind: str) -> str:
        """The name of a kind; '' for a kind of another place.

        >>> BUILDERS.strip_prefix("build-crud"), BUILDERS.strip_prefix("crud")
        ('crud', '')
        """
        name = kind.removeprefix(self.prefix)
        return name if self.kind(name) == kind and name in self else ""

    def entry(self, name: str) -> Entry[ExperimentFactory]:
        """The entry of ``name``. Raises NotFoundError with similar names."""
        if name not in self:
            raise NotFoundError(unknown(self.noun, name, self.names()))
        return replace(EXPERIMENTS.entry(self.kind(name)), name=name)

    def settings(self, name: str, written: Json) -> Json:
        """All settings of ``name``; ``written``: the values set by the user. Raises UsageError."""
        return check_values(f"{self.noun} {name!r}", self.entry(name).form, written)

    def listings(self) -> dict[str, Listed]:
        """Name → its description and plain traits, without importing the experiments."""
        return {name: EXPERIMENTS.listing(self.kind(name)) for name in self.names()}

    def __contains__(self, name: object) -> bool:
        kind = self.kind(str(name))
        return kind in EXPERIMENTS and EXPERIMENTS.listing(kind).traits["place"] == self.name


SUITES = ExperimentGroup("suites", "suite")
BUILDERS = ExperimentGroup("builders", "dataset builder", "build-")
