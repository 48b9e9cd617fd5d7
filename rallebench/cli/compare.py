"""``compare``: runs, question by question."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import Any

from rallebench.cli.flags import flag
from rallebench.cli.printing import say
from rallebench.cli.verbs import VERBS, Result, workbench_of
from rallebench.core.numbers import independence
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
    workbench = workbench_of(args)
    names = [args.run_a, args.run_b, *args.others]
    runs = [workbench.runs.open(name) for name in names]
    value, warnings, tables = comparing.compare(runs, args.metric)
    blocks: tuple[Table | str, ...] = (
        (*tables, *_definition(value)) if tables else tuple(_pair(value))
    )
    for warning in warnings:
        say(f"Warning: {warning}")
    return Result(value, (*blocks, costs.beside(value["runs"], value["cost"])))


def _pair(value: Mapping[str, Any]) -> Iterator[str]:
    a, b = value["runs"]
    known = value["higher_is_better"] is not None
    more, less = ("wins", "loses") if known else ("is higher on", "lower on")
    same = "ties" if known else "equal on"
    yield f"{value['metric']} on {value['n']} questions: {a} {value['a']:.4f}, {b} {value['b']:.4f}"
    yield (
        f"difference {value['difference']:+.4f}  {interval(value, 'delta')}  p {text(value['p'], 'p')}"
    )
    yield independence(value["cluster_basis"], value["n"])
    yield f"{b} {more} {value['wins']}, {same} {value['ties']}, {less} {value['losses']}"
    yield f"questions needed to see this difference: {value['needed'] or 'there is none'}"
    yield from _definition(value)
    if value["over_all"]:
        first, second = value["over_all"]
        ends = {end: second[f"difference_{end}"] for end in ("low", "high")}
        yield (
            f"over all {first['n']} answers at once: {first['value']:.4f} and {second['value']:.4f}, difference "
            f"{second['difference']:+.4f}  {interval({**ends, 'note': 'no interval'}, 'delta')}"
        )
    if value["flipped"]:
        more_flipped = " …" if len(value["flipped"]) > 20 else ""
        yield f"flipped: {', '.join(value['flipped'][:20])}{more_flipped}"


def _definition(value: Mapping[str, Any]) -> list[str]:
    return [f"{value['metric']}: {value['definition']}"] if value["own"] else []
