"""``baselines``: compare a run with its chain given no passages, random passages and gold passages."""

from __future__ import annotations

import argparse

from rallebench.cli import arguments
from rallebench.cli.flags import MAX_USD, MLFLOW, REPEATS, flag, switch
from rallebench.cli.printing import follow_experiment, say
from rallebench.cli.verbs import VERBS, Result, failed_parts, open_workbench
from rallebench.core.experiment_reports import BaselinesReport
from rallebench.core.tables import Column, Table
from rallebench.views.experiment_requests import baselines_request
from rallebench.views.experiment_results import baseline_label


@VERBS.register(
    "baselines",
    about="run what a run is compared with: closed book, random passages, oracle passages, whole pages",
    example="rallebench baselines my-run",
    order=6.2,
    flags=(
        flag("run", "RUN"),
        switch("--long-context", "also with the whole pages of the passages: long prompts"),
        switch("--plan", "only say what it would run"),
        MAX_USD,
        *REPEATS,
        *MLFLOW,
    ),
)
def baselines(args: argparse.Namespace) -> Result:
    """Run the missing baselines of a run; return every metric of the run, its baselines and the ceiling."""
    workbench = open_workbench(args)
    request = baselines_request(workbench.workspace, args.run, args.long_context)
    if plan := arguments.show_plan(workbench.experiments, request, args):
        return plan
    result = follow_experiment(workbench.experiments, request, arguments.read_run_options(args))
    report, failed = result.stored, result.report.failed
    assert isinstance(report, BaselinesReport)
    if "oracle" not in {*report.lines, *failed}:
        say("The gold names no pages, so there are no oracle passages.")
    failure = ""
    if not report.lines:
        mend = f"Run the baselines of {args.run!r} again when it is mended."
        labels = [baseline_label(name) for name in failed]
        failure = failed_parts("baselines", labels, len(failed), mend)
    return Result(report.to_json(), _blocks(report), failure)


def _blocks(report: BaselinesReport) -> tuple[Table | str, ...]:
    keys = ["run", *report.columns]
    rows = tuple(
        (name, *(row[key].value if key in row else None for key in keys), row["run"].n)
        for name, row in report.metrics.items()
    )
    heads: tuple[Column | str, ...] = (
        "",
        "this run",
        *(baseline_label(key) for key in report.columns),
        Column("n", "count"),
    )
    failed = (f"{baseline_label(name)} failed: {reason}" for name, reason in report.failed.items())
    return (Table(report.run, heads, rows), report.tests, *failed)
