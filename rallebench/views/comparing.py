"""Stored runs compared and analysed, as JSON documents and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rallebench.analysis import tables
from rallebench.analysis.agents import Analysis, AnalysisOptions
from rallebench.analysis.agents.aspects import analyse
from rallebench.analysis.agents.reading import read
from rallebench.analysis.ranking import compare_many, compare_two
from rallebench.analysis.waterfall import run_waterfall
from rallebench.core.comparison import Comparison
from rallebench.core.costs import Cost
from rallebench.core.errors import UsageError
from rallebench.core.experiment_reports import SuiteReport
from rallebench.core.json_values import as_json
from rallebench.core.tables import Table
from rallebench.core.waterfall import STAGES
from rallebench.engine.experiment_store import ExperimentStore
from rallebench.engine.score import stored_cost
from rallebench.engine.store import RunFolder
from rallebench.workspace.paths import WorkspaceFolder


@dataclass(frozen=True, slots=True)
class Compared:
    """Runs beside the first. ``document``: as JSON; ``tables``: of three or more runs, every metric and the differences."""

    document: Mapping[str, Any]
    warnings: Sequence[str]
    costs: tuple[Cost, ...]
    tables: tuple[Table, ...] = ()


def compare(runs: Sequence[RunFolder], metric: str = "") -> Compared:
    """Runs against the first: JSON, warnings, and of three or more the tables of every metric and of the differences.

    Raises UsageError without a common score.
    """
    if len(runs) == 2:
        return _compare_two(runs[0], runs[1], metric)
    return _compare_several(runs, metric)


def _compare_two(a: RunFolder, b: RunFolder, name: str) -> Compared:
    compared, pair = compare_two(a, b, name, every=False)
    costs = tuple(stored_cost(run) for run in (a, b))
    value = {
        "runs": [a.name, b.name],
        **asdict(pair),
        "flipped": [*pair.flipped_ids],
        "warning": " ".join(compared.warnings),
        **_about(compared),
        "over_all": [asdict(score) for score in compared.corpus_level.get(pair.metric, ())],
        "cost": as_json(costs),
    }
    return Compared(value, compared.warnings, costs)


def _compare_several(runs: Sequence[RunFolder], name: str) -> Compared:
    compared = compare_many(runs, name)
    costs = tuple(map(stored_cost, runs))
    against = [
        {**asdict(pair), "run": run, "p_corrected": pair.corrected}
        for run, pair in compared.against.items()
    ]
    value = {
        "runs": [side.name for side in compared.sides],
        "n": len(compared.common),
        "metric": compared.metric,
        **_about(compared),
        "metrics": {name: [asdict(mean) for mean in row] for name, row in compared.cells.items()},
        "over_all": {
            name: [asdict(score) for score in row] for name, row in compared.corpus_level.items()
        },
        "against": against,
        "warnings": compared.warnings,
        "cost": as_json(costs),
    }
    drawn = (tables.comparison(compared), tables.differences(compared))
    return Compared(value, compared.warnings, costs, drawn)


def _about(compared: Comparison) -> dict[str, Any]:
    """``own``: the metric is the suite's, whose runs alone hold its values."""
    return {
        "definition": compared.measure.card.definition,
        "higher_is_better": compared.measure.higher_is_better,
        "own": compared.measure.own,
        "cluster_basis": as_json(compared.clusters.counts),
    }


def resolve_runs(workspace: WorkspaceFolder, names: Sequence[str]) -> list[str]:
    """The named runs, for a suite its runs. Raises UsageError for a suite that has not ended."""
    runs: list[str] = []
    store = ExperimentStore(workspace.path)
    suites = [name for name in store.names() if store.find_noun(name) == "suite"]
    for name in names:
        if name not in suites or (workspace.runs / name).exists():
            runs.append(name)
            continue
        report = ExperimentStore(workspace.path).open(name, "suite run").report
        if not isinstance(report, SuiteReport):
            raise UsageError(
                f"The suite run {name!r} has not ended yet; run it again under its name, or name its runs."
            )
        runs += [part.run for part in report.parts]
    return list(dict.fromkeys(runs))


def waterfall_json(workspace: WorkspaceFolder, name: str) -> dict[str, Any]:
    """The waterfall of a run: the stages at which it lost its questions."""
    result = run_waterfall(RunFolder.open(workspace.runs, name), workspace)
    questions = {stage: result.questions(stage) for stage in STAGES}
    return {
        "run": name,
        "n": len(result.placed),
        "waterfall": result.counts(),
        "questions": {stage: qids for stage, qids in questions.items() if qids},
        "corpus_known": result.corpus_known,
        "imported": result.imported,
        "without_pages": result.without_pages,
        "given": result.given_passages,
        "misses_corpus": result.misses_corpus,
        "tells": result.tells,
    }


def analyse_agents(
    workspace: WorkspaceFolder,
    names: Sequence[str],
    aspect: str,
    *,
    original: bool = False,
    reference: str = "",
    sizes: Mapping[str, float] | None = None,
) -> Analysis:
    """An aspect of runs of agents. Raises UsageError."""
    runs = read([RunFolder.open(workspace.runs, name) for name in names], original=original)
    return analyse(runs, aspect, AnalysisOptions(original, reference, sizes or {}))


def read_sizes(pairs: Sequence[str], flag: str = "") -> dict[str, float]:
    """Model → billions of parameters, of ``MODEL=B`` each. ``flag``: before the pair in the sentence. Raises UsageError."""
    sizes: dict[str, float] = {}
    for pair in pairs:
        model, _, number = pair.rpartition("=")
        try:
            sizes[model] = float(number)
        except ValueError:
            model = ""
        if not model or not 0 < sizes[model] < float("inf"):
            raise UsageError(f"{flag}{pair!r} is not MODEL=BILLIONS, as in my-llm=7.")
    return sizes
