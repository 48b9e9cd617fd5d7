"""``baselines``: a run beside its chain with no passages, random ones and the gold's."""

from __future__ import annotations

import argparse

from rallebench.cli.flags import MLFLOW, flag
from rallebench.cli.printing import say
from rallebench.cli.run import run_benchmark
from rallebench.cli.verbs import VERBS, Result, failed_parts, workbench_of
from rallebench.core.errors import RalleError, StoppedError
from rallebench.services.benchmarks import LABELS, baselines_json


@VERBS.register(
    "baselines",
    about="run what a run is compared with: closed book, random passages, oracle passages",
    example="rallebench baselines my-run",
    order=6.2,
    flags=(flag("run", "RUN"), *MLFLOW),
)
def baselines(args: argparse.Namespace) -> Result:
    """Run the missing baselines of a run; every metric of the run, of its baselines and of the ceiling."""
    workbench = workbench_of(args)
    run = workbench.open_run(args.run)
    failed: dict[str, str] = {}
    for name, benchmark in workbench.benches.baseline_runs(run, track=not args.no_mlflow).items():
        say(f"── {LABELS[name]}: {benchmark.name}")
        try:
            run_benchmark(workbench, benchmark)
        except StoppedError:
            raise
        except RalleError as error:  # a chain may need a passage to work at all
            failed[name] = str(error)
            say(f"{LABELS[name]} failed: {error}")
    value, table = baselines_json(workbench, run, failed)
    if "oracle" not in {*value["lines"], *failed}:
        say("The gold names no pages, so there are no oracle passages.")
    failure = ""
    if not value["lines"]:
        mend = f"Ask for the lines of {run.name!r} again when it is mended."
        labels = [LABELS[name] for name in failed]
        failure = failed_parts("reference lines", labels, len(failed), mend)
    reasons = (f"{LABELS[name]} failed: {reason}" for name, reason in failed.items())
    return Result(value, (table, *reasons), failure)
