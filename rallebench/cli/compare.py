"""``compare``: runs, question by question."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from rallebench.analysis.measures import Measure, measure
from rallebench.analysis.ranking import compare_many
from rallebench.analysis.runs import as_json, compare_runs
from rallebench.cli.verbs import VERBS, say, workbench_of
from rallebench.engine.score import cost_of
from rallebench.engine.store import RunFolder
from rallebench.metrics import metric
from rallebench.render import costs, numbers, text
from rallebench.render.numbers import independence as sentence
from rallebench.render.numbers import interval


def _flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_a", metavar="RUN_A")
    parser.add_argument("run_b", metavar="RUN_B")
    parser.add_argument(
        "others",
        nargs="*",
        metavar="RUN",
        help="more runs: a table of every metric, each against the first",
    )
    parser.add_argument(
        "--metric",
        default="",
        metavar="M",
        help="default: the first of em, accuracy, f1, … that both have, or of their suite's own",
    )


def _plain(value: Mapping[str, Any]) -> str:
    if "metrics" in value:
        return _table(value)
    a, b = value["runs"]
    more, same, less = (
        ("wins", "ties", "loses")
        if value["higher_is_better"] is not None
        else ("is higher on", "equal on", "lower on")
    )
    flipped = ", ".join(value["flipped"][:20]) + (" …" if len(value["flipped"]) > 20 else "")
    return "\n".join(
        [
            f"{value['metric']} on {value['n']} questions: {a} {value['a']:.4f}, {b} {value['b']:.4f}",
            f"difference {value['difference']:+.4f}  {interval(value, 'delta')}  p {numbers.text(value['p'], 'p')}",
            sentence(value["cluster_basis"], value["n"]),
            f"{b} {more} {value['wins']}, {same} {value['ties']}, {less} {value['losses']}",
            f"questions needed to see this difference: {value['needed'] or 'there is none'}",
            *([f"{value['metric']}: {value['definition']}"] if value["own"] else []),
            *_over_all(value),
            *([f"flipped: {flipped}"] if flipped else []),
            *text.table(costs.beside(value["runs"], value["cost"])),
        ]
    )


def _over_all(value: Mapping[str, Any]) -> list[str]:
    """The figures over all answers at once, which are no means, where the metric has such."""
    if not value["over_all"]:
        return []
    a, b = value["over_all"]
    between = (
        "no interval"
        if b["difference_low"] is None
        else f"[{b['difference_low']:+.4f}, {b['difference_high']:+.4f}]"
    )
    return [
        f"over all {a['n']} answers at once: {a['value']:.4f} and {b['value']:.4f}, difference {b['difference']:+.4f}  {between}"
    ]


def _table(value: Mapping[str, Any]) -> str:
    """Metric by run; then every run against the first."""
    wide = max(12, *(len(name) for name in value["runs"]))
    lines = [f"{'':24}" + "".join(f"{name:>{wide + 2}}" for name in value["runs"]) + "       n"]
    for name, row in value["metrics"].items():
        shown = ("not scored" if cell["value"] is None else f"{cell['value']:.4f}" for cell in row)
        lines.append(
            f"{name:24}" + "".join(f"{text:>{wide + 2}}" for text in shown) + f"{row[0]['n']:>8}"
        )
        if name in value["over_all"]:
            figures = value["over_all"][name]
            shown = (
                "not scored" if one["value"] is None else f"{one['value']:.4f}" for one in figures
            )
            lines.append(
                f"{f'{name}, over all':24}"
                + "".join(f"{text:>{wide + 2}}" for text in shown)
                + f"{figures[0]['n']:>8}"
            )
    lines.append(
        f"{value['metric']} against {value['runs'][0]}; of {len(value['against'])} comparisons p is corrected by Holm, and the "
        "intervals hold together at 95 % (Bonferroni):"
    )
    lines += [f"  {sentence(value['cluster_basis'], value['n'])}"]
    more, less = (
        ("better", "worse") if value["higher_is_better"] is not None else ("higher", "lower")
    )
    lines += [f"  {value['metric']}: {value['definition']}"] if value["own"] else []
    for one in value["against"]:
        if one["difference"] is None:
            lines.append(f"  {one['run']}: no question is scored in both")
            continue
        lines.append(
            f"  {one['run']}: {one['difference']:+.4f}  {interval(one, 'delta')}  p {numbers.text(one['p'], 'p')}, corrected "
            f"{numbers.text(one['p_corrected'], 'p')}; {more} on {one['wins']}, equal {one['ties']}, {less} {one['losses']}"
        )
    return "\n".join(lines + text.table(costs.beside(value["runs"], value["cost"])))


def _several(runs: list[RunFolder], name: str) -> dict[str, Any]:
    found = compare_many(runs, name)
    for warning in found.warnings:
        say(f"Warning: {warning}")
    against = [
        {
            **{part: getattr(one.paired, part) for part in one.paired.__slots__},
            "run": one.name,
            "p_corrected": one.corrected,
        }
        for one in found.against
    ]
    return {
        "runs": [side.name for side in found.sides],
        "n": len(found.common),
        "metric": found.metric,
        **_of(found.measure),
        "metrics": {name: [asdict(cell) for cell in row] for name, row in found.cells.items()},
        "over_all": {
            name: [asdict(one) for one in row] for name, row in found.corpus_level.items()
        },
        "against": against,
        "cluster_basis": found.clusters.as_json(),
        "warnings": found.warnings,
    }


def _of(found: Measure) -> dict[str, Any]:
    """What a reader should know of the metric; ``own``: it is the suite's, whose runs alone hold its values."""
    return {
        "definition": found.about["definition"],
        "higher_is_better": found.higher_is_better,
        "own": found.own,
    }


@VERBS.register(
    "compare",
    about="compare runs, question by question",
    example="rallebench compare my-first-run my-second-run --metric em",
    order=6.5,
    flags=_flags,
    plain=_plain,
)
def compare(args: argparse.Namespace) -> dict[str, Any]:
    """Is another run better than the first, and is that more than chance?"""
    workbench = workbench_of(args)
    if args.others:
        names = [args.run_a, args.run_b, *args.others]
        runs = [workbench.open_run(name) for name in names]
        return {**_several(runs, args.metric), "cost": [cost_of(run) for run in runs]}
    a, b = workbench.open_run(args.run_a), workbench.open_run(args.run_b)
    found, common = compare_runs(a, b, args.metric)
    if common.warning:
        say(f"Warning: {common.warning}")
    if found.n < len(common.qids) and not common.left_out:
        say(
            f"Warning: only {found.n} of the {len(common.qids)} shared questions are scored by {found.metric} in both."
        )
    of = measure(found.metric, [a, b])
    has_over_all = not of.own and "over_all" in metric(of.name).traits
    over_all = compare_many([a, b], of.name).corpus_level.get(of.name, ()) if has_over_all else ()
    told = {
        **_of(of),
        "over_all": [asdict(one) for one in over_all],
        "cost": [cost_of(a), cost_of(b)],
    }
    return {**as_json(found, common, a.name, b.name), **told}
