"""What a suite would cost: a few questions of every part really answered, and that carried over to all of them.

What was answered is remembered, so the suite does not ask it again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TypeVar

from rallebench.core.errors import BackendError, RalleError, StoppedError, UsageError
from rallebench.core.types import Episode, Generate, Retrieve, Step
from rallebench.engine import loop
from rallebench.engine.cost import Prices, prices_of, total
from rallebench.engine.perform import Backends
from rallebench.experiments.suites import (
    SUITES,
    Answered,
    Asked,
    Index,
    Indexed,
    Part,
    Release,
    Values,
)
from rallebench.experiments.suites._means import means_of
from rallebench.experiments.suites._names import named_backends
from rallebench.experiments.suites.estimating import QUANTITIES, Estimate, Sample, estimated
from rallebench.experiments.suites.planning import Plan, checked
from rallebench.services.leases import Lease
from rallebench.services.workbench import Workbench
from rallebench.workspace.indexes.ensure import foreseen

QUESTIONS = 3
MOST_SECONDS = 300.0
"""No further part is begun after so long; those left over are told by parts of the same sort."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Probing:
    """What goes on: ``said`` of the part ``label``."""

    label: str
    said: str


class NoneAnswered(BackendError):
    """All questions of a part failed; ``failures``: why each."""

    def __init__(self, label: str, failures: Sequence[str]) -> None:
        super().__init__(
            f"All {len(failures)} questions that the probe asked of {label!r} failed: {failures[0]}"
        )
        self.failures = failures


def probe(
    workbench: Workbench,
    plan: Plan,
    asked: Asked,
    *,
    questions: int = QUESTIONS,
    batch_size: int = 20,
    seconds: float = MOST_SECONDS,
) -> Iterator[Probing | Estimate]:
    """Answer ``questions`` of each part through the loop, evenly spread over it; the Estimate is last.

    A part made of earlier answers gets those that the probe was given. Raises RalleError: what cannot be asked, and BackendError
    where all questions of a part fail.
    """
    checked(plan.suite, asked, plan.name)
    if questions < 1:
        raise UsageError(
            f"The probe is to ask {questions} questions a part; it must ask at least 1."
        )
    deadline = time.monotonic() + seconds
    samples: list[Sample | None] = []
    holder = f"the probe of the suite {plan.name!r}"
    with closing(SUITES[plan.suite](asked)) as parts, workbench.lease(holder) as lease:
        answered: Answered | Indexed | None = None
        failed: RalleError | None = None
        while len(samples) < len(plan.parts) and time.monotonic() < deadline:
            try:
                part = parts.throw(failed) if failed else parts.send(answered)
            except StopIteration:
                break
            except Exception as error:  # a suite may make nothing of so few answers
                if error is failed or not samples:
                    raise
                break
            answered, failed = None, None
            if isinstance(part, Release):
                continue
            if isinstance(part, Index):
                there, whole = foreseen(workbench.workspace, part.wanted)
                if not whole:
                    break  # a probe builds nothing
                answered = Indexed(there)
                continue
            try:
                for said in _asked(workbench, lease, part, questions, batch_size, deadline):
                    if isinstance(said, Probing):
                        yield said
                    else:
                        sample, answered = said
                        samples.append(sample)
            except StoppedError:
                raise
            except RalleError as error:
                failed = error
                why = error.failures if isinstance(error, NoneAnswered) else ()
                samples.append(Sample(len(why), len(why), (), next(iter(why), str(error))))
    samples += [None] * (len(plan.parts) - len(samples))
    yield estimated(plan, samples)


def _asked(
    workbench: Workbench, lease: Lease, part: Part, questions: int, batch_size: int, deadline: float
) -> Iterator[Probing | tuple[Sample, Answered]]:
    backends = Backends()
    for piece in lease.load_for(named_backends(part)):
        if isinstance(piece, Backends):
            backends = piece
        else:
            yield Probing(part.label, piece)
    backends, make_flow = part.ready(backends)
    chosen = spread(part.examples, questions)
    found: dict[str, Episode] = {}
    yield Probing(part.label, f"0 of {len(chosen)} questions")
    for episode in loop.run(
        make_flow,
        [e.question for e in chosen],
        backends,
        workflow=part.workflow,
        memo=workbench.memo,
        batch_size=min(batch_size, max(len(chosen), 1)),
        stop=lambda: bool(found) and time.monotonic() > deadline,
    ):
        found[episode.qid] = episode
        yield Probing(part.label, f"{len(found)} of {len(chosen)} questions")
    good = {
        e.question.qid: found[e.question.qid]
        for e in chosen
        if e.question.qid in found and not found[e.question.qid].error
    }
    failures = [episode.error for episode in found.values() if episode.error]
    if failures and not good:
        raise NoneAnswered(part.label, failures)
    prices = prices_of({name: backends.llms[name] for name in part.llms})
    rows = tuple(_row(episode, backends, prices) for episode in good.values())
    unknown = {
        name: why
        for e in good.values()
        for name, why in total(e.steps, prices)["usd_unknown_for"].items()
    }
    why = (
        failures[0]
        if failures
        else ", ".join(f"{name} ({reason})" for name, reason in unknown.items())
    )
    yield Sample(len(found), len(failures), rows, why), _answered(part, good, failures)


def _answered(part: Part, good: Mapping[str, Episode], failures: Sequence[str]) -> Answered:
    scored = {
        e.question.qid: part.score(e, good[e.question.qid])
        for e in part.examples
        if e.question.qid in good
    }
    values: dict[str, Values] = {
        m: {qid: row.get(m) for qid, row in scored.items()} for m in part.metrics
    }
    found = means_of(part, values) if scored else {}
    return Answered(part, "", good, values, found, len(good) + len(failures), len(failures))


def spread(items: Sequence[T], count: int) -> list[T]:
    """At most ``count`` of them, evenly from the whole: what stands first is often alike.

    >>> spread("abcdefghi", 3), spread("ab", 3)
    (['b', 'e', 'h'], ['a', 'b'])
    """
    if len(items) <= count:
        return list(items)
    return [items[int((i + 0.5) * len(items) / count)] for i in range(count)]


def _row(episode: Episode, backends: Backends, prices: Prices) -> dict[str, float | None]:
    """What one question took: the time that it held its models and indexes for, which several may share."""
    spent = total(episode.steps, prices)
    return {
        **{name: spent[name] for name in QUANTITIES},
        "seconds": sum(_held(step, backends) for step in episode.steps),
    }


def _held(step: Step, backends: Backends) -> float:
    """Seconds, divided among the requests that a backend answers at one time."""
    if not isinstance(step.request, (Generate, Retrieve)):
        return step.seconds
    return step.seconds / max(1, int(getattr(backends.of(step.request), "concurrency", 1)))
