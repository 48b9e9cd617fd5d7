"""Views of one, two or several runs: tiles, costs, settings, and the verdict on a difference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from rallebench.analysis import deployment, radar, tables
from rallebench.analysis.changes import Change, changes
from rallebench.analysis.measures import measure
from rallebench.analysis.ranking import compare_many
from rallebench.analysis.ranking import compare_two as compare_pair
from rallebench.core.comparison import Comparison, PairedComparison
from rallebench.core.errors import RalleError
from rallebench.core.json_values import JsonObject, as_json
from rallebench.core.numbers import UNKNOWN, no_interval, usd
from rallebench.core.prices import FREE
from rallebench.core.report import ClusterCounts, Estimate, RunReport
from rallebench.core.run_results import EndingSummary
from rallebench.core.runs import RunResult
from rallebench.core.tables import Figure, Table
from rallebench.core.types import Chain, Episode, Example, Json
from rallebench.engine.headline import not_printed, table_metrics
from rallebench.engine.score import is_timed
from rallebench.engine.store import RunFolder
from rallebench.metrics import METRICS, STANDARD_KS, card, read_card
from rallebench.workspace.flows import ending_summary
from rallebench.workspace.paths import WorkspaceFolder
from rallebench.workspace.prices import prices_of_use

HEADLINES = (
    ("em", "EM", "exact match with an accepted answer"),
    ("f1", "F1", "word overlap with the gold"),
    ("Rprec", "R-precision", "gold page first"),
    ("answer_in_context", "Answer in the prompt", "the ceiling of this retriever"),
    ("accuracy", "Accuracy", "an accepted answer, letter by letter"),
    ("rougel", "ROUGE-L", "longest common word sequence with the gold"),
)
"""(metric or metric family, label, explanation) of the tiles; a run without one of them shows its own first metrics."""

TILES = 4


@dataclass(frozen=True, slots=True)
class OpenRun:
    """A stored run shown by a front end; ``folder``: its files, for the other views."""

    folder: RunFolder

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def report(self) -> RunReport | None:
        """Report of the run; None before scoring."""
        return self.folder.report()

    @property
    def chain(self) -> Chain | None:
        """Chain of the run; None for an agent or imported predictions."""
        return self.folder.description().chain

    @property
    def has_agent(self) -> bool:
        return self.folder.description().agent is not None

    @property
    def dataset(self) -> str:
        return self.folder.description().dataset

    @property
    def is_going(self) -> bool:
        """Return whether answers or scores are still arriving."""
        return self.folder.state().is_active

    @property
    def stop_reason(self) -> str:
        """Why the run ended early; "" for a run that did not."""
        state = self.folder.state()
        return state.message if state.state in ("stopped", "failed") else ""

    @property
    def record(self) -> Json:
        """The content of ``run.json``."""
        return self.folder.description().to_json()


@dataclass(frozen=True, slots=True)
class Tile:
    """A headline figure of a run. ``mean``: as in the report; ``unit``: as in ``metric_unit``."""

    label: str
    mean: Estimate
    about: str
    unit: str


def tiles(report: RunReport, chain: Chain | None = None) -> list[Tile]:
    """Return the headline figures of a run; ``chain``: the run's chain, None for an agent."""
    own = {name: result.estimate for name, result in report.own.items()}
    metrics = {**table_metrics(report, chain), **own}
    picked = []
    decided = report.headline
    if decided in metrics and decided not in {family for family, _, _ in HEADLINES}:
        about, unit = definition(report, decided), metric_unit(report, decided)
        picked.append(Tile(label(decided), metrics[decided], about, unit))
    for family, title, about in HEADLINES:
        name = next((m for m in metrics if m.partition("@")[0] == family), "")
        if name:
            picked.append(Tile(title, metrics[name], about, "fraction"))
    for name, mean in {**own, **metrics}.items():
        if len(picked) >= TILES:
            break
        if all(mean is not tile.mean for tile in picked) and name not in (
            "seconds",
            "prompt_tokens",
            "completion_tokens",
        ):
            picked.append(
                Tile(label(name), mean, definition(report, name), metric_unit(report, name))
            )
    return picked[:TILES]


@dataclass(frozen=True, slots=True)
class PrintedMetrics:
    """The ``means`` that a table prints, and ``left_out``: a sentence for each reason to omit others."""

    means: Mapping[str, Estimate]
    left_out: tuple[str, ...]


def printed_metrics(report: RunReport, chain: Chain | None) -> PrintedMetrics:
    """Return the metrics to print; ``chain``: the run's chain, None for an agent."""
    return PrintedMetrics(table_metrics(report, chain), tuple(not_printed(report, chain)))


def interval_note(name: str, mean: Estimate, clusters: ClusterCounts | None) -> str:
    """Explain why the mean of a metric has no interval."""
    return no_interval(mean.n, clusters, timed=is_timed(name))


def definition(report: RunReport, name: str) -> str:
    """Return the definition of a metric of a run; "" if it has none."""
    result = report.own.get(name)
    return (result.column.definition if result else "") or _fact(name, "definition", "")


def label(name: str) -> str:
    """Return the label of a metric, or its name if it has no card."""
    return _fact(name, "label", name)


def _fact(name: str, key: str, default: str) -> str:
    try:
        return str(card(name)[key])
    except RalleError:
        return default


def cards(report: RunReport) -> dict[str, dict[str, str]]:
    """Label of a metric or judge of a run → the facts on its card, in the unit used by the page."""
    known: dict[str, dict[str, str]] = {}
    for name in (*report.metrics, *(judge.name for judge in report.judges)):
        with suppress(RalleError):
            facts = read_card(name).facts()
            percent = {"Range": "0 to 100 %"} if metric_unit(report, name) == "fraction" else {}
            known[label(name)] = {**facts, **percent}
    return known


def judge_lines() -> list[tuple[str, str]]:
    """Return (name, description) of every judge."""
    return [(name, METRICS.entry(name).about) for name in METRICS.judge_names()]


def metric_unit(report: RunReport, name: str) -> str:
    """Return the unit of a metric of a run: "fraction" for shares, which are shown in percent; "" if unknown."""
    mean = report.estimates.get(name)
    base = name.partition(":")[0]
    if base in METRICS:
        traits = METRICS.entry(base).traits
        unit = str(traits.get("unit", ""))
        return "" if unit == "fraction" and traits.get("range") != (0, 1) else unit
    value = mean.value if mean else None
    return "fraction" if value is None or 0 <= value <= 1 else ""


@dataclass(frozen=True, slots=True)
class RunPair:
    """Run ``b`` against run ``a``. ``runs``: both by all their metrics; ``pair``: both by the deciding metric;
    ``changes``: the settings that differ; ``timed``: True if neither run used the cache or overlapped another
    run, so that their times can be compared.
    """

    runs: Comparison
    pair: PairedComparison
    changes: Sequence[Change]
    timed: bool

    @property
    def metric(self) -> str:
        return self.runs.metric

    @property
    def unit(self) -> str:
        """Unit of the metric; "fraction" for shares."""
        return self.runs.measure.unit

    @property
    def verdict(self) -> str:
        """One of "better", "worse", "higher" and "lower", or "" if no difference is shown."""
        word = self.pair.verdict(self.runs.measure.higher_is_better)
        return word if self.pair.significant else ""


def compare_two(workspace: WorkspaceFolder, a: str, b: str, metric: str = "") -> RunPair:
    """Compare two runs by one metric ("" for the headline). Raises UsageError."""
    first, second = RunFolder.open(workspace.runs, a), RunFolder.open(workspace.runs, b)
    runs, pair = compare_pair(first, second, metric)
    different = changes(first.description().spec, second.description().spec)
    return RunPair(runs, pair, different, not runs.timing)


def compare_several(
    workspace: WorkspaceFolder, names: Sequence[str], metric: str = ""
) -> Comparison:
    """Compare runs with the first. Raises UsageError."""
    return compare_many([RunFolder.open(workspace.runs, name) for name in names], metric)


def comparison_table(compared: Comparison) -> Table:
    """Return every metric of the compared runs, one per row."""
    return tables.comparison(compared)


def metric_choices() -> list[str]:
    """Return the metrics that can score a run; families appear with their usual depths."""
    names = []
    for name in METRICS.plain_names():
        traits = METRICS.entry(name).traits
        names += (
            [f"{name}@{k}" for k in STANDARD_KS]
            if name.endswith("@k") or traits.get("family")
            else [name]
        )
    return names


def mean_seconds(report: RunReport) -> Estimate | None:
    """Mean seconds per question with their interval, measured over the steps."""
    mean = report.metrics.get("seconds")
    return mean if mean and mean.value is not None else None


def answer_text(example: Example, episode: Episode | None) -> str:
    """Return the answer of an episode, or why there is none."""
    if episode is None:
        return "This question has not been asked yet."
    return episode.error or episode.answer


def price_text(
    workspace: WorkspaceFolder, dollars: float | None, llms: Sequence[str]
) -> tuple[str, str]:
    """Return the price of a run with these models, and the reason if it is unknown or zero. A model behind a server
    without a price costs an unknown amount, not zero.
    """
    if dollars:
        return usd(dollars), ""
    known = prices_of_use(workspace)
    if dollars is None and any(known.get(name) is None for name in llms):
        return UNKNOWN, "set the prices of the model in Models"
    if dollars is None and any(known.get(name) != FREE for name in llms):
        return UNKNOWN, "the server of the model counts no tokens"
    return "none", "the model runs on this machine" if llms else "no model was asked"


COSTS: Mapping[str, str] = {label: key for key, label in deployment.COST_AXES.items()}
"""Costs to plot quality against: label → key in the report's cost."""


def kind_tables(
    workspace: WorkspaceFolder, titles: Mapping[str, str], metric: str
) -> list[tuple[str, Figure, Table]]:
    """Compare runs by each kind of question that their records name, or by dataset: (name, radar, table).
    ``titles``: run → its display name.
    """
    runs = [RunFolder.open(workspace.runs, name) for name in titles]
    common = compare_many(runs, metric).common if not radar.share_nothing(runs) else ()
    drawn = []
    for axes in radar.possible_axes(runs, common):
        value = radar.over(runs, common, metric, axes)
        lines = {titles.get(line, line): means for line, means in value.lines.items()}
        value = replace(value, by=axes.removeprefix("meta.").replace("_", " "), lines=lines)
        drawn.append((axes, radar.figure(value), radar.table(value)))
    return drawn


def share_nothing(workspace: WorkspaceFolder, names: Sequence[str]) -> bool:
    """Return whether runs share no question, for example because they use different datasets."""
    return radar.share_nothing([RunFolder.open(workspace.runs, name) for name in names])


def quality_and_cost(
    workspace: WorkspaceFolder,
    titles: Mapping[str, str],
    metric: str,
    cost: str,
    compared: Comparison | None,
) -> tuple[Figure | None, list[str]]:
    """Plot quality against one of COSTS, one point per run, and list omitted runs. ``titles``: run → its display
    name; ``compared``: restricts the questions, None for all of each run.
    """
    runs = [RunFolder.open(workspace.runs, name) for name in titles]
    measured = measure(metric, runs)
    reports = []
    for i, run in enumerate(runs):
        report = run.report() or RunReport()
        if compared is not None:
            report = report.with_means({name: row[i] for name, row in compared.cells.items()})
        reports.append((titles[run.name], report))
    notes = deployment.notes(reports, measured.name, cost)
    points = deployment.points(reports, measured.name, cost)
    return (deployment.figure(reports, measured, cost) if points else None), notes


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """A run that ended; ``endings``: of the episodes of an agent, None for other flows."""

    result: RunResult
    endings: EndingSummary | None

    def to_json(self) -> JsonObject:
        """Return the run as JSON; ``recall@5`` also as ``recall_at_5``, RaLLe's key. A metric without a score
        explains ``why``.
        """
        report = self.result.report or RunReport()
        reasons = report.not_scored
        metrics = {
            name: mean.to_json() | ({"why": reasons[name]} if name in reasons else {})
            for name, mean in report.estimates.items()
        }
        metrics |= {
            name.replace("@", "_at_"): metrics[name] for name in report.metrics if "@" in name
        }
        return {
            "run": self.result.run,
            "n": report.n,
            "n_errors": report.n_errors,
            "seconds": report.seconds,
            "metrics": metrics,
            **({"judges": {j.name: j.to_json() for j in report.judges}} if report.judges else {}),
            "clusters": as_json(report.clusters),
            "cost": as_json(report.cost),
            **({"agent": as_json(self.endings)} if self.endings else {}),
        }


def finished_run(workspace: WorkspaceFolder, result: RunResult) -> FinishedRun:
    """Return a finished run, with the endings of an agent's episodes."""
    endings = None
    if result.request.flow.agent:
        folder = RunFolder.open(workspace.runs, result.run)
        endings = ending_summary(folder.episodes().values())
    return FinishedRun(result, endings)
