"""From a few answered questions to the cost of a whole plan, with bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rallebench.engine.plan import Plan, PlannedRun, list_some

QUANTITIES = ("seconds", "model_calls", "retrievals", "prompt_tokens", "completion_tokens", "usd")


@dataclass(frozen=True, slots=True)
class PilotSample:
    """``questions`` of a part were asked, ``failed`` of them failed. ``rows``: one per answered question, quantity → what
    it took; None where it is not known. ``why``: the first failure, or for which model a price is not known; without rows, why the
    part could not be asked."""

    questions: int
    failed: int
    rows: tuple[Mapping[str, float | None], ...]
    why: str = ""


@dataclass(frozen=True, slots=True)
class Interval:
    """The expected value, from the mean of the sample, and the bounds, from its least and its largest question; None: unknown."""

    value: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """``samples``: per part of the plan, None where it was not reached; ``parts``: quantity → Interval for what is left of each;
    ``total`` the same for all. ``notes``: how far it can be trusted. ``building``: seconds to build the indexes that are not there,
    None where that was not measured."""

    plan: Plan
    samples: tuple[PilotSample | None, ...]
    parts: tuple[Mapping[str, Interval], ...]
    total: Mapping[str, Interval]
    notes: tuple[str, ...]
    building: float | None = None


def estimate_cost(plan: Plan, samples: Sequence[PilotSample | None]) -> CostEstimate:
    """Every part's sample carried over to the questions that are left of it; parts without one get those of similar parts."""
    similar: dict[Any, tuple[Mapping[str, float | None], ...]] = {}
    for part, sample in zip(plan.runs, samples):
        similar[_sort(part)] = similar.get(_sort(part), ()) + (sample.rows if sample else ())
    parts = []
    borrowed: list[str] = []
    unknown: list[str] = []
    for part, sample in zip(plan.runs, samples):
        rows = sample.rows if sample else ()
        if not rows and part.left:
            rows = similar[_sort(part)]
            (borrowed if rows else unknown).append(part.label)
        parts.append({q: _amount([row[q] for row in rows], part.left) for q in QUANTITIES})
    whole = {q: _sum([amounts[q] for amounts in parts]) for q in QUANTITIES}
    if plan.rows:  # requests for rows are in no run
        whole = dict.fromkeys(QUANTITIES, Interval())
    notes = _notes(plan, samples, borrowed, unknown)
    return CostEstimate(plan, tuple(samples), tuple(parts), whole, notes)


def _sort(part: PlannedRun) -> Any:
    """Parts with the same key are similar."""
    return part.workflow, part.llms, part.retrievers


def _amount(values: Sequence[float | None], left: int) -> Interval:
    """The amount of ``left`` questions like those of the sample; unknown if one of these is."""
    known = [value for value in values if value is not None]
    if not left:
        return Interval(0.0, 0.0, 0.0)
    if not known or len(known) < len(values):
        return Interval()
    return Interval(sum(known) / len(known) * left, min(known) * left, max(known) * left)


def _sum(amounts: Sequence[Interval]) -> Interval:
    """The amounts of several parts together; unknown if one of them is."""
    if any(amount.value is None for amount in amounts):
        return Interval()
    return Interval(*(sum(getattr(a, end) for a in amounts) for end in ("value", "low", "high")))


def _notes(
    plan: Plan,
    samples: Sequence[PilotSample | None],
    borrowed: Sequence[str],
    unknown: Sequence[str],
) -> tuple[str, ...]:
    """``borrowed``, ``unknown``: labels of the parts that are estimated from others, and of those that cannot be estimated."""
    notes: list[str] = []
    refused: dict[str, list[str]] = {}
    for part, sample in zip(plan.runs, samples):
        if sample and sample.why and not sample.rows:
            refused.setdefault(sample.why, []).append(part.label)
    notes += [f"{list_some(labels)}: could not be probed: {why}" for why, labels in refused.items()]
    measured = [sample for sample in samples if sample and sample.rows]
    if measured:
        count, parts = sum(len(sample.rows) for sample in measured), len(measured)
        notes.append(
            f"Measured on {count} questions of {parts} part{'s' * (parts != 1)} and scaled to all; the bounds are "
            "those of the least and the largest of these questions. Not included: loading, scoring, larger batches, other work "
            "on the machine. Cached replies cost nothing."
        )
    if failures := [sample for sample in measured if sample.failed]:
        failed = sum(sample.failed for sample in failures)
        notes.append(
            f"{failed} of the probe's questions failed and are in no figure: {failures[0].why}"
        )
    if borrowed:
        notes.append(f"{list_some(borrowed)}: not asked; estimated from similar runs.")
    refused_labels = {label for labels in refused.values() for label in labels}
    if unreached := [label for label in unknown if label not in refused_labels]:
        builds = "; it builds no index" * bool(plan.builds)
        notes.append(
            f"{list_some(unreached)}: not reached by the probe{builds}, so the sums are not known."
        )
    elif unknown:
        notes.append("The sums are not known.")
    unpriced = {
        sample.why
        for sample in measured
        if sample.why and not sample.failed and any(row["usd"] is None for row in sample.rows)
    }
    notes += [f"US dollars are not known for {why}." for why in sorted(unpriced)]
    if plan.rows:
        notes.append("A probe fills no file of rows, so the sums are not known.")
    return (*notes, *plan.notes)


def as_json(estimate: CostEstimate) -> dict[str, Any]:
    """The estimate as JSON, for the key ``probe`` of a plan."""
    rows = [
        {
            "label": part.label,
            "asked": sample.questions if sample else 0,
            "failed": sample.failed if sample else 0,
            **{name: asdict(amount) for name, amount in amounts.items()},
        }
        for part, sample, amounts in zip(estimate.plan.runs, estimate.samples, estimate.parts)
    ]
    return {
        "parts": rows,
        "total": {name: asdict(amount) for name, amount in estimate.total.items()},
        "notes": list(estimate.notes),
    }
