"""The paper's tables (Chen et al. 2023, arXiv:2309.01431), each with our row above the paper's, and errors by manually
assigned category."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

from rallebench.core.errors import BadFileError, NotFoundError
from rallebench.core.experiment_reports import OwnRow
from rallebench.core.report import Estimate
from rallebench.core.runs import RunResult
from rallebench.core.sources import Source
from rallebench.core.streams import plain_name
from rallebench.core.table_files import csv_lines
from rallebench.core.tables import Figure, Table
from rallebench.core.types import Example, Gold, Question
from rallebench.experiments.benchmarks import published_table
from rallebench.experiments.common import bars, sentences
from rallebench.experiments.published.official import why_unverified
from rallebench.experiments.published.rows import own_row, unlike
from rallebench.papers.common import differs_by, list_names
from rallebench.papers.rgb.scoring import Assessment
from rallebench.papers.rgb.testbed import Answered, Test, Testbed

SYSTEM = "ChatGPT"
MODEL = f"RGB's paper: {SYSTEM}"
KNOWS = 0.7
"""Error detection is reported for models that answer more than this share of questions without documents."""
DOCUMENTS, TEMPERATURE = 5, 0.7
"""The settings behind the printed figures."""
NOISE = {"noise": "rgb_table1", "integration": "rgb_table5"}
"""Test → the paper's table of its accuracy by share of noise."""
REJECTION = {
    "rejection_rate": ("Rej", "Rej"),
    "rejection_rate_judge": ("Rej*", "Rej*"),
    "lucky_rate": ("lucky", ""),
    "all_rate": ("RGB's all_rate", ""),
}
"""Metric → (our column, the paper's column or ''); COUNTERFACTUAL has the same structure."""
COUNTERFACTUAL = {
    "acc": ("Acc", "Acc"),
    "acc_doc": ("Acc_doc", "Acc_doc"),
    "fact_check_rate": ("ED", "ED"),
    "fact_check_rate_judge": ("ED*", "ED*"),
    "correct_rate": ("CR of ED", ""),
    "correct_rate_judge": ("CR of ED*", "CR"),
}
"""The paper's correction rate is relative to the judge's detections."""

Row = tuple[Any, ...]


def over_noise(answered: Answered) -> tuple[Table, Figure, OwnRow]:
    """Accuracy and rejection rate at every share of noise."""
    tests, results = zip(*answered.values())
    testbed, ratios = tests[0].testbed, [test.noise for test in tests]
    cells = _printed_shares(NOISE[testbed.name], testbed)
    own = make_own_row(tests[0], NOISE[testbed.name], _by_language(testbed, answered))
    printed = {ratio: cells[key] for ratio in ratios if (key := f"{ratio:g}") in cells}
    printed = {} if own.why else printed
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
    source = published_table(NOISE[testbed.name]).source
    led = dict.fromkeys(("right", "declined"), tuple(result.run for result in results))
    figure = bars(
        *(title, "share of noise", "share of the answers", series, "line"),
        unit="share",
        printed={MODEL: source},
        runs=led,
    )
    return Table(title, columns, tuple(rows), True, _note(own)), figure, own


def _by_language(testbed: Testbed, answered: Answered) -> dict[str, Estimate | None]:
    """The paper's column → our accuracy at its share of noise."""
    printed = published_table(NOISE[testbed.name]).columns
    names = {
        f"{testbed.records.language}_{test.noise:g}": result.means.get("all_rate")
        for test, result in answered.values()
    }
    return {name: mean for name, mean in names.items() if name in printed}


def rejection(test: Test, result: RunResult) -> tuple[Table, Figure, OwnRow]:
    """Rej, lucky hits and RGB's sum of the two; also Rej* with a judge."""
    testbed = test.testbed
    language = testbed.records.language
    own = make_own_row(
        test,
        "rgb_table3",
        {
            f"{language}_{head}": result.means.get(name)
            for name, (_, head) in REJECTION.items()
            if head
        },
    )
    columns, *rows = _rows(
        testbed, REJECTION, result.means, _printed_shares("rgb_table3", testbed), own
    )
    title = "Negative rejection, nothing but noise"
    table = Table(title, columns, tuple(rows), True, _note(own))
    figure = _figure(
        "Negative rejection", "rgb_table3", [result.run] * len(REJECTION), columns, *rows
    )
    return table, figure, own


def counterfactual(test: Test, alone: RunResult, result: RunResult) -> tuple[Table, Figure, OwnRow]:
    """Accuracy without documents and with false ones, detected errors, and corrections. Corrections are shares of the errors
    detected by RGB's phrases, and of the errors detected by the judge; the paper reports the latter."""
    testbed, published = test.testbed, published_table("rgb_table7")
    language = testbed.records.language
    cells = published.shares(published.row(SYSTEM, language=language))
    accuracies = {"acc": alone.means.get("all_rate"), "acc_doc": result.means.get("all_rate")}
    means = {**result.means, **accuracies}
    printed = {head: means.get(name) for name, (_, head) in COUNTERFACTUAL.items() if head}
    own = make_own_row(test, "rgb_table7", printed, language=language)
    columns, *rows = _rows(testbed, COUNTERFACTUAL, means, cells, own)
    known = (
        ("yes" if reported(acc) else "no: not to be compared",)
        for acc in (alone.mean("all_rate"), cells["Acc"])
    )
    table = Table(
        "Counterfactual robustness, false documents",
        (*columns, f"Acc above {KNOWS:.0%}"),
        tuple(row + word for row, word in zip(rows, known)),
        True,
        f"RGB reports only models whose Acc is above {KNOWS:.0%}; its CR is of ED*. {_note(own)}",
    )
    runs = [alone.run, *[result.run] * (len(COUNTERFACTUAL) - 1)]
    return table, _figure("Counterfactual robustness", "rgb_table7", runs, columns, *rows), own


def reported(accuracy: float | None) -> bool:
    """Return whether RGB reports error detection for a model with this accuracy."""
    return accuracy is not None and accuracy > KNOWS


def _printed_shares(table: str, testbed: Testbed) -> dict[str, float]:
    """The paper's column → share, from the row of ``SYSTEM`` in a table with the language at the start of column names."""
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
    means: Mapping[str, Estimate | None],
    cells: Mapping[str, float],
    own: OwnRow,
) -> tuple[Row, ...]:
    """The table header, our row, and the paper's row if comparable."""
    ours, theirs = zip(*columns.values())
    row = (testbed.request.llm, *map(means.get, columns))
    return ("", *ours), row, *([] if own.why else [(MODEL, *map(cells.get, theirs))])


def make_own_row(
    test: Test, table: str, cells: Mapping[str, Estimate | None], **settings: Any
) -> OwnRow:
    """Our row for the paper's table. The paper's figures cover all questions of its own set, with five documents each."""
    testbed, request = test.testbed, test.testbed.request
    records, documents = testbed.records, testbed.settings.passages
    theirs = f"{records.language}{testbed.kind.ends[-1]}"
    why = unlike(
        records.name, theirs, len(test.records), published_table(table).n[records.language]
    )
    examples = [
        Example(Question(record.id, record.query), Gold(), {}) for record in testbed.records.records
    ]
    why = why or why_unverified("rgb", theirs, examples, testbed.records.path)
    if not why and documents != DOCUMENTS:
        why = f"ours are with {documents} documents a question, the paper's with {DOCUMENTS}"
    warmth = testbed.decoding.temperature
    other = f"Temperature {warmth:g}, the paper's is {TEMPERATURE}." * (warmth != TEMPERATURE)
    differs = differs_by(request, testbed.wording, other)
    return own_row(table, request.llm, cells, why, differs, **settings)


def _note(own: OwnRow) -> str:
    row = f"The paper's row: {DOCUMENTS} documents a question, temperature {TEMPERATURE}. "
    return f"{'' if own.why else row}{own.note}"


def _figure(
    title: str, table: str, runs: Sequence[str], columns: Row, ours: Row, printed: Row = ()
) -> Figure:
    """The rates of our runs, one for each column, beside the paper's."""
    series = {name: zip(columns[1:], row[1:]) for name, row in (("ours", ours), (MODEL, printed))}
    source = {MODEL: published_table(table).source}
    led = {"ours": runs}
    return bars(title, "rate", "share", series, unit="share", printed=source, runs=led)


FILE = "errors-to-label.csv"
LABEL_COLUMNS = ("part", "qid", "category", "question", "required", "prediction")
NO_LABEL = "no label"
CATEGORIES: Mapping[str, tuple[str, ...]] = {
    "integration": ("merging", "ignoring", "misalignment"),
    "noise": ("long distance", "evidence uncertainty", "concept confusion"),
    "rejection": ("evidence uncertainty", "concept confusion"),
}
"""Test → error categories assigned by hand in the paper."""

WrongAnswer = dict[str, str]
"""A wrong answer or a rejection: the columns of its row in the file."""
Categories = Mapping[tuple[str, str], str]
"""(part or '', question id) → category."""


def wrong_answers(
    answered: Answered, is_right: Callable[[Assessment], bool] = attrgetter("right")
) -> list[WrongAnswer]:
    """All wrong answers in question order, without failed questions. ``is_right``: a predicate for predictions."""
    rows = []
    for part, (test, result) in answered.items():
        for example, assessment in test.assessments(result):
            if not is_right(assessment):
                question = example.question
                required = " + ".join(" / ".join(group) for group in example.gold.required)
                cells = (part, question.qid, "", question.text, required, assessment.text)
                rows.append(dict(zip(LABEL_COLUMNS, cells)))
    return rows


def to_fill_in(wrong: Sequence[WrongAnswer]) -> dict[str, str]:
    """The file of wrong answers, with an empty column ``category``; {} if there are none."""
    rows = [LABEL_COLUMNS, *(list(row.values()) for row in wrong)]
    return {FILE: csv_lines(rows)} if wrong else {}


def read_labels(file: str) -> Categories:
    """Read categories from a CSV file with a header, or from JSON lines, with the fields ``qid``, ``category`` and, if
    categories differ by part, ``part``. Blank categories are skipped; {} without a ``file``. Raises NotFoundError,
    BadFileError."""
    path = Path(file).expanduser()
    if file and not path.is_file():
        raise NotFoundError(
            f"labels={path}: there is no such file; it should have the columns qid and category."
        )
    categories: dict[tuple[str, str], str] = {}
    for line, row in _label_rows(path) if file else ():
        _check_columns(path, line, row)
        place = (row.get("part", "").strip(), row["qid"].strip())
        category = " ".join(row["category"].lower().split())
        if category and categories.setdefault(place, category) != category:
            raise BadFileError(
                f"{path}, line {line} calls {place[1]!r} {category!r}, and an earlier line {categories[place]!r}; keep one."
            )
    return categories


def _check_columns(path: Path, line: int, columns: Collection[str]) -> None:
    if not {"qid", "category"} <= set(columns):
        raise BadFileError(
            f"{path}, line {line} has no qid or no category; a file of labels has both, and may have part."
        )


def _label_rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    source = Source(path)
    if plain_name(path.name).endswith((".jsonl", ".json")):
        for line, row in source.objects():
            yield line, {key: "" if value is None else str(value) for key, value in row.items()}
        return
    if next(source.lines(), None) is None:
        raise BadFileError(
            f"{path} is empty; its first row should name the columns qid and category."
        )
    for line, _, row in source.named_rows(partial(_check_columns, path)):
        yield line, row


def error_table(
    test: str, categories: Categories, wrong: Sequence[WrongAnswer]
) -> tuple[Table, tuple[str, ...]]:
    """(wrong answers by category and part, a note on labels for answers that are not wrong)."""
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
    noun = "answers that do not reject" if test == "rejection" else "wrong answers"
    note = f"{labelled} of {len(wrong)} {noun} have a label; the share is of these. Labels are a person's."
    columns = ("", *parts, "all", "share", *(f"RGB's paper: {system}" for system in printed))
    known = {*places, *(("", qid) for _, qid in places)}
    strange = [place[1] for place in categories if place not in known]
    sentence = f"{len(strange)} labels are of none of the {noun} here: {list_names(strange)}."
    table = Table("Errors by category", columns, tuple(rows), False, note)
    return table, sentences((strange, sentence))


def _printed_errors() -> dict[str, dict[str, str]]:
    """The system whose integration errors are counted in the paper → category → share."""
    table = published_table("rgb_table6")
    shares = {
        row.settings["error_type"]: f"{table.shares(row)['share_of_errors']:.0%}"
        for row in table.rows
    }
    return {table.rows[0].system: shares}
