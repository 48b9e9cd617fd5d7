"""Measures for comparing runs: registered metrics, a suite's own metrics, and stop reasons of agents.

The values of a suite's own metric are stored only in its runs (``scores.jsonl``; means and definitions in
``report.json``), so it can compare two runs only if both have it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from rallebench.core.cards import Card
from rallebench.core.comparison import Measure
from rallebench.core.errors import Hint, NotFoundError, UsageError
from rallebench.core.report import NO_BOUNDS, RunReport
from rallebench.engine.headline import deciding_metric
from rallebench.engine.metric_choice import stored_metrics
from rallebench.engine.store import RunFolder
from rallebench.metrics import METRICS, metric, read_card

OF_AGENTS = ("f1_yes_no", "model_calls")
"""Additional measures of agents: R-Eval's reward, and the number of turns."""

UNDEFINED = "A metric of the suite's own; its run keeps no definition."


def own_metrics(run: RunFolder) -> dict[str, str]:
    """Return the metrics that the run's suite defines itself, with their definitions."""
    report, registered = run.report() or RunReport(), stored_metrics(run)
    return {
        name: result.column.definition or UNDEFINED
        for name, result in report.own.items()
        if name not in registered
    }


def measure(
    name: str, runs: Sequence[RunFolder], definitions: Sequence[Mapping[str, str]] = ()
) -> Measure:
    """Return the measure ``name`` for these runs; the name of a judge stands for its first column. ``definitions``: each run's own metrics, if already read.

    Raises NotFoundError for an unknown name, and UsageError if a run lacks the suite's own metric.
    """
    name, definitions = name.strip(), definitions or [own_metrics(run) for run in runs]
    if not any(name in own for own in definitions):
        name = _first_column(name, runs)
    without = [run.name for run, own in zip(runs, definitions) if name not in own]
    if len(without) == len(runs):
        if (scorer := METRICS.find_judge(name)) and not METRICS.is_judge(name):
            judge_name = f"{scorer.name}:{name.partition(':')[2]}"
            raise NotFoundError(
                f"{name!r} is a column of the judge {judge_name!r}, and no run here has scores of it; score the run by {judge_name} first."
            )
        try:
            entry = metric(name)
        except NotFoundError as error:
            common = ", ".join(_in_all(definitions))
            if not common:
                raise
            raise error.saying(f"{error} The suite's own: {common}.") from None
        return Measure(entry.name, read_card(entry.name))
    if without:
        raise UsageError(
            f"{name} is a suite's own metric; {', '.join(without)} has no values of it. Choose another metric."
        )
    different = list(dict.fromkeys(own[name] for own in definitions))
    known = (runs[0].report() or RunReport()).own.get(name)
    judge = METRICS.find_judge(name)
    about = Card(
        name,
        name,
        different[0],
        traps=f"The runs define it differently: {' / '.join(different)}" if different[1:] else "",
        range=known.column.range if known else NO_BOUNDS,
        higher_is_better=read_card(judge.name).higher_is_better if judge else None,
    )
    return Measure(name, about, True)


def _first_column(name: str, runs: Sequence[RunFolder]) -> str:
    """Return the first column of the judge with this name in the runs; otherwise the name."""
    passes = (judge for run in runs for judge in (run.report() or RunReport()).judges)
    return next(
        (judge.columns[0] for judge in passes if judge.name == name and judge.columns), name
    )


def _in_all(definitions: Sequence[Mapping[str, str]]) -> list[str]:
    """Return the suites' own metrics that every run has."""
    first, *others = definitions or [{}]
    return [name for name in first if all(name in other for other in others)]


def shared_measures(runs: Sequence[RunFolder]) -> dict[str, Measure]:
    """Return the measures that all runs share, by name: suites' own metrics, then registered metrics, then stop
    reasons.
    """
    suite_metrics = [own_metrics(run) for run in runs]
    lists = [stored_metrics(run) for run in runs]
    names = _in_all(suite_metrics)
    names += [name for name in lists[0] if all(name in other for other in lists)]
    if any(map(by_agent, runs)):
        names += [*OF_AGENTS, *(f"ended:{reason}" for reason in reasons(runs))]
    return {name: measure(name, runs, suite_metrics) for name in dict.fromkeys(names)}


def headline(measures: Mapping[str, Measure], runs: Sequence[RunFolder] = ()) -> Measure:
    """Return the measure that ranks ``runs``; each of them must have all of ``measures``. Raises UsageError if they
    share none.
    """
    reports = [run.report() or RunReport() for run in runs]
    suite_metrics = [name for name, shared in measures.items() if shared.own]
    preferred = decided_by(reports, measures)
    name = next(iter([*([preferred] if preferred else []), *suite_metrics, *measures]), "")
    if not name:
        raise UsageError(
            "The runs share no metric; choose one to score them all by.",
            hint=Hint("choose", "metric"),
        )
    return measures[name]


def decided_by(reports: Sequence[RunReport], names: Iterable[str] | None = None) -> str:
    """Return the registered metric that ranks runs with these reports: their common headline metric, otherwise the
    first metric with a score in every run; '' if there is none.

    ``names``: the metrics to consider; by default all.
    """
    scored = [
        {name for name, mean in report.metrics.items() if mean.value is not None}
        for report in reports
    ]
    own = {report.headline for report in reports}
    first = list(reports[0].metrics) if reports else []
    allowed = [
        name
        for name in (first if names is None else names)
        if all(name in known or not known for known in scored)
    ]
    if len(own) == 1 and (name := next(iter(own))) in allowed:
        return name
    return deciding_metric(allowed)


def by_agent(run: RunFolder) -> bool:
    """Return whether an agent, not a chain, answered the run."""
    return run.description().agent is not None


def reasons(runs: Sequence[RunFolder]) -> list[str]:
    """Return the stop reasons of the runs' questions, most frequent first; failed questions have none."""
    counts = Counter(
        head.stop_reason for run in runs for head in run.heads().values() if head.stop_reason
    )
    return [reason for reason, _ in counts.most_common()]
