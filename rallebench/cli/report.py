"""``report``: a run or a comparison as one HTML file."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from rallebench.cli.flags import check_out, flag
from rallebench.cli.verbs import VERBS, Result, workbench_of
from rallebench.core.files import writing
from rallebench.render.report import page
from rallebench.services.reports import report_of


@VERBS.register(
    "report",
    about="write a run, or a comparison of runs, as one HTML file that opens offline",
    example="rallebench report my-run --out my-run.html",
    order=6.8,
    flags=(
        flag("runs", "RUN", nargs="+"),
        flag("--out", "FILE.html", type=Path, required=True),
        flag("--metric", "M", "of the differences between several runs", default=""),
    ),
)
def report(args: argparse.Namespace) -> Result:
    """The file, and its size in bytes."""
    workbench = workbench_of(args)
    out = check_out(args.out, workbench)
    runs = [workbench.runs.open(name) for name in args.runs]
    title, sections = report_of(runs, workbench.workspace, args.metric)
    with writing(out) as handle:
        pieces = page(title, sections, time.strftime("%Y-%m-%d %H:%M"))
        size = sum(handle.write(piece.encode("utf-8", "replace")) for piece in pieces)
    value = {"runs": [run.name for run in runs], "file": str(out), "bytes": size}
    return Result(value, (f"{out}: {size / 1e6:.2f} MB",))
