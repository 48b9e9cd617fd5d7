"""``baselines``: a run and its baselines: its chain with no passages, random ones and the gold's."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from rallebench.analysis.baselines import COLUMNS, LABELS
from rallebench.cli.following import follow
from rallebench.cli.partial_failure import tell_failed
from rallebench.cli.verbs import VERBS, mlflow_flags, say, workbench_of
from rallebench.core.runs import RunOptions
from rallebench.services.experiments import plan_json, plan_lines


def _flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN")
    parser.add_argument("--plan", action="store_true", help="only say what it would run")
    mlflow_flags(parser)


def _plain(value: Mapping[str, Any]) -> str:
    if "plan" in value:
        return "\n".join(plan_lines(value))
    columns = {
        "run": "this run",
        **{name: label for name, label in COLUMNS.items() if name in value["columns"]},
    }
    wide = {name: max(12, len(label) + 2) for name, label in columns.items()}
    lines = [
        value["run"],
        f"  {'':<22}"
        + "".join(f"{label:>{wide[name]}}" for name, label in columns.items())
        + "       n",
    ]
    for name, row in value["metrics"].items():
        shown = ("–" if column not in row else f"{row[column]['value']:.4f}" for column in columns)
        cells = "".join(f"{text:>{width}}" for text, width in zip(shown, wide.values()))
        lines.append(f"  {name:<22}{cells}{row['run']['n']:>8}")
    lines += [f"{LABELS[line]} failed: {sentence}" for line, sentence in value["failed"].items()]
    return "\n".join(lines)


@VERBS.register(
    "baselines",
    about="run what a run is compared with: closed book, random passages, oracle passages",
    example="rallebench baselines my-run",
    order=6.2,
    flags=_flags,
    plain=_plain,
)
def baselines(args: argparse.Namespace) -> dict[str, Any]:
    """Run the baselines that a run has not yet; every metric of the run, of these and of the ceiling."""
    workbench = workbench_of(args)
    request = workbench.experiments.baselines(args.run)
    if args.plan:
        return plan_json(workbench.experiments.plan(request))
    options = RunOptions(track=not args.no_mlflow)
    result = follow(
        workbench.experiments.run(request, options),
        lambda: workbench.experiments.stop(request.name),
    )
    if result.warning:
        say(f"Warning: {result.warning}")
    document, failed = dict(result.document), result.report.failed
    if not {"oracle"} & {*document["lines"], *failed}:
        say("The gold names no pages, so there are no oracle passages.")
    if not document["lines"]:
        tell_failed(
            args,
            "baselines",
            [LABELS[line] for line in failed],
            len(failed),
            f"Run the baselines of {args.run!r} again when it is mended.",
        )
    return document
