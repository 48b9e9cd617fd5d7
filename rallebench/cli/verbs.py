"""The registry of verbs. Each verb is a function ``(args) → Result`` in its own file."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rallebench.core.registry import Registry

if TYPE_CHECKING:
    from rallebench.core.tables import Table
    from rallebench.services.workbench import Workbench


@dataclass(frozen=True, slots=True)
class Result:
    """The output of a verb: ``json`` with ``--json``, otherwise ``blocks`` of sentences and tables.

    ``failure``: one sentence about partial failures, printed after the result; the exit code is then 1. ``exit_code``: of a
    verb with more outcomes than done and failed.
    """

    json: Any
    blocks: tuple[Table | str, ...]
    failure: str = ""
    exit_code: int = 0


VERBS: Registry[Callable[[argparse.Namespace], Result | None]] = Registry(
    "verb",
    "rallebench.cli",
    expects="a function (args) → a Result, or None",
    required={"example": (), "order": (), "flags": ()},
    name="verbs",
    traits={
        "example": "a call, for the help",
        "order": "the place in the help",
        "flags": "its own flags, beside the common ones: a tuple of flags.Flag",
    },
)


def open_workbench(args: argparse.Namespace) -> Workbench:
    """Open the workbench; ``args.ending`` closes it when the verb ends."""
    from rallebench.services.workbench import Workbench

    workbench = Workbench(
        args.workspace,
        base_settings=args.base_settings,
        mcp_servers=getattr(args, "mcp_servers", None),
        tracking_uri=getattr(args, "tracking_uri", None),
        allow_python=getattr(args, "allow_python", False),
        read_only=getattr(args, "read_only", False),
    )
    args.ending.callback(workbench.close)
    return workbench


def failed_parts(noun: str, failed: list[str], total: int, mend: str) -> str:
    """Return the ``failure`` sentence for ``failed`` parts, or '' if none failed."""
    if not failed:
        return ""
    return f"{len(failed)} of {total} {noun} failed: {', '.join(failed)}. {mend}"
