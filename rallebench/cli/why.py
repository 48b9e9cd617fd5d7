"""``why``: group a run's questions by meaning and by question word, and say which groups it gets wrong."""

from __future__ import annotations

import argparse

from rallebench.cli.flags import flag
from rallebench.cli.printing import follow
from rallebench.cli.verbs import VERBS, Result, open_workbench
from rallebench.core.failures import MEANING, WORD, group_table
from rallebench.core.tables import Table
from rallebench.services.question_groups import group_questions
from rallebench.services.workbench import Workbench
from rallebench.views.failures import explain_failures


@VERBS.register(
    "why",
    about="show which questions a run gets wrong: groups by meaning and question word, and where they were lost",
    example="rallebench why my-run --metric em",
    order=6.7,
    flags=(
        flag("run", "RUN"),
        flag(
            "--metric",
            "M",
            "answers below the middle of its range are wrong (default: the metric that decides)",
            default="",
        ),
    ),
)
def why(args: argparse.Namespace) -> Result:
    """Group the questions and compare the groups."""
    workbench = open_workbench(args)
    make_groups(workbench, args.run, MEANING)
    run = workbench.runs.open(args.run)
    report = explain_failures(workbench.workspace, run, args.metric)
    tables = [group_table(report, kind) for kind in (MEANING, WORD)]
    blocks: tuple[Table | str, ...] = tuple(table for table in tables if table.rows)
    return Result(report.to_json(), (*blocks, "\n".join(report.sentences)))


def make_groups(workbench: Workbench, run: str, key: str) -> None:
    """Group the questions of a run by meaning, if ``key`` names such a group."""
    if key.startswith(MEANING):
        follow(
            group_questions(
                workbench.workspace, workbench.models.encoders, workbench.runs.open(run)
            )
        )
