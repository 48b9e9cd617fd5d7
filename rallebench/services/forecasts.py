"""Forecast an experiment before it starts: runs, questions, calls, minutes, dollars, cached replies."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from statistics import fmean

from rallebench.analysis.power import smallest_difference
from rallebench.core.backends import Backends
from rallebench.core.costs import CostTotal
from rallebench.core.errors import RalleError
from rallebench.core.experiments import ExperimentRequest
from rallebench.core.forecast import Forecast, PilotCosts, Seconds, flow_identity
from rallebench.core.numbers import plural
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
"""Number of newest runs used for times and prices."""
SAME = 5
"""Number of a chain's newest runs used for a range of times."""
FASTER, SLOWER = 0.75, 1.5
"""Factors for the lower and upper bounds, to allow for other loads and other questions."""
WORDS_RATE = 5_000.0
"""Passages per second when indexing without an encoder on a slow machine."""
CACHE_SEARCH_SECONDS = 3.0
"""Maximum seconds to search the reply cache; if it takes longer, the number of cached replies is unknown."""
EARLIER_RUNS = "as earlier runs"
"""The basis of a time from runs of the same chain and model."""
RANKED = ("sweep", "batch", "baselines")
"""Kinds that end by ranking real answers; a plan cannot do this."""


@dataclass(frozen=True, slots=True)
class Speed:
    """Seconds per question in a chain's earlier runs (expected, low, high), and dollars; None without a price."""

    seconds: Seconds
    usd: float | None


@dataclass(frozen=True, slots=True)
class RunCost:
    """The ``flow`` and ``backends`` of an earlier run, with its seconds and dollars per question; None without a
    price.
    """

    flow: str
    backends: Mapping[str, str]
    seconds: float
    usd: float | None


class Forecasts:
    """Costs of experiments before they start, based on plans, pilots and earlier runs."""

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

    def forecast(self, request: ExperimentRequest[WorkspaceFolder], repeats: int = 1) -> Forecast:
        """Return the plan of an experiment with all known costs, without calling a model. ``repeats``: of each question. Raises RalleError for an
        invalid request.
        """
        plan = self.plan(request, repeats)
        plan = replace(plan, pilot=experiment_jobs.pilot_costs(self._jobs, request, plan))
        pilot = plan.pilot
        seconds, usd, basis = _pilot_time(pilot) if pilot else self._earlier_time(plan)
        calls, cached = plan.generations.high, self._cached_calls(request)
        if cached is not None and calls is not None:
            cached = min(cached, calls)
        if cached and seconds and not pilot:
            rest = 1 - cached / (calls or cached)
            seconds, usd = scale_seconds(seconds, rest), None if usd is None else rest * usd
        of_builds = self.building(plan)
        if of_builds is None and pilot and pilot.building is not None:
            of_builds = widen(pilot.building)
        if seconds is not None:
            seconds = None if of_builds is None else add_seconds([seconds, of_builds])
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

    def plan(self, request: ExperimentRequest[WorkspaceFolder], repeats: int = 1) -> Forecast:
        """Return the runs of an experiment, and the repeats of their questions. Raises RalleError for an invalid request."""
        value = self._experiments.plan(request, repeats)
        return replace(value, open_end="") if request.kind in RANKED else value

    def _earlier_time(self, planned: Forecast) -> tuple[Seconds | None, float | None, str]:
        """Estimate time and dollars from the newest runs of the same chains and models; None if any of them has no
        run.
        """
        left = [run for run in planned.runs if run.open]
        known = self._earlier_runs() if left else []
        speeds = [self._speed(run.flow, run.llms, known) for run in left]
        measured = [(run.open, speed) for run, speed in zip(left, speeds) if speed is not None]
        if not left or len(measured) < len(left):
            return None, None, ""
        seconds = add_seconds([scale_seconds(speed.seconds, count) for count, speed in measured])
        prices = [None if speed.usd is None else count * speed.usd for count, speed in measured]
        known_prices = [price for price in prices if price is not None]
        usd = sum(known_prices) if len(known_prices) == len(prices) else None
        return seconds, usd, EARLIER_RUNS

    def building(self, planned: Forecast) -> Seconds | None:
        """Estimate the time to build missing indexes from their passages and the encoder's speed on this machine;
        None if the passages were never counted or the encoder never measured.
        """
        space = self._workspace
        seconds: list[Seconds] = [(0.0, 0.0, 0.0)]
        for recipe in planned.builds:
            passages = read_chunks(chunks_folder(space.cache, recipe))
            rate = stored_rate(space.vectors, recipe.encoder) if recipe.encoder else WORDS_RATE
            if passages is None or rate is None:
                return None
            seconds.append(widen(passages.passages / rate))
        return add_seconds(seconds)

    def speed(self, flow: FlowSpec) -> Speed | None:
        """Return the speed of the newest runs of exactly this chain with the same models and indexes; None if there
        are none.
        """
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

    def _cached_calls(self, request: ExperimentRequest[WorkspaceFolder]) -> int | None:
        """Return the number of a sweep's model calls that the cache can answer."""
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
        """Return (model calls, whole questions) that the cache can answer. A call counts only if all earlier steps
        are cached too. None if a model or an index is not loaded, or if the search takes longer than ``patience``
        seconds.
        """
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


def _pilot_time(done: PilotCosts) -> tuple[Seconds | None, float | None, str]:
    """Return the time and dollars measured by a pilot."""
    time_, usd = done.total["seconds"], done.total["usd"]
    count = sum(len(sample.rows) for sample in done.samples if sample)
    unpriced = any(s.why for s in done.samples if s and s.rows)
    seconds = None
    if time_.value is not None and time_.low is not None and time_.high is not None:
        seconds = (time_.value, time_.low, time_.high)
    return seconds, usd.value if not unpriced else None, f"as {plural(count, 'question')} asked"


def scale_seconds(seconds: Seconds, factor: float) -> Seconds:
    """Multiply a time and its bounds."""
    expected, low, high = seconds
    return factor * expected, factor * low, factor * high


def add_seconds(several: Sequence[Seconds]) -> Seconds:
    """Add times and their bounds."""
    expected, low, high = (sum(ends) for ends in zip(*several))
    return expected, low, high


def widen(expected: float, low: float | None = None, high: float | None = None) -> Seconds:
    """Add bounds to a time, to allow for other loads and other questions."""
    slow = expected if high is None else high
    fast = expected if low is None else low
    return expected, FASTER * fast, SLOWER * slow


def _run_cost(folder: RunFolder) -> RunCost | None:
    """Return the chain and models of a run, with seconds and dollars per uncached question. If the cache gave no
    replies, the seconds are wall-clock time.
    """
    try:
        stored, report = folder.description(), folder.report()
        own = report.cost.uncached if report and report.cost else CostTotal()
        if report is None or not own.questions or own.seconds is None:
            return None
        count = own.questions
        by_clock = bool(not report.steps_from_memory and report.n_done and report.seconds)
        answers = report.n_done * (report.repeats.number if report.repeats else 1)
        seconds = (report.seconds or 0) / answers if by_clock else own.seconds / count
        flow = flow_identity(stored.spec.workflow, stored.spec.settings)
        usd = None if own.usd is None else own.usd / count
        return RunCost(flow, stored.backends, seconds, usd)
    except RalleError:
        return None


# the reply cache


def _of_question(
    chain: Chain, example: Example, backends: Backends, reply_cache: ReplyCache
) -> tuple[int, bool]:
    """Return the number of a question's model calls that the cache answers, up to the first missing step, and
    whether nothing is missing.
    """
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
