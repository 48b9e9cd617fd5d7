"""The cost of an experiment before it starts: runs, questions, calls, minutes, dollars, and the cached replies."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from statistics import fmean

from rallebench.analysis.paired import has_power
from rallebench.core.backends import Backends
from rallebench.core.costs import CostTotal
from rallebench.core.errors import RalleError
from rallebench.core.experiments import ExperimentRequest
from rallebench.core.forecast import Forecast, PilotCosts, Seconds, flow_identity
from rallebench.core.prices import FREE
from rallebench.core.runs import FlowSpec
from rallebench.core.types import Chain, Example, Generate, Note, Retrieve
from rallebench.engine.reply_cache import ReplyCache
from rallebench.engine.store import RunFolder
from rallebench.experiments.sweeps import remarks
from rallebench.experiments.sweeps.running import sweep_variants
from rallebench.services import experiment_jobs
from rallebench.services.asking import Asking
from rallebench.services.experiments import Experiments
from rallebench.services.jobs import JobManager
from rallebench.services.models import ModelManager
from rallebench.services.runs import Runs
from rallebench.workspace.flows import chain_flow
from rallebench.workspace.indexes.cache import chunks_folder, read_chunks
from rallebench.workspace.indexes.rates import stored_rate
from rallebench.workspace.paths import WorkspaceFolder

RECENT = 40
"""The number of newest runs from which times and prices are taken."""
SAME = 5
"""The number of the newest runs of one chain whose times make a range."""
FASTER, SLOWER = 0.75, 1.5
"""Factors of the bounds: another load on the machine, other questions."""
WORDS_RATE = 5_000.0
"""Passages a second of an index without an encoder, on a slow machine."""
CHANGING = 0.1
"""The assumed share of questions that two variants answer differently, for the smallest difference that shows."""
CACHE_SEARCH_SECONDS = 3.0
"""The most seconds of a search in the reply cache; then the number of cached replies is not known."""
RANKED = ("sweep", "batch", "baselines")
"""Kinds whose last step ranks real answers, which a plan without answers cannot."""


@dataclass(frozen=True, slots=True)
class Speed:
    """Seconds a question of the earlier runs of a chain (expected, low, high), and dollars, None without a price."""

    seconds: Seconds
    usd: float | None


@dataclass(frozen=True, slots=True)
class RunCost:
    """The ``flow`` and the ``backends`` of an earlier run, with its seconds and dollars a question; None without a price."""

    flow: str
    backends: Mapping[str, str]
    seconds: float
    usd: float | None


class Forecasts:
    """Costs of experiments before they start, from plans, pilots and earlier runs."""

    def __init__(
        self,
        workspace: WorkspaceFolder,
        models: ModelManager,
        jobs: JobManager,
        runs: Runs,
        experiments: Experiments,
        asking: Asking,
    ) -> None:
        self._workspace, self._models, self._jobs = workspace, models, jobs
        self._runs, self._experiments, self._asking = runs, experiments, asking

    def forecast(self, request: ExperimentRequest) -> Forecast:
        """The plan of an experiment with everything known of its cost; asks no model. Raises RalleError for a wrong request."""
        plan = self.plan(request)
        plan = replace(plan, pilot=experiment_jobs.pilot_costs(self._jobs, request))
        pilot = plan.pilot
        seconds, usd, basis = _pilot_time(pilot) if pilot else self._earlier_time(plan)
        calls, cached = plan.generations.high, self._cached_calls(request)
        if cached is not None and calls is not None:
            cached = min(cached, calls)
        if cached and seconds and not pilot:
            rest = 1 - cached / (calls or cached)
            seconds, usd = _times(seconds, rest), None if usd is None else rest * usd
        of_builds = self.building(plan)
        if of_builds is None and pilot and pilot.building is not None:
            of_builds = widen(pilot.building)
        if seconds is not None:
            seconds = None if of_builds is None else _sum_seconds([seconds, of_builds])
        if usd is None and self._is_free({llm for run in plan.runs for llm in run.llms}):
            usd = 0.0
        questions = max((run.questions for run in plan.runs), default=0)
        return replace(
            plan,
            seconds=seconds,
            building=of_builds,
            usd=usd,
            basis=basis,
            cached=cached,
            smallest=smallest_difference(questions) if len(plan.runs) > 1 else None,
            remarks=tuple(remarks(sweep_variants(request.settings)))
            if request.kind == "sweep"
            else (),
        )

    def plan(self, request: ExperimentRequest) -> Forecast:
        """The runs of an experiment. Raises RalleError for a wrong request."""
        value = self._experiments.plan(request)
        return replace(value, open_end="") if request.kind in RANKED else value

    def _earlier_time(self, planned: Forecast) -> tuple[Seconds | None, float | None, str]:
        """Time and dollars carried over from the newest runs of the same chains and models; None if one of these has no run."""
        left = [run for run in planned.runs if run.open]
        known = self._earlier_runs() if left else []
        speeds = [self._speed(run.flow, run.llms, known) for run in left]
        measured = [(run.open, speed) for run, speed in zip(left, speeds) if speed is not None]
        if not left or len(measured) < len(left):
            return None, None, ""
        seconds = _sum_seconds([_times(speed.seconds, count) for count, speed in measured])
        prices = [None if speed.usd is None else count * speed.usd for count, speed in measured]
        known_prices = [price for price in prices if price is not None]
        usd = sum(known_prices) if len(known_prices) == len(prices) else None
        return seconds, usd, "from earlier runs"

    def building(self, planned: Forecast) -> Seconds | None:
        """The time to build the indexes that are not there: their passages at the rate of their encoder here; None where the passages
        were never counted or the encoder never measured."""
        space = self._workspace
        seconds: list[Seconds] = [(0.0, 0.0, 0.0)]
        for recipe in planned.builds:
            passages = read_chunks(chunks_folder(space.cache, recipe))
            rate = stored_rate(space.vectors, recipe.encoder) if recipe.encoder else WORDS_RATE
            if passages is None or rate is None:
                return None
            seconds.append(widen(passages.passages / rate))
        return _sum_seconds(seconds)

    def speed(self, flow: FlowSpec) -> Speed | None:
        """The speed of the newest runs of this very chain with the same models and indexes; None if there is none."""
        identity = flow_identity(flow.workflow, flow.settings)
        return self._speed(identity, flow.llms, self._earlier_runs())

    def _speed(self, identity: str, llms: Sequence[str], known: Sequence[RunCost]) -> Speed | None:
        loaded = self._models.backends.llms
        models = {f"llm {n}": loaded[n].fingerprint for n in llms if n in loaded}
        same = [
            run
            for run in known
            if identity
            and run.flow == identity
            and all(run.backends.get(name, own) == own for name, own in models.items())
        ][:SAME]
        if not same:
            return None
        seconds = [run.seconds for run in same]
        return Speed(widen(fmean(seconds), min(seconds), max(seconds)), same[0].usd)

    def _earlier_runs(self) -> list[RunCost]:
        return list(filter(None, map(_run_cost, self._runs.list()[:RECENT])))

    def _is_free(self, llms: set[str]) -> bool:
        """Return whether none of these models has a price."""
        known = self._models.prices_of_use()
        return all(known.get(name) == FREE for name in llms)

    def _cached_calls(self, request: ExperimentRequest) -> int | None:
        """The number of model calls of a sweep that the cache answers."""
        if request.kind != "sweep" or any(v.index for v in sweep_variants(request.settings)):
            return None
        examples = self._workspace.questions(request.settings["dataset"])[: request.limit]
        chains = [variant.chain for variant in sweep_variants(request.settings)]
        known = self.in_cache(chains, examples)
        return known[0] if known else None

    def in_cache(
        self,
        chains: Sequence[Chain],
        examples: Sequence[Example],
        patience: float = CACHE_SEARCH_SECONDS,
    ) -> tuple[int, int] | None:
        """(model calls, whole questions) of chains that need not be asked: all steps before them are in the cache, too. None where a
        model or an index is not loaded, and for more than ``patience``, in seconds, can look through."""
        backends = self._models.backends
        deadline = time.monotonic() + patience
        calls = whole = 0
        for chain in chains:
            if not all(self._models.is_loaded(name) for name in (*chain.llms, *chain.retrievers)):
                return None
            for example in examples:
                if time.monotonic() > deadline:
                    return None
                known, ended = _of_question(chain, example, backends, self._asking.reply_cache)
                calls, whole = calls + known, whole + ended
        return calls, whole


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


def _pilot_time(done: PilotCosts) -> tuple[Seconds | None, float | None, str]:
    """Time and dollars of a pilot."""
    time_, usd = done.total["seconds"], done.total["usd"]
    count = sum(len(sample.rows) for sample in done.samples if sample)
    unpriced = any(s.why for s in done.samples if s and s.rows)
    seconds = None
    if time_.value is not None and time_.low is not None and time_.high is not None:
        seconds = (time_.value, time_.low, time_.high)
    return seconds, usd.value if not unpriced else None, f"from {count} questions asked"


def _times(seconds: Seconds, factor: float) -> Seconds:
    expected, low, high = seconds
    return factor * expected, factor * low, factor * high


def _sum_seconds(several: Sequence[Seconds]) -> Seconds:
    expected, low, high = (sum(ends) for ends in zip(*several))
    return expected, low, high


def widen(expected: float, low: float | None = None, high: float | None = None) -> Seconds:
    """A time with its bounds: another load on the machine, other questions."""
    slow = expected if high is None else high
    fast = expected if low is None else low
    return expected, FASTER * fast, SLOWER * slow


def _run_cost(folder: RunFolder) -> RunCost | None:
    """The chain and the models of a run, and the seconds and dollars a question without replies from the cache: by the clock if
    the cache gave none."""
    try:
        stored, report = folder.description(), folder.report()
        own = report.cost.uncached if report and report.cost else CostTotal()
        if report is None or not own.questions or own.seconds is None:
            return None
        count = own.questions
        by_clock = bool(not report.steps_from_memory and report.n_done and report.seconds)
        seconds = (report.seconds or 0) / report.n_done if by_clock else own.seconds / count
        flow = flow_identity(stored.spec.workflow, stored.spec.settings)
        usd = None if own.usd is None else own.usd / count
        return RunCost(flow, stored.backends, seconds, usd)
    except RalleError:
        return None


# the reply cache


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
