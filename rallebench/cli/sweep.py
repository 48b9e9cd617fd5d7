"""``sweep``: vary fields of a chain, run every variant, name the winner."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from typing import Any

from rallebench.cli.ask import overridden, override_flags
from rallebench.cli.following import follow
from rallebench.cli.partial_failure import tell_failed
from rallebench.cli.verbs import VERBS, loop_flags, mlflow_flags, say, workbench_of
from rallebench.core.errors import BackendError, UsageError
from rallebench.core.runs import RunOptions
from rallebench.experiments.sweeps import STRATEGIES, Variant, indexing, remarks, run_name
from rallebench.experiments.sweeps.results import as_json, headline, opened
from rallebench.experiments.sweeps.running import sweep_settings, variants_of
from rallebench.render.numbers import interval, text
from rallebench.services.workbench import Workbench
from rallebench.workspace.checking import check_chain
from rallebench.workspace.indexes.ensure import Costs
from rallebench.workspace.paths import DEFAULT_DATASET


def _flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--chain", metavar="FILE|NAME", help="without it the sweep --name is only shown"
    )
    parser.add_argument(
        "--vary",
        "--factor",
        action="append",
        default=[],
        metavar="FIELD=V,V,…",
        help="k=2,4,6  retriever=a,b  llm=a,b  retriever=a,(rrf:a,b)  2.template=a.txt,b.txt  temperature=0,0.7  index.chunk_size=64,128  index.encoder=a,b  index.kind=bm25,flat",
    )
    parser.add_argument(
        "--plan",
        action="store_true",
        help="only say which runs, index builds and encodings it would take",
    )
    parser.add_argument(
        "--strategy",
        choices=STRATEGIES,
        default=STRATEGIES[0],
        help="one-factor: one field at a time (default); grid: all combinations",
    )
    parser.add_argument(
        "--name",
        default="",
        metavar="SWEEP",
        help="the same name again continues a sweep that was stopped",
    )
    parser.add_argument("--dataset", metavar="FILE|NAME")
    parser.add_argument("--limit", type=int, metavar="N")
    parser.add_argument("--metric", default="", metavar="M", help="what decides who wins")
    parser.add_argument("--metrics", metavar="M,…")
    loop_flags(parser)
    mlflow_flags(parser)
    override_flags(parser)


def _plain(value: Mapping[str, Any]) -> str:
    if "index_builds" in value:
        return str(value["verdict"])
    lines, wide = (
        [value["verdict"]],
        max((len(row["variant"]) for row in value["variants"]), default=0),
    )
    for row in value["variants"]:
        cell = row["metrics"].get(value["metric"] or headline(row["metrics"]))
        score = (
            ""
            if not cell or cell["value"] is None
            else f"{cell['value']:.4f}  {interval(cell)}  n = {cell['n']}"
        )
        p = (
            ""
            if row["p_corrected"] is None
            else f"  {row['difference']:+.4f} {interval(row, 'delta')} to the best, p {text(row['p_corrected'], 'p')}"
        )
        lines.append(f"  {row['variant']:<{wide}}  {score}{p}")
    lines += [f"  {label}: not ended. {sentence}" for label, sentence in value["failed"].items()]
    return "\n".join(lines)


@VERBS.register(
    "sweep",
    about="vary fields of a chain, run every variant, name the winner",
    example="rallebench sweep --chain starter --vary k=1,3,5,10 --name ks",
    order=6.3,
    flags=_flags,
    plain=_plain,
)
def sweep_(args: argparse.Namespace) -> dict[str, Any]:
    """Every variant with its metrics, the best first, and what can be said of the difference."""
    workbench = workbench_of(args)
    if not args.chain and not args.name:
        raise UsageError(
            "Give --chain and --vary to run a sweep, or --name to see one that was run."
        )
    if not args.chain and args.vary:
        raise UsageError("--vary needs the chain that it varies: --chain starter.")
    if not args.chain:
        return as_json(opened(workbench.workspace, args.name, args.metric))
    chain = overridden(workbench.workspace.chain(args.chain), args)
    settings = sweep_settings(
        chain,
        args.vary,
        args.dataset or DEFAULT_DATASET,
        strategy=args.strategy,
        metrics=tuple(m.strip() for m in args.metrics.split(",") if m.strip())
        if args.metrics
        else None,
        metric=args.metric,
    )
    variants = variants_of(settings)
    if args.plan:
        return _planned(workbench, variants)
    name = args.name or time.strftime("sweep-%Y%m%d-%H%M%S")
    options = RunOptions(args.batch_size, args.max_errors, track=not args.no_mlflow)
    request = workbench.experiments.request("sweep", name, settings, args.limit, args.seed)
    sweep = workbench.experiments.run(request, options)
    names = {variant.label: run_name(name, variant) for variant in variants}
    result = follow(workbench, sweep, lambda task: names.get(task, ""))
    if result.warning:
        say(f"Warning: {result.warning}")
    failed = result.report.failed
    if len(failed) == len(variants):
        raise BackendError(f"Every variant failed. {next(iter(failed.values()))}")
    mend = (
        f"Start the sweep again with --name {name} when it is mended: only what is missing is run."
    )
    tell_failed(args, "variants", failed, len(variants), mend)
    warnings = [*result.document["warnings"], *filter(None, [result.warning])]
    return {**result.document, "warnings": warnings}


def _planned(workbench: Workbench, variants: Sequence[Variant]) -> dict[str, Any]:
    """What a sweep would take. Raises UsageError for a variant that could not run."""
    for cell in variants:
        check_chain(workbench.workspace, cell.chain)
    *_, last = [None, *indexing.counting(workbench.workspace, variants)]
    costs = last if isinstance(last, Costs) else Costs((), 0, 0, {})
    labels = [cell.label for cell in variants]
    indexed = any(cell.index for cell in variants)
    encodings = {
        name: {"to_encode": new, "texts": total} for name, (new, total) in costs.encodings.items()
    }
    for remark in remarks(variants):
        say(f"Note: {remark}")
    return {
        "variants": labels,
        "indexes_there": list(costs.existing),
        "index_builds": costs.builds,
        "passages": costs.passages,
        "encodings": encodings,
        "verdict": f"{len(labels)} runs: {', '.join(labels)}."
        + (f" {costs.sentence}" if indexed else ""),
    }
