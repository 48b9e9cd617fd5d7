"""``suite``: a named benchmark, from its questions to its table."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from rallebench.cli.following import follow
from rallebench.cli.partial_failure import tell_failed
from rallebench.cli.verbs import (
    VERBS,
    Paced,
    described,
    described_text,
    loop_flags,
    mlflow_flags,
    say,
    settings_flag,
    workbench_of,
    written,
)
from rallebench.core.errors import UsageError
from rallebench.core.events import complete
from rallebench.core.experiments import ExperimentRequest
from rallebench.core.runs import RunOptions
from rallebench.core.tables import Table
from rallebench.engine import estimate, pilot, plan
from rallebench.engine.experiment_store import run_name
from rallebench.experiments.papers import SUITES, settings_of
from rallebench.render import experiments, text
from rallebench.render.numbers import interval
from rallebench.services.context import Context
from rallebench.services.experiments import suite_name
from rallebench.services.workbench import Workbench

OWN = ("suite", "name", "folder")
"""Of a report, what stands above and below its table."""


def _flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "suite", nargs="?", metavar="NAME", help="without it: all suites with their settings"
    )
    parser.add_argument(
        "--llm",
        action="append",
        metavar="L",
        help="given again for every further model, where a suite compares several",
    )
    parser.add_argument("--limit", type=int, metavar="N", help="the first N questions")
    parser.add_argument(
        "--name",
        default="",
        metavar="RUN",
        help="the same name again continues, and runs only what is missing",
    )
    parser.add_argument(
        "--plan",
        action="store_true",
        help="say what it would run and cost; runs nothing but the probe",
    )
    parser.add_argument(
        "--probe",
        type=int,
        metavar="N",
        help=f"with --plan: questions a part that are really answered, to see what it costs (default {pilot.QUESTIONS}; 0: none)",
    )
    loop_flags(parser)
    parser.add_argument(
        "--allow-python",
        action="store_true",
        help="let agents run programs that a model wrote (docs/agents.md says what holds them)",
    )
    mlflow_flags(parser)
    settings_flag(parser, "a setting of the suite, as in data=FOLDER or noise=0,0.2")


def _plain(value: Mapping[str, Any]) -> str:
    if "suites" in value:
        return "\n\n".join(described_text(one) for one in value["suites"])
    if "plan" in value:
        return text.blocks([experiments.plan(value), *_plan_notes(value)])
    lines = [f"{value['suite']}: {value['name']}"]
    for metrics in dict.fromkeys(tuple(part["metrics"]) for part in value["parts"]):
        lines += _table(
            metrics, [part for part in value["parts"] if tuple(part["metrics"]) == metrics]
        )
    said = [
        f"{key} {_scalar(one)}"
        for key, one in value.items()
        if key not in OWN and not isinstance(one, (dict, list))
    ]
    lines += [
        ", ".join(said),
        *(f"{metric}: {text}" for metric, text in value["definitions"].items()),
    ]
    lines += [
        line for table in value["tables"] for line in ("", *text.table(Table.from_json(table)))
    ]
    lines += [f"Note: {note}" for note in value["notes"]]
    written = [f"{len(value['files'])} files in {value['folder']}"] if value["files"] else []
    return "\n".join([*lines, *written])


def _plan_notes(value: Mapping[str, Any]) -> list[str]:
    costs = value.get("indexes", {}).get("costs")
    notes = value["probe"]["notes"] if value.get("probe") else value["notes"]
    return [*([f"Indexes: {costs}"] if costs else []), *(f"Note: {note}" for note in notes)]


def _scalar(value: Any) -> str:
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def _table(metrics: Sequence[str], parts: Sequence[Mapping[str, Any]]) -> list[str]:
    """Parts down, metrics across, each with its interval and what it is a mean of."""
    wide = max(len(part["label"]) for part in parts) + 2
    lines = [" " * wide + "".join(f"{name:<34}" for name in metrics) + "failed"]
    for part in parts:
        cells = "".join(f"{_shown(mean):<34}" for mean in part["metrics"].values())
        lines.append(f"{part['label']:<{wide}}{cells}{part['n_errors']}")
    return lines


def _shown(mean: Mapping[str, Any]) -> str:
    if mean["value"] is None:
        return "not scored"
    return f"{mean['value']:.4f} {interval(mean)} n={mean['n']}"


def models_of(
    suite: str, llms: Sequence[str], given: Mapping[str, str]
) -> tuple[str, Mapping[str, str]]:
    """(the model, the settings); several models become the setting of a suite that compares them. Raises UsageError."""
    if llms and suite in SUITES and not SUITES.entry(suite).traits.get("asks", True):
        raise UsageError(f"The suite {suite!r} asks no language model; leave --llm out.")
    if len(llms) < 2:
        return "".join(llms), given
    if suite in SUITES and "models" not in SUITES.entry(suite).form:
        raise UsageError(
            f"The suite {suite!r} takes one model, but --llm is given {len(llms)} times; run it once for each."
        )
    if "models" in given:
        raise UsageError(
            "The models are given twice, by --llm and by --set models=…; leave one out."
        )
    return "", {**given, "models": ",".join(llms)}


@VERBS.register(
    "suite",
    about="run a named benchmark: KILT, RGB, CRUD-RAG, BARAG, R-Eval",
    example="rallebench suite rgb-noise --set data=rgb --llm my-llm --set noise=0,0.4",
    order=6.4,
    flags=_flags,
    plain=_plain,
)
def suite(args: argparse.Namespace) -> dict[str, Any]:
    """The suite's report: a table over its parts, what to know of the records, the files that it made; or its plan."""
    if not args.suite:
        return {"suites": [described(SUITES, name) for name in SUITES.names()]}
    llm, given = models_of(args.suite, args.llm or [], written(args.set))
    settings = settings_of(args.suite, given)
    if args.limit is not None and args.limit < 1:
        raise UsageError(f"--limit is {args.limit}; give at least 1, or leave it out for all.")
    workbench = workbench_of(args)
    name = args.name or suite_name(args.suite, llm, settings, args.limit)
    request = ExperimentRequest(
        workbench.workspace,
        llm,
        settings,
        args.limit,
        args.seed,
        workbench.allow_python,
        args.suite,
        name,
    )
    if args.plan:
        return _planned(workbench, args, request)
    if args.probe is not None:
        raise UsageError("--probe goes with --plan; without it the suite is run.")
    options = RunOptions(args.batch_size, args.max_errors, track=not args.no_mlflow)
    result = follow(
        workbench,
        workbench.experiments.run(request, options),
        lambda task: run_name(name, task),
    )
    if result.warning:
        say(f"Warning: {result.warning}")
    failed = result.report.failed
    mend = f"Start the suite again with --name {name!r} when it is mended: only what is missing is run."
    tell_failed(args, "parts", failed, len(result.runs) + len(failed), mend)
    return dict(result.document)


def _planned(
    workbench: Workbench, args: argparse.Namespace, request: ExperimentRequest
) -> dict[str, Any]:
    """What would be run, and what it would cost, estimated from a few questions that are really asked."""
    count = pilot.QUESTIONS if args.probe is None else args.probe
    if count < 0:
        raise UsageError(f"--probe is {count}; it must be 0 for none, or a number of questions.")
    planned = workbench.experiments.plan(request)
    value: dict[str, Any] = {**plan.as_json(planned), "probe": None}
    if not count:
        return value
    if planned.builds:
        value["indexes"]["costs"] = _costs(workbench, planned.builds)
    estimated = follow(
        workbench,
        workbench.experiments.pilot(planned, request, questions=count, batch_size=args.batch_size),
        lambda task: "",
    )
    value["probe"] = estimate.as_json(estimated)
    return value


def _costs(workbench: Workbench, builds: Sequence[Any]) -> str:
    """What the indexes will take: their documents are cut into chunks for it, which are kept."""
    progress = Paced(later=True)
    with workbench.lease("the estimate of the indexes") as lease:
        return complete(
            Context(workbench, lease).index_costs(tuple(builds)),
            lambda event: progress.say(f"{event.message}: {event.done:,}"),  # type: ignore[union-attr]
        )
