"""What a reader of RGB's numbers must know of the records behind them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rallebench.core.runs import RunResult
from rallebench.experiments.papers.predictions import sentences
from rallebench.experiments.papers.rgb.records import RgbRecord
from rallebench.experiments.papers.rgb.scoring import is_right, labels_of
from rallebench.experiments.papers.rgb.testing import Answered, Test


def notes_of(answered: Answered) -> tuple[str, ...]:
    """What a reader of the numbers must know of the records, one sentence each."""
    first, _ = next(iter(answered.values()))
    return (
        *_of_records(first),
        *(note for test, result in answered.values() for note in _of_run(test, result)),
        *_of_language(first),
    )


def _of_records(test: Test) -> Iterator[str]:
    records, facts = test.testbed.records, test.testbed.facts
    for what, ids in records.without.items():
        done = " and were left out" if what == "answers" else ""
        yield f"{len(ids)} of {len(records.records)} records of {records.name} have no {what}{done}: {_named(ids)}."
    bare = [record.id for record in test.records if facts and not record.wrong]
    blurred = [record.id for record in test.records if facts and holds_the_true_one(record)]
    yield from sentences(
        (bare, f"{len(bare)} records have no false copies of their positives: {_named(bare)}."),
        (
            blurred,
            f"Of {len(blurred)} records the false answer holds the true one, so repeating it counts as right: {_named(blurred)}.",
        ),
    )


def _of_run(test: Test, result: RunResult) -> Iterator[str]:
    n, label = len(test.records), f"{result.request.label}:"
    left_out, facts = test.left_out, test.testbed.facts
    yield from sentences(
        (
            left_out,
            f"{label} {len(left_out)} records have no document for it and were left out: {_named(left_out)}.",
        ),
        (
            test.number and test.short,
            f"{label} {test.short} of {n} records have fewer than {test.number} documents.",
        ),
        (
            test.number and test.other_noise and not facts,
            f"{label} {test.other_noise} of {n} records lack positives or negatives for this share of noise and "
            f"got more of the other, as in RGB; {test.noisy:.0%} of all documents are noise.",
        ),
        (
            result.n_errors,
            f"{label} {result.n_errors} of {result.n} questions failed; they are counted here and in no rate.",
        ),
        (
            test.earlier,
            f"{label} {len(test.earlier)} answers are of an earlier time and were not asked again.",
        ),
    )


def _of_language(test: Test) -> tuple[str, ...]:
    records, facts = test.testbed.records, test.testbed.facts
    lost = [
        record.id
        for record in test.records
        if records.language == "zh"
        and any(all(" " in alias for alias in group) for group in record.required)
    ]
    return sentences(
        (
            not facts and any(record.wrong for record in test.records),
            f"{records.name} is a counterfactual set; only its true positives are used.",
        ),
        (
            lost,
            f"{len(lost)} records require an answer with a space, which RGB's scoring of Chinese can never find: {_named(lost)}.",
        ),
    )


def holds_the_true_one(record: RgbRecord) -> bool:
    """Whether the false answer would be scored as right, as 170 where 70 is required."""
    return is_right(labels_of(record.fake, record.required))


def _named(ids: Sequence[str]) -> str:
    return ", ".join(ids[:5]) + (f" and {len(ids) - 5} more" if len(ids) > 5 else "")
