"""The paper's tables (Chen et al. 2023, arXiv:2309.01431) with ours above its own row; errors that a person named, by category."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rallebench.core.errors import BadFileError, NotFoundError
from rallebench.core.runs import RunResult
from rallebench.core.sources import Source
from rallebench.core.table_files import csv_lines
from rallebench.core.tables import Figure, Mean, Table
from rallebench.experiments.papers.common import bars, listed, sentences
from rallebench.experiments.papers.rgb.testbed import Answered, Testbed
from rallebench.experiments.published import published_table

SYSTEM = "ChatGPT"
MODEL = f"RGB's paper: {SYSTEM}"
KNOWS = 0.7
"""Error detection is reported for models that know more than this share of the answers without documents."""
NOISE = {"noise": "rgb_table1", "integration": "rgb_table5"}
"""Test → the paper's table of its accuracy over shares of noise."""
REJECTION = {
    "rejection_rate": ("Rej", "Rej"),
    "rejection_rate_judge": ("Rej*", "Rej*"),
    "lucky_rate": ("lucky", ""),
    "all_rate": ("RGB's all_rate", ""),
}
"""Metric → (our column, the paper's column or ''); COUNTERFACTUAL has the same form."""
COUNTERFACTUAL = {
    "acc": ("Acc", "Acc"),
    "acc_doc": ("Acc_doc", "Acc_doc"),
    "fact_check_rate": ("ED", "ED"),
    "fact_check_rate_judge": ("ED*", "ED*"),
    "correct_rate": ("CR of ED", ""),
    "correct_rate_judge": ("CR of ED*", "CR"),
}
"""The paper's correction rate is over the judge's detections."""

Row = tuple[Any, ...]


def over_noise(answered: Answered) -> tuple[Table, Figure]:
    """Accuracy and rejections at every share of noise."""
    tests, results = zip(*answered.values())
    testbed, ratios = tests[0].testbed, [test.noise for test in tests]
    cells = _printed(NOISE[testbed.name], testbed)
    printed = {ratio: cells[key] for ratio in ratios if (key := f"{ratio:g}") in cells}
    title = "Accuracy over shares of noise"
    title += ", information integration" * (testbed.name == "integration")
    rows: list[Row] = []
    series: dict[str, Any] = {}
    for name, metric in (("right", "all_rate"), ("declined", "rejection_rate")):
        means = [result.means.get(metric) for result in results]
        rows.append((f"{testbed.request.llm}: {name}", *means))
        series[name] = zip(ratios, means)
    if any(test.other_noise for test in tests):
        rows.append(("noise among the documents", *(test.noisy for test in tests)))
    if printed:
        rows.append((MODEL, *map(printed.get, ratios)))
        series[MODEL] = printed.items()
    columns = ("", *(f"noise {ratio:g}" for ratio in ratios))
    note = _note(testbed) if printed else ""
    figure = bars(title, "share of noise", "share of the answers", series, "line")
    return Table(title, columns, tuple(rows), True, note), figure


def rejection(testbed: Testbed, result: RunResult) -> tuple[Table, Figure]:
    """Rej, lucky hits and RGB's sum of the two, and Rej* where a judge was asked."""
    cells = _printed("rgb_table3", testbed)
    columns, *rows = _rows(testbed, REJECTION, result.means, cells)
    title = "Negative rejection, nothing but noise"
    table = Table(title, columns, tuple(rows), True, _note(testbed))
    return table, _figure("Negative rejection", columns, *rows)


def counterfactual(testbed: Testbed, alone: RunResult, result: RunResult) -> tuple[Table, Figure]:
    """Accuracy without documents and with false ones, errors found, and corrections: over those found by RGB's words and
    over those that the judge saw, which is the paper's."""
    published = published_table("rgb_table7")
    cells = published.shares(published.row(SYSTEM, language=testbed.records.language))
    accuracies = {"acc": alone.means.get("all_rate"), "acc_doc": result.means.get("all_rate")}
    columns, *rows = _rows(testbed, COUNTERFACTUAL, {**result.means, **accuracies}, cells)
    known = (
        ("yes" if reported(acc) else "no: not to be compared",)
        for acc in (alone.mean("all_rate"), cells["Acc"])
    )
    table = Table(
        "Counterfactual robustness, false documents",
        (*columns, f"Acc above {KNOWS:.0%}"),
        tuple(row + word for row, word in zip(rows, known)),
        True,
        f"RGB reports only models whose Acc is above {KNOWS:.0%}; its CR is of ED*. {_note(testbed)}",
    )
    return table, _figure("Counterfactual robustness", columns, *rows)


def reported(accuracy: float | None) -> bool:
    """Whether RGB reports error detection for a model that knows so much."""
    return accuracy is not None and accuracy > KNOWS


def _printed(table: str, testbed: Testbed) -> dict[str, float]:
    """The paper's column → share, of its row of ``SYSTEM``, in a table whose columns begin with the language."""
    published, language = published_table(table), f"{testbed.records.language}_"
    shares = published.shares(published.row(SYSTEM))
    return {
        column.removeprefix(language): share
        for column, share in shares.items()
        if column.startswith(language)
    }


def _rows(
    testbed: Testbed,
    columns: Mapping[str, tuple[str, str]],
    means: Mapping[str, Mean | None],
    cells: Mapping[str, float],
) -> tuple[Row, Row, Row]:
    """The head of a table, our row, and the paper's."""
    ours, theirs = zip(*columns.values())
    row = (testbed.request.llm, *map(means.get, columns))
    return ("", *ours), row, (MODEL, *map(cells.get, theirs))


def _note(testbed: Testbed) -> str:
    records = testbed.records
    sets = [f"{records.language}{end}" for end in testbed.kind.ends]
    ours = "" if records.name in sets else f"; ours are of {records.name}"
    return f"The paper's row is of {sets[-1]}, five documents, temperature 0.7{ours}."


def _figure(title: str, columns: Row, ours: Row, printed: Row) -> Figure:
    series = {name: zip(columns[1:], row[1:]) for name, row in (("ours", ours), (MODEL, printed))}
    return bars(title, "rate", "share", series)


FILE = "errors-to-label.csv"
LABEL_COLUMNS = ("part", "qid", "category", "question", "required", "prediction")
NO_LABEL = "no label"
CATEGORIES: Mapping[str, tuple[str, ...]] = {
    "integration": ("merging", "ignoring", "misalignment"),
    "noise": ("long distance", "evidence uncertainty", "concept confusion"),
}
"""Test → the categories of its errors that the paper's authors assigned by hand."""

WrongAnswer = dict[str, str]
"""An answer that is not right, a rejection too: the columns of its row in the file."""
Categories = Mapping[tuple[str, str], str]
"""(part or '', question id) → category."""


def wrong_answers(answered: Answered) -> list[WrongAnswer]:
    """All wrong answers, in the order of the questions; failed questions have no answer."""
    rows = []
    for part, (test, result) in answered.items():
        for example, assessment in test.assessments(result):
            if not assessment.right:
                question = example.question
                required = " + ".join(" / ".join(group) for group in example.gold.required)
                cells = (part, question.qid, "", question.text, required, assessment.text)
                rows.append(dict(zip(LABEL_COLUMNS, cells)))
    return rows


def to_fill_in(wrong: Sequence[WrongAnswer]) -> dict[str, str]:
    """The file with an empty column ``category``; {} if nothing was wrong."""
    rows = [LABEL_COLUMNS, *(list(row.values()) for row in wrong)]
    return {FILE: csv_lines(rows)} if wrong else {}


def read_labels(file: str) -> Categories:
    """Categories of a CSV file with a header, or of JSON lines: ``qid``, ``category``, and ``part`` where they differ
    by part. Blank categories are skipped; {} without a ``file``. Raises NotFoundError, BadFileError."""
    path = Path(file).expanduser()
    if file and not path.is_file():
        raise NotFoundError(
            f"labels={path}: there is no such file; it should have the columns qid and category."
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
    rows = Source(path).table()
    _, header = next(rows, (0, None))
    if header is None:
        raise BadFileError(
            f"{path} is empty; its first row should name the columns qid and category."
        )
    names = [name.strip().lower() for name in header]
    for line, fields in rows:
        yield line, dict(zip(names, fields))


def error_table(
    test: str, categories: Categories, wrong: Sequence[WrongAnswer]
) -> tuple[Table, tuple[str, ...]]:
    """(the number of wrong answers by category and part, a note on labels of answers that are not wrong)."""
    places = [(row["part"], row["qid"]) for row in wrong]
    named = [categories.get(place) or categories.get(("", place[1]), NO_LABEL) for place in places]
    parts = list(dict.fromkeys(part for part, _ in places))
    counts, totals = Counter(zip((part for part, _ in places), named)), Counter(named)
    labelled, own = len(wrong) - totals[NO_LABEL], CATEGORIES[test]
    printed = _printed_errors() if test == "integration" else {}
    rows = []
    for category in (*own, *sorted(totals.keys() - {*own, NO_LABEL}), NO_LABEL):
        share = f"{totals[category] / labelled:.0%}" if labelled and category != NO_LABEL else None
        cells = (*(counts[part, category] for part in parts), totals[category], share)
        rows.append((category, *cells, *(shares.get(category) for shares in printed.values())))
    note = f"{labelled} of {len(wrong)} wrong answers have a label; the share is of these. Labels are a person's."
    columns = ("", *parts, "all", "share", *(f"RGB's paper: {system}" for system in printed))
    known = {*places, *(("", qid) for _, qid in places)}
    strange = [place[1] for place in categories if place not in known]
    sentence = f"{len(strange)} labels are of answers that are not wrong here: {listed(strange)}."
    table = Table("Errors by category", columns, tuple(rows), False, note)
    return table, sentences((strange, sentence))


def _printed_errors() -> dict[str, dict[str, str]]:
    """The system whose errors of integration the paper counts → category → share of them."""
    table = published_table("rgb_table6")
    shares = {
        row.settings["error_type"]: f"{table.shares(row)['share_of_errors']:.0%}"
        for row in table.rows
    }
    return {table.rows[0].system: shares}
