"""What a reader of RGB's numbers must know of the records behind them."""

from __future__ import annotations

from collections.abc import Iterator

from rallebench.core.runs import RunResult
from rallebench.experiments.papers.common import failed_note, listed
from rallebench.experiments.papers.rgb.records import RgbRecord
from rallebench.experiments.papers.rgb.scoring import is_right, labels_of
from rallebench.experiments.papers.rgb.testing import Answered, Test


def notes_of(answered: Answered) -> tuple[str, ...]:
    """What a reader of the numbers must know of the records, one sentence each."""
    first, _ = next(iter(answered.values()))
    of_runs = (note for test, result in answered.values() for note in _of_run(test, result))
    return (*_of_records(first), *of_runs, *_of_use(first))


def _of_records(test: Test) -> Iterator[str]:
    records = test.testbed.records
    for what, ids in records.without.items():
        done = " and were left out" if what == "answers" else ""
        yield f"{len(ids)} of {len(records.records)} records of {records.name} have no {what}{done}: {listed(ids)}."
    if not test.testbed.facts:
        return
    if bare := [record.id for record in test.records if not record.wrong]:
        yield f"{len(bare)} records have no false copies of their positives: {listed(bare)}."
    if blurred := [record.id for record in test.records if holds_the_true_one(record)]:
        yield f"Of {len(blurred)} records the false answer holds the true one, so repeating it counts as right: {listed(blurred)}."


def _of_run(test: Test, result: RunResult) -> Iterator[str]:
    n, label, asked_for = len(test.records), f"{result.request.label}:", test.number
    if out := test.left_out:
        yield f"{label} {len(out)} records have no document for it and were left out: {listed(out)}."
    if asked_for and test.short:
        yield f"{label} {test.short} of {n} records have fewer than {asked_for} documents."
    if asked_for and test.other_noise and not test.testbed.facts:
        yield (
            f"{label} {test.other_noise} of {n} records lack positives or negatives for this share of noise and "
            f"got more of the other, as in RGB; {test.noisy:.0%} of all documents are noise."
        )
    yield from failed_note(result.request.label, result, "counted here and in no rate")
    if test.earlier:
        yield f"{label} {len(test.earlier)} answers are of an earlier time and were not asked again."


def _of_use(test: Test) -> Iterator[str]:
    records = test.testbed.records
    if not test.testbed.facts and any(record.wrong for record in test.records):
        yield f"{records.name} is a counterfactual set; only its true positives are used."
    spaced = [record.id for record in test.records if _needs_a_space(record)]
    if records.language == "zh" and spaced:
        yield f"{len(spaced)} records require an answer with a space, which RGB's scoring of Chinese can never find: {listed(spaced)}."


def _needs_a_space(record: RgbRecord) -> bool:
    return any(all(" " in alias for alias in group) for group in record.required)


def holds_the_true_one(record: RgbRecord) -> bool:
    """Whether the false answer would be scored as right, as 170 where 70 is required."""
    return is_right(labels_of(record.fake, record.required))
