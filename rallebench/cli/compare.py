"""``compare``: runs, question by question."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import Any

from rallebench.cli.flags import flag
from rallebench.cli.printing import say
from rallebench.cli.verbs import VERBS, Result, open_workbench
from rallebench.core.numbers import independence
from rallebench.core.report import ClusterCounts, Estimate
from rallebench.core.tables import Table
from rallebench.render import costs
from rallebench.render.numbers import interval, text
from rallebench.views import comparing


@VERBS.register(
    "compare",
    about="compare runs, question by question",
    example="rallebench compare my-first-run my-second-run --metric em",
    order=6.5,
    flags=(
        flag("run_a", "RUN_A"),
        flag("run_b", "RUN_B"),
        flag(
            "others", "RUN", "more runs: a table of every metric, each against the first", nargs="*"
        ),
        flag(
            "--metric",
            "M",
            "default: the first of em, accuracy, f1, … that both have, or of their suite's own",
            default="",
        ),
    ),
)
def compare(args: argparse.Namespace) -> Result:
    """Is another run better than the first, and is that more than chance?"""
    workbench = open_workbench(args)
    names = [args.run_a, args.run_b, *args.others]
    runs = [workbench.runs.open(name) for name in names]
    compared = comparing.compare(runs, args.metric)
    value = compared.document
    blocks: tuple[Table | str, ...] = (
        (*compared.tables, *_definition(value)) if compared.tables else tuple(_pair(value))
    )
    for warning in compared.warnings:
        say(f"Warning: {warning}")
    return Result(value, (*blocks, costs.beside(names, compared.costs)))


def _pair(value: Mapping[str, Any]) -> Iterator[str]:
    a, b = value["runs"]
    known = value["higher_is_better"] is not None
    more, less = ("wins", "loses") if known else ("is higher on", "lower on")
    same = "ties" if known else "equal on"
    yield f"{value['metric']} on {value['n']} questions: {a} {value['a']:.4f}, {b} {value['b']:.4f}"
    gap = Estimate(value["difference"], value["low"], value["high"], value["n"])
    ends = interval(gap, "delta", note=value["note"])
    yield f"difference {value['difference']:+.4f}  {ends}  p {text(value['p'], 'p')}"
    yield independence(ClusterCounts(**value["cluster_basis"]), value["n"])
    yield f"{b} {more} {value['wins']}, {same} {value['ties']}, {less} {value['losses']}"
    yield f"questions needed to see this difference: {value['needed'] or 'there is none'}"
    yield from _definition(value)
    if value["over_all"]:
        first, second = value["over_all"]
        gap = Estimate(second["difference"], second["difference_low"], second["difference_high"])
        yield (
            f"over all {first['n']} answers at once: {first['value']:.4f} and {second['value']:.4f}, difference "
            f"{second['difference']:+.4f}  {interval(gap, 'delta', note='no interval')}"
        )
    if value["flipped"]:
        more_flipped = " …" if len(value["flipped"]) > 20 else ""
        yield f"flipped: {', '.join(value['flipped'][:20])}{more_flipped}"


def _definition(value: Mapping[str, Any]) -> list[str]:
    return [f"{value['metric']}: {value['definition']}"] if value["own"] else []
