"""``pick``: select the questions that a corpus can answer."""

from __future__ import annotations

import argparse
from pathlib import Path

from rallebench.cli.arguments import check_out
from rallebench.cli.flags import flag
from rallebench.cli.printing import drain
from rallebench.cli.verbs import VERBS, Result, open_workbench
from rallebench.core.backends import PagedRetriever
from rallebench.core.errors import UsageError
from rallebench.core.files import json_lines, write_text
from rallebench.services.counted_imports import pick_questions


@VERBS.register(
    "pick",
    about="keep the questions that a corpus can answer",
    example="rallebench pick --dataset nq.jsonl --index mine --number 100 --output picked.jsonl",
    order=8,
    flags=(
        flag("--dataset", "FILE|NAME", required=True),
        flag("--index", "N", required=True),
        flag("--number", "N", type=int, default=100),
        flag("--output", "FILE", type=Path, required=True),
    ),
)
def pick(args: argparse.Namespace) -> Result:
    """Write the first questions whose gold pages are in the index."""
    if args.number < 1:
        raise UsageError(f"--number is {args.number}; it must be at least 1.")
    workbench = open_workbench(args)
    _, path = workbench.workspace.dataset(args.dataset)
    output = check_out(
        args.output, workbench.workspace.own_folders, name="--output", source=path
    ).resolve()
    drain(workbench.models.load(args.index, "retriever"))
    retriever = workbench.models.backends.retrievers[args.index]
    pages = retriever.page_ids() if isinstance(retriever, PagedRetriever) else frozenset()
    records, read = pick_questions(path, pages, args.number)
    write_text(output, json_lines(records))
    counts = {"kept": len(records), "read": read, "without": read - len(records)}
    line = f"{args.output}: {counts['kept']} of {read} questions kept"
    return Result({"output": str(args.output), **counts}, (line,))
