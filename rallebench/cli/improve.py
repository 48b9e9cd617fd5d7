"""``improve``: find a better variant of a chain, and prove it on articles that none has seen."""

from __future__ import annotations

import argparse
import time

from rallebench.cli import arguments, flags
from rallebench.cli.flags import flag, many
from rallebench.cli.printing import follow_experiment
from rallebench.cli.verbs import VERBS, Result, open_workbench
from rallebench.core.experiment_reports import SuiteReport
from rallebench.core.tables import Table
from rallebench.views.experiment_requests import improve_request
from rallebench.views.run_requests import changed_chain

FIELDS = (
    "k=2,4,8  retriever=a,b  2.template=a.txt,b.txt, in place of our own values of these fields"
)


@VERBS.register(
    "improve",
    about="find a better variant of a chain, and prove it on unseen articles",
    example="rallebench improve starter --dataset starter-qa --name better",
    order=6.7,
    flags=(
        flag("chain", "CHAIN"),
        flag("--dataset", "FILE|NAME"),
        many("--model", "L", "use this model in every generate action", alias="--llm"),
        many("--vary", "FIELD=V,V,…", FIELDS),
        flag("--metric", "M", "what decides (default: em, or the first other one of answers)"),
        flag("--budget", "N", "the most questions to ask, the proof included", type=int),
        flag(
            "--writer",
            "L",
            "a model that writes further prompts, from wrong answers to the questions to learn from",
        ),
        flags.settings("another setting, as in variants=20 or examples=2,4 (docs/improve.md)"),
        flag("--limit", "N", "the first N questions", type=int),
        flag(
            "--name",
            "NAME",
            "of the improvement and of its variant; the same name again continues",
            default="",
        ),
        *arguments.PLAN,
        *flags.LOOP,
        flags.MAX_USD,
        *flags.REPEATS,
        *flags.MLFLOW,
    ),
)
def improve(args: argparse.Namespace) -> Result:
    """Improve a chain, or return the plan; the chain itself stays as it is."""
    workbench = open_workbench(args)
    name = args.name or time.strftime("improve-%Y%m%d-%H%M%S")
    named = {key: getattr(args, key) for key in ("dataset", "metric", "budget", "writer")}
    written = arguments.read_settings(args.set)
    request = improve_request(
        workbench.workspace,
        name,
        changed_chain(workbench.workspace, args.chain, None, None, ()),
        {**written, **{key: value for key, value in named.items() if value is not None}},
        vary=args.vary,
        llm="".join(args.model[-1:]),
        limit=args.limit,
        seed=args.seed,
    )
    if plan := arguments.show_plan(workbench.experiments, request, args):
        return plan
    options = arguments.read_run_options(args)
    result = follow_experiment(workbench.experiments, request, options)
    report = result.stored
    assert isinstance(report, SuiteReport)
    return Result(report.to_json(), _blocks(report))


def _blocks(report: SuiteReport) -> tuple[Table | str, ...]:
    outcome, *notes = report.notes
    saved = (f"The variant is saved: {file}" for file in report.files)
    return (*report.tables, *(f"Note: {note}" for note in notes), outcome, *saved)
