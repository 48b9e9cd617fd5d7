"""What a reader of RGB's numbers must know of the records behind them."""

from __future__ import annotations

from collections.abc import Sequence

from rallebench.core.runs import RunResult
from rallebench.experiments.papers.rgb import scoring
from rallebench.experiments.papers.rgb.records import Record
from rallebench.experiments.papers.rgb.testing import Test


def notes_of(tests: Sequence[Test], answered: Sequence[RunResult]) -> tuple[str, ...]:
    """What a reader of the numbers must know of the records, one sentence each."""
    records = tests[0].request.records
    notes = []
    for what, ids in records.without.items():
        done = " and were left out" if what == "answers" else ""
        notes.append(
            f"{len(ids)} of {len(records.records)} records of {records.name} have no {what}{done}: {_named(ids)}."
        )
    false = [
        record.id for record in tests[0].records if tests[0].request.facts and not record.wrong
    ]
    if false:
        notes.append(
            f"{len(false)} records have no false copies of their positives: {_named(false)}."
        )
    blurred = [
        record.id
        for record in tests[0].records
        if tests[0].request.facts and holds_the_true_one(record)
    ]
    if blurred:
        notes.append(
            f"Of {len(blurred)} records the false answer holds the true one, so repeating it counts as right: {_named(blurred)}."
        )
    for test, one in zip(tests, answered):
        label = one.request.label
        if test.left_out:
            notes.append(
                f"{label}: {len(test.left_out)} records have no document for it and were left out: {_named(test.left_out)}."
            )
        if test.number and test.short:
            notes.append(
                f"{label}: {test.short} of {len(test.records)} records have fewer than {test.number} documents."
            )
        if test.number and test.other_noise and not test.request.facts:
            notes.append(
                f"{label}: {test.other_noise} of {len(test.records)} records lack positives or negatives for this share of noise and "
                f"got more of the other, as in RGB; {test.noisy:.0%} of all documents are noise."
            )
        if one.n_errors:
            notes.append(
                f"{label}: {one.n_errors} of {one.n} questions failed; they are counted here and in no rate."
            )
        if test.earlier:
            notes.append(
                f"{label}: {len(test.earlier)} answers are of an earlier time and were not asked again."
            )
    base_of_facts = not tests[0].request.facts and any(record.wrong for record in tests[0].records)
    if base_of_facts:
        notes.append(f"{records.name} is a counterfactual set; only its true positives are used.")
    lost = [
        r.id
        for r in tests[0].records
        if records.language == "zh" and any(all(" " in a for a in g) for g in r.required)
    ]
    if lost:
        notes.append(
            f"{len(lost)} records require an answer with a space, which RGB's scoring of Chinese can never find: {_named(lost)}."
        )
    return tuple(notes)


def holds_the_true_one(record: Record) -> bool:
    """Whether the false answer would be scored as right, as 170 where 70 is required."""
    return scoring.is_right(scoring.labels_of(record.fake, record.required))


def _named(ids: Sequence[str]) -> str:
    return ", ".join(ids[:5]) + (f" and {len(ids) - 5} more" if len(ids) > 5 else "")
