"""``run``: benchmark a chain, each chain of a folder, or an agent."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from rallebench.cli import arguments, flags
from rallebench.cli.flags import flag, switch
from rallebench.cli.printing import Paced, drain, follow, follow_experiment, say
from rallebench.cli.verbs import VERBS, Result, open_workbench
from rallebench.core.columns import parse_columns
from rallebench.core.errors import StoppedError, UsageError
from rallebench.core.hub_names import is_hub_name
from rallebench.core.numbers import independence
from rallebench.core.report import ClusterCounts, Estimate, RunReport
from rallebench.core.run_results import EndingSummary
from rallebench.core.runs import PreparedRun, RunResult
from rallebench.core.tables import Column, Table
from rallebench.render import costs
from rallebench.render.numbers import interval, text
from rallebench.services import counted_imports
from rallebench.services.import_previews import source_name
from rallebench.services.runs import Runs
from rallebench.services.workbench import Workbench
from rallebench.views import repeats, run_requests
from rallebench.views.run_requests import BenchmarkOptions
from rallebench.views.run_views import FinishedRun, finished_run, interval_note, printed_metrics


@VERBS.register(
    "run",
    about="benchmark a chain, a folder of chains, or an agent",
    example="rallebench run --chain starter --dataset starter-qa --limit 50",
    order=6,
    flags=(
        flag("--chain", "FILE|NAME", "a chain, or a folder of chains to run each"),
        flag(
            "--dataset",
            "FILE|NAME|hf:NAME",
            "default: what RaLLe's file names, else starter-qa; a dataset of the hub is imported first",
        ),
        flags.COLUMNS,
        *flags.LIMIT,
        flag("--batch-size", "B", type=int),
        flag("--name", "RUN", default=""),
        switch(
            "--resume",
            "continue the run --name as it began; with its chain and --limit or --sample it grows to that number",
        ),
        flag("--metrics", "M,…"),
        flag("--max-errors", "N", type=int),
        flags.MAX_USD,
        flag("--seed", type=int, default=0),
        *flags.UNTIL_DECIDED,
        *flags.REPEATS,
        *flags.MLFLOW,
        *flags.OVERRIDES,
        *flags.AGENT,
    ),
)
def run(args: argparse.Namespace) -> Result:
    """Benchmark a chain, each chain of a folder, or an agent."""
    own = arguments.read_run_options(args)
    workbench = open_workbench(args)
    if args.resume and not args.name:
        raise UsageError("--resume needs --name RUN, the run to continue.")
    limit, sampled = arguments.read_part(args)
    options = BenchmarkOptions(
        _dataset(workbench, args),
        limit,
        args.batch_size,
        arguments.split_list(args.metrics),
        sampled,
        args.seed,
        args.llm,
        args.retriever,
        tuple(args.set),
        run=own,
    )
    continued = {"run": args.name, "resume": args.resume}
    as_it_began = not (args.chain or args.workflow or args.dataset or limit or sampled)
    if args.resume and as_it_began:
        prepared = workbench.runs.resume(args.name)
    elif arguments.names_agent(args):
        parts = arguments.agent_parts(args)
        agent = workbench.asking.agent(*parts, retriever=args.retriever or "", seed=args.seed)
        prepared = run_requests.of_flow(workbench.workspace, agent.flow, options, **continued)
    elif (files := workbench.workspace.chain_folder(args.chain)) is not None:
        return _folder(workbench, args, files, options)
    else:
        prepared = run_requests.of_chain(workbench.workspace, args.chain, options, **continued)
    result = run_benchmark(workbench.runs, prepared)
    value = finished_run(workbench.workspace, result)
    return Result(value.to_json(), blocks(value))


def _dataset(workbench: Workbench, args: argparse.Namespace) -> str | None:
    """Return the dataset to ask. A table with ``--columns`` and a name of the hub are imported first."""
    columns, reference = parse_columns(args.columns), args.dataset
    if columns and reference is None:
        raise UsageError("--columns belong to a file of questions; give it with --dataset.")
    if reference is None or not (columns or is_hub_name(reference)):
        return None if reference is None else str(reference)
    source = arguments.read_source(reference)
    name = source_name(source)
    if not args.resume or name not in workbench.workspace.own_datasets():
        drain(
            counted_imports.import_dataset(workbench.data, name, source, columns=columns), Paced()
        )
        say(f"The questions are imported as the dataset {name}.")
    return name


def _folder(
    workbench: Workbench,
    args: argparse.Namespace,
    files: Sequence[tuple[str, Path]],
    options: BenchmarkOptions,
) -> Result:
    """Run every chain in a folder; if one fails, the others still run."""
    title = args.name or Path(args.chain).resolve().name
    request = run_requests.batch_request(
        workbench.workspace, files, options, title=title, run=args.name, resume=args.resume
    )
    try:
        result = follow_experiment(workbench.experiments, request, options.run)
    except StoppedError as error:
        again = f"--name {args.name}" if args.name else "--chain FILE --name RUN"
        raise StoppedError(
            f"{str(error).removesuffix('.')}; continue with {again} --resume."
        ) from None
    failure = ""
    if failed := result.report.failed:
        label, reason = next(iter(failed.items()))
        failure = f"{len(failed)} of {len(files)} chains could not be run. {label}: {reason}"
    values = [finished_run(workbench.workspace, run) for run in result.runs]
    lines = tuple(block for value in values for block in blocks(value))
    return Result([value.to_json() for value in values] or None, lines, failure)


def run_benchmark(runs: Runs, prepared: PreparedRun) -> RunResult:
    """Run a benchmark. Raises StoppedError if it was stopped."""
    result = follow(runs.run(prepared), lambda: runs.stop(prepared.name))
    if result.stopped:
        raise StoppedError(
            f"Stopped after {result.report.n_done if result.report else 0} of {result.n} questions; continue with --name {prepared.name} --resume."
        )
    return result


def blocks(value: FinishedRun) -> tuple[Table | str, ...]:
    """Return a run's metrics and cost, and the stop reasons of an agent's episodes."""
    result = value.result
    report, chain = result.report or RunReport(), result.request.flow.chain
    own = {name: column.estimate for name, column in report.own.items()}
    printed = printed_metrics(report, chain)
    rows = tuple(
        (
            f"  {name}",
            text(mean.value, absent="not scored"),
            "" if mean.value is None else _interval(name, mean, report.clusters),
            mean.n,
        )
        for name, mean in {**printed.means, **own}.items()
    )
    head = (
        f"{result.run}: {report.n} questions, {report.n_errors} failed, {report.seconds or 0:.1f} s"
    )
    if report.decided:
        head += f"; {report.decided}"
    columns = (Column("  metric"), Column("mean"), Column("95 % interval"), Column("n", "count"))
    table = Table(head, columns, rows, note=independence(report.clusters, report.n))
    return (
        table,
        *repeats.blocks(report.repeats),
        *printed.left_out,
        *_endings(value.endings),
        *(costs.blocks(report.cost) if report.cost else ()),
    )


def _interval(name: str, mean: Estimate, clusters: ClusterCounts | None) -> str:
    return interval(mean, clusters=clusters, note=interval_note(name, mean, clusters))


def _endings(agent: EndingSummary | None) -> list[str]:
    if agent is None:
        return []
    ended = ", ".join(f"{reason} {count}" for reason, count in agent.stop_reasons.items())
    return [
        f"ended: {ended}",
        f"requests to the model: {agent.turns} a question, in batches of {agent.batch} on average",
    ]
