"""``report``: a run or a comparison as one HTML file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rallebench.cli.verbs import VERBS, checked_out, workbench_of
from rallebench.core.errors import UsageError
from rallebench.core.files import writing


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
    from rallebench.gui.report_page import comparison_page, run_page

    workbench = workbench_of(args)
    out = checked_out(args.out, workbench.workspace)
    runs = [workbench.open_run(name) for name in args.runs]
    for run in runs:
        if not run.report():
            raise UsageError(
                f"The run {run.name!r} has no report.json, so it cannot be shown; let it end, or resume it."
            )
    page = (
        run_page(runs[0], workbench.workspace)
        if len(runs) == 1
        else comparison_page(runs, workbench.workspace, args.metric)
    )
    with writing(out) as handle:
        size = sum(handle.write(part.encode("utf-8", "replace")) for part in page)
    return {"runs": [run.name for run in runs], "file": str(out), "bytes": size}
