"""What a suite would cost: a few questions of every part really answered, and that carried over to all of them.

What was answered is remembered, so the suite does not ask it again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from rallebench.bench import loop
from rallebench.bench.cost import Prices, prices_of, total
from rallebench.bench.perform import Backends
from rallebench.bench.statistics import means
from rallebench.errors import BackendError, RalleError, StoppedError, UsageError
from rallebench.prepared import foreseen
from rallebench.suites import SUITES, Answered, Asked, Index, Indexed, Part, Release, Values
from rallebench.suites._names import named_backends
from rallebench.suites.planning import Plan, Planned, checked, listed
from rallebench.types import Episode, Generate, Retrieve, Step
from rallebench.workbench import Workbench

QUESTIONS = 3
MOST_SECONDS = 300.0
"""No further part is begun after so long; those left over are told by parts of the same sort."""
QUANTITIES = ("seconds", "model_calls", "retrievals", "prompt_tokens", "completion_tokens", "usd")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Probing:
    """What goes on: ``said`` of the part ``label``."""

    label: str
    said: str


@dataclass(frozen=True, slots=True)
class Sample:
    """``asked`` questions of a part, ``failed`` of them failed. ``rows``: one per answered question, quantity → what
    it took; None where it is not known. ``why``: the first failure, or for which model a price is not known."""

    asked: int
    failed: int
    rows: tuple[Mapping[str, float | None], ...]
    why: str = ""


@dataclass(frozen=True, slots=True)
class Amount:
    """What is to be expected, and between which bounds at 95 %; None: not known. Of one question there are no bounds."""

    value: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Estimate:
    """``samples``: per part of the plan, None where it was not reached; ``parts``: quantity → Amount for what is left of each;
    ``total`` the same for all. ``notes``: how far it can be trusted."""

    plan: Plan
    samples: tuple[Sample | None, ...]
    parts: tuple[Mapping[str, Amount], ...]
    total: Mapping[str, Amount]
    notes: tuple[str, ...]


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
        raise UsageError(f"The probe is to ask {questions} questions a part; it must ask at least 1.")
    deadline = time.monotonic() + seconds
    samples: list[Sample | None] = []
    with closing(SUITES[plan.suite](asked)) as parts:
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
                for said in _asked(workbench, part, questions, batch_size, deadline):
                    if isinstance(said, Probing):
                        yield said
                    else:
                        sample, answered = said
                        samples.append(sample)
            except StoppedError:
                raise
            except RalleError as error:
                failed = error
                samples.append(None)
    samples += [None] * (len(plan.parts) - len(samples))
    yield estimated(plan, samples)


def _asked(
    workbench: Workbench, part: Part, questions: int, batch_size: int, deadline: float
) -> Iterator[Probing | tuple[Sample, Answered]]:
    backends = Backends()
    for piece in workbench.load_for(named_backends(part)):
        if isinstance(piece, Backends):
            backends = piece
        else:
            yield Probing(part.label, piece)
    backends, make_flow = part.ready(backends)
    chosen = spread(part.examples, questions)
    found: dict[str, Episode] = {}
    yield Probing(part.label, f"0 of {len(chosen)} questions")
    for episode in loop.run(
        make_flow, [e.question for e in chosen], backends, workflow=part.workflow, memo=workbench.memo,
        batch_size=min(batch_size, max(len(chosen), 1)), stop=lambda: bool(found) and time.monotonic() > deadline,
    ):  # fmt: skip
        found[episode.qid] = episode
        yield Probing(part.label, f"{len(found)} of {len(chosen)} questions")
    good = {e.question.qid: found[e.question.qid] for e in chosen if e.question.qid in found and not found[e.question.qid].error}
    failures = [episode.error for episode in found.values() if episode.error]
    if failures and not good:
        raise BackendError(f"All {len(failures)} questions that the probe asked of {part.label!r} failed: {failures[0]}")
    prices = prices_of({name: backends.llms[name] for name in part.llms})
    rows = tuple(_row(episode, backends, prices) for episode in good.values())
    unknown = {name: why for e in good.values() for name, why in total(e.steps, prices)["usd_unknown_for"].items()}
    why = failures[0] if failures else ", ".join(f"{name} ({reason})" for name, reason in unknown.items())
    yield Sample(len(found), len(failures), rows, why), _answered(part, good, failures)


def _answered(part: Part, good: Mapping[str, Episode], failures: Sequence[str]) -> Answered:
    scored = {e.question.qid: part.score(e, good[e.question.qid]) for e in part.examples if e.question.qid in good}
    values: dict[str, Values] = {m: {qid: row.get(m) for qid, row in scored.items()} for m in part.metrics}
    found = means({metric: list(column.values()) for metric, column in values.items()}) if scored else {}
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
    return {**{name: spent[name] for name in QUANTITIES}, "seconds": sum(_held(step, backends) for step in episode.steps)}


def _held(step: Step, backends: Backends) -> float:
    """Seconds, divided among the requests that a backend answers at one time."""
    if not isinstance(step.request, (Generate, Retrieve)):
        return step.seconds
    return step.seconds / max(1, int(getattr(backends.of(step.request), "concurrency", 1)))


# from a few to all


def estimated(plan: Plan, samples: Sequence[Sample | None]) -> Estimate:
    """Every part's sample carried over to the questions that are left of it; parts without one get those of their sort."""
    borrowed: list[str] = []
    unknown: list[str] = []
    used: list[tuple[Mapping[str, float | None], ...]] = []
    for part, sample in zip(plan.parts, samples):
        rows = sample.rows if sample else ()
        if not rows and part.left:
            rows = _alike(plan, samples, part)
            (borrowed if rows else unknown).append(part.label)
        used.append(rows)
    parts = [{q: _amount([row[q] for row in rows], part.left) for q in QUANTITIES} for part, rows in zip(plan.parts, used)]
    whole = {q: _sum([amounts[q] for amounts in parts]) for q in QUANTITIES}
    return Estimate(plan, tuple(samples), tuple(parts), whole, _notes(plan, samples, borrowed, unknown))


def _alike(plan: Plan, samples: Sequence[Sample | None], part: Planned) -> tuple[Mapping[str, float | None], ...]:
    sort = (part.workflow, part.llms, part.retrievers)
    return tuple(
        row
        for other, sample in zip(plan.parts, samples)
        if sample and (other.workflow, other.llms, other.retrievers) == sort
        for row in sample.rows
    )


def _amount(values: Sequence[float | None], left: int) -> Amount:
    """So many questions, each as those of the sample: Student's t interval, which of two or three is rightly wide."""
    known = [value for value in values if value is not None]
    if not left:
        return Amount(0.0, 0.0, 0.0)
    if not known or len(known) < len(values):
        return Amount()
    mean = sum(known) / len(known)
    if len(known) == 1:
        return Amount(mean * left)
    from scipy import stats

    variance = sum((value - mean) ** 2 for value in known) / (len(known) - 1)
    half = float(stats.t.ppf(0.975, len(known) - 1)) * (variance / len(known)) ** 0.5
    return Amount(mean * left, max(0.0, mean - half) * left, (mean + half) * left)


def _sum(amounts: Sequence[Amount]) -> Amount:
    """Independent errors of several parts; not known where that of any part is not."""
    values = [amount.value for amount in amounts]
    if None in values:
        return Amount()
    value = sum(v for v in values if v is not None)
    if any(amount.high is None for amount in amounts):
        return Amount(value)
    half = sum(((amount.high or 0.0) - (amount.value or 0.0)) ** 2 for amount in amounts) ** 0.5
    return Amount(value, max(0.0, value - half), value + half)


def _notes(plan: Plan, samples: Sequence[Sample | None], borrowed: Sequence[str], unknown: Sequence[str]) -> tuple[str, ...]:
    there = [sample for sample in samples if sample]
    if not plan.parts:
        return plan.notes
    count = sum(len(sample.rows) for sample in there)
    said = [
        f"Measured on {count} questions of {len(there)} part{'s' * (len(there) != 1)} and carried over; the bounds (95 %, Student's t) "
        "know only how much these questions differ. Not in it: loading, scoring, larger batches, other work on the machine; "
        "what the workspace remembers is not asked again and costs nothing."
    ]
    failed = sum(sample.failed for sample in there)
    if failed:
        first = next(sample.why for sample in there if sample.failed)
        said.append(f"{failed} of the probe's questions failed and are in no figure: {first}")
    said += [f"{listed(borrowed)}: not asked; told by parts of the same sort."] * bool(borrowed)
    builds = "; it builds no index" * bool(plan.builds)
    said += [f"{listed(unknown)}: not reached by the probe{builds}, so the sums are not known."] * bool(unknown)
    unpriced = sorted({s.why for s in there if s.why and not s.failed and any(row["usd"] is None for row in s.rows)})
    said += [f"US dollars are not known for {why}." for why in unpriced]
    return (*said, *plan.notes)


def as_json(found: Estimate) -> dict[str, Any]:
    """What a plan's JSON gets beside it."""
    rows = [
        {
            "label": part.label,
            "asked": sample.asked if sample else 0,
            "failed": sample.failed if sample else 0,
            **{name: asdict(amount) for name, amount in amounts.items()},
        }
        for part, sample, amounts in zip(found.plan.parts, found.samples, found.parts)
    ]
    return {"parts": rows, "total": {name: asdict(amount) for name, amount in found.total.items()}, "notes": list(found.notes)}
