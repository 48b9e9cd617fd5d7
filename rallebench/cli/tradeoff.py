"""``tradeoff``: what indexes give and cost, side by side."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from typing import Any

from rallebench.cli.flags import flag, many, switch
from rallebench.cli.printing import follow
from rallebench.cli.verbs import VERBS, Result, workbench_of
from rallebench.core.runs import RunOptions
from rallebench.core.tables import Column, Table
from rallebench.render import experiments
from rallebench.services import catalog, experimenting

QUESTIONS = experimenting.TRADEOFF_QUESTIONS
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
        flag("--dataset", "FILE|NAME", default=catalog.DEFAULT_DATASET),
        flag("-k", type=int, default=10),
        flag(
            "--limit",
            "N",
            f"ask the first N questions (default: {QUESTIONS})",
            type=int,
            default=QUESTIONS,
        ),
        flag(
            "--name", "T", "the same name again continues a trade-off that was stopped", default=""
        ),
        switch("--plan", "only say what it would measure"),
        many("--knob", "KEY=V,V,…", "values to sweep, as in ef_search=16,64,256"),
    ),
)
def tradeoff(args: argparse.Namespace) -> Result:
    """Measure every index in a process of its own, at every setting of its search."""
    workbench = workbench_of(args)
    name = args.name or time.strftime("tradeoff-%Y%m%d-%H%M%S")
    request = experimenting.tradeoff_request(
        workbench,
        name,
        args.index,
        args.dataset,
        k=args.k,
        limit=args.limit,
        knobs=args.knob,
        flag="--knob",
    )
    if args.plan:
        value = experimenting.plan_json(workbench.experiments.plan(request))
        return Result(value, experiments.plan_blocks(value))
    result = follow(workbench.experiments.run(request, RunOptions(track=False)))
    failure = ""
    if failed := result.report.failed:
        failure = f"{', '.join(failed)} could not be measured; the others' results are stored as {name!r}."
    value = dict(result.document)
    return Result(value, _blocks(value), failure)


def _blocks(value: Mapping[str, Any]) -> tuple[Table | str, ...]:
    points = value["points"]
    gold = max((point["n_gold"] for point in points), default=0)
    note = f"k = {value['k']}, n = {value['n']} questions of {value['dataset']}, {gold} with gold pages"
    failed = (f"{point['index']}: {point['error']}" for point in points if point["error"])
    return (Table("", COLUMNS, tuple(map(_row, points))), *failed, note)


def _row(point: Mapping[str, Any]) -> tuple[Any, ...]:
    if point["error"]:
        return (point["label"], "failed", *[""] * (len(COLUMNS) - 2))
    measures = ("single_ms", "batch_ms", "encode_ms", "ram", "disk", "build_seconds")
    quality = (point["recall"], point["quality"].get("Rprec"))
    return (point["label"], *quality, *(point[name] for name in measures))
