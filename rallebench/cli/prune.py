"""``prune``: free disk space by removing rebuildable parts of the workspace, or by emptying the bin."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from rallebench.cli.flags import flag
from rallebench.cli.verbs import VERBS, Result, open_workbench
from rallebench.core.errors import UsageError
from rallebench.core.memory import size
from rallebench.services import disk


@VERBS.register(
    "prune",
    about="free disk: parts of the cache, and the bin; without a part, list them",
    example="rallebench prune vectors bin",
    order=24,
    flags=(flag("parts", "PART", f"{', '.join(disk.PARTS)}; or all", nargs="*"),),
)
def prune(args: argparse.Namespace) -> Result:
    """Remove the named parts of the workspace; without names, only list them."""
    workbench = open_workbench(args)
    if not args.parts:
        known = disk.list_parts(workbench.workspace)
        lines = [f"  {part.name:<10}{size(part.bytes):>10}  {part.about}" for part in known]
        text = "\n".join(("Parts of the workspace that can be pruned:", *lines))
        return Result({"parts": [asdict(part) for part in known]}, (text,))
    names = list(disk.PARTS) if args.parts == ["all"] else list(dict.fromkeys(args.parts))
    if unknown := [name for name in names if name not in disk.PARTS]:
        raise UsageError(
            f"There is no part {unknown[0]!r} to prune (there are: {', '.join(disk.PARTS)}, all)."
        )
    freed = [disk.prune(workbench.workspace, workbench.runs, name) for name in names]
    total = sum(part.bytes for part in freed)
    sentences = [f"{part.name}: {size(part.bytes)}" for part in freed]
    value = {"freed": {part.name: part.bytes for part in freed}, "total": total}
    return Result(value, (*sentences, f"Freed {size(total)} of disk."))
