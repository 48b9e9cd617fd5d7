"""``delete``: delete a run, experiment, index, corpus or dataset, and print the disk space freed."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from rallebench.cli.flags import flag, switch
from rallebench.cli.verbs import VERBS, Result, open_workbench
from rallebench.core.errors import UsageError
from rallebench.core.memory import size
from rallebench.services import disk
from rallebench.services.doctor import bytes_below

KINDS = ("run", "experiment", "index", "corpus", "dataset")


@VERBS.register(
    "delete",
    about="delete a run, an experiment, an index, a corpus or a dataset",
    example="rallebench delete run my-run",
    order=23,
    flags=(
        flag("kind", "KIND", ", ".join(KINDS), choices=KINDS),
        flag("name", "NAME", "its name: rallebench list, or the page"),
        switch("--for-good", "run: delete it, also from the bin, which brings it back otherwise"),
    ),
)
def delete(args: argparse.Namespace) -> Result:
    """Delete an item of the workspace and report the disk space freed."""
    if args.for_good and args.kind != "run":
        raise UsageError(f"--for-good belongs to a run; a deleted {args.kind} is gone anyhow.")
    workbench = open_workbench(args)
    place = disk.find_place(workbench.workspace, args.kind, args.name)
    binned = workbench.workspace.run_bin / args.name
    before = bytes_below(place) + bytes_below(binned)
    deleters: dict[str, Callable[[str], str]] = {
        "run": lambda name: disk.delete_run(
            workbench.workspace, workbench.runs, name, for_good=args.for_good
        ),
        "experiment": lambda name: disk.delete_experiment(workbench.workspace, name),
        "index": workbench.data.delete_index,
        "corpus": workbench.data.delete_corpus,
        "dataset": workbench.data.delete_dataset,
    }
    sentence = deleters[args.kind](args.name)
    freed = before - bytes_below(place) - bytes_below(binned)
    value = {"kind": args.kind, "name": args.name, "freed": freed, "said": [sentence]}
    return Result(value, (sentence, f"Freed {size(freed)} of disk."))
