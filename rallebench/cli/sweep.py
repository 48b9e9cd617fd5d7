"""``sweep``: vary fields of a chain, run every variant and name the winner."""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

from rallebench.cli import arguments, flags
from rallebench.cli.flags import flag, many, switch
from rallebench.cli.printing import follow_experiment, say
from rallebench.cli.verbs import VERBS, Result, failed_parts, open_workbench
from rallebench.core.errors import UsageError
from rallebench.core.experiment_reports import RankingReport
from rallebench.core.report import Estimate
from rallebench.core.starter import DEFAULT_DATASET
from rallebench.core.tables import Column, Table
from rallebench.render.numbers import interval
from rallebench.views import catalog, experiment_requests
from rallebench.views.run_requests import changed_chain

FIELDS = (
    "k=2,4,6  retriever=a,b  llm=a,b  retriever=a,(rrf:a,b)  2.template=a.txt,b.txt  temperature=0,0.7  "
    "index.chunk_size=64,128  index.encoder=a,b  index.kind=bm25,flat"
)
STRATEGIES = catalog.names("strategies")


@VERBS.register(
    "sweep",
    about="vary fields of a chain, run every variant, name the winner",
    example="rallebench sweep --chain starter --vary k=1,3,5,10 --name ks",
    order=6.3,
    flags=(
        flag("--chain", "FILE|NAME", "without it the sweep --name is only shown"),
        many("--vary", "FIELD=V,V,…", FIELDS, alias="--factor"),
        switch("--plan", "only say which runs, index builds and encodings it would take"),
        flag(
            "--strategy",
            help="one-factor: one field at a time (default); grid: all combinations",
            choices=STRATEGIES,
            default=STRATEGIES[0],
        ),
        flag(
            "--name", "SWEEP", "the same name again continues a sweep that was stopped", default=""
        ),
        flag("--dataset", "FILE|NAME"),
        *flags.LIMIT,
        flag("--metric", "M", "what decides who wins", default=""),
        flag("--metrics", "M,…"),
        *flags.LOOP,
        flags.MAX_USD,
        *flags.REPEATS,
        *flags.MLFLOW,
        *flags.OVERRIDES,
    ),
)
def sweep(args: argparse.Namespace) -> Result:
    """Return every variant with its metrics, best first, and whether the best differs by more than chance."""
    workbench = open_workbench(args)
    if not args.chain and not args.name:
        raise UsageError(
            "Give --chain and --vary to run a sweep, or --name to see one that was run."
        )
    if not args.chain and args.vary:
        raise UsageError("--vary needs the chain that it varies: --chain starter.")
    if not args.chain:
        ranking = experiment_requests.stored_sweep(workbench.workspace, args.name, args.metric)
        return Result(ranking.to_json(), _blocks(ranking))
    limit, sampled = arguments.read_part(args)
    name = args.name or time.strftime("sweep-%Y%m%d-%H%M%S")
    chain = changed_chain(workbench.workspace, args.chain, args.llm, args.retriever, args.set)
    request, variants = experiment_requests.sweep_request(
        workbench.workspace,
        name,
        chain,
        args.vary,
        args.dataset or DEFAULT_DATASET,
        strategy=args.strategy,
        metrics=arguments.split_list(args.metrics),
        metric=args.metric,
        limit=limit,
        seed=args.seed,
        sampled=sampled,
    )
    if args.plan:
        plan = experiment_requests.sweep_plan(workbench.workspace, request)
        for note in plan.notes:
            say(f"Note: {note}")
        return Result(plan.to_json(), (plan.verdict,))
    options = arguments.read_run_options(args)
    result = follow_experiment(workbench.experiments, request, options)
    failed = result.report.failed
    mend = f"Start the sweep again with --name {name} once this is mended; finished runs are kept."
    stored = result.stored
    assert isinstance(stored, RankingReport)
    ranking = replace(stored, warnings=(*stored.warnings, *filter(None, [result.warning])))
    failure = failed_parts("variants", list(failed), variants, mend)
    return Result(ranking.to_json(), _blocks(ranking), failure)


def _blocks(ranking: RankingReport) -> tuple[Table | str, ...]:
    rows = []
    for row in ranking.variants:
        mean = row.metrics.get(ranking.metric or experiment_requests.sweep_headline(row.metrics))
        difference = "" if row.difference is None else f"{row.difference:+.4f}"
        gap = Estimate(row.difference, row.low, row.high)
        ends = interval(gap, "delta") if difference and row.p_corrected is not None else ""
        rows.append((f"  {row.variant}", mean, f"{difference} {ends}".strip(), row.p_corrected))
    heads = ("  variant", ranking.metric or "mean", "to the best", Column("p, corrected", "p"))
    failed = (f"  {name}: not ended. {reason}" for name, reason in ranking.failed.items())
    return (ranking.verdict, Table("", heads, tuple(rows)), *failed)
