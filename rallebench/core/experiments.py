"""An experiment: a generator that yields requests for work, receives their results, and returns a report.

An experiment calls no model, writes no file and reports no progress; a player performs its requests (``engine.driver``)::

    @dataclass(frozen=True, slots=True)
    class ClosedBookSettings:
        data: str = declare(str, "", about="the questions", names="dataset")

    @EXPERIMENTS.register("closed-book", place="suites", form=dataclass_form(ClosedBookSettings))
    def closed_book(request):
        settings = request.read(ClosedBookSettings)
        result = yield RunRequest(flow, DatasetRef(settings.data), examples, scorers=(scorer,), label="all")
        return Report({"em": result.mean("em")})

All errors in the request are raised before the first yield; until then nothing is written. The error of a failed request
is thrown into the experiment at its yield. An experiment that catches it continues without that result.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar, Union

from rallebench.core.chunking import Chunking
from rallebench.core.experiment_reports import ExperimentReport, StageCounts
from rallebench.core.json_values import JsonValue
from rallebench.core.runs import RunRequest, RunResult
from rallebench.core.settings import DataClass, fill
from rallebench.core.tables import Figure, Table
from rallebench.core.types import Chain, Episode, Flow, Json

T = TypeVar("T", bound=DataClass)

FOLDER = "experiments"
"""The folder of all experiments in a workspace."""

Row = dict[str, Any]
"""A row of a file that a person may edit: ``id``, ``keep`` (true if it is used), ``why`` (the reason if not) and
others."""

PILOT_QUESTIONS, TRADEOFF_QUESTIONS = 3, 200
"""Questions per run of a pilot, and of a trade-off, by default."""


@dataclass(frozen=True, slots=True)
class RequestContent:
    """The content of a request for an experiment, as stored. ``llm``: a name or ''; ``limit``: number of questions, from
    the first on."""

    llm: str = ""
    settings: Json = field(default_factory=dict)
    limit: int | None = None
    seed: int = 0

    def to_json(self) -> dict[str, JsonValue]:
        """The entry in ``experiment.json``."""
        return {
            "llm": self.llm,
            "settings": dict(self.settings),
            "limit": self.limit,
            "seed": self.seed,
        }


class HasFolder(Protocol):
    """A workspace, as far as core knows it."""

    @property
    def path(self) -> Path: ...


W = TypeVar("W", bound=HasFolder)
W_co = TypeVar("W_co", bound=HasFolder, covariant=True)


@dataclass(frozen=True, slots=True)
class ExperimentRequest(Generic[W_co]):
    """The request for an experiment.

    ``workspace`` resolves names; ``settings``: all settings of the experiment, checked; ``llm``: a name or ''; ``limit``:
    the number of questions, from the first on. ``allow_python``: True if agents may run a model's programs; the server
    decides this, so it is not a setting. ``kind``, ``name``: the experiment's, '' in a dry run.
    """

    workspace: W_co
    llm: str
    settings: Json
    limit: int | None = None
    seed: int = 0
    allow_python: bool = False
    kind: str = ""
    name: str = ""

    def read(self, shape: type[T]) -> T:
        """The settings as the dataclass whose declared fields form the experiment's settings."""
        return fill(shape, self.settings)

    @property
    def folder(self) -> Path:
        """The folder of the experiment's own files."""
        return self.workspace.path / FOLDER / self.name

    @property
    def content(self) -> RequestContent:
        """Model, settings, limit and seed; kind, name and workspace are left out."""
        return RequestContent(self.llm, self.settings, self.limit, self.seed)

    def to_json(self) -> dict[str, JsonValue]:
        """The content as JSON."""
        return self.content.to_json()


@dataclass(frozen=True, slots=True)
class IndexRecipe:
    """Everything that defines an index. Create one with ``index_recipe``, which checks it.

    ``corpus``: a file or folder of documents, an imported corpus, or an index with passages that serve as documents.
    ``encoder``: '' for a kind without one. ``form``: the corpus's format; '' detects it. ``settings``: all settings of the
    kind.
    """

    corpus: Path
    kind: str
    encoder: str = ""
    chunking: Chunking | None = None
    form: str = ""
    page_map: Path | None = None
    settings: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class IndexRequest:
    """The request for an index of this recipe, existing or new, for the next runs. The reply is an ``IndexResult``.

    ``transient``: the index is unloaded at the next request for an index, or at the end.
    """

    label: str
    recipe: IndexRecipe
    transient: bool = False


@dataclass(frozen=True, slots=True)
class IndexResult:
    """The index ``name`` of the recipe. ``built``: it is new; ``encoded``: the number of newly encoded passages."""

    name: str
    built: bool = False
    encoded: int = 0


class RowInput(Protocol):
    """An input from which a stage makes rows."""

    @property
    def id(self) -> str: ...


class NewRow(RowInput, Protocol):
    """A new row of a stage."""

    def to_json(self) -> Json: ...


@dataclass(frozen=True, slots=True)
class RowId:
    """The id of a row or an input; its other fields are ignored."""

    id: str


In = TypeVar("In", bound=RowInput)


@dataclass(frozen=True, slots=True)
class RowsRequest(Generic[In]):
    """The request for the file ``<label>.jsonl``, in which a person may edit every row. The reply is an
    ``engine.RowFile``.

    ``about``: the rows in a word or two. ``inputs``: the inputs from which rows are made. Either ``make`` gives an input's
    rows without a model, or ``flow`` asks ``llms`` about it and ``read`` gives the rows of its episode, even of a failed
    one (``episode.error``; such a row has ``error`` and is tried again next time). ``depends_on``: JSON-able, everything
    that determines an input's rows. Rows made from other values are made again; edited rows never are. ``source``: a
    digest of everything that ``inputs`` reads; a complete file with the same digest is not made again. ``summary``: facts
    about the inputs after reading, JSON-able; its ``left_out`` (reason → number) joins the counts.
    """

    label: str
    about: str
    inputs: Callable[[], Iterable[In]]
    make: Callable[[In], Sequence[Row | NewRow]] | None = None
    flow: Callable[[In], Flow] | None = None
    read: Callable[[In, Episode], Sequence[Row | NewRow]] | None = None
    depends_on: Callable[[In], Any] = lambda entry: None
    llms: tuple[str, ...] = ()
    source: str = ""
    summary: Callable[[], Json] = dict


@dataclass(frozen=True, slots=True)
class MeasureRequest:
    """The request for measurements in a separate process, ``python -m module JOB.json`` (see ``engine.measure``).

    ``job``: JSON, everything that changes a measurement; the same job is measured once. The reply is a tuple of JSON
    objects.
    """

    label: str
    module: str
    job: Json


@dataclass(frozen=True, slots=True)
class Release:
    """The request to unload models and retrievers that are no longer needed. The reply is None."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Notice:
    """Sentences for the user, before the work continues. The reply is None."""

    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class IndexCosts:
    """The costs of the indexes of these recipes, for the user. The reply is None."""

    recipes: tuple[IndexRecipe, ...]


WorkRequest = Union[
    RunRequest, IndexRequest, RowsRequest[Any], MeasureRequest, IndexCosts, Notice, Release
]


@dataclass(frozen=True, slots=True)
class Report:
    """The result of an experiment.

    ``data``: JSON with the experiment's own keys; ``notes``: sentences for the reader of the numbers; ``files``: path
    below the experiment's folder → text, or pieces of it; ``files_to_edit``: the same for files that a person edits, never
    overwritten; ``failed``: failed run → reason. ``questions``: records in KILT's form, which become a dataset with the
    experiment's name; ``chain``: becomes a saved chain of that name. ``result``: the whole of ``report.json``, for an experiment
    that is neither a suite nor a builder.
    """

    data: Json = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    files: Mapping[str, str | Iterable[str]] = field(default_factory=dict)
    files_to_edit: Mapping[str, str] = field(default_factory=dict)
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)
    questions: tuple[Json, ...] = ()
    chain: Chain | None = None
    result: ExperimentReport | None = None


@dataclass(frozen=True, slots=True)
class FilledRows:
    """A complete file of rows."""

    label: str
    about: str
    path: Path
    counts: StageCounts


@dataclass(frozen=True, slots=True)
class ExperimentResult:
    """An experiment that has ended. ``folder`` holds its report and its files; ``stored``: the content of ``report.json``;
    ``warning``: the reason why MLflow does not show it as one experiment, or ''."""

    request: ExperimentRequest[HasFolder]
    folder: Path
    runs: tuple[RunResult, ...]
    report: Report
    files: tuple[str, ...] = ()
    stored: ExperimentReport | None = None
    warning: str = ""
    rows: tuple[FilledRows, ...] = ()


@dataclass(frozen=True, slots=True)
class StoredExperiment:
    """An experiment that was begun. ``runs``: label → run; ``report``: None before its end."""

    name: str
    kind: str
    request: RequestContent
    runs: Mapping[str, str] = field(default_factory=dict)
    report: ExperimentReport | None = None


Experiment = Generator[WorkRequest, Any, Report]
