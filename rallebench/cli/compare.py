"""``compare``: compare runs question by question."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from rallebench.cli import flags
from rallebench.cli.flags import flag
from rallebench.cli.printing import say
from rallebench.cli.verbs import VERBS, Result, open_workbench
from rallebench.cli.why import make_groups
from rallebench.core.comparison import Comparison, PairedComparison
from rallebench.core.corrections import Corrections, correction_table
from rallebench.core.numbers import independence
from rallebench.core.report import Estimate
from rallebench.core.tables import Table
from rallebench.render import costs
from rallebench.render.numbers import interval, text
from rallebench.views import comparing

MOST_FLIPPED = 20


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
        flags.SLICE,
    ),
)
def compare(args: argparse.Namespace) -> Result:
    """Test whether other runs differ from the first by more than chance."""
    workbench = open_workbench(args)
    names = [args.run_a, args.run_b, *args.others]
    runs = [workbench.runs.open(name) for name in names]
    make_groups(workbench, args.run_a, args.slice)
    compared = comparing.compare(runs, args.metric, args.slice, workbench.workspace)
    value = compared.comparison
    blocks: tuple[Table | str, ...] = (
        tuple(_pair(compared, compared.pair))
        if compared.pair
        else (*compared.tables, *_definition(value))
    )
    for warning in value.warnings:
        say(f"Warning: {warning}")
    labelled = _corrections(compared.corrected)
    return Result(compared.to_json(), (*blocks, *labelled, costs.beside(names, compared.costs)))


def _pair(compared: comparing.RunsBesideFirst, pair: PairedComparison) -> Iterator[str]:
    value = compared.comparison
    a, b = (side.name for side in value.sides)
    known = value.measure.higher_is_better is not None
    more, less = ("wins", "loses") if known else ("is higher on", "lower on")
    same = "ties" if known else "equal on"
    yield f"{pair.metric} on {pair.n} questions: {a} {pair.a:.4f}, {b} {pair.b:.4f}"
    ends = interval(pair.gap, "delta", note=pair.note)
    p = "holds whenever one stops" if pair.watched else f"p {text(pair.p, 'p')}"
    yield f"difference {pair.difference:+.4f}  {ends}  {p}"
    yield independence(value.clusters.counts, pair.n)
    yield f"{b} {more} {pair.wins}, {same} {pair.ties}, {less} {pair.losses}"
    yield f"questions needed to see this difference: {pair.needed or 'unknown'}"
    yield from _definition(value)
    if compared.over_all:
        first, second = compared.over_all
        gap = Estimate(second.difference, second.difference_low, second.difference_high)
        yield (
            f"over all {first.n} answers at once: {first.value:.4f} and {second.value:.4f}, difference "
            f"{second.difference:+.4f}  {interval(gap, 'delta', note='no interval')}"
        )
    if flipped := pair.flipped_ids:
        yield f"flipped: {', '.join(flipped[:MOST_FLIPPED])}{' …' * (len(flipped) > MOST_FLIPPED)}"


def _corrections(value: Corrections) -> Iterator[Table | str]:
    """Yield the metric raw and corrected by labels side by side."""
    if value.corrections:
        yield correction_table(value.corrections)
    if value:
        yield "\n".join(value.sentences)


def _definition(compared: Comparison) -> list[str]:
    own = compared.measure.own
    return [f"{compared.metric}: {compared.measure.card.definition}"] if own else []
