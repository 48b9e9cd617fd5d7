"""Imports of corpora, datasets and tables of scholars that report their progress in sentences and then their counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rallebench.core.columns import Columns
from rallebench.core.events import Progress
from rallebench.core.numbers import plural
from rallebench.core.sources import Problem
from rallebench.core.types import Json
from rallebench.datasets.importing import ImportedDataset
from rallebench.datasets.r_eval import ids_that_hold
from rallebench.datasets.reading import pick_up
from rallebench.datasets.tasks import SEED
from rallebench.services.data import Data
from rallebench.workspace.environments import import_scholars
from rallebench.workspace.paths import WorkspaceFolder


@dataclass(frozen=True, slots=True)
class ImportedCounts:
    """The counts of an import. ``problems``: the first bad rows; ``counts``: further counts, for tables of scholars.

    ``gold``: for datasets, the counts of gold answers and pages. ``warnings`` and ``notes``: sentences; None if this
    kind of import has none.
    """

    name: str
    rows: int
    skipped: int = 0
    problems: tuple[Problem, ...] = ()
    warnings: tuple[str, ...] | None = None
    notes: tuple[str, ...] | None = None
    gold: GoldCounts | None = None
    counts: Mapping[str, int] = field(default_factory=dict)

    def to_json(self) -> Json:
        value: dict[str, Any] = {
            "name": self.name,
            "rows": self.rows,
            "skipped": self.skipped,
            "problems": [asdict(problem) for problem in self.problems],
        }
        if self.gold is not None:
            value["gold"] = asdict(self.gold)
        for key in ("warnings", "notes"):
            if (sentences := getattr(self, key)) is not None:
                value[key] = list(sentences)
        return {**value, **self.counts}


@dataclass(frozen=True, slots=True)
class GoldCounts:
    """Numbers of questions with an accepted answer, with a gold page, without a right answer, and without any gold."""

    answers: int
    pages: int
    neither: int
    unanswerable: int = 0

    @property
    def sentence(self) -> str:
        """The counts in words; unanswerable questions only if there are any."""
        declining = f"{self.unanswerable:,} where declining is right, " if self.unanswerable else ""
        return f"{self.answers:,} with answers, {self.pages:,} with gold pages, {declining}{self.neither:,} with neither"

    @classmethod
    def of(cls, dataset: ImportedDataset) -> GoldCounts:
        """Return the counts of an imported dataset."""
        return cls(dataset.answers, dataset.pages, dataset.neither, dataset.unanswerable)


def import_corpus(
    data: Data,
    name: str,
    source: Path | str,
    *,
    form: str = "",
    columns: Columns | None = None,
    page_map: Path | None = None,
    skip_bad: bool = False,
    encoding: str = "",
) -> Iterator[str | ImportedCounts]:
    """Import a corpus, yielding progress as sentences and then the counts. For the settings, see
    ``Data.import_corpus``.
    """
    work = data.import_corpus(
        name,
        source,
        form=form,
        columns=columns,
        page_map=page_map,
        skip_bad=skip_bad,
        encoding=encoding,
    )
    for event in work:
        if isinstance(event, Progress):
            yield _progress_line(event)
            continue
        if event.passages_without_page:
            yield f"Warning: {event.passages_without_page} of {plural(event.passages, 'passage')} have no page."
        problems = tuple(event.problems)
        warnings = tuple(event.warnings)
        yield ImportedCounts(event.name, event.passages, event.skipped, problems, warnings)


def _progress_line(event: Progress) -> str:
    share = f", {event.done / event.total:.0%}" if event.total else ""
    left = "" if event.seconds_left is None else f", about {event.seconds_left:.0f} s left"
    return f"{event.message}{share}{left}"


def import_dataset(
    data: Data,
    name: str,
    source: Path | str,
    *,
    form: str = "",
    columns: Columns | None = None,
    skip_bad: bool = False,
    sample: int = 0,
    seed: int = SEED,
    encoding: str = "",
) -> Iterator[str | ImportedCounts]:
    """Import a dataset, yielding progress as sentences and then the counts. For the settings, see
    ``Data.import_dataset``.
    """
    work = data.import_dataset(
        name,
        source,
        form=form,
        columns=columns,
        skip_bad=skip_bad,
        sample=sample,
        seed=seed,
        encoding=encoding,
    )
    for event in work:
        if isinstance(event, Progress):
            yield _progress_line(event)
            continue
        notes = event.notes
        if event.form.startswith("r-eval") and isinstance(source, Path):
            equal, rows = ids_that_hold(source)
            sentence = f"The _id of {equal} of {plural(rows, 'record')} is the sha256 that R-Eval gives them."
            notes = (*notes, sentence)
        yield ImportedCounts(
            event.name,
            event.questions,
            event.skipped,
            event.problems,
            event.warnings,
            notes,
            GoldCounts.of(event),
        )


def import_scholar_table(
    workspace: WorkspaceFolder, name: str, source: Path, *, skip_bad: bool = False
) -> ImportedCounts:
    """Import a scholar table. In the result, ``rows`` counts scholars, publications and coauthor relations."""
    table = import_scholars(workspace, name, source, skip_bad=skip_bad)
    counts = {kind: getattr(table, kind) for kind in ("scholars", "publications", "coauthors")}
    rows, problems = sum(counts.values()), tuple(table.problems)
    return ImportedCounts(table.name, rows, table.skipped, problems, counts=counts)


def pick_questions(dataset: Path, pages: Set[str], number: int) -> tuple[list[Json], int]:
    """Return the first ``number`` records of a dataset whose gold pages are among ``pages``, and the number of
    records read.

    Raises BadFileError for a bad row, UsageError if the corpus has no page ids.
    """
    return pick_up(dataset, pages, number)
