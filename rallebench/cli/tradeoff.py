"""``tradeoff``: what indexes give and cost, side by side."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from rallebench.cli.verbs import VERBS, say, workbench_of
from rallebench.core.errors import BackendError
from rallebench.core.memory import size
from rallebench.experiments.tradeoff import Point, Tradeoff
from rallebench.experiments.tradeoff.measure import read_swept
from rallebench.retrievers.composites import split_names
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
        default=200,
        metavar="N",
        help="ask the first N questions (default: 200)",
    )
    parser.add_argument(
        "--name", default="", metavar="T", help="how the result is called in tradeoffs/"
    )
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
    """Measure every index in a process of its own, its knobs swept."""
    workbench = workbench_of(args)
    names = split_names(args.index)
    result = None
    for piece in workbench.measure_tradeoff(
        names,
        args.dataset,
        k=args.k,
        limit=args.limit,
        name=args.name,
        swept=read_swept(args.knob, "--knob ") or None,
    ):
        if isinstance(piece, Tradeoff):
            result = piece
        elif isinstance(piece, str):
            say(piece)
    assert result is not None
    args.ending.callback(_tell_failures, result)  # when the others' results are printed
    return result.as_json()


def _tell_failures(result: Tradeoff) -> None:
    """Raise BackendError, which makes the exit code 1, if an index could not be measured."""
    failed = [point.index for point in result.points if point.error]
    if failed:
        raise BackendError(
            f"{', '.join(failed)} could not be measured; the others' results are kept as {result.name!r}."
        )
