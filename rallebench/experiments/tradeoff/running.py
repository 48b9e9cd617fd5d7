"""The index trade-off as an experiment: every index at every setting of its search, measured in processes of their own."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import Any

from rallebench.core.entries import Manifest
from rallebench.core.errors import RalleError, UsageError
from rallebench.core.experiments import (
    Experiment,
    ExperimentRequest,
    IndexRequest,
    MeasureRequest,
    Report,
)
from rallebench.core.registry import unknown
from rallebench.core.settings import checked
from rallebench.core.types import Episode, Example, Hit, Outcome, Passage, Reply, Retrieve, Step
from rallebench.datasets.reading import read_questions
from rallebench.experiments import EXPERIMENTS
from rallebench.experiments.sweeps.indexing import starter_index
from rallebench.experiments.tradeoff import Point, Tradeoff
from rallebench.metrics import METRICS
from rallebench.retrievers import INDEX_KINDS, search_form
from rallebench.vector_indexes import VECTOR_INDEXES
from rallebench.workspace.paths import STARTER_INDEXES, Workspace

QUALITY = {"Rprec": 1, "success_rate@1": 1, "success_rate@5": 5, "success_rate@10": 10}
"""Metrics of the retrieved pages, and the k from which they are defined."""

BATCH, ROUNDS, QUESTIONS = 64, 3, 200
PROGRAMS = "rallebench.experiments.tradeoff"


def tradeoff_settings(
    indexes: Sequence[str],
    dataset: str,
    *,
    k: int = 10,
    swept: Mapping[str, Sequence[Any]] | None = None,
) -> dict[str, Any]:
    """The settings of a trade-off. ``swept``: setting of a search → its values, in place of each kind's own."""
    values = {name: list(values) for name, values in (swept or {}).items()}
    return {"indexes": list(indexes), "dataset": dataset, "k": k, "sweep": values}


def read_swept(texts: Sequence[str], flag: str = "") -> dict[str, list[str]]:
    """``key=a,b`` texts → key → values; UsageError for what does not read so. ``flag`` stands before it in the sentence.

    >>> read_swept(["ef_search=16, 64"])
    {'ef_search': ['16', '64']}
    """
    swept = {}
    for text in texts:
        name, equals, rest = text.partition("=")
        values = [value.strip() for value in rest.split(",") if value.strip()]
        if not equals or not name.strip() or not values:
            raise UsageError(
                f"{flag}{text!r} should read key=value,value, as in ef_search=16,64,256."
            )
        swept[name.strip()] = values
    return swept


def settings_of(
    kind: str, swept: Mapping[str, Sequence[Any]] | None = None
) -> list[dict[str, Any]]:
    """The search settings that are tried for a kind: one after the other swept, its default among them.

    ``swept``: setting → values in place of the kind's own; settings that the kind lacks are left out.
    """
    form = search_form(kind)
    if swept:
        own = [name for name in swept if name in form]
        return [{name: form[name].reads(value)} for name in own for value in swept[name]] or [{}]
    tried: list[dict[str, Any]] = []
    for name, setting in form.items():
        values = sorted({*setting.sweep, setting.default}) if setting.sweep else []
        # The first setting's default stands for those of all.
        tried += [{name: value} for value in values if not tried or value != setting.default]
    return tried or [{}]


@EXPERIMENTS.register("tradeoff", place="tradeoffs")
def tradeoff(request: ExperimentRequest) -> Experiment:
    """Measure every index. One that fails is a Point with its error, and the others are measured."""
    workspace, settings = request.workspace, request.settings
    indexes, k = settings["indexes"], settings["k"]
    if request.limit is not None and request.limit < 1:
        raise UsageError(f"The number of questions is {request.limit}; it must be at least 1.")
    examples = read_questions(workspace.dataset(settings["dataset"])[1], request.limit)
    _check(workspace, indexes, k, settings["sweep"])
    measurement = _Measurement(workspace, examples, k, settings["sweep"])
    points: list[Point] = []
    for name in indexes:
        index = name
        try:
            if name in STARTER_INDEXES and name not in workspace.manifests():
                index = (yield IndexRequest(name, starter_index(name))).name
            points += yield from measurement.points(name, index)
        except RalleError as error:
            manifest = workspace.manifests().get(index)
            kind = manifest.kind if manifest else ""
            points.append(Point(name, kind, k=k, n=len(examples), error=str(error)))
    n = max((point.n for point in points), default=0)
    result = Tradeoff(request.name, settings["dataset"], k, n, tuple(points))
    failed = {point.index: point.error for point in points if point.error}
    return Report(result.as_json(), failed=failed)


def _check(
    workspace: Workspace, indexes: Sequence[str], k: int, swept: Mapping[str, Sequence[Any]]
) -> None:
    """Raise UsageError for an unknown index, for k, for a setting that no index has, and for a value it cannot take."""
    if not indexes:
        raise UsageError("No index is chosen; name at least one.")
    for name in set(indexes) - workspace.retrievers().keys():
        workspace.retriever(name)  # a combination that is written out, or UsageError
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
                checked(f"index kind {kind!r}", form, {name: value}, noun="setting of its search")


class _Measurement:
    """What all indexes are measured with: the questions, their vectors and their exact neighbours."""

    def __init__(
        self,
        workspace: Workspace,
        examples: Sequence[Example],
        k: int,
        swept: Mapping[str, Sequence[Any]],
    ) -> None:
        self._workspace, self._examples, self._k, self._swept = workspace, examples, k, swept
        self._texts = [example.question.text for example in examples]
        self._exact: dict[tuple[str, str], Mapping[str, Any]] = {}

    def points(self, name: str, index: str) -> Generator[MeasureRequest, Any, list[Point]]:
        """The points of one retriever; ``index``: its folder, where it is an index."""
        manifest = self._workspace.manifests().get(index)
        exact: Mapping[str, Any] = {}
        if manifest is not None and manifest.kind in VECTOR_INDEXES:
            exact = yield from self._exact_of(name, index, manifest)
        kind = manifest.kind if manifest else "combined"
        lines = yield MeasureRequest(
            name,
            f"{PROGRAMS}.probe",
            {
                **self._job(name, index),
                "batch": BATCH,
                "rounds": ROUNDS,
                "settings": settings_of(kind, self._swept) if manifest else [{}],
                "vectors": exact.get("vectors"),
            },
        )
        nearest = exact.get("nearest")
        return [
            Point(
                index=name,
                kind=kind,
                knobs=line["knobs"],
                k=self._k,
                n=len(self._examples),
                recall=None if nearest is None else _recall(line["docs"], nearest, self._k),
                **_quality(line["pages"], self._examples, self._k),
                single_ms=line["single_ms"],
                batch_ms=line["batch_ms"],
                encode_ms=exact.get("encode_ms"),
                ram=line["ram"],
                disk=manifest.bytes if manifest else 0,
                build_seconds=manifest.seconds if manifest else 0.0,
                passages=manifest.passages if manifest else 0,
            )
            for line in lines
        ]

    def _exact_of(
        self, name: str, index: str, manifest: Manifest
    ) -> Generator[MeasureRequest, Any, Mapping[str, Any]]:
        """The questions' vectors and exact neighbours, once for all indexes over the same vectors."""
        key = (manifest.corpus_sha256, manifest.encoder)
        if key not in self._exact:
            program = f"{PROGRAMS}.exact"
            lines = yield MeasureRequest(f"{name} exact", program, self._job(name, index))
            self._exact[key] = lines[0] if lines else {}
        return self._exact[key]

    def _job(self, name: str, index: str) -> dict[str, Any]:
        """What both programs need; the fingerprints say which build of the index was measured."""
        manifests = self._workspace.manifests()
        parts = [index] if index in manifests else self._workspace.indexes_of(name)
        return {
            "workspace": str(self._workspace.path),
            "index": index,
            "fingerprints": [manifests[part].fingerprint for part in parts if part in manifests],
            "k": self._k,
            "texts": self._texts,
        }


def _recall(ids: Sequence[Sequence[str]], nearest: Sequence[Sequence[str]], k: int) -> float:
    """The mean share of the exact k nearest among the retrieved ``ids``."""
    shares = [
        min(1.0, len(set(exact).intersection(hits)) / min(k, len(exact)))
        for hits, exact in zip(ids, nearest)
        if exact
    ]
    return sum(shares) / len(shares) if shares else 0.0


def _quality(pages: Iterable[Sequence[str]], examples: Sequence[Example], k: int) -> dict[str, Any]:
    """Means over the questions that have gold pages, of the metrics that k allows."""
    names = [name for name, least in QUALITY.items() if least <= k]
    sums, count = dict.fromkeys(names, 0.0), 0
    for page_ids, example in zip(pages, examples):
        if not any(example.gold.provenance):
            continue
        count += 1
        hits = tuple(
            Hit(Passage(str(rank), "", page_id=page), -rank) for rank, page in enumerate(page_ids)
        )
        step = Step(Retrieve("", example.question.text, k), Reply("", hits))
        episode = Episode(example.question.qid, "chain", (step,), Outcome(""))
        for name in names:
            sums[name] += METRICS[name](episode, example.gold) or 0.0
    means = {name: total / count for name, total in sums.items()} if count else {}
    return {"quality": means, "n_gold": count}
