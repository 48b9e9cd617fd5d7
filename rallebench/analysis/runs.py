"""Run folders → what the analyses need: the questions that two runs share, scores, the pages of a corpus."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rallebench.analysis.measures import Measure, headline, measure, shared_measures
from rallebench.analysis.paired import Paired, compare
from rallebench.analysis.ranking import scores_of
from rallebench.analysis.waterfall import Waterfall, waterfall
from rallebench.core.errors import RalleError, UsageError
from rallebench.core.memory import uncollected
from rallebench.core.types import Example, Retrieve
from rallebench.engine.answers import heads
from rallebench.engine.clusters import clusters_of
from rallebench.engine.score import examples_of
from rallebench.engine.store import RunFolder
from rallebench.workspace.coverage import MOST_PASSAGES, corpus_pages
from rallebench.workspace.paths import Workspace


@dataclass(frozen=True, slots=True)
class Shared:
    """What two runs have in common. ``only_a``, ``only_b``: questions that the other one did not ask; ``left_out``:
    sentences about shared ones that failed or are not answered yet."""

    qids: tuple[str, ...]
    only_a: int
    only_b: int
    metrics: tuple[Measure, ...]
    left_out: tuple[str, ...] = ()
    clusters: Mapping[str, Any] = field(default_factory=dict)
    """As ``report.json`` keeps them, of the shared questions; ``cluster_of``: question → cluster."""
    cluster_of: Mapping[str, int] = field(default_factory=dict)

    @property
    def warning(self) -> str:
        """What a reader must know: different questions, failed ones, an unfinished run; '' if there is nothing."""
        found = list(self.left_out)
        if self.only_a or self.only_b:
            found.insert(
                0,
                f"The runs asked different questions; the {len(self.qids)} that they share are compared "
                f"({self.only_a} are only in the first, {self.only_b} only in the second).",
            )
        return " ".join(found)


def shared(a: RunFolder, b: RunFolder) -> Shared:
    """The questions with the same id and text, and the metrics that both runs can be scored by."""
    mine = examples_of(a)
    left, right = (
        {e.question.qid: e.question.text for e in examples} for examples in (mine, examples_of(b))
    )
    common = tuple(qid for qid, text in left.items() if right.get(qid) == text)
    if not common:
        raise UsageError(
            f"The runs {a.name!r} and {b.name!r} share no question, so they cannot be compared."
        )
    names = tuple(shared_measures([a, b]).values())
    left_out = tuple(filter(None, (_left_out(run, set(common)) for run in (a, b))))
    clusters = clusters_of([e for e in mine if right.get(e.question.qid) == e.question.text])
    return Shared(
        common,
        len(left) - len(common),
        len(right) - len(common),
        names,
        left_out,
        clusters.as_json(),
        clusters.of,
    )


def _left_out(run: RunFolder, common: set[str]) -> str:
    """Of how many shared questions a run has no answer, in a sentence."""
    lines = {qid: line for qid, line in heads(run).items() if qid in common}
    failed, missing = (
        sum(bool(line.get("error")) for line in lines.values()),
        len(common) - len(lines),
    )
    parts = [f"{failed} failed"] * bool(failed) + [f"{missing} are not answered yet"] * bool(
        missing
    )
    return f"{run.name}: {' and '.join(parts)}; these questions are left out." if parts else ""


def compare_runs(a: RunFolder, b: RunFolder, name: str = "") -> tuple[Paired, Shared]:
    """Run ``b`` against run ``a`` by one metric. Raises UsageError where nothing can be compared."""
    common = shared(a, b)
    name = name or headline({one.name: one for one in common.metrics})
    if not name:
        raise UsageError(
            f"The runs {a.name!r} and {b.name!r} share no metric; name one with --metric."
        )
    of = measure(name, [a, b])
    wanted = set(common.qids)
    left, right = (
        {q: v for q, v in scores_of(run, (of.name,))[of.name].items() if q in wanted}
        for run in (a, b)
    )
    found = compare(
        of.name, left, right, higher_is_better=of.upward is not False, clusters=common.cluster_of
    )
    if not found.n:
        raise UsageError(
            f"No question that {a.name!r} and {b.name!r} share is scored by {of.name} in both; choose another metric."
        )
    return found, common


@uncollected()
def waterfall_of(
    run: RunFolder,
    workspace: Workspace,
    *,
    at_most: int | None = None,
    examples: Sequence[Example] | None = None,
) -> Waterfall:
    """Where the run lost its questions; the corpora are looked at where their indexes are here.

    ``at_most``: corpora of more passages together are not looked at, because it would take too long. ``examples``: the
    run's questions, or those of them that count.
    """
    episodes = run.episodes()
    asked = {
        step.request.retriever
        for episode in episodes.values()
        for step in episode.steps
        if isinstance(step.request, Retrieve)
    }
    # An agent may have opened its pages by their titles and asked no retriever, but it stood over one.
    backends: Mapping[str, str] = run.spec()["spec"]["settings"].get("backends", {})
    asked |= {name.removeprefix("retriever ") for name in backends if name.startswith("retriever ")}
    asked_of = examples_of(run) if examples is None else examples
    return waterfall(asked_of, episodes.values(), corpus_pages(workspace, asked, at_most=at_most))


def lost(run: RunFolder, workspace: Workspace) -> dict[str, float]:
    """Stage → questions of the waterfall, and ``corpus_known`` as 0 or 1; {} where the run cannot be read.

    For whoever logs a run as it ends: of more than MOST_PASSAGES passages the pages are not read.
    """
    try:
        found = waterfall_of(run, workspace, at_most=MOST_PASSAGES)
    except RalleError:
        return {}
    return {**found.counts(), "corpus_known": float(found.corpus_known)}


def as_json(found: Paired, common: Shared, a: str, b: str) -> dict[str, Any]:
    """One JSON document: the comparison, and what was left out of it."""
    value: dict[str, Any] = json.loads(
        json.dumps({name: getattr(found, name) for name in found.__slots__})
    )
    return {
        "runs": [a, b],
        **value,
        "cluster_basis": dict(common.clusters),
        "flipped": list(found.flipped),
        "warning": common.warning,
    }
