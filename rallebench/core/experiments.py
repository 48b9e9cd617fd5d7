"""An experiment: a generator that yields requests for work, is sent their results, and returns a report.

It asks no model, writes no file and knows no progress; a player performs what it yields (``engine.driver``)::

    @SUITES.register("closed-book", settings={"data": Setting(str, "")})
    def closed_book(request):
        result = yield RunRequest(flow, DatasetRef(request.settings["data"]), examples, rates=rates, label="all")
        return Report({"em": result.mean("em")})

Whatever can be wrong is found before the first request is yielded: until then nothing is written. What fails while a request
is performed is thrown in where it was yielded: an experiment that catches it goes on without it.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Union

from rallebench.core.runs import RunRequest


@dataclass(frozen=True, slots=True)
class ExperimentRequest:
    """What an experiment is asked for.

    ``workspace`` resolves names; ``settings``: all of the experiment's own, checked; ``llm``: '' if none was named; ``limit``:
    the first so many questions. ``allow_python``: whether agents may run programs that a model wrote; the server decides
    that, it is no setting. ``kind``, ``name``: the experiment's, '' while it is only tried out.
    """

    workspace: Any
    llm: str
    settings: Mapping[str, Any]
    limit: int | None = None
    seed: int = 0
    allow_python: bool = False
    kind: str = ""
    name: str = ""

    def as_json(self) -> dict[str, Any]:
        """The request as it is stored."""
        return {
            "llm": self.llm,
            "settings": dict(self.settings),
            "limit": self.limit,
            "seed": self.seed,
        }


@dataclass(frozen=True, slots=True)
class IndexRequest:
    """The next runs search an index of this recipe: it is found or built, and an ``IndexResult`` is sent back.

    ``transient``: it is unloaded when the next one is asked for, or at the end.
    """

    label: str
    recipe: Any
    transient: bool = False


@dataclass(frozen=True, slots=True)
class IndexResult:
    """The workspace's index ``name`` is of the recipe. ``built``: for this; ``encoded``: passages encoded for it."""

    name: str
    built: bool = False
    encoded: int = 0


@dataclass(frozen=True, slots=True)
class Release:
    """These models and retrievers are not needed any more. None is sent back."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Notice:
    """Sentences that the user should read before the work goes on. None is sent back."""

    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class IndexCosts:
    """What the indexes of these recipes take. It is told to the user, and nothing is sent back."""

    recipes: tuple[Any, ...]


WorkRequest = Union[RunRequest, IndexRequest, IndexCosts, Notice, Release]


@dataclass(frozen=True, slots=True)
class Table:
    """A table as papers print it.

    ``rows``: as many cells as ``columns`` each (text, a number, a Mean, or None: not measured), the first the row's name.
    Shares are 0..1; ``percent``: they are shown ×100. ``note``: one sentence below it.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    percent: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """Lines over a number, or bars over names. ``series``: name → points (x, value), the value a number or a Mean, whose
    interval is drawn; ``kind``: ``line``, ``bar`` or ``scatter``."""

    title: str
    x: str
    y: str
    series: Mapping[str, tuple[tuple[Any, Any], ...]]
    kind: str = "line"


@dataclass(frozen=True, slots=True)
class Report:
    """What an experiment ends with.

    ``data``: JSON, its own words; ``notes``: sentences that a reader of the numbers must know; ``files``: path below the
    experiment's folder → text; ``files_to_edit``: the same for files that a person edits, written only where there is none;
    ``failed``: run that the experiment had to do without → why.
    """

    data: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    files_to_edit: Mapping[str, str] = field(default_factory=dict)
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)


Experiment = Generator[WorkRequest, Any, Report]
