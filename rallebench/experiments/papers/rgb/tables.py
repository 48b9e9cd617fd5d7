"""The paper's tables (Chen et al. 2023, arXiv:2309.01431) with ours above its own row, and lines over the shares of noise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rallebench.core.errors import BadFileError, NotFoundError
from rallebench.core.experiments import Figure, Table
from rallebench.core.runs import RunResult
from rallebench.core.sources import Source
from rallebench.core.table_files import csv_lines
from rallebench.engine.statistics import Mean
from rallebench.experiments.papers.common import sentences
from rallebench.experiments.papers.rgb.scoring import is_right
from rallebench.experiments.papers.rgb.testing import Answered, Testbed
from rallebench.experiments.published import published_table

SYSTEM = "ChatGPT"
MODEL = f"RGB's paper: {SYSTEM}"
KNOWS = 0.7
"""Error detection is reported for models that know more than this share of the answers without documents."""
SETS: Mapping[str, tuple[str, ...]] = {
    "noise": ("", "_refine"),
    "integration": ("_int",),
    "facts": ("_fact",),
}
"""Test → the ends of the names of the sets that the printed figures are of, or corrections of them."""
NOISE = {"noise": "rgb_table1", "integration": "rgb_table5"}
"""Test → the paper's table of its accuracy over shares of noise."""
REJECTION = {
    "rejection_rate": ("Rej", "Rej"),
    "rejection_rate_judge": ("Rej*", "Rej*"),
    "lucky_rate": ("lucky", ""),
    "all_rate": ("RGB's all_rate", ""),
}
"""Metric → (our column, the paper's); so, too:"""
COUNTERFACTUAL = {
    "acc": ("Acc", "Acc"),
    "acc_doc": ("Acc_doc", "Acc_doc"),
    "fact_check_rate": ("ED", "ED"),
    "fact_check_rate_judge": ("ED*", "ED*"),
    "correct_rate": ("CR of ED", ""),
    "correct_rate_judge": ("CR of ED*", "CR"),
}
"""The paper's correction rate is over the judge's detections."""

Means = Mapping[str, "Mean | None"]
Columns = Mapping[str, tuple[str, str]]


def over_noise(answered: Answered, kind: str) -> tuple[Table, Figure]:
    """Accuracy and rejections at every share of noise. ``kind``: ``noise`` or ``integration``."""
    tests, results = zip(*answered.values())
    testbed, ratios = tests[0].testbed, [test.noise for test in tests]
    cells, language = _printed(NOISE[kind]), testbed.records.language
    printed = {r: cells[key] for r in ratios if (key := f"{language}_{r:g}") in cells}
    title = "Accuracy over shares of noise" + ", information integration" * (kind == "integration")
    rows: list[tuple[Any, ...]] = []
    series: dict[str, tuple[tuple[Any, Any], ...]] = {}
    for name, metric in (("right", "all_rate"), ("declined", "rejection_rate")):
        means = [result.means.get(metric) for result in results]
        rows.append((f"{testbed.request.llm}: {name}", *means))
        series[name] = _scored(zip(ratios, means))
    if any(test.other_noise for test in tests):
        rows.append(("noise among the documents", *(test.noisy for test in tests)))
    if printed:
        rows.append((MODEL, *map(printed.get, ratios)))
        series[MODEL] = tuple(printed.items())
    columns = ("", *(f"noise {ratio:g}" for ratio in ratios))
    note = _note(testbed, kind) if printed else ""
    figure = Figure(title, "share of noise", "share of the answers", series)
    return Table(title, columns, tuple(rows), True, note), figure


def rejection(testbed: Testbed, result: RunResult) -> tuple[Table, Figure]:
    """Rej, lucky hits and RGB's sum of the two, and Rej* where a judge was asked."""
    cells = _printed("rgb_table3")
    language = f"{testbed.records.language}_"
    own = {key.removeprefix(language): v for key, v in cells.items() if key.startswith(language)}
    ours, printed = _rows(testbed, REJECTION, result.means, own)
    columns = ("", *(head for head, _ in REJECTION.values()))
    title, note = "Negative rejection, nothing but noise", _note(testbed, "noise")
    table = Table(title, columns, (ours, printed), True, note)
    return table, _bars("Negative rejection", columns, ours, printed)


def counterfactual(testbed: Testbed, alone: RunResult, result: RunResult) -> tuple[Table, Figure]:
    """What is known without documents and with false ones, errors found, and corrected: over those found by RGB's words and
    over those that the judge saw, which is the paper's."""
    accuracies = {"acc": alone.means.get("all_rate"), "acc_doc": result.means.get("all_rate")}
    cells = _printed("rgb_table7", language=testbed.records.language)
    ours, printed = _rows(testbed, COUNTERFACTUAL, {**result.means, **accuracies}, cells)
    columns = ("", *(head for head, _ in COUNTERFACTUAL.values()))
    note = f"RGB reports only models whose Acc is above {KNOWS:.0%}; its CR is of ED*. {_note(testbed, 'facts')}"
    table = Table(
        "Counterfactual robustness, false documents",
        (*columns, f"Acc above {KNOWS:.0%}"),
        ((*ours, _rule(alone.mean("all_rate"))), (*printed, _rule(cells["Acc"]))),
        True,
        note,
    )
    return table, _bars("Counterfactual robustness", columns, ours, printed)


def reported(accuracy: float | None) -> bool:
    """Whether RGB reports error detection for a model that knows so much."""
    return accuracy is not None and accuracy > KNOWS


def _rule(accuracy: float | None) -> str:
    return "yes" if reported(accuracy) else "no: not to be compared"


def _printed(table: str, **settings: Any) -> dict[str, float]:
    """The paper's column → share, of its row of ``SYSTEM``."""
    published = published_table(table)
    return published.shares(published.row(SYSTEM, **settings))


def _rows(
    testbed: Testbed, columns: Columns, means: Means, cells: Mapping[str, float]
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Our row of a table, and the paper's."""
    ours = (testbed.request.llm, *(means.get(metric) for metric in columns))
    return ours, (MODEL, *(cells.get(theirs) for _, theirs in columns.values()))


def _note(testbed: Testbed, test: str) -> str:
    records = testbed.records
    sets = [f"{records.language}{end}" for end in SETS[test]]
    ours = "" if records.name in sets else f"; ours are of {records.name}"
    return f"The paper's row is of {sets[0]}, five documents, temperature 0.7{ours}."


def _scored(points: Iterable[tuple[Any, Mean | None]]) -> tuple[tuple[Any, Mean], ...]:
    """The points of a series that have a value."""
    return tuple((x, mean) for x, mean in points if mean is not None and mean.value is not None)


def _bars(
    title: str, columns: Sequence[str], ours: Sequence[Any], printed: Sequence[Any]
) -> Figure:
    theirs = tuple((x, value) for x, value in zip(columns[1:], printed[1:]) if value is not None)
    series = {"ours": _scored(zip(columns[1:], ours[1:])), MODEL: theirs}
    return Figure(title, "rate", "share", series, "bar")


FILE = "errors-to-label.csv"
LABEL_COLUMNS = ("part", "qid", "category", "question", "required", "prediction")
NO_LABEL = "no label"
CATEGORIES: Mapping[str, tuple[str, ...]] = {
    "integration": ("merging", "ignoring", "misalignment"),
    "noise": ("long distance", "evidence uncertainty", "concept confusion"),
}
"""Test → what the paper's authors called its errors, by hand."""
PRINTED: Mapping[str, str] = {"integration": "rgb_table6"}

WrongAnswer = Mapping[str, str]
"""An answer that is not right, a rejection too: the columns of its row in the file."""
Categories = Mapping[tuple[str, str], str]
"""(part or '', question id) → category."""


def wrong_answers(answered: Answered) -> list[WrongAnswer]:
    """All of them, in the order asked; questions that failed have no answer."""
    rows = []
    for part, (test, result) in answered.items():
        for example, assessment in test.assessments(result):
            if not is_right(assessment.labels):
                question = example.question
                required = " + ".join(" / ".join(group) for group in example.gold.required)
                cells = (part, question.qid, "", question.text, required, assessment.text)
                rows.append(dict(zip(LABEL_COLUMNS, cells)))
    return rows


def to_fill_in(wrong: Sequence[WrongAnswer]) -> dict[str, str]:
    """The file with an empty column ``category``; {} if nothing was wrong."""
    return (
        {FILE: csv_lines([LABEL_COLUMNS, *(list(row.values()) for row in wrong)])} if wrong else {}
    )


def read_labels(file: str) -> Categories:
    """Categories of a CSV file with a header, or of JSON lines: ``qid``, ``category``, and ``part`` where they differ
    by part. Blank categories are skipped; {} without a ``file``. Raises NotFoundError, BadFileError."""
    path = Path(file).expanduser()
    if file and not path.is_file():
        raise NotFoundError(
            f"--set labels={path}: there is no such file; it should have the columns qid and category."
        )
    categories: dict[tuple[str, str], str] = {}
    for line, row in _label_rows(path) if file else ():
        if not {"qid", "category"} <= row.keys():
            raise BadFileError(
                f"{path}, line {line} has no qid or no category; a file of labels has both, and may have part."
            )
        place = (row.get("part", "").strip(), row["qid"].strip())
        category = " ".join(row["category"].lower().split())
        if category and categories.setdefault(place, category) != category:
            raise BadFileError(
                f"{path}, line {line} calls {place[1]!r} {category!r}, and an earlier line {categories[place]!r}; keep one."
            )
    return categories


def _label_rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    if path.name.endswith((".jsonl", ".json", ".jsonl.gz")):
        for line, row in Source(path).objects():
            yield line, {key: "" if value is None else str(value) for key, value in row.items()}
        return
    names: list[str] | None = None
    for line, fields in Source(path).table():
        if names is None:
            names = [name.strip().lower() for name in fields]
        elif any(field.strip() for field in fields):
            yield line, dict(zip(names, fields))
    if names is None:
        raise BadFileError(
            f"{path} is empty; its first row should name the columns qid and category."
        )


def error_table(
    test: str, categories: Categories, wrong: Sequence[WrongAnswer]
) -> tuple[Table, tuple[str, ...]]:
    """How many wrong answers are of which category, in every part; and a sentence on labels that no wrong answer has."""
    places = [(row["part"], row["qid"]) for row in wrong]
    named = [categories.get(place) or categories.get(("", place[1]), NO_LABEL) for place in places]
    parts = list(dict.fromkeys(part for part, _ in places))
    counts, totals = Counter(zip((part for part, _ in places), named)), Counter(named)
    labelled, own = len(wrong) - totals[NO_LABEL], CATEGORIES[test]
    printed = _printed_errors(test)
    rows = []
    for category in (*own, *sorted(totals.keys() - {*own, NO_LABEL}), NO_LABEL):
        share = f"{totals[category] / labelled:.0%}" if labelled and category != NO_LABEL else None
        cells = (*(counts[part, category] for part in parts), totals[category], share)
        rows.append((category, *cells, *(shares.get(category) for shares in printed.values())))
    note = f"{labelled} of {len(wrong)} wrong answers have a label; the share is of these. Labels are a person's."
    columns = ("", *parts, "all", "share", *(f"RGB's paper: {system}" for system in printed))
    known = {*places, *(("", qid) for _, qid in places)}
    strange = [place[1] for place in categories if place not in known]
    sentence = (
        f"{len(strange)} labels are of answers that are not wrong here: {', '.join(strange[:5])}."
    )
    table = Table("Errors by category", columns, tuple(rows), False, note)
    return table, sentences((strange, sentence))


def _printed_errors(test: str) -> dict[str, dict[str, str]]:
    """The system whose errors the paper counts → category → share of them."""
    if test not in PRINTED:
        return {}
    table = published_table(PRINTED[test])
    shares = {
        row.settings["error_type"]: f"{table.shares(row)['share_of_errors']:.0%}"
        for row in table.rows
    }
    return {table.rows[0].system: shares}
