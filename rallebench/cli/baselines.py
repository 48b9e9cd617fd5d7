"""``baselines``: a run and its baselines: its chain with no passages, random ones and the gold's."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from rallebench.analysis.baselines import COLUMNS, LABELS, compare_baselines
from rallebench.cli.partial_failure import tell_failed
from rallebench.cli.run import run_plan
from rallebench.cli.verbs import VERBS, mlflow_flags, say, workbench_of
from rallebench.core.errors import RalleError, StoppedError


def _flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN")
    mlflow_flags(parser)


def _plain(value: Mapping[str, Any]) -> str:
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
def reference(args: argparse.Namespace) -> dict[str, Any]:
    """Run the reference lines that a run has not yet; every metric of the run, of these and of the ceiling."""
    workbench = workbench_of(args)
    run = workbench.open_run(args.run)
    failed: dict[str, str] = {}
    for line, plan in workbench.benches.baseline_runs(run, track=not args.no_mlflow).items():
        say(f"── {LABELS[line]}: {plan.name}")
        try:
            run_plan(workbench, plan)
        except StoppedError:
            raise
        except (
            RalleError
        ) as error:  # a chain may need a passage to work at all; the other lines are worth having
            failed[line] = str(error)
            say(f"{LABELS[line]} failed: {error}")
    found = compare_baselines(run, workbench.benches.baselines_of(run))
    if not {"oracle"} & {*found.lines, *failed}:
        say("The gold names no pages, so there are no oracle passages.")
    if not found.lines:
        labels = [LABELS[line] for line in failed]
        tell_failed(
            args,
            "reference lines",
            labels,
            len(failed),
            f"Ask for the lines of {run.name!r} again when it is mended.",
        )
    metrics = {
        name: {column: asdict(mean) for column, mean in row.items()}
        for name, row in found.cells.items()
    }
    return {
        "run": run.name,
        "lines": dict(found.lines),
        "columns": found.columns,
        "failed": failed,
        "metrics": metrics,
    }
