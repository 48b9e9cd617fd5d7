"""Checked import of datasets of any format into ``<workspace>/datasets/<name>.jsonl`` in KILT's format."""

from __future__ import annotations

import filecmp
import json
import os
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rallebench.core.columns import Columns
from rallebench.core.encodings import check_encoding
from rallebench.core.errors import BadFileError, UsageError
from rallebench.core.events import Pacer, Progress, map_events
from rallebench.core.files import disk_error
from rallebench.core.numbers import plural
from rallebench.core.parts import beside, check_name, move_in
from rallebench.core.readers import role_columns, table_form
from rallebench.core.sources import Problem, Problems, Source
from rallebench.core.streams import ENDINGS
from rallebench.core.types import Example
from rallebench.datasets import DATASETS
from rallebench.datasets.edit_history import history_file
from rallebench.datasets.fields import ROLES, normal
from rallebench.datasets.import_notes import ImportNotes, write_notes
from rallebench.datasets.kilt import examples
from rallebench.datasets.page_ids import find_corpus_pages, with_corpus_ids
from rallebench.datasets.reading import (
    known_form,
    records,
)
from rallebench.datasets.survey import (
    PROGRESS_SECONDS,
    GoldCount,
    PageFinder,
    Survey,
    named_pages,
    sentences,
    survey,
    with_pages,
)
from rallebench.datasets.tasks import SEED, draw_sample


@dataclass(frozen=True, slots=True)
class ImportedDataset:
    """Result of an import. ``skipped``: number of bad rows; ``problems``: the first 20.

    ``answers``, ``pages``: questions with an accepted answer, with a gold page; ``unanswerable``: questions where declining is
    right; ``neither``: questions without any of these. ``warnings``: gold that may be lost; ``notes``: remarks on how gold was
    read.
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
    unanswerable: int = 0


def import_dataset(
    datasets: Path,
    name: str,
    source: Path,
    *,
    form: str = "",
    columns: Columns | None = None,
    skip_bad: bool = False,
    sample: int = 0,
    seed: int = SEED,
    find_pages: PageFinder | None = None,
    encoding: str = "",
    origin: str = "",
    warnings: Sequence[str] = (),
) -> Generator[Progress, None, ImportedDataset]:
    """Copy a dataset into ``datasets/<name>.jsonl``, atomically, yielding the bytes read; an equal one is kept.

    ``form``: a name of DATASETS; '' recognises it. ``columns``: role → column of a table whose names do not tell. ``sample``:
    number of questions drawn with ``seed``, as R-Eval draws them; 0 keeps all. ``find_pages``: looks up pages in the corpora that
    the questions may be about. ``encoding``: of the text, '' to detect it; ``origin``: the source's name on a hub; ``warnings``:
    about the source, kept with the result. Raises BadFileError for the first bad row unless ``skip_bad``, and for a set without
    questions; UsageError if another set has the name; BackendError if the disk is full.
    """
    datasets, source = Path(datasets), Path(source)
    target = datasets / f"{check_name('dataset', name)}.jsonl"
    if _packed(target):
        raise UsageError(f"A dataset {name!r} exists already; choose another name.")
    problems = Problems(skip=skip_bad, offered=True, warnings=list(warnings))
    read = Source(source, problems, encoding=check_encoding(encoding))
    form = import_form(read, form, columns)
    read.columns = role_columns(read, columns, ROLES, normal)
    surveying = map_events(survey(read, form), partial(_survey_progress, read))
    surveyed = (yield from surveying) or Survey()
    chosen = named_pages(surveyed, find_pages) if find_pages else None
    known = None
    if find_pages:
        looking = find_corpus_pages(read, form, find_pages)
        known = yield from map_events(looking, partial(_survey_progress, read))
    rows = examples(read, with_corpus_ids(with_pages(records(read, form), chosen or ()), known))
    gold = Counter[str]()
    try:
        with beside(datasets, name) as half:
            drawn = iter(draw_sample(list(rows), sample, seed)) if sample > 0 else rows
            writing = _write(half / target.name, _count_gold(drawn, gold))
            count = yield from map_events(writing, partial(_write_progress, read))
            if not count:
                raise BadFileError(
                    " ".join([f"{source} contains no questions.", *read.problems.warnings])
                )
            _move_in(half / target.name, target)
            counts = GoldCount(count, gold["answers"], gold["pages"], gold["unanswerable"])
            lost_gold, notes = sentences(surveyed, counts, chosen)
            if known:
                lost_gold, notes = [*lost_gold, *known.warnings], [*notes, known.note]
            result = ImportedDataset(
                *(name, target, form, count, read.problems.count, tuple(read.problems.first)),
                *(gold["answers"], gold["pages"], gold["neither"]),
                (*read.problems.warnings, *lost_gold),
                tuple(notes),
                gold["unanswerable"],
            )
            write_notes(target, _import_notes(result, origin, columns))
    except OSError as error:
        raise disk_error(target, error) from error
    return result


def _packed(target: Path) -> bool:
    """Return whether a packed file has the name of a new dataset."""
    return any(target.with_name(target.name + ending).exists() for ending in ENDINGS)


def import_form(source: Source, form: str = "", columns: Columns | None = None) -> str:
    """Return the format in which a source is read. Raises BadFileError if it does not exist."""
    if not source.path.exists():
        raise BadFileError(f"{source.path} does not exist.")
    return table_form(DATASETS, source.path, form) if columns else form or known_form(source)


def _survey_progress(read: Source, done: int) -> Progress:
    """The file is read twice: a survey, then its questions."""
    return Progress("", done // 2, read.total or None, "looking for gold")


def _write_progress(read: Source, count: int) -> Progress:
    done = (read.total + read.done) // 2
    return Progress("", done, read.total or None, f"{plural(count, 'question')} written")


def _import_notes(result: ImportedDataset, origin: str, columns: Columns | None) -> ImportNotes:
    return ImportNotes(
        origin=origin,
        columns=dict(columns or {}),
        skipped=result.skipped,
        problems=tuple(problem.message for problem in result.problems),
        warnings=tuple(result.warnings),
        notes=tuple(result.notes),
    )


def _count_gold(rows: Iterator[Example], gold: Counter[str]) -> Iterator[Example]:
    """Yield the examples, counting in ``gold`` those with answers, with pages, unanswerable ones, and those without all."""
    for example in rows:
        has_answers, has_pages = bool(example.gold.answers), bool(example.gold.pages)
        gold["answers"] += has_answers
        gold["pages"] += has_pages
        gold["unanswerable"] += example.gold.unanswerable
        gold["neither"] += not (has_answers or has_pages or example.gold.unanswerable)
        yield example


def _write(path: Path, examples: Iterator[Example]) -> Generator[int, None, int]:
    """Write the records, yielding their number from time to time, and return it."""
    count, pacer = 0, Pacer(PROGRESS_SECONDS)
    with open(path, "wb") as handle:
        for example in examples:
            line = json.dumps(dict(example.record), ensure_ascii=False) + "\n"
            handle.write(line.encode("utf-8", "backslashreplace"))
            count += 1
            if pacer.due():
                yield count
        handle.flush()
        os.fsync(handle.fileno())
    return count


def _move_in(part: Path, target: Path) -> None:
    """Rename a file to ``target``; an equal existing one is kept. A new one has no history."""
    if move_in(part, target):
        history_file(target).unlink(missing_ok=True)
    elif not filecmp.cmp(part, target, shallow=False):
        raise UsageError(
            f"A dataset {target.stem!r} with other questions exists already; "
            f"choose another name or remove {target}."
        )
