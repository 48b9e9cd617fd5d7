"""Survey of all rows of a question file before its import: unused fields, and fields that name gold pages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from rallebench.core.errors import BadFileError
from rallebench.core.events import Pacer
from rallebench.core.numbers import plural
from rallebench.core.readers import naming
from rallebench.core.sources import Problems, Source
from rallebench.datasets import DATASETS, Record
from rallebench.datasets._values import NoValueError
from rallebench.datasets.fields import EXPLICIT, looks_like_gold, may_name_pages, output

PageFinder = Callable[[Collection[str]], Mapping[str, Mapping[str, Sequence[str]]]]
"""Look-up of page names: names → corpus → name → ids of the pages with that name."""

MOST_NAMED = 8
"""Maximum number of fields that a sentence names."""
PROGRESS_SECONDS = 0.3
"""Least time between two reports of progress."""
EXAMPLE = 60
"""Maximum characters of a name that a warning quotes."""


@dataclass
class Survey:
    """Findings about a file. ``left``: unused field → rows with a value; ``gold_like``: unused fields that look like gold;
    ``names``: line → field → pages that it may name; ``missing``: text → number of answers taken for missing; ``split``: rows
    with several answers in a cell; ``unsplit``: rows with one answer that contains ``;``."""

    rows: int = 0
    left: Counter[str] = field(default_factory=Counter)
    gold_like: set[str] = field(default_factory=set)
    names: dict[int, Mapping[str, list[str]]] = field(default_factory=dict)
    missing: Counter[str] = field(default_factory=Counter)
    split: int = 0
    unsplit: int = 0

    def add(self, line: int, fields: Any) -> None:
        """Count a row's fields."""
        self.rows += 1
        self.left.update(list(fields.left))
        self.gold_like |= {n for n, value in fields.left.items() if looks_like_gold(n, value)}
        self.missing.update(fields.missing)
        self.split += fields.split
        self.unsplit += fields.unsplit
        if fields.names:
            self.names[line] = fields.names


@dataclass(frozen=True, slots=True)
class NamedPages:
    """Gold pages named by a field. ``column``: the field; ``corpus``: '' if no corpus has them; ``of``: line → evidence sets;
    ``rows``: number of rows with the field; ``unknown``: names that are not in the corpus."""

    column: str = EXPLICIT
    corpus: str = ""
    of: Mapping[int, list[list[str]]] = field(default_factory=dict)
    rows: int = 0
    unknown: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class GoldCount:
    """Number of questions, of questions with an answer, with a gold page, and of unanswerable questions."""

    questions: int
    answers: int
    pages: int
    unanswerable: int = 0


def survey(
    source: Source, form: str, most: int | None = None
) -> Generator[int, None, Survey | None]:
    """Survey the first ``most`` rows (all if None), yielding the bytes read from time to time. Return None for a format with fixed
    field names, and for a file that can be read only once.
    """
    traits = DATASETS.entry(form).traits
    again = source.path.is_file() or source.path.is_dir()
    if "fields" not in traits or not again:
        return None
    surveyed, pacer = Survey(), Pacer(PROGRESS_SECONDS)
    problems = Problems(skip=True)
    reading = Source(source.path, problems, encoding=source.encoding, columns=source.columns)
    try:
        with naming(source.path, form):
            for line, number, row in islice(traits["rows"](reading), most):
                with suppress(NoValueError):  # the import reports this row
                    surveyed.add(line, traits["fields"](row, number))
                if pacer.due():
                    yield reading.done
    except BadFileError:
        return None
    return surveyed


def named_pages(surveyed: Survey, find: PageFinder) -> tuple[NamedPages, ...]:
    """Return the field and corpus that match most rows (at least half of those with the field): once for rows with explicit
    gold pages, once for the others.
    """
    values = {name for row in surveyed.names.values() for names in row.values() for name in names}
    corpora = find(values | {part for name in values for part in _parts(name)}) if values else {}
    best: dict[bool, NamedPages] = {}
    for name in dict.fromkeys(name for row in surveyed.names.values() for name in row):
        having = {line: row[name] for line, row in surveyed.names.items() if name in row}
        for corpus, pages in corpora.items():
            unknown: list[str] = []
            rows = ((line, _sets(names, pages, unknown)) for line, names in having.items())
            of = {line: sets for line, sets in rows if sets}
            kind = name == EXPLICIT
            if kind:  # rows with explicit gold keep it
                unknown += (
                    page for line, names in having.items() if line not in of for page in names
                )
            if 2 * len(of) >= len(having) and len(of) > len(best.get(kind, NamedPages()).of):
                best[kind] = NamedPages(name, corpus, of, len(having), unknown)
        if name == EXPLICIT and corpora and True not in best:
            unknown = [page for names in having.values() for page in names]
            best[True] = NamedPages(rows=len(having), unknown=unknown)
    return tuple(best.values())


def _parts(name: str) -> list[str]:
    """Split a text that may list several names.

    >>> _parts("a.md; b.md"), _parts("Paris, Texas"), _parts("a.md,b.md"), _parts("a.md")
    (['a.md', 'b.md'], ['Paris', 'Texas'], ['a.md', 'b.md'], [])
    """
    parts = [part.strip() for part in re.split(r"[;|\n,]", name)]
    return parts if len(parts) > 1 and all(parts) else []


def _sets(
    names: Sequence[str], pages: Mapping[str, Sequence[str]], unknown: list[str]
) -> list[list[str]]:
    """Return a row's evidence sets: all its pages together, or any page of a name that has several; [] if no name is known.

    An unknown name beside known ones stays a gold page, which no search can find; it is added to ``unknown``.
    """
    single: list[str] = []
    for name in names:
        parts = _parts(name) if name not in pages else []
        known = sum(part in pages for part in parts)
        listed = known == len(parts) or (known and "," not in name)  # a comma may be part of a name
        single += parts if parts and listed else [name]
    lost = [name for name in dict.fromkeys(single) if name not in pages]
    if len(lost) == len({*single}):
        return []
    unknown += lost
    groups = [list(pages.get(name, (name,))) for name in dict.fromkeys(single)]
    if all(len(group) == 1 for group in groups):
        return [[page for group in groups for page in group]]
    return [[page] for group in groups for page in group]


def with_pages(
    records: Iterator[tuple[int, Record]], chosen: Sequence[NamedPages]
) -> Iterator[tuple[int, Record]]:
    """Yield records in KILT's format, with the gold pages that a field of their row names."""
    for line, record in records:
        sets = next((pages.of[line] for pages in chosen if line in pages.of), None)
        if sets:
            answers = [x["answer"] for x in record["output"] if "answer" in x]
            record = {**record, "output": output(answers, sets)}
        yield line, record


def sentences(
    surveyed: Survey, count: GoldCount, chosen: Sequence[NamedPages] | None
) -> tuple[list[str], list[str]]:
    """Return warnings and notes about the gold of a file. ``chosen``: the fields that name pages of a corpus; None if no corpus
    was searched."""
    warnings, notes = [], []
    columns = {named.column for named in chosen or ()} - {EXPLICIT}
    left = {name: rows for name, rows in surveyed.left.items() if name not in columns}
    gold = [name for name in left if name in surveyed.gold_like and not may_name_pages(name)]
    if count.unanswerable:
        notes.append(
            f"{plural(count.unanswerable, 'question')} without a right answer: an answer that declines scores 1."
        )
    if count.questions and count.unanswerable == count.questions:
        warnings.append(
            "No question has a right answer, so only declining is right. If this is a test split without answers, take a split "
            "with them."
        )
    elif not count.answers and count.questions:
        warnings.append(_no_gold(left, count))
    if gold:
        warnings.append(
            f"Unused fields that look like gold: {_count_rows(left, gold)}. If they are the gold, rename the right field to 'answers' (or "
            "'page_id') and import again."
        )
    notes += [
        f"The field {named.column!r} names pages of the corpus {named.corpus!r} in {len(named.of)} of {named.rows} rows; they "
        "are the gold pages."
        for named in chosen or ()
        if named.column != EXPLICIT
    ]
    warnings += [lost_pages(named) for named in chosen or () if named.unknown]
    unknown = [name for name in left if may_name_pages(name) and count.pages < count.questions]
    if unknown and chosen is None:
        notes.append(
            f"{_count_rows(left, unknown)} may name gold pages; the import looks them up in the imported corpora."
        )
    elif unknown and not columns:
        warnings.append(_unknown_pages(surveyed, left, unknown))
    elif count.answers and not count.pages:
        notes.append(
            f"No question names a gold page: retrieval can only be scored by the answers' text.{_left_over(left)}"
        )
    if surveyed.missing:
        texts = ", ".join(map(repr, list(surveyed.missing)[:5]))
        number = plural(sum(surveyed.missing.values()), "answer")
        notes.append(
            f"{number} ({texts}) interpreted as missing, since programs write empty cells this way."
        )
    if surveyed.split:
        cells = plural(surveyed.split, "cell")
        notes.append(f"{cells} with | or ; between several answers: each of them is accepted.")
    if surveyed.unsplit > 1:
        warnings.append(
            f"{surveyed.unsplit:,} answers contain ; and are each accepted only as a whole. If each means several, put | "
            "between them in the file."
        )
    return warnings, notes


def _no_gold(left: Mapping[str, int], count: GoldCount) -> str:
    lost = "an answer" if count.pages else "an answer or a gold page"
    then = "only retrieval can be scored" if count.pages else "only time and tokens can be measured"
    return f"None of {plural(count.questions, 'question')} has {lost}: {then}.{_left_over(left)}"


def _left_over(left: Mapping[str, int]) -> str:
    return f" Unused fields: {_count_rows(left, list(left)[:MOST_NAMED])}." if left else ""


def _unknown_pages(surveyed: Survey, left: Mapping[str, int], names: Sequence[str]) -> str:
    rows = (row[name] for row in surveyed.names.values() for name in names if name in row)
    example = next((pages[0] for pages in rows), "")
    quoted = f", such as {example[:EXAMPLE]!r}" if example else ""
    return (
        f"Ignored: {_count_rows(left, names)} may name gold pages, but in no imported corpus half of the rows match a page id, title "
        f"or address{quoted}. Import the corpus first, then the questions."
    )


def lost_pages(named: NamedPages) -> str:
    """Return a warning about gold pages that a corpus, or all of them, lack."""
    example = named.unknown[0][:EXAMPLE]
    if not named.corpus:
        return (
            f"For {plural(named.rows, 'row')} with gold pages, such as {example!r}, no imported corpus has half of the pages; "
            "import their corpus first, or correct the ids."
        )
    return (
        f"Not in the corpus {named.corpus!r}: {plural(len({*named.unknown}), 'gold page')}, such as {example!r}; no search of it "
        "can find them."
    )


def _count_rows(left: Mapping[str, int], names: Sequence[str]) -> str:
    """``'gold' (3 rows), 'label' (1 row)``"""
    return ", ".join(f"{n!r} ({plural(left[n], 'row')})" for n in names)
