"""The experiments of a workspace as groups of runs: what each was, its winner, and how sure that is."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rallebench.analysis import deployment
from rallebench.analysis.baselines import LABELS
from rallebench.analysis.measures import HEADLINES
from rallebench.analysis.suites import differences, pairs_of
from rallebench.core.errors import RalleError, UsageError
from rallebench.core.files import write_text
from rallebench.core.tables import Column, Figure, Mean, Table
from rallebench.engine.experiment_store import REPORT, StoredExperiment
from rallebench.engine.statistics import LEVEL
from rallebench.experiments import BUILDERS, SUITES
from rallebench.experiments.baselines import baseline_name
from rallebench.experiments.papers.rgb.tables import CATEGORIES
from rallebench.experiments.sweeps.results import opened
from rallebench.experiments.sweeps.running import variants_of
from rallebench.experiments.tradeoff import Point
from rallebench.metrics import metric
from rallebench.services.designs import PAPERS, base_chain
from rallebench.services.experiments import suite_name

if TYPE_CHECKING:
    from rallebench.services.workbench import Workbench

MOST_BYTES = 20_000_000
ERRORS = ("qid", "category", "question", "required", "prediction")
"""The columns of a file of errors that the page needs."""
MOST_LISTED = 200
MOST_NAMED = 5
"""Bubbles of a plot that have names; of more they have their ranks."""
DECIDING = (*HEADLINES, "all_rate", "acc", "right", "truthfulness", "rouge-L", "bleu-avg")
"""Metrics of published benchmarks by which a part can be called the best."""
NAMED = {"tradeoff": "Index trade-off", "baselines": "Baselines", "batch": "Folder of chains"}
ALMOST = 0.99
"""The share of the best recall from which the fastest index wins."""


@dataclass(frozen=True, slots=True)
class ExperimentRow:
    """An experiment in a line. ``winner``: the label of its best run, "" where none is; ``mean``: as JSON; ``share``: whether
    that is a share; ``beside``: what the winner is compared with, in words; ``sure``: whether the difference is more than
    chance, None where none was tested. ``ended``: whether its report is written; ``automatic``: whether the program chose its name."""

    name: str
    kind: str
    title: str
    about: str
    ended: bool
    changed: float
    automatic: bool = False
    winner: str = ""
    mean: Mapping[str, Any] | None = None
    share: bool = True
    metric: str = ""
    beside: str = ""
    difference: float | None = None
    sure: bool | None = None


def groups(workbench: Workbench) -> list[ExperimentRow]:
    """All experiments but dataset builders, the newest first; damaged ones are left out."""
    store = workbench.experiments.store
    listed = []
    for name in store.names():
        if BUILDERS.name_of(store.kind_of(name)):
            continue
        try:
            listed.append(group(workbench, name))
        except (RalleError, LookupError, TypeError, ValueError):
            continue
        if len(listed) == MOST_LISTED:
            break
    return listed


def group(workbench: Workbench, name: str) -> ExperimentRow:
    """An experiment in a line. Raises UsageError if there is none, BadFileError for damaged files."""
    stored = workbench.experiments.store.open(name)
    folder = workbench.experiments.store.folder(name)
    files = [
        path for path in (folder / "report.json", folder / "experiment.json") if path.is_file()
    ]
    line = ExperimentRow(
        name,
        stored.kind,
        title_of(stored),
        about_of(stored),
        stored.report is not None,
        files[0].stat().st_mtime,
        _is_automatic(stored),
    )
    if stored.report is None:
        return line
    return _WINNERS.get(stored.kind, _of_suite)(line, stored)


def _is_automatic(stored: StoredExperiment) -> bool:
    """Whether a name was made of a time or of settings, and says less than the title."""
    if re.search(r"^[a-z]+-\d{8}-\d{6}$", stored.name):
        return True
    request = stored.request
    if stored.kind == "baselines":
        return stored.name == baseline_name(str(request["settings"]["run"]), "baselines")
    if stored.kind not in SUITES:
        return False
    settings, limit = request.get("settings") or {}, request.get("limit")
    return stored.name == suite_name(stored.kind, str(request.get("llm") or ""), settings, limit)


def title_of(stored: StoredExperiment) -> str:
    """What an experiment is called: its fields, its paper, its kind."""
    settings = stored.request.get("settings") or {}
    if stored.kind == "sweep":
        names = [_field(text.partition("=")[0]) for text in settings.get("vary", ())]
        return f"Sweep of {_and(names)}"
    if stored.kind in NAMED:
        of = settings.get("run") or settings.get("title") or ""
        return f"{NAMED[stored.kind]}{f' of {of}' if of else ''}"
    paper = PAPERS.get(stored.kind.partition("-")[0], stored.kind)
    part = stored.kind.partition("-")[2].replace("-", " ")
    return f"{paper}, {part}" if part else paper


def about_of(stored: StoredExperiment) -> str:
    """Its runs, its questions, its model."""
    request = stored.request
    settings = request.get("settings") or {}
    count = len(stored.runs) or len(settings.get("indexes", ()))
    if stored.kind == "sweep" and stored.report is None:
        with suppress(RalleError):  # a prompt's file may be gone
            count = len(variants_of(settings))
    noun = {"sweep": "variant", "tradeoff": "index", "batch": "chain"}.get(stored.kind, "run")
    plural = "indexes" if noun == "index" and count != 1 else f"{noun}{'s' * (count != 1)}"
    first = f"first {request['limit']}" if request.get("limit") else ""
    words = [f"{count} {plural}", settings.get("dataset", ""), str(request.get("llm") or ""), first]
    return " · ".join(str(word) for word in words if word)


def _field(name: str) -> str:
    number, dot, rest = name.partition(".")
    name = rest if dot else number
    names = {"template": "prompt", "retriever": "index", "llm": "model", "target": "model or index"}
    return names.get(name, name.replace("_", " "))


def _and(names: Sequence[str]) -> str:
    names = list(dict.fromkeys(names))
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


# winners


def _of_variants(line: ExperimentRow, stored: StoredExperiment) -> ExperimentRow:
    report = stored.report or {}
    rows, name = report["variants"], report["metric"]
    if not rows or not name:
        return line
    base = _base_label(stored)
    beside, difference, corrected = "", None, None
    row = (
        next((row for row in rows[1:] if row["variant"] == base), None) or (rows[1:2] or [None])[0]
    )
    if row is not None and row["difference"] is not None:
        what = "the chain as it is" if row["variant"] == base else row["variant"]
        if rows[0]["variant"] == base:
            what = row["variant"]
        beside, difference, corrected = what, -row["difference"], row["p_corrected"]
    about = metric(name).traits
    return _with(
        line,
        winner=plain_label(rows[0]["variant"]),
        mean=rows[0]["metrics"].get(name),
        metric=about["label"],
        share=is_share(name),
        beside=plain_label(beside),
        difference=difference,
        sure=None if corrected is None else corrected < LEVEL,
    )


def _base_label(stored: StoredExperiment) -> str:
    """The variant that is the chain as it is; "" if none is."""
    settings = stored.request.get("settings") or {}
    if stored.kind != "sweep":
        return ""
    try:
        base = base_chain(settings)
        variants = variants_of(settings)
    except (RalleError, KeyError):
        return ""  # a prompt's file is gone: the labels are in the report
    return next((v.label for v in variants if not v.index and _same(v.chain, base)), "")


def _same(chain: Any, base: Any) -> bool:
    return bool(chain.actions == base.actions)


def plain_label(label: str) -> str:
    """A variant's label in words: "k 5, prompt short".

    >>> plain_label("k=5, 2.template=short")
    'k 5, prompt short'
    """
    parts = []
    for part in label.split(", "):
        name, equals, value = part.partition("=")
        parts.append(f"{_field(name)} {value}" if equals else part)
    return ", ".join(parts)


def _of_points(line: ExperimentRow, stored: StoredExperiment) -> ExperimentRow:
    points = [p for p in (stored.report or {})["points"] if not p["error"]]
    ranked = [p for p in points if p["recall"] is not None and p["single_ms"]]
    name = "recall"
    if not ranked:
        ranked, name = [p for p in points if p["quality"].get("Rprec") and p["single_ms"]], "Rprec"
    if not ranked:
        return line
    value = {id(p): p["recall"] if name == "recall" else p["quality"]["Rprec"] for p in ranked}
    best = max(value.values())
    winner = min((p for p in ranked if value[id(p)] >= ALMOST * best), key=lambda p: p["single_ms"])
    slowest = max(ranked, key=lambda p: p["single_ms"])
    times = slowest["single_ms"] / winner["single_ms"]
    beside = f"{times:.1f} times as fast as {_point(slowest)}" if winner is not slowest else ""
    mean = {"value": value[id(winner)], "low": None, "high": None, "n": winner["n"]}
    return _with(line, winner=_point(winner), mean=mean, metric=name, beside=beside)


def _point(point: Mapping[str, Any]) -> str:
    knobs = ", ".join(f"{name} {value}" for name, value in point["knobs"].items())
    return f"{point['index']} ({knobs})" if knobs else str(point["index"])


def _of_baselines(line: ExperimentRow, stored: StoredExperiment) -> ExperimentRow:
    report = stored.report or {}
    metrics = report.get("metrics") or {}
    name = next((n for n in ("em", "accuracy", "f1", *metrics) if n in metrics), "")
    row = metrics.get(name, {})
    if "run" not in row:
        return line
    others = [(LABELS.get(c, c), row[c]["value"]) for c in row if c != "run"]
    beside = ", ".join(f"{label} {100 * v:.1f} %" for label, v in others if v is not None)
    return _with(line, winner=report["run"], mean=row["run"], metric=name, beside=beside)


def _of_suite(line: ExperimentRow, stored: StoredExperiment) -> ExperimentRow:
    """The first figure of a table that the paper prints, too; else the best part by the first share that all parts have."""
    report = stored.report or {}
    for table in report.get("tables", ()):
        if pair := _beside_paper(table):
            head, mean, printed = pair
            percent = bool(table["percent"])
            figure = f"{100 * printed:.1f} %" if percent else f"{printed:g}"
            llm = str(stored.request.get("llm") or "")
            return _with(
                line, winner=llm, mean=mean, metric=head, share=percent, beside=f"paper: {figure}"
            )
    parts = report.get("parts") or ()
    names = [n for n in (parts[0]["metrics"] if parts else ()) if _shares(parts, n)]
    if not names:
        return line
    best = max(parts, key=lambda part: part["metrics"][names[0]]["value"])
    mean = best["metrics"][names[0]]
    return _with(line, winner=best["label"], mean=mean, metric=label_of(names[0]))


def _shares(parts: Sequence[Mapping[str, Any]], name: str) -> bool:
    """Whether a metric of which more is better is a share in all parts."""
    if name.partition(":")[0] not in DECIDING:
        return False
    values = [(part["metrics"].get(name) or {}).get("value") for part in parts]
    return all(value is not None and 0 <= value <= 1 for value in values)


def _beside_paper(table: Mapping[str, Any]) -> tuple[str, Mapping[str, Any], float] | None:
    """(heading, our mean, the paper's figure) of the first column that both have."""
    ours = next((row for row in table["rows"] if not is_printed(str(row[0]))), None)
    printed = next((row for row in table["rows"] if is_printed(str(row[0]))), None)
    if ours is None or printed is None:
        return None
    for head, mean, figure in zip(table["columns"][1:], ours[1:], printed[1:]):
        if isinstance(mean, dict) and mean["value"] is not None and isinstance(figure, float):
            return head, mean, figure
    return None


def is_printed(name: str) -> bool:
    """Whether a row of a report's table is the paper's own.

    >>> is_printed("RGB's paper: ChatGPT"), is_printed("reader: right")
    (True, False)
    """
    low = name.lower()
    return "paper" in low or low.startswith(("ralle", "crud-rag", "barag", "r-eval", "rgb'"))


def _with(line: ExperimentRow, **values: Any) -> ExperimentRow:
    return replace(line, **values)


_WINNERS = {
    "sweep": _of_variants,
    "batch": _of_variants,
    "tradeoff": _of_points,
    "baselines": _of_baselines,
}


# one experiment


@dataclass(frozen=True, slots=True)
class Ranking:
    """The variants of a sweep, or the chains of a folder, best first. ``document``: as ``sweeps.results.ranked`` gives it;
    ``metrics``: those by which it can be ranked; ``reports``: run → its report."""

    document: Mapping[str, Any]
    metrics: tuple[str, ...] = ()
    reports: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    unit: str = ""


def ranking(workbench: Workbench, stored: StoredExperiment, by: str = "") -> Ranking:
    """The ranking by a metric, the experiment's own by default. Raises UsageError for a metric that decides nothing."""
    if stored.kind == "sweep":
        by = by or str(stored.request["settings"].get("metric") or "")
        document: Mapping[str, Any] = opened(workbench.workspace, stored.name, by)
    else:
        document = stored.report or {
            "variants": [],
            "metric": None,
            "failed": {},
            "verdict": "",
            "warnings": [],
        }
    reports = {}
    for row in document["variants"]:
        reports[row["run"]] = workbench.runs.open(row["run"]).report() or {}
    names = [n for n in (document["variants"] or [{"metrics": {}}])[0]["metrics"] if _decides(n)]
    return Ranking(document, tuple(names), reports)


def verdict(value: Ranking) -> str:
    """Who wins, in one sentence that claims no more than the numbers show."""
    rows, name = value.document["variants"], value.document["metric"]
    if not name or len(rows) < 2:
        return str(value.document["verdict"])
    first, label = rows[0]["metrics"][name], label_of(name)
    score = f"{100 * first['value']:.1f} %" if is_share(name) else f"{first['value']:.4g}"
    best = f"Best: {plain_label(rows[0]['variant'])}, {label} {score} on {first['n']:,} questions."
    equal = [r for r in rows[1:] if r["metrics"][name]["value"] == first["value"]]
    if equal:
        best = (
            f"{1 + len(equal)} are equal: {label} {score} on {first['n']:,} questions; "
            f"the cheapest is {plain_label(rows[0]['variant'])}."
        )
    others = [r for r in rows[1:] if r not in equal]
    if not others:
        return best
    if any(r["p_corrected"] is None for r in others):
        return f"{best} The questions are too few to show a difference."
    alike = [plain_label(r["variant"]) for r in others if r["p_corrected"] >= LEVEL]
    count = f"corrected for {len(rows) - 1} comparisons" if len(rows) > 2 else "p < .05"
    if not alike:
        return f"{best} {'They are' if equal else 'It is'} better than {'every other variant' if len(rows) > 2 else plain_label(others[0]['variant'])} ({count})."
    names = ", ".join(alike[:4]) + (f" and {len(alike) - 4} more" if len(alike) > 4 else "")
    return f"{best} No difference is shown to {names}."


def _decides(name: str) -> bool:
    try:
        return metric(name).traits.get("higher_is_better", True) is not None
    except RalleError:
        return False


def label_of(name: str) -> str:
    """A metric's label, its name where it has none."""
    try:
        return str(metric(name).traits["label"])
    except (RalleError, KeyError):
        return name


def is_share(name: str) -> bool:
    """Whether a metric is a share from 0 to 1."""
    try:
        return metric(name).traits.get("range") == (0, 1)
    except RalleError:
        return True


def ranking_table(value: Ranking) -> Table:
    """The ranking as a table for files: every metric that all variants have."""
    document = value.document
    columns = [Column("variant", "text"), *(Column(label_of(n)) for n in value.metrics)]
    columns += [Column("to the best", "delta"), Column("p, corrected", "p"), Column("run", "text")]
    rows = tuple(
        (
            row["variant"],
            *(row["metrics"].get(n) for n in value.metrics),
            row["difference"],
            row["p_corrected"],
            row["run"],
        )
        for row in document["variants"]
    )
    return Table(str(document.get("sweep", "")), tuple(columns), rows, note=document["verdict"])


def figures(value: Ranking) -> list[Figure]:
    """Means over the values of a number that was varied, or a bar a variant; quality against seconds and tokens."""
    document = value.document
    name = document["metric"]
    if not name or not document["variants"]:
        return []
    means = [(row["variant"], Mean(**_mean(row["metrics"][name]))) for row in document["variants"]]
    high = 1.0 if is_share(name) else None
    drawn = [_over(means, name, high)]
    measured = [
        (plain_label(row["variant"]), value.reports[row["run"]]) for row in document["variants"]
    ]
    for across, label in [*deployment.COST_AXES.items()][:2]:
        points = deployment.points(measured, name, across)
        if len(points) > 1:
            ranks = {run: str(i) for i, (run, _) in enumerate(measured, 1)}
            short = len(points) > MOST_NAMED
            series = {ranks[run] if short else run: ((x, y, held),) for run, x, y, held in points}
            drawn.append(
                Figure(f"Quality against {label}", label, label_of(name), series, "bubble")
            )
    return drawn


def _mean(value: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value[key] for key in ("value", "low", "high", "n")}


def _over(means: Sequence[tuple[str, Mean]], name: str, high: float | None) -> Figure:
    """A line over the numbers of one field, one line for each value of the other fields; else bars."""
    split = [dict(part.partition("=")[::2] for part in label.split(", ")) for label, _ in means]
    fields = list(split[0])
    for axis in fields:
        if all(list(s) == fields and _is_number(s[axis]) for s in split):
            series: dict[str, list[tuple[float, Mean]]] = {}
            for values, (_, mean) in zip(split, means):
                rest = ", ".join(f"{_field(k)} {v}" for k, v in values.items() if k != axis)
                series.setdefault(rest or label_of(name), []).append((float(values[axis]), mean))
            if max(map(len, series.values())) > 1:
                lines = {k: tuple(sorted(v, key=lambda p: p[0])) for k, v in series.items()}
                title = f"{label_of(name)} over {_field(axis)}"
                return Figure(title, _field(axis), label_of(name), lines, "line", high=high)
    bars = {label_of(name): tuple((plain_label(label), mean) for label, mean in means)}
    return Figure(label_of(name), "", label_of(name), bars, "bar", high=high)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


AXES: Mapping[str, str] = {
    "recall": "Recall at k",
    "Rprec": "R-precision",
    "success_rate@1": "Success at 1",
    "success_rate@5": "Success at 5",
    "success_rate@10": "Success at 10",
    "single_ms": "Milliseconds, one query",
    "batch_ms": "Milliseconds a query, in batches",
    "ram": "Memory, bytes",
    "disk": "Disk, bytes",
    "build_seconds": "Seconds to build",
}
"""What a trade-off can be drawn by → its label."""


def tradeoff_figure(points: Sequence[Point], across: str, up: str) -> Figure:
    """A bubble an index and setting; its area is the memory while searching."""
    series = {
        point.label: ((x, y, point.ram),)
        for point in points
        if (x := _axis(point, across)) is not None and (y := _axis(point, up)) is not None
    }
    return Figure(f"{AXES[up]} against {AXES[across]}", AXES[across], AXES[up], series, "bubble")


def _axis(point: Point, axis: str) -> float | None:
    if point.error:
        return None
    return point.quality.get(axis) if axis in point.quality else getattr(point, axis, None)


def tradeoff_table(points: Sequence[Point]) -> Table:
    """Everything that was measured."""
    columns = (
        Column("index", "text"),
        Column("recall at k"),
        Column("R-precision"),
        Column("success at 1"),
        Column("ms, one query", "quantity"),
        Column("ms, in batches", "quantity"),
        Column("ms to encode", "quantity"),
        Column("memory", "bytes"),
        Column("disk", "bytes"),
        Column("s to build", "quantity"),
    )
    rows = tuple(
        (
            p.label,
            p.recall,
            p.quality.get("Rprec"),
            p.quality.get("success_rate@1"),
            p.single_ms,
            p.batch_ms,
            p.encode_ms,
            p.ram,
            p.disk or None,
            p.build_seconds or None,
        )
        for p in points
        if not p.error
    )
    return Table("", columns, rows)


def baseline_table(report: Mapping[str, Any]) -> Table:
    """The run between its baselines."""
    names = ["run", *(c for c in report["columns"] if c != "run")]
    columns = (Column("metric", "text"), *(Column(LABELS.get(n, n)) for n in names))
    rows = tuple(
        (label_of(m), *(row.get(n) for n in names)) for m, row in report["metrics"].items()
    )
    return Table("", columns, rows)


# files, pairs, requests


def files(workbench: Workbench, name: str) -> list[str]:
    """The files that an experiment has made, below its folder."""
    folder = workbench.experiments.store.folder(name)
    return sorted(
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file()
        and not path.name.startswith(".")
        and path.name not in ("experiment.json", "report.json")
        and "measurements" not in path.relative_to(folder).parts
    )


def file_path(workbench: Workbench, name: str, file: str) -> Path:
    """A file that an experiment has made. Raises UsageError for any other."""
    if file not in files(workbench, name):
        raise UsageError(f"The experiment {name} has no file {file}; choose one of the list.")
    path = workbench.experiments.store.folder(name) / file
    if path.stat().st_size > MOST_BYTES:
        raise UsageError(f"The file {file} is large; it is at {path}.")
    return path


def beside(
    workbench: Workbench, first: str, other: str
) -> tuple[Table, dict[str, tuple[str, str]]]:
    """Two runs of a published benchmark, question by question: the table of differences, and part → its runs in both."""
    store = workbench.experiments.store
    pair = store.open(first), store.open(other)
    for stored in pair:
        if stored.report is None or "parts" not in stored.report:
            raise UsageError(
                f"{stored.name} has no parts to be compared; choose another experiment."
            )
    return differences(workbench.workspace, *pair), pairs_of(*pair)


def comparable(workbench: Workbench, stored: StoredExperiment) -> list[str]:
    """Other experiments of the same kind that have ended."""
    names = workbench.experiments.store.names((stored.kind,))
    folder = workbench.experiments.store.folder
    return [n for n in names if n != stored.name and (folder(n) / "report.json").is_file()]


def runs_of(stored: StoredExperiment) -> Iterator[tuple[str, str]]:
    """(label, run) of everything that was run; of an experiment that has not ended, what was begun."""
    report = stored.report or {}
    if "parts" in report:
        yield from ((part["label"], part["run"]) for part in report["parts"])
    elif stored.kind == "baselines" and report:
        yield from report["lines"].items()
    else:
        yield from stored.runs.items()


# errors that a person labels


def label_rows(
    workbench: Workbench, name: str, file: str
) -> tuple[list[str], list[dict[str, str]]]:
    """(columns, rows) of a file of errors. Raises UsageError for a file that has no column ``category``."""
    path = file_path(workbench, name, file)
    with path.open(encoding="utf-8", newline="") as handle:
        reader = csv.DictReader(handle)
        columns = list(reader.fieldnames or ())
        lines = [{key: row.get(key) or "" for key in columns} for row in reader]
    if not set(ERRORS) <= set(columns):
        raise UsageError(f"The file {file} has no errors to label; edit it at {path}.")
    return columns, lines


def write_labels(workbench: Workbench, name: str, file: str, labels: Mapping[int, str]) -> Path:
    """Put categories into a file of errors, row → category; every other cell stays. Returns its path."""
    columns, lines = label_rows(workbench, name, file)
    for number, category in labels.items():
        if number < len(lines):
            lines[number]["category"] = category
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    path = file_path(workbench, name, file)
    write_text(path, text.getvalue())
    return path


def categories(workbench: Workbench, name: str) -> tuple[str, ...]:
    """The categories of errors that the paper names for a benchmark."""
    kind = workbench.experiments.store.open(name).kind
    return CATEGORIES.get(kind.partition("-")[2], ())


def report_text(workbench: Workbench, name: str) -> str:
    """The report of an experiment as it is stored."""
    return (workbench.experiments.store.folder(name) / REPORT).read_text(encoding="utf-8")
