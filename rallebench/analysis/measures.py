"""By what runs are compared: the metrics of the workbench, those that only a suite knows, and how agents ended.

A suite's own values stand in its runs (``scores.jsonl``, their means and definitions in ``report.json``); they can be had
nowhere else, and two runs are compared by them only where both hold them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rallebench.core.errors import NotFoundError, UsageError
from rallebench.engine.answers import heads
from rallebench.engine.store import RunFolder
from rallebench.metrics import card, metric

HEADLINES = ("em", "accuracy", "f1", "rougel", "Rprec")
"""What runs are compared by if nothing is chosen: the first that all have, or else the first of a suite's own."""

OF_AGENTS = ("f1_yes_no", "model_calls")
"""What runs by agents are compared by besides: R-Eval's reward, and the turns."""

UNDEFINED = "A metric of the suite's own; its run keeps no definition."


@dataclass(frozen=True, slots=True)
class Measure:
    """``about``: its card, with the keys of ``metrics.card``; ``own``: only the runs of a suite know its values."""

    name: str
    about: Mapping[str, Any]
    own: bool = False

    @property
    def upward(self) -> bool | None:
        """Whether higher is better; None where neither direction is, or nobody says."""
        found: bool | None = self.about.get("higher_is_better", True)
        return found


def own_of(run: RunFolder) -> dict[str, str]:
    """The metrics that only the run's suite knows, with their definitions."""
    report, kept = run.report() or {}, run.spec()["metrics"]
    told = report.get("definitions") or {}
    return {
        name: str(told.get(name) or UNDEFINED)
        for name in report.get("suite") or ()
        if name not in kept
    }


def measure(name: str, runs: Sequence[RunFolder]) -> Measure:
    """What ``name`` means for these runs.

    Raises NotFoundError for a name nobody knows, UsageError for a suite's own that some of the runs do not hold.
    """
    return _measure(name.strip(), runs, [own_of(run) for run in runs])


def _measure(name: str, runs: Sequence[RunFolder], owns: Sequence[Mapping[str, str]]) -> Measure:
    lacking = [run.name for run, own in zip(runs, owns) if name not in own]
    if len(lacking) == len(runs):
        try:
            entry = metric(name)
        except NotFoundError as error:
            both = [one for one in owns[0] if all(one in own for own in owns)] if owns else []
            raise NotFoundError(
                f"{error} The suite's own: {', '.join(both)}." if both else str(error)
            ) from None
        return Measure(entry.name, card(entry.name))
    if lacking:
        raise UsageError(
            f"{name} is a suite's own metric; {', '.join(lacking)} has no values of it. Choose another metric."
        )
    kept = ((runs[0].report() or {}).get("ranges") or {}).get(name) or (None, None)
    return Measure(name, _card(name, list(dict.fromkeys(own[name] for own in owns)), kept), True)


def _card(name: str, definitions: Sequence[str], bounds: Sequence[float | None]) -> dict[str, Any]:
    """The card of a suite's own metric. Runs that define it differently are told apart in its traps."""
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
    """All that the runs have in common, by name: a suite's own first, then what they were scored by, then how agents ended."""
    owns = [own_of(run) for run in runs]
    lists = [list(run.spec()["metrics"]) for run in runs]
    names = [name for name in owns[0] if all(name in own for own in owns)]
    names += [name for name in lists[0] if all(name in other for other in lists)]
    agents = [run for run in runs if by_agent(run)]
    if agents:
        names += [*OF_AGENTS, *(f"ended:{reason}" for reason in reasons(runs))]
    return {name: _measure(name, runs, owns) for name in dict.fromkeys(names)}


def headline(found: Mapping[str, Measure]) -> str:
    """What to compare by where nothing is chosen; '' where there is nothing."""
    own = [name for name, one in found.items() if one.own]
    return next((name for name in HEADLINES if name in found), next(iter([*own, *found]), ""))


def by_agent(run: RunFolder) -> bool:
    """Whether an agent answered: a workflow in an environment or alone, not a chain."""
    return "agent" in run.spec()["spec"]["settings"]


def reasons(runs: Sequence[RunFolder]) -> list[str]:
    """How the questions of runs ended, the most frequent reason first; failed ones have none."""
    found = Counter(
        str(line["stop_reason"])
        for run in runs
        for line in heads(run).values()
        if line.get("stop_reason")
    )
    return [reason for reason, _ in found.most_common()]
