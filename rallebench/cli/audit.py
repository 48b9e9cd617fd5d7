"""``audit``: audit a grader of a run, or set two graders against the same labels."""

from __future__ import annotations

import argparse

from rallebench.cli import flags
from rallebench.cli.arguments import read_budget, split_list
from rallebench.cli.flags import flag
from rallebench.cli.printing import follow
from rallebench.cli.verbs import VERBS, Result, open_workbench
from rallebench.core.audits import PROBES
from rallebench.core.errors import UsageError
from rallebench.services.workbench import Workbench
from rallebench.views import audits


@VERBS.register(
    "audit",
    about="audit a grader of a run: calibration, risk against coverage, a proved threshold; or compare two graders",
    example="rallebench audit my-run --grader confidence --truth em --precision 0.8",
    order=8.3,
    flags=(
        flag("run", "RUN"),
        flag(
            "--grader",
            "G",
            "confidence (the model's own), a judge's column or a metric (default: the first of the run)",
            default="",
        ),
        flag(
            "--truth",
            "T",
            "labels, or a metric (default: the metric that decides)",
            default="",
        ),
        flag(
            "--precision",
            "P",
            f"wished share of right answers above a threshold (default: {audits.PRECISION})",
            type=float,
        ),
        flag(
            "--seed", "N", "of the halves of the articles, or of the sample (default: 0)", type=int
        ),
        flag("--against", "G", "another grader: which of the two agrees better with the labels"),
        flag(
            "--probe",
            "P,P",
            f"ask the judge --grader again: {', '.join(PROBES)}, or all; --truth tells the wrong answers",
        ),
        flag("--sample", "N", "of --probe: so many answers (default: all)", type=int),
        flags.MAX_USD,
    ),
)
def audit(args: argparse.Namespace) -> Result:
    """Audit one grader, or compare two."""
    workbench = open_workbench(args)
    run = workbench.runs.open(args.run)
    if args.probe is None and (args.sample is not None or args.max_usd is not None):
        raise UsageError("--sample and --max-usd belong to --probe; leave them out.")
    if args.probe is not None:
        if args.against is not None or args.precision is not None:
            raise UsageError("--probe goes without --against and --precision; leave them out.")
        return _probe(workbench, args)
    if args.against is not None:
        for name in ("truth", "precision", "seed"):
            if getattr(args, name) not in (None, ""):
                raise UsageError(f"--{name} does not go with --against; leave it out.")
        if not args.grader:
            raise UsageError("--against compares two graders; name the first with --grader.")
        compared = audits.compare_graders(run, args.grader, args.against)
        table = audits.comparison_table(compared)
        return Result(compared.to_json(), (table, "\n".join(compared.sentences)))
    value = audits.audit_grader(
        workbench.workspace,
        run,
        args.grader,
        args.truth,
        precision=audits.PRECISION if args.precision is None else args.precision,
        seed=args.seed or 0,
    )
    tables = (audits.audit_table(value), audits.bin_table(value))
    return Result(value.to_json(), (*tables, "\n".join(value.sentences)))


def _probe(workbench: Workbench, args: argparse.Namespace) -> Result:
    if not args.grader:
        raise UsageError("--probe asks a judge again; name it with --grader.")
    run = workbench.runs.open(args.run)
    value = follow(
        workbench.runs.probe(
            run.name,
            args.grader,
            audits.wrong_answers(run, args.grader, args.truth),
            () if args.probe.strip() == "all" else split_list(args.probe) or (),
            sample=args.sample,
            seed=args.seed or 0,
            budget=read_budget(args),
        )
    )
    return Result(value.to_json(), (audits.probe_table(value), "\n".join(value.sentences)))
