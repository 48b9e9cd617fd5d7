"""Run files in BARAG's form, JSON lines with one scored answer each, and their summaries: two means, tokens, retrievals,
perfect answers, and the histogram of truthfulness + relevance."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rallebench.core.errors import BadFileError, Hint, NotFoundError, UsageError
from rallebench.core.files import json_lines, read_objects
from rallebench.core.report import Estimate
from rallebench.core.settings import fill
from rallebench.core.sources import Source
from rallebench.core.tables import Figure, Table
from rallebench.core.types import Json
from rallebench.engine.statistics import means
from rallebench.papers.barag.workflow import JOIN

MANIFEST = "runs_manifest.json"
NEEDED = ("title", "question", "answer")
JSON_NAMES = {"n_in": "n_input_tokens", "n_out": "n_output_tokens"}
NUMBERS = ("n_input_tokens", "n_output_tokens", "truthfulness", "relevance")
MAX_TOKEN_COUNT = 1e15
"""The largest accepted token count."""


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """An answer. Unreadable scores and uncounted tokens are None. ``retrieved``: the flag stored in the file; the published
    naive runs have a context but no flag."""

    id: str
    title: str
    question: str
    answer: str
    n_in: int | None
    n_out: int | None
    retrieved: bool
    truthfulness: float | None
    relevance: float | None
    context: str

    @property
    def read(self) -> bool:
        """True if the model was given passages. Two published runs store the draft as the context of answers without
        passages."""
        return self.retrieved or self.context.startswith(JOIN)

    @property
    def total(self) -> float | None:
        """Truthfulness + relevance, 2 to 10; None if either is missing."""
        scores = (self.truthfulness, self.relevance)
        return None if None in scores else sum(score or 0 for score in scores)


@dataclass(frozen=True, slots=True)
class WholeRun:
    """Figures for a whole run, which a file may contain only in part. ``document``: the figures from the manifest."""

    n: int
    truthfulness: float | None = None
    relevance: float | None = None
    n_in: int | None = None
    n_out: int | None = None
    retrieved: int | None = None
    both_5: int | None = None
    document: Json = field(default_factory=dict)

    def figure(self, name: str) -> float | None:
        """The value of a field; None if the manifest does not have it."""
        value: float | None = getattr(self, name)
        return value


@dataclass(frozen=True, slots=True)
class ManifestLine:
    """A line of the manifest."""

    run: str
    dataset: str | None = ""
    description: str | None = ""
    n_total: int = 0
    whole_run_stats: Json | None = None

    @property
    def whole(self) -> WholeRun | None:
        """The figures of the whole run; None if the manifest has none."""
        if not self.whole_run_stats:
            return None
        document = {**self.whole_run_stats, "n": self.n_total}
        return fill(WholeRun, {**document, "document": document})


@dataclass(frozen=True, slots=True)
class BaragRun:
    """A run file. ``whole``: the figures of the whole run; None if unknown."""

    name: str
    dataset: str
    description: str
    rows: tuple[AnswerRow, ...]
    whole: WholeRun | None = None


def read_runs(folder: str) -> tuple[BaragRun, ...]:
    """All run files in a folder, or one file, sorted by name. Raises UsageError, BadFileError."""
    mend = Hint("set", "runs=FOLDER")
    path = Path(folder).expanduser()
    if not folder.strip():
        raise UsageError("No folder of run files (JSON lines) is named.", hint=mend)
    if not path.exists():
        raise NotFoundError(
            f"{folder} does not exist; it should be a folder of run files.", hint=mend
        )
    inside = path / "runs" if (path / "runs").is_dir() else path
    files = [path] if path.is_file() else sorted(inside.glob("*.jsonl"))
    if not files:
        raise UsageError(f"{folder} holds no run file (*.jsonl).")
    about = _manifest(files[0].parent)
    return tuple(_run(file, about.get(file.name.removesuffix(".jsonl"))) for file in files)


def _manifest(folder: Path) -> dict[str, ManifestLine]:
    """Run → its line in the manifest, which is beside the runs or one folder above."""
    path = next((p for p in (folder / MANIFEST, folder.parent / MANIFEST) if p.is_file()), None)
    if path is None:
        return {}
    try:
        lines = [fill(ManifestLine, row) for row in read_objects(path)]
    except (TypeError, KeyError) as error:
        raise BadFileError(f"{path} should be a list of runs ({error}).") from None
    return {str(line.run): line for line in lines}


def _run(path: Path, about: ManifestLine | None) -> BaragRun:
    rows: list[AnswerRow] = []
    seen: dict[str, int] = {}
    for line, row in Source(path).objects():
        rows.append(_row(row, f"{path}, line {line}"))
        id = rows[-1].id
        first = seen.setdefault(id or json.dumps(row, sort_keys=True), line)
        if first != line:
            what = f"repeats the id {id!r} of" if id else "is the same as"
            raise BadFileError(
                f"{path}, line {line} {what} line {first}; each answer may stand there once."
            )
    if not rows:
        raise BadFileError(f"{path} holds no answer.")
    name = path.name.removesuffix(".jsonl")
    if about is None:
        return BaragRun(name, "", "", tuple(rows))
    description = str(about.description or "")
    return BaragRun(name, str(about.dataset or ""), description, tuple(rows), about.whole)


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """A line of a run file, checked."""

    title: str
    question: str
    answer: str
    id: object = None
    n_input_tokens: float | None = None
    n_output_tokens: float | None = None
    retrieved: bool | int | None = None
    truthfulness: float | None = None
    relevance: float | None = None
    context: str | None = None


def _row(row: Json, where: str) -> AnswerRow:
    """The answer in a line; absent numbers are None, an absent flag is False. Raises BadFileError."""
    for key in NEEDED:
        if not isinstance(row.get(key), str):
            raise BadFileError(
                f"{where} has no {key!r}; a run file's row has {', '.join(NEEDED)}, tokens and scores."
            )
    for key in (*NUMBERS, "retrieved"):
        if must_be := _must_be(key, row.get(key)):
            raise BadFileError(f"{where}: {key!r} is {row[key]!r:.40}; it should be {must_be}.")
    stored = fill(StoredAnswer, row)
    return AnswerRow(
        "" if stored.id is None else str(stored.id).strip(),
        stored.title,
        stored.question,
        stored.answer,
        None if stored.n_input_tokens is None else int(stored.n_input_tokens),
        None if stored.n_output_tokens is None else int(stored.n_output_tokens),
        bool(stored.retrieved),
        stored.truthfulness,
        stored.relevance,
        str(stored.context or ""),
    )


def _must_be(key: str, value: Any) -> str:
    """The permitted values of a field, in words; '' for a valid value. Text is invalid for the flag, since "no" would count as
    true."""
    if value is None:
        return ""
    is_number = isinstance(value, (int, float))
    if key == "retrieved":
        return "" if is_number and value in (0, 1) else "true or false, or 1 or 0"
    fits = is_number and not isinstance(value, bool) and 0 <= value <= MAX_TOKEN_COUNT
    return "" if fits else "a number of at least 0, or null"


Key = tuple[str, str, int]
"""Title, question, and repetition number; BARAG's A_f contains some questions twice."""


def by_question(rows: Iterable[AnswerRow]) -> dict[Key, AnswerRow]:
    """The rows by question, including repetitions, to match runs over the same questions."""
    repetitions: Counter[tuple[str, str]] = Counter()
    keyed = {}
    for row in rows:
        question = row.title, row.question
        repetitions[question] += 1
        keyed[row.title, row.question, repetitions[question]] = row
    return keyed


def lines(rows: Sequence[AnswerRow]) -> Iterator[str]:
    """The rows as lines of a run file."""
    return json_lines(
        {JSON_NAMES.get(name, name): value for name, value in asdict(row).items()} for row in rows
    )


BINS = tuple(range(2, 11))
"""Bins of width 1, centred on these values."""
COLUMNS = (
    "Truthfulness",
    "Relevance",
    "Input tokens",
    "Output tokens",
    "Retrieved",
    "Perfect",
    "Answers",
)
PERFECT = 5


@dataclass(frozen=True, slots=True)
class Summary:
    """The summary of a run. ``n_in``, ``n_out``: None if a backend does not count tokens. ``retrieved``: number of answers
    with passages; ``flagged``: number with the file's own flag; ``scored``: number of scored answers, over which the means are
    taken."""

    n: int
    scored: int
    truthfulness: Estimate
    relevance: Estimate
    n_in: int | None
    n_out: int | None
    retrieved: int
    flagged: int
    perfect: int
    histogram: Mapping[int, int]
    total: float | None

    @property
    def cells(self) -> tuple[Any, ...]:
        """A table row, in the order of ``COLUMNS``."""
        scores = (self.truthfulness, self.relevance) if self.scored else (None, None)
        perfect = self.perfect if self.scored else None
        return (*scores, self.n_in, self.n_out, self.retrieved, perfect, self.n)

    def to_json(self) -> Json:
        counts = {name: getattr(self, name) for name in ("n_in", "n_out", "retrieved", "flagged")}
        return {
            "n": self.n,
            "scored": self.scored,
            "truthfulness": self.truthfulness.value,
            "relevance": self.relevance.value,
            **counts,
            "both_5": self.perfect,
            "histogram": {str(center): count for center, count in self.histogram.items()},
        }


def summarize(rows: Sequence[AnswerRow]) -> Summary:
    scores = means(
        {"t": [row.truthfulness for row in rows], "r": [row.relevance for row in rows]},
        ranges={"t": (1, 5), "r": (1, 5)},
    )
    totals = [row.total for row in rows if row.total is not None]
    histogram = dict.fromkeys(BINS, 0)
    for total in totals:
        histogram[find_bin(total)] += 1
    return Summary(
        len(rows),
        len(totals),
        scores["t"],
        scores["r"],
        sum_counts(row.n_in for row in rows),
        sum_counts(row.n_out for row in rows),
        sum(row.read for row in rows),
        sum(row.retrieved for row in rows),
        sum(row.truthfulness == PERFECT == row.relevance for row in rows),
        histogram,
        sum(totals) / len(totals) if totals else None,
    )


def find_bin(total: float) -> int:
    """The bin of a sum of two scores; a sum between two bins goes into the upper one.

    >>> find_bin(2), find_bin(9.5), find_bin(10)
    (2, 10, 10)
    """
    return min(BINS[-1], max(BINS[0], math.floor(total + 0.5)))


def sum_counts(counts: Iterable[int | None]) -> int | None:
    """The sum; None if any count is unknown."""
    known = list(counts)
    return None if None in known else sum(count or 0 for count in known)


def runs_table(title: str, rows: Mapping[str, Summary]) -> Table:
    """A table like Tables II and III, with one row per way to answer."""
    cells = tuple((name, *summary.cells) for name, summary in rows.items())
    return Table(title, ("Run", *COLUMNS), cells)


def histogram_plot(title: str, rows: Mapping[str, Summary]) -> Figure:
    """Truthfulness + relevance in bins of width 1; series names include the mean."""
    series = {
        f"{name} (mean {summary.total:.2f})": tuple(
            (str(center), count) for center, count in summary.histogram.items()
        )
        for name, summary in rows.items()
        if summary.total is not None
    }
    return Figure(title, "truthfulness + relevance", "answers", series, kind="bar")
