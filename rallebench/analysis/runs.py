"""Two stored runs compared, and the waterfall of one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rallebench.analysis.measures import Measure, headline, measure, shared_measures
from rallebench.analysis.paired import PairedComparison, compare
from rallebench.analysis.ranking import scores_of, shared_by, summary_of
from rallebench.analysis.waterfall import Waterfall, waterfall
from rallebench.core.errors import Hint, RalleError, UsageError
from rallebench.core.memory import uncollected
from rallebench.core.types import Example, Retrieve
from rallebench.engine.clusters import clusters_of
from rallebench.engine.score import examples_of, examples_of_runs
from rallebench.engine.store import RunFolder
from rallebench.workspace.coverage import MOST_PASSAGES, corpus_pages
from rallebench.workspace.paths import Workspace


@dataclass(frozen=True, slots=True)
class SharedQuestions:
    """The common questions and metrics of two runs. ``only_a``, ``only_b``: questions of one run only;
    ``left_out``: sentences about shared questions without an answer."""

    qids: tuple[str, ...]
    only_a: int
    only_b: int
    metrics: tuple[Measure, ...]
    left_out: tuple[str, ...] = ()
    clusters: Mapping[str, Any] = field(default_factory=dict)
    """Clusters of the shared questions, as in ``report.json``; ``cluster_of``: question → cluster."""
    cluster_of: Mapping[str, int] = field(default_factory=dict)

    @property
    def warning(self) -> str:
        """Different, failed and unanswered questions in words; '' if there are none."""
        sentences = list(self.left_out)
        if self.only_a or self.only_b:
            sentences.insert(
                0,
                f"The runs asked different questions; the {len(self.qids)} that they share are compared "
                f"({self.only_a} are only in the first, {self.only_b} only in the second).",
            )
        return " ".join(sentences)


def shared(a: RunFolder, b: RunFolder) -> SharedQuestions:
    """The questions with equal id and text, and the metrics of both runs. Raises UsageError."""
    examples = examples_of_runs((a, b))
    common = shared_by(examples)
    if not common:
        raise UsageError(
            f"The runs {a.name!r} and {b.name!r} share no question, so they cannot be compared."
        )
    names = tuple(shared_measures([a, b]).values())
    qids = tuple(e.question.qid for e in common)
    summaries = [summary_of(run, own, set(qids)) for run, own in zip((a, b), examples)]
    left_out = tuple(
        f"{summary.name}: {summary.gaps}; these questions are left out."
        for summary in summaries
        if summary.gaps
    )
    clusters = clusters_of(common)
    return SharedQuestions(
        qids,
        len(examples[0]) - len(common),
        len(examples[1]) - len(common),
        names,
        left_out,
        clusters.as_json(),
        clusters.of,
    )


@uncollected()
def compare_runs(
    a: RunFolder, b: RunFolder, name: str = ""
) -> tuple[PairedComparison, SharedQuestions]:
    """Run ``b`` against run ``a`` by one metric. Raises UsageError without a common score."""
    common = shared(a, b)
    name = name or headline(
        {shared_measure.name: shared_measure for shared_measure in common.metrics}
    )
    if not name:
        raise UsageError(
            f"The runs {a.name!r} and {b.name!r} share no metric.",
            hint=Hint("choose", "metric"),
        )
    measured = measure(name, [a, b])
    qids = set(common.qids)
    left, right = (
        {q: v for q, v in scores_of(run, (measured.name,))[measured.name].items() if q in qids}
        for run in (a, b)
    )
    comparison = compare(
        measured.name,
        left,
        right,
        higher_is_better=measured.higher_is_better is not False,
        clusters=common.cluster_of,
    )
    if not comparison.n:
        raise UsageError(
            f"No question that {a.name!r} and {b.name!r} share is scored by {measured.name} in both; choose another metric."
        )
    return comparison, common


@uncollected()
def waterfall_of(
    run: RunFolder,
    workspace: Workspace,
    *,
    at_most: int | None = None,
    examples: Sequence[Example] | None = None,
) -> Waterfall:
    """Where the run lost its questions; corpora are read if their indexes are in the workspace.

    ``at_most``: corpora with more passages together are not read, to save time. ``examples``: the questions
    that count, default all.
    """
    episodes = run.episodes()
    retrievers = {
        step.request.retriever
        for episode in episodes.values()
        for step in episode.steps
        if isinstance(step.request, Retrieve)
    }
    # An agent may open pages by title without a search; its retriever is in the settings.
    backends: Mapping[str, str] = run.spec()["spec"]["settings"].get("backends", {})
    retrievers |= {
        name.removeprefix("retriever ") for name in backends if name.startswith("retriever ")
    }
    questions = examples_of(run) if examples is None else examples
    return waterfall(
        questions, episodes.values(), corpus_pages(workspace, retrievers, at_most=at_most)
    )


def lost(run: RunFolder, workspace: Workspace) -> dict[str, float]:
    """Stage → questions of the waterfall, and ``corpus_known`` as 0 or 1; {} for an unreadable run.

    For logging a finished run: corpora of more than MOST_PASSAGES passages are not read.
    """
    try:
        result = waterfall_of(run, workspace, at_most=MOST_PASSAGES)
    except RalleError:
        return {}
    return {**result.counts(), "corpus_known": float(result.corpus_known)}


def as_json(
    comparison: PairedComparison, common: SharedQuestions, a: str, b: str
) -> dict[str, Any]:
    """The comparison and its caveats as one JSON document."""
    value: dict[str, Any] = json.loads(
        json.dumps({name: getattr(comparison, name) for name in comparison.__slots__})
    )
    return {
        "runs": [a, b],
        **value,
        "cluster_basis": dict(common.clusters),
        "flipped": list(comparison.flipped),
        "warning": common.warning,
    }
