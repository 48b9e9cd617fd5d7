"""Checked import of datasets of any format into ``<workspace>/datasets/<name>.jsonl`` in KILT's format."""

from __future__ import annotations

import filecmp
import json
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rallebench.core.errors import BadFileError, UsageError
from rallebench.core.files import disk_error, writing
from rallebench.core.locks import alone
from rallebench.core.parts import beside, check_name, move_in
from rallebench.core.sources import Problem, Problems, Source
from rallebench.core.types import Example
from rallebench.datasets import Record
from rallebench.datasets.import_notes import ImportNotes, write_notes
from rallebench.datasets.kilt import examples
from rallebench.datasets.reading import DEFAULT, dataset_form, read_examples, records
from rallebench.datasets.survey import (
    GoldCount,
    PageFinder,
    Survey,
    named_pages,
    sentences,
    survey,
    with_pages,
)
from rallebench.datasets.tasks import SEED, draw_sample

ADDITION_LOCK_SECONDS = 5.0
"""Seconds that an addition waits for another one to finish."""


@dataclass(frozen=True, slots=True)
class ImportedDataset:
    """Result of an import. ``skipped``: number of bad rows; ``problems``: the first 20.

    ``answers``, ``pages``, ``neither``: questions with an accepted answer, with a gold page, with neither. ``warnings``: gold
    that may be lost; ``notes``: remarks on how gold was read.
    """

    name: str
    path: Path
    form: str
    questions: int
    skipped: int
    problems: tuple[Problem, ...]
    answers: int = 0
    pages: int = 0
    neither: int = 0
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def import_dataset(
    datasets: Path,
    name: str,
    source: Path,
    *,
    form: str = "",
    skip_bad: bool = False,
    sample: int = 0,
    seed: int = SEED,
    find_pages: PageFinder | None = None,
) -> ImportedDataset:
    """Copy a dataset into ``datasets/<name>.jsonl``, atomically; an equal one is kept.

    ``form``: a name of DATASETS; '' recognises it. ``sample``: number of questions drawn with ``seed``, as R-Eval draws
    them; 0 keeps all. ``find_pages``: looks up pages in the corpora that the questions may be about. Raises BadFileError for
    the first bad row unless ``skip_bad``, and for a set without questions; UsageError if another set has the name;
    BackendError if the disk is full.
    """
    datasets, source = Path(datasets), Path(source)
    target = datasets / f"{check_name('dataset', name)}.jsonl"
    if target.with_name(target.name + ".gz").exists():
        raise UsageError(f"A dataset {name!r} exists already; choose another name.")
    if not source.exists():
        raise BadFileError(f"{source} does not exist.")
    form = form or dataset_form(source)
    read = Source(source, Problems(skip=skip_bad, offered=True))
    surveyed = survey(read, form) or Survey()
    chosen = named_pages(surveyed, find_pages) if find_pages else None
    rows = examples(read, with_pages(records(read, form), chosen or ()))
    gold = Counter[str]()
    try:
        with beside(datasets, name) as half:
            drawn = iter(draw_sample(list(rows), sample, seed)) if sample > 0 else rows
            count = _write(half / target.name, _count_gold(drawn, gold))
            if not count:
                raise BadFileError(
                    " ".join([f"{source} contains no questions.", *read.problems.warnings])
                )
            _move_in(half / target.name, target)
            counts = GoldCount(count, gold["answers"], gold["pages"])
            warnings, notes = sentences(surveyed, counts, chosen)
            result = ImportedDataset(
                *(name, target, form, count, read.problems.count, tuple(read.problems.first)),
                *(gold["answers"], gold["pages"], gold["neither"]),
                (*read.problems.warnings, *warnings),
                tuple(notes),
            )
            write_notes(target, _import_notes(result))
    except OSError as error:
        raise disk_error(target, error) from error
    return result


def _import_notes(result: ImportedDataset) -> ImportNotes:
    return ImportNotes(
        skipped=result.skipped,
        problems=tuple(problem.message for problem in result.problems),
        warnings=tuple(result.warnings),
        notes=tuple(result.notes),
    )


def _count_gold(rows: Iterator[Example], gold: Counter[str]) -> Iterator[Example]:
    """Yield the examples, counting in ``gold`` those with answers, with pages, and with neither."""
    for example in rows:
        has_answers, has_pages = bool(example.gold.answers), bool(example.gold.pages)
        gold["answers"] += has_answers
        gold["pages"] += has_pages
        gold["neither"] += not has_answers and not has_pages
        yield example


def add_record(datasets: Path, name: str, record: Record) -> int:
    """Add a question in KILT's format to ``datasets/<name>.jsonl``, created if needed; return the new number of questions.

    The file is written atomically, and its other lines are kept. The id is the record's plus a number. Raises UsageError
    for a set of another format and for a question that is already in it, BadFileError for a damaged file.
    """
    target = Path(datasets) / f"{check_name('dataset', name)}.jsonl"
    if target.with_name(target.name + ".gz").exists():
        raise UsageError(f"The dataset {name!r} is compressed; choose another name.")
    refused = f"The dataset {name!r} is being written by another process; try again."
    with alone(target.with_name(f".{target.name}.lock"), refused, patience=ADDITION_LOCK_SECONDS):
        questions: list[Example] = []
        if target.exists():
            form = dataset_form(target)
            if form != DEFAULT:
                raise UsageError(
                    f"The dataset {name!r} is in the format {form}; questions can only be added to KILT's format. Choose another name."
                )
            questions = list(read_examples(target, form=form))
        ids = {example.question.qid for example in questions}
        for example in questions:
            if example.question.text.strip() == str(record["input"]).strip():
                raise UsageError(
                    f"The dataset {name!r} already contains this question, with the id {example.question.qid!r}."
                )
        number = len(questions) + 1
        while f"{record['id']}-{number}" in ids:
            number += 1
        earlier = target.read_bytes() if target.exists() else b""
        line = json.dumps({**record, "id": f"{record['id']}-{number}"}, ensure_ascii=False) + "\n"
        with writing(target) as handle:
            handle.write(earlier + (b"" if not earlier or earlier.endswith(b"\n") else b"\n"))
            handle.write(line.encode("utf-8", "backslashreplace"))
        return len(questions) + 1


def _write(path: Path, examples: Iterator[Any]) -> int:
    count = 0
    with open(path, "wb") as handle:
        for example in examples:
            line = json.dumps(dict(example.record), ensure_ascii=False) + "\n"
            handle.write(line.encode("utf-8", "backslashreplace"))
            count += 1
        handle.flush()
        os.fsync(handle.fileno())
    return count


def _move_in(part: Path, target: Path) -> None:
    """Rename a file to ``target``; an equal existing one is kept."""
    if not move_in(part, target) and not filecmp.cmp(part, target, shallow=False):
        raise UsageError(
            f"A dataset {target.stem!r} with other questions exists already; "
            f"choose another name or remove {target}."
        )
