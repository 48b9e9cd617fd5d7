"""An experiment: a generator that yields requests for work, is sent their results, and returns a report.

It asks no model, writes no file and reports no progress; a player performs its requests (``engine.driver``)::

    @dataclass(frozen=True, slots=True)
    class ClosedBookSettings:
        data: str = declare(str, "", about="the questions", names="dataset")

    @EXPERIMENTS.register("closed-book", place="suites", form=dataclass_form(ClosedBookSettings))
    def closed_book(request):
        settings = request.read(ClosedBookSettings)
        result = yield RunRequest(flow, DatasetRef(settings.data), examples, scorers=(scorer,), label="all")
        return Report({"em": result.mean("em")})

All errors in the request are raised before the first yield; until then nothing is written. The error of a failed request
is thrown in at its yield; an experiment that catches it continues without that result.
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
from rallebench.core.types import Episode, Flow, Json

T = TypeVar("T", bound=DataClass)

FOLDER = "experiments"
"""The folder of all experiments in a workspace."""

Row = dict[str, Any]
"""A row of a file that a person may edit: ``id``, ``keep`` (whether it is used), ``why`` (the reason if it is not) and others."""

PILOT_QUESTIONS, TRADEOFF_QUESTIONS = 3, 200
"""Questions of each run that a pilot asks, and that a trade-off asks, unless other numbers are given."""


@dataclass(frozen=True, slots=True)
class RequestContent:
    """The content of a request for an experiment, as it is stored. ``llm``: a name or ''; ``limit``: number of questions, from the
    first on."""

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


@dataclass(frozen=True, slots=True)
class ExperimentRequest:
    """The request for an experiment.

    ``workspace`` resolves names; ``settings``: all of the experiment's own, checked; ``llm``: a name or ''; ``limit``:
    the number of questions, from the first on. ``allow_python``: whether agents may run a model's programs; the server
    decides this, so it is not a setting. ``kind``, ``name``: the experiment's, '' in a dry run.
    """

    workspace: Any
    llm: str
    settings: Json
    limit: int | None = None
    seed: int = 0
    allow_python: bool = False
    kind: str = ""
    name: str = ""

    def read(self, shape: type[T]) -> T:
        """The settings as the dataclass whose declared fields are the experiment's form."""
        return fill(shape, self.settings)

    @property
    def folder(self) -> Path:
        """The folder of the experiment's own files."""
        return Path(self.workspace.path) / FOLDER / self.name

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

    ``corpus``: a file or folder of documents, an imported corpus, or an index, whose passages are then the documents.
    ``encoder``: '' for a kind without one. ``form``: the corpus's format; '' recognises it. ``settings``: all of the kind's.
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
    """The request for an index of this recipe, existing or new, for the next runs; the reply is an ``IndexResult``.

    ``transient``: it is unloaded at the next request for an index, or at the end.
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
    """The input that a stage makes rows of."""

    @property
    def id(self) -> str: ...


class NewRow(RowInput, Protocol):
    """A row as a stage makes it."""

    def to_json(self) -> Json: ...


@dataclass(frozen=True, slots=True)
class RowId:
    """A row, or an input, of which only the id matters."""

    id: str


In = TypeVar("In", bound=RowInput)


@dataclass(frozen=True, slots=True)
class RowsRequest(Generic[In]):
    """The request for the file ``<label>.jsonl``, of which a person may edit every row; the reply is an ``engine.RowFile``.

    ``about``: the rows in a word or two. ``inputs``: the inputs that rows are made of. Either ``make`` gives an
    input's rows without a model, or ``flow`` asks ``llms`` about it and ``read`` gives the rows of its episode, also of one that
    failed (``episode.error``; such a row has ``error`` and is tried again the next time). ``depends_on``: all that an input's
    rows depend on, JSON-able; rows that were made of something else are made again, rows that a person edited never.
    ``source``: a digest of all that ``inputs`` reads; a complete file with the same digest is not made again.
    ``summary``: facts about the inputs once they have been read, JSON-able; its ``left_out`` (reason → number) joins the counts.
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
    """The request for measurements by a program of its own, ``python -m module JOB.json`` (see ``engine.measure``).

    ``job``: JSON, all that changes a measurement; the same job is measured once. The reply is a tuple of JSON objects.
    """

    label: str
    module: str
    job: Json


@dataclass(frozen=True, slots=True)
class Release:
    """These models and retrievers are no longer needed and may be unloaded. The reply is None."""

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
    below the experiment's folder → text, or pieces of it; ``files_to_edit``: the same for files that a person edits, written only if
    absent; ``failed``: failed run → reason. ``questions``: records in KILT's form, which become the dataset of the experiment's name.
    ``result``: the whole of ``report.json``, of an experiment that is neither a suite nor a builder.
    """

    data: Json = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    files: Mapping[str, str | Iterable[str]] = field(default_factory=dict)
    files_to_edit: Mapping[str, str] = field(default_factory=dict)
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)
    questions: tuple[Json, ...] = ()
    result: ExperimentReport | None = None


@dataclass(frozen=True, slots=True)
class FilledRows:
    """A file of rows that is complete."""

    label: str
    about: str
    path: Path
    counts: StageCounts


@dataclass(frozen=True, slots=True)
class ExperimentResult:
    """An experiment that has ended. ``folder`` holds its report and the files that it made; ``stored``: the content of
    ``report.json``; ``warning``: why MLflow does not show it as one, '' if it does."""

    request: ExperimentRequest
    folder: Path
    runs: tuple[RunResult, ...]
    report: Report
    files: tuple[str, ...] = ()
    stored: ExperimentReport | None = None
    warning: str = ""
    rows: tuple[FilledRows, ...] = ()


@dataclass(frozen=True, slots=True)
class StoredExperiment:
    """An experiment that was begun. ``runs``: label → run; ``report``: None until it has ended."""

    name: str
    kind: str
    request: RequestContent
    runs: Mapping[str, str] = field(default_factory=dict)
    report: ExperimentReport | None = None


Experiment = Generator[WorkRequest, Any, Report]
