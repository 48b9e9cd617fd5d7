"""``run``: benchmark a chain, each chain of a folder, or an agent."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rallebench.chains.ralle import Experiment
from rallebench.cli.acting import agent_flags, agent_of
from rallebench.cli.ask import overridden, override_flags
from rallebench.cli.partial_failure import fail_at_end
from rallebench.cli.stopping import Stoppable
from rallebench.cli.verbs import VERBS, Paced, mlflow_flags, say, workbench_of
from rallebench.core.errors import RalleError, StoppedError, UsageError
from rallebench.core.events import Event, Progress, Warned, complete
from rallebench.core.runs import FlowSpec
from rallebench.experiments.benchmark import Benchmark, prepare
from rallebench.experiments.sweeps.results import SweepReport, as_json, ranked
from rallebench.render import costs, text
from rallebench.render.numbers import independence as sentence
from rallebench.render.numbers import interval
from rallebench.services.workbench import Workbench
from rallebench.workspace.flows import chain_flow, ending_summary
from rallebench.workspace.paths import DEFAULT_DATASET


def _run_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--chain", metavar="FILE|NAME", help="a chain, or a folder of chains to run each"
    )
    parser.add_argument(
        "--dataset", metavar="FILE|NAME", help="default: what RaLLe's file names, else starter-qa"
    )
    parser.add_argument("--limit", type=int, metavar="N")
    parser.add_argument("--batch-size", type=int, metavar="B")
    parser.add_argument("--name", default="", metavar="RUN")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--metrics", metavar="M,…")
    parser.add_argument("--max-errors", type=int, metavar="N")
    parser.add_argument("--seed", type=int, default=0)
    mlflow_flags(parser)
    override_flags(parser)
    agent_flags(parser)


def _plain(value: Any) -> str:
    return "\n\n".join(
        _run_lines(result) for result in (value if isinstance(value, list) else [value])
    )


def _run_lines(result: Mapping[str, Any]) -> str:
    lines = [
        f"{result['run']}: {result['n']} questions, {result['n_errors']} failed, {result['seconds']:.1f} s"
    ]
    for name, m in result["metrics"].items():
        if "_at_" in name:
            continue
        shown = (
            "not scored"
            if m["value"] is None
            else f"{m['value']:.4f}  {interval(m, clusters=result.get('clusters'))}  n = {m['n']}"
        )
        lines.append(f"  {name:<22} {shown}")
    lines += [f"  {basis}"] if (basis := sentence(result.get("clusters"), result["n"])) else []
    return "\n".join([*lines, *_agent_lines(result), text.blocks(costs.blocks(result["cost"]))])


def _agent_lines(result: Mapping[str, Any]) -> list[str]:
    """How the episodes of an agent ended, and how full the batches of its requests were."""
    agent = result.get("agent")
    if not agent:
        return []
    ended = ", ".join(f"{reason} {count}" for reason, count in agent["stop_reasons"].items())
    return [
        f"  ended: {ended}",
        f"  requests to the model: {agent['turns']} a question, in batches of {agent['batch']} on average",
    ]


@VERBS.register(
    "run",
    about="benchmark a chain, a folder of chains, or an agent",
    example="rallebench run --chain starter --dataset starter-qa --limit 50",
    order=6,
    flags=_run_flags,
    plain=_plain,
)
def run(args: argparse.Namespace) -> Any:
    """Benchmark a chain, each chain of a folder, or an agent."""
    workbench = workbench_of(args)
    if args.resume and not args.name:
        raise UsageError("--resume needs --name RUN, the run to continue.")
    agent = agent_of(workbench, args)
    if agent is not None:
        return run_plan(
            workbench,
            _plan(workbench, agent.flow, args, args.name, args.resume),
        )
    files = workbench.workspace.chain_folder(args.chain)
    if files is None:
        return run_plan(workbench, _prepare(workbench, args.chain, args, args.name, args.resume))
    for (
        name,
        path,
    ) in files:  # a night of runs should not end at a file that was wrong from the start
        _prepare_in_folder(workbench, name, path, args)
    results, ran, failures = [], [], []
    for name, path in files:
        say(f"── {name}")
        try:
            results.append(run_plan(workbench, _prepare_in_folder(workbench, name, path, args)))
            ran.append(name)
        except StoppedError:
            raise
        except RalleError as error:
            failures.append(f"{name}: {error}")
            say(failures[-1])
    if results and not args.no_mlflow:
        _track_together(
            workbench, args, dict(zip((result["run"] for result in results), ran)), failures
        )
    if failures:
        fail_at_end(args, f"{len(failures)} of {len(files)} chains could not be run. {failures[0]}")
    return results or None


def _track_together(
    workbench: Workbench,
    args: argparse.Namespace,
    chains: Mapping[str, str],
    failures: Sequence[str],
) -> None:
    """Put the runs (name → chain) of a folder below one run in MLflow; what goes wrong is a warning."""
    name = args.name or Path(args.chain).resolve().name
    failed = dict(failure.split(": ", 1) for failure in failures)
    try:
        told = as_json(ranked(workbench.workspace, name, chains, failed))
    except (
        RalleError
    ) as error:  # they asked different questions: side by side all the same, without a winner
        told = as_json(SweepReport(name, chains, None, failed)) | {"verdict": str(error)}
    if warning := workbench.track_experiment(told, "batch"):
        say(f"Warning: {warning}")


def _prepare_in_folder(
    workbench: Workbench, name: str, path: Path, args: argparse.Namespace
) -> Benchmark:
    run = f"{args.name}-{name}" if args.name else ""
    resume = args.resume and (workbench.workspace.runs / run).exists()
    try:
        return _prepare(workbench, str(path), args, run, resume, name)
    except UsageError as error:
        raise type(error)(f"{path}: {error}") from None


def _prepare(
    workbench: Workbench,
    reference: str,
    args: argparse.Namespace,
    run: str,
    resume: bool,
    name: str = "",
) -> Benchmark:
    """The plan of one chain, checked; ``name`` is that of a chain in a folder of chains."""
    chain = workbench.workspace.chain(reference)
    experiment = workbench.workspace.experiment(reference)
    changed = overridden(replace(chain, name=name or chain.name), args, all_fit=not name)
    return _plan(workbench, chain_flow(changed), args, run, resume, experiment=experiment)


def _plan(
    workbench: Workbench,
    flow: FlowSpec,
    args: argparse.Namespace,
    run: str,
    resume: bool,
    *,
    experiment: Experiment | None = None,
) -> Benchmark:
    """The plan of what the flags ask for; what they leave open is as an ``experiment`` of RaLLe's says."""
    dataset, limit, batch_size = args.dataset, args.limit, args.batch_size
    if experiment is not None:
        dataset = dataset or experiment.dataset_name
        limit = limit if limit is not None else experiment.num_evaluate
        batch_size = batch_size if batch_size is not None else experiment.batch_size
    return prepare(
        workbench.workspace,
        flow,
        dataset or DEFAULT_DATASET,
        limit=limit,
        metrics=tuple(m.strip() for m in args.metrics.split(",") if m.strip())
        if args.metrics
        else None,
        name=run,
        batch_size=20 if batch_size is None else batch_size,
        seed=args.seed,
        max_errors=args.max_errors,
        resume=resume,
        track=not args.no_mlflow,
    )


def run_plan(workbench: Workbench, benchmark: Benchmark) -> dict[str, Any]:
    """Run a benchmark to its end, saying how far it is; returns what ``run`` prints. Raises StoppedError if it was stopped."""
    warnings: list[str] = []
    progress = Paced()

    def hear(event: Event) -> None:
        if isinstance(event, Warned):
            warnings.append(event.message)
            say(f"Warning: {event.message}")
        elif isinstance(event, Progress) and event.message:
            stoppable.running = event.message == "running"
            say(where(event) + event.message)
        elif isinstance(event, Progress):
            errors = f", {event.errors} failed" if event.errors else ""
            progress.say(
                f"{where(event)}{event.done}/{event.total}{errors} ({event.seconds:.0f} s)",
                always=event.done == event.total,
            )

    def where(event: Progress) -> str:
        return f"{event.task}: " if event.task else ""

    with Stoppable(workbench, benchmark.name) as stoppable:
        result = complete(workbench.run(benchmark), hear)
    report = result.report
    for warning in (warned for warned in result.warnings if warned not in warnings):
        say(f"Warning: {warning}")
    for message, count in report["errors"].items():
        say(f"{count} failed: {message}")
    if result.stopped:
        raise StoppedError(
            f"Stopped after {report['n_done']} of {report['n']} questions; continue with --name {benchmark.name} --resume."
        )
    agent = benchmark.request.flow.agent
    return {
        "run": result.run,
        "n": report["n"],
        "n_errors": report["n_errors"],
        "seconds": report["seconds"],
        "metrics": {
            **report["metrics"],
            **report.get("suite", {}),
            **_ralle_keys(report["metrics"]),
        },
        **({"judges": report["judges"]} if report.get("judges") else {}),
        "clusters": report.get("clusters"),
        "cost": report["cost"],
        **(
            {"agent": ending_summary(workbench.open_run(result.run).episodes().values())}
            if agent
            else {}
        ),
    }


def _ralle_keys(metrics: Mapping[str, Any]) -> dict[str, Any]:
    return {name.replace("@", "_at_"): value for name, value in metrics.items() if "@" in name}
