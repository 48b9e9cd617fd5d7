"""``report``: write runs as one HTML file, or print a published table next to our runs."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from rallebench.cli.arguments import check_out
from rallebench.cli.flags import flag
from rallebench.cli.verbs import VERBS, Result, open_workbench
from rallebench.core.errors import UsageError
from rallebench.core.files import write_text, writing
from rallebench.core.table_files import csv_table, latex
from rallebench.core.tables import Section
from rallebench.render.report import page
from rallebench.services.workbench import Workbench
from rallebench.views import published
from rallebench.views.reports import build_report


@VERBS.register(
    "report",
    about="write runs as one HTML file that opens offline; print a paper's table with ours beside it",
    example="rallebench report my-run --out my-run.html",
    order=6.8,
    flags=(
        flag("runs", "RUN", "runs; with --published suite runs, default: all", nargs="*"),
        flag(
            "--out", "FILE", "the HTML file; with --published also .csv, .tex or .json", type=Path
        ),
        flag("--published", "TABLE", "of a paper, as ralle:2; see 'rallebench list published'"),
        flag("--metric", "M", "of the differences between several runs", default=""),
    ),
)
def report(args: argparse.Namespace) -> Result:
    """Write runs as an HTML file and return its path and size in bytes, or return a published table."""
    workbench = open_workbench(args)
    if args.published:
        return _published_table(args, workbench)
    if not args.runs or args.out is None:
        raise UsageError(
            "Name runs and the file with --out FILE.html, or a table with --published."
        )
    out = check_out(args.out, workbench.workspace.own_folders)
    runs = [workbench.runs.open(name) for name in args.runs]
    title, sections = build_report(runs, workbench.workspace, args.metric)
    with writing(out) as handle:
        pieces = page(title, sections, time.strftime("%Y-%m-%d %H:%M"))
        size = sum(handle.write(piece.encode("utf-8", "replace")) for piece in pieces)
    value = {"runs": [run.name for run in runs], "file": str(out), "bytes": size}
    return Result(value, (f"{out}: {size / 1e6:.2f} MB",))


def _published_table(args: argparse.Namespace, workbench: Workbench) -> Result:
    """Print a published table next to our runs, or write it in the format that the file's suffix names."""
    value = published.open_table(args.published)
    own = published.own_rows(workbench.workspace, value, args.runs)
    table, document = published.as_table(value, own), published.document(value, own)
    if args.out is None:
        doubts = (f"Note: {doubt}" for doubt in value.doubts)
        return Result(document, (table, *doubts))
    forms = {
        ".json": lambda: json.dumps(document, ensure_ascii=False, indent=2) + "\n",
        ".csv": lambda: csv_table(table),
        ".tex": lambda: latex(table),
        ".html": lambda: "".join(
            page(args.published, [Section("", (table, *published.figures(value, own)))])
        ),
    }
    if args.out.suffix not in forms:
        raise UsageError(f"--out {args.out}: its end must be one of {', '.join(forms)}.")
    out = check_out(args.out, workbench.workspace.own_folders)
    write_text(out, forms[args.out.suffix]())
    return Result({**document, "file": str(out)}, (f"wrote {out}",))
