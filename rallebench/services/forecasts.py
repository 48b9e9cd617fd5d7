"""The cost of an experiment before it starts: runs, questions, calls, minutes, dollars, and the cached replies."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

from rallebench.analysis.paired import has_power
from rallebench.core.errors import RalleError
from rallebench.core.experiments import ExperimentRequest
from rallebench.core.runs import Backends, FlowSpec
from rallebench.core.types import Chain, Example, Generate, Note, Retrieve
from rallebench.engine.estimate import CostEstimate
from rallebench.engine.plan import Plan, PlannedRun
from rallebench.engine.reply_cache import ReplyCache
from rallebench.experiments.sweeps import remarks
from rallebench.experiments.sweeps.running import variants_of
from rallebench.llms import LLMS
from rallebench.services.experiment_jobs import estimated
from rallebench.services.workbench import Workbench
from rallebench.workspace.flows import chain_flow

RECENT = 40
"""The number of newest runs from which times and prices are taken."""
CHANGING = 0.1
"""The assumed share of questions that two variants answer differently, for the smallest difference that shows."""
PATIENCE = 3.0
"""The most seconds of a search in the reply cache; then the number of cached replies is not known."""
RANKED = ("sweep", "batch", "baselines")
"""Kinds whose last step ranks real answers, which a plan without answers cannot."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """``left``: questions that no run of this name has answered. ``generations``, ``retrievals``: (low, high), None for an open
    end. ``seconds``: (expected, low, high) or None; ``usd``: None where a price is not set, 0.0 for local models; ``basis``:
    where both come from. ``cached``: those generations that the reply cache answers, None where that is not known."""

    plan: Plan
    runs: int
    questions: int
    left: int
    generations: tuple[int, int | None]
    retrievals: tuple[int, int | None]
    seconds: tuple[float, float | None, float | None] | None
    usd: float | None
    basis: str
    cached: int | None
    smallest: float | None
    builds: int
    notes: tuple[str, ...]


def forecast(workbench: Workbench, request: ExperimentRequest) -> Forecast:
    """Everything that can be said without asking a model. Raises RalleError for a wrong request."""
    planned_runs = planned(workbench, request)
    done = estimated(workbench, request)
    seconds, usd, basis = _measured(done) if done else _remembered(workbench, planned_runs)
    notes = [*(done.notes if done else planned_runs.notes)]
    if request.kind == "sweep":
        notes += remarks(variants_of(request.settings))
    generations = _sum(planned_runs, "generations")
    cached = _cached(workbench, request)
    if cached is not None and generations[1] is not None:
        cached = min(cached, generations[1])
    if cached and seconds and not done:
        rest = 1 - cached / (generations[1] or cached)
        seconds, usd = (rest * seconds[0], None, None), None if usd is None else rest * usd
    if usd is None and _local(workbench, {llm for run in planned_runs.runs for llm in run.llms}):
        usd = 0.0
    questions = max((run.questions for run in planned_runs.runs), default=0)
    return Forecast(
        planned_runs,
        len(planned_runs.runs) or len(planned_runs.measurements),
        sum(run.questions for run in planned_runs.runs),
        sum(run.left for run in planned_runs.runs),
        generations,
        _sum(planned_runs, "retrievals"),
        seconds,
        usd,
        basis,
        cached,
        smallest_difference(questions) if len(planned_runs.runs) > 1 else None,
        len(planned_runs.builds),
        tuple(dict.fromkeys(notes)),
    )


def planned(workbench: Workbench, request: ExperimentRequest) -> Plan:
    """The runs of an experiment. Raises RalleError for a wrong request."""
    value = workbench.experiments.plan(request)
    return replace(value, open_end="") if request.kind in RANKED else value


def smallest_difference(questions: int) -> float | None:
    """The difference of two means that so many questions show with 80 % power, if CHANGING of them change their answer, or as
    many more as the difference takes; None where no difference is shown.

    >>> round(smallest_difference(222), 3), smallest_difference(9), smallest_difference(0)
    (0.059, None, None)
    """
    for step in range(1, 1000):
        difference = step / 1000
        spread = math.sqrt(max(CHANGING, difference) - difference**2)
        if has_power(spread / difference, questions):
            return difference
    return None


def _sum(planned: Plan, name: str) -> tuple[int, int | None]:
    ranges = [getattr(run, name) for run in planned.runs]
    highs = [r.high for r in ranges]
    return sum(r.low for r in ranges), None if None in highs else sum(highs)


def _measured(done: CostEstimate) -> tuple[Any, float | None, str]:
    """Time and dollars of a pilot."""
    time_, usd = done.total["seconds"], done.total["usd"]
    count = sum(len(sample.rows) for sample in done.samples if sample)
    unpriced = any(s.why for s in done.samples if s and s.rows)
    seconds = None if time_.value is None else (time_.value, time_.low, time_.high)
    return seconds, usd.value if not unpriced else None, f"from {count} questions asked"


def _remembered(workbench: Workbench, planned: Plan) -> tuple[Any, float | None, str]:
    """Time and dollars carried over from the newest runs with the same models and indexes, or with the same models."""
    known, seconds, usd = _known(workbench), 0.0, 0.0
    priced = True
    for run in planned.runs:
        if not run.left:
            continue
        same = _closest(run, known)
        if same is None:
            return None, None, ""
        seconds += run.left * same["seconds"]
        priced = priced and same["usd"] is not None
        usd += run.left * (same["usd"] or 0.0)
    if not planned.runs or not any(run.left for run in planned.runs):
        return None, None, ""
    return (seconds, None, None), usd if priced else None, "from earlier runs"


def of_flow(workbench: Workbench, flow: FlowSpec) -> Mapping[str, Any] | None:
    """The ``seconds`` and ``usd`` of a question in the newest run of the same workflow with the same models and indexes, or
    with the same models; None if there is none."""
    return _closest(flow, [run for run in _known(workbench) if run["workflow"] == flow.workflow])


def _known(workbench: Workbench) -> list[dict[str, Any]]:
    return list(filter(None, map(_spent, workbench.runs.list()[:RECENT])))


def _spent(folder: Any) -> dict[str, Any] | None:
    """The workflow, the models, the indexes, and the seconds and dollars a question of a run, without replies from the cache."""
    try:
        stored, report = folder.spec(), folder.report()
        total = ((report or {}).get("cost") or {}).get("asked") or {}
        if not total.get("questions") or total.get("seconds") is None:
            return None
        chain = stored["spec"]["settings"].get("chain") or {}
        targets = {a.get("target") for a in chain.get("actions", ()) if a.get("target")}
        if not targets:
            targets = {
                *total.get("usd_unknown_for", {}),
                *((report or {})["cost"].get("prices") or {}),
            }
        count = total["questions"]
        usd = None if total.get("usd") is None else total["usd"] / count
        spent = {"seconds": total["seconds"] / count, "usd": usd}
        return {"workflow": stored["spec"]["workflow"], "names": targets, **spent}
    except (RalleError, KeyError, TypeError):
        return None


def _closest(
    run: PlannedRun | FlowSpec, known: Sequence[Mapping[str, Any]]
) -> Mapping[str, Any] | None:
    names = {*run.llms, *run.retrievers}
    exact = next((report for report in known if report["names"] == names), None)
    return exact or next((report for report in known if {*run.llms} <= report["names"]), None)


def _local(workbench: Workbench, llms: set[str]) -> bool:
    """Whether none of these models is one of a server, which may have a price."""
    entries = workbench.workspace.llms()
    return all(
        name in entries and "base_url" not in LLMS.entry(entries[name].backend).form
        for name in llms
    )


# the reply cache


def _cached(workbench: Workbench, request: ExperimentRequest) -> int | None:
    """The number of model calls of a sweep that the cache answers."""
    if request.kind != "sweep" or any(v.index for v in variants_of(request.settings)):
        return None
    examples = workbench.asking.questions(request.settings["dataset"])[: request.limit]
    chains = [variant.chain for variant in variants_of(request.settings)]
    known = in_cache(workbench, chains, examples)
    return known[0] if known else None


def in_cache(
    workbench: Workbench,
    chains: Sequence[Chain],
    examples: Sequence[Example],
    patience: float = PATIENCE,
) -> tuple[int, int] | None:
    """(model calls, whole questions) of chains that need not be asked: all steps before them are in the cache, too. None where a
    model or an index is not loaded, and for more than ``patience``, in seconds, can look through."""
    backends = workbench.models.backends
    deadline = time.monotonic() + patience
    calls = whole = 0
    for chain in chains:
        if not all(workbench.models.is_loaded(name) for name in (*chain.llms, *chain.retrievers)):
            return None
        for example in examples:
            if time.monotonic() > deadline:
                return None
            known, ended = _of_question(chain, example, backends, workbench.asking.reply_cache)
            calls, whole = calls + known, whole + ended
    return calls, whole


def _of_question(
    chain: Chain, example: Example, backends: Backends, reply_cache: ReplyCache
) -> tuple[int, bool]:
    """The model calls for a question that the cache answers, up to the first step that it lacks, and whether it lacks none."""
    known = 0
    with closing(chain_flow(chain).make(backends)(example.question)) as flow:
        try:
            request = next(flow)
            while True:
                if isinstance(request, Note):
                    reply = request.reply()
                elif isinstance(request, (Retrieve, Generate)):
                    remembered = reply_cache.get(request, backends)
                    if remembered is None:
                        return known, False
                    reply = remembered.reply
                    known += isinstance(request, Generate)
                else:
                    return known, False
                request = flow.send(reply)
        except StopIteration:
            return known, True
        except RalleError:
            return known, False
