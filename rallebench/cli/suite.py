"""``suite``: run a named benchmark and print its table."""

from __future__ import annotations

import argparse

from rallebench.cli import arguments, flags
from rallebench.cli.flags import flag, switch
from rallebench.cli.printing import follow_experiment
from rallebench.cli.verbs import VERBS, Result, failed_parts, open_workbench
from rallebench.core.experiment_reports import SuiteReport
from rallebench.core.tables import Table
from rallebench.render import experiments
from rallebench.render.numbers import text
from rallebench.views import catalog
from rallebench.views.experiment_requests import suite_request


@VERBS.register(
    "suite",
    about="run a named benchmark: KILT, RGB, CRUD-RAG, BARAG, R-Eval",
    example="rallebench suite rgb-noise --set data=rgb --llm my-llm --set noise=0,0.4",
    order=6.4,
    flags=(
        flag("suite", "NAME", "without it: all suites with their settings", nargs="?"),
        flag(
            "--llm",
            "L",
            "given again for every further model, where a suite compares several",
            action="append",
        ),
        flag("--limit", "N", "the first N questions", type=int),
        flag(
            "--name",
            "RUN",
            "the same name again continues, and runs only what is missing",
            default="",
        ),
        *arguments.PLAN,
        *flags.LOOP,
        flags.MAX_USD,
        *flags.REPEATS,
        switch(
            "--allow-python",
            "let agents run programs that a model wrote (docs/agents.md says what holds them)",
        ),
        flags.MCP_SERVERS,
        *flags.MLFLOW,
        flags.settings("a setting of the suite, as in data=FOLDER or noise=0,0.2"),
    ),
)
def suite(args: argparse.Namespace) -> Result:
    """Run a suite and return its table, notes and files, or return its plan."""
    if not args.suite:
        suites = catalog.registry_entries("suites")
        return Result({"suites": [item.to_json() for item in suites]}, (experiments.forms(suites),))
    workbench = open_workbench(args)
    request = suite_request(
        workbench.workspace,
        args.suite,
        args.llm or (),
        arguments.read_settings(args.set),
        limit=args.limit,
        name=args.name,
        seed=args.seed,
        allow_python=workbench.allow_python,
    )
    if plan := arguments.show_plan(workbench.experiments, request, args):
        return plan
    options = arguments.read_run_options(args)
    result = follow_experiment(workbench.experiments, request, options)
    failed = list(result.report.failed)
    mend = f"Start the suite again with --name {request.name!r} once this is mended; finished runs are kept."
    failure = failed_parts("parts", failed, len(result.runs) + len(failed), mend)
    report = result.stored
    assert isinstance(report, SuiteReport)
    return Result(report.to_json(), _blocks(report), failure)


def _blocks(report: SuiteReport) -> tuple[Table | str, ...]:
    facts = (
        f"{key} {text(fact)}"
        for key, fact in report.data.items()
        if fact != "" and isinstance(fact, (str, int, float, type(None)))
    )
    files = f"{len(report.files)} files in {report.folder}" if report.files else ""
    return (
        f"{report.suite}: {report.name}",
        *experiments.parts(report),
        ", ".join(facts),
        *report.tables,
        *(f"Note: {note}" for note in report.notes),
        files,
    )
