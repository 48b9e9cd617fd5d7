"""``gate``: decide whether a run is worse than a base by more than a margin."""

from __future__ import annotations

import argparse
from pathlib import Path

from rallebench.cli import flags
from rallebench.cli.arguments import check_out
from rallebench.cli.flags import flag, switch
from rallebench.cli.printing import say
from rallebench.cli.verbs import VERBS, Result, open_workbench
from rallebench.cli.why import make_groups
from rallebench.core.files import write_text
from rallebench.render import gates
from rallebench.views.gating import gate_runs


@VERBS.register(
    "gate",
    about="decide whether a run is worse than a base by more than a margin",
    example="rallebench gate my-second-run --against my-first-run --metric em --margin 0.02",
    order=6.6,
    flags=(
        flag("new", "NEW"),
        flag("--against", "BASE", "the run that NEW must not be worse than", required=True),
        *flags.MARGIN,
        flags.SLICE,
        switch("--common", "compare only the questions that are the same in both"),
        flag("--junit", "FILE", "write the outcome as JUnit XML, for CI", type=Path),
        flag("--summary", "FILE", "write the outcome as Markdown", type=Path),
    ),
)
def gate(args: argparse.Namespace) -> Result:
    """Gate a run: exit code 0 passed, 3 undecided, 4 worse."""
    workbench = open_workbench(args)
    own = workbench.workspace.own_folders
    for name in ("junit", "summary"):
        if file := getattr(args, name):
            check_out(file, own, name=f"--{name}")
    make_groups(workbench, args.against, args.slice)
    value = gate_runs(
        workbench.runs.open(args.new),
        workbench.runs.open(args.against),
        args.metric,
        margin=args.margin,
        confidence=args.confidence,
        common=args.common,
        part=args.slice,
        workspace=workbench.workspace,
    )
    if args.junit:
        write_text(args.junit, gates.junit(value))
    if args.summary:
        write_text(args.summary, gates.markdown(value))
    for warning in value.warnings:
        say(f"Warning: {warning}")
    return Result(value.to_json(), (value.verdict, value.figures), exit_code=value.exit_code)
