"""``audit``: audit a grader of a run, or set two graders against the same labels."""

from __future__ import annotations

import argparse

from rallebench.cli.flags import flag
from rallebench.cli.verbs import VERBS, Result, open_workbench
from rallebench.core.errors import UsageError
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
        flag("--seed", "N", "of the halves of the articles (default: 0)", type=int),
        flag("--against", "G", "another grader: which of the two agrees better with the labels"),
    ),
)
def audit(args: argparse.Namespace) -> Result:
    """Audit one grader, or compare two."""
    workbench = open_workbench(args)
    run = workbench.runs.open(args.run)
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
