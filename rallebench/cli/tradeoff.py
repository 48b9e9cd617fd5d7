"""``tradeoff``: compare the quality and cost of indexes."""

from __future__ import annotations

import argparse
import time

from rallebench.cli import arguments
from rallebench.cli.flags import flag, many, switch
from rallebench.cli.printing import follow
from rallebench.cli.verbs import VERBS, Result, open_workbench
from rallebench.core.experiment_reports import Point, TradeoffReport
from rallebench.core.experiments import TRADEOFF_QUESTIONS
from rallebench.core.runs import RunOptions
from rallebench.core.starter import DEFAULT_DATASET
from rallebench.core.tables import Cell, Column, Table
from rallebench.views import experiment_requests

COLUMNS = (
    Column("index"),
    Column("recall@k"),
    Column("R-prec"),
    *(Column(label, "quantity") for label in ("ms single", "ms batch", "+ encode")),
    *(Column(label, "bytes") for label in ("memory", "disk")),
    Column("build s", "quantity"),
)


@VERBS.register(
    "tradeoff",
    about="compare indexes: recall, quality, speed, memory, disk",
    example="rallebench tradeoff --index starter-bm25,starter-minilm --dataset starter-qa",
    order=4.5,
    flags=(
        flag(
            "--index",
            "N,…",
            "the indexes or other retrievers to compare; a combination in brackets: (rrf:a,b)",
            required=True,
        ),
        flag("--dataset", "FILE|NAME", default=DEFAULT_DATASET),
        flag("-k", type=int, default=10),
        flag(
            "--limit",
            "N",
            f"ask the first N questions (default: {TRADEOFF_QUESTIONS})",
            type=int,
            default=TRADEOFF_QUESTIONS,
        ),
        flag(
            "--name", "T", "the same name again continues a trade-off that was stopped", default=""
        ),
        switch("--plan", "only say what it would measure"),
        many("--knob", "KEY=V,V,…", "values to sweep, as in ef_search=16,64,256"),
    ),
)
def tradeoff(args: argparse.Namespace) -> Result:
    """Measure every index in its own process, at every search setting."""
    workbench = open_workbench(args)
    name = args.name or time.strftime("tradeoff-%Y%m%d-%H%M%S")
    request = experiment_requests.tradeoff_request(
        workbench.workspace,
        name,
        arguments.split_list(args.index) or (),
        args.dataset,
        k=args.k,
        limit=args.limit,
        knobs=args.knob,
        flag="--knob",
    )
    if plan := arguments.show_plan(workbench.experiments, request, args):
        return plan
    result = follow(workbench.experiments.run(request, RunOptions(track=False)))
    failure = ""
    if failed := result.report.failed:
        failure = f"{', '.join(failed)} could not be measured; the others' results are stored as {name!r}."
    report = workbench.experiments.open_tradeoff(name)
    return Result(report.to_json(), _blocks(report), failure)


def _blocks(tradeoff: TradeoffReport) -> tuple[Table | str, ...]:
    gold = max((point.n_gold for point in tradeoff.points), default=0)
    note = f"k = {tradeoff.k}, n = {tradeoff.n} questions of {tradeoff.dataset}, {gold} with gold pages"
    failed = (f"{point.index}: {point.error}" for point in tradeoff.points if point.error)
    return (Table("", COLUMNS, tuple(map(_row, tradeoff.points))), *failed, note)


def _row(point: Point) -> tuple[Cell, ...]:
    if point.error:
        return (point.label, "failed", *[""] * (len(COLUMNS) - 2))
    measures = (point.single_ms, point.batch_ms, point.encode_ms)
    quality = (point.recall, point.quality.get("Rprec"))
    return (point.label, *quality, *measures, point.ram, point.disk, point.build_seconds)
