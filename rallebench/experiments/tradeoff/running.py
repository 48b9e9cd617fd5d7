"""The index trade-off as an experiment: every index at every search setting, each measured in its own process."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rallebench.core.errors import RalleError, UsageError
from rallebench.core.experiment_reports import Point, TradeoffReport
from rallebench.core.experiments import (
    Experiment,
    ExperimentRequest,
    IndexRequest,
    MeasureRequest,
    Report,
)
from rallebench.core.json_values import object_json
from rallebench.core.registry import unknown
from rallebench.core.settings import check_values, fill
from rallebench.core.starter import STARTER_INDEXES
from rallebench.core.types import Episode, Example, Hit, Outcome, Passage, Reply, Retrieve, Step
from rallebench.datasets.reading import read_questions
from rallebench.engine.clusters import find_clusters
from rallebench.engine.statistics import means
from rallebench.experiments import EXPERIMENTS
from rallebench.experiments.tradeoff.measurements import (
    ExactJob,
    ExactNeighbours,
    Measurement,
    ProbeJob,
)
from rallebench.metrics import METRICS
from rallebench.retrievers import INDEX_KINDS, search_form
from rallebench.vector_indexes import VECTOR_INDEXES
from rallebench.workspace.indexes.recipes import starter_recipe
from rallebench.workspace.paths import WorkspaceFolder

QUALITY = {"Rprec": 1, "success_rate@1": 1, "success_rate@5": 5, "success_rate@10": 10}
"""Metrics of the retrieved pages, and the smallest k that defines each."""

BATCH, ROUNDS = 64, 3
PROGRAMS = "rallebench.experiments.tradeoff"


@dataclass(frozen=True, slots=True)
class TradeoffSettings:
    """The stored settings of a trade-off. ``sweep``: search setting → values that replace each kind's own."""

    indexes: Sequence[str]
    dataset: str
    k: int = 10
    sweep: Mapping[str, Sequence[Any]] = field(default_factory=dict)


def tradeoff_settings(
    indexes: Sequence[str],
    dataset: str,
    *,
    k: int = 10,
    swept: Mapping[str, Sequence[Any]] | None = None,
) -> dict[str, Any]:
    """The settings of a trade-off. ``swept``: search setting → values that replace each kind's own."""
    values = {name: list(values) for name, values in (swept or {}).items()}
    return {"indexes": list(indexes), "dataset": dataset, "k": k, "sweep": values}


def read_swept(texts: Sequence[str], flag: str = "") -> dict[str, list[str]]:
    """Parse ``key=a,b`` texts into key → values. Raises UsageError for any other form; ``flag`` precedes the text in the
    message.

    >>> read_swept(["ef_search=16, 64"])
    {'ef_search': ['16', '64']}
    """
    swept = {}
    for text in texts:
        name, equals, listed = text.partition("=")
        values = [value.strip() for value in listed.split(",") if value.strip()]
        if not equals or not name.strip() or not values:
            raise UsageError(
                f"{flag}{text!r} should read key=value,value, as in ef_search=16,64,256."
            )
        swept[name.strip()] = values
    return swept


def search_settings(
    kind: str, swept: Mapping[str, Sequence[Any]] | None = None
) -> list[dict[str, Any]]:
    """The search settings to try for a kind. Each setting is varied in turn, with its default among the values.

    ``swept``: setting → values that replace the kind's own; settings that the kind lacks are ignored.
    """
    form = search_form(kind)
    if swept:
        own = [name for name in swept if name in form]
        return [{name: form[name].reads(value)} for name in own for value in swept[name]] or [{}]
    tried: list[dict[str, Any]] = []
    for name, setting in form.items():
        values = sorted({*setting.sweep, setting.default}) if setting.sweep else []
        # The default is shared by all settings, so it is tried only once, with the first.
        tried += [{name: value} for value in values if not tried or value != setting.default]
    return tried or [{}]


@EXPERIMENTS.register("tradeoff", place="tradeoffs", competes=True)
def tradeoff(request: ExperimentRequest[WorkspaceFolder]) -> Experiment:
    """Measure every index. One that fails is a Point with its error, and the others are measured."""
    workspace, settings = request.workspace, request.read(TradeoffSettings)
    indexes, k = settings.indexes, settings.k
    if request.limit is not None and request.limit < 1:
        raise UsageError(f"The number of questions is {request.limit}; it must be at least 1.")
    examples = read_questions(workspace.dataset(settings.dataset)[1], request.limit)
    _check(workspace, indexes, k, settings.sweep)
    exact: Exact = {}
    points: list[Point] = []
    for name in indexes:
        index = name
        try:
            if name in STARTER_INDEXES and name not in workspace.manifests():
                index = (yield IndexRequest(name, starter_recipe(name))).name
            points += yield from _points(request, settings, examples, name, index, exact)
        except RalleError as error:
            manifest = workspace.manifests().get(index)
            kind = manifest.kind if manifest else ""
            points.append(Point(name, kind, k=k, n=len(examples), error=str(error)))
    n = max((point.n for point in points), default=0)
    result = TradeoffReport(request.name, settings.dataset, k, n, tuple(points))
    failed = {point.index: point.error for point in points if point.error}
    return Report(failed=failed, result=result)


Exact = dict[tuple[str, str], ExactNeighbours]
"""(corpus, encoder) → the vectors of the questions and their exact neighbours, shared by all indexes over the same vectors."""


def _points(
    request: ExperimentRequest[WorkspaceFolder],
    settings: TradeoffSettings,
    examples: Sequence[Example],
    name: str,
    index: str,
    exact: Exact,
) -> Generator[MeasureRequest, Any, list[Point]]:
    """The points of one retriever; ``index``: its folder if it is an index."""
    workspace, k = request.workspace, settings.k
    manifests = workspace.manifests()
    manifest = manifests.get(index)
    parts = [index] if manifest else workspace.component_indexes(name)
    fingerprints = [manifests[part].fingerprint for part in parts if part in manifests]
    texts = [example.question.text for example in examples]
    job = ExactJob(str(workspace.path), index, fingerprints, k, texts)
    neighbours = ExactNeighbours()
    if manifest is not None and manifest.kind in VECTOR_INDEXES:
        key = (manifest.corpus_sha256, manifest.encoder)
        if key not in exact:
            lines = yield MeasureRequest(f"{name} exact", f"{PROGRAMS}.exact", object_json(job))
            exact[key] = fill(ExactNeighbours, lines[0]) if lines else ExactNeighbours()
        neighbours = exact[key]
    kind, swept = (manifest.kind if manifest else "combined"), settings.sweep
    tried = search_settings(kind, swept) if manifest else [{}]
    probe = ProbeJob(
        job.workspace, index, fingerprints, k, texts, BATCH, ROUNDS, tried, neighbours.vectors
    )
    lines = yield MeasureRequest(name, f"{PROGRAMS}.probe", object_json(probe))
    nearest = neighbours.nearest
    measured = [fill(Measurement, line) for line in lines]
    scored = [
        _means(
            {
                **({} if nearest is None else {"recall": _recalls(line.docs, nearest, k)}),
                **_qualities(line.pages, examples, k),
            },
            examples,
        )
        for line in measured
    ]
    return [
        Point(
            index=name,
            kind=kind,
            knobs=line.knobs,
            k=k,
            n=len(examples),
            recall=None if nearest is None else values.pop("recall", 0.0),
            quality=values,
            intervals=intervals,
            n_gold=sum(any(example.gold.provenance) for example in examples),
            single_ms=line.single_ms,
            batch_ms=line.batch_ms,
            encode_ms=neighbours.encode_ms,
            ram=line.ram,
            disk=manifest.bytes if manifest else 0,
            build_seconds=manifest.seconds if manifest else 0.0,
            passages=manifest.passages if manifest else 0,
        )
        for line, (values, intervals) in zip(measured, scored)
    ]


def _check(
    workspace: WorkspaceFolder, indexes: Sequence[str], k: int, swept: Mapping[str, Sequence[Any]]
) -> None:
    """Raise UsageError for an unknown index, a bad k, and search settings or values that no index accepts."""
    if not indexes:
        raise UsageError("No index is chosen; name at least one.")
    for name in set(indexes) - workspace.retrievers().keys():
        workspace.retriever(name)  # raises UsageError, or returns an explicit combination
    if not 1 <= k <= 1000:
        raise UsageError(f"k is {k}; it must be from 1 to 1000.")
    kinds = {**STARTER_INDEXES, **{n: m.kind for n, m in workspace.manifests().items()}}
    forms = {
        kinds[name]: search_form(kinds[name]) for name in indexes if kinds.get(name) in INDEX_KINDS
    }
    known = sorted({name for form in forms.values() for name in form})
    for name, values in swept.items():
        if name not in known:
            raise UsageError(unknown("setting of these indexes' search", name, known))
        for kind, form in forms.items():
            for value in values if name in form else ():
                check_values(f"index kind {kind!r}", form, {name: value}, noun="search setting")


Column = Sequence["float | None"]
"""A value per question, None if it does not count."""


def _means(
    columns: Mapping[str, Column], examples: Sequence[Example]
) -> tuple[dict[str, float], dict[str, tuple[float, float]]]:
    """(means, 95 % intervals over articles) of the columns; without those that score no question."""
    clusters = find_clusters(examples).labels([example.question.qid for example in examples])
    estimates = means(columns, clusters, dict.fromkeys(columns, (0.0, 1.0)))
    values = {name: mean.value for name, mean in estimates.items() if mean.value is not None}
    intervals = {
        name: (mean.low, mean.high)
        for name, mean in estimates.items()
        if mean.low is not None and mean.high is not None
    }
    return values, intervals


def _recalls(ids: Sequence[Sequence[str]], nearest: Sequence[Sequence[str]], k: int) -> Column:
    """Each question's share of the exact k nearest passages among the retrieved ``ids``."""
    return [
        min(1.0, len(set(exact).intersection(hits)) / min(k, len(exact))) if exact else None
        for hits, exact in zip(ids, nearest)
    ]


def _qualities(
    pages: Iterable[Sequence[str]], examples: Sequence[Example], k: int
) -> dict[str, Column]:
    """The metrics allowed by k of every question with gold pages."""
    names = [name for name, least in QUALITY.items() if least <= k]
    values: dict[str, list[float | None]] = {name: [] for name in names}
    for page_ids, example in zip(pages, examples):
        passages = (Passage(str(rank), "", page_id=page) for rank, page in enumerate(page_ids))
        hits = tuple(Hit(passage, -rank) for rank, passage in enumerate(passages))
        step = Step(Retrieve("", example.question.text, k), Reply("", hits))
        episode = Episode(example.question.qid, "chain", (step,), Outcome(""))
        scored = any(example.gold.provenance)
        for name in names:
            value = METRICS[name](episode, example.gold) or 0.0 if scored else None
            values[name].append(value)
    return dict(values)
