"""The measures by which runs are compared: registered metrics, a suite's own, and stop reasons of agents.

A suite's own values are only in its runs (``scores.jsonl``; means and definitions in ``report.json``), so
two runs are compared by them only if both have them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rallebench.core.errors import NotFoundError, UsageError
from rallebench.engine.store import RunFolder
from rallebench.metrics import card, metric

HEADLINES = ("em", "accuracy", "f1", "rougel", "Rprec")
"""The default measures, in order of preference; then a suite's own."""

OF_AGENTS = ("f1_yes_no", "model_calls")
"""Further measures of agents: R-Eval's reward, and the turns."""

UNDEFINED = "A metric of the suite's own; its run keeps no definition."


@dataclass(frozen=True, slots=True)
class Measure:
    """``about``: its card, with the keys of ``metrics.card``; ``own``: a suite's own, stored in its runs only."""

    name: str
    about: Mapping[str, Any]
    own: bool = False

    @property
    def higher_is_better(self) -> bool | None:
        """None if neither direction is better, or the direction is unknown."""
        higher: bool | None = self.about.get("higher_is_better", True)
        return higher

    @property
    def unit(self) -> str:
        """ "fraction" for a share of 1, else the unit of its values, "" where it is not known."""
        is_share = list(self.about.get("range") or ()) == [0, 1]
        unit = str(self.about.get("unit", ""))
        return "fraction" if is_share else "" if unit == "fraction" else unit


def own_of(run: RunFolder) -> dict[str, str]:
    """The metrics of the run's own suite, with their definitions."""
    report, registered = run.report() or {}, run.spec()["metrics"]
    definitions = report.get("definitions") or {}
    return {
        name: str(definitions.get(name) or UNDEFINED)
        for name in report.get("suite") or ()
        if name not in registered
    }


def measure(name: str, runs: Sequence[RunFolder]) -> Measure:
    """The measure ``name`` for these runs.

    Raises NotFoundError for an unknown name, UsageError for a suite's own that a run does not have.
    """
    return _measure(name.strip(), runs, [own_of(run) for run in runs])


def _measure(
    name: str, runs: Sequence[RunFolder], suite_metrics: Sequence[Mapping[str, str]]
) -> Measure:
    without = [run.name for run, definitions in zip(runs, suite_metrics) if name not in definitions]
    if len(without) == len(runs):
        try:
            entry = metric(name)
        except NotFoundError as error:
            common = (
                [
                    candidate
                    for candidate in suite_metrics[0]
                    if all(candidate in definitions for definitions in suite_metrics)
                ]
                if suite_metrics
                else []
            )
            raise NotFoundError(
                f"{error} The suite's own: {', '.join(common)}." if common else str(error)
            ) from None
        return Measure(entry.name, card(entry.name))
    if without:
        raise UsageError(
            f"{name} is a suite's own metric; {', '.join(without)} has no values of it. Choose another metric."
        )
    bounds = ((runs[0].report() or {}).get("ranges") or {}).get(name) or (None, None)
    return Measure(
        name,
        _card(
            name, list(dict.fromkeys(definitions[name] for definitions in suite_metrics)), bounds
        ),
        True,
    )


def _card(name: str, definitions: Sequence[str], bounds: Sequence[float | None]) -> dict[str, Any]:
    """The card of a suite's own metric. Its caveats name different definitions of the runs."""
    differ = (
        f"The runs define it differently: {' / '.join(definitions)}" if len(definitions) > 1 else ""
    )
    return {
        "name": name,
        "label": name,
        "definition": definitions[0],
        "details": "",
        "normalisation": "",
        "not_scored": "",
        "over_all": "",
        "option": "",
        "source": "",
        "traps": differ,
        "needs": "",
        "wants": "",
        "tool": "",
        "higher_is_better": None,
        "unit": "",
        "range": list(bounds),
        "k": None,
        "direction": "its definition says which direction is better",
        "bounds": "any number",
        "needed": "nothing",
    }


def shared_measures(runs: Sequence[RunFolder]) -> dict[str, Measure]:
    """The measures that all runs share, by name: a suite's own, then metrics, then stop reasons."""
    suite_metrics = [own_of(run) for run in runs]
    lists = [list(run.spec()["metrics"]) for run in runs]
    names = [
        name
        for name in suite_metrics[0]
        if all(name in definitions for definitions in suite_metrics)
    ]
    names += [name for name in lists[0] if all(name in other for other in lists)]
    agents = [run for run in runs if by_agent(run)]
    if agents:
        names += [*OF_AGENTS, *(f"ended:{reason}" for reason in reasons(runs))]
    return {name: _measure(name, runs, suite_metrics) for name in dict.fromkeys(names)}


def headline(measures: Mapping[str, Measure]) -> str:
    """The default measure, '' if there is none."""
    suite_metrics = [name for name, candidate in measures.items() if candidate.own]
    return next(
        (name for name in HEADLINES if name in measures),
        next(iter([*suite_metrics, *measures]), ""),
    )


def by_agent(run: RunFolder) -> bool:
    """Whether an agent answered, not a chain."""
    return "agent" in run.spec()["spec"]["settings"]


def reasons(runs: Sequence[RunFolder]) -> list[str]:
    """The stop reasons of the runs' questions, the most frequent first; failed questions have none."""
    counts = Counter(
        str(line["stop_reason"])
        for run in runs
        for line in run.heads().values()
        if line.get("stop_reason")
    )
    return [reason for reason, _ in counts.most_common()]
