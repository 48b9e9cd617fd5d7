"""``export``: a run as a file that other tools read."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rallebench.analysis.exporting import FORMS
from rallebench.cli.verbs import VERBS, checked_out, say, workbench_of
from rallebench.core.files import writing


def _flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN")
    parser.add_argument("--format", choices=tuple(FORMS), required=True)
    parser.add_argument("--out", type=Path, metavar="FILE", help="default: stdout")


def _plain(value: dict[str, Any]) -> str:
    return (
        value["text"].rstrip("\n")
        if "text" in value
        else f"{value['file']}: {value['lines']} lines"
    )


@VERBS.register(
    "export",
    about="write a run as TREC run, qrels, KILT predictions, R-Eval's log, JSON lines or CSV",
    example="rallebench export my-run --format trec --out my-run.trec",
    order=8.5,
    flags=_flags,
    plain=_plain,
)
def export(args: argparse.Namespace) -> dict[str, Any]:
    """The file and its number of lines; without ``--out`` the text itself."""
    workbench = workbench_of(args)
    run = workbench.open_run(args.run)
    lines, _ = FORMS[args.format]
    made: dict[str, Any] = {"run": run.name, "format": args.format}
    if args.out is None:
        text = list(lines(run))
        made |= {"lines": len(text), "text": "".join(text)}
    else:
        with writing(checked_out(args.out, workbench.workspace)) as handle:
            # Half a surrogate pair, which JSON may hold and UTF-8 may not, stays as JSON escapes it.
            count = sum(
                bool(handle.write(line.encode("utf-8", "backslashreplace"))) for line in lines(run)
            )
        made |= {"lines": count, "file": str(args.out)}
    left = sum(bool(line.get("error")) for line in run.lines().values())
    if left and args.format in ("trec", "kilt"):
        say(f"Warning: {left} failed questions are left out.")
    return made
