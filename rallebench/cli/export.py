"""``export``: write a run in the format of another tool."""

from __future__ import annotations

import argparse
from pathlib import Path

from rallebench.cli.arguments import check_out
from rallebench.cli.flags import flag
from rallebench.cli.printing import say
from rallebench.cli.verbs import VERBS, Result, open_workbench
from rallebench.core.files import writing
from rallebench.services.exchange import export_lines
from rallebench.views import catalog


@VERBS.register(
    "export",
    about="write a run as TREC, MS MARCO or ranx run, qrels, predictions of KILT or SQuAD, R-Eval's log, JSON lines or CSV",
    example="rallebench export my-run --format trec --out my-run.trec",
    order=8.5,
    flags=(
        flag("run", "RUN"),
        flag("--format", choices=catalog.names("export formats"), required=True),
        flag("--out", "FILE", "default: stdout", type=Path),
    ),
)
def export(args: argparse.Namespace) -> Result:
    """Export a run; return the file and its number of lines, or the text itself without ``--out``."""
    workbench = open_workbench(args)
    lines, warning = export_lines(workbench.runs.open(args.run), args.format)
    value = {"run": args.run, "format": args.format}
    text, count = list[str](), 0
    if args.out is None:
        text = list(lines)
    else:
        with writing(check_out(args.out, workbench.workspace.own_folders)) as handle:
            # JSON may hold half a surrogate pair; UTF-8 may not. It stays a JSON escape.
            count = sum(
                bool(handle.write(line.encode("utf-8", "backslashreplace"))) for line in lines
            )
    if warning:
        say(f"Warning: {warning}")
    if args.out is None:
        whole = "".join(text)
        return Result({**value, "lines": len(text), "text": whole}, (whole.rstrip("\n") or "\n",))
    file = str(args.out)
    return Result({**value, "lines": count, "file": file}, (f"{file}: {count} lines",))
