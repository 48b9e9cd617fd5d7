"""RaLLe's tables: headline metrics, KILT's variants, retrieval, speed and memory, with printed figures below ours.

RaLLe's figures (Hoshi et al. 2023, arXiv:2308.10633) are for KILT's dev files over all of Wikipedia. A printed figure is in
the column of its set. A printed average is shown below ours only if both cover the same sets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from rallebench.core.experiment_reports import OwnRow
from rallebench.core.report import Estimate
from rallebench.core.runs import RunResult
from rallebench.core.tables import Figure, Table
from rallebench.core.text import tokenize
from rallebench.core.types import Generate, Retrieve
from rallebench.experiments.benchmarks import published_table
from rallebench.experiments.common import bars
from rallebench.experiments.published.rows import own_row
from rallebench.papers.ralle.sets import PLAIN, SETS, KiltSet

READER, SYSTEM = "RaLLe's paper: Llama2-70B, e5 flat, top 5", "e5 + Llama2-70B"
PRINTED_AVERAGE = "Avg"
"""Column with the mean over all eleven sets, in the tables that print one."""
RETRIEVAL = (("Rprec", "R-precision", "ralle_table3"), ("recall@5", "Recall@5", "ralle_table8"))
"""(metric, title, RaLLe's table)."""
AVERAGE = "average"
GB = 1e9
LABELS = {"accuracy": "accuracy", "em": "EM", "rougel": "ROUGE-L", "f1": "F1"}
_OVER = "The average counts every set the same, over those that have a value; RaLLe's is over the same sets as ours."
_SPEED = (
    "",
    "questions",
    "retrieval, s a question",
    "generation, s a question",
    "together, s a question",
    "memory of the index, GB",
    "memory of the model, GB",
    "peak of the process, GB",
    "query, tokens",
)


@dataclass(frozen=True, slots=True)
class SetResult:
    """The result of a set answered in one way. ``why``: the reason why RaLLe's figures for the set are not comparable, or
    ''."""

    kilt: KiltSet
    mode: str
    result: RunResult
    why: str = ""


Cells = Mapping[str, float]
"""Label of a set → a printed share."""


@dataclass(frozen=True, slots=True)
class Line:
    """A table row for each way to answer: its metric (see ``set_metric``), the printed rows (name, cells) below ours, and a
    suffix for its name."""

    metric: str
    printed: Sequence[tuple[str, Cells]]
    end: str = ""


def answers(block: str, *, has_answer: bool = False) -> Cells:
    """The scores of RaLLe's chain, or its ``has_answer``. ``block``: ``downstream``, or ``KILT`` for KILT's variant."""
    table = published_table("ralle_table2")
    return table.shares(table.row(SYSTEM, block=block), brackets=has_answer)


def retrieval(table: str, linking: bool) -> Iterator[tuple[str, Cells]]:
    """(retriever, scores) of RaLLe's retrievers. ``linking``: include results without REWRITE-EL, which affects only the
    entity-linking sets."""
    published = published_table(table)
    for row in published.rows:
        if "retriever" in row.settings and (linking or row.settings["rewrite_el"]):
            yield row.system, published.shares(row)


def result_tables(
    results: Sequence[SetResult], llm: str, retriever: str, bracket: str, differs: str = ""
) -> tuple[Table, ...]:
    """The tables with at least one of our figures. ``bracket``: the reported has_answer; ``differs``: differences from RaLLe's
    setup, in sentences."""
    sets, name = _sets(results), llm or "no model"
    labels = {
        label: ", ".join(kilt.label for kilt in sets if kilt.headline == metric)
        for metric, label in LABELS.items()
    }
    metrics = "; ".join(f"{names}: {label}" for label, names in labels.items() if names)
    brackets = [(f"{READER}: has_answer", answers("downstream", has_answer=True))]
    headline = (
        Line("headline", [(READER, answers("downstream"))]),
        Line(bracket, brackets, f": {bracket}"),
    )
    variant = (Line("KILT", [(READER, answers("KILT"))]),)
    note = f"{_OVER} {differs}".rstrip()
    variants = f"The headline metric, counted only where R-precision is 1: right, and for the gold's reasons. {note}"
    tables = [
        _table(f"Headline metric ({metrics})", results, name, headline, note),
        _table("KILT's variant of the headline metric", results, name, variant, variants),
    ]
    linking = any(kilt.task == "linking" for kilt in sets)
    for metric, title, published in RETRIEVAL:
        printed = [
            (f"RaLLe's paper: {name}", cells) for name, cells in retrieval(published, linking)
        ]
        tables.append(_table(title, results, retriever, (Line(metric, printed),), note))
    return tuple(table for table in (*tables, _speed(results, retriever)) if table.rows)


OWN: Mapping[str, Sequence[tuple[str, str, Mapping[str, str]]]] = {
    "read": (
        ("ralle_table2", "headline", {"block": "downstream"}),
        ("ralle_table2", "KILT", {"block": "KILT"}),
    ),
    "three-action": (
        ("ralle_table5", "headline", {"block": "downstream"}),
        ("ralle_table5", "KILT", {"block": "KILT"}),
    ),
    "closed-book": (("ralle_table6", "headline", {}),),
}
"""Way → RaLLe's tables for it: (table, metric, settings of its rows)."""
CLOSED_NQ = {"EM": "em", "has_answer": "has_answer", "f1": "f1"}
"""Column of RaLLe's NQ table for models without documents → our metric; has_answer covers only non-empty answers."""


def own_rows(
    results: Sequence[SetResult], llm: str, retriever: str, differs: Sequence[str]
) -> list[OwnRow]:
    """Our rows for RaLLe's tables, by way. Sets that differ from RaLLe's have no cell."""
    rows = []
    for mode in dict.fromkeys(answered.mode for answered in results):
        of_mode = [answered for answered in results if answered.mode == mode]
        alike = [answered for answered in of_mode if not answered.why]
        why = "" if alike else of_mode[0].why
        tables: list[tuple[str, str, str, Mapping[str, Any]]]
        tables = [(llm or "no model", *of) for of in OWN.get(mode, ())]
        if any(answered.result.request.flow.retrievers for answered in of_mode):
            plain = {"rewrite_el": False} if mode == PLAIN else {}
            tables += [(retriever, table, metric, plain) for metric, _, table in RETRIEVAL]
        for system, table, metric, settings in tables:
            cells = {kilt.label: mean for kilt, mean in _means(alike, mode, metric)}
            rows.append(own_row(table, f"{system}, {mode}", cells, why, differs, **settings))
        rows += _cost_rows(of_mode, alike, why, differs)
        nq = next((answered for answered in of_mode if answered.kilt.name == "nq"), None)
        if mode == "closed-book" and nq is not None:
            own = {column: nq.result.means.get(name) for column, name in CLOSED_NQ.items()}
            rows.append(own_row("ralle_table7", llm, own, nq.why, differs))
    return rows


MACHINE = "Seconds and memory are of this machine, RaLLe's of four A100 GPUs with 40 GB each."


def _cost_rows(
    of_mode: Sequence[SetResult], alike: Sequence[SetResult], why: str, differs: Sequence[str]
) -> Iterator[OwnRow]:
    """The rows of one way for RaLLe's tables of seconds and memory. The means in Table 4 cover all eleven sets, or are
    omitted."""
    flow = of_mode[0].result.request.flow
    names = [kind for kind, of in (("retrieval", flow.retrievers), ("generation", flow.llms)) if of]
    block = " + ".join(names) if "retrieval" in names else "closed-book"
    system = " + ".join((*flow.retrievers, *flow.llms))
    seconds: dict[str, Estimate | None] = {
        answered.kilt.label: Estimate(_together(answered.result), None, None, answered.result.n)
        for answered in alike
    }
    whole = len(alike) == len(SETS)
    n = sum(answered.result.n for answered in alike)
    average = Estimate(_average(seconds.values()) if whole else None, None, None, n)
    more = (*differs, MACHINE)
    per_set = {**seconds, PRINTED_AVERAGE: average}
    yield own_row("ralle_table9", system, per_set, why, more, block=block)
    cells = {"sec_per_Q": average}
    if flow.retrievers and not flow.llms:
        precision = [answered.result.means.get("Rprec") for answered in alike]
        cells["Avg_R-Prec"] = Estimate(_average(precision) if whole else None, None, None, n)
    loaded = [sum(answered.result.memory.values()) / GB for answered in alike]
    cells["Memory"] = Estimate(max(loaded, default=0.0) or None, None, None, n)
    yield own_row("ralle_table4", system, cells, why, more, block=block)


def _together(result: RunResult) -> float | None:
    """Seconds per question for all its retrievals and generations."""
    return _sum(_seconds(result, kind) for kind in (Retrieve, Generate))


def result_figures(results: Sequence[SetResult]) -> tuple[Figure, ...]:
    """Headline metric and R-precision over the sets, with one series per way, and RaLLe's own for comparable sets."""
    figures = []
    comparable = [kilt.label for kilt in _sets([r for r in results if not r.why])]
    led = {(answered.mode, answered.kilt.name): answered.result.run for answered in results}
    printed = dict(retrieval("ralle_table3", linking=False))
    for title, metric, table, papers in (
        ("Headline metric", "headline", "ralle_table2", {READER: answers("downstream")}),
        (
            "R-precision",
            "Rprec",
            "ralle_table3",
            {f"RaLLe's paper: {n}": c for n, c in printed.items()},
        ),
    ):
        means = {mode: _means(results, mode, metric) for mode in _modes(results, metric)}
        series: dict[str, list[tuple[Any, Any]]] = {
            mode: [(kilt.label, mean) for kilt, mean in pairs] for mode, pairs in means.items()
        }
        runs = {
            mode: [led.get((mode, kilt.name), "") for kilt, _ in pairs]
            for mode, pairs in means.items()
        }
        for name, cells in papers.items() if series else ():
            series[name] = [(label, cells.get(label)) for label in comparable]
        sources = dict.fromkeys(papers, published_table(table).source)
        figures.append(bars(title, "set", title, series, unit="share", printed=sources, runs=runs))
    return tuple(figure for figure in figures if figure.series)


def averages(results: Sequence[SetResult], bracket: str) -> dict[str, dict[str, float | None]]:
    """Way → metric (see ``set_metric``) → macro-average over its sets."""
    names = ("headline", "KILT", bracket, *(metric for metric, *_ in RETRIEVAL))
    return {
        mode: {name: _average(mean for _, mean in _means(results, mode, name)) for name in names}
        for mode in dict.fromkeys(answered.mode for answered in results)
    }


def set_metric(kilt: KiltSet, name: str) -> str:
    """The metric for ``name`` in a set. ``headline`` and ``KILT``, its KILT variant, depend on the set; '' for has_answer with
    long answers."""
    if name.startswith("has_answer") and not kilt.short:
        return ""
    return {"headline": kilt.headline, "KILT": kilt.variant}.get(name, name)


def _table(
    title: str, results: Sequence[SetResult], name: str, lines: Sequence[Line], note: str
) -> Table:
    """A table with one column per set: the ways with a value of the first line's metric, then the printed rows of every
    line."""
    sets = _sets(results)
    several = len(sets) > 1
    comparable = {answered.kilt.label for answered in results if not answered.why}
    comparable |= {PRINTED_AVERAGE} if len(comparable) == len(SETS) else set()
    ours: list[list[tuple[Any, ...]]] = [[] for _ in lines]
    rows = []
    for mode in _modes(results, lines[0].metric):
        for line, of_line in zip(lines, ours):
            cells = _cells(results, sets, mode, line.metric)
            of_line.append((f"{name}, {mode}{line.end}", *cells, *[_average(cells)] * several))
            rows.append(of_line[-1])
            if mode == PLAIN:
                changed = _change(cells, _cells(results, sets, "retrieve", line.metric), several)
                rows += [(f"{name}, change without REWRITE-EL{line.end}", *changed)] * bool(changed)
    for line, of_line in zip(lines, ours):
        for printed, figures in line.printed if of_line else ():
            alike = {label: cell for label, cell in figures.items() if label in comparable}
            if alike:
                rows.append(printed_row(printed, sets, alike, of_line))
    columns = ("", *(kilt.label for kilt in sets), *[AVERAGE] * several)
    return Table(title, columns, tuple(rows), True, note)


def _cells(
    results: Sequence[SetResult], sets: Sequence[KiltSet], mode: str, metric: str
) -> list[Estimate | None]:
    """The means of one way, one cell per set. Sets whose query does not depend on REWRITE-EL use the value of ``retrieve``."""
    means = {kilt.name: mean for kilt, mean in _means(results, mode, metric)}
    if mode == PLAIN:
        means = {kilt.name: mean for kilt, mean in _means(results, "retrieve", metric)} | means
    return [means.get(kilt.name) for kilt in sets]


def _change(
    without: Sequence[Estimate | None], rewritten: Sequence[Estimate | None], several: bool
) -> tuple[float | None, ...]:
    """The differences between two rows, for the sets that differ and for the averages; () if nothing is comparable."""
    pairs = [(_value(plain), _value(base)) for plain, base in zip(without, rewritten)]
    if any(base is None and plain is not None for plain, base in pairs):
        return ()
    gaps = [None if a is None or b is None or a == b else a - b for a, b in pairs]
    ours, theirs = _average(without), _average(rewritten)
    gap = None if ours is None or theirs is None else ours - theirs
    return (*gaps, *[gap] * several)


def printed_row(
    name: str, sets: Sequence[KiltSet], cells: Cells, ours: Sequence[tuple[Any, ...]]
) -> tuple[Any, ...]:
    """RaLLe's row, by set label. Its average covers the same sets as ours, or is None if our rows differ in their sets. For
    all eleven sets, it is the printed average."""
    row = (name, *(cells.get(kilt.label) for kilt in sets))
    if len(sets) == 1:
        return row
    scored = {
        tuple(kilt.label for kilt, cell in zip(sets, mine[1:]) if _value(cell) is not None)
        for mine in ours
    }
    labels = scored.pop() if len(scored) == 1 else ()
    if len(labels) == len(SETS) and PRINTED_AVERAGE in cells:
        return (*row, cells[PRINTED_AVERAGE])
    whole = labels and cells.keys() >= set(labels)
    return (*row, fmean(cells[label] for label in labels) if whole else None)


def _speed(results: Sequence[SetResult], retriever: str) -> Table:
    rows: list[tuple[Any, ...]] = []
    for answered in results:
        result, flow = answered.result, answered.result.request.flow
        seconds = [_seconds(result, kind) for kind in (Retrieve, Generate)]
        memory = [  # None if nothing was loaded for it, or if it runs elsewhere
            _sum(result.memory[name] / GB for name in names if result.memory.get(name))
            for names in (flow.retrievers, flow.llms)
        ]
        name = f"{answered.kilt.label}, {answered.mode}"
        peak = None if result.peak_memory is None else result.peak_memory / GB
        timed = (*seconds, _together(result))
        held = (*memory, peak)
        rows.append((name, len(result.episodes), *timed, *held, _query_tokens(result)))
    if any(answered.result.request.flow.retrievers for answered in results):
        rows += _printed_speed(_sets([answered for answered in results if not answered.why]))
    note = (
        "Seconds are what asking took when it was asked, also where the answer came from memory this time; memory is what the "
        "process grew by while loading, its peak the most that the process held until the run ended. Tokens of a query are those "
        "that the encoder reads, of BM25 its words. RaLLe's figures are over 22.2 million passages."
    )
    return Table(f"Speed and memory ({retriever or 'no index'})", _SPEED, tuple(rows), note=note)


def _query_tokens(result: RunResult) -> float | None:
    """Mean number of tokens per query; None without retrieval."""
    counts = [
        step.reply.embedding_tokens or len(tokenize(step.request.query))
        for episode in result.episodes.values()
        for step in episode.steps
        if isinstance(step.request, Retrieve)
    ]
    return fmean(counts) if counts else None


def _sum(values: Iterable[float | None]) -> float | None:
    """The sum of the known values; None if there are none."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _printed_speed(sets: Sequence[KiltSet]) -> Iterator[tuple[Any, ...]]:
    """RaLLe's retrievers over 22.2 million passages: seconds per question, and memory in GB if printed."""
    seconds = published_table("ralle_table9")
    for row in published_table("ralle_table4").rows:
        if row.settings["block"] == "retrieval":
            values = seconds.row(row.system, block="retrieval").values
            for kilt in sets:
                name = f"RaLLe's paper: {row.system}, {kilt.label}"
                seconds_of = (values[kilt.label], None, None)
                yield (name, None, *seconds_of, row.values["Memory"], None, None, None)


def _seconds(result: RunResult, kind: type) -> float | None:
    """Seconds per question for this kind of request; None without such requests."""
    steps = [step for episode in result.episodes.values() for step in episode.steps]
    seconds = [step.seconds for step in steps if isinstance(step.request, kind)]
    return sum(seconds) / len(result.episodes) if seconds else None


def _sets(results: Sequence[SetResult]) -> list[KiltSet]:
    return list({answered.kilt.name: answered.kilt for answered in results}.values())


def _means(
    results: Sequence[SetResult], mode: str, metric: str
) -> list[tuple[KiltSet, Estimate | None]]:
    """(set, mean) for one way to answer."""
    own = [(answered.kilt, answered.result) for answered in results if answered.mode == mode]
    return [(kilt, result.means.get(set_metric(kilt, metric))) for kilt, result in own]


def _modes(results: Sequence[SetResult], metric: str) -> list[str]:
    """The ways with a value of the metric for at least one set."""
    modes = dict.fromkeys(answered.mode for answered in results)
    means = {mode: [mean for _, mean in _means(results, mode, metric)] for mode in modes}
    return [mode for mode in modes if _average(means[mode]) is not None]


def _value(cell: Any) -> float | None:
    return cell.value if isinstance(cell, Estimate) else cell


def _average(cells: Iterable[Any]) -> float | None:
    known = [value for cell in cells if (value := _value(cell)) is not None]
    return fmean(known) if known else None
