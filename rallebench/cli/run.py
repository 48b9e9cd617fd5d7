"""``run``: benchmark a chain, each chain of a folder, or an agent."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rallebench.chains.ralle import Experiment
from rallebench.cli.acting import agent_flags, agent_of
from rallebench.cli.ask import overridden, override_flags
from rallebench.cli.following import follow
from rallebench.cli.partial_failure import fail_at_end
from rallebench.cli.verbs import VERBS, mlflow_flags, say, workbench_of
from rallebench.core.errors import StoppedError, UsageError
from rallebench.core.runs import FlowSpec, RunOptions, RunResult
from rallebench.engine import cost_text
from rallebench.engine.clusters import sentence
from rallebench.engine.experiment_store import LONGEST_RUN, folder_name
from rallebench.engine.statistics import interval_text
from rallebench.experiments.batch import chain_entry
from rallebench.experiments.benchmark import Benchmark, fresh_name, prepare
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
            else f"{m['value']:.4f}  {interval_text(m, result.get('clusters'))}  n = {m['n']}"
        )
        lines.append(f"  {name:<22} {shown}")
    lines += [f"  {basis}"] if (basis := sentence(result.get("clusters"), result["n"])) else []
    return "\n".join([*lines, *_agent_lines(result), *cost_text.lines(result["cost"])])


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
        return run_plan(workbench, _plan(workbench, agent.flow, args))
    files = workbench.workspace.chain_folder(args.chain)
    if files is not None:
        return _run_folder(workbench, args, files)
    chain = overridden(workbench.workspace.chain(args.chain), args)
    experiment = workbench.workspace.experiment(args.chain)
    return run_plan(
        workbench,
        _plan(workbench, chain_flow(chain), args, experiment=experiment),
    )


def _run_folder(
    workbench: Workbench, args: argparse.Namespace, files: Sequence[tuple[str, Path]]
) -> Any:
    """The results of all chains of a folder that could be run."""
    title = args.name or Path(args.chain).resolve().name
    name = args.name or folder_name(f"{title} {time.strftime('%Y%m%d-%H%M%S')}", LONGEST_RUN)
    chains: dict[str, Any] = {}
    for label, path in files:
        chains[label] = _entry(workbench, args, label, path)
    settings = {
        "title": title,
        "chains": chains,
        "metrics": _metrics(args),
        "resume": args.resume,
    }
    request = workbench.experiments.request("batch", name, settings, seed=args.seed)
    options = RunOptions(max_errors=args.max_errors, track=not args.no_mlflow)
    try:
        result = follow(
            workbench.experiments.run(request, options), lambda: workbench.experiments.stop(name)
        )
    except StoppedError as error:
        again = f"--name {name}" if args.name else "--chain FILE --name RUN"
        raise StoppedError(
            f"{str(error).partition(';')[0]}; continue with {again} --resume."
        ) from None
    if result.warning:
        say(f"Warning: {result.warning}")
    if failed := result.report.failed:
        label, sentence = next(iter(failed.items()))
        fail_at_end(
            args,
            f"{len(failed)} of {len(files)} chains could not be run. {label}: {sentence}",
        )
    return [_result(workbench, run) for run in result.runs] or None


def _entry(
    workbench: Workbench, args: argparse.Namespace, label: str, path: Path
) -> dict[str, Any]:
    """A chain of a folder with what the flags change; what they leave open is as its file says."""
    workspace = workbench.workspace
    try:
        chain = replace(workspace.chain(str(path)), name=label)
        chain = overridden(chain, args, all_fit=False)
        dataset, limit, batch_size = _size(args, workspace.experiment(str(path)))
        run = (
            f"{args.name}-{label}"
            if args.name
            else fresh_name(workspace, label, workspace.dataset(dataset)[0])
        )
    except UsageError as error:
        raise type(error)(f"{path}: {error}") from None
    return chain_entry(str(path), chain, dataset, limit, batch_size, run)


def _metrics(args: argparse.Namespace) -> tuple[str, ...] | None:
    names = [m.strip() for m in (args.metrics or "").split(",") if m.strip()]
    return tuple(names) if args.metrics else None


def _size(args: argparse.Namespace, experiment: Experiment | None) -> tuple[str, int | None, int]:
    """(question set, limit, batch size): the flags', else those of an ``experiment`` of RaLLe's, else the defaults."""
    dataset, limit, batch_size = args.dataset, args.limit, args.batch_size
    if experiment is not None:
        dataset = dataset or experiment.dataset_name
        limit = limit if limit is not None else experiment.num_evaluate
        batch_size = batch_size if batch_size is not None else experiment.batch_size
    return dataset or DEFAULT_DATASET, limit, 20 if batch_size is None else batch_size


def _plan(
    workbench: Workbench,
    flow: FlowSpec,
    args: argparse.Namespace,
    *,
    experiment: Experiment | None = None,
) -> Benchmark:
    """The benchmark of what the flags ask for; what they leave open is as an ``experiment`` of RaLLe's says."""
    dataset, limit, batch_size = _size(args, experiment)
    return prepare(
        workbench.workspace,
        flow,
        dataset,
        limit=limit,
        metrics=_metrics(args),
        name=args.name,
        batch_size=batch_size,
        seed=args.seed,
        max_errors=args.max_errors,
        resume=args.resume,
        track=not args.no_mlflow,
    )


def run_plan(workbench: Workbench, benchmark: Benchmark) -> dict[str, Any]:
    """Run a benchmark to its end, saying how far it is; returns what ``run`` prints. Raises StoppedError if it was stopped."""
    result = follow(workbench.run(benchmark), lambda: workbench.stop_run(benchmark.name))
    if result.stopped:
        raise StoppedError(
            f"Stopped after {result.report['n_done']} of {result.n} questions; continue with --name {benchmark.name} --resume."
        )
    return _result(workbench, result)


def _result(workbench: Workbench, result: RunResult) -> dict[str, Any]:
    """What ``run`` prints of a run."""
    report, agent = result.report, result.request.flow.agent
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
