"""Compare and analyse stored runs, as JSON documents and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from rallebench.analysis import tables
from rallebench.analysis.agents import Analysis, AnalysisOptions
from rallebench.analysis.agents.aspects import analyse
from rallebench.analysis.agents.reading import read
from rallebench.analysis.question_clusters import slice_ids
from rallebench.analysis.ranking import compare_many, compare_two
from rallebench.analysis.waterfall import run_waterfall
from rallebench.core.comparison import Comparison, CorpusScore, PairedComparison
from rallebench.core.corrections import Corrections
from rallebench.core.costs import Cost
from rallebench.core.errors import UsageError
from rallebench.core.experiment_reports import SuiteReport
from rallebench.core.json_values import as_json
from rallebench.core.tables import Table
from rallebench.core.types import Json
from rallebench.core.waterfall import Waterfall
from rallebench.engine.experiment_store import ExperimentStore
from rallebench.engine.score import stored_cost
from rallebench.engine.store import RunFolder
from rallebench.views.corrections import compared_corrections
from rallebench.workspace.paths import WorkspaceFolder


@dataclass(frozen=True, slots=True)
class RunsBesideFirst:
    """Runs compared with the first. ``pair``: the difference between exactly two runs; ``tables``: for three or more
    runs, every metric and the differences. ``corrected``: the chosen metric corrected by labels, if all runs have some.
    """

    comparison: Comparison
    pair: PairedComparison | None
    costs: tuple[Cost, ...]
    corrected: Corrections

    @property
    def tables(self) -> tuple[Table, ...]:
        if self.pair is not None:
            return ()
        return tables.comparison(self.comparison), tables.differences(self.comparison)

    @property
    def over_all(self) -> tuple[CorpusScore, ...]:
        """The corpus-level score of each run by the chosen metric; () if it has none."""
        return self.comparison.corpus_level.get(self.comparison.metric, ())

    def to_json(self) -> Json:
        compared = self.comparison
        about = {
            "definition": compared.measure.card.definition,
            "higher_is_better": compared.measure.higher_is_better,
            "own": compared.measure.own,
            "cluster_basis": as_json(compared.clusters.counts),
        }
        runs = {"runs": [side.name for side in compared.sides], "changed": compared.changed}
        labelled = {"labels": self.corrected.to_json()} if self.corrected else {}
        if self.pair is not None:
            return {
                **runs,
                **self.pair.to_json(),
                "flipped": [*self.pair.flipped_ids],
                "warning": " ".join(compared.warnings),
                **about,
                "over_all": [asdict(score) for score in self.over_all],
                "cost": as_json(self.costs),
                **labelled,
            }
        return {
            **runs,
            "n": len(compared.common),
            "metric": compared.metric,
            **about,
            "metrics": {name: list(map(asdict, row)) for name, row in compared.cells.items()},
            "over_all": {
                name: list(map(asdict, row)) for name, row in compared.corpus_level.items()
            },
            "against": [
                {**pair.to_json(), "run": run, "p_corrected": pair.corrected}
                for run, pair in compared.against.items()
            ],
            "warnings": compared.warnings,
            "cost": as_json(self.costs),
            **labelled,
        }


def compare(
    runs: Sequence[RunFolder],
    metric: str = "",
    part: str = "",
    workspace: WorkspaceFolder | None = None,
) -> RunsBesideFirst:
    """Compare runs with the first. ``part``: only a group of its questions, as in "meaning-2"; needs the ``workspace``; labels
    then correct nothing. Raises UsageError if they share no score."""
    costs = tuple(map(stored_cost, runs))
    only = slice_ids(workspace, runs[0], part) if part and workspace else None
    pair = None
    if len(runs) == 2:
        compared, pair = compare_two(runs[0], runs[1], metric, every=False, only=only)
    else:
        compared = compare_many(runs, metric, only=only)
    labelled = Corrections() if part else compared_corrections(runs, compared.metric)
    return RunsBesideFirst(compared, pair, costs, labelled)


def resolve_runs(workspace: WorkspaceFolder, names: Sequence[str]) -> list[str]:
    """Return the named runs, replacing each suite by its runs. Raises UsageError if a suite has not finished."""
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


def waterfall(workspace: WorkspaceFolder, name: str) -> Waterfall:
    """Return the stages at which a run lost its questions."""
    return run_waterfall(RunFolder.open(workspace.runs, name), workspace)


def analyse_agents(
    workspace: WorkspaceFolder,
    names: Sequence[str],
    aspect: str,
    *,
    original: bool = False,
    reference: str = "",
    sizes: Mapping[str, float] | None = None,
) -> Analysis:
    """Analyse one aspect of runs of agents. Raises UsageError."""
    runs = read([RunFolder.open(workspace.runs, name) for name in names], original=original)
    return analyse(runs, aspect, AnalysisOptions(original, reference, sizes or {}))


def read_sizes(pairs: Sequence[str], flag: str = "") -> dict[str, float]:
    """Parse ``MODEL=B`` pairs: model → billions of parameters. ``flag``: precedes the pair in the error. Raises
    UsageError.
    """
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
