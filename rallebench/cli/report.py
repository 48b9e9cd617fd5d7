"""``report``: a run or a comparison as one HTML file."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from rallebench.cli.verbs import VERBS, checked_out, workbench_of
from rallebench.core.files import writing
from rallebench.render.report import page
from rallebench.services.reports import report_of


def _flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="+", metavar="RUN")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE.html")
    parser.add_argument(
        "--metric", default="", metavar="M", help="of the differences between several runs"
    )


@VERBS.register(
    "report",
    about="write a run, or a comparison of runs, as one HTML file that opens offline",
    example="rallebench report my-run --out my-run.html",
    order=6.8,
    flags=_flags,
    plain=lambda value: f"{value['file']}: {value['bytes'] / 1e6:.2f} MB",
)
def report(args: argparse.Namespace) -> dict[str, Any]:
    """The file, and its size in bytes."""
    workbench = workbench_of(args)
    out = checked_out(args.out, workbench.workspace)
    runs = [workbench.open_run(name) for name in args.runs]
    title, sections = report_of(runs, workbench.workspace, args.metric)
    with writing(out) as handle:
        pieces = page(title, sections, time.strftime("%Y-%m-%d %H:%M"))
        size = sum(handle.write(piece.encode("utf-8", "replace")) for piece in pieces)
    return {"runs": [run.name for run in runs], "file": str(out), "bytes": size}
