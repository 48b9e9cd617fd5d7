"""``tradeoff``: what indexes give and cost, side by side."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from typing import Any

from rallebench.cli.following import follow
from rallebench.cli.partial_failure import fail_at_end
from rallebench.cli.verbs import VERBS, workbench_of
from rallebench.core.memory import size
from rallebench.core.runs import RunOptions
from rallebench.experiments.tradeoff import Point
from rallebench.experiments.tradeoff.running import QUESTIONS, read_swept, tradeoff_settings
from rallebench.render import experiments, text
from rallebench.retrievers.composites import split_names
from rallebench.services.experiments import plan_json
from rallebench.workspace.paths import DEFAULT_DATASET


def _flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--index",
        required=True,
        metavar="N,…",
        help="the indexes or other retrievers to compare; a combination in brackets: (rrf:a,b)",
    )
    parser.add_argument("--dataset", default=DEFAULT_DATASET, metavar="FILE|NAME")
    parser.add_argument("-k", type=int, default=10)
    parser.add_argument(
        "--limit",
        type=int,
        default=QUESTIONS,
        metavar="N",
        help=f"ask the first N questions (default: {QUESTIONS})",
    )
    parser.add_argument(
        "--name",
        default="",
        metavar="T",
        help="the same name again continues a trade-off that was stopped",
    )
    parser.add_argument("--plan", action="store_true", help="only say what it would measure")
    parser.add_argument(
        "--knob",
        action="append",
        default=[],
        metavar="KEY=V,V,…",
        help="values to sweep, as in ef_search=16,64,256",
    )


HEADERS = (
    "index",
    "recall@k",
    "R-prec",
    "ms single",
    "ms batch",
    "+ encode",
    "memory",
    "disk",
    "build s",
)


def _plain(value: Mapping[str, Any]) -> str:
    if "plan" in value:
        return text.blocks([experiments.plan(value)])
    points = [Point(**point) for point in value["points"]]
    rows = [HEADERS, *(_row(point) for point in points)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEADERS))]
    lines = [
        "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths)).rstrip() for row in rows
    ]
    lines += [f"{point.index}: {point.error}" for point in points if point.error]
    gold = max((point.n_gold for point in points), default=0)
    return "\n".join(
        [
            *lines,
            f"k = {value['k']}, n = {value['n']} questions of {value['dataset']}, {gold} with gold pages",
        ]
    )


def _row(point: Point) -> tuple[str, ...]:
    if point.error:
        return (point.label, "failed", *[""] * (len(HEADERS) - 2))

    def number(value: float | None, digits: int) -> str:
        return "–" if value is None else f"{value:.{digits}f}"

    return (
        point.label,
        number(point.recall, 4),
        number(point.quality.get("Rprec"), 4),
        number(point.single_ms, 3),
        number(point.batch_ms, 3),
        number(point.encode_ms, 1),
        "–" if point.ram is None else size(point.ram),
        size(point.disk),
        number(point.build_seconds, 1),
    )


@VERBS.register(
    "tradeoff",
    about="compare indexes: recall, quality, speed, memory, disk",
    example="rallebench tradeoff --index starter-bm25,starter-minilm --dataset starter-qa",
    order=4.5,
    flags=_flags,
    plain=_plain,
)
def tradeoff(args: argparse.Namespace) -> dict[str, Any]:
    """Measure every index in a process of its own, at every setting of its search."""
    workbench = workbench_of(args)
    settings = tradeoff_settings(
        split_names(args.index), args.dataset, k=args.k, swept=read_swept(args.knob, "--knob ")
    )
    name = args.name or time.strftime("tradeoff-%Y%m%d-%H%M%S")
    request = workbench.experiments.request("tradeoff", name, settings, args.limit)
    if args.plan:
        return plan_json(workbench.experiments.plan(request))
    options = RunOptions(track=False)
    result = follow(workbench, workbench.experiments.run(request, options), lambda task: "")
    if failed := result.report.failed:
        fail_at_end(
            args,
            f"{', '.join(failed)} could not be measured; the others' results are stored as {name!r}.",
        )
    return dict(result.document)
